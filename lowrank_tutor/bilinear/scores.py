"""Score pairs of vectors by a matrix or its factors, and find or learn the best factors.

This is the NumPy half of `bilinear`, whose docstring explains letters and shapes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    check_integer,
    check_rank,
)
from lowrank_tutor.svd import _signs_of

Moment = ArrayLike | None


class Factors(NamedTuple):
    """Factors of a score, ``w ~ u.T @ v``.

    The query is multiplied by ``u`` (k, d2), the key by ``v`` (k, d1).
    """

    u: FloatArray
    v: FloatArray


class Fit(NamedTuple):
    """Factors found by gradient descent, ``target ~ u @ v.T``.

    They are ``u`` (n, k) and ``v`` (m, k), with the loss per step.
    """

    u: FloatArray
    v: FloatArray
    losses: FloatArray


def _as_pairs(s: ArrayLike, h: ArrayLike, d2: int, d1: int) -> tuple[FloatArray, FloatArray]:
    """Check that queries and keys have these widths, and belong together."""
    query = as_matrix(s, "s", axes=("...", d2))
    key = as_matrix(h, "h", axes=("...", d1))
    if query.ndim > 1 and key.ndim > 1 and query.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            "s and h must have the same leading axes, or one of them be a single vector, "
            f"got shapes {query.shape} and {key.shape}"
        )
    return query, key


def _as_factors(u: ArrayLike, v: ArrayLike) -> Factors:
    """Check that two matrices have equally many rows."""
    left = as_matrix(u, "u")
    return Factors(left, as_matrix(v, "v", axes=(len(left), "d1")))


def _dot(a: FloatArray, b: FloatArray) -> float | FloatArray:
    """Take dot products along the last axis, pair by pair: a float for two single vectors."""
    scores: FloatArray = (a * b).sum(axis=-1)
    return float(scores) if scores.ndim == 0 else scores


def score(s: ArrayLike, w: ArrayLike, h: ArrayLike) -> float | FloatArray:
    r"""Score queries ``s`` (..., d2) and keys ``h`` (..., d1) by ``w`` (d2, d1), $s^\top W h$.

    This is the bilinear, or multiplicative, score; Luong, Pham and Manning (2015),
    arXiv:1508.04025, call it "general". Either the leading axes of ``h`` are those of ``s``, pair
    by pair, or one of the two is a single vector; nothing else is broadcast. For all queries (n,
    d2) against all keys (m, d1) use ``s @ w @ h.T``.

    >>> score([1, 2], [[2, -2], [1, -1]], [[3, 4], [4, 3]])  # one query, two keys
    array([-4.,  4.])
    """
    matrix = as_matrix(w, "w")
    query, key = _as_pairs(s, h, *matrix.shape)
    return _dot(query @ matrix, key)


def reduced_rank_score(
    s: ArrayLike, u: ArrayLike, v: ArrayLike, h: ArrayLike
) -> float | FloatArray:
    r"""Score a query and a key by ``k`` numbers each, $(U s)^\top (V h) = s^\top (U^\top V) h$.

    The vectors are as in `score`, ``u`` and ``v`` as in `Factors`. Britz, Guan and Luong (2017),
    arXiv:1706.03872, compare this form with others in translation.

    >>> reduced_rank_score([1, 2], [[2, 1]], [[1, -1]], [3, 4])
    -4.0
    """
    left, right = _as_factors(u, v)
    query, key = _as_pairs(s, h, left.shape[1], right.shape[1])
    return _dot(query @ left.T, key @ right.T)


def _root(value: Moment, d: int, name: str) -> tuple[FloatArray, FloatArray]:
    """Split a second moment into ``root.T @ root``.

    The root is (r, d), its pseudo-inverse (d, r); both are I by default.
    """
    if value is None:
        return np.eye(d), np.eye(d)
    original = as_matrix(value, name, axes=(d, d))
    moment = original.astype(np.float64)
    rounding = float(np.finfo(original.dtype).eps)
    zero = np.diag(moment) <= 0
    # Unscaled, coordinates in small units would be lost to rounding.
    sizes = np.sqrt(np.where(zero, 1, np.diag(moment)))
    scaled = moment / sizes[:, np.newaxis] / sizes
    gap = np.abs(scaled - scaled.T).max()
    values, axes = np.linalg.eigh((scaled + scaled.T) / 2)
    unsound = gap > math.sqrt(rounding) or values[0] < -math.sqrt(rounding) * d
    if unsound or moment[zero].any() or moment[:, zero].any():
        raise ValueError(
            f"{name} must be symmetric and positive semidefinite, "
            f"got the eigenvalue {values[0]:.3g} and a difference of {gap:.3g} across the diagonal"
        )
    met = values > 8 * d * rounding * values[-1]
    values, axes = np.sqrt(values[met]), axes[:, met]
    root = values[:, np.newaxis] * axes.T * sizes
    inverse = axes / values / sizes[:, np.newaxis]
    if len(root) < d:
        # Take the inverse that stays within the directions seen, then correct its rounding.
        basis = np.linalg.qr(root.T)[0]
        within = basis @ (basis.T @ inverse)
        inverse = within + inverse @ (np.eye(len(root)) - root @ within)
    return root, inverse


def factorize(w: ArrayLike, k: int, *, s_moment: Moment = None, h_moment: Moment = None) -> Factors:
    r"""Find the best factors of rank ``k`` of a matrix ``w`` (d2, d1), or of its scores.

    Without moments, $U^\top V = W_k$, which is nearest to $W$ in the Frobenius norm. With the
    second moments $\Gamma_s = \mathbb{E}\,s s^\top$ and $\Gamma_h = \mathbb{E}\,h h^\top$ of
    independent ``s`` and ``h`` it is

    $$M = \Gamma_s^{-1/2} \left[ \Gamma_s^{1/2} W \Gamma_h^{1/2} \right]_k \Gamma_h^{-1/2},$$

    which makes the mean squared error of the scores, $\mathbb{E}\,(s^\top (W - M) h)^2$, as small
    as possible: Eckart and Young (1936), doi:10.1007/BF02288367, after a change of variables. If
    the moments are singular, $M$ is zero in directions in which no vector ever points. The largest
    entry of each row of $U$ is positive, of equally large ones the first, and $U \Gamma_s U^\top =
    V \Gamma_h V^\top$ is diagonal: it holds the singular values of $\Gamma_s^{1/2} W
    \Gamma_h^{1/2}$ that are kept.

    ``k`` is between 1 and ``min(d2, d1)``. The moments (d2, d2) and (d1, d1), for samples ``s`` (n,
    d2) ``s.T @ s / n``, are not centered: a mean other than zero counts. They must be positive
    semidefinite, and symmetric to half the digits.

    >>> u, v = factorize([[2, 0], [0, 1]], k=1, s_moment=[[1, 0], [0, 9]])  # s_2 is larger
    >>> (u.T @ v).round(12)
    array([[0., 0.],
           [0., 1.]])
    """
    matrix = as_matrix(w, "w")
    k = check_rank(k, matrix.shape)
    d2, d1 = matrix.shape
    root_s, inverse_s = _root(s_moment, d2, "s_moment")
    root_h, inverse_h = _root(h_moment, d1, "h_moment")

    x, sigma, yt = np.linalg.svd(root_s @ matrix @ root_h.T, full_matrices=False)
    rank = min(k, len(sigma))  # the moments may span fewer than k directions
    u, v = np.zeros((d2, k)), np.zeros((d1, k))
    u[:, :rank] = inverse_s @ (x[:, :rank] * np.sqrt(sigma[:rank]))
    v[:, :rank] = inverse_h @ (yt[:rank].T * np.sqrt(sigma[:rank]))
    signs = _signs_of(u)
    return Factors(*((part * signs).T.astype(matrix.dtype) for part in (u, v)))


def score_error(
    w: ArrayLike, u: ArrayLike, v: ArrayLike, *, s_moment: Moment = None, h_moment: Moment = None
) -> float:
    r"""Compute the root mean square error of the scores when factors replace the matrix.

    The arguments are those of `factorize`. For independent ``s`` and ``h`` it is exact and needs
    only the moments: $\sqrt{\mathbb{E}\,(s^\top (W - U^\top V) h)^2} = \|\Gamma_s^{1/2} (W - U^\top
    V) \Gamma_h^{1/2}\|_F$. Without moments it is the Frobenius norm of the difference.

    >>> score_error([[3, 0], [4, 5]], [[1, 3]], [[1.5, 1.5]])  # the smaller singular value, sqrt(5)
    2.23606797749979
    """
    left, right = (x.astype(np.float64, copy=False) for x in _as_factors(u, v))
    matrix = as_matrix(w, "w", np.float64, (left.shape[1], right.shape[1]))
    root_s = _root(s_moment, len(matrix), "s_moment")[0]
    root_h = _root(h_moment, matrix.shape[1], "h_moment")[0]
    return float(np.linalg.norm(root_s @ (matrix - left.T @ right) @ root_h.T))


def fit_factors(
    target: ArrayLike,
    k: int,
    *,
    steps: int = 2000,
    rng: np.random.Generator | int | None = None,
) -> Fit:
    r"""Learn factors of a matrix ``target`` (n, m) by gradient descent, without an SVD.

    With the target $A$, the loss $J = \tfrac12 \|A - U V^\top\|_F^2$ has the gradients $\partial J
    / \partial U = (U V^\top - A) V$ and $\partial J / \partial V = (U V^\top - A)^\top U$; each
    step moves both factors against them, $1 / (2 \sigma_1)$ times as far. Every local minimum of
    $J$ is global (Baldi and Hornik, 1989, doi:10.1016/0893-6080(89)90014-2), so from almost every
    start the loss tends to half the sum of the squared singular values left out.

    ``k`` is between 1 and ``min(n, m)``, ``steps`` at least 0. ``rng``, a generator or a seed,
    draws a small Gaussian start, $\|U\|_2 \approx \|V\|_2 \approx \sqrt{\sigma_1} / 10$. Directions
    of small singular values grow last: if $\sigma_k$ is below a hundredth of $\sigma_1$, take more
    steps.

    >>> u, v, losses = fit_factors([[3, 0], [4, 5]], k=1, rng=0)
    >>> round(float(losses[-1]), 9)  # half the square of the smaller singular value, sqrt(5)
    2.5
    """
    original = as_matrix(target, "target")
    k = check_rank(k, original.shape)
    matrix = original.astype(np.float64)
    largest = float(np.linalg.norm(matrix, 2))
    rate = 0.5 / (largest or 1.0)  # a zero matrix has zero factors from the start
    steps, rng = check_integer(steps, "steps", 0), np.random.default_rng(rng)

    # The largest singular value of each factor is about sqrt(largest) / 10.
    u, v = (
        math.sqrt(largest) / 10 / (math.sqrt(n) + math.sqrt(k)) * rng.standard_normal((n, k))
        for n in matrix.shape
    )
    residual = u @ v.T - matrix
    losses = [np.vdot(residual, residual) / 2]
    for _ in range(steps):
        u, v = u - rate * (residual @ v), v - rate * (residual.T @ u)  # both from the old factors
        residual = u @ v.T - matrix
        losses.append(np.vdot(residual, residual) / 2)
    return Fit(u.astype(original.dtype), v.astype(original.dtype), np.array(losses))
