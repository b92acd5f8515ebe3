"""Count the directions of a matrix, and store it as two factors where that takes less memory.

Chapter ``book/01-rank.md``. Letters: ``a`` (m, n) is the matrix, ``r`` its rank, ``k`` a chosen
rank; ``c`` (m, r) and ``f`` (r, n) are its factors. Where ``a`` may be (..., m, n), a stack of
matrices gives an array (...). Matrices are real, finite and non-empty.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    FloatArray,
    as_float_array,
    as_matrices,
    as_matrix,
    as_spectrum,
    check_fraction,
    check_integer,
    check_rank,
    precision,
)

__all__ = [
    "RankFactorization", "break_even_rank", "effective_rank", "numerical_rank",
    "rank_factorization", "stable_rank", "storage",
]  # fmt: skip


class RankFactorization(NamedTuple):
    """A matrix as ``c @ f``: ``r`` of its own columns, in order, and the recipe for all."""

    c: FloatArray
    f: FloatArray

    @property
    def columns(self) -> NDArray[np.intp]:
        """The numbers of the columns in ``c``, of which ``f`` holds the unit vectors."""
        units = (self.f == 1) & (np.count_nonzero(self.f, axis=0) == 1)
        return np.asarray(np.argmax(units, axis=1))


def _tolerance(rtol: float | None, a: ArrayLike, largest: Any) -> Any:
    """Return what singular values of ``a`` must exceed to count, from each matrix's ``largest``."""
    original = np.asarray(a)
    m, n = original.shape[-2:]
    share = max(m, n) * float(np.finfo(np.float64).eps)  # the rounding of the SVD, in float64
    smallest = 0.0
    if rtol is not None:
        share += check_fraction(rtol, "rtol", 0)
    elif precision(original.dtype) is np.float32:  # the entries' own rounding, twice
        short = np.finfo(original.dtype)
        share += math.sqrt(min(m, n)) * float(short.eps)
        smallest = math.sqrt(m * n) * float(short.smallest_subnormal)
    always = math.nextafter(1.0, 0.0) * largest  # the largest value counts at any tolerance
    return np.minimum(share * largest + smallest, always)


def numerical_rank(a: ArrayLike, *, rtol: float | None = None) -> Any:
    r"""Count singular values by a tolerance, $\#\{i : \sigma_i > \mathrm{rtol} \cdot \sigma_1\}$.

    Rounding turns a zero singular value into a tiny one, so the rank of a matrix of floats is a
    question with a tolerance. A value counts if it exceeds ``rtol`` $\sigma_1$, with ``rtol`` at
    least 0 and below 1, by more than the rounding of the SVD: ``max(m, n)`` times the machine
    epsilon of float64 times $\sigma_1$. So a value at the tolerance does not count, and at 0
    rounding does not. By default the tolerance is this rounding alone. For an array of float32 or
    float16, whose entries were rounded to that type, it is larger by twice the most that this can
    move a singular value (Weyl's inequality): by ``sqrt(min(m, n))`` of its epsilons times
    $\sigma_1$, and by ``sqrt(m * n)`` times its smallest number. Source: Golub and Van Loan (2013),
    *Matrix Computations*, 4th edition, section 5.4.1.

    >>> nearly_dependent = [[1, 0], [0, 1e-9]]
    >>> numerical_rank(nearly_dependent), numerical_rank(nearly_dependent, rtol=1e-6)
    (2, 1)
    """
    s = np.linalg.svd(as_matrices(a, "a", np.float64), compute_uv=False)
    count = np.count_nonzero(s > _tolerance(rtol, a, s[..., :1]), axis=-1)
    return count if s.ndim > 1 else int(count)


def stable_rank(a: ArrayLike) -> Any:
    r"""Count directions by weight, $\|A\|_F^2 / \|A\|_2^2 = \sum_i (\sigma_i / \sigma_1)^2$.

    It changes continuously with the matrix and needs no tolerance. It lies between 1 and the rank,
    or is 0. Source: Rudelson and Vershynin (2007), doi:10.1145/1255443.1255449.

    >>> stable_rank([[2, 0], [0, 1]])
    1.25
    """
    s = np.linalg.svd(as_matrices(a, "a", np.float64), compute_uv=False)
    weight = np.sum(np.square(s / np.where(s[..., :1] > 0, s[..., :1], 1)), axis=-1)
    return weight if s.ndim > 1 else float(weight)


def effective_rank(s: ArrayLike) -> Any:
    r"""Count directions by the entropy of singular values ``s`` (r,), $\exp(-\sum_i x_i \ln x_i)$.

    Here $x_i = \sigma_i / \sum_j \sigma_j$. The result lies between 1 and the rank, which it
    reaches if and only if all nonzero values are equal, and it is never below `stable_rank`,
    because weak directions count for more here. It is 0 if all values are zero. An array (..., r)
    of spectra gives an array, so pass the singular values, not the matrix, and not their squares,
    the eigenvalues or variances. Source: Roy and Vetterli (2007), *The effective rank*, EUSIPCO,
    606-610.

    >>> round(effective_rank([2, 2, 0]), 12), round(effective_rank([2, 1]), 6)  # stable: 2, 1.25
    (2.0, 1.889882)
    """
    if getattr(s, "ndim", 1) > 1:
        return np.apply_along_axis(effective_rank, -1, as_float_array(s, "s"))
    spectrum = as_spectrum(s, "s")
    shares = spectrum / (spectrum.sum() or 1)
    shares = shares[shares > 0]  # a tiny value may have vanished in the division
    return float(np.exp(-np.sum(shares * np.log(shares)))) if shares.size else 0.0


