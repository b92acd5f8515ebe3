"""Random projections: the exact law of a length, bounds on it, the dimension they ask for, and what
is measured.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from lowrank_tutor.jl import (
    distortion,
    gaussian_projection,
    inner_product_failure_bound,
    min_dim,
    norm_failure_bound,
    norm_failure_chernoff,
    norm_failure_probability,
    sign_inner_product_std,
    sign_inner_products,
)

BOUNDS = ("chi-square", "chernoff", "dasgupta-gupta")
PROBABILITIES = (
    norm_failure_probability,
    norm_failure_chernoff,
    norm_failure_bound,
    inner_product_failure_bound,
)


def judged_failure(k, eps):
    """Sum the series of the incomplete gamma function in so many digits that 1 minus it is exact
    too.
    """
    with mpmath.workdps(40 + int(k * eps * eps / 9)):
        a, small = mpmath.mpf(k) / 2, mpmath.mpf(10) ** (-mpmath.mp.dps - 3)

        def below(x):
            term = total = mpmath.mpf(1)
            n = a
            while n < x or term > small * total:
                n += 1
                term *= x / n
                total += term
            return total * mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1))

        return 1 - below(a * (1 + mpmath.mpf(eps))) + below(a * (1 - mpmath.mpf(eps)))


def relative(got, expected):
    with mpmath.workdps(40):
        return abs(float(mpmath.mpf(got) / expected - 1))


def largest_k(eps, tail):
    """Find about the largest k whose upper tail still reaches the given value, from Chernoff's
    exponent.
    """
    return max(int(-2 * math.log(tail) / (eps - math.log1p(eps))), 1)


# The exact probability

GRID = [
    (k, eps)
    for eps in (0.001, 0.1, 0.5, 0.95, 0.999)
    for k in (1, 2, 31, 32, 100, 30_000, largest_k(eps, 1e-285))
    if k <= min(10**6, largest_k(eps, 1e-285))
]


@pytest.mark.parametrize(
    ("k", "eps"), [*GRID, (978_092, 0.006578082472991676)]
)  # the last is hard for SciPy 1.17
def test_long_series_agrees(k, eps):
    assert relative(norm_failure_probability(k, eps), judged_failure(k, eps)) < 1e-12


def test_elementary_cases():
    for eps in (1e-300, 1e-9, 0.25, 0.999, 1 - 1e-15):
        one = math.erf(math.sqrt((1 - eps) / 2)) + math.erfc(math.sqrt((1 + eps) / 2))
        two = -math.expm1(-(1 - eps)) + math.exp(-(1 + eps))
        assert norm_failure_probability(1, eps) == pytest.approx(one, rel=1e-13)
        assert norm_failure_probability(2, eps) == pytest.approx(two, rel=1e-13)


def test_ends_of_the_range():
    for function in PROBABILITIES:
        assert function(10**6, 0.5) == function(2**53, 0.999) == 0.0
        assert type(function(10**6, 0.5)) is type(function(3, 0.5)) is float
        assert 0 < function(7, math.nextafter(0, 1)) <= 2
        assert 0 <= function(1, math.nextafter(1, 0)) < 2
        assert function(np.int32(7), np.float32(0.5)) == function(7, Fraction(1, 2))
    k = largest_k(0.5, 1e-312)  # below the normal floats
    judged = float(judged_failure(k, 0.5))
    assert 0 < norm_failure_probability(k, 0.5) == pytest.approx(judged, rel=1e-6, abs=1e-322)
    for k, eps in itertools.product((1, 7, 2**53), (5e-324, 1e-300, 1e-12)):
        assert norm_failure_probability(k, eps) <= 1


# The dimension


def test_huge_numbers():
    assert type(min_dim(np.int64(10), np.float64(0.5), delta=np.float64(0.05))) is int
    per_decade = 4 * math.log(10) / (0.5**2 / 2 - 0.5**3 / 3)
    few, many = (
        min_dim(10**power, 0.5, bound="dasgupta-gupta") for power in (400, 800)
    )  # beyond every float
    assert many - few == pytest.approx(400 * per_decade, abs=1)
    assert 0.8 * few < min_dim(10**400, 0.5) < min_dim(10**400, 0.5, bound="chernoff") < few


@pytest.mark.parametrize("eps", [0.05, 0.25, 0.9])
def test_scikit_learn_min_dim(eps):
    """Its formula is Dasgupta and Gupta's with delta = 1 - 1/n, and its result is cut, not rounded
    up.
    """
    for n in (2, 100, 10**6):
        theirs = int(johnson_lindenstrauss_min_dim(n, eps=eps))
        assert theirs == min_dim(n, eps, delta=1 - 1 / n, bound="dasgupta-gupta") - 1


@pytest.mark.parametrize("bound", BOUNDS)
def test_eps_too_small(bound):
    message = r"^eps must be large enough for k to stay within 2\*\*53, got "
    edge = math.sqrt(4 * math.log(40) / 2**53)  # 2 ln(2 / 0.05) / (eps^2 / 2) = 2^53
    assert 0.5 * 2**53 < min_dim(2, edge * 1.0000001, bound=bound) <= 2**53
    for eps in (edge * 0.9999999, 1e-200):
        with pytest.raises(ValueError, match=f"{message}{eps}$"):
            min_dim(2, eps, bound=bound)
    assert min_dim(2, math.nextafter(1, 0), delta=math.nextafter(1, 0)) == 1
    assert min_dim(2, 0.5, delta=math.ulp(0.0)) > min_dim(2, 0.5, delta=1e-300)


# Inner products


# Inner products from signs


@pytest.mark.parametrize("rho", [-1.0, 0.0, 0.28])
def test_sign_moments(rho):
    """Integrate one row of the map, a normal point of the plane, over its angle: an inner product
    has two arms.
    """
    x, y = np.array([[1.0, 0.0]]), np.array([[rho, math.sqrt(1 - rho**2)]])
    angles = (np.arange(4096) + 0.5) * (2 * math.pi / 4096)  # no edge of a sign lies on one
    one = np.array([sign_inner_products(x, y, [[math.cos(a), math.sin(a)]])[0, 0] for a in angles])
    mean_length, mean_square = math.sqrt(math.pi / 2), 2.0  # of a normal point of the plane
    assert mean_length * one.mean() == pytest.approx(rho, abs=1e-6)
    variance = mean_square * (one**2).mean() - rho**2
    assert sign_inner_product_std(rho, 1) ** 2 == pytest.approx(variance, abs=1e-12)
    assert sign_inner_product_std(rho, 9) == pytest.approx(sign_inner_product_std(rho, 1) / 3)
    of_zero = sign_inner_products([[1, 0]], [[0, 1]], [[0, 1]])
    assert of_zero[0, 0] == pytest.approx(math.sqrt(math.pi / 2))  # the sign of 0 is 1


# Random matrices


def test_entries_of_projection():
    r = gaussian_projection(50, 4000, default_rng(6))
    assert r.dtype == np.float64
    np.testing.assert_array_equal(r, default_rng(6).standard_normal((50, 4000)) / math.sqrt(50))
    same, seeded, other = (gaussian_projection(3, 4, rng) for rng in (default_rng(7), 7, None))
    np.testing.assert_array_equal(same, seeded)
    assert not np.array_equal(same, other)


# Distortion


@pytest.mark.parametrize(
    ("x", "projection", "expected"),
    [
        ([[0, 0], [3e-75, 4e-75], [3e-75, 0]], [[1, 0]], [9 / 25 - 1, 0, -1]),
        ([[0, 0], [3e74, 4e74], [3e74, 0]], [[1, 0]], [9 / 25 - 1, 0, -1]),
        ([[0, 0], [3, 4], [3, 0]], [[1e74, 0]], [0.36e148 - 1, 1e148 - 1, -1]),
        (
            [[0, 1], [1e-200, 1], [1, 1]],
            [[2, 1]],
            [3, 3, 3],
        ),  # whose square is too small for a float
        (
            [[0, 0, 0], [1e-200, 0, 0], [0, 1e-6, 0], [0, 0, 1]],
            [[1, 2, 3]],
            [0, 3, 8, 3, 8, (3 - 2e-6) ** 2 / (1 + 1e-12) - 1],
        ),
        ([[1, 2]], [[1, 0]], []),
        (
            [[0, 0], [0, 0.7], [1, 0]],
            [[1e8, 0], [0, 1]],
            [0, 1e16, 1e16 / 1.49],
        ),  # near among the images
        (
            [[0, 0], [0, 1e-8], [1, 0]],
            [[1, 0], [0, 1e8]],
            [1e16 - 1, 0, 1],
        ),  # near among the points
    ],
)
def test_distortions_by_hand(x, projection, expected):
    np.testing.assert_allclose(distortion(x, projection), expected, rtol=1e-11, atol=1e-11)


# Refusals
