"""Find the few axes that describe a cloud of points best: those along which it spreads most.

Chapter ``book/02-svd-pca.md``. Letters: ``x`` is (n, d), one point a row; ``k`` (here ``n_components``, scikit-learn's
word) the number of axes kept. PCA is the truncated SVD of the points after their mean is moved to the origin. Matrices
are real, finite and non-empty; float32 is computed in float32, everything else in float64.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import FloatArray, as_matrix, check_integer, check_real
from lowrank_tutor.svd import fix_signs

_TALL = 10  # try the small scatter matrix from this many points for each coordinate on
_SAFE = 1e-5  # and take it if the last variance kept is at least this share of the first: that costs 5 of 16 digits
_ROWS = 2048  # centered at a time: a copy of all points would take longer


class PCA:
    r"""Principal component analysis, with scikit-learn's names and conventions.

    $X - 1\mu^\top = U \Sigma V^\top$: the axes are the rows of $V^\top$, the variance along axis $i$ is
    $\sigma_i^2 / (n - 1)$. scikit-learn's ``clone`` copies it, and a ``Pipeline`` takes it as a step
    before the last. Neither is needed.

    With many points of few coordinates the axes are the eigenvectors of the d by d scatter matrix
    $(X - 1\mu^\top)^\top (X - 1\mu^\top)$, which takes a fraction of the time. That squares the singular values and
    costs the small ones half of their digits, so it is done only if the smallest variance kept is at least 1e-5 of the
    largest.

    Parameters
    ----------
    n_components : int, float or None
        How many axes to keep, between 1 and ``min(n, d)``; or a share of the variance, above 0 and below 1, to be
        exceeded by as few axes as possible; or None for all.

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
        The mean point.
    components_ : ndarray, shape (k, d)
        The axes, orthonormal rows, by falling variance; the largest entry of each is positive.
    explained_variance_ : ndarray, shape (k,)
        Variance along each axis, with divisor ``n - 1``.
    explained_variance_ratio_ : ndarray, shape (k,)
        Its share of the total variance; 0 if all points coincide.
    singular_values_ : ndarray, shape (k,)
        Singular values of the centered points.
    n_components_, n_features_in_ : int
        The number k of axes kept, and the number d of coordinates.

    Examples
    --------
    >>> pca = PCA(1).fit([[0, 0], [1, 2], [2, 4]])
    >>> pca.mean_, pca.explained_variance_
    (array([1., 2.]), array([5.]))
    >>> pca.inverse_transform(pca.transform([[3, 6]]))
    array([[3., 6.]])

    References
    ----------
    Pearson (1901), doi:10.1080/14786440109462720. Hotelling (1933), doi:10.1037/h0071325.
    """

    mean_: FloatArray
    components_: FloatArray
    explained_variance_: FloatArray
    explained_variance_ratio_: FloatArray
    singular_values_: FloatArray
    n_components_: int
    n_features_in_: int

    def __init__(self, n_components: int | float | None = None) -> None:
        self.n_components = _check_components(n_components)

    def __repr__(self) -> str:
        return f"PCA(n_components={self.n_components!s})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as a dict; ``deep`` has no effect."""
        return {"n_components": self.n_components}

    def set_params(self, **params: Any) -> Self:
        """Change ``n_components``, for the next ``fit``, and return the model itself."""
        for name in params:
            if name != "n_components":
                raise ValueError(f"params must be n_components, got {name}")
        self.n_components = _check_components(params.get("n_components", self.n_components))
        return self

    def fit(self, x: ArrayLike, y: object = None) -> Self:
        """Find the mean and the axes of at least two points ``x`` (n, d), and return the model itself.

        ``y`` is ignored; a pipeline passes it on.

        Raises
        ------
        ValueError
            If there is only one point, which has no variance, or if there are fewer points or coordinates than axes to
            keep.
        """
        self._fit(as_matrix(x, "x"))
        return self

    def fit_transform(self, x: ArrayLike, y: object = None) -> FloatArray:
        """Fit, and return the coordinates (n, k) of the points, as ``fit(x).transform(x)`` does."""
        points = as_matrix(x, "x")
        u = self._fit(points)
        return self.transform(points) if u is None else u * self.singular_values_

    def _fit(self, points: FloatArray) -> FloatArray | None:
        """Set the attributes; return the left singular vectors (n, k) if they were computed."""
        n, d = points.shape
        if n < 2:
            raise ValueError(f"x must be two points or more (variance divides by n - 1), got {n}")
        if _is_count(self.n_components):
            check_integer(self.n_components, "n_components", 1, min(n, d), "min(n, d)")
        mean = _mean(points)
        found = _axes_by_scatter(points, mean, self.n_components) if n >= _TALL * d else None
        u, s, vt, share = found or _axes_by_svd(points, mean, self.n_components)
        signs = fix_signs(vt.T)
        self.mean_ = mean
        self.components_ = vt * signs[:, np.newaxis]
        self.explained_variance_ = np.square(s) / (n - 1)
        self.explained_variance_ratio_ = share
        self.singular_values_ = s.copy()
        self.n_components_, self.n_features_in_ = len(s), d
        return None if u is None else u * signs

    def transform(self, x: ArrayLike) -> FloatArray:
        r"""Return the coordinates (n, k) of points ``x`` (n, d) along the axes, $(X - 1\mu^\top) V$.

        Raises
        ------
        ValueError
            If nothing has been fitted yet, or if the points have another number of coordinates.
        """
        coordinates: FloatArray = (self._check_fitted(x, "x", axis=1) - self.mean_) @ self.components_.T
        return coordinates

    def inverse_transform(self, z: ArrayLike) -> FloatArray:
        r"""Return the points (n, d) that have the given coordinates, $Z V^\top + 1\mu^\top$.

        Parameters
        ----------
        z : array_like, shape (n, k)
        """
        points: FloatArray = self._check_fitted(z, "z", axis=0) @ self.components_ + self.mean_
        return points

    def _check_fitted(self, value: ArrayLike, name: str, axis: int) -> FloatArray:
        """Check that there is a fit, and that ``value`` has as many columns as the axes have entries along ``axis``."""
        if not hasattr(self, "components_"):
            raise ValueError(f"{self!r} must be fitted first: call fit(x), got no fit yet")
        matrix = as_matrix(value, name)
        columns = self.components_.shape[axis]
        if matrix.shape[1] != columns:
            raise ValueError(f"{name} must have {columns} columns, got shape {matrix.shape}")
        return matrix


