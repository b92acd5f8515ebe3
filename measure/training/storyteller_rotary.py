"""Train a storyteller whose queries and keys are rotated, and convert it: few keys keep their rotation.

Each head's key is 8 complex numbers, which turn with the word's place. An orthogonal map that mixes
the same number of different heads commutes with the turns (TransMLA, arXiv:2502.07864); here it
takes the principal axes of the keys. Then ``turning`` of the 32 mixed numbers turn in each layer,
those whose keys move most, and the others stand still. With a ``latent``, what stands still and the
values keep only that many numbers of a word, by a cut weighted by the inputs. It takes five minutes
of one core. The file is ``lowrank_tutor/data/storyteller_rotary.json``.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lowrank_tutor import storyteller
from lowrank_tutor.bilinear import factorize
from lowrank_tutor.caches import input_moments
from lowrank_tutor.storyteller.model import train
from measure.harness import provenance, write
from measure.training.storyteller_cuts import short_stories
from measure.training.storyteller_designs import written

STEPS, BASE, STORIES, LESSONS, FAR = 1800, 10_000, 200, 200, 48
HEADS, PLANES = 4, 8
TURNING, LATENTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32), ((4, 24), (4, 32), (8, 24), (8, 32))


def as_planes(x: Tensor) -> Tensor:
    """Return pairs of entries as complex numbers, (..., 16) to (..., 8)."""
    return torch.view_as_complex(x.unflatten(-1, (PLANES, 2)).contiguous())


def turns(n: int) -> Tensor:
    """Return what each place multiplies each number by, (n, 8)."""
    return torch.exp(1j * torch.arange(n)[:, None] / BASE ** (torch.arange(PLANES) / PLANES))


def rotary(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend with rotated queries and keys."""
    q, k = (torch.view_as_real(as_planes(x) * turns(x.shape[2])).flatten(-2) for x in (q, k))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def principal(weight: Tensor, moment: Tensor) -> Tensor:
    """Return orthogonal maps (8, 4, 4), one for each plane, from what makes the keys, and E x x^T; strongest first."""
    moments = (weight @ moment @ weight.T).view(HEADS, PLANES, 2, HEADS, PLANES, 2)
    return torch.linalg.eigh(torch.einsum("gpchpc->pgh", moments)).eigenvectors.flip(-1)


def mixed(weight: Tensor, mix: Tensor) -> Tensor:
    """Return what makes the mixed keys, (4, 8, 2, dim)."""
    return torch.einsum("gpcd,pgm->mpcd", weight.view(HEADS, PLANES, 2, -1), mix)


def attend(q: Tensor, k: Tensor, v: Tensor, *, mix: Tensor, turning: Tensor) -> Tensor:
    """Attend with mixed keys, of which ``turning`` (4, 8) says which numbers turn; all of them: as `rotary` does."""
    places = turns(q.shape[2])
    turned = torch.where(turning[:, None], places, torch.ones_like(places))  # (4, n, 8)
    keys = torch.einsum("bgnp,pgm->bmnp", as_planes(k), mix.to(places)) * turned
    queries = torch.einsum("bhnp,phm->bhmnp", as_planes(q), mix.to(places)) * turned
    scores = torch.einsum("bhmip,bmjp->bhij", queries, keys.conj()).real / 4
    later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ v


def choose(weight: Tensor, moment: Tensor, mix: Tensor, count: int) -> Tensor:
    """Say which ``count`` mixed numbers turn, (4, 8): those whose keys move farthest within 48 places."""
    parts = mixed(weight, mix)
    sizes = torch.einsum("mpcd,de,mpce->mp", parts, moment, parts)
    moves = (sizes * (1 - turns(FAR)).abs().square().mean(dim=0)).flatten()
    return (moves.argsort(descending=True).argsort() < count).view(HEADS, PLANES)


def with_latent(
    layer: Any, moment: Tensor, mix: Tensor, turning: Tensor, rank: int
) -> dict[str, Tensor]:
    """Return a layer's weights of keys and values, where those that do not turn follow from ``rank`` numbers."""
    keys, values = mixed(layer.k.weight, mix), layer.v.weight
    u, v = factorize(
        torch.cat([keys[~turning].flatten(0, 1), values]).numpy(), rank, h_moment=moment.numpy()
    )
    made, values = (
        torch.from_numpy(u.T @ v).to(values).split([2 * int((~turning).sum()), len(values)])
    )
    keys[~turning] = made.view(-1, 2, made.shape[1])
    return {"k": torch.einsum("mpcd,pgm->gpcd", keys, mix).flatten(0, 2), "v": values}


@torch.no_grad()
def main() -> int:
    """Train, convert, count right answers, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="few steps and stories, and nothing is written"
    )
    short = parser.parse_args().short
    torch.set_num_threads(1)
    with torch.enable_grad():
        model = train(2 if short else STEPS, attend=rotary)
    told, layers = short_stories(3 if short else STORIES), list(model.layers)
    with input_moments(model, "k") as met:
        for story in storyteller.stories(3 if short else LESSONS, rng=9):
            model([storyteller.encode(story.words)], attend=rotary)
    moments: list[Tensor] = [moment.float() for moment in met.values()]
    keys: list[Any] = [layer.k.weight for layer in layers]
    rows: list[dict[str, Any]] = []

    def add(way: str, count: int, latent: int) -> None:
        plain = torch.eye(HEADS).expand(PLANES, -1, -1)
        mixes = [
            principal(*each) if way == "mixed" else plain
            for each in zip(keys, moments, strict=True)
        ]
        sets = [choose(*each, count) for each in zip(keys, moments, mixes, strict=True)]
        weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
        for i, each in enumerate(zip(layers, moments, mixes, sets, strict=True) if latent else ()):
            parts = with_latent(*each, latent)
            weights |= {
                f"layers.{i}.{part}.weight": weight.numpy() for part, weight in parts.items()
            }
        ways = [
            lambda q, k, v, m=m, t=t: attend(q, k, v, mix=m, turning=t)
            for m, t in zip(mixes, sets, strict=True)
        ]  # type: ignore[misc]
        share = written(storyteller.load(weights), ways, told)["answered"]
        rows.append({"keys": way, "turning": count, "latent": latent, "answered": share})
        print(rows[-1], flush=True)

    for way, count in [(way, count) for way in ("mixed", "as they are") for count in TURNING]:
        add(way, count, 0)
    for count, latent in LATENTS:
        add("mixed", count, latent)
    if not short:
        meta = provenance("python -m measure.training.storyteller_rotary", ["numpy", "torch"])
        write(
            "storyteller_rotary",
            meta | {"steps": STEPS, "base": BASE, "stories": STORIES, "seed": 0},
            rows,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
