"""Each step of a discriminant follows from the one before, and scikit-learn finds the same axis."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sympy import Matrix, Rational
from worked import (
    as_floats,
    fractions,
    matrices,
    read_matrices,
    read_number,
    right_sides,
    small_integers,
    small_rationals,
)

from lowrank_tutor.byhand import linear_discriminant
from lowrank_tutor.lda import lda

A, B = [[0, 2], [1, 1], [3, 1], [4, 0]], [[3, 2], [4, 1], [6, 1], [7, 0]]  # of the chapter


def check_discriminant(a, b):
    worked = linear_discriminant(a, b)
    a, b = Matrix(fractions(a)), Matrix(fractions(b))
    means, scatter_a, scatter_b, within, inverse, axis, cut, compare = worked.steps
    judged = [Matrix([sum(points[:, j]) / Rational(points.rows) for j in (0, 1)]) for points in (a, b)]
    lines = right_sides(means, "m_1", "m_2")
    assert [read_matrices(line) for line in lines] == [[mean] for mean in judged]
    assert means.value == tuple(judged)
    scatters = []
    for number, points, mean, step in ((1, a, judged[0], scatter_a), (2, b, judged[1], scatter_b)):
        scatter = sympy.zeros(2, 2)
        for i in range(points.rows):
            scatter += (points[i, :].T - mean) * (points[i, :].T - mean).T
        deviations, product, result = right_sides(step, rf"X_{number} - 1 m_{number}^\top", f"T_{number}", "")
        (moved,) = read_matrices(deviations)
        assert moved == Matrix([list(points[i, :] - mean.T) for i in range(points.rows)])
        assert read_matrices(product) == [moved.T, moved]
        assert read_matrices(result) == [scatter]
        assert step.value == scatter
        scatters.append(scatter)
    whole = scatters[0] + scatters[1]
    assert within.latex.startswith("T_w = T_1 + T_2 = ")
    assert read_matrices(within.latex) == [*scatters, whole]
    assert within.value == whole

    determinant, halfway, result = right_sides(inverse, r"\det T_w", "T_w^{-1}", "")
    formula, total = determinant.split(" = ")
    assert read_number(formula) == read_number(total) == whole.det()
    before = halfway.split(r"\begin")[0].strip()
    assert (before == "") == (whole.det() == 1)
    assert (read_number(before) if before else 1) * read_matrices(halfway)[0] == inverse.value
    assert read_matrices(result) == [inverse.value]
    assert inverse.value * whole == sympy.eye(2)

    gap, product, scaled = right_sides(axis, "m_2 - m_1", "T_w^{-1} (m_2 - m_1)", "w")
    difference = judged[1] - judged[0]
    assert read_matrices(gap) == [difference]
    assert read_matrices(product) == [inverse.value, difference, inverse.value * difference]
    assert read_matrices(scaled) == [axis.value]
    w = axis.value
    assert all(entry.is_Integer for entry in w)
    assert sympy.gcd(*w) == 1
    assert (whole * w).row_join(difference).rank() == 1
    assert w.dot(difference) > 0

    def count(direction):
        c = direction.dot(judged[0] + judged[1]) / 2
        low, high = (list(points * direction) for points in (a, b))
        return sum(bool(x < c) for x in low) + sum(bool(x > c) for x in high), c

    right_side, c = count(w)
    low, high, below, above, midway = right_sides(
        cut, r"w^\top X_1^\top", r"w^\top X_2^\top", r"w^\top m_1", r"w^\top m_2", r"\theta"
    )
    assert read_matrices(low) == [(a * w).T]
    assert read_matrices(high) == [(b * w).T]
    assert (read_number(below), read_number(above)) == (w.dot(judged[0]), w.dot(judged[1]))
    formula, total = midway.split(" = ")
    assert read_number(formula) == read_number(total) == cut.value == c
    total_points = a.rows + b.rows
    assert cut.plain.endswith(f": {right_side} of {total_points} points are on the correct side.")

    direction, plain, best = right_sides(
        compare,
        "w_0",
        r"\frac{(w_0^\top (m_2 - m_1))^2}{w_0^\top T_w w_0}",
        r"\frac{(w^\top (m_2 - m_1))^2}{w^\top T_w w}",
    )
    (d,) = read_matrices(direction)
    assert d.row_join(difference).rank() == 1
    assert d.dot(difference) > 0
    for line, v, value in ((plain, d, compare.value[0]), (best, w, compare.value[1])):
        formula, total = line.split(" = ")
        assert formula == rf"\frac{{{sympy.latex(v.dot(difference))}^2}}{{{sympy.latex((v.T * whole * v)[0])}}}"
        assert value == v.dot(difference) ** 2 / (v.T * whole * v)[0] == read_number(total)
    assert compare.value[1] == (difference.T * inverse.value * difference)[0]  # the largest there is
    assert compare.value[0] <= compare.value[1]
    if d == w:
        ending = f"is the same direction, with the same ratio {compare.value[1]}."
    else:
        ending = (
            f"{count(d)[0]} of {total_points} points are on the correct side. The squared gap over the scatter "
            f"is {compare.value[0]}; along w it is {compare.value[1]}."
        )
    assert compare.plain.endswith(ending)
    assert worked.result == (w, c)
    return worked


def test_two_classes_by_hand():
    worked = check_discriminant(A, B)
    assert [step.value for step in worked.steps] == [
        (Matrix([2, 1]), Matrix([5, 1])),
        Matrix([[10, -4], [-4, 2]]),
        Matrix([[10, -4], [-4, 2]]),
        Matrix([[20, -8], [-8, 4]]),
        Matrix([["1/4", "1/2"], ["1/2", "5/4"]]),
        Matrix([1, 2]),
        Rational(11, 2),
        (Rational(9, 20), Rational(9, 4)),
    ]
    assert worked.result == (Matrix([1, 2]), Rational(11, 2))
    assert "8 of 8 points" in worked.steps[-2].plain
    assert "6 of 8 points" in worked.steps[-1].plain
    assert list(Matrix(A) * worked.result.axis) == [4, 3, 5, 4]
    assert list(Matrix(B) * worked.result.axis) == [7, 6, 8, 7]


def test_round_scatter():
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert check_discriminant(square, [[x + 4, y + 2] for x, y in square]).result.axis == Matrix([2, 1])


def test_determinant_of_one():
    inverse = check_discriminant([[0, 0], [1, 0]], [[3, 0], [3, 2]]).steps[4]
    assert r"T_w^{-1} &= \begin{pmatrix} 2 & 0" in inverse.latex


def test_points_on_the_threshold():
    """Each class has its mean among its points, and a point midway between the means, which counts for neither."""
    a = [[0, 0], [1, 2], [-1, -2], [2, 0], [-2, 0]]
    b = [[4, 0], [5, 2], [3, -2], [2, 0], [6, 0]]
    worked = check_discriminant(a, b)
    assert worked.result.threshold == worked.result.axis.dot(Matrix([2, 0]))
    assert "8 of 10 points" in worked.steps[-2].plain


@st.composite
def classes(draw, entries=small_rationals):
    a, b = (draw(matrices(st.integers(1, 5), st.just(2), entries)) for _ in "ab")
    means = [
        Matrix([sum(column) / Rational(len(points)) for column in zip(*map(list, fractions(points)), strict=True)])
        for points in (a, b)
    ]
    moved = [
        Matrix(fractions(points)) - sympy.ones(len(points), 1) * mean.T
        for points, mean in zip((a, b), means, strict=True)
    ]
    return a, b, means[0] != means[1] and sum((m.T * m for m in moved), sympy.zeros(2, 2)).det() != 0


@settings(max_examples=25)
@given(classes())
def test_steps_follow(drawn):
    a, b, possible = drawn
    if possible:
        check_discriminant(a, b)
        return
    with pytest.raises(ValueError, match=r"must have another mean|must spread in two directions"):
        linear_discriminant(a, b)


@settings(max_examples=25)
@given(classes(small_integers))
def test_scikit_learn_agrees(drawn):
    a, b, possible = drawn
    if not possible or len(a) + len(b) < 3:
        return
    axis, threshold = linear_discriminant(a, b).result
    if len(a) == len(b):  # scikit-learn's lsqr weighs the scatters by its priors
        judge = LinearDiscriminantAnalysis(solver="lsqr").fit(np.vstack([a, b]), [0] * len(a) + [1] * len(b))
        length, mine = np.linalg.norm(judge.coef_[0]), as_floats(axis)[:, 0]
        np.testing.assert_allclose(judge.coef_[0] / length, mine / np.linalg.norm(mine), atol=1e-6)
        middle = -judge.intercept_[0] / length
        np.testing.assert_allclose(float(threshold) / np.linalg.norm(mine), middle, atol=1e-6)
    found = lda(np.vstack([a, b]), [0] * len(a) + [1] * len(b), 1).axes[:, 0]
    cosine = found @ as_floats(axis)[:, 0] / np.linalg.norm(found) / np.linalg.norm(as_floats(axis))
    np.testing.assert_allclose(abs(cosine), 1, atol=1e-6)


AROUND = "a and b must spread in two directions around their means, got a scatter of rank"
LONG = np.random.default_rng(0).integers(1, 10**18, (12, 12))
INVERSES = [[[Fraction(1, int(x)) for x in row] for row in pair] for pair in (LONG[:, :2], LONG[:, 2:4])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2, 3]], B), "a must hold points of two coordinates, got shape (1, 3)"),
        ((A, [[1], [2]]), "b must hold points of two coordinates, got shape (2, 1)"),
        ((A, [[1, "1/2"], [3, "3/2"]]), "b must have another mean than a, got (2, 1) for both"),
        (([[0, 0], [1, 1]], [[4, 0], [5, 1]]), f"{AROUND} 1"),
        (([[0, 0]], [[4, 0]]), f"{AROUND} 0"),
        (INVERSES, "a and b must be small enough to work by hand, got a fraction of some 1518 digits"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    assert linear_discriminant(LONG[:6, :2], LONG[6:, :2]).result.axis.shape == (2, 1)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        linear_discriminant(*arguments)
