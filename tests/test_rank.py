"""Rank, its numerical and its stable kin, factors, and what they cost to store."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from matrices import with_spectrum
from scipy.linalg import hilbert

from lowrank_tutor.rank import (
    RankFactorization,
    break_even_rank,
    numerical_rank,
    rank_factorization,
    stable_rank,
    storage,
)

HAND = [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
EPS = np.finfo(np.float64).eps
small_integers = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.integers(-4, 4))


# numerical_rank


def test_the_hand_worked_matrix_has_rank_one():
    assert numerical_rank(HAND) == 1


@settings(deadline=None)
@given(small_integers)
def test_the_rank_of_small_integers_is_the_exact_rank(a):
    assert numerical_rank(a) == sympy.Matrix(a.tolist()).rank()


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 5), (4, 7)])
def test_the_rank_agrees_with_numpy_on_every_shape(shape):
    a = np.random.default_rng(0).standard_normal(shape)
    assert numerical_rank(a) == np.linalg.matrix_rank(a) == min(shape)
    assert numerical_rank(np.zeros(shape)) == 0
    assert type(numerical_rank(a)) is int


def test_a_singular_value_at_the_tolerance_does_not_count_and_one_above_does():
    a = np.diag([4.0, 2.0, 1.0])
    assert numerical_rank(a, rtol=0.25) == 2
    assert numerical_rank(a, rtol=np.nextafter(0.25, 0)) == 3
    assert numerical_rank(a, rtol=np.nextafter(1.0, 0)) == 1


def test_zero_tolerance_counts_every_singular_value_that_is_not_zero():
    assert numerical_rank(np.diag([1.0, 1e-300, 0.0]), rtol=0) == 2


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_the_default_tolerance_is_the_longer_side_times_eps(shape):
    def graded(x):
        return np.eye(*shape) * [1.0, x, *[0.0] * (shape[1] - 2)]

    assert numerical_rank(graded(5 * EPS)) == 1
    assert numerical_rank(graded(5.01 * EPS)) == 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_default_tolerance_follows_the_precision_of_the_input(dtype):
    eps = float(np.finfo(dtype).eps)
    below, above = (np.diag([1.0, x * eps]).astype(dtype) for x in (2, 3))
    assert numerical_rank(below) == 1
    assert numerical_rank(above) == 2


def test_a_list_and_integers_are_judged_in_float64():
    assert numerical_rank([[1, 0], [0, 3 * EPS]]) == 2
    assert numerical_rank(np.array([[10**6, 0], [0, 1]])) == 2
    assert numerical_rank([[True, False], [False, True]]) == 2


def test_a_wide_half_precision_matrix_keeps_its_first_direction():
    """Its n roundings are more than 1: without the cap at 1/2 even the largest singular value would not count."""
    a = np.zeros((2, 2000), dtype=np.float16)
    a[0, 0], a[1, 1] = 1.0, 0.5
    assert numerical_rank(a) == 1
    a[1, 1] = 0.51
    assert numerical_rank(a) == 2


@pytest.mark.parametrize("scale", [1e-75, 1e74])
def test_rank_and_stable_rank_do_not_depend_on_the_unit(scale):
    a = np.array([[1.0, 1.0], [1.0, 0.0]]) * scale
    assert numerical_rank(a) == 2
    golden = (1 + math.sqrt(5)) / 2  # the singular values are this and its inverse
    assert stable_rank(a) == pytest.approx(1 + golden**-4, rel=1e-12)


def test_single_precision_is_judged_in_double():
    a = np.full((3, 3), 1e12, dtype=np.float32)
    assert numerical_rank(a, rtol=1e-15) == 1
    assert stable_rank(a) == pytest.approx(1.0, rel=1e-12)


def test_the_hilbert_matrix_is_invertible_but_not_in_floats():
    """Contrast: exact rank 15, while double precision sees fewer directions."""
    assert sympy.Matrix(15, 15, lambda i, j: sympy.Rational(1, i + j + 1)).rank() == 15
    assert numerical_rank(hilbert(15)) < 15


# stable_rank


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 5), (4, 7)])
def test_the_stable_rank_is_the_quotient_of_the_norms(shape):
    a = np.random.default_rng(1).standard_normal(shape)
    expected = np.linalg.norm(a) ** 2 / np.linalg.norm(a, 2) ** 2
    assert stable_rank(a) == pytest.approx(expected, rel=1e-13)
    assert stable_rank(np.zeros(shape)) == 0.0
    assert type(stable_rank(a)) is type(stable_rank(np.zeros(shape))) is float


@settings(deadline=None)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6))
def test_the_stable_rank_comes_from_the_spectrum_and_is_at_most_the_rank(s):
    s = np.sort(s)[::-1]
    value = stable_rank(with_spectrum(s, 7, 6))
    assert value == pytest.approx(np.sum(s**2) / s[0] ** 2, rel=1e-9)
    assert 1 - 1e-12 <= value <= s.size + 1e-9


def test_the_stable_rank_of_the_identity_is_its_width():
    assert stable_rank(np.eye(5)) == 5.0


def test_the_stable_rank_moves_smoothly_where_the_rank_jumps():
    nearly = np.diag([1.0, 1e-6])
    assert numerical_rank(nearly) == 2
    assert stable_rank(nearly) == pytest.approx(1 + 1e-12, rel=1e-15)


# rank_factorization


def test_the_hand_worked_matrix_factors_as_by_hand():
    c, f = rank_factorization(HAND)
    np.testing.assert_array_equal(c, [[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(f, [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 5)])
def test_a_zero_matrix_has_empty_factors(shape):
    result = rank_factorization(np.zeros(shape))
    assert isinstance(result, RankFactorization)
    assert result.c.shape == (shape[0], 0)
    assert result.f.shape == (0, shape[1])
    np.testing.assert_array_equal(result.c @ result.f, np.zeros(shape))


@settings(deadline=None)
@given(small_integers)
def test_small_integers_are_rebuilt_from_their_own_columns(a):
    c, f = rank_factorization(a)
    r = sympy.Matrix(a.tolist()).rank()
    assert c.shape == (a.shape[0], r)
    assert f.shape == (r, a.shape[1])
    np.testing.assert_allclose(c @ f, a, atol=1e-13)
    columns = [np.flatnonzero((f == unit[:, np.newaxis]).all(axis=0)) for unit in np.eye(r)]
    assert all(any((c[:, i] == a[:, j]).all() for j in js) for i, js in enumerate(columns))


@pytest.mark.parametrize(
    "a",
    [
        [[1, 2, 0, 3], [2, 4, 1, 7], [3, 6, 1, 10]],
        [[0, 2, 4], [0, 1, 2]],
        [[2, 1], [1, 3]],
        [[1, 3, 1, 4], [2, 7, 3, 9], [1, 5, 3, 1], [1, 2, 0, 8]],  # Strang's example of C times R
        [[1, 4, 5]],
    ],
)
def test_the_weights_are_the_reduced_echelon_form(a):
    exact, pivots = sympy.Matrix(a).rref()
    c, f = rank_factorization(a)
    np.testing.assert_array_equal(c, np.array(a)[:, pivots])
    np.testing.assert_allclose(f, np.array(exact.tolist(), dtype=float)[: len(pivots)], atol=1e-14)


def test_a_column_more_than_a_tenth_as_long_as_the_longest_is_taken_and_a_shorter_one_is_not():
    assert rank_factorization([[1.01, 10]]).c == 1.01
    assert rank_factorization([[0.99, 10]]).c == 10


def test_a_column_that_nearly_depends_on_another_is_passed_over():
    """Contrast: plain elimination takes the first two columns and divides by 1e-10."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 50))
    a = np.column_stack([x, x + 1e-10 * y, y, x + y])
    c, f = rank_factorization(a)
    np.testing.assert_array_equal(c, a[:, [0, 2]])
    assert np.abs(a - c @ f).max() < 1e-14
    careless = np.linalg.solve(a[:2, :2], a[:2])
    assert np.abs(a - a[:, :2] @ careless).max() > 1e-7


