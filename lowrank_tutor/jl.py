"""Count the random directions that preserve all distances: about ln(points) / eps^2.

Chapter ``book/04-johnson-lindenstrauss.md``. Letters: ``x`` (n, d) holds one point per row;
``projection`` (k, d), in formulas ``R``, is random; ``k``, the number of directions, is between 1
and 2**53; ``eps``, the relative error allowed in a squared length, and ``delta``, the allowed
chance of failure, lie above 0 and below 1. Matrices are real, finite and non-empty, and computed in
float64. Everything rests on one exact law: ``||R x||^2 / ||x||^2`` is chi-square with ``k`` degrees
of freedom, over ``k``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor._checks import (
    FloatArray,
    as_matrix,
    check_choice,
    check_fraction,
    check_integer,
    check_real,
)

__all__ = [
    "distortion", "gaussian_projection", "inner_product_failure_bound", "inner_product_std",
    "min_dim", "norm_failure_bound", "norm_failure_chernoff", "norm_failure_probability",
    "projected_product_error", "sign_inner_product_std", "sign_inner_products",
]  # fmt: skip

_NEGLIGIBLE = 42.0  # an integrand that has fallen by a factor of e^42 no longer counts in a float
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)  # 40 would be enough for 14 digits
_ROWS = 128  # points whose distances to all later points come from one product of matrices


def _check_cosine(value: object) -> float:
    return check_real(value, "rho", "between -1 and 1", -1.0, math.nextafter(1.0, 2.0))


# Why not SciPy's tails? At k = 1e10 and eps = 1e-4, those of SciPy 1.17 are 41% too small.
def _psi(v: FloatArray | float) -> FloatArray:
    """Return ``e**v - 1 - v``, accurately even where the terms nearly cancel."""
    v = np.asarray(v, dtype=np.float64)
    series = np.polyval([1 / math.factorial(j) for j in range(20, 1, -1)], v)
    return np.where(np.abs(v) < 1, v * v * series, np.expm1(v) - v)


def _chernoff_exponent(x: float) -> float:
    """Return ``x - log(1 + x)``, Chernoff's exponent of a tail.

    For ``x = eps`` it is the upper tail, for ``x = -eps`` the lower.
    """
    return float(_psi(math.log1p(x)))


def _log_peak(a: float) -> float:
    """Return the logarithm of ``a**a * exp(-a) / gamma(a)``, about ``sqrt(a / (2 pi))``."""
    if a < 16:
        return a * math.log(a) - a - math.lgamma(a)
    b = a * a  # Stirling's series; the terms above would cancel
    return (
        math.log(a / (2 * math.pi)) / 2
        - (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * b)) / b) / b) / a
    )


def _integration_width(c: float, x: float) -> float:
    """Return a ``w`` at which ``(1 + x) * psi(+-w) + |x| * w`` has surely passed ``c``.

    The sign is that of ``x``. ``psi(log(1 + c + sqrt(2 c))) >= c``, since ``e**s >= 1 + s + s**2 /
    2``; ``psi(-w) >= w**2 / (2 + w)``; and for negative ``x`` the sum is at least ``w - 1``.
    """
    if x > 0:
        bent = math.log1p(c + math.sqrt(2 * c))
    else:
        steep = c / (1 + x)
        bent = min((steep + math.sqrt(steep * (steep + 8))) / 2, c + 1)
    return min(bent, c / abs(x))


def _log_tail(k: int, x: float) -> float:
    r"""Return the logarithm of the chance that chi-square(k)/k passes 1 + x.

    It is Pr(> 1 + x) for positive ``x``, and Pr(< 1 + x) for negative. With $a = k/2$, $v =
    \ln(\chi^2_k/k)$ has the density $\frac{a^a e^{-a}}{\Gamma(a)} e^{-a\psi(v)}$, $\psi(v) = e^v -
    1 - v$. With $v = \ln(1 + x) \pm w$, counted from the edge, $\psi(v) = (x - \ln(1 + x)) + (1 +
    x)\psi(\pm w) + |x| w$: Chernoff's bound factors out, and a smooth, falling integrand without
    cancellation is left, at any ``k``.
    """
    a = k / 2
    half = _integration_width(_NEGLIGIBLE / a, x) / 2
    w = half * (_NODES + 1)
    fall = np.exp(-a * ((1 + x) * _psi(math.copysign(1, x) * w) + abs(x) * w))
    return _log_peak(a) - a * _chernoff_exponent(x) + math.log(half * float(_WEIGHTS @ fall))


def _log_failure(k: int, eps: float) -> float:
    """Return the logarithm of the exact failure probability, at most 0."""
    return min(float(np.logaddexp(_log_tail(k, eps), _log_tail(k, -eps))), 0.0)


def _log_chernoff(k: int, eps: float) -> float:
    """Return the logarithm of the sum of Chernoff's two bounds."""
    return float(np.logaddexp(-k / 2 * _chernoff_exponent(eps), -k / 2 * _chernoff_exponent(-eps)))


