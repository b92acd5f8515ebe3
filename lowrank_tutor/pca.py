"""Which few axes describe a cloud of points best? Those along which it spreads most.

Chapter ``book/02-svd-pca.md``. Letters: ``x`` is (n, d), one point a row; ``k`` (here ``n_components``, scikit-learn's
word) the number of axes kept. PCA is the truncated SVD of the points after their mean is moved to the origin. Matrices
are real, finite and non-empty; float32 is computed in float32, everything else in float64.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import FloatArray, as_matrix, check_choice, check_integer, check_real
from lowrank_tutor.svd import fix_signs

_TALL = 10  # from so many points for each coordinate on, the small scatter matrix is tried first
_SAFE = 1e-5  # and taken if the last variance kept is at least this share of the first: of 16 digits it costs 5
_BLOCK = 1 << 15  # numbers centered at a time, which stay in the processor's cache


class PCA:
    r"""Principal component analysis, with scikit-learn's names and conventions.

    $X - 1\mu^\top = U \Sigma V^\top$: the axes are the rows of $V^\top$, the variance along axis $i$ is
    $\sigma_i^2 / (n - 1)$. It goes into scikit-learn's ``Pipeline``, ``GridSearchCV`` and ``clone``, and does not need
    scikit-learn.

    Many points of few coordinates are not decomposed themselves: the axes are the eigenvectors of the d by d matrix
    $(X - 1\mu^\top)^\top (X - 1\mu^\top)$, in a fraction of the time. That squares the singular values, and costs the
    small ones half of their digits. It is done where the smallest variance kept is at least 1e-5 of the largest.

    Parameters
    ----------
    n_components : int, float or None
        How many axes to keep, between 1 and ``min(n, d)``; or the share of the variance, above 0 and below 1, that the
        axes kept must exceed, as few as it takes; or None for all.

    Attributes
    ----------
    mean_ : ndarray, shape (d,)
        The mean point.
    components_ : ndarray, shape (k, d)
        The axes, orthonormal rows, by falling variance; the largest entry of each is positive.
    explained_variance_ : ndarray, shape (k,)
        Variance along each axis, with divisor ``n - 1``.
    explained_variance_ratio_ : ndarray, shape (k,)
        Its share of the total variance; 0 where all points coincide and there is none to share.
    singular_values_ : ndarray, shape (k,)
        Singular values of the centered points.
    n_components_ : int
        How many axes were kept.
    n_features_in_ : int
        The number d of coordinates.
    feature_names_in_ : ndarray of str, shape (d,)
        The names of the columns, if the points came as a data frame whose columns have words for names.

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
    feature_names_in_: NDArray[np.object_]
    _sklearn_output_config: dict[str, str]  # the name that scikit-learn's ``clone`` copies

    def __init__(self, n_components: int | float | None = None) -> None:
        self.n_components = _check_components(n_components)

    def __repr__(self) -> str:
        return f"PCA(n_components={self.n_components!s})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, as scikit-learn asks for them.

        Parameters
        ----------
        deep : bool
            Without effect: no setting has settings of its own.

        Returns
        -------
        dict
        """
        return {"n_components": self.n_components}

    def set_params(self, **params: Any) -> Self:
        """Change settings, as scikit-learn does; the next ``fit`` obeys them.

        Parameters
        ----------
        **params : int, float or None
            ``n_components``.

        Returns
        -------
        PCA
            Itself.
        """
        for name in params:
            if name != "n_components":
                raise ValueError(f"params must be n_components, got {name}")
        self.n_components = _check_components(params.get("n_components", self.n_components))
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` and `fit_transform` return, as scikit-learn does for a whole pipeline.

        Without it they obey scikit-learn's ``set_config(transform_output=...)`` where scikit-learn is loaded.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            An array, or a data frame of that library with the columns pca0, pca1 and so on; None changes nothing.

        Returns
        -------
        PCA
            Itself.
        """
        if transform is not None:
            check_choice(transform, "transform", ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}
        return self

    def fit(self, x: ArrayLike, y: object = None) -> Self:
        """Find the mean and the axes of the points.

        Parameters
        ----------
        x : array_like, shape (n, d)
            At least two points, one a row.
        y : object
            Not looked at; a pipeline hands it on.

        Returns
        -------
        PCA
            Itself.

        Raises
        ------
        ValueError
            If there is one point only, which has no variance, or if there are fewer points or coordinates than axes to
            keep.
        """
        self._fit(as_matrix(x, "x"), _names(x))
        return self

    def fit_transform(self, x: ArrayLike, y: object = None) -> FloatArray:
        """Fit, and return the points' coordinates, (n, k); the same as ``fit(x).transform(x)``.

        Parameters
        ----------
        x : array_like, shape (n, d)
            At least two points, one a row.
        y : object
            Not looked at; a pipeline hands it on.

        Returns
        -------
        ndarray, shape (n, k)
        """
        points = as_matrix(x, "x")
        u = self._fit(points, _names(x))
        framed: FloatArray = self._framed(self._coordinates(points) if u is None else u * self.singular_values_, x)
        return framed

    def _fit(self, points: FloatArray, names: NDArray[np.object_] | None) -> FloatArray | None:
        """Set the attributes; return the left singular vectors, (n, k), where they were found on the way."""
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
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        return None if u is None else u * signs

    def transform(self, x: ArrayLike) -> FloatArray:
        r"""Return the coordinates of points along the axes, $(X - 1\mu^\top) V$.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Any number of points.

        Returns
        -------
        ndarray, shape (n, k)
            Or a data frame, see `set_output`.

        Raises
        ------
        ValueError
            If nothing was fitted yet; where scikit-learn is loaded its ``NotFittedError``, which is a ValueError. Or if
            ``x`` is a data frame whose columns have other names than those of the fit, or another order.
        """
        points = self._check_fitted(x, "x", axis=1)
        names, known = _names(x), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and not np.array_equal(names, known):
            raise ValueError(f"x must have the columns of the fit in their order, {list(known)}, got {list(names)}")
        framed: FloatArray = self._framed(self._coordinates(points), x)
        return framed

    def _framed(self, coordinates: FloatArray, x: Any) -> Any:
        """Make a data frame of the coordinates if one was asked for, with the index of ``x`` if that is one."""
        everywhere = sys.modules.get("sklearn")
        config = everywhere.get_config()["transform_output"] if everywhere else "default"
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", config)
        if kind == "default":
            return coordinates
        frame, names = import_module(kind).DataFrame, list(self.get_feature_names_out())
        if kind == "polars":
            return frame(coordinates, schema=names)
        return frame(coordinates, columns=names, index=x.index if isinstance(x, frame) else None)

    def _coordinates(self, points: FloatArray) -> FloatArray:
        """Multiply block by block: a centered copy of all points would take longer to make than the product."""
        coordinates = np.empty((len(points), len(self.components_)), np.result_type(points, self.mean_))
        for rows, block in _centered(points, self.mean_, coordinates.dtype):
            np.matmul(block, self.components_.T, out=coordinates[rows])
        return coordinates

    def inverse_transform(self, z: ArrayLike) -> FloatArray:
        r"""Return the points that have the given coordinates, $Z V^\top + 1\mu^\top$.

        Parameters
        ----------
        z : array_like, shape (n, k)
            Coordinates along the axes, as `transform` gives them.

        Returns
        -------
        ndarray, shape (n, d)
        """
        coordinates = self._check_fitted(z, "z", axis=0)
        points: FloatArray = coordinates @ self.components_ + self.mean_
        return points

    def _check_fitted(self, value: ArrayLike, name: str, axis: int) -> FloatArray:
        """Check that there is a fit, and that ``value`` has as many columns as the axes have entries along ``axis``."""
        self._insist_on_fit()
        matrix = as_matrix(value, name)
        columns = self.components_.shape[axis]
        if matrix.shape[1] != columns:
            raise ValueError(f"{name} must have {columns} columns, got shape {matrix.shape}")
        return matrix

    def _insist_on_fit(self) -> None:
        if not hasattr(self, "components_"):
            raise _not_fitted_error()(f"{self!r} must be fitted first: call fit(x), got no fit yet")

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Return names for the axes: pca0, pca1 and so on.

        Parameters
        ----------
        input_features : object
            Not looked at.

        Returns
        -------
        ndarray of str, shape (k,)
        """
        self._insist_on_fit()
        return np.array([f"pca{i}" for i in range(self.n_components_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn, which alone asks, what kind of estimator this is."""
        utils = import_module("sklearn.utils")
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(),
        )


