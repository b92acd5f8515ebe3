r"""What should a few directions keep: the spread, the classes, the parts, or the known entries? One answer each.

Chapter ``book/03-family.md``. Letters: ``x`` is (n, d), one point a row; ``k`` the rank kept; ``w`` (n, k) and
``h`` (k, d) are non-negative factors, $X \approx W H$; ``p`` (n, k) and ``q`` (m, k) the factors of a table of ratings
with gaps, $R \approx P Q^\top$.

PCA keeps the spread and stands in ``pca``. ``Autoencoder`` is PyTorch; the rest is NumPy, and importing this module
imports no torch.
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    FloatArray,
    as_float_array,
    as_matrix,
    check_integer,
    check_rank,
    check_real,
    check_rng,
    unit_scale,
)
from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.svd import fix_signs, truncated_svd

if TYPE_CHECKING:
    from lowrank_tutor._autoencoder import Autoencoder

__all__ = ["NMF", "Autoencoder", "Discriminants", "RatingFactors", "factorize_ratings", "lda", "nmf"]

_NEGLIGIBLE = 1e-4  # scikit-learn's: a direction with less of the standard deviation than this counts as constant
_ROUGHLY = 100  # how much looser the tolerance is while `nmf` compares its starts
_BRIEFLY = 200  # and how many sweeps each gets
_FOLLOWED = 2  # and how many of them it then follows to the end

_Pair = tuple[FloatArray, FloatArray]


__getattr__, __dir__ = on_demand(__name__, Autoencoder="_autoencoder")


def _fitting(array: FloatArray, name: str, what: str, dtype: np.dtype[Any], small: bool = True) -> FloatArray:
    """Return ``array`` in the precision of the input, or refuse the argument ``name`` that made it overflow."""
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if not np.isfinite(result).all():
        rule, got = ("small", "larger") if small else ("large", "smaller")
        raise ValueError(f"{name} must be {rule} enough for its {what} to fit {dtype}, got {got} ones")
    return result


# linear discriminant analysis


class Discriminants(NamedTuple):
    r"""The axes that set classes apart, and all that is needed to use them.

    Attributes
    ----------
    axes : ndarray, shape (d, k)
        One axis a column. Along them the within-class covariance is the identity; the largest entry of each is
        positive.
    ratio : ndarray, shape (k,)
        The share of the between-class variance along each axis, falling; 0 where all centers coincide and there is
        none to share.
    mean : ndarray, shape (d,)
        The mean of all points.
    centers : ndarray, shape (C, d)
        The mean of each class.
    classes : ndarray, shape (C,)
        The labels that occur, sorted.
    priors : ndarray, shape (C,)
        The share of the points that has each label.
    """

    axes: FloatArray
    ratio: FloatArray
    mean: FloatArray
    centers: FloatArray
    classes: NDArray[Any]
    priors: FloatArray

    def project(self, x: ArrayLike) -> FloatArray:
        r"""Return the coordinates of points along the axes, $(X - 1\mu^\top) A$.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Any number of points.

        Returns
        -------
        ndarray, shape (n, k)

        Raises
        ------
        TypeError
            If ``x`` does not hold real numbers.
        ValueError
            If ``x`` is no finite matrix with ``d`` columns, or is too large.
        """
        points = as_matrix(x, "x")
        if points.shape[1] != len(self.mean):
            raise ValueError(f"x must have {len(self.mean)} columns, got shape {points.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            coordinates = (points - self.mean) @ self.axes
        return _fitting(coordinates, "x", "coordinates", coordinates.dtype)

    def classify(self, x: ArrayLike) -> NDArray[Any]:
        r"""Return for each point the class whose center is nearest along the axes, the larger class favored.

        The class $c$ with the largest $\log \pi_c - \tfrac12 \|z - z_c\|^2$, where $z$ and $z_c$ are the coordinates
        of the point and of the center, and $\pi_c$ is the share of the class. Only the ``k`` axes kept are used. (The
        ``predict`` of scikit-learn uses all ``C - 1``, whatever its ``n_components``.)

        Parameters
        ----------
        x : array_like, shape (n, d)
            Any number of points.

        Returns
        -------
        ndarray, shape (n,)
            Labels, of the type of ``classes``.

        Raises
        ------
        TypeError
            If ``x`` does not hold real numbers.
        ValueError
            If ``x`` is no finite matrix with ``d`` columns, or is too large.
        """
        z, centers = self.project(x), self.project(self.centers)  # (n, k), (C, k)
        with np.errstate(over="ignore", invalid="ignore"):
            # The square of z is the same for every class.
            scores = z @ centers.T - np.square(centers).sum(axis=1) / 2 + np.log(self.priors)  # (n, C)
        best: NDArray[Any] = self.classes[np.argmax(_fitting(scores, "x", "scores", scores.dtype), axis=1)]
        return best


def _as_classes(labels: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[np.intp], FloatArray]:
    """Return the labels that occur (C,), the number of each point's class (n,), and the share of each class (C,)."""
    if isinstance(labels, np.ma.MaskedArray):
        raise TypeError("labels must be an array without a mask, got a masked array")
    try:
        array = np.asarray(labels)
    except ValueError:
        raise ValueError("labels must be a vector of numbers or strings, got a ragged sequence") from None
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array.flat):
        array = array.astype(str)
    if array.dtype.kind not in "biufU":
        raise TypeError(f"labels must be a vector of numbers or strings, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"labels must be one for each of the {n} points, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"labels must be finite, got {array[~np.isfinite(array)][0]}")
    classes, number, counts = np.unique(array, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"labels must name at least two classes, got one, {classes[0]}")
    return classes, number, counts / n


