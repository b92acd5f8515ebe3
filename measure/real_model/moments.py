"""What a cut for the inputs needs to know: second moments on other texts; and cuts of weights."""

from __future__ import annotations

import torch
from torch import Tensor

from lowrank_tutor import smollm
from lowrank_tutor.smollm import GROUPS, HEADS, LAYERS, WIDTH, SmolLM, rotate
from measure.real_model.cuts import flat, in_groups, rounded

FEED = ("ffn_gate", "ffn_up", "ffn_down")
ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_output")
INPUT_OF = {
    "attn_q": "attention", "attn_k": "attention", "attn_v": "attention", "attn_output": "heads",
    "ffn_gate": "feed", "ffn_up": "feed", "ffn_down": "hidden",
}  # fmt: skip
Moments = list[dict[str, Tensor]]  # for each layer, by name


@torch.no_grad()
def collect(model: SmolLM, ids: Tensor) -> Moments:
    """Return E[x x^T] of what passes through each layer, and mean keys, over texts (batch, n)."""
    found: Moments = [{} for _ in range(LAYERS)]

    def attend(i: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = torch.nn.functional.scaled_dot_product_attention(
            q, *(part.repeat_interleave(HEADS // GROUPS, 1) for part in (k, v)), is_causal=True
        )
        plain = rotate(k, -1)
        see(i, keys=flat(plain), rotated=flat(k), values=flat(v), heads=flat(out))
        see(i, both=torch.cat([flat(plain), flat(v)], dim=2))
        queries = q.transpose(0, 1).flatten(1, 2).unflatten(0, (GROUPS, -1)).flatten(1, 2)
        found[i] |= {"mean": plain.mean((0, 2)), "rotated mean": k.mean((0, 2))}
        found[i]["queries"] = queries.mT @ queries / queries.shape[1]  # (3, 64, 64)
        return out

    def see(i: int, **parts: Tensor) -> None:
        for name, x in parts.items():
            rows = x.flatten(0, 1)
            found[i][name] = rows.T @ rows / len(rows)

    # The forward pass once more, since the model's own shows keys and values alone.
    x = model.weights["token_embd.weight"][ids]
    for i in range(LAYERS):
        own = {part: model.weights[f"blk.{i}.{part}.weight"] for part in smollm.PARTS}
        y = smollm._norm(x, own["attn_norm"])
        see(i, attention=y)
        q, k, v = (in_groups(y @ own[f"attn_{letter}"].T) for letter in "qkv")
        x = x + flat(attend(i, rotate(q), rotate(k), v)) @ own["attn_output"].T
        y = smollm._norm(x, own["ffn_norm"])
        hidden = torch.nn.functional.silu(y @ own["ffn_gate"].T) * (y @ own["ffn_up"].T)
        see(i, feed=y, hidden=hidden)
        x = x + hidden @ own["ffn_down"].T
    return found


def mixed(*several: Moments) -> Moments:
    """Return the mean of the moments of sets of texts."""
    return [
        {name: sum(each[name] for each in layers) / len(layers) for name in layers[0]}
        for layers in zip(*several, strict=True)
    ]


def projection(moment: Tensor, rank: int, use: Tensor | None = None) -> Tensor:
    """Return the projection on ``rank`` directions that leaves least of ``use @ x`` behind.

    ``moment`` is E[x x^T]; without ``use`` it leaves least of x itself.
    """
    use = torch.eye(len(moment)) if use is None else use
    a, t = moment.double(), use.double()
    top = torch.linalg.eigh(t @ a @ t.T)[1][:, -rank:]
    return (torch.linalg.solve(t, top) @ top.T @ t).float()


def root(a: Tensor) -> Tensor:
    """Return r with r^T r = a, for a symmetric matrix without negative eigenvalues."""
    values, vectors = torch.linalg.eigh(a.double())
    return (vectors * values.clamp_min(values.max() * 1e-6).sqrt()).T.float()


def query_use(model: SmolLM, i: int, layer: dict[str, Tensor]) -> Tensor:
    """Return how queries use keys before the rotation, 192 numbers: scores change as this does.

    Each pair of entries is turned by any angle, so only the mean square of the queries counts.
    """
    energy = layer["queries"].diagonal(dim1=1, dim2=2).unflatten(1, (-1, 2)).mean(2)
    return torch.diag(energy.repeat_interleave(2, dim=1).flatten().sqrt())


def rotated_query_use(model: SmolLM, i: int, layer: dict[str, Tensor]) -> Tensor:
    """Return how queries use keys after the rotation."""
    return torch.block_diag(*map(root, layer["queries"]))


def output_use(model: SmolLM, i: int, layer: dict[str, Tensor]) -> Tensor:
    """Return how values, 192 numbers of a token, are used: the output of the heads changes so."""
    w = model.weights[f"blk.{i}.attn_output.weight"].unflatten(1, (GROUPS, -1, WIDTH))
    return torch.block_diag(
        *(root(torch.einsum("ohi,ohj->ij", group, group)) for group in w.unbind(1))
    )


def both_use(model: SmolLM, i: int, layer: dict[str, Tensor]) -> Tensor:
    """Return the use of keys and values, 384 numbers; both keep their plain total."""
    uses = {"keys": query_use(model, i, layer), "values": output_use(model, i, layer)}
    totals = {name: (use @ layer[name] @ use.T).trace() for name, use in uses.items()}
    scales = {name: (layer[name].trace() / total).sqrt() for name, total in totals.items()}
    return torch.block_diag(*(scales[name] * use for name, use in uses.items()))


def directions(a: Tensor, moment: Tensor | None = None) -> Tensor:
    """Return the left singular vectors of a weight, largest first, in float32.

    With the second ``moment`` of its inputs, those of a times a root of it: what of the outputs
    varies most.
    """
    b = a.double() if moment is None else a.double() @ root(moment).T.double()
    wide = b.shape[0] <= b.shape[1]
    values, vectors = torch.linalg.eigh(b @ b.T if wide else b.T @ b)
    vectors = vectors if wide else b @ vectors / values.clamp_min(values.max() * 1e-12).sqrt()
    return vectors.flip(1).float()


def cut_weights(
    model: SmolLM, names: tuple[str, ...], shares: tuple[float, ...], moments: Moments | None
) -> dict[float, dict[str, Tensor]]:
    """Return the named weights of all layers, at each share of their numbers, as two factors would.

    Cut plainly, or for inputs of these moments.
    """
    cut: dict[float, dict[str, Tensor]] = {share: {} for share in shares}
    for i in range(LAYERS):
        for name in names:
            key = f"blk.{i}.{name}.weight"
            a = model.weights[key]
            u = directions(a, moments[i][INPUT_OF[name]] if moments else None)
            for share in shares:
                top = u[:, : int(share * a.numel() / sum(a.shape))]
                cut[share][key] = top @ (top.T @ a)
    return cut


def round_weights(model: SmolLM, names: tuple[str, ...], bits: int) -> dict[str, Tensor]:
    """Return the named weights with each 32 neighbors rounded between their least and largest."""
    keys = [f"blk.{i}.{name}.weight" for i in range(LAYERS) for name in names]
    return {
        key: rounded(model.weights[key].unflatten(1, (-1, 32)), bits).flatten(1) for key in keys
    }


def without(model: SmolLM, layer: int, head: int | None = None) -> dict[str, Tensor]:
    """Return weights with which a layer adds nothing to the states, or a head of it."""
    output, down = (f"blk.{layer}.{name}.weight" for name in ("attn_output", "ffn_down"))
    if head is None:
        return {key: torch.zeros_like(model.weights[key]) for key in (output, down)}
    changed = model.weights[output].clone()
    changed[:, head * WIDTH : (head + 1) * WIDTH] = 0
    return {output: changed}
