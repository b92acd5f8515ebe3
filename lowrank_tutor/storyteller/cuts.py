"""Cuts of the storyteller's attention, in NumPy, and what the model says after them.

A cut is a function of queries, keys, and values, (..., n, 16) each, that stands in for exact
attention: give it as ``attend`` to :func:`~lowrank_tutor.storyteller.forward`, to a model of
:func:`~lowrank_tutor.storyteller.load`, or to :func:`~lowrank_tutor.storyteller.grade`. Cuts show
what would be lost, and save nothing themselves: they compute the whole table first. Two functions
cut the model's weights instead, :func:`cut_scores` and :func:`cut_latents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import FloatArray, as_matrix, check_integer, check_real
from lowrank_tutor.bilinear import factorize

# Of queries and keys: how much each word listens to each.
Table = Callable[[FloatArray, FloatArray], Any]
Weights = Mapping[str, NDArray[np.float64]]
WIDTH = 16  # of a head
LAYERS = ("layers.0", "layers.1")
PARTS = ("norm_1", "q", "k", "v", "out", "norm_2", "up", "down")
NAMES = [
    "embed",
    "one_back",
    "two_back",
    *(f"{i}.{part}" for i in LAYERS for part in PARTS),
    "norm",
]


class Cut(NamedTuple):
    """Attention with another ``table``, a function of q and k, and maybe rounded ``values``."""

    table: Table
    values: Callable[[FloatArray], FloatArray] = lambda v: v

    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        """Return what the heads read, (..., n, 16), for arrays or tensors.

        The result is an array.
        """
        parts = (x.detach() if hasattr(x, "detach") else x for x in (q, k, v))
        q, k, v = (np.asarray(x, np.float64) for x in parts)
        return self.table(q, k) @ self.values(v)


def _directions(value: ArrayLike) -> FloatArray:
    return as_matrix(value, "directions", axes=("directions", WIDTH))


def _logits(q: FloatArray, k: FloatArray) -> FloatArray:
    """Return the scores of words and those before them; later words get -inf."""
    n, d = q.shape[-2:]
    return np.where(np.tri(n, dtype=bool), q @ k.swapaxes(-1, -2) / math.sqrt(d), -np.inf)


def _softmax(x: FloatArray) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _exact_table(q: FloatArray, k: FloatArray) -> Any:
    return _softmax(_logits(q, k))


exact = Cut(_exact_table)


def sheets(count: int) -> Cut:
    """Keep the first ``count`` singular sheets of each table, and hide what would look ahead."""
    return faded_sheets(check_integer(count, "count"))


def faded_sheets(amount: float) -> Cut:
    """Keep ``amount`` sheets of each table: 5.5 are five, and half of the sixth."""
    amount = check_real(amount, "amount", "at least 0", 0)

    def table(q: FloatArray, k: FloatArray) -> Any:
        u, s, vt = np.linalg.svd(_exact_table(q, k))
        kept = s * np.clip(amount - np.arange(s.shape[-1]), 0, 1)
        return np.tril((u * kept[..., None, :]) @ vt)

    return Cut(table)


def mixed(one: Cut, other: Cut, share: float) -> Cut:
    """Take a ``share`` of the other cut's table and values, and the rest of the one's."""
    for name, cut in (("one", one), ("other", other)):
        if not isinstance(cut, Cut):
            raise TypeError(f"{name} must be a Cut, got {type(cut).__name__}")
    share = check_real(share, "share", "from 0 to 1", 0, math.nextafter(1, 2))
    return Cut(
        lambda q, k: (1 - share) * one.table(q, k) + share * other.table(q, k),
        lambda v: (1 - share) * one.values(v) + share * other.values(v),
    )


def window(count: int) -> Cut:
    """Let each word see the newest ``count`` words alone, itself among them."""
    check_integer(count, "count")

    def table(q: FloatArray, k: FloatArray) -> Any:
        return _softmax(np.where(np.tri(q.shape[-2], k=-count, dtype=bool), -np.inf, _logits(q, k)))

    return Cut(table)


def means(count: int) -> Cut:
    """Let each word see itself and what stands before it, as means of ``count`` groups.

    Each group holds neighbors. It has the mean key and the mean value of its words, and votes as
    often as it has words: chapter 7's averages, made causal. Groups are as equal as they can be;
    where there are no more words than groups, nothing is averaged.
    """
    check_integer(count, "count")

    def table(q: FloatArray, k: FloatArray) -> Any:
        logits = _logits(q, k)
        weights = np.zeros_like(logits)
        for i in range(q.shape[-2]):
            groups = min(count, i + 1)
            borders = np.arange(groups + 1) * (i + 1) // groups
            sizes = np.diff(borders)
            scores = np.add.reduceat(logits[..., i, : i + 1], borders[:-1], axis=-1) / sizes
            shares = _softmax(scores + np.log(sizes)) / sizes
            weights[..., i, : i + 1] = np.repeat(shares, sizes, axis=-1)
        return weights

    return Cut(table)


def features(directions: ArrayLike) -> Cut:
    r"""Replace $e^{q^\top k/4}$ by Performer's positive features.

    They lie along ``directions``, shape (features, 16).
    """
    w = _directions(directions)

    def table(q: FloatArray, k: FloatArray) -> Any:
        q, k = (x / q.shape[-1] ** 0.25 for x in (q, k))
        rows = (np.exp(x @ w.T - (x**2).sum(axis=-1, keepdims=True) / 2) for x in (q, k))
        powers = np.tril(next(rows) @ next(rows).swapaxes(-1, -2))
        return powers / powers.sum(axis=-1, keepdims=True)

    return Cut(table)


def projected(directions: ArrayLike) -> Cut:
    """Compare keys and queries by their images under a random map.

    Its rows are ``directions``, (numbers, 16).
    """
    w = _directions(directions)
    return Cut(lambda q, k: _softmax(_logits(q, k @ w.T @ w / len(w))))


def signs(directions: ArrayLike) -> Cut:
    """Keep each key's norm, and on which side of each of the ``directions`` it lies.

    This takes a bit each (chapter 4).
    """
    w = _directions(directions)

    def table(q: FloatArray, k: FloatArray) -> Any:
        sides = np.where(k @ w.T >= 0, 1.0, -1.0) * np.linalg.norm(k, axis=-1, keepdims=True)
        return _softmax(_logits(q, math.sqrt(math.pi / 2) / len(w) * sides @ w))

    return Cut(table)


def top(count: int) -> Cut:
    """Let each word hear only the ``count`` words to which it listens most.

    Among equals the earlier counts.
    """
    check_integer(count, "count")
    return Cut(lambda q, k: _softmax(_strongest(_logits(q, k), count)))


def index(count: int, directions: ArrayLike) -> Cut:
    """Let each word hear ``count`` words alone, chosen by small keys.

    The small keys are images under `projected`'s random map.
    """
    check_integer(count, "count")
    w = _directions(directions)

    def table(q: FloatArray, k: FloatArray) -> Any:
        chosen = _strongest(_logits(q, k @ w.T @ w), count) > -np.inf
        return _softmax(np.where(chosen, _logits(q, k), -np.inf))

    return Cut(table)


def unusual(count: int) -> Cut:
    """Keep ``count`` words: the newest half and, of the others, the most unusual keys.

    A key counts by its distance from the mean of the head's keys up to it. No question is needed,
    and what is dropped never comes back.
    """
    check_integer(count, "count")

    def table(q: FloatArray, k: FloatArray) -> Any:
        n, newest = k.shape[-2], (count + 1) // 2
        means = k.cumsum(axis=-2) / np.arange(1, n + 1)[:, None]
        far = np.linalg.norm(k - means, axis=-1)[..., None, :]
        worth = np.where(np.tri(n, k=-newest, dtype=bool), far, np.inf)
        kept = _strongest(np.where(np.tri(n, dtype=bool), worth, -np.inf), count) > -np.inf
        return _softmax(np.where(kept, _logits(q, k), -np.inf))

    return Cut(table)


def _strongest(logits: FloatArray, count: int) -> Any:
    """Return the ``count`` largest logits of each row, -inf in place of the others.

    Of equals the earlier is kept.
    """
    order = np.argsort(np.argsort(-logits, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.where(order < count, logits, -np.inf)


def bits(count: int) -> Cut:
    """Round each head's key and value of a word to ``2**count`` levels.

    The levels go from their least entry to their largest.
    """
    levels = 2 ** check_integer(count, "count", 1, 16) - 1

    def rounded(x: FloatArray) -> Any:
        low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
        step = np.maximum(high - low, 1e-12) / levels
        return low + step * np.floor((x - low) / step + 0.5)

    return Cut(lambda q, k: _exact_table(q, rounded(k)), rounded)


def cut_scores(weights: Weights, rank: int) -> dict[str, NDArray[np.float64]]:
    """Return weights whose heads score words by the best matrix of a ``rank``, 1 to 16.

    A head's score of two words is $x^T W y$, with $W = W_Q W_K^T$ of rank 16 (chapter 5); here W is
    cut plainly.
    """
    check_integer(rank, "rank", 1, WIDTH)
    changed = dict(check_weights(weights))
    for layer in LAYERS:
        both = (weights[f"{layer}.{part}.weight"] for part in "qk")
        queries, keys = (np.split(each, len(each) // WIDTH) for each in both)
        pairs = [factorize(q.T @ k, rank) for q, k in zip(queries, keys, strict=True)]
        for part, factors in zip("qk", zip(*pairs, strict=True), strict=True):
            padded = [np.pad(factor, ((0, WIDTH - rank), (0, 0))) for factor in factors]
            changed[f"{layer}.{part}.weight"] = np.concatenate(padded)
    return changed


def cut_latents(
    weights: Weights, rank: int, moments: Mapping[str, ArrayLike] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return weights whose keys and values follow from ``rank`` numbers of a word.

    Uncut, they are 128 numbers of a word in each layer. The matrix that makes both, (128, 64), is
    cut plainly, or so that keys and values change least for inputs with the second ``moments``
    $E[xx^T]$, (64, 64) for each of "layers.0" and "layers.1" (chapter 8).
    """
    check_integer(rank, "rank", 1, 64)
    changed = dict(check_weights(weights))
    moments = {} if moments is None else moments
    if not isinstance(moments, Mapping) or {*moments} not in (set(), {*LAYERS}):
        raise TypeError('moments must be a dict of "layers.0" and "layers.1", got another')
    for layer in LAYERS:
        both = np.concatenate([weights[f"{layer}.{part}.weight"] for part in "kv"])
        u, v = factorize(both, rank, h_moment=moments.get(layer))
        changed[f"{layer}.k.weight"], changed[f"{layer}.v.weight"] = np.split(u.T @ v, 2)
    return changed


def check_weights(weights: object) -> Weights:
    """Return weights by name, or refuse anything else."""
    if not isinstance(weights, Mapping):
        raise TypeError(
            "weights must be a dict such as trained_weights() returns, "
            f"got {type(weights).__name__}"
        )
    if missing := [name for name in NAMES if f"{name}.weight" not in weights]:
        raise ValueError(
            f"weights must have the names of trained_weights(), got none for {missing[0]}.weight"
        )
    return weights