class _Axes(NamedTuple):
    """``u`` (n, k) if it was computed, ``s`` (k,), ``vt`` (k, d), and the share of the variance along each axis."""

    u: FloatArray | None
    s: FloatArray
    vt: FloatArray
    share: FloatArray


def _axes_by_svd(points: FloatArray, mean: FloatArray, wanted: int | float | None) -> _Axes:
    u, s, vt = np.linalg.svd(points - mean, full_matrices=False)
    share = np.square(s / (s[0] or 1))  # of the largest variance; all 0 where there is none
    share /= max(share.sum(), 1)  # the sum is 0, or at least 1
    k = _how_many(share, wanted)
    return _Axes(u[:, :k], s[:k], vt[:k], share[:k])


def _axes_by_scatter(points: FloatArray, mean: FloatArray, wanted: int | float | None) -> _Axes | None:
    """Take the eigenvectors of the scatter matrix (d, d), in float64; None if that would cost too many digits."""
    center, d = mean.astype(np.float64), len(mean)
    blocks = (points[i : i + _ROWS] - center for i in range(0, len(points), _ROWS))
    squares, vectors = np.linalg.eigh(sum((block.T @ block for block in blocks), start=np.zeros((d, d))))
    squares = np.maximum(squares[::-1], 0)
    if squares[0] == 0:
        return None
    share = squares / squares.sum()
    k = _how_many(share, wanted)
    if share[k - 1] < _SAFE * share[0]:
        return None
    s, vt, share = (part.astype(points.dtype) for part in (np.sqrt(squares[:k]), vectors.T[::-1][:k], share[:k]))
    return _Axes(None, s, vt, share)


def _how_many(share: FloatArray, wanted: int | float | None) -> int:
    """Return how many axes are kept, given all shares of the variance."""
    if _is_count(wanted):
        return int(wanted)  # type: ignore[arg-type]
    if wanted is None:
        return len(share)
    return min(int(np.searchsorted(np.cumsum(share), wanted, side="right")) + 1, len(share))


def _mean(points: FloatArray) -> FloatArray:
    """Return the mean point; that of equal numbers may miss them by a rounding, which would then look like variance."""
    mean: FloatArray = points.mean(axis=0)
    for j in np.flatnonzero(points[0] == points[-1]):
        if (points[:, j] == points[0, j]).all():
            mean[j] = points[0, j]
    return mean


def _is_count(value: object) -> bool:
    return value is not None and not isinstance(value, float | np.floating)


def _check_components(value: Any) -> Any:
    """Return the setting as it came, which scikit-learn's ``clone`` insists on, or refuse it."""
    if _is_count(value):
        check_integer(value, "n_components", 1)
    elif value is not None and not 0 < check_real(value, "n_components", "above 0 and below 1", 0.0, 1.0):
        raise ValueError(f"n_components must be above 0 and below 1, got {value}")
    return value
