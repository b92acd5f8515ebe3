r"""How many numbers does it take to compare two vectors? The score s^T W h, and W replaced by two thin factors.

Chapter ``book/05-bilinear-scoring.md``. Letters: ``s`` is a query (d2,), ``h`` a key (d1,), ``w`` (d2, d1) compares
them; ``u`` (k, d2) and ``v`` (k, d1) are its factors, $W \approx U^\top V$; ``k`` the rank kept. Where a similarity
matrix is factored without any vectors (`fit_factors`), its factors stand upright: (n, k) and (m, k).

``ReducedRankAttention`` is PyTorch; the rest is NumPy, and importing this module imports no torch.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

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
    scale_back,
    unit_scale,
)
from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.svd import fix_signs, truncated_svd

if TYPE_CHECKING:
    from lowrank_tutor._reduced_rank import ReducedRankAttention

__all__ = [
    "CosineFactors",
    "Factors",
    "Fit",
    "ReducedRankAttention",
    "cosine_factors",
    "factorize",
    "fit_factors",
    "multiplications",
    "reduced_rank_score",
    "score",
    "score_error",
]


__getattr__, __dir__ = on_demand(__name__, ReducedRankAttention="_reduced_rank")


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


def _check_pair(s: FloatArray, h: FloatArray) -> None:
    """Check that the leading axes agree, or that one of the two is a single vector."""
    if s.ndim > 1 and h.ndim > 1 and s.shape[:-1] != h.shape[:-1]:
        raise ValueError(
            f"s and h must have the same leading axes, or one of them be a single vector, "
            f"got shapes {s.shape} and {h.shape}"
        )


def _check_widths(vector: FloatArray, matrix: FloatArray, axis: int, names: tuple[str, str]) -> None:
    """Check that ``vector`` is as long as ``matrix`` has entries along ``axis``."""
    if vector.shape[-1] != matrix.shape[axis]:
        side = ("rows", "columns")[axis]
        raise ValueError(
            f"{names[0]} must be as long as {names[1]} has {side}, got shapes {vector.shape} and {matrix.shape}"
        )


def _fitting(scores: FloatArray, names: str) -> float | FloatArray:
    """Return the scores, one of them as a float; refuse those beyond the largest."""
    if not np.isfinite(scores).all():
        raise ValueError(f"{names} must be small enough for their scores to fit {scores.dtype}, got larger ones")
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

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If the shapes do not match, or an argument is empty, not finite, or too large.

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
    query, matrix, key = as_vectors(s, "s"), as_matrix(w, "w"), as_vectors(h, "h")
    _check_widths(query, matrix, 0, ("s", "w"))
    _check_widths(key, matrix, 1, ("h", "w"))
    _check_pair(query, key)
    with np.errstate(over="ignore", invalid="ignore"):
        return _fitting(np.asarray(((query @ matrix) * key).sum(axis=-1)), "s, w and h")


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

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If the shapes do not match, or an argument is empty, not finite, or too large.

    Examples
    --------
    >>> reduced_rank_score([1, 2], [[2, 1]], [[1, -1]], [3, 4])
    -4.0

    References
    ----------
    Britz, Guan and Luong (2017), arXiv:1706.03872, compare this form with others in translation.
    """
    query, key = as_vectors(s, "s"), as_vectors(h, "h")
    left, right = _check_factors(u, v)
    _check_widths(query, left, 1, ("s", "u"))
    _check_widths(key, right, 1, ("h", "v"))
    _check_pair(query, key)
    with np.errstate(over="ignore", invalid="ignore"):
        return _fitting(np.asarray(((query @ left.T) * (key @ right.T)).sum(axis=-1)), "s, u, v and h")


