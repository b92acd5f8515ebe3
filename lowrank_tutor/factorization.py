r"""Fill the gaps in a table with factors that fit its known entries: alternating least squares.

Chapter ``book/03-family.md``. Letters: ``ratings`` (n, m) is the table, ``c`` (n, k) and ``f`` (k, m) are its factors,
$X \approx C F$, of rank ``k``. Float32 gives float32; everything else float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    Factor,
    FloatArray,
    as_array,
    as_factor,
    as_float_array,
    as_vector,
    check_rank,
    check_real,
    check_rng,
    check_size,
    is_sparse,
)
from lowrank_tutor._descent import Descent, Pair, descend
from lowrank_tutor.svd import randomized_svd

__all__ = ["RatingFactors", "factorize_ratings"]
__dir__ = __all__.copy  # completion offers no more than that

Table = Any  # an array, or one of SciPy's sparse matrices: @ works the same way for both
_BOOLS = "an array of bools (True marks a known rating)"
_SMALL = 500  # up to this size the full SVD is fast


class RatingFactors(NamedTuple):
    """Hold the factors of a table of ratings, ``ratings ~ c @ f``.

    Attributes
    ----------
    c : ndarray, shape (n, k)
        One row for each row of the table; NaN where no rating in the row is known.
    f : ndarray, shape (k, m)
        One column for each column of the table; NaN where no rating in the column is known.
    losses : ndarray, shape (sweeps + 1,)
        The loss at the start and after each sweep, in float64; it never rises.
    converged : bool
        Whether the last sweep gained less than the tolerance.
    """

    c: FloatArray
    f: FloatArray
    losses: FloatArray
    converged: bool

    @property
    def estimates(self) -> FloatArray:
        """Estimate all ratings by ``c @ f`` (n, m); NaN where no rating in the row or column is known."""
        return np.asarray(self.c @ self.f)


def _as_mask(observed: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Validate an array of bools, at least one of them True."""
    mask = as_array(observed, "observed", "a rectangular array of bools")
    if mask.dtype != np.bool_:
        raise TypeError(f"observed must be {_BOOLS}, got dtype {mask.dtype}")
    if mask.shape != shape:
        raise ValueError(f"observed must be of the shape of ratings {shape}, got {mask.shape}")
    if not mask.any():
        raise ValueError("observed must mark at least one rating as known, got none")
    return mask


def _as_ratings(ratings: ArrayLike | Factor, observed: ArrayLike | None) -> tuple[Table, Table]:
    """Return the ratings with zeros in the gaps, and a mask of the known ones: bools, or a sparse matrix of ones."""
    if is_sparse(ratings):
        if observed is not None:
            rule = "None for sparse ratings, whose stored entries are the known ones"
            raise ValueError(f"observed must be {rule}, got {type(observed).__name__}")
        table: Table = as_factor(ratings, "ratings")
        if table.nnz == 0:
            raise ValueError("ratings must store at least one rating, got none")
        known = table.copy()
        known.sum_duplicates()
        # SciPy adds up entries stored twice, in the coordinate format as soon as it is converted.
        stored = getattr(ratings, "nnz", 0) if getattr(ratings, "format", "") == "coo" else table.nnz
        if known.nnz < stored:
            raise ValueError(f"ratings must store each entry once, got {stored - known.nnz} of {stored} a second time")
        known.data[:] = 1
        return table, known
    dense = as_float_array(ratings, "ratings")
    if dense.ndim != 2:
        raise ValueError(f"ratings must be a matrix (two axes), got shape {dense.shape}")
    mask = _as_mask(~np.isnan(dense) if observed is None else observed, dense.shape)
    seen = dense[mask]
    if not np.isfinite(seen).all():
        raise ValueError(f"ratings must be finite where observed, got {seen[~np.isfinite(seen)][0]}")
    as_vector(seen, "ratings")  # raises for numbers that are too large or too small
    return np.where(mask, dense, 0).astype(dense.dtype), mask


def _known_of_rows(x: Table, mask: Table) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
    """Yield the places and values of the known ratings, row by row."""
    if is_sparse(x):
        x = x.tocsr()
        for start, end in itertools.pairwise(x.indptr):
            yield x.indices[start:end], x.data[start:end]
    else:
        for row, seen in zip(x, mask, strict=True):
            known = np.flatnonzero(seen > 0)
            yield known, row[known]


def _half_step(f: FloatArray, x: Table, mask: Table, penalty: float) -> FloatArray:
    r"""Return the best ``c`` (n, k) for a given ``f`` (k, m): one ridge regression for each row of ``x`` (n, m).

    $(\sum_j f_j f_j^\top + \mu I)\, c_i = \sum_j x_{ij} f_j$ over the observed $j$ of row $i$; gaps are zeros in
    ``x`` and ``mask``.
    """
    k, columns = len(f), f.T
    if penalty >= 1e-8 * np.square(f).sum() and penalty > 0:  # well conditioned: all rows at once
        squares = (columns[:, :, np.newaxis] * columns[:, np.newaxis, :]).reshape(-1, k * k)  # (m, k k)
        grams = (mask @ squares).reshape(-1, k, k) + penalty * np.eye(k)  # (n, k, k)
        return np.linalg.solve(grams, (x @ columns)[:, :, np.newaxis])[:, :, 0]
    # Row by row, without squaring f. The penalty adds k equations; among many solutions lstsq takes the shortest.
    ridge, nothing = math.sqrt(penalty) * np.eye(k), np.zeros(k)
    rows = [
        np.linalg.lstsq(np.vstack([columns[known], ridge]), np.concatenate([seen, nothing]), rcond=None)[0]
        for known, seen in _known_of_rows(x, mask)
    ]
    return np.stack(rows)


