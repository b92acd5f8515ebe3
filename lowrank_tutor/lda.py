r"""Find the axes that separate classes best for their spread: linear discriminant analysis (LDA).

Chapter ``book/03-family.md``. Letters: ``x`` (n, d) holds one point per row, ``labels`` (n,) the
class of each point; ``k`` is the number of axes kept. Float32 gives float32; everything else
float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    FloatArray,
    as_array,
    as_matrix,
    as_new_rows,
    check_integer,
    names_of,
)
from lowrank_tutor.pca import _right_vectors
from lowrank_tutor.svd import _signs_of

__all__ = ["Discriminants", "lda"]

# scikit-learn's: a direction with less of the standard deviation than this counts as constant.
_NEGLIGIBLE = 1e-4


class Discriminants(NamedTuple):
    """Hold the axes that separate classes, and everything needed to use them.

    Attributes
    ----------
    axes : ndarray, shape (d, k)
        One axis per column, its largest entry positive. In their coordinates the covariance within
        classes is the identity.
    ratio : ndarray, shape (k,)
        The share of the between-class variance along each axis, in decreasing order; 0 where all
        centers coincide.
    mean, centers : ndarray, shapes (d,), (n_classes, d)
        The mean of all points, and of each class, in float64, as in `PCA`.
    classes, priors : ndarray, shape (n_classes,)
        The labels that occur, sorted, and the share of the points that has each of them.
    columns : list or None
        The names of a table's columns, in the order in which `project` expects them.
    """

    axes: FloatArray
    ratio: FloatArray
    mean: FloatArray
    centers: FloatArray
    classes: NDArray[Any]
    priors: FloatArray
    columns: list[Any] | None = None

    def project(self, x: ArrayLike) -> FloatArray:
        r"""Return coordinates (n, k) of ``x`` (n, d): $w^\top (x - \bar x)$ for each axis $w$."""
        points, dtype = as_new_rows(x, "x", len(self.mean), self.columns)
        return np.asarray((points - self.mean).astype(np.result_type(dtype, self.axes)) @ self.axes)

    def classify(self, x: ArrayLike) -> NDArray[Any]:
        r"""Return the class with the nearest center to each point of ``x`` (n, d).

        Large classes are favored. The chosen class $i$ has the largest $\log \pi_i - \tfrac12 \|z -
        z_i\|^2$, where $z$ and $z_i$ are the coordinates of the point and of the center, and
        $\pi_i$ is the share of the class. Only the ``k`` axes kept count. (``predict`` of
        scikit-learn uses ``n_classes - 1`` axes, whatever its ``n_components``.)
        """
        z = self.project(x)  # (n, k)
        centers = (self.centers - self.mean) @ self.axes  # (n_classes, k)
        # (n, n_classes), without the square of z, which is the same for every class
        scores = z @ centers.T - np.square(centers).sum(axis=1) / 2 + np.log(self.priors)
        return np.asarray(self.classes[np.argmax(scores, axis=1)])

    transform, predict = project, classify  # type: ignore[misc]  # scikit-learn's names


def _as_classes(labels: ArrayLike, n: int) -> tuple[NDArray[Any], NDArray[np.intp], FloatArray]:
    """Return the labels that occur, the number of each point's class (n,), and class shares."""
    array = as_array(labels, "labels")
    if array.dtype.kind in "OT":  # objects of one kind, or NumPy's StringDType
        plain = np.array(array.tolist())
        array = plain if np.array_equal(plain, array) else array
    if array.dtype.kind not in "biufUS" or array.shape != (n,) or (array != array).any():
        raise ValueError(
            f"labels must be a number, not NaN, or a string for each of {n} points, "
            f"got dtype {array.dtype} and shape {array.shape}"
        )
    classes, number, counts = np.unique(array, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"labels must name at least two classes, got one, {classes[0]}")
    return classes, number, counts / n