def _mean(points: FloatArray) -> FloatArray:
    """Return the mean point; that of equal numbers is that number, without the rounding that would pass for spread."""
    mean: FloatArray = np.where((points == points[0]).all(axis=0), points[0], points.mean(axis=0))
    return mean


def _whitener(deviations: FloatArray) -> FloatArray:
    """Return ``a`` (d, r) with ``a.T @ (deviations.T @ deviations) @ a = I``, on the directions that are not null."""
    spread = np.linalg.norm(deviations, axis=0)
    varies = spread > 0
    _, s, vt = np.linalg.svd(deviations[:, varies] / spread[varies], full_matrices=False)
    kept = s > _NEGLIGIBLE
    whitener = np.zeros((len(spread), np.count_nonzero(kept)))
    whitener[varies] = (vt[kept] / spread[varies]).T / s[kept]
    return whitener


def lda(x: ArrayLike, labels: ArrayLike, k: int) -> Discriminants:
    r"""Find the axes along which the centers of classes lie apart most, measured by the spread within the classes.

    With $S = \frac1n \sum_i (x_i - m_{c(i)})(x_i - m_{c(i)})^\top$, the covariance within the classes, and
    $M = \sum_c \pi_c (m_c - \bar x)(m_c - \bar x)^\top$, that of the centers, the axes solve $M w = \lambda S w$ for
    the ``k`` largest $\lambda$, scaled so that $w^\top S w = 1$. This is the whitening of $S$ followed by the truncated
    SVD of the whitened centers. (Not latent Dirichlet allocation, which shares the three letters.)

    Where $S$ is singular, its null directions are *dropped*, as scikit-learn's ``svd`` solver does: every coordinate
    is divided by its standard deviation within the classes, and a principal direction of what results is left out if
    the standard deviation along it is at most 1e-4. So a coordinate that is constant within each class does not count,
    even if it alone would tell the classes apart.

    Parameters
    ----------
    x : array_like, shape (n, d)
        One point a row. Float32 gives float32; everything else float64.
    labels : array_like, shape (n,)
        The class of each point: integers, strings, bools, or finite floats. At least two classes; a class of a single
        point is allowed, and adds a center but no spread.
    k : int
        How many axes, between 1 and ``C - 1``: the centers of ``C`` classes span no more. At most the number of
        directions that are not dropped.

    Returns
    -------
    Discriminants
        ``axes``, ``ratio``, ``mean``, ``centers``, ``classes`` and ``priors``, with methods ``project`` and
        ``classify``.

    Raises
    ------
    TypeError
        If ``x`` does not hold real numbers, ``labels`` neither numbers nor strings, or ``k`` is not an integer.
    ValueError
        If ``x`` is no finite, non-empty matrix, there is not one label for each point, there is one class only, no
        class spreads, or ``k`` is outside its bounds.

    Examples
    --------
    >>> x = [[-1, 0], [1, 0], [0, -2], [0, 2], [9, 0], [11, 0], [10, -2], [10, 2]]
    >>> found = lda(x, ["left"] * 4 + ["right"] * 4, k=1)
    >>> found.axes.round(6)  # variance within is 1/2 along the first coordinate
    array([[1.414214],
           [0.      ]])
    >>> found.classify([[4.9, 3], [5.1, -3]])
    array(['left', 'right'], dtype='<U5')

    References
    ----------
    Fisher (1936), doi:10.1111/j.1469-1809.1936.tb02137.x. Rao (1948), doi:10.1111/j.2517-6161.1948.tb00008.x, for more
    than two classes.
    """
    given = as_matrix(x, "x")
    classes, number, priors = _as_classes(labels, len(given))
    rank = check_integer(k, "k", 1, len(classes) - 1, "the number of classes - 1")
    # Each coordinate in a unit of its own, a power of 2: exact, and the axes do not depend on units.
    exponents = np.frexp(np.abs(given).max(axis=0).astype(np.float64))[1]  # (d,)
    points = np.ldexp(given.astype(np.float64), -exponents)
    centers = np.stack([_mean(points[number == c]) for c in range(len(classes))])  # (C, d)
    mean = priors @ centers
    whitener = _whitener((points - centers[number]) / math.sqrt(len(points)))  # (d, r)
    directions = whitener.shape[1]
    if rank > directions:
        raise ValueError(f"k must be at most the number of directions in which classes spread = {directions}, got {k}")
    between = np.sqrt(priors)[:, np.newaxis] * ((centers - mean) @ whitener)  # (C, r)
    _, s, vt = np.linalg.svd(between, full_matrices=False)
    with np.errstate(over="ignore"):
        axes = np.ldexp(whitener @ vt[:rank].T, -exponents[:, np.newaxis])  # (d, k)
    axes = _fitting(axes, "x", "axes", given.dtype, small=False)
    share = np.square(s / s[0]) if s[0] > 0 else np.zeros_like(s)
    return Discriminants(
        axes * fix_signs(axes),
        (share[:rank] / max(share.sum(), 1)).astype(given.dtype),  # the sum is 0, or at least 1
        np.ldexp(mean, exponents).astype(given.dtype),
        np.ldexp(centers, exponents).astype(given.dtype),
        classes,
        priors,
    )


