r"""Find the axes that separate classes best for their spread: linear discriminant analysis (LDA).

Chapter ``book/03-family.md``. Letters: ``x`` (n, d) holds one point a row, ``labels`` (n,) the class of each; ``k`` is
the number of axes kept, ``C`` that of the classes. Float32 gives float32; everything else float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import FloatArray, as_array, as_matrix, check_integer
from lowrank_tutor.svd import fix_signs

__all__ = ["Discriminants", "lda"]
__dir__ = __all__.copy  # completion offers no more than that

_NEGLIGIBLE = 1e-4  # scikit-learn's: a direction with less of the standard deviation than this counts as constant
_TALL = 10  # with at least this many points per coordinate, the small scatter matrix is tried first
_SAFE = 1e-5  # and used if its least eigenvalue is at least this share of the largest: that costs 5 of 16 digits


class Discriminants(NamedTuple):
    """The axes that separate classes, and all that is needed to use them.

    Attributes
    ----------
    axes : ndarray, shape (d, k)
        One axis a column, its largest entry positive. Along them the within-class covariance is the identity.
    ratio : ndarray, shape (k,)
        The share of the between-class variance along each axis, falling; 0 where all centers coincide.
    mean, centers : ndarray, shapes (d,), (C, d)
        The mean of all points, and of each class.
    classes, priors : ndarray, shape (C,)
        The labels that occur, sorted, and the share of the points that has each.
    """

    axes: FloatArray
    ratio: FloatArray
    mean: FloatArray
    centers: FloatArray
    classes: NDArray[Any]
    priors: FloatArray

    def project(self, x: ArrayLike) -> FloatArray:
        r"""Return the coordinates (n, k) of points ``x`` (n, d) along the axes, $(X - 1\mu^\top) A$."""
        points = as_matrix(x, "x")
        if points.shape[1] != len(self.mean):
            raise ValueError(f"x must have {len(self.mean)} columns, got shape {points.shape}")
        return np.asarray((points - self.mean) @ self.axes)

    def classify(self, x: ArrayLike) -> NDArray[Any]:
        r"""Return for each point of ``x`` (n, d) the class with the nearest center along the axes, large ones favored.

        That is the $c$ with the largest $\log \pi_c - \tfrac12 \|z - z_c\|^2$, for coordinates $z$ of the point and
        $z_c$ of the center, and the share $\pi_c$ of the class. Only the ``k`` axes kept count. (``predict`` of
        scikit-learn uses all ``C - 1``, whatever its ``n_components``.)
        """
        z, centers = self.project(x), (self.centers - self.mean) @ self.axes  # (n, k), (C, k)
        # (n, C), without the square of z, which is the same for every class
        scores = z @ centers.T - np.square(centers).sum(axis=1) / 2 + np.log(self.priors)
        return np.asarray(self.classes[np.argmax(scores, axis=1)])


def _as_classes(labels: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[np.intp], FloatArray]:
    """Return the labels that occur (C,), the number of each point's class (n,) and the share of each class (C,)."""
    array = as_array(labels, "labels", "a vector of numbers or strings")
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
    """Return the mean point, exact where all numbers are equal: rounding would pass for spread."""
    return np.asarray(np.where((points == points[0]).all(axis=0), points[0], points.mean(axis=0)))


def _right_vectors(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return singular values and right vectors, from the scatter matrix where rows are many and it is accurate."""
    if len(a) >= _TALL * a.shape[1] > 0:
        squares, vectors = np.linalg.eigh(a.T @ a)
        if squares[0] >= _SAFE * squares[-1]:
            return np.sqrt(squares[::-1]), vectors.T[::-1]
    _, s, vt = np.linalg.svd(a, full_matrices=False)
    return s, vt


def _whitener(deviations: FloatArray) -> FloatArray:
    """Return ``a`` (d, r) with ``a.T @ (deviations.T @ deviations) @ a = I``, on directions that are not null."""
    spread = np.linalg.norm(deviations, axis=0)
    varies = spread > 0
    s, vt = _right_vectors(deviations[:, varies] / spread[varies])
    kept = s > _NEGLIGIBLE
    whitener = np.zeros((len(spread), np.count_nonzero(kept)))
    whitener[varies] = (vt[kept] / spread[varies]).T / s[kept]
    return whitener


def lda(x: ArrayLike, labels: ArrayLike, k: int) -> Discriminants:
    r"""Find the axes along which the centers of classes lie farthest apart, measured by the spread within the classes.

    With $S = \frac1n \sum_i (x_i - m_{c(i)})(x_i - m_{c(i)})^\top$, the covariance within the classes, and
    $M = \sum_c \pi_c (m_c - \bar x)(m_c - \bar x)^\top$, that of the centers, the axes solve $M w = \gamma S w$ for
    the ``k`` largest $\gamma$, scaled so that $w^\top S w = 1$ (Fisher, 1936, doi:10.1111/j.1469-1809.1936.tb02137.x,
    and for more than two classes Rao, 1948, doi:10.1111/j.2517-6161.1948.tb00008.x). This whitens $S$ and truncates the
    SVD of the whitened centers. (Not latent Dirichlet allocation, which shares the three letters.)

    Where $S$ is singular, its null directions are *dropped*, as scikit-learn's ``svd`` solver does: every coordinate
    is divided by its standard deviation within the classes, and a principal direction of what results is left out if
    the standard deviation along it is at most 1e-4. So a coordinate that is constant within each class does not count,
    even if it alone would tell the classes apart.

    Parameters
    ----------
    x : array_like, shape (n, d)
        One point a row.
    labels : array_like, shape (n,)
        The class of each point: integers, strings, bools, or finite floats. At least two classes; a class of a single
        point adds a center but no spread.
    k : int
        How many axes, between 1 and ``C - 1``: the centers of ``C`` classes span no more. At most the number of
        directions that are not dropped.

    Examples
    --------
    >>> x = [[-1, 0], [1, 0], [0, -2], [0, 2], [9, 0], [11, 0], [10, -2], [10, 2]]
    >>> found = lda(x, ["left"] * 4 + ["right"] * 4, k=1)
    >>> found.axes.round(6)  # variance within is 1/2 along the first coordinate
    array([[1.414214],
           [0.      ]])
    >>> found.classify([[4.9, 3], [5.1, -3]])
    array(['left', 'right'], dtype='<U5')
    """
    given = as_matrix(x, "x")
    classes, number, priors = _as_classes(labels, len(given))
    k = check_integer(k, "k", 1, len(classes) - 1, "the number of classes - 1")

    points, dtype = given.astype(np.float64), given.dtype
    centers = np.stack([_mean(points[number == c]) for c in range(len(classes))])  # (C, d)
    mean = priors @ centers
    whitener = _whitener((points - centers[number]) / math.sqrt(len(points)))  # (d, r)
    directions = whitener.shape[1]
    if k > directions:
        raise ValueError(f"k must be at most the number of directions in which classes spread = {directions}, got {k}")
    between = np.sqrt(priors)[:, np.newaxis] * ((centers - mean) @ whitener)  # (C, r)
    _, s, vt = np.linalg.svd(between, full_matrices=False)
    axes = (whitener @ vt[:k].T).astype(dtype)  # (d, k)
    share = np.square(s / s[0]) if s[0] > 0 else np.zeros_like(s)
    share = share[:k] / max(share.sum(), 1)  # the sum is 0, or at least 1
    return Discriminants(
        axes * fix_signs(axes), share.astype(dtype), mean.astype(dtype), centers.astype(dtype), classes, priors
    )
