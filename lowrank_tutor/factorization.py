r"""Fill the gaps in a table with factors that fit its known entries: alternating least squares.

Chapter ``book/03-family.md``. Letters: ``ratings`` (n, m) is the table, ``c`` (n, k) and ``f`` (k,
m) are its factors, $X \approx C F$, of rank ``k``. Float32 gives float32; everything else float64.
"""

from __future__ import annotations

import math
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
    check_fraction,
    check_integer,
    check_rank,
    check_real,
    check_shape,
    names_of,
)
from lowrank_tutor._descent import Descent, Pair, descend
from lowrank_tutor.svd import randomized_svd

__all__ = ["RatingFactors", "factorize_ratings"]

# Numbers that the rows of a block need while they are solved: they stay in the processor's cache.
_ROOM = 2**18


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
    regularization, columns : float, list or None
        The penalty, and the names of a table's columns, which `transform` expects in the same
        order.
    """

    c: FloatArray
    f: FloatArray
    losses: FloatArray
    converged: bool
    regularization: float
    columns: list[Any] | None = None

    @property
    def estimates(self) -> FloatArray:
        """Estimate all ratings by ``c @ f`` (n, m).

        Where no rating in the row or column is known, the result is NaN.
        """
        return np.asarray(self.c @ self.f)

    def transform(
        self, ratings: ArrayLike | Factor, observed: ArrayLike | None = None
    ) -> FloatArray:
        """Return rows of ``c`` for new rows of ratings (n, m), such as those of new users.

        ``result.transform(ratings) @ result.f`` estimates them. Gaps are marked as in
        `factorize_ratings`. A row whose known ratings are all in columns that were unknown there is
        NaN.
        """
        table, known = _as_ratings(ratings, observed)
        k, m = self.f.shape
        check_shape("ratings", table, ("n", m))
        names_of(ratings, self.columns, "ratings")
        useful = np.isfinite(self.f[0, known.columns])
        rows, i = np.unique(known.rows[useful], return_inverse=True)
        found = _Known(i, known.columns[useful], known.values[useful].astype(np.float64))
        c = np.full((table.shape[0], k), np.nan, table.dtype)
        factors = np.nan_to_num(self.f.astype(np.float64))
        c[rows] = _half_step(factors, _blocks(found, len(rows), m, k), self.regularization)
        return c


class _Known(NamedTuple):
    """The known ratings of a table (n, m): row, column, and value of each, row by row."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: FloatArray


