"""Random projections: the exact law of a length, the bounds on it, the dimension they ask for, and what is measured."""

import itertools
import math
import re
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy import special, stats
from scipy.spatial.distance import pdist
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from lowrank_tutor import jl
from lowrank_tutor.jl import (
    distortion,
    gaussian_projection,
    inner_product_failure_bound,
    inner_product_std,
    min_dim,
    norm_failure_bound,
    norm_failure_chernoff,
    norm_failure_probability,
    projected_product_error,
)

BOUNDS = ("chi-square", "chernoff", "dasgupta-gupta")
PROBABILITIES = (norm_failure_probability, norm_failure_chernoff, norm_failure_bound, inner_product_failure_bound)
epsilons = st.floats(1e-3, 0.999)


def judged_tails(k, eps):
    """Sum the series of the incomplete gamma function in so many digits that 1 minus it is exact too."""
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

        return 1 - below(a * (1 + mpmath.mpf(eps))), below(a * (1 - mpmath.mpf(eps)))


def relative(got, expected):
    with mpmath.workdps(40):
        return abs(float(mpmath.mpf(got) / expected - 1))


def largest_k(eps, tail):
    """Find about the largest k whose upper tail still reaches the given value, from Chernoff's exponent."""
    return max(int(-2 * math.log(tail) / (eps - math.log1p(eps))), 1)


# the exact probability

SOME_EPS = [0.001, 0.01, 0.1, 0.3, 0.5, 0.8, 0.95, 0.999]
GRID = [
    (k, eps)
    for eps in SOME_EPS
    for k in (1, 2, 3, 5, 10, 30, 31, 32, 33, 100, 1000, 30_000, 10**6, largest_k(eps, 1e-285))
    if k <= 10**6 and k <= largest_k(eps, 1e-285)
]


@pytest.mark.parametrize(("k", "eps"), [*GRID, (978_092, 0.006578082472991676)])  # the last is hard for SciPy 1.17
def test_the_exact_probability_agrees_with_a_series_in_many_digits(k, eps):
    upper, lower = judged_tails(k, eps)
    assert upper + lower > 1e-290
    assert relative(norm_failure_probability(k, eps), upper + lower) < 1e-12
    if lower > 1e-300:  # each tail alone, too: in the sum the larger one hides the other
        assert relative(math.exp(jl._log_tail(k, eps)), upper) < 1e-12
        assert relative(math.exp(jl._log_tail(k, -eps)), lower) < 1e-12


@pytest.mark.parametrize("k", [1, 2, 3, 7, 50, 400])
@pytest.mark.parametrize("eps", [1e-300, 1e-9, 0.2, 0.7, 1 - 1e-15])
def test_the_exact_probability_agrees_with_mpmaths_gamma_function(k, eps):
    with mpmath.workdps(50):
        a, e = mpmath.mpf(k) / 2, mpmath.mpf(eps)
        inside = mpmath.gammainc(a, a * (1 - e), a * (1 + e), regularized=True)
        assert relative(norm_failure_probability(k, eps), 1 - inside) < 1e-12


@given(st.integers(1, 20_000), epsilons)
@settings(deadline=None)
def test_the_exact_probability_agrees_with_scipy(k, eps):
    a = k / 2
    expected = special.gammaincc(a, a * (1 + eps)) + special.gammainc(a, a * (1 - eps))
    if expected > 1e-290:
        assert norm_failure_probability(k, eps) == pytest.approx(expected, rel=1e-9, abs=0)
        outside = stats.chi2.sf(k * (1 + eps), k) + stats.chi2.cdf(k * (1 - eps), k)
        assert norm_failure_probability(k, eps) == pytest.approx(outside, rel=1e-9, abs=0)


@pytest.mark.parametrize(("k", "eps"), [(2**53, 1e-7), (2**53, 4e-7), (10**12, 3e-5), (10**10, 1e-4), (10**9, 1e-12)])
def test_the_probability_holds_up_to_the_largest_k(k, eps):
    """Judged by quadrature of the density of log(chi-square(k)/k) itself, between the two edges and far outside."""
    with mpmath.workdps(40):
        a, e = mpmath.mpf(k) / 2, mpmath.mpf(eps)
        peak = mpmath.exp(a * mpmath.log(a) - a - mpmath.loggamma(a))

        def tail(edge, sign):
            unit = 1 / (mpmath.sqrt(a) + a * e)  # over each, the density falls by a factor of 10 at most
            points = [edge + sign * unit * j for j in range(40)]
            value = mpmath.quad(lambda v: mpmath.exp(-a * (mpmath.expm1(v) - v)), points)
            return abs(peak * value)

        expected = tail(mpmath.log1p(e), 1) + tail(mpmath.log1p(-e), -1)
        assert relative(norm_failure_probability(k, eps), expected) < 1e-11