def norm_failure_probability(k: int, eps: float) -> float:
    r"""Return the chance that a projection changes a squared length by more than ``eps`` of it.

    This is exactly $\Pr(|\chi^2_k / k - 1| > \varepsilon)$ for every vector, if the entries of $R$
    are independent $N(0, 1/k)$. It falls as ``k`` grows. The relative accuracy is 1e-12 as long as
    the result is a normal float; below the smallest float the result is 0. Source: Indyk and
    Motwani (1998), doi:10.1145/276698.276876.

    >>> round(norm_failure_probability(2, 0.5), 10)  # 1 - exp(-1/2) + exp(-3/2)
    0.6165995004
    """
    return math.exp(_log_failure(check_integer(k, "k"), check_fraction(eps, "eps")))


def norm_failure_chernoff(k: int, eps: float) -> float:
    r"""Bound `norm_failure_probability` by Chernoff's exponents, one for each tail.

    $e^{-\frac k2 (\varepsilon - \ln(1 + \varepsilon))} + e^{-\frac k2 (-\varepsilon - \ln(1 -
    \varepsilon))}$. The first term, for lengths that grow, is the larger. The bound can reach 2;
    above 1 it says nothing. Source: Chernoff (1952), doi:10.1214/aoms/1177729330.
    """
    return math.exp(_log_chernoff(check_integer(k, "k"), check_fraction(eps, "eps")))


def norm_failure_bound(k: int, eps: float) -> float:
    r"""Bound `norm_failure_probability` by a simple formula, the one that most texts print.

    $2 e^{-\frac k2 (\varepsilon^2/2 - \varepsilon^3/3)}$, which can reach 2; above 1 it says
    nothing. Source: Dasgupta and Gupta (2003), doi:10.1002/rsa.10073.

    >>> round(norm_failure_bound(24, 0.5), 12)  # 2 / e
    0.735758882343
    """
    directions, error = check_integer(k, "k"), check_fraction(eps, "eps")
    return 2 * math.exp(-directions / 2 * error**2 * (1 / 2 - error / 3))


def min_dim(n_points: int, eps: float, *, delta: float = 0.05, bound: str = "chi-square") -> int:
    r"""Return the smallest ``k`` for which a bound guarantees all distances at once.

    There are at least 2 points. The number of pairs, $n(n - 1)/2$, times the failure probability
    $p(k, \varepsilon)$ of one pair bounds the chance that any pair fails (the union bound). The
    result is the smallest $k$ for which this is at most $\delta$, and ``bound`` chooses $p$:
    "chi-square" is `norm_failure_probability`, exact for one pair; "chernoff" is
    `norm_failure_chernoff`; and "dasgupta-gupta" is `norm_failure_bound`, for which $k$ is $2
    \ln(n(n - 1)/\delta) / (\varepsilon^2/2 - \varepsilon^3/3)$, rounded up.

    The width of the data does not enter: if the result is larger, the bound is useless there. From
    about 1e12 on, the last digits are rounding errors, and an ``eps`` that leads beyond 2**53
    raises an error.

    Sources: Johnson and Lindenstrauss (1984), doi:10.1090/conm/026/737400; Dasgupta and Gupta
    (2003).

    >>> [min_dim(1000, 0.1, bound=name) for name in ("chi-square", "chernoff", "dasgupta-gupta")]
    [5806, 6914, 7205]
    """
    n = check_integer(n_points, "n_points", 2, math.inf)
    error, chance = check_fraction(eps, "eps"), check_fraction(delta, "delta")
    check_choice(bound, "bound", ("chi-square", "chernoff", "dasgupta-gupta"))
    # n (n - 1) / delta itself may overflow.
    log_needed = math.log(n) + math.log(n - 1) - math.log(chance)
    exponent = error**2 * (1 / 2 - error / 3)  # Dasgupta and Gupta's, at most either of Chernoff's
    if 2 * log_needed > 2**53 * exponent:
        raise ValueError(f"eps must be large enough for k to stay within 2**53, got {error}")
    high = math.ceil(2 * log_needed / exponent)
    if bound == "dasgupta-gupta":
        return high
    log_bound = _log_chernoff if bound == "chernoff" else _log_failure
    # Bisection: both bounds fall with k, both are at most Dasgupta and Gupta's, and k = 0 is too
    # small.
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if log_bound(middle, error) <= math.log(2) - log_needed:
            high = middle
        else:
            low = middle
    return high