# descent in turns, of which the two factorizations below are cases


class _Descent(NamedTuple):
    """A pair of factors, the losses on the way there, and whether they had settled."""

    factors: _Pair
    losses: list[float]
    settled: bool


def _descend(
    sweep: Callable[[FloatArray, FloatArray], _Pair],
    loss: Callable[[FloatArray, FloatArray], float],
    factors: _Pair,
    enough: Callable[[float], float],
    max_sweeps: int,
) -> _Descent:
    """Repeat a sweep, which never raises the loss, until one lowers it by no more than ``enough(loss before it)``."""
    losses = [loss(*factors)]
    for _ in range(max_sweeps):
        candidate = sweep(*factors)
        after = loss(*candidate)
        if not after < losses[-1]:  # only rounding is left to gain
            return _Descent(factors, losses, True)
        factors = candidate
        losses.append(after)
        if losses[-2] - after <= enough(losses[-2]):
            return _Descent(factors, losses, True)
    return _Descent(factors, losses, False)


def _last_loss(descent: _Descent) -> float:
    return descent.losses[-1]


# non-negative matrix factorization


class NMF(NamedTuple):
    """Non-negative factors, ``x ~ w @ h``.

    Attributes
    ----------
    w : ndarray, shape (n, k)
        How much of each part a row holds.
    h : ndarray, shape (k, d)
        The parts: rows of length 1, the heaviest first. A part that is not needed is a row of zeros, like its column.
    errors : ndarray, shape (sweeps + 1,)
        The Frobenius norm of ``x - w @ h`` before the first sweep and after each; it never rises.
    converged : bool
        Whether the last sweep gained less than the tolerance.
    """

    w: FloatArray
    h: FloatArray
    errors: FloatArray
    converged: bool

    @property
    def error(self) -> float:
        """The Frobenius norm of ``x - w @ h``."""
        return float(self.errors[-1])