def test_scipys_tails_lose_their_digits_where_there_are_many_directions():
    """Contrast, and the reason for tails of our own: where this fails, SciPy's may do."""
    k, eps = 10**10, 1e-4
    scipys = special.gammaincc(k / 2, k / 2 * (1 + eps)) + special.gammainc(k / 2, k / 2 * (1 - eps))
    assert norm_failure_probability(k, eps) == pytest.approx(1.54e-12, rel=0.005)
    assert scipys == pytest.approx(0.59 * norm_failure_probability(k, eps), rel=0.01)


def test_with_two_directions_the_probability_is_elementary():
    for eps in (0.001, 0.25, 0.5, 0.999):
        expected = -math.expm1(-(1 - eps)) + math.exp(-(1 + eps))
        assert norm_failure_probability(2, eps) == pytest.approx(expected, rel=1e-13)


def test_with_one_direction_it_is_that_of_a_normal_variable():
    for eps in (0.001, 0.25, 0.5, 0.999):
        expected = math.erf(math.sqrt((1 - eps) / 2)) + math.erfc(math.sqrt((1 + eps) / 2))
        assert norm_failure_probability(1, eps) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("function", PROBABILITIES)
def test_below_the_smallest_float_the_probability_is_zero_and_silent(function):
    assert function(10**6, 0.5) == 0.0
    assert function(2**53, 0.999) == 0.0
    assert type(function(10**6, 0.5)) is type(function(3, 0.5)) is float


def test_between_the_normal_floats_and_zero_it_fades_out():
    k = largest_k(0.5, 1e-312)
    upper, lower = judged_tails(k, 0.5)
    assert 0 < norm_failure_probability(k, 0.5) == pytest.approx(float(upper + lower), rel=1e-6, abs=1e-322)


@pytest.mark.parametrize("k", [1, 2, 7, 1000, 2**53])
def test_as_eps_vanishes_failure_is_certain_and_never_more(k):
    assert norm_failure_probability(k, 5e-324) == pytest.approx(1, abs=1e-13)
    for eps in (5e-324, 1e-300, 1e-16, 1e-12):
        assert norm_failure_probability(k, eps) <= 1


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-9])
def test_the_two_sided_probability_falls_with_every_direction_more(eps):
    """Bisection in ``min_dim`` rests on this; the upper tail alone rises at first."""
    logs = [jl._log_failure(k, eps) for k in range(1, int(12 / eps**2) + 20)]
    assert (np.diff(logs) < 0).all()


def test_one_tail_alone_does_not_fall_from_the_start():
    assert math.exp(jl._log_tail(1, 0.01)) < math.exp(jl._log_tail(2, 0.01))


def test_the_law_is_that_of_projected_lengths():
    k, eps, trials, rng = 8, 0.5, 20_000, default_rng(1)
    x = rng.standard_normal(5)
    off = sum(abs(np.sum((gaussian_projection(k, 5, rng) @ x) ** 2) / (x @ x) - 1) > eps for _ in range(trials))
    p = norm_failure_probability(k, eps)
    assert abs(off / trials - p) < 5 * math.sqrt(p * (1 - p) / trials)
    assert abs(off / trials - norm_failure_chernoff(k, eps)) > 50 * math.sqrt(p * (1 - p) / trials)  # contrast


# the bounds


@given(st.integers(1, 10**6), st.floats(1e-6, 0.999))
@settings(deadline=None)
def test_the_bounds_come_in_order(k, eps):
    exact, chernoff, bound = (f(k, eps) for f in PROBABILITIES[:3])
    slack = 1 + 1e-9
    assert exact <= chernoff * slack
    assert chernoff <= bound * slack
    assert chernoff <= inner_product_failure_bound(k, eps) * slack <= bound * slack**2


@pytest.mark.parametrize("k", [1, 2, 25, 1000, 10**6])
@pytest.mark.parametrize("eps", [0.001, 0.1, 0.5, 0.62, 0.64, 0.9, 0.999])
def test_the_bounds_are_their_formulas(k, eps):
    with mpmath.workdps(50):
        a, e = mpmath.mpf(k) / 2, mpmath.mpf(eps)
        grow, shrink = mpmath.exp(-a * (e - mpmath.log(1 + e))), mpmath.exp(-a * (-e - mpmath.log(1 - e)))
        plain = 2 * mpmath.exp(-a * (e**2 / 2 - e**3 / 3))
    for got, expected in (
        (norm_failure_chernoff(k, eps), grow + shrink),
        (norm_failure_bound(k, eps), plain),
        (inner_product_failure_bound(k, eps), 2 * grow),
    ):
        assert got == 0 if expected < 1e-320 else relative(got, expected) < 1e-12


def test_bounds_worked_by_hand():
    assert norm_failure_bound(24, 0.5) == pytest.approx(2 / math.e, rel=1e-15)  # 24/2 (1/8 - 1/24) = 1
    assert norm_failure_chernoff(2, 0.5) == pytest.approx(1.5 / math.exp(0.5) + 0.5 * math.exp(0.5), rel=1e-15)
    assert inner_product_failure_bound(2, 0.5) == pytest.approx(3 / math.exp(0.5), rel=1e-15)