def inner_product_std(rho: float, k: int) -> float:
    r"""Return the standard deviation of $\langle Rx, Ry\rangle$ for unit vectors.

    Their cosine is ``rho``, between -1 and 1. The result is $\sqrt{(1 + \rho^2)/k}$, exactly; the
    mean is $\rho$. For orthogonal vectors it is $1/\sqrt k$, so no error bound that is a multiple
    of $|\langle x, y\rangle|$ can hold for them.

    >>> inner_product_std(0.0, 100), inner_product_std(1.0, 50)
    (0.1, 0.2)
    """
    cosine = _check_cosine(rho)
    return math.sqrt((1 + cosine * cosine) / check_integer(k, "k"))


def sign_inner_product_std(rho: float, k: int) -> float:
    r"""Return the standard deviation of `sign_inner_products` for unit vectors.

    Their cosine is ``rho``, between -1 and 1. The result is $\sqrt{(\pi/2 - \rho^2)/k}$, exactly,
    for a Gaussian map of ``k`` rows; the mean is $\rho$. With all digits it is `inner_product_std`,
    which is larger where $\rho^2 > \pi/4 - 1/2$.

    >>> round(sign_inner_product_std(0.0, 100), 4), round(sign_inner_product_std(1.0, 100), 4)
    (0.1253, 0.0756)
    """
    cosine = _check_cosine(rho)
    return math.sqrt((math.pi / 2 - cosine * cosine) / check_integer(k, "k"))


def sign_inner_products(x: ArrayLike, y: ArrayLike, projection: ArrayLike) -> NDArray[np.float64]:
    r"""Estimate inner products of rows of ``x`` and ``y`` from one bit per direction.

    Of a row $x_i$ only its length and the signs of $Rx_i$ are used: entry $i, j$ of the result is
    $\sqrt{\pi/(2k)} \, \|x_i\| \operatorname{sign}(Rx_i)^\top (Ry_j)$. The sign of 0 is 1. If the
    entries of $R$ are independent $N(0, 1/k)$, the mean is $\langle x_i, y_j\rangle$. Source:
    Zandieh, Daliri and Han (2024), arXiv:2406.03482.

    >>> sign_inner_products([[3, 4]], [[1, 2]], [[1, 0]]).round(4)  # 5 times the root of pi/2
    array([[6.2666]])
    """
    stored = as_matrix(x, "x", np.float64)
    width = stored.shape[1]
    asking = as_matrix(y, "y", np.float64, ("n", width))
    r = as_matrix(projection, "projection", np.float64, ("k", width))
    signs = np.where(stored @ r.T >= 0, 1.0, -1.0)
    lengths = math.sqrt(math.pi / (2 * len(r))) * np.linalg.norm(stored, axis=1)
    return np.asarray(lengths[:, np.newaxis] * (signs @ (asking @ r.T).T))


def inner_product_failure_bound(k: int, eps: float) -> float:
    r"""Bound the chance that an inner product is off by over ``eps`` times both lengths.

    $\Pr(|\langle Rx, Ry\rangle - \langle x, y\rangle| > \varepsilon \|x\| \|y\|)
    \le 2 e^{-\frac k2 (\varepsilon - \ln(1 + \varepsilon))}$, for all $x$ and $y$. For unit vectors
    $\langle Rx, Ry\rangle = \frac14\|R(x + y)\|^2 - \frac14\|R(x - y)\|^2$ is the difference of two
    independent chi-squares over $k$ with weights $(1 \pm \rho)/2$. The weights add up to 1, so the
    exponent for a single chi-square serves. The result is at most `norm_failure_bound`, which
    therefore holds for inner products too. Source: Kabán (2015), doi:10.1145/2783258.2783324.
    """
    return 2 * math.exp(-check_integer(k, "k") / 2 * _chernoff_exponent(check_fraction(eps, "eps")))