def _update_columns(w: FloatArray, xh: FloatArray, hh: FloatArray) -> FloatArray:
    r"""Set one column of ``w`` after the other to its best non-negative value, given $XH^\top$ and $HH^\top$.

    $w_j \leftarrow \max\left(0,\; w_j + (X h_j - W H h_j) / \|h_j\|^2\right)$ is a least-squares problem in one column,
    and clipping its answer is exact, because its entries do not depend on each other.
    """
    w = w.copy()
    for j in np.flatnonzero(np.diag(hh) > 1e-200):  # a row of zeros needs no partner
        w[:, j] = np.maximum(w[:, j] + (xh[:, j] - w @ hh[:, j]) / hh[j, j], 0)
    return w


def _from_itself(x: FloatArray, k: int, rng: np.random.Generator) -> _Pair:
    """Start with ``k`` of the rows of ``x`` for parts, or of its columns if these are fewer; exact if it takes all."""
    if x.shape[1] < x.shape[0]:
        h, w = _from_itself(x.T, k, rng)
        return w.T, h.T
    chosen = rng.permutation(len(x))[:k]
    w = np.zeros((len(x), k))
    w[chosen, np.arange(k)] = 1
    return w, x[chosen]


def _nmf_starts(x: FloatArray, k: int, rng: np.random.Generator) -> Iterator[_Pair]:
    """Yield starts without end: two from the SVD, one from ``x`` itself, then random ones."""
    u, s, vt = truncated_svd(x, k)
    up, down = (
        np.linalg.norm(np.maximum(sign * u, 0), axis=0) * np.linalg.norm(np.maximum(sign * vt.T, 0), axis=0)
        for sign in (1, -1)
    )
    signs = np.where(up >= down, 1, -1)  # of each singular pair the half, positive or negative, that weighs more
    w, h = np.maximum(signs * u, 0) * np.sqrt(s), np.maximum(signs * vt.T, 0).T * np.sqrt(s)[:, np.newaxis]
    yield w, h
    level = math.sqrt(float(x.mean()) / k)  # entries all of this size give a product with the mean of x
    yield np.maximum(w, level), np.maximum(h, level)
    yield _from_itself(x, k, rng)
    while True:
        yield level * np.abs(rng.standard_normal(w.shape)), level * np.abs(rng.standard_normal(h.shape))


def _by_weight(w: FloatArray, h: FloatArray) -> _Pair:
    """Move the length of each row of ``h`` into its column of ``w``, and put the heaviest part first."""
    length = np.linalg.norm(h, axis=1)
    weight = length * np.linalg.norm(w, axis=0)
    w = np.where(weight > 0, w * length, 0)
    h = np.where(weight > 0, h.T / np.where(length > 0, length, 1), 0).T
    order = np.argsort(-weight, kind="stable")
    return w[:, order], h[order]