def _mean(points: FloatArray) -> FloatArray:
    """Return the mean point, exact in a coordinate where all points agree.

    Rounding there would look like spread.
    """
    return np.asarray(np.where((points == points[0]).all(axis=0), points[0], points.mean(axis=0)))


def _whitener(deviations: FloatArray) -> FloatArray:
    """Return ``a`` (d, r) with ``a.T @ (deviations.T @ deviations) @ a = I``.

    Directions of no spread are left out.
    """
    spread = np.linalg.norm(deviations, axis=0)
    varies = spread > 0
    s, vt = _right_vectors(deviations[:, varies] / spread[varies])
    wide = s > _NEGLIGIBLE
    whitener = np.zeros((len(spread), np.count_nonzero(wide)))
    whitener[varies] = (vt[wide] / spread[varies]).T / s[wide]
    return whitener


def lda(x: ArrayLike, labels: ArrayLike, k: int | None = None) -> Discriminants:
    r"""Find the axes along which class centers lie farthest apart.

    Distances are relative to the spread within the classes. Let $T_w$ be the scatter within the
    classes, the sum of $(x - m)(x - m)^\top$ over all points $x$, with $m$ the center of the
    point's class, and $T_b$ that of the centers around the mean of all points. The axes solve $T_b
    w = \lambda T_w w$ for the ``k`` largest $\lambda$, scaled so that $w^\top T_w w = n$ (Fisher,
    1936, doi:10.1111/j.1469-1809.1936.tb02137.x, and for more than two classes Rao, 1948,
    doi:10.1111/j.2517-6161.1948.tb00008.x). The computation whitens $T_w$ and truncates the SVD of
    the whitened centers.

    Where $T_w$ is singular, its null directions are *dropped*, as scikit-learn's ``svd`` solver
    does: every coordinate is divided by its standard deviation within the classes, and a principal
    direction of the result is left out if the standard deviation along it is at most 1e-4. So a
    coordinate that is constant within each class does not count, even if it alone would tell the
    classes apart. Shrinkage for few points is in scikit-learn's ``LinearDiscriminantAnalysis``.

    ``labels`` are integers, strings, bytes, bools, or finite floats, at least two different. ``k``
    is between 1 and the number of classes - 1, its default, and at most the number of directions
    that are not dropped.

    >>> x = [[-1, 0], [1, 0], [0, -2], [0, 2], [9, 0], [11, 0], [10, -2], [10, 2]]
    >>> result = lda(x, ["left"] * 4 + ["right"] * 4, k=1)
    >>> result.axes.round(6)  # variance within is 1/2 along the first coordinate
    array([[1.414214],
           [0.      ]])
    >>> result.classify([[4.9, 3], [5.1, -3]])
    array(['left', 'right'], dtype='<U5')
    """
    original = as_matrix(x, "x")
    classes, number, priors = _as_classes(labels, len(original))
    points, dtype = original.astype(np.float64), original.dtype
    centers = np.stack([_mean(points[number == i]) for i in range(len(classes))])  # (n_classes, d)
    mean = priors @ centers
    whitener = _whitener((points - centers[number]) / math.sqrt(len(points)))  # (d, r)
    most, directions = len(classes) - 1, whitener.shape[1]
    rule = "min(classes - 1, directions of spread)"
    k = check_integer(most if k is None else k, "k", 1, min(most, directions), rule)
    between = np.sqrt(priors)[:, np.newaxis] * ((centers - mean) @ whitener)  # (n_classes, r)
    _, s, vt = np.linalg.svd(between, full_matrices=False)
    axes = (whitener @ vt[:k].T).astype(dtype)  # (d, k)
    share = np.square(s / s[0]) if s[0] > 0 else np.zeros_like(s)
    share = share[:k] / max(share.sum(), 1)  # the sum is 0, or at least 1
    return Discriminants(
        axes * _signs_of(axes), share.astype(dtype), mean, centers, classes, priors, names_of(x)
    )