def _misses(x: Table, mask: Table, c: FloatArray, f: FloatArray) -> float:
    """Return the sum of the squared errors over the known ratings."""
    if is_sparse(x):
        entries = x.tocoo()
        return float(np.square(entries.data - np.einsum("ij,ji->i", c[entries.row], f[:, entries.col])).sum())
    return float(np.square(mask * (x - c @ f)).sum())


def _sweep(f: FloatArray, x: Table, mask: Table, penalty: float) -> Pair:
    c = _half_step(f, x, mask, penalty)
    return c, _half_step(c.T, x.T, mask.T, penalty).T


def _start(x: Table, mask: Table, k: int, penalty: float, rng: np.random.Generator) -> Pair:
    """Start from the SVD of the table with zeros in its gaps, then sweep while a large penalty falls to the real one.

    The zeros shrink the singular values; dividing them by the observed share corrects for that. The added noise, a
    hundredth of the factor, frees directions that the SVD leaves at zero. Large penalties at first keep the estimates
    in the gaps from running away.
    """
    kept = min(k, *x.shape)
    if is_sparse(x) or min(x.shape) > _SMALL:  # k rough directions are enough: the sweeps improve them
        s, vt = randomized_svd(x, kept, rng=0)[1:]
    else:
        _, s, vt = np.linalg.svd(x, full_matrices=False)
    s = s / mask.mean()
    f: FloatArray = np.zeros((k, x.shape[1]))
    f[:kept] = np.sqrt(s[:kept, np.newaxis]) * vt[:kept]
    f += 0.01 * math.sqrt(float(np.square(f).mean())) * rng.standard_normal(f.T.shape).T
    for large in [*(s[0] * np.geomspace(1e-1, 1e-3, 10)), 0.0]:
        c, f = _sweep(f, x, mask, max(large, penalty))
        if large <= penalty:
            break
    return c, f


def factorize_ratings(
    ratings: ArrayLike | Factor,
    observed: ArrayLike | None,
    k: int,
    *,
    regularization: float = 1.0,
    rng: np.random.Generator | int | None = None,
    tolerance: float = 1e-3,
    max_sweeps: int = 500,
) -> RatingFactors:
    r"""Factor a table by its known entries, and so estimate the others.

    Minimizes, over the observed entries $\Omega$ only,

    $$\sum_{(i,j) \in \Omega} (x_{ij} - c_i^\top f_j)^2 + \mu \Big(\sum_i \|c_i\|^2 + \sum_j \|f_j\|^2\Big)$$

    by alternating least squares (Koren, Bell and Volinsky, 2009, doi:10.1109/MC.2009.263): with ``f`` fixed, each row
    of ``c`` is a ridge regression of its own, and vice versa. There are no means and no biases; each row counts once in
    the penalty, however many ratings it has. (Zhou et al., 2008, doi:10.1007/978-3-540-68880-8_32, weight it by
    their number.)

    Parameters
    ----------
    ratings : array_like or sparse matrix, shape (n, m)
        Finite where observed; the other entries are never read, and may be NaN. In a sparse matrix of SciPy, such as
        ``coo_array((ratings, (rows, columns)))``, the stored entries are the known ones, zeros too, and only they cost
        work and memory.
    observed : array_like of bool, shape (n, m), or None
        True marks a known rating, and there is at least one. With None, all entries but NaN are known; in a sparse
        matrix, all stored ones.
    k : int
        The rank kept, between 1 and ``min(n, m)``.
    regularization : float
        $\mu$, at least 0, in the units of the ratings (ten times larger ratings need a ten times larger one). At 0
        a row with fewer ratings than ``k`` has many solutions, and the shortest is taken.
    rng : numpy.random.Generator or int, optional
        Draws the small noise at the start. With ``None`` each call draws anew.
    tolerance : float
        Stop when a sweep lowers the loss by no more than this share of it; at least 0 and below 1.
    max_sweeps : int
        At least 1, not counting those of the start (11 at most).

    Examples
    --------
    >>> ratings = [[1, 2, 3], [2, 4, np.nan], [3, np.nan, 9]]
    >>> result = factorize_ratings(ratings, None, k=1, regularization=0)
    >>> result.estimates.round(6)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    table, known = _as_ratings(ratings, observed)
    k = check_rank(k, table.shape)
    penalty = check_real(regularization, "regularization", "finite and at least 0", 0)
    rng = check_rng(rng)
    tolerance = check_real(tolerance, "tolerance", "at least 0 and below 1", 0, 1)
    max_sweeps = check_size(max_sweeps, "max_sweeps")

    rows, columns = (np.asarray(known.sum(axis=axis)).ravel() > 0 for axis in (1, 0))  # others have no known rating
    x, mask = (a[rows][:, columns].astype(np.float64) for a in (table, known))
    squares = np.square(x.data if is_sparse(x) else x)
    rounding = 1e-28 * float(squares.sum())

    def sweep(_: FloatArray, f: FloatArray) -> Pair:
        return _sweep(f, x, mask, penalty)

    def loss(c: FloatArray, f: FloatArray) -> float:
        return float(_misses(x, mask, c, f) + penalty * (np.square(c).sum() + np.square(f).sum()))

    start = _start(x, mask, k, penalty, rng)
    begun = Descent(start, [loss(*start)])
    found = descend(begun, sweep, loss, lambda before: tolerance * before + rounding, max_sweeps)
    c, f = (np.full(shape, np.nan, table.dtype) for shape in ((table.shape[0], k), (k, table.shape[1])))
    c[rows], f[:, columns] = found.factors
    return RatingFactors(c, f, np.array(found.losses), found.settled)