def nmf(
    x: ArrayLike,
    k: int,
    *,
    rng: np.random.Generator | None = None,
    starts: int = 5,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
) -> NMF:
    r"""Write a non-negative matrix as a sum of ``k`` non-negative parts, as nearly as it goes.

    Minimizes $\|X - W H\|_F$ over $W \ge 0$, $H \ge 0$ by hierarchical alternating least squares (HALS): one column of
    $W$ after the other, then one row of $H$ after the other, is set to its exact optimum while the rest stands still.
    The error never rises.

    The problem is not convex and HALS finds a local minimum. Several starts are tried briefly: two from the SVD, one
    that takes rows or columns of $X$ for parts, the others at random. The best two are followed until a sweep lowers
    the error by no more than ``tolerance`` times the size of $X$, and the better is returned. Where $X = WH$ holds
    exactly, the last digits come slowly; if they are still on their way after ``max_sweeps``, then ``converged`` is
    False and the factors are those reached so far.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Finite, no entry below zero. Float32 gives float32; everything else float64.
    k : int
        The rank kept, between 1 and ``min(n, d)``.
    rng : numpy.random.Generator, optional
        Draws the random starts. With ``None`` each call draws others.
    starts : int
        How many starts, at least 1. With 1 or 2 nothing is random.
    tolerance : float
        When to stop, at least 0 and below 1.
    max_sweeps : int
        How many sweeps at most, at least 1.

    Returns
    -------
    w : ndarray, shape (n, k)
        Non-negative.
    h : ndarray, shape (k, d)
        Non-negative rows of length 1, by falling weight (the length of the column of ``w``); rows of zeros where fewer
        parts are needed.
    errors : ndarray, shape (sweeps + 1,)
        $\|X - W H\|_F$ before the first sweep and after each, in float64; the last is also ``error``.
    converged : bool
        Whether the tolerance was reached.

    Raises
    ------
    TypeError
        If ``x`` does not hold real numbers, a number is of the wrong type, or ``rng`` is no generator.
    ValueError
        If ``x`` is no finite, non-empty matrix, has an entry below zero or too large ones, or another argument is
        outside its bounds.

    Examples
    --------
    >>> result = nmf([[2, 2, 0], [0, 0, 3], [4, 4, 3]], k=2, starts=1)
    >>> result.h.round(4)
    array([[0.7071, 0.7071, 0.    ],
           [0.    , 0.    , 1.    ]])
    >>> result.w.round(4)
    array([[2.8284, 0.    ],
           [0.    , 3.    ],
           [5.6569, 3.    ]])
    >>> result.error < 1e-5, result.converged
    (True, True)

    References
    ----------
    Lee and Seung (1999), doi:10.1038/44565. Cichocki and Phan (2009), doi:10.1587/transfun.E92.A.708, for HALS.
    Boutsidis and Gallopoulos (2008), doi:10.1016/j.patcog.2007.09.010, for the start from the SVD.
    """
    given = as_matrix(x, "x")
    if (given < 0).any():
        raise ValueError(f"x must be non-negative, got {given[given < 0][0]}")
    rank = check_rank(k, given.shape)
    generator = check_rng(rng)
    count = check_integer(starts, "starts", 1)
    gain = check_real(tolerance, "tolerance", "at least 0 and below 1", 0, 1)
    most = check_integer(max_sweeps, "max_sweeps", 1)
    matrix, exponent = unit_scale(given.astype(np.float64))
    size = float(np.linalg.norm(matrix))

    def sweep(w: FloatArray, h: FloatArray) -> _Pair:
        w = _update_columns(w, matrix @ h.T, h @ h.T)
        return w, _update_columns(h.T, matrix.T @ w, w.T @ w).T

    def error(w: FloatArray, h: FloatArray) -> float:
        return float(np.linalg.norm(matrix - w @ h))

    tried = [
        _descend(sweep, error, start, lambda _: _ROUGHLY * gain * size, min(_BRIEFLY, most))
        for start in islice(_nmf_starts(matrix, rank, generator), count)
    ]
    followed = []
    for first in sorted(tried, key=_last_loss)[:_FOLLOWED]:
        rest = _descend(sweep, error, first.factors, lambda _: gain * size, most + 1 - len(first.losses))
        followed.append(_Descent(rest.factors, [*first.losses, *rest.losses[1:]], rest.settled))
    best = min(followed, key=_last_loss)
    w, h = _by_weight(*best.factors)
    with np.errstate(over="ignore"):
        w, errors = np.ldexp(w, exponent), np.ldexp(best.losses, exponent)
    return NMF(
        _fitting(w, "x", "factors", given.dtype),
        h.astype(given.dtype),
        _fitting(errors, "x", "errors", errors.dtype),
        best.settled,
    )