def gaussian_projection(
    k: int, d: int, rng: np.random.Generator | int | None = None
) -> NDArray[np.float64]:
    r"""Draw a random projection (k, d), entries independent $N(0, 1/k)$.

    So $\mathbb{E}\|Rx\|^2 = \|x\|^2$. Apply it as ``projection @ vector``, or to points in rows as
    ``x @ projection.T``. The entries are float64, and so are the images; with
    ``.astype(np.float32)`` float32 points stay float32. ``d`` is the width of a point. Without
    ``rng``, a generator or a seed, each call draws different entries.

    >>> gaussian_projection(2, 3, np.random.default_rng(0)).round(3)
    array([[ 0.089, -0.093,  0.453],
           [ 0.074, -0.379,  0.256]])
    """
    rows, columns = check_integer(k, "k"), check_integer(d, "d")
    return np.random.default_rng(rng).standard_normal((rows, columns)) / math.sqrt(rows)


def _squared_distances(x: FloatArray, start: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    r"""Return squared distances from `_ROWS` points to all from ``start`` on.

    It also says which of them lost too many digits. $\|x - y\|^2 = \|x\|^2 + \|y\|^2 - 2 x^\top y$
    takes a fraction of the time that a difference for each pair would.
    """
    squares = np.einsum("ij,ij->i", x[start:], x[start:])
    sums = squares[:_ROWS, np.newaxis] + squares
    distances: FloatArray = sums - 2 * (x[start : start + _ROWS] @ x[start:].T)
    return distances, distances <= 1e-2 * sums


def distortion(x: ArrayLike, projection: ArrayLike) -> NDArray[np.float64]:
    r"""Measure how much a projection, random or not, changes each squared distance.

    $\|R(x_i - x_j)\|^2 / \|x_i - x_j\|^2 - 1$ for every pair $i < j$, in the order (0, 1), (0, 2),
    ..., (1, 2), ... of ``scipy.spatial.distance.pdist``: at least -1, and 0 where a distance is
    unchanged. The points are all different. Memory beyond the result grows with the number of
    points, not of pairs.

    >>> distortion([[0, 0], [3, 4], [3, 0]], [[1, 0]])  # the shadow on the first axis
    array([-0.64,  0.  , -1.  ])
    """
    points = as_matrix(x, "x", np.float64)
    n_points, width = points.shape
    r = as_matrix(projection, "projection", np.float64, ("k", width))
    # Sums of small squares keep more digits of their difference.
    centered = points - points.mean(axis=0)
    images = centered @ r.T
    rows = []
    for start in range(0, n_points, _ROWS):
        before, lost = _squared_distances(centered, start)
        after, lost_too = _squared_distances(images, start)
        for i, row in enumerate(lost | lost_too, start):
            again = i + 1 + np.flatnonzero(row[i + 1 - start :])
            steps = points[again] - points[i]
            size = np.abs(steps).max(axis=1)
            if not size.all():
                raise ValueError(f"x must hold different points, got row {i} again")
            steps /= size[:, np.newaxis]  # so that no square underflows
            for squared, some in ((before, steps), (after, steps @ r.T)):
                squared[i - start, again - start] = np.einsum("ij,ij->i", some, some)
            later = slice(i + 1 - start, None)
            rows.append(after[i - start, later] / before[i - start, later] - 1)
    return np.concatenate(rows)


def projected_product_error(p: ArrayLike, v: ArrayLike, k: int) -> float:
    r"""Return the expected error of ``p`` (m, n) times ``v`` (n, d) through ``k`` directions.

    It is relative, and the directions are random. ``p`` and ``v`` may be attention weights and
    values, or any other matrices. The result is exactly the square root of $\mathbb{E}\|P R^\top R
    V - P V\|_F^2 / \|P V\|_F^2$, which is $\sqrt{(1 + \kappa^2) / k}$ with $\kappa = \|P\|_F\|V\|_F
    / \|PV\|_F$, and at best $\sqrt{2/k}$. Above 1, zeros in place of the product would be better:
    where $V$ has independent entries of mean zero, the error is about $\sqrt{n/k}$. ``p @ v`` must
    not be zero.

    >>> projected_product_error([[0.5, 0.5]], [[1], [1]], k=8)  # best case: parallel, sqrt(2 / 8)
    0.5
    """
    left = as_matrix(p, "p", np.float64)
    right = as_matrix(v, "v", np.float64, (left.shape[1], "d"))
    directions = check_integer(k, "k")
    product_of_norms = float(np.linalg.norm(left) * np.linalg.norm(right))
    norm_of_product = float(np.linalg.norm(left @ right))
    if norm_of_product == 0:
        raise ValueError("p @ v must be non-zero, got norm 0.0")
    return math.hypot(1, product_of_norms / norm_of_product) / math.sqrt(directions)
