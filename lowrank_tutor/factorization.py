r"""Fill the gaps of a table by factors that fit its known entries: alternating least squares.

Chapter ``book/03-family.md``. Letters: ``ratings`` (n, m) is the table, ``c`` (n, k) and ``f`` (k, m) are its factors,
$R \approx C F$, of rank ``k``. Float32 gives float32; everything else float64.
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

Table = Any  # an array, or one of SciPy's sparse matrices, which multiply alike
_BOOLS = "an array of bools (True marks a known rating)"
_SMALL = 500  # up to this size the full SVD is fast


class RatingFactors(NamedTuple):
    """Factors of a table of ratings, ``ratings ~ c @ f``.

    Attributes
    ----------
    c : ndarray, shape (n, k)
        One row for each row of the table; NaN where nothing of it was observed.
    f : ndarray, shape (k, m)
        One column for each of its columns.
    losses : ndarray, shape (sweeps + 1,)
        The objective at the start and after each sweep, in float64; it never rises.
    converged : bool
        Whether the last sweep gained less than the tolerance.
    """

    c: FloatArray
    f: FloatArray
    losses: FloatArray
    converged: bool

    @property
    def estimates(self) -> FloatArray:
        """Estimates of all ratings, ``c @ f`` (n, m); NaN where nothing is known of the row or column."""
        return np.asarray(self.c @ self.f)


def _as_mask(observed: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return an array of bools, at least one of them True."""
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
    as_vector(seen, "ratings")  # refuses numbers that are too large or too small
    return np.where(mask, dense, 0).astype(dense.dtype), mask


def _known_of_rows(r: Table, mask: Table) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
    """Yield the places and values of the known ratings, row by row."""
    if is_sparse(r):
        r = r.tocsr()
        for start, end in itertools.pairwise(r.indptr):
            yield r.indices[start:end], r.data[start:end]
    else:
        for row, seen in zip(r, mask, strict=True):
            known = np.flatnonzero(seen > 0)
            yield known, row[known]


def _half_step(f: FloatArray, r: Table, mask: Table, penalty: float) -> FloatArray:
    r"""Return the best ``c`` (n, k) for a given ``f`` (k, m): one ridge regression for each row of ``r`` (n, m).

    $(\sum_j f_j f_j^\top + \lambda I)\, c_i = \sum_j r_{ij} f_j$ over the observed $j$ of row $i$; gaps are zeros in
    ``r`` and ``mask``.
    """
    k, columns = len(f), f.T
    if penalty >= 1e-8 * np.square(f).sum() and penalty > 0:  # well conditioned: all rows at once
        squares = (columns[:, :, np.newaxis] * columns[:, np.newaxis, :]).reshape(-1, k * k)  # (m, k k)
        grams = (mask @ squares).reshape(-1, k, k) + penalty * np.eye(k)  # (n, k, k)
        return np.linalg.solve(grams, (r @ columns)[:, :, np.newaxis])[:, :, 0]
    # Row by row, without squaring f. The penalty adds k equations; of many solutions lstsq takes the shortest.
    ridge, nothing = math.sqrt(penalty) * np.eye(k), np.zeros(k)
    rows = [
        np.linalg.lstsq(np.vstack([columns[known], ridge]), np.concatenate([seen, nothing]), rcond=None)[0]
        for known, seen in _known_of_rows(r, mask)
    ]
    return np.stack(rows)


def _misses(r: Table, mask: Table, c: FloatArray, f: FloatArray) -> float:
    """Return the sum of the squared errors over the known ratings."""
    if is_sparse(r):
        entries = r.tocoo()
        return float(np.square(entries.data - np.einsum("ij,ji->i", c[entries.row], f[:, entries.col])).sum())
    return float(np.square(mask * (r - c @ f)).sum())


def _sweep(f: FloatArray, r: Table, mask: Table, penalty: float) -> Pair:
    c = _half_step(f, r, mask, penalty)
    return c, _half_step(c.T, r.T, mask.T, penalty).T