def _check_factors(u: ArrayLike, v: ArrayLike) -> tuple[FloatArray, FloatArray]:
    left, right = as_matrix(u, "u"), as_matrix(v, "v")
    if left.shape[0] != right.shape[0]:
        raise ValueError(f"u and v must have equally many rows, got shapes {left.shape} and {right.shape}")
    return left, right


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

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If an argument is outside its bounds.

    Examples
    --------
    >>> multiplications(2, 2, 1), multiplications(512, 512, 64)
    ((6, 5), (262656, 65600))
    """
    rows = check_integer(d2, "d2", 1)
    columns = check_integer(d1, "d1", 1)
    rank = check_integer(k, "k", 1, min(rows, columns), "min(d2, d1)")
    return rows * columns + min(rows, columns), rank * (rows + columns) + rank


class _Root(NamedTuple):
    """A second moment as ``4**exponent * half.T @ half``; ``lift`` (d, r) is the pseudo-inverse of ``half`` (r, d)."""

    half: FloatArray
    lift: FloatArray
    exponent: int


def _even_scale(a: FloatArray) -> tuple[FloatArray, int]:
    """Write ``a`` as ``scaled * 4**exponent``, exactly, with entries that can be squared."""
    scaled, exponent = unit_scale(a.astype(np.float64, copy=False))
    half, odd = divmod(exponent, 2)
    return np.ldexp(scaled, odd), half


def _root(moment: ArrayLike | None, d: int, name: str, beside: str) -> _Root:
    r"""Check a second moment, (d, d), and take its root.

    Not that of the matrix itself: with unit diagonal first, $A = D C D$ and $C = Q \Lambda Q^\top$. Then coordinates
    in very different units do not drown each other in rounding.
    """
    if moment is None:
        return _Root(np.eye(d), np.eye(d), 0)
    given = as_matrix(moment, name)
    if given.shape != (d, d):
        raise ValueError(f"{name} must be of shape {(d, d)} to match {beside}, got shape {given.shape}")
    half_the_digits = math.sqrt(np.finfo(given.dtype).eps)
    a, exponent = _even_scale(given)
    diagonal = np.diag(a)
    if (diagonal < 0).any():
        raise ValueError(f"{name} must be positive semidefinite, got {np.diag(given).min()} on its diagonal")
    seen = diagonal > 0
    if a[~seen].any() or a[:, ~seen].any():
        raise ValueError(f"{name} must be positive semidefinite, got a zero on its diagonal in a row that is not zero")
    size = np.sqrt(np.where(seen, diagonal, 1.0))
    c = a / size[:, np.newaxis] / size
    gap = np.abs(c - c.T)
    if gap.max() > half_the_digits:
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        raise ValueError(f"{name} must be symmetric, got {given[i, j]} and {given[j, i]} across the diagonal")
    values, q = np.linalg.eigh((c + c.T) / 2)  # smallest first
    if values[0] < -half_the_digits * d:
        raise ValueError(f"{name} must be positive semidefinite, got the eigenvalue {values[0]:.3g} (at unit diagonal)")
    kept = values > 8 * d * np.finfo(given.dtype).eps * values[-1]
    lengths, q = np.sqrt(values[kept]), q[:, kept]
    half = lengths[:, np.newaxis] * q.T * size  # (r, d)
    inverse = q / lengths / size[:, np.newaxis]  # (d, r), half @ inverse = I
    if kept.all():
        return _Root(half, inverse, exponent)
    # Of all inverses, the one that stays within the directions seen; then what rounding moved is mended.
    basis = np.linalg.qr(half.T)[0]
    lift = basis @ (basis.T @ inverse)
    return _Root(half, lift + inverse @ (np.eye(len(half)) - half @ lift), exponent)


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
        $U A U^\top$ and $V B V^\top$ are one diagonal matrix, the singular values kept of $A^{1/2} W B^{1/2}$ (but for
        a power of 4 where a moment is beyond 1e-30 or 1e30).

    Raises
    ------
    TypeError
        If an argument does not hold real numbers, or ``k`` is not an integer.
    ValueError
        If ``w`` is no finite, non-empty matrix, ``k`` is outside its bounds, or a moment is no second moment.

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
    given = as_matrix(w, "w")
    rank = check_integer(k, "k", 1, min(given.shape), "min(d2, d1)")
    left, right = _root(s_moment, given.shape[0], "s_moment", "w"), _root(h_moment, given.shape[1], "h_moment", "w")
    matrix, exponent = _even_scale(given)
    u, v = np.zeros((given.shape[0], rank)), np.zeros((given.shape[1], rank))
    kept = min(rank, len(left.half), len(right.half))  # fewer directions than k may ever be seen
    if kept > 0:
        a, s, bt = truncated_svd(left.half @ matrix @ right.half.T, kept)
        u[:, :kept], v[:, :kept] = left.lift @ (a * np.sqrt(s)), right.lift @ (bt.T * np.sqrt(s))
    signs = fix_signs(u)
    with np.errstate(over="ignore"):
        factors = [np.ldexp((x * signs).T, exponent).astype(given.dtype) for x in (u, v)]
    if not all(np.isfinite(x).all() for x in factors):
        raise ValueError(f"w must be small enough for its factors to fit {given.dtype}, got larger ones")
    return Factors(*factors)


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

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If the shapes do not match, an argument is empty or not finite, a moment is no second moment, or the error is
        too large for a float.

    Examples
    --------
    >>> score_error([[3, 0], [4, 5]], [[1, 3]], [[1.5, 1.5]])  # the smaller singular value, sqrt(5)
    2.23606797749979
    """
    matrix = as_matrix(w, "w").astype(np.float64, copy=False)
    left, right = (x.astype(np.float64, copy=False) for x in _check_factors(u, v))
    if matrix.shape != (left.shape[1], right.shape[1]):
        raise ValueError(
            f"w must have a row for each column of u and a column for each column of v, "
            f"got shapes {matrix.shape}, {left.shape} and {right.shape}"
        )
    a, b = _root(s_moment, matrix.shape[0], "s_moment", "w"), _root(h_moment, matrix.shape[1], "h_moment", "w")
    with np.errstate(over="ignore", invalid="ignore"):
        difference = matrix - left.T @ right
    if not np.isfinite(difference).all():
        raise ValueError("w, u and v must be small enough for their difference to fit a float, got a larger one")
    scaled, exponent = unit_scale(difference)
    error, more = unit_scale(a.half @ scaled @ b.half.T) if len(a.half) and len(b.half) else (np.zeros((1, 1)), 0)
    return scale_back(float(np.linalg.norm(error)), more + exponent + a.exponent + b.exponent, "w, u and v")


