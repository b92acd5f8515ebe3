"""The storyteller's forward pass in NumPy, for pages and for people without PyTorch.

Two layers of four heads of width 16, vectors of 64 numbers, no positions and no biases. Each word's
vector carries those of the two words before it, so that the score of two words is exactly the
bilinear form of chapter 5.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import FloatArray, _show
from lowrank_tutor._data import read_data
from lowrank_tutor.storyteller.cuts import PARTS, Cut, check_weights, exact
from lowrank_tutor.storyteller.language import WORDS, encode

HEADS, LAYERS = 4, 2
EPS = 1e-6  # of RMSNorm
Weights = Mapping[str, NDArray[np.float64]]


def trained_weights() -> dict[str, NDArray[np.float64]]:
    """Return the trained weights by PyTorch's names.

    They are whole numbers of 8 bits, times a scale for each row. The dict is new, but all calls
    share its arrays, which are read-only: change copies.
    """
    return dict(_stored_weights())


@functools.cache
def _stored_weights() -> dict[str, NDArray[np.float64]]:
    stored = read_data("storyteller_weights")
    numbers = np.frombuffer(base64.b64decode(stored["numbers"]), np.int8)
    scales = np.frombuffer(base64.b64decode(stored["scales"]), "<f4").astype(np.float64)
    found = {}
    at = row = 0
    for name, shape in stored["shapes"].items():
        rows, columns = shape if len(shape) == 2 else (1, *shape)
        whole = numbers[at : at + rows * columns].reshape(rows, columns)
        block = whole * scales[row : row + rows, None]
        block.setflags(write=False)
        found[name] = block.reshape(shape)
        at, row = at + rows * columns, row + rows
    return found


def forward(ids: ArrayLike, *, attend: Any = None, weights: Weights | None = None) -> FloatArray:
    """Return the logits of each next word, shape (batch, n, words).

    The numbers of words have shape (batch, n). ``attend`` takes queries, keys, and values, (batch,
    4, n, 16) each, and returns what the heads read, of the same shape; a sequence has one for each
    layer. ``weights`` are those of :func:`trained_weights`, or changed ones.
    """
    w = trained_weights() if weights is None else check_weights(weights)
    *_, (_, x) = _layers(check_ids(ids), one_a_layer(attend, exact), w)
    logits: FloatArray = _norm(x, w["norm.weight"]) @ w["embed.weight"].T
    return logits


def tables(ids: ArrayLike, *, attend: Any = None, weights: Weights | None = None) -> FloatArray:
    """Return what every word hears of every other, shape (batch, 2, 4, n, n).

    There is a row for each word that listens. ``attend`` is a
    :class:`~lowrank_tutor.storyteller.Cut`, or one for each layer; by default the tables are exact.
    """
    w = trained_weights() if weights is None else check_weights(weights)
    cuts = one_a_layer(attend, exact)
    if strange := [cut for cut in cuts if not isinstance(cut, Cut)]:
        raise TypeError(f"attend must be a Cut, which has a table, got {type(strange[0]).__name__}")
    layers = _layers(check_ids(ids), cuts, w)
    return np.stack(
        [cut.table(q, k) for cut, ((q, k, _), _) in zip(cuts, layers, strict=True)], axis=1
    )


def next_words(
    words: str | Sequence[str], *, attend: Any = None, weights: Weights | None = None
) -> dict[str, float]:
    """Return the probability of each word to be the next one.

    >>> words = next_words("<s> Ada wears red . Ben wears blue . who wears blue ?")
    >>> max(words, key=words.get)
    'Ben'
    """
    logits = forward([encode(words)], attend=attend, weights=weights)[0, -1]
    powers = np.exp(logits - logits.max())
    return dict(zip(WORDS, (powers / powers.sum()).tolist(), strict=True))


def check_ids(ids: ArrayLike) -> NDArray[np.integer]:
    """Return the numbers of words, shape (batch, n)."""
    found = np.asarray(ids)
    whole = found.ndim == 2 and found.size and found.dtype.kind in "iu"
    if not whole or found.min() < 0 or found.max() >= len(WORDS):
        raise ValueError(
            f"ids must be whole numbers from 0 to {len(WORDS) - 1}, of shape (batch, n), "
            f"got {_show(found.tolist())}"
        )
    return found


def one_a_layer(given: Any, usual: Any, name: str = "attend", layers: int = LAYERS) -> list[Any]:
    """Return a function for each layer, given one for all, a list of them, or None: the usual."""
    several = isinstance(given, list | tuple) and not callable(given)
    calls = list(given) if several else [given or usual] * layers
    if len(calls) != layers or not all(map(callable, calls)):
        raise TypeError(
            f"{name} must be a function, or one for each of {layers} layers, got {given!r}"
        )
    return calls


def heard(cut: Any, q: Any, k: Any, v: Any) -> Any:
    """Return what the heads read, (batch, 4, n, 16)."""
    read = cut(q, k, v)
    if np.shape(read) != (shape := tuple(v.shape)):
        raise ValueError(f"attend must return an array of shape {shape}, got {np.shape(read)}")
    return read


def _layers(
    ids: NDArray[Any], cuts: list[Any], w: Weights
) -> Iterator[tuple[list[FloatArray], Any]]:
    """Yield each layer's queries, keys, and values, and what comes out of it."""
    embedded = w["embed.weight"][ids]
    x = embedded.copy()
    x[:, 1:] += embedded[:, :-1] @ w["one_back.weight"].T
    x[:, 2:] += embedded[:, :-2] @ w["two_back.weight"].T
    for i, cut in enumerate(cuts):
        part = {name: w[f"layers.{i}.{name}.weight"] for name in PARTS}
        y = _norm(x, part["norm_1"])
        heads = [(y @ part[name].T).reshape(*ids.shape, HEADS, -1).swapaxes(1, 2) for name in "qkv"]
        x = x + np.asarray(heard(cut, *heads)).swapaxes(1, 2).reshape(x.shape) @ part["out"].T
        x = x + np.maximum(_norm(x, part["norm_2"]) @ part["up"].T, 0) @ part["down"].T
        yield heads, x


def _norm(x: FloatArray, gain: FloatArray) -> Any:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS) * gain