class _Axes(NamedTuple):
    """What is kept: ``u`` (n, k) where it is known, ``s`` (k,), ``vt`` (k, d), and each one's share of the variance."""

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
    """Take the eigenvectors of the scatter matrix, (d, d), in float64; None where that would cost digits."""
    squares, vectors = np.linalg.eigh(_scatter(points, mean))
    squares = np.maximum(squares[::-1], 0)
    if squares[0] == 0:
        return None
    share = squares / squares.sum()
    k = _how_many(share, wanted)
    if share[k - 1] < _SAFE * share[0]:
        return None
    s, vt, share = (part.astype(points.dtype) for part in (np.sqrt(squares[:k]), vectors.T[::-1][:k], share[:k]))
    return _Axes(None, s, vt, share)


def _scatter(points: FloatArray, mean: FloatArray) -> FloatArray:
    r"""Return $(X - 1\mu^\top)^\top (X - 1\mu^\top)$ in float64.

    It is $X^\top X - n \mu\mu^\top$ too, which needs no centered copy. That difference is taken where the mean holds at
    most half of $\|X\|_F^2$, so that it costs no digit.
    """
    if points.dtype == np.float64 and 2 * len(points) * (mean @ mean) <= np.linalg.norm(points) ** 2:
        return points.T @ points - len(points) * np.outer(mean, mean)
    scatter = np.zeros((points.shape[1],) * 2)
    for _, block in _centered(points, mean, scatter.dtype):
        scatter += block.T @ block
    return scatter


def _centered(points: FloatArray, mean: FloatArray, dtype: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some rows at a time, and these points less the mean, always in the same memory."""
    count = max(1, _BLOCK // points.shape[1])
    buffer = np.empty((min(count, len(points)), points.shape[1]), dtype)
    for start in range(0, len(points), count):
        rows = slice(start, min(start + count, len(points)))
        yield rows, np.subtract(points[rows], mean, out=buffer[: rows.stop - start])


def _names(x: Any) -> NDArray[np.object_] | None:
    """Return the names of the columns of a data frame if all are words, as scikit-learn does; else None."""
    columns = getattr(x, "columns", None)
    words = columns is not None and all(isinstance(name, str) for name in columns)
    return np.array(list(columns), dtype=object) if words else None  # type: ignore[arg-type]


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


def _not_fitted_error() -> type[ValueError]:
    """Return scikit-learn's own error where it is loaded: whoever catches that has loaded it."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return theirs if isinstance(theirs, type) else ValueError
