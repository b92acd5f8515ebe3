"""What does a bilinear score cost, and which factors of its matrix keep it best? In NumPy; letters as in `bilinear`."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    as_vectors,
    check_integer,
    check_rank,
    check_real,
    check_rng,
    check_size,
)
from lowrank_tutor.svd import fix_signs, truncated_svd


class Factors(NamedTuple):
    """Factors of a score, ``w ~ u.T @ v``.

    Attributes
    ----------
    u : ndarray, shape (k, d2)
        What is kept of the query.
    v : ndarray, shape (k, d1)
        What is kept of the key.
    """

    u: FloatArray
    v: FloatArray


class Fit(NamedTuple):
    """Factors found by gradient descent, ``target ~ u @ v.T``.

    Attributes
    ----------
    u : ndarray, shape (n, k)
        One row for each row of the target.
    v : ndarray, shape (m, k)
        One row for each column.
    losses : ndarray, shape (steps + 1,)
        The loss before the first step and after each.
    """

    u: FloatArray
    v: FloatArray
    losses: FloatArray


class CosineFactors(NamedTuple):
    """A matrix as a constant times a matrix of cosines, ``a = scale * x @ y.T``.

    Attributes
    ----------
    x : ndarray, shape (m, p)
        Rows of length 1.
    y : ndarray, shape (n, p)
        Rows of length 1.
    scale : float
        At least the largest entry of the matrix.
    """

    x: FloatArray
    y: FloatArray
    scale: float


def _as_vectors_along(value: ArrayLike, name: str, matrix: FloatArray, matrix_name: str, axis: int) -> FloatArray:
    """Return one vector or many, each as long as ``matrix`` has entries along ``axis``."""
    vectors = as_vectors(value, name)
    if vectors.shape[-1] != matrix.shape[axis]:
        side = ("rows", "columns")[axis]
        raise ValueError(
            f"{name} must be as long as {matrix_name} has {side}, got shapes {vectors.shape} and {matrix.shape}"
        )
    return vectors


def _as_factors(u: ArrayLike, v: ArrayLike) -> Factors:
    """Return two matrices with equally many rows."""
    factors = Factors(as_matrix(u, "u"), as_matrix(v, "v"))
    if len(factors.u) != len(factors.v):
        raise ValueError(f"u and v must have equally many rows, got shapes {factors.u.shape} and {factors.v.shape}")
    return factors


def _check_pairs(query: FloatArray, key: FloatArray) -> None:
    """Refuse queries and keys that are not pairs, unless one of the two is a single vector."""
    if query.ndim > 1 and key.ndim > 1 and query.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"s and h must have the same leading axes, or one of them be a single vector, "
            f"got shapes {query.shape} and {key.shape}"
        )


def _float_or_array(scores: FloatArray) -> float | FloatArray:
    return float(scores) if scores.ndim == 0 else scores


def score(s: ArrayLike, w: ArrayLike, h: ArrayLike) -> float | FloatArray:
    r"""Compare a query with a key: the bilinear, or multiplicative, score.

    $e = s^\top W h$.

    Parameters
    ----------
    s : array_like, shape (..., d2)
        One query, or many.
    w : array_like, shape (d2, d1)
        How much each pair of coordinates counts.
    h : array_like, shape (..., d1)
        One key, or many. The leading axes are those of ``s``, pair by pair, or one of the two is a single vector;
        nothing else is broadcast. All queries (n, d2) against all keys (m, d1) are ``s @ w @ h.T``.

    Returns
    -------
    float or ndarray, shape (...)
        A float for two single vectors.

    Examples
    --------
    >>> score([1, 2], [[2, -2], [1, -1]], [3, 4])
    -4.0
    >>> score([1, 2], [[2, -2], [1, -1]], [[3, 4], [4, 3]])  # one query, two keys
    array([-4.,  4.])

    References
    ----------
    Luong, Pham and Manning (2015), arXiv:1508.04025, the score called "general".
    """
    matrix = as_matrix(w, "w")
    query = _as_vectors_along(s, "s", matrix, "w", axis=0)
    key = _as_vectors_along(h, "h", matrix, "w", axis=1)
    _check_pairs(query, key)

    return _float_or_array(((query @ matrix) * key).sum(axis=-1))


def reduced_rank_score(s: ArrayLike, u: ArrayLike, v: ArrayLike, h: ArrayLike) -> float | FloatArray:
    r"""Compare a query with a key in a space of ``k`` dimensions that both are sent to.

    $e = (U s)^\top (V h) = s^\top (U^\top V) h$.

    Parameters
    ----------
    s : array_like, shape (..., d2)
        One query, or many.
    u : array_like, shape (k, d2)
        The factor that meets ``s``.
    v : array_like, shape (k, d1)
        The factor that meets ``h``.
    h : array_like, shape (..., d1)
        One key, or many; leading axes as in `score`.

    Returns
    -------
    float or ndarray, shape (...)
        A float for two single vectors.

    Examples
    --------
    >>> reduced_rank_score([1, 2], [[2, 1]], [[1, -1]], [3, 4])
    -4.0

    References
    ----------
    Britz, Guan and Luong (2017), arXiv:1706.03872, compare this form with others in translation.
    """
    left, right = _as_factors(u, v)
    query = _as_vectors_along(s, "s", left, "u", axis=1)
    key = _as_vectors_along(h, "h", right, "v", axis=1)
    _check_pairs(query, key)

    return _float_or_array(((query @ left.T) * (key @ right.T)).sum(axis=-1))


def multiplications(d2: int, d1: int, k: int) -> tuple[int, int]:
    r"""Count the multiplications of one score through the matrix and through its factors.

    $d_1 d_2 + \min(d_1, d_2)$ against $k (d_1 + d_2) + k$. Where the products of each vector are kept, only the last
    term is left: $k$ against $\min(d_1, d_2)$ or the other width, whichever side was kept.

    Parameters
    ----------
    d2, d1 : int
        Lengths of the query and of the key, at least 1.
    k : int
        The rank kept, between 1 and ``min(d2, d1)``.

    Returns
    -------
    full : int
        $(s^\top W) h$ or $s^\top (W h)$, whichever takes fewer.
    factored : int
        $(U s)^\top (V h)$.

    Examples
    --------
    >>> multiplications(2, 2, 1), multiplications(512, 512, 64)
    ((6, 5), (262656, 65600))
    """
    d2 = check_integer(d2, "d2", 1)
    d1 = check_integer(d1, "d1", 1)
    k = check_integer(k, "k", 1, min(d2, d1), "min(d2, d1)")
    return d2 * d1 + min(d2, d1), k * (d2 + d1) + k


class _Moment(NamedTuple):
    r"""A second moment taken apart, $A = D (Q \Lambda Q^\top) D$: of what is in brackets the diagonal is 1 (or 0).

    So coordinates in very different units do not drown each other in rounding. ``sizes`` (d,) are the diagonal of $D$,
    ``values`` (r,) and ``axes`` (d, r) what is not zero of $\Lambda$ and its part of $Q$.
    """

    sizes: FloatArray
    values: FloatArray
    axes: FloatArray


def _as_moment(value: ArrayLike | None, d: int, name: str) -> _Moment:
    """Take a second moment, (d, d), apart; without one it is the identity."""
    if value is None:
        return _Moment(np.ones(d), np.ones(d), np.eye(d))
    given = as_matrix(value, name)
    if given.shape != (d, d):
        raise ValueError(f"{name} must be of shape {(d, d)} to match w, got shape {given.shape}")
    a, rounding = given.astype(np.float64, copy=False), float(np.finfo(given.dtype).eps)
    if (np.diag(a) < 0).any():
        raise ValueError(f"{name} must be positive semidefinite, got {np.diag(given).min()} on its diagonal")
    zero = np.diag(a) == 0
    if a[zero].any() or a[:, zero].any():
        raise ValueError(f"{name} must be positive semidefinite, got a zero on its diagonal in a row that is not zero")
    sizes = np.sqrt(np.where(zero, 1, np.diag(a)))
    scaled = a / sizes[:, np.newaxis] / sizes
    gap = np.abs(scaled - scaled.T)
    if gap.max() > math.sqrt(rounding):
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(f"{name} must be symmetric, got {given[i, j]} and {given[j, i]} across the diagonal")
    values, axes = np.linalg.eigh((scaled + scaled.T) / 2)
    if values[0] < -math.sqrt(rounding) * d:
        raise ValueError(f"{name} must be positive semidefinite, got the eigenvalue {values[0]:.3g} (at unit diagonal)")
    kept = values > 8 * d * rounding * values[-1]
    return _Moment(sizes, values[kept], axes[:, kept])


def _root(moment: _Moment) -> tuple[FloatArray, FloatArray]:
    r"""Return $R$, (r, d), with $A = R^\top R$, and its pseudo-inverse, (d, r)."""
    sizes, values, axes = moment
    root = np.sqrt(values)[:, np.newaxis] * axes.T * sizes
    inverse = axes / np.sqrt(values) / sizes[:, np.newaxis]
    if len(values) == len(sizes):
        return root, inverse
    # Of all inverses, the one that stays within the directions seen; then what rounding moved is mended.
    basis = np.linalg.qr(root.T)[0]
    within = basis @ (basis.T @ inverse)
    return root, within + inverse @ (np.eye(len(root)) - root @ within)


def factorize(w: ArrayLike, k: int, *, s_moment: ArrayLike | None = None, h_moment: ArrayLike | None = None) -> Factors:
    r"""Return the best factors of rank ``k``, for the matrix or for the scores that it gives.

    Without moments $U^\top V = W_k$, nearest to $W$ in the Frobenius norm. With the second moments
    $A = E\,s s^\top$ and $B = E\,h h^\top$ of independent ``s`` and ``h`` it is

    $$M = A^{-1/2} \left[ A^{1/2} W B^{1/2} \right]_k B^{-1/2},$$

    which makes the mean squared error of the scores, $E\,(s^\top (W - M) h)^2$, the least possible. The moments are
    *not* centered: a mean different from zero counts. Where they are singular, pseudo-inverses take the place of the
    inverses; the error is still the least, and $M$ is zero on directions in which no vector ever points. A missing
    moment counts as the identity.

    Parameters
    ----------
    w : array_like, shape (d2, d1)
        Real and finite.
    k : int
        The rank kept, between 1 and ``min(d2, d1)``.
    s_moment : array_like, shape (d2, d2), optional
        $E\,s s^\top$, for samples (n, d2) ``s.T @ s / n``. Symmetric to half the digits; positive semidefinite.
    h_moment : array_like, shape (d1, d1), optional
        $E\,h h^\top$.

    Returns
    -------
    u : ndarray, shape (k, d2)
        The largest entry of each row is positive.
    v : ndarray, shape (k, d1)
        $U A U^\top$ and $V B V^\top$ are one diagonal matrix, the singular values kept of $A^{1/2} W B^{1/2}$.

    Examples
    --------
    >>> u, v = factorize([[2, 0], [0, 1]], k=1)
    >>> u.T @ v
    array([[2., 0.],
           [0., 0.]])
    >>> u, v = factorize([[2, 0], [0, 1]], k=1, s_moment=[[1, 0], [0, 9]])  # the second coordinate of s is larger
    >>> (u.T @ v).round(12)
    array([[0., 0.],
           [0., 1.]])

    References
    ----------
    Eckart and Young (1936), doi:10.1007/BF02288367, after a change of variables.
    """
    matrix = as_matrix(w, "w")
    k = check_integer(k, "k", 1, min(matrix.shape), "min(d2, d1)")
    (d2, d1), dtype = matrix.shape, matrix.dtype
    root_a, inverse_a = _root(_as_moment(s_moment, d2, "s_moment"))
    root_b, inverse_b = _root(_as_moment(h_moment, d1, "h_moment"))

    x, sigma, yt = np.linalg.svd(root_a @ matrix @ root_b.T, full_matrices=False)
    kept = min(k, len(sigma))  # fewer directions than k may ever be seen
    u, v = np.zeros((d2, k)), np.zeros((d1, k))
    u[:, :kept] = inverse_a @ (x[:, :kept] * np.sqrt(sigma[:kept]))
    v[:, :kept] = inverse_b @ (yt[:kept].T * np.sqrt(sigma[:kept]))
    signs = fix_signs(u)
    return Factors((u * signs).T.astype(dtype), (v * signs).T.astype(dtype))


def score_error(
    w: ArrayLike,
    u: ArrayLike,
    v: ArrayLike,
    *,
    s_moment: ArrayLike | None = None,
    h_moment: ArrayLike | None = None,
) -> float:
    r"""Return by how much the scores are off when factors replace the matrix, root mean square.

    $\sqrt{E\,(s^\top (W - U^\top V) h)^2} = \|A^{1/2} (W - U^\top V) B^{1/2}\|_F$ for independent ``s`` and ``h`` with
    second moments $A = E\,s s^\top$ and $B = E\,h h^\top$: exact, from the moments alone. A missing moment counts as
    the identity; without both it is the Frobenius norm of the difference.

    Parameters
    ----------
    w : array_like, shape (d2, d1)
        Real and finite.
    u : array_like, shape (k, d2)
        The factor that meets ``s``.
    v : array_like, shape (k, d1)
        The factor that meets ``h``.
    s_moment : array_like, shape (d2, d2), optional
        As in `factorize`.
    h_moment : array_like, shape (d1, d1), optional
        As in `factorize`.

    Returns
    -------
    float

    Examples
    --------
    >>> score_error([[3, 0], [4, 5]], [[1, 3]], [[1.5, 1.5]])  # the smaller singular value, sqrt(5)
    2.23606797749979
    """
    matrix = as_matrix(w, "w").astype(np.float64, copy=False)
    left, right = (x.astype(np.float64, copy=False) for x in _as_factors(u, v))
    if matrix.shape != (left.shape[1], right.shape[1]):
        raise ValueError(
            f"w must have a row for each column of u and a column for each column of v, "
            f"got shapes {matrix.shape}, {left.shape} and {right.shape}"
        )
    root_a, _ = _root(_as_moment(s_moment, len(matrix), "s_moment"))
    root_b, _ = _root(_as_moment(h_moment, matrix.shape[1], "h_moment"))

    return float(np.linalg.norm(root_a @ (matrix - left.T @ right) @ root_b.T))


def fit_factors(
    target: ArrayLike,
    k: int,
    *,
    learning_rate: float | None = None,
    steps: int = 2000,
    rng: np.random.Generator | int | None = None,
) -> Fit:
    r"""Learn factors of a matrix by gradient descent, as a network would: no singular value decomposition.

    $J = \tfrac12 \|S - U V^\top\|_F^2$ has the gradients $\partial J / \partial U = (U V^\top - S) V$ and
    $\partial J / \partial V = (U V^\top - S)^\top U$; both factors take a step against theirs at once. Every local
    minimum of $J$ is global, so from almost every start the loss tends to half the sum of the squared singular values
    left out. The factors themselves are only one choice: $U G$ and $V G^{-\top}$ give the same product for every
    invertible $G$.

    The start is Gaussian and small, $\|U\|_2 \approx \|V\|_2 \approx \sqrt{\sigma_1} / 10$ with $\sigma_1 = \|S\|_2$;
    direction ``i`` then takes some 10 to 20 times $\sigma_1 / \sigma_i$ steps to grow. Where $\sigma_k$ is below a
    hundredth of $\sigma_1$, give more steps.

    Parameters
    ----------
    target : array_like, shape (n, m)
        Real and finite.
    k : int
        The rank kept, between 1 and ``min(n, m)``.
    learning_rate : float, optional
        The size of a step, above 0; by default $1 / (2 \sigma_1)$. From about $1 / \sigma_1$ on, descent diverges.
    steps : int
        How many, at least 0.
    rng : numpy.random.Generator or int, optional
        Draws the start. With ``None`` each call draws another.

    Returns
    -------
    u : ndarray, shape (n, k)
        $S \approx U V^\top$: one row for each row of the target.
    v : ndarray, shape (m, k)
        One row for each column.
    losses : ndarray, shape (steps + 1,)
        $J$ before the first step and after each.

    Raises
    ------
    ValueError
        If the loss grows beyond a hundred times its start: the steps are too long.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u, v, losses = fit_factors([[3, 0], [4, 5]], k=1, rng=rng)
    >>> (u @ v.T).round(9)
    array([[1.5, 1.5],
           [4.5, 4.5]])
    >>> round(float(losses[-1]), 9)  # half the square of the smaller singular value, sqrt(5)
    2.5

    References
    ----------
    Baldi and Hornik (1989), doi:10.1016/0893-6080(89)90014-2: every local minimum is global.
    """
    given = as_matrix(target, "target")
    k = check_rank(k, given.shape)
    matrix, dtype = given.astype(np.float64), given.dtype
    largest = float(np.linalg.norm(matrix, 2))
    default = 0.5 / (largest or 1.0)  # the factors of a zero matrix start at zero, and stay there
    rate = default if learning_rate is None else learning_rate
    rate = check_real(rate, "learning_rate", "finite and above 0", math.ulp(0.0))
    steps = check_size(steps, "steps", 0)
    rng = check_rng(rng)

    u, v = (_small_start(length, k, largest, rng) for length in matrix.shape)
    residual = u @ v.T - matrix
    losses = [np.vdot(residual, residual) / 2]
    with np.errstate(over="ignore", invalid="ignore"):  # where steps are too long, the loss says so
        for step in range(1, steps + 1):
            u, v = u - rate * (residual @ v), v - rate * (residual.T @ u)  # both from the old factors
            residual = u @ v.T - matrix
            losses.append(np.vdot(residual, residual) / 2)
            if not losses[step] <= 100 * losses[0]:  # written so that NaN fails
                raise ValueError(
                    f"learning_rate must be small enough for the loss to fall (by default it is {default:.3g}), got "
                    f"{learning_rate} and a loss {losses[step] / losses[0]:.3g} times that of the start at step {step}"
                )
    return Fit(u.astype(dtype), v.astype(dtype), np.array(losses))


def _small_start(n: int, k: int, largest: float, rng: np.random.Generator) -> FloatArray:
    """Draw a factor, (n, k), whose largest singular value is about ``sqrt(largest) / 10``."""
    return math.sqrt(largest) / 10 / (math.sqrt(n) + math.sqrt(k)) * rng.standard_normal((n, k))


def cosine_factors(a: ArrayLike) -> CosineFactors:
    r"""Write a matrix as a constant times a matrix of cosines.

    $A = c\,X Y^\top$ with rows of length 1. No matrix with an entry above 1 is a matrix of cosines, and not every other
    is: $\begin{pmatrix} 1 & 1 \\ 1 & -1 \end{pmatrix}$ is not, because a cosine of 1 makes two unit vectors equal. But
    some multiple always is. The least constant is the norm $\gamma_2(A)$; this one is found without a search, from the
    singular vectors, $F = U \Sigma^{1/2}$ and $G = V \Sigma^{1/2}$: $c = \max_i \|f_i\| \max_j \|g_j\|$, and a
    coordinate of its own fills up the rows of each factor that are too short. So $\gamma_2(A) \le c \le \|A\|_2$.

    Parameters
    ----------
    a : array_like, shape (m, n)
        Real and finite.

    Returns
    -------
    x : ndarray, shape (m, p)
        Unit rows, with $p = \min(m, n) + 2$.
    y : ndarray, shape (n, p)
        Unit rows.
    scale : float
        The constant; of a zero matrix 0.

    Examples
    --------
    >>> x, y, scale = cosine_factors([[1, 1], [1, -1]])
    >>> round(scale, 12)  # sqrt(2), here the least possible
    1.414213562373
    >>> (scale * x @ y.T).round(12)
    array([[ 1.,  1.],
           [ 1., -1.]])

    References
    ----------
    Linial and Shraibman (2007), arXiv:cs/0611028, on the norm gamma_2.
    """
    matrix = as_matrix(a, "a").astype(np.float64, copy=False)

    u, s, vt = truncated_svd(matrix, min(matrix.shape))
    f, g = u * np.sqrt(s), vt.T * np.sqrt(s)  # (m, p - 2), (n, p - 2)
    longest_f, longest_g = (float(np.linalg.norm(rows, axis=1).max()) for rows in (f, g))
    x, y = _fill_up(f / (longest_f or 1.0), side=0), _fill_up(g / (longest_g or 1.0), side=1)
    return CosineFactors(x, y, longest_f * longest_g)


def _fill_up(rows: FloatArray, side: int) -> FloatArray:
    """Append two coordinates: one completes each row to length 1, the other, the partner's, is zero."""
    filled = np.zeros((rows.shape[0], rows.shape[1] + 2))
    filled[:, :-2] = rows
    filled[:, rows.shape[1] + side] = np.sqrt(np.maximum(1 - np.square(rows).sum(axis=1), 0))
    return filled