def test_twice_the_upper_tail_is_more_than_both_tails():
    """Contrast: a common shortcut, which asks for 7169 directions where 6914 are enough."""
    k = min_dim(1000, 0.1, bound="chernoff")
    pairs = 1000 * 999 / 2
    assert pairs * norm_failure_chernoff(k, 0.1) <= 0.05 < pairs * inner_product_failure_bound(k, 0.1)
    assert pairs * inner_product_failure_bound(7169, 0.1) <= 0.05 < pairs * inner_product_failure_bound(7168, 0.1)


@pytest.mark.parametrize("v", [1e-300, 1e-8, 1e-3, 0.5, 0.99, 1.01, 3.0, 36.0])
def test_psi_keeps_its_digits_where_its_terms_cancel(v):
    for value in (v, -v):
        with mpmath.workdps(700):
            expected = mpmath.expm1(value) - value
        if expected > 1e-300:
            assert relative(float(jl._psi(value)), expected) < 1e-15 * max(2, v)


@pytest.mark.parametrize("a", [0.5, 1.0, 7.5, 15.5, 16.0, 16.5, 20.0, 100.0, 1e6, 1e15])
def test_the_peak_of_the_density_keeps_its_digits(a):
    with mpmath.workdps(60):
        exact = mpmath.mpf(a) * mpmath.log(a) - a - mpmath.loggamma(a)
        assert abs(float(mpmath.mpf(jl._log_peak(a)) - exact)) < 2e-14


@pytest.mark.parametrize("c", [1e-13, 1e-5, 0.1, 1.0, 10.0, 84.0])
@pytest.mark.parametrize("eps", [1e-12, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-12])
def test_the_integral_ends_where_the_integrand_has_vanished_and_not_much_later(c, eps):
    for x in (eps, -eps):
        w = jl._integration_width(c, x)
        passed = (1 + x) * float(jl._psi(math.copysign(w, x))) + eps * w
        assert c * (1 - 1e-9) <= passed <= 6 * c


# min_dim


@pytest.mark.parametrize(
    ("n", "eps", "expected"),
    [
        (1000, 0.1, (5806, 6914, 7205)),
        (10**6, 0.5, (569, 634, 736)),
        (10, 0.5, (97, 144, 180)),
    ],
)
def test_known_dimensions(n, eps, expected):
    assert tuple(min_dim(n, eps, bound=bound) for bound in BOUNDS) == expected
    assert min_dim(n, eps) == expected[0]
    assert type(min_dim(np.int64(n), np.float64(eps), delta=np.float64(0.05))) is int


def test_ten_points_at_one_half_by_hand():
    """2 ln(90 / 0.05) / (1/8 - 1/24) = 24 ln 1800 = 179.89."""
    assert math.exp(179 / 24) < 1800 < math.exp(180 / 24)
    assert min_dim(10, 0.5, bound="dasgupta-gupta") == 180


