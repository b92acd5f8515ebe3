"""How much of a matrix survives when only k directions are kept?

Chapter ``book/02-svd-pca.md``. Letters: ``a`` is (m, n); ``s`` its singular values, largest first; ``k`` the rank kept;
``u`` (m, k) and ``vt`` (k, n) the singular vectors.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    as_spectrum,
    check_choice,
    check_integer,
    check_rank,
    check_rng,
    scale_back,
    unit_scale,
)


class SVD(NamedTuple):
    """Factors of a truncated singular value decomposition, ``a ~ (u * s) @ vt``.

    Attributes
    ----------
    u : ndarray, shape (m, k)
        Left singular vectors, orthonormal columns.
    s : ndarray, shape (k,)
        Singular values, largest first.
    vt : ndarray, shape (k, n)
        Right singular vectors, orthonormal rows.
    """

    u: FloatArray
    s: FloatArray
    vt: FloatArray


def fix_signs(vectors: FloatArray) -> FloatArray:
    """Return for each column the sign (1 or -1) that makes its largest entry positive.

    A singular pair may be negated as a whole; this picks one of the two. Of entries that agree to half the digits the
    first decides, so that rounding does not.

    Parameters
    ----------
    vectors : ndarray, shape (m, k)
        One vector a column.

    Returns
    -------
    ndarray, shape (k,)
    """
    size = np.abs(vectors)
    nearly_largest = size >= size.max(axis=0) * (1 - math.sqrt(np.finfo(vectors.dtype).eps))
    first = np.argmax(nearly_largest, axis=0)
    signs: FloatArray = np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1, 1).astype(vectors.dtype)
    return signs


def _cut(u: FloatArray, s: FloatArray, vt: FloatArray, k: int, exponent: int) -> SVD:
    """Keep ``k`` triplets, undo the scaling and fix the signs. Copies, so that the rest can be freed."""
    signs = fix_signs(u[:, :k])
    with np.errstate(over="ignore"):
        values = np.ldexp(s[:k], exponent)
    if not np.isfinite(values).all():
        raise ValueError(f"a must be small enough for its singular values to fit {s.dtype}, got larger ones")
    return SVD(u[:, :k] * signs, values, vt[:k] * signs[:, np.newaxis])


def truncated_svd(a: ArrayLike, k: int) -> SVD:
    r"""Return the ``k`` largest singular values and their vectors.

    $A \approx U_k \Sigma_k V_k^\top$, computed by LAPACK from the full decomposition.

    Parameters
    ----------
    a : array_like, shape (m, n)
        Real and finite. Float32 is computed in float32; integers in float64.
    k : int
        The rank kept, between 1 and ``min(m, n)``.

    Returns
    -------
    u : ndarray, shape (m, k)
        Orthonormal columns; the largest entry of each is positive (of equally large ones, the first).
    s : ndarray, shape (k,)
        Largest first.
    vt : ndarray, shape (k, n)
        Orthonormal rows.

    Raises
    ------
    TypeError
        If ``a`` does not hold real numbers, or ``k`` is not an integer.
    ValueError
        If ``a`` is no finite, non-empty matrix, or ``k`` is outside its bounds.

    Examples
    --------
    >>> u, s, vt = truncated_svd([[3, 0], [4, 5]], k=1)  # singular values sqrt(45) and sqrt(5)
    >>> s.round(6)
    array([6.708204])
    >>> ((u * s) @ vt).round(6)
    array([[1.5, 1.5],
           [4.5, 4.5]])

    References
    ----------
    Golub and Van Loan (2013), *Matrix Computations*, 4th edition, section 2.4.
    """
    matrix = as_matrix(a, "a")
    rank = check_rank(k, matrix.shape)
    scaled, exponent = unit_scale(matrix)
    return _cut(*np.linalg.svd(scaled, full_matrices=False), rank, exponent)


def best_rank_k(a: ArrayLike, k: int) -> FloatArray:
    r"""Return the matrix of rank at most ``k`` that is nearest to ``a``.

    $A_k = \sum_{i \le k} \sigma_i u_i v_i^\top$ is nearest in the Frobenius and in the spectral norm, and in every
    other norm that depends on the singular values alone. In the Frobenius norm it is the only one if
    $\sigma_k > \sigma_{k+1}$.

    Parameters
    ----------
    a : array_like, shape (m, n)
        Real and finite.
    k : int
        The rank kept, between 1 and ``min(m, n)``.

    Returns
    -------
    ndarray, shape (m, n)

    Raises
    ------
    TypeError
        If ``a`` does not hold real numbers, or ``k`` is not an integer.
    ValueError
        If ``a`` is no finite, non-empty matrix, or ``k`` is outside its bounds.

    Examples
    --------
    >>> best_rank_k([[3, 0], [0, 1]], k=1)
    array([[3., 0.],
           [0., 0.]])

    References
    ----------
    Eckart and Young (1936), doi:10.1007/BF02288367. Mirsky (1960), doi:10.1093/qmath/11.1.50.
    """
    u, s, vt = truncated_svd(a, k)
    product: FloatArray = (u * s) @ vt
    return product


def tail_error(s: ArrayLike, k: int, norm: str = "fro") -> float:
    r"""Return the error of the best rank-``k`` approximation, from the spectrum alone.

    $\|A - A_k\|_F = \sqrt{\sum_{i>k} \sigma_i^2}$, and $\|A - A_k\|_2 = \sigma_{k+1}$.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values, all of them: non-negative, largest first.
    k : int
        The rank kept, between 0 and ``len(s)``.
    norm : {"fro", "spectral"}
        The norm of the error.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If ``s`` does not hold real numbers, ``k`` is not an integer or ``norm`` not a string.
    ValueError
        If ``s`` is no spectrum, ``k`` is outside its bounds, or ``norm`` is another word.

    Examples
    --------
    >>> tail_error([3.0, 2.0, 1.0], k=1)
    2.23606797749979
    >>> tail_error([3.0, 2.0, 1.0], k=1, norm="spectral")
    2.0

    References
    ----------
    Eckart and Young (1936), doi:10.1007/BF02288367.
    """
    spectrum = as_spectrum(s, "s")
    kept = check_integer(k, "k", 0, spectrum.size, "len(s)")
    tail = spectrum[kept:]
    if check_choice(norm, "norm", ("fro", "spectral")) == "spectral":
        return float(tail[0]) if tail.size else 0.0
    scaled, exponent = unit_scale(tail) if tail.size else (tail, 0)
    return scale_back(math.hypot(*scaled), exponent, "s")


def _norm(a: FloatArray, norm: str) -> tuple[float, int]:
    """Return a matrix norm as ``value * 2**exponent``, so that no square overflows."""
    scaled, exponent = unit_scale(a)
    return float(np.linalg.norm(scaled, "fro" if norm == "fro" else 2)), exponent


def relative_error(approx: ArrayLike, exact: ArrayLike, norm: str = "fro") -> float:
    r"""Return the error of an approximation as a fraction of what it approximates.

    $\|\tilde A - A\| / \|A\|$. The zero matrix has relative error 1.

    Parameters
    ----------
    approx, exact : array_like, shape (m, n)
        Real and finite; ``exact`` is not zero.
    norm : {"fro", "spectral"}
        The norm of both.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If an array does not hold real numbers, or ``norm`` is not a string.
    ValueError
        If the shapes differ, ``exact`` is zero, or ``norm`` is another word.

    Examples
    --------
    >>> relative_error([[3, 0], [0, 0]], [[3, 0], [0, 4]])
    0.8
    """
    guess = as_matrix(approx, "approx").astype(np.float64)
    truth = as_matrix(exact, "exact").astype(np.float64)
    check_choice(norm, "norm", ("fro", "spectral"))
    if guess.shape != truth.shape:
        raise ValueError(f"approx must be of exact's shape {truth.shape}, got {guess.shape}")
    if not truth.any():
        raise ValueError("exact must be non-zero, got a zero matrix")
    # Halves, because the difference of two floats may be twice as large as any float.
    error, error_exponent = _norm(guess / 2 - truth / 2, norm)
    size, size_exponent = _norm(truth, norm)
    return scale_back(error / size, error_exponent + 1 - size_exponent, "approx")


def _orthonormal(y: FloatArray) -> FloatArray:
    """Return an orthonormal basis, (m, b), of a space that contains the columns of ``y``."""
    return np.linalg.qr(y)[0]


def _new_directions(y: FloatArray, basis: FloatArray) -> FloatArray | None:
    """Orthonormalize ``y`` against ``basis`` (orthonormal columns); ``None`` if nothing but rounding is left of it."""
    rest = y - basis @ (basis.T @ y)
    roundoff = 2 * math.sqrt(max(y.shape)) * float(np.finfo(y.dtype).eps)
    if np.linalg.norm(rest) <= roundoff * np.linalg.norm(y):
        return None
    q = _orthonormal(rest)
    # What was small in ``rest`` has lost its right angle to the basis: once more, and only now it is enough.
    return _orthonormal(q - basis @ (basis.T @ q))


def _krylov_svd(a: FloatArray, block: int, powers: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
    """Return the SVD of ``a`` (tall) projected on the Krylov space of a random block of columns.

    The left basis spans ``a x, (a a.T) a x, ...``; the right one keeps the blocks that are sent through ``a`` from
    leaning on one another, so that small singular values are not squared away.
    """
    right = _orthonormal(rng.standard_normal((a.shape[1], block), dtype=a.dtype))  # (n, b)
    left = _orthonormal(a @ right)  # (m, b)
    image = a.T @ left  # (n, b); in the end left.T @ a, transposed
    for _ in range(powers):
        fresh = _new_directions(image[:, -block:], right)
        if fresh is None:  # the space maps into itself: it holds all that the random block can reach
            break
        right = np.hstack([right, fresh])
        fresh = _new_directions(a @ fresh, left)
        if fresh is None:
            break
        left = np.hstack([left, fresh])
        image = np.hstack([image, a.T @ fresh])
    v, s, wt = np.linalg.svd(image, full_matrices=False)
    return left, wt, s, v.T


def randomized_svd(
    a: ArrayLike,
    k: int,
    *,
    oversample: int = 10,
    power_iterations: int = 3,
    rng: np.random.Generator | None = None,
) -> SVD:
    r"""Return nearly the ``k`` largest singular values and their vectors, in a fraction of the time.

    A random block of ``b = k + oversample`` vectors is sent through the matrix and back, and the matrix is projected
    on *all* the blocks met on the way, $[AX, (AA^\top)AX, \dots, (AA^\top)^q AX]$ with
    $q$ = ``power_iterations`` (block Krylov). Keeping only the last block, as plain power iteration does, throws away
    most of what the products have cost.

    Work: ``2 (q + 1)`` products of ``a`` with ``b`` vectors. Where the blocks together would be as wide as the matrix,
    the answer is that of `truncated_svd`, exact and no slower.

    Parameters
    ----------
    a : array_like, shape (m, n)
        Real and finite. Float32 is computed in float32; integers in float64.
    k : int
        The rank kept, between 1 and ``min(m, n)``.
    oversample : int
        How many vectors more than ``k`` in a block, at least 0.
    power_iterations : int
        How many blocks more than one, at least 0. The error falls exponentially with it, the faster the larger the gap
        below the singular values kept.
    rng : numpy.random.Generator, optional
        Draws the block. With ``None`` each call draws another.

    Returns
    -------
    u : ndarray, shape (m, k)
        Orthonormal columns; the largest entry of each is positive (of equally large ones, the first).
    s : ndarray, shape (k,)
        Largest first; each at most the exact singular value, but for rounding.
    vt : ndarray, shape (k, n)
        Orthonormal rows.

    Raises
    ------
    TypeError
        If ``a`` does not hold real numbers, an integer is none, or ``rng`` is no generator.
    ValueError
        If ``a`` is no finite, non-empty matrix, or an integer is outside its bounds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 200))
    >>> u, s, vt = randomized_svd(a, k=5, rng=rng)
    >>> u.shape, vt.shape, bool(relative_error((u * s) @ vt, a) < 1e-14)
    ((300, 5), (5, 200), True)

    References
    ----------
    Musco and Musco (2015), arXiv:1504.05477. Halko, Martinsson and Tropp (2011), doi:10.1137/090771806.
    """
    matrix = as_matrix(a, "a")
    rank = check_rank(k, matrix.shape)
    extra = check_integer(oversample, "oversample", 0)
    powers = check_integer(power_iterations, "power_iterations", 0)
    generator = check_rng(rng)
    block = rank + extra
    if block * (powers + 1) >= min(matrix.shape):
        return truncated_svd(matrix, rank)
    scaled, exponent = unit_scale(matrix)
    wide = matrix.shape[0] < matrix.shape[1]
    left, wt, s, vt = _krylov_svd(scaled.T if wide else scaled, block, powers, generator)
    u = left @ wt[:rank].T
    return _cut(vt[:rank].T, s, u.T, rank, exponent) if wide else _cut(u, s, vt, rank, exponent)
