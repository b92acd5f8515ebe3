"""Rank, numerical and stable rank, factors, and what they cost to store."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import with_spectrum

from lowrank_tutor.rank import (
    RankFactorization,
    break_even_rank,
    effective_rank,
    numerical_rank,
    rank_factorization,
    stable_rank,
    storage,
)

HAND = [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
EPS = np.finfo(np.float64).eps
SHAPES = [(1, 6), (6, 1), (5, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_zero_matrix(shape):
    """No direction, and factors without a column; each result has its type."""
    a, zero = np.random.default_rng(0).standard_normal(shape), np.zeros(shape)
    assert (numerical_rank(zero), stable_rank(zero)) == (0, 0.0)
    assert type(numerical_rank(a)) is int
    assert type(stable_rank(a)) is type(stable_rank(zero)) is float
    result = rank_factorization(zero)
    assert isinstance(result, RankFactorization)
    assert (result.c.shape, result.f.shape, result.columns.shape) == (
        (shape[0], 0),
        (0, shape[1]),
        (0,),
    )


def diagonal(x, dtype=np.float64):
    return np.diag([1.0, x]).astype(dtype)


GRADED, TENTHS = np.diag([4.0, 2.0, 1.0]), np.linspace(0.1, 1, 50)
EPS16, EPS32 = (
    math.sqrt(2) * float(np.finfo(kind).eps) for kind in (np.float16, np.float32)
)  # of two directions


@pytest.mark.parametrize(
    ("a", "rtol", "expected"),
    [
        (GRADED, 0.25, 2),  # a value at the tolerance does not count
        (GRADED, 0.25 - 1e-14, 3),
        (GRADED, np.nextafter(1.0, 0), 1),
        (np.ones((5, 5)), 0, 1),  # rounding does not count at 0 either
        (diagonal(1.9 * EPS), 0, 1),
        (diagonal(2.1 * EPS), 0, 2),
        (1.2e-6 * np.outer(TENTHS, TENTHS[::-1]).astype(np.float16), None, 1),  # of few digits
        (np.float16([[6e-8]]), None, 1),
        (diagonal(0.0), 0, 1),
        (np.eye(3, 5) * [1.0, 5 * EPS, 0, 0, 0], None, 1),  # the longer side times eps
        (np.eye(3, 5) * [1.0, 5.01 * EPS, 0, 0, 0], None, 2),
        (np.eye(5, 3) * [1.0, 5 * EPS, 0], None, 1),
        (
            diagonal(0.99 * EPS16, np.float16),
            None,
            1,
        ),  # the eps of the type that came in, for each of two entries
        (diagonal(1.01 * EPS16, np.float16), None, 2),
        (diagonal(0.99 * EPS32, np.float32), None, 1),
        (diagonal(1.01 * EPS32, np.float32), None, 2),
        (
            np.repeat(diagonal(1.01 * EPS32, np.float32), 2**16, axis=0),
            None,
            2,
        ),  # however long the other side
        (
            np.float32(1e-20) * diagonal(0.5, np.float32),
            None,
            2,
        ),  # in float64, where nothing vanishes
        ([[1, 0], [0, 3 * EPS]], None, 2),
        (np.array([[10**6, 0], [0, 1]]), None, 2),
        ([[True, False], [False, True]], None, 2),
        (np.full((3, 3), 1e12, dtype=np.float32), 1e-15, 1),  # judged in double
        (HAND, None, 1),
    ],
)
def test_tolerance(a, rtol, expected):
    assert numerical_rank(a, rtol=rtol) == expected


def test_stable_rank_by_hand():
    assert stable_rank(np.eye(5)) == 5.0
    assert stable_rank(diagonal(1e-6)) == pytest.approx(
        1 + 1e-12, rel=1e-15
    )  # where the rank jumps to 2
    single = with_spectrum([3, 2, 1], 5, 4).astype(np.float32)  # judged in double
    assert stable_rank(single) == stable_rank(single.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_stacks_are_loops(dtype):
    a = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(dtype)
    a[0, ..., 1:] = 0
    a[1, ..., 0] = a[1, ..., 1] * (1 + np.finfo(dtype).eps)
    a[-1, -1] = 0
    for count in (numerical_rank, stable_rank, lambda x: numerical_rank(x, rtol=0.3)):
        loops = np.array([[count(each) for each in row] for row in a])
        np.testing.assert_allclose(count(a), loops, rtol=1e-14)
        assert count(a).dtype == loops.dtype


@settings(deadline=None)
@given(
    st.lists(st.just(0.0) | st.floats(1e-12, 1e3), min_size=1, max_size=8).map(
        lambda s: sorted(s, reverse=True)
    )
)
def test_effective_rank(s):
    """Shannon's entropy, term by term, and its place between the stable rank and the rank."""
    total = math.fsum(s)
    terms = [-x / total * math.log(x / total) for x in s if total and x / total > 0]
    assert effective_rank(s) == pytest.approx(math.exp(math.fsum(terms)) if total else 0, rel=1e-12)
    assert stable_rank(np.diag(s)) - 1e-12 <= effective_rank(s) <= sum(x > 0 for x in s) + 1e-12
    assert type(effective_rank(s)) is float
    assert effective_rank(np.stack([[s], [s]])).tolist() == [[effective_rank(s)]] * 2