@pytest.mark.parametrize(("m", "n"), [(30, 20), (20, 30), (25, 25)])
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e12])
@pytest.mark.parametrize("r", [1, 7, 20])
def test_the_product_is_the_matrix_to_rounding_whatever_the_spectrum(m, n, r, condition):
    a = with_spectrum(np.geomspace(1, 1 / condition, r), m, n, seed=r)
    c, f = rank_factorization(a)
    assert c.shape == (m, r)
    assert np.abs(c @ f - a).max() < 5e-14
    assert np.abs(f).max() < 20  # modest mixtures


def test_a_large_tolerance_drops_the_directions_below_it():
    a = with_spectrum([1, 0.5, 1e-3, 1e-4], 12, 9)
    c, f = rank_factorization(a, rtol=1e-2)
    assert c.shape == (12, 2)
    assert 1e-4 < np.linalg.norm(a - c @ f, 2) < 1e-2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_come_in_the_precision_of_the_input(dtype):
    a = with_spectrum([3, 2, 1], 8, 6).astype(dtype)
    c, f = rank_factorization(a)
    assert c.dtype == f.dtype == dtype
    assert c.shape == (8, 3)
    np.testing.assert_allclose(c @ f, a, atol=20 * float(np.finfo(dtype).eps))


def test_a_very_tall_matrix_needs_no_square_one_of_its_height():
    assert rank_factorization(np.ones((1_000_000, 2))).c.shape == (1_000_000, 1)


