"""Keep the k strongest directions of a matrix, and predict the error from its spectrum.

Chapter ``book/02-svd-pca.md``. Letters: ``a`` (m, n) is the matrix, ``s`` (min(m, n),) its singular
values, largest first, and ``k`` the rank kept, between 1 and ``min(m, n)``; a ``norm`` is "fro" or
"spectral". Where ``a`` may be (..., m, n), a stack of matrices gives the results of its matrices,
stacked: the last two axes are always a matrix, so move the colors of an image to the front. Arrays
are real, finite and non-empty. A spectrum holds singular values, not their squares, is
non-negative, and never rises. Float16 and float32 are factored in float32, everything else in
float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import (
    Factor,
    FloatArray,
    as_factor,
    as_float_array,
    as_matrices,
    as_spectrum,
    check_bool,
    check_choice,
    check_fraction,
    check_integer,
    check_rank,
    check_real,
    check_shape,
    precision,
)

__all__ = [
    "SVDResult", "best_rank_k", "choose_rank", "fix_signs", "hard_threshold", "noise_edge",
    "randomized_svd", "relative_error", "tail_error", "truncated_svd",
]  # fmt: skip

NORMS = ("fro", "spectral")


class SVDResult(NamedTuple):
    """A truncated singular value decomposition, ``a ~ (u * s) @ vt``.

    For a stack it is ``(u * s[..., None, :]) @ vt``. The columns of ``u`` (..., m, k) and the rows
    of ``vt`` (..., k, n) are orthonormal, and ``s`` (..., k) falls. The largest entry of each
    column of ``u`` is positive; of equally large ones, the first.
    """

    u: FloatArray
    s: FloatArray
    vt: FloatArray


def fix_signs(vectors: ArrayLike) -> FloatArray:
    """Return a sign for each column of ``vectors`` (..., m, k).

    The sign (1 or -1) makes the largest entry of its column positive.
    A singular pair may be negated as a whole, and this picks one of the two. Among entries that
    agree to half their digits the first decides, so that rounding cannot.
    """
    return _signs_of(as_matrices(vectors, "vectors"))


def _signs_of(columns: FloatArray) -> FloatArray:
    """Return what `fix_signs` does, for columns of any length."""
    size = np.abs(columns)
    nearly = 1 - math.sqrt(np.finfo(columns.dtype).eps)
    first = np.argmax(size >= nearly * size.max(axis=-2, keepdims=True), axis=-2, keepdims=True)
    largest = np.take_along_axis(columns, first, axis=-2)[..., 0, :]
    signs: FloatArray = np.where(largest < 0, -1, 1).astype(columns.dtype)
    return signs


def _leading(u: FloatArray, s: FloatArray, vt: FloatArray, k: int) -> SVDResult:
    """Copy the first ``k`` triplets, so that the rest can be freed, and fix their signs."""
    signs = _signs_of(u[..., :k])
    return SVDResult(
        u[..., :k] * signs[..., np.newaxis, :],
        s[..., :k].copy(),
        vt[..., :k, :] * signs[..., np.newaxis],
    )


def truncated_svd(a: ArrayLike, k: int) -> SVDResult:
    r"""Return the ``k`` largest singular values and vectors, $A \approx U_k \Sigma_k V_k^\top$.

    Source: Golub and Van Loan (2013), *Matrix Computations*, 4th edition, section 2.4.

    >>> u, s, vt = truncated_svd([[3, 0], [4, 5]], k=1)  # singular values sqrt(45) and sqrt(5)
    >>> s.round(6), ((u * s) @ vt).round(6).tolist()
    (array([6.708204]), [[1.5, 1.5], [4.5, 4.5]])
    """
    matrix = as_matrices(a, "a")
    rank = check_rank(k, matrix.shape[-2:])
    return _leading(*np.linalg.svd(matrix, full_matrices=False), rank)


def best_rank_k(a: ArrayLike, k: int) -> FloatArray:
    r"""Return the closest matrix of rank up to ``k``, $A_k = \sum_{i \le k} \sigma_i u_i v_i^\top$.

    The result is closest in the Frobenius norm, the spectral norm, and every other norm that
    depends only on the singular values. In the Frobenius norm no other is as close if $\sigma_k >
    \sigma_{k+1}$. Sources: Eckart and Young (1936), doi:10.1007/BF02288367; Mirsky (1960),
    doi:10.1093/qmath/11.1.50.

    >>> best_rank_k([[3, 0], [0, 1]], k=1).tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    """
    u, s, vt = truncated_svd(a, k)
    product: FloatArray = (u * s[..., np.newaxis, :]) @ vt
    return product


def tail_error(s: ArrayLike, k: int, norm: str = "fro") -> float:
    r"""Return the error of the best rank-``k`` approximation from all singular values ``s`` (r,).

    It is $\sqrt{\sum_{i>k} \sigma_i^2}$ in the Frobenius norm and $\sigma_{k+1}$ in the spectral
    norm, for ``k`` from 0 to ``len(s)``. Values that ``s`` leaves out, as `randomized_svd` does,
    are not counted. Source: Eckart and Young (1936), doi:10.1007/BF02288367.

    >>> tail_error([3.0, 2.0, 1.0], k=1), tail_error([3.0, 2.0, 1.0], k=1, norm="spectral")
    (2.23606797749979, 2.0)
    """
    spectrum = as_spectrum(s, "s")
    tail = spectrum[check_integer(k, "k", 0, spectrum.size, "len(s)") :]
    if check_choice(norm, "norm", NORMS) == "spectral":
        return float(tail.max(initial=0.0))
    return math.hypot(*tail)


def relative_error(approx: ArrayLike, exact: ArrayLike, norm: str = "fro") -> Any:
    r"""Return the relative error of an approximation, $\|\tilde A - A\| / \|A\|$.

    The result is a float for two matrices of one shape, and an array (...) for two stacks of shape
    (..., m, n). No matrix of ``exact`` may be zero. A zero matrix as ``approx`` has the error 1.

    >>> relative_error([[3, 0], [0, 0]], [[3, 0], [0, 4]])
    0.8
    """
    guess = as_matrices(approx, "approx", np.float64)
    truth = as_matrices(exact, "exact", np.float64)
    order: Any = "fro" if check_choice(norm, "norm", NORMS) == "fro" else 2
    check_shape("approx", guess, truth.shape)
    if not truth.any(axis=(-2, -1)).all():
        raise ValueError("exact must be non-zero, got a zero matrix")
    axis = None if truth.ndim == 2 else (-2, -1)
    error = np.linalg.norm(guess - truth, order, axis) / np.linalg.norm(truth, order, axis)
    return error if error.ndim else float(error)


def _apart(y: FloatArray) -> FloatArray:
    """Return columns (m, b) with the span of ``y`` that are far from parallel.

    So a product blurs none of them. Cholesky's factor of the small ``y.T @ y`` does this several
    times faster than QR. It need not exist where columns are nearly dependent; there QR serves.
    """
    y = y / (np.abs(y).max() or 1)  # so that squares neither overflow nor vanish
    try:
        return y @ np.linalg.inv(np.linalg.cholesky(y.T @ y)).T
    except np.linalg.LinAlgError:
        return np.linalg.qr(y)[0]


def randomized_svd(
    a: ArrayLike | Factor,
    k: int,
    *,
    oversample: int = 10,
    power_iterations: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> SVDResult:
    r"""Approximate the ``k`` largest singular values and vectors from a few products.

    A block of ``k + oversample`` random vectors $g$ is sent through the matrix and back,
    $(AA^\top)^t Ag$, with $t$ = ``power_iterations``, and the matrix is projected onto an
    orthonormal basis $Q$ of the result. The SVD of the small $Q^\top A$ then gives that of $QQ^\top
    A \approx A$. By default $t$ is 8, or 5 if ``k`` is at least a tenth of the shorter side, and 4
    from a fifth on. Where the block would be as wide as that side, the result is exact up to
    rounding.

    Whatever is drawn, the vectors are orthonormal, no singular value exceeds the exact one, and
    $\|A - \tilde A\|_F^2 = \|A\|_F^2 - \sum_i \sigma_i^2$ with the values returned, all up to
    rounding. ``rng``, a generator or a seed, draws the block.

    The function needs only ``2 (t + 1)`` products of ``a`` with such blocks, so a sparse matrix of
    SciPy stays sparse, and a matrix too large to write down can be a
    ``scipy.sparse.linalg.LinearOperator``. ``oversample`` and ``power_iterations`` are at least 0.

    Source: Halko, Martinsson, and Tropp (2011), doi:10.1137/090771806, algorithms 4.4 and 5.1.

    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 200))
    >>> u, s, vt = randomized_svd(a, k=5, rng=rng)
    >>> u.shape, vt.shape, bool(relative_error((u * s) @ vt, a) < 1e-14)
    ((300, 5), (5, 200), True)
    """
    matrix: Factor = as_factor(a, "a")
    rank, short = check_rank(k, matrix.shape), min(matrix.shape)
    block = rank + check_integer(oversample, "oversample", 0)
    usual = 8 if 10 * rank < short else 5 if 5 * rank < short else 4
    passes = usual if power_iterations is None else power_iterations
    check_integer(passes, "power_iterations", 0)
    generator = np.random.default_rng(rng)
    dtype, wide = precision(matrix.dtype), matrix.shape[0] < matrix.shape[1]
    tall = matrix.T if wide else matrix  # the block is drawn on the short side
    if block < short:
        start = generator.standard_normal((short, block), dtype=dtype)
    else:  # the block has room for all directions: none is left to chance, and no pass is needed
        start, passes = np.eye(short, dtype=dtype), 0
    y = tall @ start
    for _ in range(passes):
        y = tall @ _apart(tall.T @ _apart(y))
    q = np.linalg.qr(y)[0]
    w, s, vt = np.linalg.svd((tall.T @ q).T, full_matrices=False)
    u = q @ w[:, :rank]
    return _leading(vt[:rank].T, s, u.T, rank) if wide else _leading(u, s, vt, rank)


def _marchenko_pastur_median(beta: float) -> float:
    r"""Return the median of the Marchenko-Pastur law for ``beta``.

    It is the limit of squared singular values of noise. With $t = 1 + \beta - 2\sqrt\beta
    \cos\theta$ the distribution function is $\left(\beta\theta + \sqrt\beta \sin\theta - (1 -
    \beta)\varphi\right) / (\pi\beta)$, where $\varphi$ is the angle of $1 / (1 - \sqrt\beta
    e^{i\theta})$. Bisection in $\theta$ is exact to the last digits.
    """
    r = math.sqrt(beta)
    low, high = 0.0, math.pi
    for _ in range(60):
        theta = (low + high) / 2
        phi = math.atan2(r * math.sin(theta), 1 - r * math.cos(theta))
        if beta * theta + r * math.sin(theta) - (1 - beta) * phi < math.pi * beta / 2:
            low = theta
        else:
            high = theta
    return 1 + beta - 2 * r * math.cos(low)


def hard_threshold(s: ArrayLike, m: int, n: int, noise: float | None = None) -> float:
    r"""Return the threshold below which singular values of a noisy (m, n) matrix are best dropped.

    For independent normal noise of standard deviation ``noise`` in every entry, and with
    $\beta = \min(m, n) / \max(m, n)$, it is $x \sqrt{\max(m, n)} \cdot \mathrm{noise}$, where
    $x^2 = 2(\beta + 1) + 8\beta / (\beta + 1 + \sqrt{\beta^2 + 14\beta + 1})$. In the limit of
    growing m and n, at a fixed ratio and rank, with singular values of the signal that grow like
    those of the noise, no other fixed threshold has a smaller mean squared error. ``noise`` is at
    least 0 and below 1e75. If it is None, the threshold is $x / \sqrt{y} \cdot \mathrm{median}(s)$,
    where $y$ is the median of the Marchenko-Pastur law for $\beta$; this supposes that the rank is
    well below half of ``min(m, n)``. ``s`` must hold all singular values: of a correlation matrix
    of m rows they are ``np.sqrt(m * eigenvalues)``. Source: Gavish and Donoho (2014),
    doi:10.1109/TIT.2014.2323359.

    >>> round(hard_threshold([9.0, 2.0, 1.0], 3, 3, noise=0.5), 6)  # 4 / sqrt(3) sqrt(3) 0.5
    2.0
    """
    beta, unit = _noise_unit(s, m, n, noise)
    square = 2 * (beta + 1) + 8 * beta / (beta + 1 + math.sqrt(beta**2 + 14 * beta + 1))
    return math.sqrt(square) * unit


def noise_edge(s: ArrayLike, m: int, n: int, noise: float | None = None) -> float:
    r"""Return what singular values of (m, n) noise alone reach, $\nu(\sqrt m + \sqrt n)$.

    A sheet of the signal that stands above it comes with the direction of noise mixed in, so that a
    cut should keep only what is above the somewhat higher `hard_threshold`. The arguments (singular
    values, not eigenvalues), what is assumed of the noise, and how its standard deviation $\nu$
    follows from the median of ``s`` where ``noise`` is None, are the same there. The edge is a
    limit for growing m and n: the largest value of a finite matrix of noise lies a little above or
    below it. Source: Benaych-Georges and Nadakuditi (2012), doi:10.1016/j.jmva.2012.04.019.

    >>> round(noise_edge([9.0, 2.0, 1.0], 3, 3, noise=0.5), 6)  # 2 times sqrt(3) times 0.5
    1.732051
    """
    beta, unit = _noise_unit(s, m, n, noise)
    return (1 + math.sqrt(beta)) * unit


def _noise_unit(s: ArrayLike, m: int, n: int, noise: float | None) -> tuple[float, float]:
    r"""Return $\beta$, and the noise's standard deviation times $\sqrt{\max(m, n)}$."""
    spectrum = as_spectrum(s, "s")
    shape = check_integer(m, "m"), check_integer(n, "n")
    short, long = sorted(shape)
    if spectrum.size != short:
        raise ValueError(f"s must hold all min(m, n) = {short} values, got {spectrum.size}")
    beta = short / long
    if noise is None:
        return beta, float(np.median(spectrum)) / math.sqrt(_marchenko_pastur_median(beta))
    level = check_real(noise, "noise", "at least 0 and below 1e75", 0.0, 1e75)
    return beta, math.sqrt(long) * level