def test_choice_of_columns():
    """Contrast: plain elimination takes the first two columns and divides by 1e-10."""
    for unit in (1e-6, 1.0, 1e6):  # of a column
        np.testing.assert_array_equal(
            rank_factorization([[1, 0, 11 * unit], [0, unit, 11 * unit]]).c, [[1, 0], [0, unit]]
        )
    for angle, columns in ((0.9e-3, [0, 2]), (1.1e-3, [0, 1])):  # a thousandth is nearly dependent
        a = np.array([[1, 1, 0], [0, angle, 1]])
        np.testing.assert_array_equal(rank_factorization(a).c, a[:, columns])
    assert rank_factorization([[1e-17, 10]]).c == 10  # what rounding leaves of a zero column
    x, y = np.random.default_rng(2).standard_normal((2, 50))
    a = np.column_stack([x, x + 1e-10 * y, y, x + y])
    c, f = rank_factorization(a)
    np.testing.assert_array_equal(c, a[:, [0, 2]])
    assert np.abs(a - c @ f).max() < 1e-14
    careless = np.linalg.solve(a[:2, :2], a[:2])
    assert np.abs(a - a[:, :2] @ careless).max() > 1e-7


@pytest.mark.parametrize("twin", [0, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("rtol", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("unit", [1e-3, 1, 1e3])
def test_twins_below_the_tolerance(twin, rtol, unit):
    """Contrast: two nearly equal columns, of which the second once divided the noise by their small
    difference.
    """
    x, y, noise = np.split(np.random.default_rng(2).standard_normal((80, 15)), 3, axis=1)
    a = np.column_stack([x[:, 0], x[:, 0] + twin * y[:, 0], x[:, 1:] * [unit, 1, 1, 1], x @ y[:5]])
    a[:, :5] += noise * rtol
    c, f = rank_factorization(a, rtol=rtol)
    assert np.linalg.norm(a - c @ f, 2) < 4 * rtol * np.linalg.norm(a, 2)


def test_tall_matrix_fits_memory():
    assert rank_factorization(np.ones((1_000_000, 2))).c.shape == (1_000_000, 1)


@settings(deadline=None)
@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_break_even(m, n, data):
    k = data.draw(st.integers(1, min(m, n)))
    full, factored = storage(m, n, k)
    assert (full, factored) == (m * n, k * m + k * n)
    assert (factored < full) == (k < Fraction(m * n, m + n))
    assert break_even_rank(m, n) == float(Fraction(m * n, m + n))


def test_storage_is_exact():
    m, n, k = 10**20 + 1, 10**20 + 3, 10**19
    assert storage(m, n, k) == (m * n, k * (m + n))
    full, factored = storage(np.int32(2**30), np.int32(2**30), np.int64(2))
    assert (full, factored) == (2**60, 2**32)
    assert type(full) is type(factored) is int
    assert break_even_rank(10**300, 10**300) == 5e299


def test_large_tolerance_drops_directions():
    a = with_spectrum([1, 0.5, 1e-3, 1e-4], 12, 9)
    c, f = rank_factorization(a, rtol=1e-2)
    assert c.shape == (12, 2)
    assert 1e-4 < np.linalg.norm(a - c @ f, 2) < 1e-2


def test_factors_of_float32():
    c, f = rank_factorization(a := np.float32(HAND))
    assert c.dtype == f.dtype == np.float32
    assert not np.shares_memory(c, a)
    np.testing.assert_array_equal(c @ f, HAND)  # whole numbers come out whole