def fit_factors(
    target: ArrayLike,
    k: int,
    *,
    learning_rate: float | None = None,
    steps: int = 2000,
    rng: np.random.Generator | None = None,
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
    rng : numpy.random.Generator, optional
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
    TypeError
        If ``target`` does not hold real numbers, an integer is none, or ``rng`` is no generator.
    ValueError
        If ``target`` is no finite, non-empty matrix, an argument is outside its bounds, or the loss grows beyond a
        hundred times its start.

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
    rank = check_rank(k, given.shape)
    count = check_integer(steps, "steps", 0)
    generator = check_rng(rng)
    matrix, exponent = _even_scale(given)
    largest = float(np.linalg.norm(matrix, 2))
    if learning_rate is None:
        rate = 0.5 / largest if largest > 0 else 0.0  # of a zero matrix the factors start at zero, and stay there
    else:
        rate = _scaled(check_real(learning_rate, "learning_rate", "finite and above 0", math.ulp(0.0)), exponent)
    # Entries that make the largest singular value of a factor about sqrt(largest) / 10.
    sizes = (math.sqrt(largest) / 10 / (math.sqrt(length) + math.sqrt(rank)) for length in matrix.shape)
    u, v = (size * generator.standard_normal((n, rank)) for size, n in zip(sizes, matrix.shape, strict=True))
    residual = u @ v.T - matrix
    losses = np.empty(count + 1)
    losses[0] = np.vdot(residual, residual) / 2
    for step in range(1, count + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            u, v = u - rate * (residual @ v), v - rate * (residual.T @ u)  # both from the old factors
            residual = u @ v.T - matrix
            losses[step] = np.vdot(residual, residual) / 2
        if not losses[step] <= 100 * losses[0]:  # written so that NaN fails
            remedy = _scaled(0.5 / largest, -exponent)  # of a zero matrix the loss stays 0
            raise ValueError(
                f"learning_rate must be small enough for the loss to fall (by default it is {remedy:.3g}), got "
                f"{learning_rate} and a loss {losses[step] / losses[0]:.3g} times that of the start at step {step}"
            )
    with np.errstate(over="ignore"):
        losses = np.ldexp(losses, 4 * exponent)
    if not np.isfinite(losses).all():
        raise ValueError("target must be small enough for its loss to fit a float, got a larger one")
    factors = [np.ldexp(x, exponent).astype(given.dtype) for x in (u, v)]
    return Fit(factors[0], factors[1], losses)


def _scaled(rate: float, exponent: int) -> float:
    """Return ``rate * 4**exponent``; infinite where no float holds that."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(rate, 2 * exponent))


def cosine_factors(a: ArrayLike) -> CosineFactors:
    r"""Write a matrix as a constant times a matrix of cosines.

    $A = c\,X Y^\top$ with rows of length 1. No matrix with an entry above 1 is a matrix of cosines, and not every other
    is: $\begin{pmatrix} 1 & 1 \\ 1 & -1 \end{pmatrix}$ is none, because a cosine of 1 makes two unit vectors equal. But
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

    Raises
    ------
    TypeError
        If ``a`` does not hold real numbers.
    ValueError
        If ``a`` is no finite, non-empty matrix, or the constant is too large for a float.

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
    matrix, exponent = _even_scale(as_matrix(a, "a"))
    u, s, vt = truncated_svd(matrix, min(matrix.shape))
    f, g = u * np.sqrt(s), vt.T * np.sqrt(s)  # (m, p - 2), (n, p - 2)
    longest = [float(np.linalg.norm(rows, axis=1).max()) for rows in (f, g)]
    x, y = (
        _fill_up(rows / (length or 1.0), side) for side, (rows, length) in enumerate(zip((f, g), longest, strict=True))
    )
    return CosineFactors(x, y, scale_back(longest[0] * longest[1], 2 * exponent, "a"))


def _fill_up(rows: FloatArray, side: int) -> FloatArray:
    """Append two coordinates: one completes each row to length 1, the other, the partner's, is zero."""
    filled = np.zeros((rows.shape[0], rows.shape[1] + 2))
    filled[:, :-2] = rows
    filled[:, rows.shape[1] + side] = np.sqrt(np.maximum(1 - np.square(rows).sum(axis=1), 0))
    return filled
