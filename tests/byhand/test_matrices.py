"""The values of each step of a row reduction, an outer product and a score."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational
from worked import as_floats, matrices, small_rationals

from lowrank_tutor.byhand import bilinear, rank_one, row_reduce


@settings(max_examples=25)
@given(matrices())
def test_row_operations_follow(a):
    (start, *operations, last), result = row_reduce(a)
    reduced, pivots = Matrix(a).rref()
    states = [step.value for step in (start, *operations)]
    assert states[0] == Matrix(a)
    for before, after in itertools.pairwise(states):
        changed = [row for row in range(len(a)) if before[row, :] != after[row, :]]
        assert len(changed) in (1, 2)
        assert after.rref()[0] == reduced
    assert result == states[-1] == reduced
    assert last.value == tuple(pivot + 1 for pivot in pivots)


def test_operations_in_words():
    steps = row_reduce([[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]]).steps
    assert [step.plain for step in steps[1:7]] == [
        "Swap rows 1 and 2.",
        "Divide row 1 by 2.",
        "Subtract row 1 from row 3.",
        "Add row 1 to row 4.",
        "Change the sign of row 2.",
        "Subtract 2 times row 2 from row 1.",
    ]


@pytest.mark.parametrize(
    ("a", "u", "v"),
    [
        ([[1, 2, 3], [2, 4, 6], [3, 6, 9]], [1, 2, 3], [1, 2, 3]),
        ([[0, 0], [-4, -6], [2, 3]], [0, -2, 1], [2, 3]),
    ],
)
def test_rank_one_by_hand(a, u, v):
    assert rank_one(a).result == (Matrix(u), Matrix(v))


NOT_ZERO = st.lists(small_rationals, min_size=1, max_size=5).filter(any)


@settings(max_examples=25)
@given(NOT_ZERO, NOT_ZERO)
def test_outer_products_multiply_back(left, right):
    a = Matrix(left) * Matrix(right).T
    worked = rank_one(a)
    u, v = worked.result
    m, n = a.shape
    assert (u.shape, v.shape) == ((m, 1), (n, 1))
    assert [step.value for step in worked.steps] == [v, u, a, (m * n, m + n, m + n - 1)]
    assert u * v.T == a
    assert all(entry.is_Integer for entry in v)
    assert math.gcd(*(int(entry) for entry in v)) == 1
    assert next(entry for entry in v if entry != 0) > 0


@settings(max_examples=25)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
def test_bilinear_steps_follow(data, k, d2, d1):
    u, v = (data.draw(matrices(rows=st.just(k), columns=st.just(width))) for width in (d2, d1))
    s, h = (data.draw(matrices(rows=st.just(width), columns=st.just(1))) for width in (d2, d1))
    steps, result = bilinear(s, u, v, h)
    x, y, score, w, z, again, kept, work = (step.value for step in steps)
    s, u, v, h = map(Matrix, (s, u, v, h))
    assert (x, y, w) == (u * s, v * h, u.T * v)
    assert z == (w * h if d2 <= d1 else w.T * s)
    assert score == again == result
    np.testing.assert_allclose(float(result), as_floats(s.T * w * h).item(), atol=1e-9)
    assert kept == (len(u) + len(v), len(w), Rational(d1 * d2, d1 + d2))
    assert work == (len(u) + len(v) + k, len(w) + min(d1, d2), k, min(d1, d2))