class _Block(NamedTuple):
    """Rows of a table that are solved together, and the ``p`` known ratings of each.

    A row that has fewer than ``p`` ends with ratings of 0 in column m, whose factor is zero: they
    change nothing.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.int32]  # (b, p)
    values: FloatArray  # (b, p)


def _as_ratings(ratings: ArrayLike | Factor, observed: ArrayLike | None) -> tuple[Any, _Known]:
    """Return the table, dense or sparse as it came, gaps filled by zeros, and its known ratings."""
    if hasattr(ratings, "tocsr"):  # of SciPy
        if observed is not None:
            raise ValueError(f"observed must be None for sparse ratings, got {type(observed)}")
        table: Any = as_factor(ratings, "ratings").copy()
        # SciPy adds up entries stored twice, in the coordinate format as soon as it is converted.
        stored = ratings.nnz if ratings.format == "coo" else table.nnz  # type: ignore[union-attr]
        table.sum_duplicates()
        if table.nnz < stored:
            raise ValueError(f"ratings must store each entry once, got {stored - table.nnz} twice")
        entries = table.tocoo()
        as_vector(entries.data, "ratings that are stored")
        return table, _Known(entries.row, entries.col, entries.data)
    dense = as_float_array(ratings, "ratings")
    mask = ~np.isnan(dense) if observed is None else as_array(observed, "observed")
    check_shape("ratings", dense, ("n", "m"))
    if mask.dtype != np.bool_ or mask.shape != dense.shape:
        raise ValueError(
            f"observed must be bools of the shape of ratings {dense.shape}, "
            f"got dtype {mask.dtype} and shape {mask.shape}"
        )
    seen = as_vector(dense[mask], "ratings that are known")
    rows, columns = np.nonzero(mask)
    return np.where(mask, dense, 0).astype(dense.dtype), _Known(rows, columns, seen)


def _blocks(known: _Known, n: int, m: int, k: int) -> list[_Block]:
    """Gather the known ratings by rows.

    Those that have about as many share a block, which bounds its memory.
    """
    counts = np.bincount(known.rows, minlength=n)
    begins = np.cumsum(counts) - counts
    order = np.argsort(-counts, kind="stable")
    blocks = []
    while order.size:
        p = int(counts[order[0]])
        rows, order = np.split(order, [max(_ROOM // (k * (p + k)), 1)])
        filled = np.arange(p) < counts[rows, np.newaxis]
        entries = (begins[rows, np.newaxis] + np.arange(p))[filled]
        columns, values = np.full((len(rows), p), m, np.int32), np.zeros((len(rows), p))
        columns[filled], values[filled] = known.columns[entries], known.values[entries]
        blocks.append(_Block(rows, columns, values))
    return blocks


def _with_zero(f: FloatArray) -> FloatArray:
    """Return the columns of ``f`` (k, m), and a zero for missing ratings: (m + 1, k)."""
    return np.vstack([f.T, np.zeros(len(f))])


def _half_step(f: FloatArray, blocks: list[_Block], penalty: float) -> FloatArray:
    r"""Return the best ``c`` (n, k) for a given ``f`` (k, m), by ridge regression for each row.

    $(\sum_j f_j f_j^\top + \mu I)\, c_i = \sum_j x_{ij} f_j$ over the observed $j$ of row $i$.
    """
    k, factors = len(f), _with_zero(f)
    well_conditioned = penalty >= 1e-8 * np.square(f).sum() and penalty > 0
    c = np.empty((sum(len(block.rows) for block in blocks), k))
    for rows, columns, values in blocks:
        seen = factors[columns]  # (b, p, k)
        if well_conditioned:
            grams = seen.transpose(0, 2, 1) @ seen + penalty * np.eye(k)
            solved = np.linalg.solve(grams, seen.transpose(0, 2, 1) @ values[:, :, np.newaxis])
        else:
            # f is not squared; the penalty adds k equations, and of many solutions this is the
            # shortest.
            ridge = np.broadcast_to(math.sqrt(penalty) * np.eye(k), (len(rows), k, k))
            whole = np.concatenate([seen, ridge], axis=1)
            rounding = max(whole.shape[1:]) * float(np.finfo(np.float64).eps)
            inverse = np.linalg.pinv(whole, rounding)[:, :, : columns.shape[1]]
            solved = inverse @ values[:, :, np.newaxis]
        c[rows] = solved[:, :, 0]
    return c


def _squared_error(c: FloatArray, f: FloatArray, blocks: list[_Block]) -> float:
    """Return the sum of the squared errors over the known ratings."""
    factors = _with_zero(f)
    parts = (
        values - (factors[columns] @ c[rows, :, np.newaxis])[:, :, 0]
        for rows, columns, values in blocks
    )
    return math.fsum(float(np.square(part).sum()) for part in parts)


def _start(x: Any, share: float, k: int, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Start ``f`` (k, m) from the SVD of the filled table, and return its largest singular value.

    The zeros shrink the singular values; dividing them by the observed share corrects for that. The
    added noise, a hundredth of the factor, frees directions that the SVD leaves at zero.
    """
    r = min(k, *x.shape)
    _, s, vt = randomized_svd(x, r, rng=0)  # rough directions are enough: the sweeps improve them
    f: FloatArray = np.zeros((k, x.shape[1]))
    f[:r] = np.sqrt(s[:, np.newaxis] / share) * vt
    f += 0.01 * math.sqrt(float(np.square(f).mean())) * rng.standard_normal(f.T.shape).T
    return f, float(s[0]) / share


