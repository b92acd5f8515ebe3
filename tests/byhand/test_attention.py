"""The values of each step of a worked attention, by loops to 60 digits, by hand, and by PyTorch."""

import itertools

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import E, Matrix, Rational, exp, sqrt
from worked import (
    fractions,
    matrices,
    plain_product,
    sides,
    small_rationals,
)

from lowrank_tutor.byhand import linformer_attention, softmax_attention

# Three tokens: the first two queries cannot tell tokens 1 and 2 apart, the third can.
Q = [[1, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]]
K = [[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]]
V = [[2, 0], [0, 4], [2, 0]]


@st.composite
def heads(draw, entries=small_rationals):
    """Draw queries, keys and values whose shapes match, and a compression of the keys."""
    n_q, n_k, d, d_v = (draw(sides) for _ in range(4))
    shapes = ((n_q, d), (n_k, d), (n_k, d_v), (draw(st.integers(1, n_k)), n_k))
    return tuple(draw(matrices(st.just(m), st.just(n), entries)) for m, n in shapes)


def plain_softmax(q, k, v):
    """Return scores, weights and output by loops, to 60 digits, from fractions."""
    scores = plain_product(q, list(zip(*k, strict=True)))
    with mpmath.workdps(60):
        number = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in v]
        weights = []
        for row in scores:
            scaled = [mpmath.mpf(x.numerator) / x.denominator / mpmath.sqrt(len(q[0])) for x in row]
            powers = [mpmath.exp(x) for x in scaled]
            weights.append([power / sum(powers) for power in powers])
        return scores, weights, plain_product(weights, number)


def assert_near(exact, judged):
    """Compare an exact matrix with numbers of 60 digits."""
    assert exact.shape == (len(judged), len(judged[0]))
    for entry, other in zip(exact, itertools.chain(*judged), strict=True):
        with mpmath.workdps(60):
            assert abs(mpmath.mpf(str(entry.evalf(60))) - other) < mpmath.mpf("1e-45")


def check_steps(steps, q, k, v):
    """Check the five steps that both functions share."""
    scores, scaled, (powers, sums), weights, output = (step.value for step in steps)
    assert scaled == scores / sqrt(len(q[0]))
    assert powers == scaled.applyfunc(exp)
    assert sums == Matrix([sum(powers[row, :]) for row in range(powers.rows)])
    for exact, judged in zip((scores, weights, output), plain_softmax(q, k, v), strict=True):
        assert_near(exact, judged)
    return output


def check_softmax(q, k, v, *_):
    (*steps, check, work), result = softmax_attention(q, k, v)
    q, k, v = map(fractions, (q, k, v))
    assert check_steps(steps, q, k, v) == result
    assert check.value == len(q) * len(k)
    scores, averages = check.value * len(q[0]), check.value * len(v[0])
    assert work.value == (scores, averages, scores + averages)


def check_linformer(q, k, v, e):
    (keys, values, *steps, check, work), result = linformer_attention(q, k, v, e)
    q, k, v, e = map(fractions, (q, k, v, e))
    assert (keys.value, values.value) == (Matrix(plain_product(e, k)), Matrix(plain_product(e, v)))
    assert check_steps(steps, q, plain_product(e, k), plain_product(e, v)) == result
    assert check.value == (len(q) * len(e), len(q) * len(k))
    *counts, break_even = work.value
    width = len(q[0]) + len(v[0])
    before, after, full = (
        a * b * width for a, b in ((len(e), len(k)), (len(q), len(e)), (len(q), len(k)))
    )
    assert counts == [before, after, before + after, full]
    assert (before + after < full) == (len(e) < break_even)
    assert (before + after == full) == (len(e) == break_even)


@settings(max_examples=25)
@given(heads())
def test_steps_follow(head):
    check_softmax(*head)
    check_linformer(*head)


@pytest.mark.parametrize(
    "head",
    [
        ([[0]], [[0]], [[0]]),
        ([[3]], [[-2]], [["5/7"]]),  # one key has the weight 1
        ([[1]] * 3, [[1]] * 4, [[4], [0], [1], [3]]),  # equal scores: the mean
        ([[0, 1, 0]], [[1, 2, 3]] * 2, [[-1, 1], [1, 1]]),
        ([[60]], [[1], [-1]], [[1], [2]]),
        ([[1]], [[1], [0], [-1]], [[0], [0], [2]]),  # a negative power of e cancels
    ],
    ids=str,
)
def test_edge_cases(head):
    check_softmax(*head)


def test_softmax_by_hand():
    steps, result = softmax_attention(Q, K, V)
    e2 = exp(2)
    z = Matrix([2 * E + 1, E + 2, e2 + 2])
    powers = Matrix([[E, E, 1], [1, 1, E], [e2, 1, 1]])
    above = Matrix([[2 * E + 2, 4 * E], [2 * E + 2, 4], [2 * e2 + 2, 4]])
    assert result == Matrix(3, 2, lambda i, j: above[i, j] / z[i])
    assert [step.value for step in steps] == [
        Matrix([[2, 2, 0], [0, 0, 2], [4, 0, 0]]),
        Matrix([[1, 1, 0], [0, 0, 1], [2, 0, 0]]),
        (powers, z),
        Matrix(3, 3, lambda i, j: powers[i, j] / z[i]),
        result,
        9,
        (36, 18, 54),
    ]


@pytest.mark.parametrize(
    ("values", "output"),
    [
        (["-2/3"] * 4, Rational(-2, 3)),
        ([0, 0, 0, 0], 0),
        ([4, 4, 2, 2], (4 * E + 2) / (E + 1)),
        ([1, -1, 2, -2], 0),
        (["1/2", 0, 0, "1/3"], (3 * E + 2) / (12 * E + 12)),
    ],
)
def test_common_factors_cancel(values, output):
    worked = softmax_attention([[1]], [[1], [1], [0], [0]], [[value] for value in values])
    assert worked.result == Matrix([output])