def _independent_columns(coordinates: FloatArray, least: float, floor: float) -> NDArray[np.intp]:
    """Pick r columns of an (r, n) matrix of rank r that mix to the others by modest factors.

    Each is the leftmost whose distance from the span of those before it is at least ``floor`` and
    the share ``least`` of its own length, so that the unit of a column does not matter. On ordinary
    matrices these are the columns of row reduction by hand; avoided are columns that nearly depend
    on earlier ones, and what rounding leaves of zero columns.
    """
    rest = coordinates.copy()
    own = np.linalg.norm(coordinates, axis=0)
    needed = np.maximum(least * np.maximum(own, 1e-10 * own.max(initial=0.0)), floor)
    chosen: list[int] = []
    for _ in range(coordinates.shape[0]):
        length = np.linalg.norm(rest, axis=0)
        length[chosen] = 0.0  # rounding leaves a little
        share = length / needed
        j = int(np.argmax(share >= min(1.0, share.max())))
        chosen.append(j)
        axis = rest[:, j] / length[j]
        rest -= np.outer(axis, axis @ rest)
    return np.sort(np.array(chosen, dtype=np.intp))


def rank_factorization(a: ArrayLike, *, rtol: float | None = None) -> RankFactorization:
    r"""Write a matrix of rank ``r`` as ``c @ f``: its own columns, and the recipe for all.

    $A = C F$ with $C = A[:, J]$, a copy, and $F[:, J] = I$. The columns $J$ are taken from left to
    right as in row reduction, so $F$ holds the nonzero rows of the reduced echelon form. But a
    column that nearly depends on earlier ones, up to a thousandth of its length (in float16 a
    thirtieth or more), is skipped, because plain elimination would divide by the small difference;
    and given ``rtol``, one closer to them than ``sqrt(rtol)`` times $\sigma_1$, unless it is the
    farthest. The rank, 0 for a zero matrix, is `numerical_rank`. With a large ``rtol`` the product
    is only close to ``a``, and :func:`lowrank_tutor.svd.best_rank_k` is closer. Source: Strang and
    Moler (2022), *LU and CR elimination*, doi:10.1137/20M1358694.

    >>> c, f = rank_factorization([[1, 2, 3], [2, 4, 6], [3, 6, 9]])
    >>> c.ravel(), f.ravel()
    (array([1., 2., 3.]), array([1., 2., 3.]))
    >>> rank_factorization([[1, 2, 3], [2, 4, 7]]).columns
    array([0, 2])
    """
    original = as_matrix(a, "a")
    matrix = original.astype(np.float64)
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    tolerance = _tolerance(rtol, a, s[0])
    r = int(np.count_nonzero(s > tolerance))
    coordinates = s[:r, np.newaxis] * vt[:r]  # the columns along u: only r numbers each
    columns = _independent_columns(
        coordinates,
        max(1e-3, math.sqrt(tolerance / (s[0] or 1))),
        math.sqrt(rtol or 0.0) * s[0],
    )
    c = matrix[:, columns]
    f = np.linalg.solve(coordinates[:, columns], coordinates)
    # One refinement: whole numbers come out whole.
    f += np.linalg.solve(coordinates[:, columns], u[:, :r].T @ (matrix - c @ f))
    f[:, columns] = np.eye(r)
    return RankFactorization(original[:, columns], f.astype(original.dtype))


def storage(m: int, n: int, k: int) -> tuple[int, int]:
    """Count the numbers in an (m, n) matrix, ``m * n``, and in two factors, ``k * (m + n)``.

    The counts are Python integers, exact at any size. The factors hold ``k**2`` more numbers than a
    matrix of rank ``k`` has degrees of freedom, since ``(c @ h) @ (inv(h) @ f)`` is the same
    product for every invertible ``h``.

    >>> storage(3, 3, 1)
    (9, 6)
    """
    rows, columns = check_integer(m, "m", 1, math.inf), check_integer(n, "n", 1, math.inf)
    return rows * columns, check_rank(k, (rows, columns)) * (rows + columns)


def break_even_rank(m: int, n: int) -> float:
    r"""Return the rank $mn / (m + n)$ below which factors hold fewer numbers than the matrix.

    >>> break_even_rank(600, 512)
    276.2589928057554
    """
    rows, columns = check_integer(m, "m", 1, math.inf), check_integer(n, "n", 1, math.inf)
    return rows * columns / (rows + columns)  # a quotient of Python integers: exact to the last bit