def _start(r: Table, mask: Table, k: int, penalty: float, rng: np.random.Generator) -> Pair:
    """Start from the SVD of the table with zeros in its gaps, then sweep while a large penalty falls to the real one.

    Zeros make the table too small as a whole, which dividing by the share observed corrects. The noise, a hundredth,
    frees directions that the SVD leaves at zero. Large penalties keep the estimates in the gaps from running away.
    """
    kept = min(k, *r.shape)
    if is_sparse(r) or min(r.shape) > _SMALL:  # k rough directions are enough: the sweeps improve them
        s, vt = randomized_svd(r, kept, rng=0)[1:]
    else:
        _, s, vt = np.linalg.svd(r, full_matrices=False)
    s = s / mask.mean()
    f: FloatArray = np.zeros((k, r.shape[1]))
    f[:kept] = np.sqrt(s[:kept, np.newaxis]) * vt[:kept]
    f += 0.01 * math.sqrt(float(np.square(f).mean())) * rng.standard_normal(f.T.shape).T
    for large in [*(s[0] * np.geomspace(1e-1, 1e-3, 10)), 0.0]:
        c, f = _sweep(f, r, mask, max(large, penalty))
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
    r"""Factor a table from the entries that are known, and so estimate the others.

    Minimizes, over the observed entries $\Omega$ only,

    $$J = \sum_{(i,j) \in \Omega} (r_{ij} - c_i^\top f_j)^2 + \lambda \Big(\sum_i \|c_i\|^2 + \sum_j \|f_j\|^2\Big)$$

    by alternating least squares (Koren, Bell and Volinsky, 2009, doi:10.1109/MC.2009.263): with ``f`` fixed each row of
    ``c`` is a ridge regression of its own, and the other way round. There are no means and no biases; each row counts
    once in the penalty, however many ratings it has. (Zhou et al., 2008, doi:10.1007/978-3-540-68880-8_32, weight it by
    their number.)

    Parameters
    ----------
    ratings : array_like or sparse matrix, shape (n, m)
        Finite where observed; all other entries are never read, and may be NaN. In a sparse matrix of SciPy, such as
        ``coo_array((ratings, (rows, columns)))``, the stored entries are the known ones, zeros too, and only they cost
        work and memory.
    observed : array_like of bool, shape (n, m), or None
        True marks a known rating. At least one. With None all but NaN are known, and those that a sparse matrix stores.
    k : int
        The rank kept, between 1 and ``min(n, m)``.
    regularization : float
        $\lambda$, at least 0, in the units of the ratings (ten times larger ratings need a ten times larger one). At 0
        a row with fewer ratings than ``k`` has many solutions; the shortest is taken.
    rng : numpy.random.Generator or int, optional
        Draws the small noise of the start. With ``None`` each call draws another.
    tolerance : float
        Stop when a sweep lowers $J$ by no more than this share of it; at least 0 and below 1.
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
    r, mask = (a[rows][:, columns].astype(np.float64) for a in (table, known))
    squares = np.square(r.data if is_sparse(r) else r)
    rounding = 1e-28 * float(squares.sum())

    def sweep(_: FloatArray, f: FloatArray) -> Pair:
        return _sweep(f, r, mask, penalty)

    def loss(c: FloatArray, f: FloatArray) -> float:
        return float(_misses(r, mask, c, f) + penalty * (np.square(c).sum() + np.square(f).sum()))

    start = _start(r, mask, k, penalty, rng)
    begun = Descent(start, [loss(*start)])
    found = descend(begun, sweep, loss, lambda before: tolerance * before + rounding, max_sweeps)
    c, f = (np.full(shape, np.nan, table.dtype) for shape in ((table.shape[0], k), (k, table.shape[1])))
    c[rows], f[:, columns] = found.factors
    return RatingFactors(c, f, np.array(found.losses), found.settled)