def factorize_ratings(
    ratings: ArrayLike | Factor,
    observed: ArrayLike | None = None,
    k: int | None = None,
    *,
    regularization: float | None = None,
    rng: np.random.Generator | int | None = None,
    tolerance: float = 1e-3,
    max_sweeps: int = 500,
) -> RatingFactors:
    r"""Factor a table by its known entries, and so estimate the others.

    Minimizes, over the observed entries $\Omega$ only,

    $$\sum_{(i,j) \in \Omega} (x_{ij} - c_i^\top f_j)^2
    + \mu \Big(\sum_i \|c_i\|^2 + \sum_j \|f_j\|^2\Big)$$

    by alternating least squares (Koren, Bell and Volinsky, 2009, doi:10.1109/MC.2009.263): with
    ``f`` fixed, each row of ``c`` is a ridge regression of its own, and vice versa. Each row counts
    once in the penalty. There are no means: far from zero, take ``factorize_ratings(x - m, None,
    k).estimates + m`` with ``m = np.nanmean(x, axis=0)``. There is one penalty: if the columns are
    in different units, divide ``x`` by ``np.nanstd(x, axis=0)`` first. Rows without a known entry
    stay NaN.

    Parameters
    ----------
    ratings : array_like or sparse matrix, shape (n, m)
        A row for each user and a column for each item, finite where observed; the other entries
        are never read, and may be NaN. A long list of users, items, and ratings is
        ``coo_array((ratings, (rows, columns)))``: in a sparse matrix of SciPy the stored entries
        are the known ones, zeros too. The known ones must differ: clicks, which are all 1, say
        nothing of dislikes. For a table of pandas, ``DataFrame(result.estimates, table.index,
        table.columns)`` has its names.
    observed : array_like of bool, shape (n, m), optional
        True marks a known rating. With None, all entries but NaN are known, zeros too
        (``observed=ratings != 0`` if 0 marks a gap); in a sparse matrix, all stored ones.
    k : int
        The rank kept, between 1 and ``min(n, m)``; it is always needed.
    regularization : float, optional
        $\mu$, at least 0, in the units of the ratings; by default a quarter of the root mean square
        of those known, or half their standard deviation if that is less. Too large a penalty leaves
        zeros. At 0 a row with fewer ratings than ``k`` has many solutions, and the shortest is
        taken.
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
    values = known.values.astype(np.float64)
    if values.min() == values.max():  # as clicks are, which say nothing of dislikes
        raise ValueError(f"ratings must differ, got {values[0]} everywhere")
    penalty = float(min(np.sqrt(np.square(values).mean()) / 4, values.std() / 2))
    if regularization is not None:
        penalty = check_real(regularization, "regularization", "finite and at least 0", 0)
    rng = np.random.default_rng(rng)
    tolerance = check_fraction(tolerance, "tolerance", 0)
    max_sweeps = check_integer(max_sweeps, "max_sweeps")

    rows, i = np.unique(known.rows, return_inverse=True)  # the others have no known rating
    columns, j = np.unique(known.columns, return_inverse=True)
    n, m = len(rows), len(columns)
    turned = np.argsort(j, kind="stable")
    by_row = _blocks(_Known(i, j, values), n, m, k)
    by_column = _blocks(_Known(j[turned], i[turned], values[turned]), m, n, k)
    rounding = 1e-28 * float(np.square(values).sum())

    def sweep(_: FloatArray, f: FloatArray, penalty: float = penalty) -> Pair:
        c = _half_step(f, by_row, penalty)
        return c, _half_step(c.T, by_column, penalty).T

    def loss(c: FloatArray, f: FloatArray) -> float:
        return float(
            _squared_error(c, f, by_row) + penalty * (np.square(c).sum() + np.square(f).sum())
        )

    f, largest = _start(table[rows][:, columns].astype(np.float64), len(values) / (n * m), k, rng)
    # Large penalties at first keep the estimates in the gaps from running away. They fall to the
    # real one.
    falling = largest * np.geomspace(1e-1, 1e-3, 10)
    for large in [*falling[falling > penalty], penalty]:
        c, f = sweep(f, f, large)
    begun = Descent((c, f), [loss(c, f)])
    descent = descend(begun, sweep, loss, lambda before: tolerance * before + rounding, max_sweeps)
    c = np.full((table.shape[0], k), np.nan, table.dtype)
    f = np.full((k, table.shape[1]), np.nan, table.dtype)
    c[rows], f[:, columns] = descent.factors
    return RatingFactors(
        c, f, np.array(descent.losses), descent.settled, penalty, names_of(ratings)
    )
