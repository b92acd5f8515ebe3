"""Estimate what stands in the gaps of a table, from factors that fit its known entries: alternating least squares."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    FloatArray,
    as_array,
    as_float_array,
    as_vector,
    check_rank,
    check_real,
    check_rng,
    check_size,
)
from lowrank_tutor.family.descent import Descent, Pair, descend
from lowrank_tutor.svd import randomized_svd

Mask = NDArray[np.bool_]
_SMALL = 500  # up to here the whole SVD takes no time


class RatingFactors(NamedTuple):
    """Factors of a table of ratings, ``ratings ~ p @ q.T``.

    Attributes
    ----------
    p : ndarray, shape (n, k)
        One row for each row of the table; NaN where nothing of it was observed.
    q : ndarray, shape (m, k)
        One row for each column of the table; NaN where nothing of it was observed.
    losses : ndarray, shape (sweeps + 1,)
        The objective at the start and after each sweep; it never rises.
    converged : bool
        Whether the last sweep gained less than the tolerance.
    """

    p: FloatArray
    q: FloatArray
    losses: FloatArray
    converged: bool

    @property
    def estimates(self) -> FloatArray:
        """An estimate of every rating, ``p @ q.T``, shape (n, m); NaN where nothing is known of the row or column."""
        product: FloatArray = self.p @ self.q.T
        return product


def _as_ratings(ratings: ArrayLike, observed: ArrayLike) -> tuple[FloatArray, Mask]:
    """Return the ratings with zeros in the gaps, and what is observed, of which at least one is True."""
    table = as_float_array(ratings, "ratings")
    if table.ndim != 2:
        raise ValueError(f"ratings must be a matrix (two axes), got shape {table.shape}")
    mask = as_array(observed, "observed", "a rectangular array of bools")
    if mask.dtype != np.bool_:
        raise TypeError(f"observed must be an array of bools (True marks a known rating), got dtype {mask.dtype}")
    if mask.shape != table.shape:
        raise ValueError(f"observed must be of the shape of ratings {table.shape}, got {mask.shape}")
    if not mask.any():
        raise ValueError("observed must mark at least one rating as known, got none")
    seen = table[mask]
    if not np.isfinite(seen).all():
        raise ValueError(f"ratings must be finite where observed, got {seen[~np.isfinite(seen)][0]}")
    as_vector(seen, "ratings")  # refuses what is too large or too small
    return np.where(mask, table, 0).astype(table.dtype), mask


def _half_step(q: FloatArray, r: FloatArray, mask: FloatArray, penalty: float) -> FloatArray:
    r"""Return the best ``p`` (n, k) for a given ``q`` (m, k): one ridge regression for each row of ``r`` (n, m).

    $(\sum_j q_j q_j^\top + \lambda I)\, p_i = \sum_j r_{ij} q_j$ over the observed $j$ of row $i$; ``r`` is zero in the
    gaps, and ``mask`` is 1 where a rating is observed, else 0.
    """
    k = q.shape[1]
    if penalty >= 1e-8 * np.square(q).sum() and penalty > 0:  # well conditioned: all rows at once
        squares = (q[:, :, np.newaxis] * q[:, np.newaxis, :]).reshape(-1, k * k)  # (m, k k)
        grams = (mask @ squares).reshape(-1, k, k) + penalty * np.eye(k)  # (n, k, k)
        return np.linalg.solve(grams, (r @ q)[:, :, np.newaxis])[:, :, 0]
    # Row by row, without squaring q. The penalty is k more equations; of many solutions lstsq takes the shortest.
    ridge, nothing = math.sqrt(penalty) * np.eye(k), np.zeros(k)
    rows = [
        np.linalg.lstsq(np.vstack([q[seen > 0], ridge]), np.concatenate([row[seen > 0], nothing]), rcond=None)[0]
        for row, seen in zip(r, mask, strict=True)
    ]
    return np.stack(rows)


def _misses(r: FloatArray, mask: FloatArray, p: FloatArray, q: FloatArray) -> float:
    """Return the sum of the squared errors over the known ratings."""
    return float(np.square(mask * (r - p @ q.T)).sum())


def _sweep(q: FloatArray, r: FloatArray, mask: FloatArray, penalty: float) -> Pair:
    p = _half_step(q, r, mask, penalty)
    return p, _half_step(p, r.T, mask.T, penalty)


def _start(r: FloatArray, mask: FloatArray, k: int, penalty: float, rng: np.random.Generator) -> Pair:
    """Start from the SVD of the table with zeros in its gaps, then sweep while a large penalty falls to the real one.

    Zeros make the table too small as a whole, which dividing by the share observed corrects. The noise, a hundredth,
    frees directions that the SVD leaves at zero. The large penalties keep the estimates in the gaps from running away.
    """
    kept = min(k, *r.shape)
    if min(r.shape) > _SMALL:  # only k directions are wanted, and the sweeps mend what they lack
        s, vt = randomized_svd(r, kept, rng=0)[1:]
    else:
        _, s, vt = np.linalg.svd(r, full_matrices=False)
    s = s / mask.mean()
    q: FloatArray = np.zeros((r.shape[1], k))
    q[:, :kept] = vt[:kept].T * np.sqrt(s[:kept])
    q += 0.01 * math.sqrt(float(np.square(q).mean())) * rng.standard_normal(q.shape)
    for large in [*(s[0] * np.geomspace(1e-1, 1e-3, 10)), 0.0]:
        p, q = _sweep(q, r, mask, max(large, penalty))
        if large <= penalty:
            break
    return p, q


def factorize_ratings(
    ratings: ArrayLike,
    observed: ArrayLike,
    k: int,
    *,
    regularization: float = 1.0,
    rng: np.random.Generator | int | None = None,
    tolerance: float = 1e-3,
    max_sweeps: int = 500,
) -> RatingFactors:
    r"""Factor a table from the entries that are known, and so estimate those that are not.

    Minimizes, over the observed entries $\Omega$ only,

    $$J = \sum_{(i,j) \in \Omega} (r_{ij} - p_i^\top q_j)^2 + \lambda \Big(\sum_i \|p_i\|^2 + \sum_j \|q_j\|^2\Big)$$

    by alternating least squares: with ``q`` fixed each row of ``p`` is a ridge regression of its own, and the other way
    round. There are no means and no biases; each row counts once in the penalty, however many ratings it has. $J$ never
    rises.

    Parameters
    ----------
    ratings : array_like, shape (n, m)
        Finite where observed. What stands elsewhere is never read: it may be NaN. Float32 gives float32; everything
        else float64.
    observed : array_like of bool, shape (n, m)
        True marks a known rating. At least one.
    k : int
        The rank kept, between 1 and ``min(n, m)``.
    regularization : float
        $\lambda$, at least 0, in the units of the ratings (ten times larger ratings want a ten times larger one). At 0
        a row with fewer ratings than ``k`` has many solutions; the shortest is taken.
    rng : numpy.random.Generator or int, optional
        Draws the small noise of the start. With ``None`` each call draws another.
    tolerance : float
        Stop when a sweep lowers $J$ by no more than this share of it; at least 0 and below 1.
    max_sweeps : int
        How many sweeps at most, at least 1, after those of the start (11 at most).

    Returns
    -------
    RatingFactors
        ``p`` (n, k), ``q`` (m, k), ``losses`` (sweeps + 1,) in float64, ``converged``, and the property ``estimates``.

    Examples
    --------
    >>> ratings = [[1, 2, 3], [2, 4, np.nan], [3, np.nan, 9]]
    >>> result = factorize_ratings(ratings, np.isfinite(ratings), k=1, regularization=0)
    >>> result.estimates.round(6)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])

    References
    ----------
    Koren, Bell and Volinsky (2009), doi:10.1109/MC.2009.263. Zhou, Wilkinson, Schreiber and Pan (2008),
    doi:10.1007/978-3-540-68880-8_32, weight each row's penalty by its number of ratings instead.
    """
    table, known = _as_ratings(ratings, observed)
    k = check_rank(k, table.shape)
    penalty = check_real(regularization, "regularization", "finite and at least 0", 0)
    rng = check_rng(rng)
    tolerance = check_real(tolerance, "tolerance", "at least 0 and below 1", 0, 1)
    max_sweeps = check_size(max_sweeps, "max_sweeps")

    rows, columns = (known.any(axis=axis) for axis in (1, 0))  # of the others nothing is known
    r, mask = (a[rows][:, columns].astype(np.float64) for a in (table, known))
    rounding = 1e-28 * float(np.square(r).sum())

    def sweep(_: FloatArray, q: FloatArray) -> Pair:
        return _sweep(q, r, mask, penalty)

    def loss(p: FloatArray, q: FloatArray) -> float:
        return float(_misses(r, mask, p, q) + penalty * (np.square(p).sum() + np.square(q).sum()))

    start = _start(r, mask, k, penalty, rng)
    begun = Descent(start, [loss(*start)])
    found = descend(begun, sweep, loss, lambda before: tolerance * before + rounding, max_sweeps)
    p, q = (np.full((length, k), np.nan, dtype=table.dtype) for length in table.shape)
    p[rows], q[columns] = found.factors
    return RatingFactors(p, q, np.array(found.losses), found.settled)