@pytest.mark.parametrize("scale", [1e-74, 1e74])
def test_factors_of_tiny_and_huge_matrices_are_as_good(scale):
    a = with_spectrum([3, 2, 1], 8, 6) * scale
    c, f = rank_factorization(a)
    assert c.shape == (8, 3)
    np.testing.assert_allclose((c / scale) @ f, a / scale, atol=1e-14)


# storage, break_even_rank


def test_the_hand_worked_matrix_takes_six_numbers_instead_of_nine():
    assert storage(3, 3, 1) == (9, 6)


def test_storage_is_exact_where_floats_and_machine_integers_are_not():
    m, n, k = 10**20 + 1, 10**20 + 3, 10**19
    assert storage(m, n, k) == (m * n, k * (m + n))
    full, factored = storage(np.int32(2**30), np.int32(2**30), np.int64(2))
    assert (full, factored) == (2**60, 2**32)
    assert type(full) is type(factored) is int


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_factors_are_smaller_exactly_below_the_break_even_rank(m, n, data):
    k = data.draw(st.integers(1, min(m, n)))
    full, factored = storage(m, n, k)
    assert (factored < full) == (k < Fraction(m * n, m + n))
    assert break_even_rank(m, n) == float(Fraction(m * n, m + n))


@pytest.mark.parametrize(("m", "n", "expected"), [(1, 1, 0.5), (512, 512, 256.0), (600, 512, 276.2589928057554)])
def test_the_break_even_rank_has_these_values(m, n, expected):
    assert break_even_rank(m, n) == expected
    assert type(break_even_rank(m, n)) is float


def test_the_break_even_rank_is_exact_for_huge_shapes():
    assert break_even_rank(10**300, 10**300) == 5e299
    with pytest.raises(ValueError, match=r"^m and n must be small enough for a float, got 1329 and 1333 bits$"):
        break_even_rank(10**400, 10**401)


# bad input: one value an argument, since what else is refused stands in test_checks.py

NAN = [[1.0, math.nan]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: numerical_rank(NAN), "a must be finite, got nan"),
        (lambda: stable_rank(NAN), "a must be finite, got nan"),
        (lambda: rank_factorization(NAN), "a must be finite, got nan"),
        (lambda: numerical_rank(HAND, 1.0), "rtol must be at least 0 and below 1, got 1.0"),
        (lambda: numerical_rank(HAND, -1e-300), "rtol must be at least 0 and below 1, got -1e-300"),
        (lambda: rank_factorization(HAND, 1.0), "rtol must be at least 0 and below 1, got 1.0"),
        (lambda: storage(0, 3, 1), "m must be at least 1, got 0"),
        (lambda: storage(3, 0, 1), "n must be at least 1, got 0"),
        (lambda: storage(3, 4, 4), "k must be between 1 and min(m, n) = 3, got 4"),
        (lambda: break_even_rank(0, 3), "m must be at least 1, got 0"),
        (lambda: break_even_rank(3, -2), "n must be at least 1, got -2"),
    ],
)
def test_each_argument_is_checked_under_its_name(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_the_callers_array_is_never_changed(dtype):
    a = np.array(HAND, dtype=dtype)
    a.flags.writeable = False
    for function in (numerical_rank, stable_rank, rank_factorization):
        function(a)
    result = rank_factorization(a.astype(np.float64))
    assert not np.shares_memory(result.c, a)
    np.testing.assert_array_equal(a, HAND)
