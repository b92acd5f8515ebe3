r"""Write a table as a sum of non-negative parts: non-negative matrix factorization (NMF).

Chapter ``book/03-family.md``. Letters: ``x`` (n, d) holds one point per row; ``c`` (n, k) and ``f``
(k, d) are non-negative factors, $X \approx C F$, of rank ``k``. Float32 gives float32; everything
else float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    as_new_rows,
    check_fraction,
    check_integer,
    check_rank,
    names_of,
)
from lowrank_tutor._descent import Descent, Pair, descend
from lowrank_tutor.svd import randomized_svd

__all__ = ["NMFResult", "nmf"]

# Times that a sweep updates a factor: they share the products with the matrix, which cost most.
_UPDATES = 3
_TRIAL_SWEEPS = 40  # the sweeps of each start, at most, before starts are compared
_TRIAL_TOLERANCE = 100  # times looser than the tolerance
_GUESSES = 30  # sweeps for new rows before they are solved exactly: many times faster than without
# Rounds for each part, at most; a row needs one or two in all, at worst some three for each part.
_ROUNDS = 100
_ROUNDING = 2 * float(np.finfo(np.float64).eps)
_FEW_DIGITS = (
    1e-6  # a squared error above this share of the squared size may be a difference of sums
)


class NMFResult(NamedTuple):
    """Hold non-negative factors, ``x ~ c @ f``.

    Attributes
    ----------
    c : ndarray, shape (n, k)
        How much of each part a row contains.
    f : ndarray, shape (k, d)
        The parts: rows of length 1, the heaviest first (by the length of the column of ``c``). A
        part that is not needed, or that only rounding would fill, is a row of zeros in ``f`` and a
        column of zeros in ``c``.
    errors : ndarray, shape (sweeps + 1,)
        The Frobenius norm of ``x - c @ f`` before the first sweep and after each, in float64; it
        never rises.
    converged : bool
        Whether the last sweep gained less than the tolerance.
    columns : list or None
        The names of a table's columns, in the order in which `transform` expects them.
    """

    c: FloatArray
    f: FloatArray
    errors: FloatArray
    converged: bool
    columns: list[Any] | None = None

    @property
    def error(self) -> float:
        """The Frobenius norm of ``x - c @ f``."""
        return float(self.errors[-1])

    def transform(self, x: ArrayLike) -> FloatArray:
        """Return how much of each part rows ``x`` (n, d) contain: the best ``c`` (n, k).

        It is non-negative. With the parts fixed, the problem is convex, and each row is solved to
        rounding. Where parts differ by less than a ten-thousandth of their length, the error may
        exceed the least by a ten-millionth of the row's length.
        """
        rows, dtype = as_new_rows(x, "x", self.f.shape[1], self.columns)
        return _best_amounts(rows, self.f.astype(np.float64)).astype(dtype)


def _update_columns(c: FloatArray, xf: FloatArray, ff: FloatArray, times: int = 1) -> FloatArray:
    r"""Set the columns of ``c``, one by one, to their best values.

    They are non-negative; $XF^\top$ and $FF^\top$ are given. Each is a least-squares problem, $c_j
    \leftarrow \max\left(0,\; c_j + (X f_j - C F f_j) / \|f_j\|^2\right)$, and clipping its answer
    is exact, because the entries do not depend on each other.
    """
    rows = c.T.copy()  # so that a column is contiguous in memory
    wanted = np.ascontiguousarray(xf.T)
    for j in np.tile(np.flatnonzero(np.diag(ff) > 1e-200), times):  # skip parts that are zero
        rows[j] = np.maximum(rows[j] + (wanted[j] - ff[j] @ rows) / ff[j, j], 0)
    return rows.T


def _best_amounts(x: FloatArray, f: FloatArray) -> FloatArray:
    """Solve non-negative least squares for each row of ``x`` (n, d).

    The parts are the rows of ``f`` (k, d). Sweeps guess which parts a row contains. Then parts
    leave and join this set until no other would lower the error (the active set of Lawson and
    Hanson, 1974, doi:10.1137/1.9781611971217).
    """
    c = _update_columns(np.zeros((len(x), len(f))), x @ f.T, f @ f.T, _GUESSES)
    chosen = c > 0  # the parts of each row
    rows = np.arange(len(x))  # those that are not settled
    rounding = _ROUNDING * np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(f, axis=1))
    for _ in range(_ROUNDS * len(f)):
        best = np.zeros((len(rows), len(f)))
        sets, which = np.unique(chosen[rows], axis=0, return_inverse=True)
        for i, parts in enumerate(sets):
            here = np.flatnonzero(which.ravel() == i)
            amounts = np.linalg.lstsq(f[parts].T, x[rows[here]].T, rcond=None)[0]
            best[np.ix_(here, parts)] = amounts.T
        # Go toward the optimum of these parts, as far as no amount turns negative.
        now, stops = c[rows], chosen[rows] & (best <= 0)
        share = np.where(stops, now / np.where(now > best, now - best, 1), 1)
        step = share.min(axis=1, keepdims=True)
        leaves = stops & (share == step)
        c[rows] = now = np.where(leaves, 0, now + step * (best - now))
        chosen[rows] &= ~leaves
        # At the optimum, the part that would lower the error fastest joins. One that leaves at once
        # was rounding.
        gain = np.where(chosen[rows], 0, (x[rows] - now @ f) @ f.T - rounding[rows])
        arrived = ~stops.any(axis=1)
        joins = arrived & (gain.max(axis=1) > 0)
        chosen[rows[joins], gain[joins].argmax(axis=1)] = True
        rows = rows[joins | (~arrived & (step[:, 0] > 0))]
        if not rows.size:
            return c
    raise ValueError(f"f must hold parts that differ, got {len(rows)} rows of x without an answer")


def _rows_as_parts(x: FloatArray, k: int, rng: np.random.Generator) -> Pair:
    """Take ``k`` rows of ``x`` as parts, or columns if there are fewer of them.

    The result is exact if all are taken.
    """
    if x.shape[1] < x.shape[0]:
        f, c = _rows_as_parts(x.T, k, rng)
        return c.T, f.T
    chosen = rng.permutation(len(x))[:k]
    c = np.zeros((len(x), k))
    c[chosen, np.arange(k)] = 1
    return c, x[chosen]


def _starts(x: FloatArray, k: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Yield starts without end: two from the SVD, one from ``x`` itself, then random ones."""
    # The same in each call; exact where the matrix is small.
    u, s, vt = randomized_svd(x, k, oversample=20, rng=0)
    up, down = (
        np.linalg.norm(np.maximum(sign * u, 0), axis=0)
        * np.linalg.norm(np.maximum(sign * vt.T, 0), axis=0)
        for sign in (1, -1)
    )
    signs = np.where(up >= down, 1, -1)  # the heavier half of each singular pair
    c = np.maximum(signs * u, 0) * np.sqrt(s)
    f = np.maximum(signs * vt.T, 0).T * np.sqrt(s)[:, np.newaxis]
    yield c, f
    # Entries all of this size give a product with the mean of x.
    level = math.sqrt(float(x.mean()) / k)
    yield np.maximum(c, level), np.maximum(f, level)
    yield _rows_as_parts(x, k, rng)
    while True:
        first = level * np.abs(rng.standard_normal(c.shape))
        yield first, level * np.abs(rng.standard_normal(f.shape))


