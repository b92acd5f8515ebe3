"""Which few axes describe a cloud of points best? Those along which it spreads most.

Chapter ``book/02-svd-pca.md``. Letters: ``x`` is (n, d), one point a row; ``k`` (here ``n_components``, scikit-learn's
word) the number of axes kept. PCA is the truncated SVD of the points after their mean is moved to the origin. Matrices
are real, finite and non-empty; float32 is computed in float32, everything else in float64.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import FloatArray, as_matrix, check_integer, check_rank
from lowrank_tutor.svd import fix_signs


class PCA:
    r"""Principal component analysis, with scikit-learn's names and conventions.

    $X - 1\mu^\top = U \Sigma V^\top$: the axes are the rows of $V^\top$, the variance along axis $i$ is
    $\sigma_i^2 / (n - 1)$.

    Parameters
    ----------
    n_components : int
        How many axes to keep, between 1 and ``min(n, d)``.

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

    def __init__(self, n_components: int) -> None:
        self.n_components = check_integer(n_components, "n_components", 1)

    def __repr__(self) -> str:
        return f"PCA(n_components={self.n_components})"

    def fit(self, x: ArrayLike) -> Self:
        """Find the mean and the axes of the points.

        Parameters
        ----------
        x : array_like, shape (n, d)
            At least two points, one a row.

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
        self._fit(x)
        return self

    def fit_transform(self, x: ArrayLike) -> FloatArray:
        """Fit, and return the points' coordinates, (n, k); the same as ``fit(x).transform(x)``.

        Parameters
        ----------
        x : array_like, shape (n, d)
            At least two points, one a row.

        Returns
        -------
        ndarray, shape (n, k)
        """
        u = self._fit(x)
        return u * self.singular_values_

    def _fit(self, x: ArrayLike) -> FloatArray:
        """Set the attributes and return the left singular vectors, (n, k)."""
        points = as_matrix(x, "x")
        n = points.shape[0]
        if n < 2:
            raise ValueError(f"x must be two points or more (variance divides by n - 1), got {n}")
        k = check_rank(self.n_components, points.shape, "n_components")
        # The mean of equal numbers may miss them by a rounding, which would then look like variance.
        mean = np.where((points == points[0]).all(axis=0), points[0], points.mean(axis=0))
        u, s, vt = np.linalg.svd(points - mean, full_matrices=False)
        signs = fix_signs(vt[:k].T)
        share = np.square(s / (s[0] or 1))  # of the largest variance; all 0 where there is none
        self.mean_ = mean
        self.components_ = vt[:k] * signs[:, np.newaxis]
        self.explained_variance_ = np.square(s[:k]) / (n - 1)
        self.explained_variance_ratio_ = share[:k] / max(share.sum(), 1)  # the sum is 0, or at least 1
        self.singular_values_ = s[:k].copy()
        return u[:, :k] * signs

    def transform(self, x: ArrayLike) -> FloatArray:
        r"""Return the coordinates of points along the axes, $(X - 1\mu^\top) V$.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Any number of points.

        Returns
        -------
        ndarray, shape (n, k)

        Raises
        ------
        ValueError
            If nothing was fitted yet.
        """
        points = self._check_fitted(x, "x", axis=1)
        coordinates: FloatArray = (points - self.mean_) @ self.components_.T
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
        if not hasattr(self, "components_"):
            raise ValueError(f"{self!r} must be fitted first: call fit(x), got no fit yet")
        matrix = as_matrix(value, name)
        columns = self.components_.shape[axis]
        if matrix.shape[1] != columns:
            raise ValueError(f"{name} must have {columns} columns, got shape {matrix.shape}")
        return matrix