# a table with gaps


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


def _as_ratings(ratings: ArrayLike, observed: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the ratings with zeros in the gaps, and the mask of what is observed."""
    table = as_float_array(ratings, "ratings")
    if table.ndim != 2:
        raise ValueError(f"ratings must be a matrix (two axes), got shape {table.shape}")
    if isinstance(observed, np.ma.MaskedArray):
        raise TypeError("observed must be an array without a mask, got a masked array")
    try:
        seen = np.asarray(observed)
    except ValueError:
        raise ValueError("observed must be a rectangular array of bools, got a ragged sequence") from None
    if seen.dtype != np.bool_:
        raise TypeError(f"observed must be an array of bools (True marks a known rating), got dtype {seen.dtype}")
    if seen.shape != table.shape:
        raise ValueError(f"observed must be of the shape of ratings {table.shape}, got {seen.shape}")
    if not seen.any():
        raise ValueError("observed must mark at least one rating as known, got none")
    known = table[seen]
    if not np.isfinite(known).all():
        raise ValueError(f"ratings must be finite where observed, got {known[~np.isfinite(known)][0]}")
    return np.where(seen, table, 0).astype(table.dtype), seen


def _half_step(q: FloatArray, r: FloatArray, seen: FloatArray, penalty: float) -> FloatArray:
    r"""Return the best ``p`` (n, k) for a given ``q`` (m, k): one ridge regression for each row of ``r`` (n, m).

    $(\sum_j q_j q_j^\top + \lambda I)\, p_i = \sum_j r_{ij} q_j$ over the observed $j$ of row $i$; ``r`` is zero in the
    gaps, and ``seen`` is 1 where a rating is observed, else 0.
    """
    k = q.shape[1]
    if penalty >= 1e-8 * np.square(q).sum() and penalty > 0:  # well conditioned: all rows at once
        squares = (q[:, :, np.newaxis] * q[:, np.newaxis, :]).reshape(-1, k * k)  # (m, k k)
        grams = (seen @ squares).reshape(-1, k, k) + penalty * np.eye(k)  # (n, k, k)
        return np.linalg.solve(grams, (r @ q)[:, :, np.newaxis])[:, :, 0]
    # Row by row, without squaring q. The penalty is k more equations; of many solutions lstsq takes the shortest.
    ridge, nothing = math.sqrt(penalty) * np.eye(k), np.zeros(k)
    rows = [
        np.linalg.lstsq(np.vstack([q[mine], ridge]), np.concatenate([row[mine], nothing]), rcond=None)[0]
        for row, mine in zip(r, seen > 0, strict=True)
    ]
    return np.stack(rows)


def _sweep_ratings(q: FloatArray, r: FloatArray, seen: FloatArray, penalty: float) -> _Pair:
    p = _half_step(q, r, seen, penalty)
    return p, _half_step(p, r.T, seen.T, penalty)


def _ratings_start(r: FloatArray, seen: FloatArray, k: int, penalty: float, rng: np.random.Generator) -> _Pair:
    """Start from the SVD of the table with zeros in its gaps, then sweep while a large penalty falls to the real one.

    Zeros make the table too small as a whole, which dividing by the share observed corrects. The noise, a hundredth,
    frees directions that the SVD leaves at zero. The large penalties keep the estimates in the gaps from running away.
    """
    _, s, vt = np.linalg.svd(r / seen.mean(), full_matrices=False)
    q: FloatArray = np.zeros((r.shape[1], k))
    kept = min(k, len(s))
    q[:, :kept] = vt[:kept].T * np.sqrt(s[:kept])
    q += 0.01 * math.sqrt(float(np.square(q).mean())) * rng.standard_normal(q.shape)
    for large in [*(s[0] * np.geomspace(1e-1, 1e-3, 10)), 0.0]:
        p, q = _sweep_ratings(q, r, seen, max(large, penalty))
        if large <= penalty:
            break
    return p, q


def factorize_ratings(
    ratings: ArrayLike,
    observed: ArrayLike,
    k: int,
    *,
    regularization: float = 1.0,
    rng: np.random.Generator | None = None,
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
    rng : numpy.random.Generator, optional
        Draws the small noise of the start. With ``None`` each call draws another.
    tolerance : float
        Stop when a sweep lowers $J$ by no more than this share of it; at least 0 and below 1.
    max_sweeps : int
        How many sweeps at most, at least 1, after those of the start (11 at most).

    Returns
    -------
    p : ndarray, shape (n, k)
        NaN in rows of which nothing is observed.
    q : ndarray, shape (m, k)
        NaN for columns of which nothing is observed.
    losses : ndarray, shape (sweeps + 1,)
        $J$ at the start and after each sweep, in float64.
    converged : bool
        Whether the tolerance was reached. The estimates are the property ``estimates``, $P Q^\top$.

    Raises
    ------
    TypeError
        If ``ratings`` does not hold real numbers or ``observed`` no bools, a number is of the wrong type, or ``rng`` is
        no generator.
    ValueError
        If the shapes differ, nothing is observed, an observed rating is not finite or too large, or another argument is
        outside its bounds.

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
    table, seen = _as_ratings(ratings, observed)
    rank = check_rank(k, table.shape)
    penalty = check_real(regularization, "regularization", "finite and at least 0", 0)
    generator = check_rng(rng)
    gain = check_real(tolerance, "tolerance", "at least 0 and below 1", 0, 1)
    most = check_integer(max_sweeps, "max_sweeps", 1)
    rows, columns = seen.any(axis=1), seen.any(axis=0)
    scaled, exponent = unit_scale(table[rows][:, columns].astype(np.float64))
    half, odd = divmod(exponent, 2)
    r, mask = np.ldexp(scaled, odd), seen[rows][:, columns].astype(np.float64)  # ratings are r * 4**half
    with np.errstate(over="ignore"):
        penalty = min(float(np.ldexp(penalty, -2 * half)), 1e300)  # a larger one makes all factors zero as well
    smallest = 1e-28 * float(np.square(r).sum())  # of which the rest is rounding

    def sweep(_: FloatArray, q: FloatArray) -> _Pair:
        return _sweep_ratings(q, r, mask, penalty)

    def loss(p: FloatArray, q: FloatArray) -> float:
        misses = np.square(mask * (r - p @ q.T)).sum()
        return float(misses + penalty * (np.square(p).sum() + np.square(q).sum()))

    start = _ratings_start(r, mask, rank, penalty, generator)
    found = _descend(sweep, loss, start, lambda before: gain * before + smallest, most)
    p, q = (np.full((length, rank), np.nan, dtype=table.dtype) for length in table.shape)
    p[rows], q[columns] = (np.ldexp(f, half).astype(table.dtype) for f in found.factors)
    with np.errstate(over="ignore"):
        losses = np.ldexp(found.losses, 4 * half)
    return RatingFactors(p, q, _fitting(losses, "ratings", "losses", losses.dtype), found.settled)