def _by_weight(c: FloatArray, f: FloatArray) -> Pair:
    """Move the length of each row of ``f`` into its column of ``c``, the heaviest part first.

    A part with no more weight than rounding gives it is not needed: it becomes zero.
    """
    length = np.linalg.norm(f, axis=1)
    weight = length * np.linalg.norm(c, axis=0)
    rounding = 10 * max(len(c), f.shape[1]) * np.finfo(np.float64).eps
    needed = weight > rounding * weight.max()
    c = np.where(needed, c * length, 0)
    f = np.where(needed, f.T / np.where(needed, length, 1), 0).T
    order = np.argsort(-weight, kind="stable")
    return c[:, order], f[order]


def nmf(
    x: ArrayLike,
    k: int,
    *,
    rng: np.random.Generator | int | None = None,
    starts: int = 5,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
) -> NMFResult:
    r"""Approximate a non-negative matrix ``x`` (n, d) by a sum of ``k`` non-negative parts.

    Minimizes $\|X - C F\|_F$ over $C \ge 0$, $F \ge 0$ (Lee and Seung, 1999, doi:10.1038/44565) by
    hierarchical alternating least squares (HALS; Cichocki and Phan, 2009,
    doi:10.1587/transfun.E92.A.708): one column of $C$ after the other, then one row of $F$ after
    the other, is set to its exact optimum while the rest is held fixed. A sweep does that three
    times for $C$ and three times for $F$ (Gillis and Glineur, 2012, doi:10.1162/NECO_a_00256).

    The problem is not convex, and HALS finds a local minimum. So there are several ``starts``: two
    from the SVD (Boutsidis and Gallopoulos, 2008, doi:10.1016/j.patcog.2007.09.010), one that takes
    rows or columns of $X$ as parts, and random ones, which ``rng``, a generator or a seed, draws.
    The first is followed to the end, and so is each later one that has a smaller error after a
    brief trial than all before it: with the same ``rng``, more starts never end worse than fewer. A
    run ends when a sweep lowers the error by no more than ``tolerance``, at least 0 and below 1,
    times the norm of $X$. Where $X = CF$ can hold exactly, the last digits converge slowly; if a
    run has not ended after ``max_sweeps``, ``converged`` is False. For a quick look pass
    ``starts=1, tolerance=1e-4``. ``k`` is between 1 and ``min(n, d)``. Noise below zero can be cut
    first, ``np.maximum(x, 0)``; scikit-learn's ``NMF`` has other losses (``beta_loss``).

    >>> nmf([[2, 2, 0], [0, 0, 3], [4, 4, 3]], k=2, starts=1).f.round(4)
    array([[0.7071, 0.7071, 0.    ],
           [0.    , 0.    , 1.    ]])
    """
    original = as_matrix(x, "x")
    if (original < 0).any():
        raise ValueError(f"x must be non-negative, got {original.min()}")
    k = check_rank(k, original.shape)
    rng = np.random.default_rng(rng)
    starts = check_integer(starts, "starts")
    tolerance = check_fraction(tolerance, "tolerance", 0)
    max_sweeps = check_integer(max_sweeps, "max_sweeps")

    matrix, dtype = original.astype(np.float64), original.dtype
    size = float(np.linalg.norm(matrix))

    def sweep(c: FloatArray, f: FloatArray) -> Pair:
        c = _update_columns(c, matrix @ f.T, f @ f.T, _UPDATES)
        return c, _update_columns(f.T, matrix.T @ c, c.T @ c, _UPDATES).T

    def error(c: FloatArray, f: FloatArray) -> float:
        # ||X||^2 - 2 <X, CF> + ||CF||^2 needs no product of the size of X, but loses the digits of
        # a small error.
        square = size**2 - 2 * np.vdot(matrix @ f.T, c) + np.vdot(c.T @ c, f @ f.T)
        return (
            math.sqrt(square)
            if square > _FEW_DIGITS * size**2
            else float(np.linalg.norm(matrix - c @ f))
        )

    def follow(begun: Descent, share: float, sweeps: int) -> Descent:
        return descend(begun, sweep, error, lambda _: share * size, sweeps)

    # A start goes on to the end if those before it allow, whatever comes later: so more starts
    # never end worse.
    followed: list[Descent] = []
    furthest = math.inf
    for start in islice(_starts(matrix, k, rng), starts):
        begun = Descent(start, [error(*start)])
        tried = follow(begun, _TRIAL_TOLERANCE * tolerance, min(_TRIAL_SWEEPS, max_sweeps))
        if not followed or tried.losses[-1] < furthest:
            followed.append(follow(tried, tolerance, max_sweeps))
        furthest = min(furthest, tried.losses[-1])
    best = min(followed, key=lambda descent: descent.losses[-1])
    c, f = _by_weight(*best.factors)
    return NMFResult(
        c.astype(dtype), f.astype(dtype), np.array(best.losses), best.settled, names_of(x)
    )