def judged_failure(bound, k, eps):
    if bound == "chi-square":
        return sum(judged_tails(k, eps))
    e, a = mpmath.mpf(eps), mpmath.mpf(k) / 2
    if bound == "chernoff":
        return mpmath.exp(-a * (e - mpmath.log(1 + e))) + mpmath.exp(-a * (-e - mpmath.log(1 - e)))
    return 2 * mpmath.exp(-a * (e**2 / 2 - e**3 / 3))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(
    ("n", "eps", "delta"),
    [
        (2, 0.001, 0.999),
        (2, 0.5, 0.5),
        (2, 0.999, 0.01),
        (3, 0.9, 0.9),
        (10, 0.01, 0.05),
        (512, 0.1, 1e-9),
        (10**4, 0.05, 0.05),
        (10**6, 0.25, 0.001),
        (10**12, 0.5, 0.05),
        (10**12, 0.999, 1e-12),
        (10**100, 0.75, 1e-50),
    ],
)
def test_k_satisfies_its_bound_and_one_less_does_not(n, eps, delta, bound):
    k = min_dim(n, eps, delta=delta, bound=bound)
    with mpmath.workdps(50):
        target = mpmath.mpf(delta) / (n * (n - 1) // 2)
        assert judged_failure(bound, k, eps) <= target
        if k > 1:
            assert judged_failure(bound, k - 1, eps) > target


def test_the_whole_search_is_repeated_by_bisection_on_scipys_tails():
    for n, eps, delta in itertools.product((2, 50, 10**5), (0.05, 0.3, 0.9), (0.05, 0.5)):
        low, high = 0, 10**6
        while high - low > 1:
            k = (low + high) // 2
            tails = stats.chi2.sf(k * (1 + eps), k) + stats.chi2.cdf(k * (1 - eps), k)
            low, high = (low, k) if tails * n * (n - 1) / 2 <= delta else (k, high)
        assert min_dim(n, eps, delta=delta) == high


def test_a_single_direction_can_be_enough():
    assert norm_failure_probability(1, 0.99) < 0.4
    assert min_dim(2, 0.99, delta=0.4) == 1
    assert min_dim(2, 0.99, delta=0.99, bound="chernoff") > 1


@given(st.integers(2, 10**9), epsilons, st.floats(1e-9, 0.999))
@settings(deadline=None, max_examples=50)
def test_sharper_bounds_ask_for_less_and_harder_tasks_for_more(n, eps, delta):
    exact, chernoff, plain = (min_dim(n, eps, delta=delta, bound=bound) for bound in BOUNDS)
    assert 1 <= exact <= chernoff <= plain
    assert min_dim(n + 1, eps, delta=delta) >= exact
    assert min_dim(n, eps * 0.9, delta=delta) >= exact
    assert min_dim(n, eps, delta=delta * 0.9) >= exact


def test_numbers_of_points_beyond_every_float_are_fine():
    per_decade = 4 * math.log(10) / (0.5**2 / 2 - 0.5**3 / 3)
    few, many = (min_dim(10**power, 0.5, bound="dasgupta-gupta") for power in (400, 800))
    assert many - few == pytest.approx(400 * per_decade, abs=1)
    assert 0.8 * few < min_dim(10**400, 0.5) < min_dim(10**400, 0.5, bound="chernoff") < few


def test_large_dimensions_are_still_exact():
    with mpmath.workdps(50):
        for n, eps in ((10**6, 1e-4), (10**12, 1e-5)):
            e = mpmath.mpf(eps)
            exact = mpmath.ceil(2 * mpmath.log(mpmath.mpf(n) * (n - 1) / mpmath.mpf(0.05)) / (e**2 / 2 - e**3 / 3))
            assert min_dim(n, eps, bound="dasgupta-gupta") == exact
            for bound, log_bound in (("chernoff", jl._log_chernoff), ("chi-square", jl._log_failure)):
                k = min_dim(n, eps, bound=bound)
                assert log_bound(k, eps) <= math.log(0.1) - math.log(n) - math.log(n - 1) < log_bound(k - 10, eps)


SKLEARN_TABLE = list(itertools.product((2, 10, 100, 1000, 10**4, 10**6), (0.05, 0.1, 0.25, 0.5, 0.9)))


@pytest.mark.parametrize(("n", "eps"), SKLEARN_TABLE)
def test_scikit_learn_asks_for_one_less_than_its_own_bound_and_for_a_success_of_one_in_n(n, eps):
    """Its formula is Dasgupta and Gupta's with delta = 1 - 1/n, and its result is cut, not rounded up."""
    theirs = int(johnson_lindenstrauss_min_dim(n, eps=eps))
    assert theirs == min_dim(n, eps, delta=1 - 1 / n, bound="dasgupta-gupta") - 1
    assert n * (n - 1) / 2 * norm_failure_bound(theirs, eps) > 1 - 1 / n


def test_at_least_663_14_is_not_663():
    needed = 4 * math.log(10**6) / (0.5**2 / 2 - 0.5**3 / 3)
    assert needed == pytest.approx(663.14, abs=0.005)
    assert johnson_lindenstrauss_min_dim(10**6, eps=0.5) == 663
    assert min_dim(10**6, 0.5, delta=1 - 1e-6, bound="dasgupta-gupta") == 664


# inner products


def moments(k, n, polynomial):
    """Average a polynomial of degree 4 or 5 in the entries of R over all of Gauss-Hermite's grid: exactly."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    total = 0.0
    for choice in itertools.product(range(3), repeat=k * n):
        weight = np.prod(weights[list(choice)]) / math.sqrt(2 * math.pi) ** (k * n)
        total += weight * polynomial(nodes[list(choice)].reshape(k, n) / math.sqrt(k))
    return total


@pytest.mark.parametrize("rho", [-1.0, -0.6, 0.0, 0.28, 1.0])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_standard_deviation_of_an_inner_product_is_exact(rho, k):
    x, y = np.array([1.0, 0.0]), np.array([rho, math.sqrt(1 - rho**2)])
    assert moments(k, 2, lambda r: (r @ x) @ (r @ y)) == pytest.approx(rho, abs=1e-13)
    variance = moments(k, 2, lambda r: ((r @ x) @ (r @ y) - rho) ** 2)
    assert inner_product_std(rho, k) ** 2 == pytest.approx(variance, rel=1e-12)


def test_the_law_as_a_difference_of_two_chi_squares_gives_the_same_variance():
    for rho in (Fraction(-1), Fraction(-1, 3), Fraction(0), Fraction(3, 5)):
        for k in (1, 7, 64):
            exact = (((1 + rho) / 2) ** 2 + ((1 - rho) / 2) ** 2) * Fraction(2, k)  # the variance of chi2_k/k is 2/k
            assert exact == (1 + rho**2) / k
            assert inner_product_std(rho, k) == pytest.approx(math.sqrt(exact), rel=1e-15)


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5])
def test_simulated_inner_products_have_that_spread(rho):
    k, trials, rng = 16, 20_000, default_rng(2)
    x, y = np.array([1.0, 0.0]), np.array([rho, math.sqrt(1 - rho**2)])
    drawn = np.array([(r @ x) @ (r @ y) for r in (gaussian_projection(k, 2, rng) for _ in range(trials))])
    for sample, expected in ((drawn, rho), ((drawn - rho) ** 2, inner_product_std(rho, k) ** 2)):
        assert abs(sample.mean() - expected) < 5 * sample.std() / math.sqrt(trials)


def test_no_relative_bound_holds_for_orthogonal_vectors():
    """Contrast: eps * |<x, y>|, printed here and there, is 0 for them; the additive form holds."""
    k, eps, rng = 64, 0.5, default_rng(3)
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    drawn = np.array([(r @ x) @ (r @ y) for r in (gaussian_projection(k, 2, rng) for _ in range(2000))])
    assert (np.abs(drawn) > eps * abs(x @ y)).all()
    assert np.mean(np.abs(drawn) > eps) <= inner_product_failure_bound(k, eps)


@pytest.mark.parametrize("rho", [-1.0, -0.5, 0.0, 0.7, 1.0])
@pytest.mark.parametrize(("k", "eps"), [(1, 0.9), (5, 0.3), (40, 0.5), (400, 0.2)])
def test_the_additive_bound_holds_for_the_exact_law_of_an_inner_product(rho, k, eps):
    plus, minus = (1 + rho) / 2, (1 - rho) / 2
    b = stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, k) / k  # the second chi-square, averaged over

    def above(level, sign):  # P(plus A - minus b > level) for sign 1, P(... < level) for -1
        if plus == 0:
            return np.mean(sign * (-minus * b) > sign * level)
        edge = k * np.maximum((level + minus * b) / plus, 0)
        return np.mean(stats.chi2.sf(edge, k) if sign > 0 else stats.chi2.cdf(edge, k))

    exact = above(rho + eps, 1) + above(rho - eps, -1)
    assert 0 < exact <= inner_product_failure_bound(k, eps)
    if abs(rho) == 1:  # one chi-square is left, and its upper tail has this exponent
        assert exact == pytest.approx(norm_failure_probability(k, eps), abs=1e-4)


# P R^T R V


def loops(p, v, k):
    total = 0.0
    for row in p:
        for column in v.T:
            total += (row @ row) * (column @ column) + (row @ column) ** 2
    return math.sqrt(total / k) / np.linalg.norm(p @ v)


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 2), (2, 7, 5), (6, 6, 1)])
def test_the_error_of_a_projected_product_is_the_sum_over_its_entries(shape):
    m, n, d = shape
    p, v = default_rng(0).standard_normal((m, n)), default_rng(1).standard_normal((n, d))
    for k in (1, 3, 100):
        assert projected_product_error(p, v, k) == pytest.approx(loops(p, v, k), rel=1e-13)


@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 3), (3, 2)])
def test_the_error_of_a_projected_product_is_exact(k, n):
    p, v = default_rng(0).standard_normal((2, n)), default_rng(1).standard_normal((n, 2))
    assert moments(k, n, lambda r: (p @ r.T @ r @ v)[1, 0]) == pytest.approx((p @ v)[1, 0], rel=1e-12)
    square = moments(k, n, lambda r: np.sum((p @ r.T @ r @ v - p @ v) ** 2))
    expected = math.sqrt(square) / np.linalg.norm(p @ v)
    assert projected_product_error(p, v, k) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_simulated_products_have_that_error(mean):
    n, d, k, trials, rng = 40, 5, 8, 3000, default_rng(4)
    p, v = special.softmax(rng.standard_normal((n, n)), axis=1), mean + rng.standard_normal((n, d))
    exact = p @ v
    drawn = np.empty(trials)
    for i in range(trials):
        r = gaussian_projection(k, n, rng)
        drawn[i] = np.sum((p @ r.T @ (r @ v) - exact) ** 2) / np.sum(exact**2)
    law = projected_product_error(p, v, k) ** 2
    assert abs(drawn.mean() - law) < 5 * drawn.std() / math.sqrt(trials)


def test_for_values_of_mean_zero_zeros_are_better_at_every_k_and_with_a_mean_they_are_not():
    n, d, rng = 512, 64, default_rng(5)
    p = special.softmax(rng.standard_normal((n, n)), axis=1)
    v = rng.standard_normal((n, d))
    for k in (64, 256, n - 1):
        assert projected_product_error(p, v, k) > 1
        assert projected_product_error(p, v, k) == pytest.approx(math.sqrt(n / k), rel=0.1)
        assert projected_product_error(p, v + 3, k) < 0.3


def test_the_best_case_is_the_root_of_two_over_k_and_the_error_falls_with_k_alone():
    p = np.full((1, 300), 1 / 300)
    assert projected_product_error(p, np.ones((300, 4)), 50) == pytest.approx(0.2, rel=1e-14)
    assert projected_product_error(np.ones((1, 9)), np.ones((9, 4)), 50) == pytest.approx(0.2, rel=1e-14)


@pytest.mark.parametrize(("left", "right"), [(1e-75, 1e-75), (1e75, 5e74), (1e-75, 1.0), (1e75, 1e-75)])
def test_the_error_of_a_product_does_not_depend_on_its_scale(left, right):
    p, v = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0], [2.0]])
    expected = projected_product_error(p, v, 4)
    assert projected_product_error(p * left, v * right, 4) == pytest.approx(expected, rel=1e-13)


def test_a_product_far_smaller_than_its_factors_is_not_a_zero():
    """p = (1, t), v = (0, 1): the norms are 1, the product is t."""
    assert projected_product_error([[1.0, 1e-75]], [[0.0], [1.0]], 4) == pytest.approx(1e75 / 2, rel=1e-14)


def test_a_product_of_norm_zero_has_no_relative_error():
    for p, v in (([[1, 1]], [[1], [-1]]), ([[1.0, 1e-200]], [[0.0], [1.0]])):  # the square of 1e-200 vanishes
        with pytest.raises(ValueError, match=r"^p @ v must be non-zero, got norm 0\.0$"):
            projected_product_error(p, v, 3)


def test_two_matrices_whose_product_has_no_square_are_refused():
    """Each may be as large as any matrix, but not both at once."""
    large = np.full((30, 30), 1e75)
    assert projected_product_error(large, large, 4) == pytest.approx(math.sqrt(2 / 4), rel=1e-13)
    assert np.isfinite(distortion(np.diag(large[0]), large)).all()
    larger = np.full((32, 32), 1e75)
    for call, name in (
        (lambda: projected_product_error(larger, larger, 4), "norm(p) * norm(v)"),
        (lambda: distortion(larger, larger), "norm(x) * norm(projection)"),
    ):
        with pytest.raises(
            ValueError, match=rf"^{re.escape(name)} must be at most 1e153, got 1\.02\d*e\+153: change a unit$"
        ):
            call()


# gaussian_projection


def test_the_entries_of_a_projection_have_mean_zero_and_variance_one_over_k():
    r = gaussian_projection(50, 4000, default_rng(6))
    assert r.shape == (50, 4000)
    assert r.dtype == np.float64
    assert abs(r.mean()) < 5 / math.sqrt(50 * r.size)
    assert abs(r.var() * 50 - 1) < 5 * math.sqrt(2 / r.size)
    assert stats.kstest(r.ravel() * math.sqrt(50), "norm").pvalue > 1e-6


def test_the_same_generator_state_draws_the_same_projection_and_no_generator_another_each_time():
    np.testing.assert_array_equal(gaussian_projection(3, 4, default_rng(7)), gaussian_projection(3, 4, default_rng(7)))
    assert not np.array_equal(gaussian_projection(3, 4, default_rng(7)), gaussian_projection(3, 4, default_rng(8)))
    assert not np.array_equal(gaussian_projection(3, 4), gaussian_projection(3, 4))
    assert gaussian_projection(1, 1, default_rng(0)).shape == (1, 1)


# distortion


def naive(x, r):
    x, r = np.asarray(x, dtype=np.longdouble), np.asarray(r, dtype=np.longdouble)
    return [
        np.sum((r @ (x[i] - x[j])) ** 2) / np.sum((x[i] - x[j]) ** 2) - 1
        for i, j in itertools.combinations(range(len(x)), 2)
    ]


@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 3, 2), (12, 4, 9), (30, 50, 8)])
def test_distortions_agree_with_plain_loops_and_with_scipys_distances(shape):
    n_points, n, k = shape
    x, r = default_rng(0).standard_normal((n_points, n)), gaussian_projection(k, n, default_rng(1))
    got = distortion(x, r)
    assert got.shape == (n_points * (n_points - 1) // 2,)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.array(naive(x, r), dtype=float), atol=1e-13, rtol=1e-12)
    np.testing.assert_allclose(got, (pdist(x @ r.T) / pdist(x)) ** 2 - 1, atol=1e-11)


def test_a_rotation_distorts_nothing_and_a_blind_projection_everything():
    x = default_rng(0).standard_normal((10, 6))
    q = np.linalg.qr(default_rng(1).standard_normal((6, 6)))[0]
    np.testing.assert_allclose(distortion(x, q), np.zeros(45), atol=1e-14)
    np.testing.assert_array_equal(distortion(x, np.zeros((2, 6))), -np.ones(45))
    np.testing.assert_allclose(distortion(x, 2 * q), np.full(45, 3.0), rtol=1e-14)


def test_a_triangle_by_hand():
    got = distortion([[0, 0], [3, 4], [3, 0]], [[1, 0]])
    np.testing.assert_allclose(got, [9 / 25 - 1, 0, -1], atol=1e-15)


@given(st.integers(0, 10**6), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=30)
def test_moving_or_scaling_the_points_changes_no_distortion(seed, shift, scale):
    rng = default_rng(seed)
    x, r = rng.standard_normal((6, 4)), gaussian_projection(3, 4, rng)
    got = distortion(x, r)
    assert (got >= -1).all()
    np.testing.assert_allclose(distortion(x * scale + shift, r), got, atol=1e-8)


def test_points_that_nearly_coincide_far_from_the_origin_keep_their_digits():
    rng = default_rng(9)
    clusters = np.repeat(1e3 * rng.standard_normal((4, 20)), 3, axis=0)
    x = 1e6 + clusters + 1e-7 * rng.integers(-1000, 1000, (12, 20))
    r = gaussian_projection(5, 20, rng)
    np.testing.assert_allclose(distortion(x, r), np.array(naive(x, r), dtype=float), atol=1e-10)
    plain = (pdist(x @ r.T) / pdist(x)) ** 2 - 1  # contrast
    assert np.abs(plain - distortion(x, r)).max() > 1e-6


def test_a_pair_just_beyond_the_near_ones_keeps_twelve_digits():
    x = np.zeros((3, 8))
    x[1] = 1.0
    x[2] = 1.0 + 2e-4 * default_rng(10).random(8)
    r = gaussian_projection(4, 8, default_rng(11))
    np.testing.assert_allclose(distortion(x, r), np.array(naive(x, r), dtype=float), rtol=1e-11)


@pytest.mark.parametrize("scale", [1e-75, 1e74])
def test_points_and_projections_of_any_size_are_measured(scale):
    x = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])
    np.testing.assert_allclose(distortion(x * scale, [[1, 0]]), [-0.64, 0, -1], atol=1e-14)
    np.testing.assert_allclose(distortion(x, [[scale, 0]]), [0.36 * scale**2 - 1, scale**2 - 1, -1], rtol=1e-14)


def test_a_pair_whose_square_is_too_small_for_a_float_is_measured():
    np.testing.assert_allclose(distortion([[0.0, 1.0], [1e-200, 1.0], [1.0, 1.0]], [[2.0, 1.0]]), [3, 3, 3])
    np.testing.assert_allclose(distortion([[0.0, 1.0], [1e-200, 1.0]], [[2.0, 1.0]]), [3.0])


def test_near_pairs_of_very_different_size_are_measured_side_by_side():
    x = np.zeros((4, 3))
    x[1, 0], x[2, 1], x[3, 2] = 1e-200, 1e-6, 1.0
    r = np.array([[1.0, 2.0, 3.0]])
    last = (3 - 2e-6) ** 2 / (1 + 1e-12) - 1  # the step (0, -1e-6, 1)
    np.testing.assert_allclose(distortion(x, r), [0, 3, 8, 3, 8, last], rtol=1e-11, atol=1e-11)


def test_distances_of_many_points():
    rng = default_rng(0)
    x = np.concatenate([rng.standard_normal((150, 30)), 1e3 + 1e-6 * rng.standard_normal((120, 30))])
    for r in (gaussian_projection(5, 30, 1), np.eye(30)[:1]):
        np.testing.assert_allclose(distortion(x, r), np.array(naive(x, r), dtype=float), rtol=1e-9, atol=1e-11)
    x[251] = x[77]
    with pytest.raises(ValueError, match=r"^x must hold different points, got the same in rows 77 and 251$"):
        distortion(x, r)


def test_memory_grows_with_the_points_not_with_the_pairs():
    n_points, n = 300, 200
    x, r = default_rng(0).standard_normal((n_points, n)), gaussian_projection(20, n, default_rng(1))
    distortion(x[:3], r)
    tracemalloc.start()
    result = distortion(x, r)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes + 4 * result.nbytes < 0.1 * n_points**2 * n * 8


def test_the_share_of_distorted_pairs_is_the_exact_probability():
    """Over many projections: a pair is a fixed vector, and its law is the chi-square's."""
    k, eps, trials, rng = 10, 0.4, 2000, default_rng(12)
    x = rng.standard_normal((6, 30))
    share = [np.mean(np.abs(distortion(x, gaussian_projection(k, 30, rng))) > eps) for _ in range(trials)]
    assert abs(np.mean(share) - norm_failure_probability(k, eps)) < 5 * np.std(share) / math.sqrt(trials)


def test_at_the_promised_dimension_no_pair_fails():
    """The bound is about chance 0.05 at most; the seed is fixed."""
    k = min_dim(60, 0.5)
    x = default_rng(13).standard_normal((60, 500))
    assert np.abs(distortion(x, gaussian_projection(k, 500, default_rng(14)))).max() < 0.5


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_the_callers_arrays_are_never_changed(dtype):
    x = (10 * default_rng(0).standard_normal((6, 4))).astype(dtype)
    before = x.copy()
    x.flags.writeable = False
    assert distortion(x, x[:2]).dtype == np.float64
    projected_product_error(x, x.T, 2)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(distortion(x, x[:2]), distortion(before.astype(float), before[:2].astype(float)))


# bad input: one value an argument, since what else is refused stands in test_checks.py

NAN = [[1.0, math.nan]]
COUNT = "must be between 1 and 2**53 = 9007199254740992, got"
FRACTION = "must be above 0 and below 1, got"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda f=f: f(0, 0.5), ValueError, f"k {COUNT} 0") for f in PROBABILITIES),
        *((lambda f=f: f(3, 1), ValueError, f"eps {FRACTION} 1.0") for f in PROBABILITIES),
        (lambda: norm_failure_bound(2**53 + 1, 0.5), ValueError, f"k {COUNT} {2**53 + 1}"),
        (lambda: norm_failure_bound(3, 0), ValueError, f"eps {FRACTION} 0.0"),
        (lambda: min_dim(1, 0.5), ValueError, "n_points must be at least 2, got 1"),
        (lambda: min_dim(10, 1), ValueError, f"eps {FRACTION} 1.0"),
        (lambda: min_dim(10, 0.5, delta=1), ValueError, f"delta {FRACTION} 1.0"),
        (
            lambda: min_dim(10, 0.5, bound="chi2"),
            ValueError,
            'bound must be "chi-square" or "chernoff" or "dasgupta-gupta", got \'chi2\'',
        ),
        (lambda: inner_product_std(-1.5, 3), ValueError, "rho must be between -1 and 1, got -1.5"),
        (
            lambda: inner_product_std(math.nextafter(1, 2), 3),
            ValueError,
            "rho must be between -1 and 1, got 1.0000000000000002",
        ),
        (lambda: inner_product_std(0.5, 0), ValueError, f"k {COUNT} 0"),
        (lambda: gaussian_projection(0, 3), ValueError, f"k {COUNT} 0"),
        (lambda: gaussian_projection(3, 0), ValueError, f"n {COUNT} 0"),
        (
            lambda: gaussian_projection(2, 3, "0"),
            TypeError,
            "rng must be a numpy.random.Generator, a seed (an integer) or None, got '0'",
        ),
        (lambda: distortion(NAN, [[1, 1]]), ValueError, "x must be finite, got nan"),
        (lambda: distortion([[1, 1]], NAN), ValueError, "projection must be finite, got nan"),
        (lambda: projected_product_error(NAN, [[1], [1]], 1), ValueError, "p must be finite, got nan"),
        (lambda: projected_product_error([[1]], NAN, 1), ValueError, "v must be finite, got nan"),
        (lambda: projected_product_error([[1]], [[1]], 0), ValueError, f"k {COUNT} 0"),
    ],
)
def test_each_argument_is_checked_under_its_name(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("function", PROBABILITIES)
def test_the_ends_of_the_open_interval_are_taken(function):
    for k in (1, np.int32(7)):
        assert 0 < function(k, math.nextafter(0, 1)) <= 2
        assert 0 <= function(k, math.nextafter(1, 0)) < 2
        assert function(k, Fraction(1, 2)) == function(k, np.float32(0.5)) == function(k, 0.5)
    assert min_dim(2, math.nextafter(1, 0), delta=math.nextafter(1, 0)) == 1
    assert min_dim(2, 0.5, delta=math.ulp(0.0)) > min_dim(2, 0.5, delta=1e-300)


def test_the_ends_of_the_closed_intervals_are_taken():
    assert inner_product_std(1, 2) == inner_product_std(-1, 2) == 1.0
    assert inner_product_std(0, 1) == 1.0
    assert inner_product_std(0, 2**53) == 2**-26.5


@pytest.mark.parametrize("bound", BOUNDS)
def test_an_eps_for_which_k_would_leave_the_exact_floats_is_refused(bound):
    for eps in (1e-8, 1e-200):
        with pytest.raises(ValueError, match=rf"^eps must be large enough for k to stay within 2\*\*53, got {eps}$"):
            min_dim(10, eps, bound=bound)
    # 2 ln(2 / 0.05) / (eps^2 / 2) = 2^53
    edge = math.sqrt(4 * math.log(40) / 2**53)
    assert 0.5 * 2**53 < min_dim(2, edge * 1.0000001, bound=bound) <= 2**53
    with pytest.raises(ValueError, match=r"^eps must be large enough for k to stay within 2\*\*53, got "):
        min_dim(2, edge * 0.9999999, bound=bound)


def test_shapes_that_do_not_match_are_both_named():
    message = "projection must be as wide as x of shape (4, 3), got shape (3, 2)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        distortion(np.eye(4)[:, :3], np.ones((3, 2)))
    message = "v must have as many rows as p of shape (2, 3) has columns, got shape (2, 3)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        projected_product_error(np.ones((2, 3)), np.ones((2, 3)), 1)


def test_one_point_has_no_distances():
    with pytest.raises(ValueError, match=r"^x must hold at least 2 points, got 1$"):
        distortion([[1.0, 2.0]], [[1.0, 0.0]])
    assert distortion([[1.0, 2.0], [1.0, 3.0]], [[1.0, 1.0]]) == [0.0]


@pytest.mark.parametrize(
    ("points", "pair"),
    [
        ([1, 2, 1], "0 and 2"),
        ([5, 1, 2, 2, 1], "1 and 4"),
        ([7, 7], "0 and 1"),
        ([0, 1e-9, 0, 1], "0 and 2"),
        ([0, -0.0], "0 and 1"),
    ],
)
def test_points_that_coincide_are_named(points, pair):
    with pytest.raises(ValueError, match=f"^x must hold different points, got the same in rows {pair}$"):
        distortion([[p] for p in points], [[1.0]])
