"""Find the axes that describe a cloud of points best, those along which it spreads most.

Chapter ``book/02-svd-pca.md``. Letters: ``x`` (n, d) holds one point a row, ``z`` (n, k) their
coordinates; ``k``, here ``n_components`` as in scikit-learn, is the number of axes kept. PCA is the
truncated SVD of the points after their mean is moved to the origin. Matrices are real, finite and
non-empty. Float32 gives float32, everything else float64; all is computed in float64.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    as_new_rows,
    check_bool,
    check_fraction,
    check_integer,
    names_of,
)
from lowrank_tutor.rank import _tolerance
from lowrank_tutor.svd import _signs_of

__all__ = ["PCA"]

_TALL = 10  # points for each coordinate from which on the small scatter matrix is tried
# It is used if the last variance kept is at least this share of the first: that costs 5 of 16
# digits.
_SAFE = 1e-5


class PCA:
    r"""Principal component analysis, with scikit-learn's names and conventions.

    $X - 1\bar{x}^\top = U \Sigma V^\top$: the axes are the rows of $V^\top$, the variance along
    axis $i$ is $\sigma_i^2 / (n - 1)$. Sources: Pearson (1901), doi:10.1080/14786440109462720;
    Hotelling (1933), doi:10.1037/h0071325. scikit-learn's ``clone`` copies it, and a ``Pipeline``
    takes it as a step. Of its ``check_estimator``, seven checks fail: six ask for other words in an
    error, and one for arrays of objects. There is no ``set_output``. For points that are sparse or
    come in parts, take scikit-learn's ``PCA`` or ``IncrementalPCA``. Gaps can be filled first:
    ``m = np.nanmean(x, axis=0)``, then ``factorize_ratings(x - m, None, k).estimates + m``
    (:mod:`~lowrank_tutor.factorization`), after dividing ``x`` by
    ``np.nanstd(x, axis=0)`` if units differ.

    Parameters
    ----------
    n_components : int, float or None
        How many axes to keep, between 1 and ``min(n, d)``; or a share of the variance, above 0 and
        below 1, so that as few axes as possible exceed it by more than rounding (all of them where
        none do, as where all points coincide); or None for all.
    whiten : bool
        Whether to divide each coordinate by its standard deviation. Axes without spread are then
        refused.

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
        The mean point, in float64: rounded to float32, it could be off by more than the points
        spread.
    components_ : ndarray, shape (k, d)
        The axes, orthonormal rows, by falling variance; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray, shape (k,)
        Variance along each axis, with divisor ``n - 1``; its share of the total (0 if all points
        coincide); and the singular values of the centered points.

    Examples
    --------
    >>> pca = PCA(1).fit([[0, 0], [1, 2], [2, 4]])
    >>> pca.mean_, pca.explained_variance_, pca.inverse_transform(pca.transform([[3, 6]]))
    (array([1., 2.]), array([5.]), array([[3., 6.]]))
    """

    def __init__(self, n_components: int | float | None = None, *, whiten: bool = False) -> None:
        self.n_components = n_components
        self.whiten = whiten

    def __repr__(self) -> str:
        return f"PCA(n_components={self.n_components!s}{', whiten=True' * self.whiten})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as a dict; only scikit-learn uses ``deep``."""
        return {"n_components": self.n_components, "whiten": self.whiten}

    def set_params(self, **params: Any) -> Self:
        """Change settings, for the next ``fit``, and return the model itself."""
        PCA.__init__(self, **self.get_params() | params)
        return self

    def __sklearn_tags__(self) -> Any:
        """Describe the model to scikit-learn, as a pipeline that ends in it requires."""
        utils = import_module("sklearn.utils")
        no_target, transformer = utils.TargetTags(required=False), utils.TransformerTags()
        return utils.Tags(estimator_type=None, target_tags=no_target, transformer_tags=transformer)

    def fit(self, x: ArrayLike, y: object = None) -> Self:
        """Find the mean and the axes of at least two points, and return the model itself.

        ``y`` is ignored. If ``x`` is a table with names of columns, `transform` refuses one with
        other names, or in another order.
        """
        points = as_matrix(x, "x")
        n, d = points.shape
        if n < 2:
            raise ValueError(f"x must be two points or more, got {n}")
        if isinstance(self.n_components, float | np.floating):
            check_fraction(self.n_components, "n_components")
        elif self.n_components is not None:
            check_integer(self.n_components, "n_components", 1, min(n, d), "min(n, d)")
        whiten = check_bool(self.whiten, "whiten")
        mean = points.mean(axis=0, dtype=np.float64)
        centered = points - mean
        rest = centered.mean(axis=0)  # what rounding took from a long sum of large numbers
        self.mean_ = mean + rest
        s, vt = _right_vectors(centered - rest, self.n_components)
        share = np.square(s / (s[0] or 1))  # of the largest variance; all 0 where there is none
        share /= max(share.sum(), 1)  # the sum is 0, or at least 1
        k = _how_many(share, self.n_components)
        spread = int(np.count_nonzero(s > _tolerance(None, points, s[0])))
        if whiten and k > spread:
            raise ValueError(f"n_components must be at most {spread}, to whiten, got {k}")
        axes = vt[:k].astype(points.dtype)
        self.components_ = axes * _signs_of(axes.T)[:, np.newaxis]
        self.explained_variance_ratio_ = share[:k].astype(points.dtype)
        self.singular_values_ = s[:k].astype(points.dtype)
        self.explained_variance_ = np.square(self.singular_values_) / (n - 1)
        self._units = np.sqrt(self.explained_variance_) if whiten else axes.dtype.type(1)
        self.n_components_ = k
        self.n_features_in_ = d
        self._columns = names_of(x)
        return self

    def fit_transform(self, x: ArrayLike, y: object = None) -> FloatArray:
        """Fit, and return the coordinates (n, k) of the points themselves."""
        return self.fit(x).transform(x)

    def transform(self, x: ArrayLike) -> FloatArray:
        r"""Return coordinates (n, k) of points (n, d) along the axes, $(X - 1\bar{x}^\top) V$."""
        self._check_fit()
        points, dtype = as_new_rows(x, "x", self.n_features_in_, self._columns)
        wider = np.result_type(dtype, self.components_)
        coordinates: FloatArray = (points - self.mean_).astype(wider) @ self.components_.T
        return coordinates / self._units

    def inverse_transform(self, z: ArrayLike) -> FloatArray:
        r"""Return the points (n, d) with coordinates ``z`` (n, k), $Z V^\top + 1\bar{x}^\top$."""
        self._check_fit()
        coordinates, dtype = as_new_rows(z, "z", len(self.components_))
        points: FloatArray = (coordinates * self._units) @ self.components_ + self.mean_
        return points.astype(np.result_type(dtype, self.components_))

    def _check_fit(self) -> None:
        if not hasattr(self, "components_"):
            raise ValueError(f"{self!r} must be fitted first: call fit(x), got no fit yet")


def _right_vectors(
    a: FloatArray, wanted: int | float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return all singular values, largest first, and right vectors as rows.

    They are accurate for those that are ``wanted``. With many rows they come from the scatter
    matrix ``a.T @ a``, which is faster, unless its squares hide a value that is wanted.
    """
    if len(a) >= _TALL * a.shape[1] > 0:
        squares, vectors = np.linalg.eigh(a.T @ a)
        squares = np.maximum(squares[::-1], 0)
        if squares[_how_many(squares / (squares.sum() or 1), wanted) - 1] > _SAFE * squares[0]:
            return np.sqrt(squares), vectors.T[::-1]
    _, s, vt = np.linalg.svd(a, full_matrices=False)
    return s, vt


def _how_many(share: FloatArray, wanted: int | float | None) -> int:
    """Count the axes to keep, from all shares of the variance."""
    if not isinstance(wanted, float | np.floating):
        return len(share) if wanted is None else int(wanted)
    least = float(wanted) + 10 * len(share) * float(np.finfo(np.float64).eps)  # a tie is no excess
    return min(int(np.searchsorted(np.cumsum(share), least, side="right")) + 1, len(share))