def choose_rank(
    s: ArrayLike,
    *,
    energy: float | None = None,
    error: float | None = None,
    gap: bool = False,
    threshold: float | tuple[int, int] | None = None,
    total: float | None = None,
) -> int:
    r"""Choose the rank ``k`` at which to cut a spectrum ``s`` (r,), by exactly one of four rules.

    ``s`` are singular values, not eigenvalues or variances: of a correlation matrix of T rows take
    ``np.sqrt(T * eigenvalues)``, and of a PCA ``pca.singular_values_``.

    ``energy``, above 0 and below 1: the least ``k`` that keeps at least this share of $\sum_i
    \sigma_i^2$.

    ``error``, at least 0 and below 1: the least ``k`` whose best approximation has at most this
    relative error in the Frobenius norm (Eckart and Young, 1936, doi:10.1007/BF02288367). An error
    of 10% is an energy of 99%. Both are met if they are met up to rounding. An error of 0 counts
    every value that is not 0, also what rounding left of zeros; `numerical_rank` counts without it.
    Both rules need the whole spectrum, or, if ``s`` holds only its first values, such as those of
    `randomized_svd`, the sum of all squares as ``total``: $\|A\|_F^2$. If the values in ``s`` are
    then too few, the rule is refused.

    ``gap=True``: the ``k`` with the largest ratio $\sigma_k / \sigma_{k+1}$, of ratios that agree
    to half their digits the first. Values below $r \varepsilon \sigma_1$ count as rounding. The
    last values of noise can lie far apart by chance, so in the second half of the spectrum only
    ``1/r`` of what a ratio exceeds 1 by counts. If no ratio stands out, ``threshold`` serves
    better; values that are equal up to rounding are refused.

    ``threshold``: the number of values above this threshold. The shape (m, n) of the matrix, given
    instead of a number, stands for the best threshold for noise of unknown size, `hard_threshold`,
    but at least for the rounding of a table without noise, $\max(m, n) \varepsilon \sigma_1$; then
    ``s`` must hold all singular values. ($\varepsilon$ is that of the type of ``s``.)

    The result is 0 if all values are zero, or if none is above the threshold.

    >>> s = [5, 4, 3, 2, 1]
    >>> choose_rank(s, energy=0.9), choose_rank(s, error=0.4), choose_rank(s, threshold=3.5)
    (3, 3, 2)
    >>> choose_rank([9, 8, 2, 1], gap=True), choose_rank([5, 4, 3], energy=0.9, total=55)
    (2, 3)
    """
    spectrum = as_spectrum(s, "s")
    flag = check_bool(gap, "gap") or None
    rules = {"energy": energy, "error": error, "gap": flag, "threshold": threshold}
    chosen = [name for name, value in rules.items() if value is not None]
    if len(chosen) != 1:
        raise ValueError(f"one of energy, error, gap, and threshold must be given, got {chosen}")
    if total is not None and chosen[0] not in ("energy", "error"):
        raise ValueError(f"total must be left out unless energy or error is given, got {total}")
    eps = float(np.finfo(as_float_array(s, "s").dtype).eps)
    if gap:
        return _widest_gap(spectrum / (spectrum[0] or 1), eps)
    if threshold is not None:
        if isinstance(threshold, tuple | list) and len(threshold) == 2:
            best = hard_threshold(s, *threshold)
            threshold = max(best, max(threshold) * eps * float(spectrum[0]))
        level = check_real(threshold, "threshold", "at least 0", 0.0)
        return int(np.count_nonzero(spectrum > level))
    slack = 1 + spectrum.size * float(np.finfo(np.float64).eps)  # the rounding of sums
    rest = 0.0 if total is None else _beyond(spectrum, total, eps)
    # The error at each k from 0 on. Unlike squares, np.hypot loses no small value.
    lost = np.hypot.accumulate(np.append(rest, spectrum[::-1]))[::-1]
    if error is not None:
        most = slack * check_fraction(error, "error", 0)
    else:
        share = 1 - check_fraction(energy, "energy")
        most = slack * math.sqrt(share + 2.0**-54)  # half a unit of the last digit of energy
    # Nothing at all is enough of zeros only.
    enough = lost <= min(most, math.nextafter(1.0, 0.0)) * lost[0]
    if not enough[-1]:
        raise ValueError(f"s must hold enough values for this {chosen[0]}, got {spectrum.size}")
    return int(np.argmax(enough))


def _widest_gap(scaled: FloatArray, eps: float) -> int:
    """Return the rank below which a spectrum, scaled to start at 1, falls by the largest factor."""
    floored = np.maximum(scaled, scaled.size * eps)
    excess = floored[:-1] / floored[1:] - 1
    if excess.max(initial=0) <= 2 * scaled.size * eps:
        raise ValueError(f"s must have a gap, got {scaled.size} equal values")
    excess[scaled.size // 2 :] /= scaled.size
    return int(np.argmax(excess >= excess.max() * (1 - math.sqrt(eps)))) + 1


def _beyond(spectrum: FloatArray, total: float, eps: float) -> float:
    """Return the error that part of a spectrum leaves, without what is only rounding."""
    whole = check_real(total, "total", "at least 0", 0.0)
    part = float(np.square(spectrum).sum())
    if whole < part * (1 - 1e-6):  # float32 values have no more digits
        raise ValueError(f"total must be at least the squares of s = {part:g}, got {whole:g}")
    rest = whole - part
    return math.sqrt(rest) if rest > 10 * spectrum.size * eps * whole else 0.0
