"""Each step of an update of NMF follows from the one before, and the error never rises."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational
from worked import (
    as_floats,
    fractions,
    matrices,
    plain_product,
    read_lines,
    read_matrices,
    read_number,
    right_sides,
    sides,
    without_struts,
)

from lowrank_tutor.byhand import nmf_update

X, C, F = [[0, 2], [0, 3], [3, 1]], [[1, 1], [1, 1], [1, 1]], [[1, 2], [0, 2]]  # of the chapter

not_negative = st.builds(Fraction, st.sampled_from([0, 0, 1, 2, 3, 5]), st.integers(1, 3))


def transposed(a):
    return [list(column) for column in zip(*a, strict=True)]


def squares(a, b):
    return sum((x - y) ** 2 for rows in zip(a, b, strict=True) for x, y in zip(*rows, strict=True))


def plain_update(x, c, f):
    """Apply the multiplicative rule entry by entry; 0 over 0 keeps the entry."""
    above, below = plain_product(transposed(c), x), plain_product(plain_product(transposed(c), c), f)
    return [
        [entry * n / d if d else entry for entry, n, d in zip(*rows, strict=True)]
        for rows in zip(f, above, below, strict=True)
    ]


def check_error(step, name, x, c, f):
    product, rest, error = right_sides(step, name, f"X - {name}", rf"\lVert X - {name} \rVert^2")
    assert read_matrices(product) == [Matrix(c), Matrix(f), Matrix(plain_product(c, f))]
    (left,) = read_matrices(rest)
    assert left == Matrix(x) - Matrix(plain_product(c, f))
    formula, total = error.split(" = ")
    assert [read_number(term) for term in formula.split(" + ")] == [entry**2 for entry in left]
    assert all(term.endswith("^2") for term in formula.split(" + "))
    assert read_number(formula) == read_number(total) == step.value == squares(x, plain_product(c, f))
    return step.value


def check_entries(step, name, old, new, above, below):
    *entries, whole = read_lines(step.latex)
    assert (whole[0], read_matrices(whole[2])) == (f"{name}'", [Matrix(new)])
    places = [(i, j) for i in range(len(old)) for j in range(len(old[0]))]
    for (i, j), (left, _, right) in zip(places, entries, strict=True):
        assert left == f"{name}_{{{i + 1} {j + 1}}}'"
        if below[i, j] == 0:
            assert read_number(right) == old[i][j] == new[i][j]
            continue
        formula, total = right.split(" = ")
        first, fraction = formula.split(r" \cdot ")
        assert read_number(first) == old[i][j]
        assert fraction == rf"\frac{{{sympy.latex(above[i, j])}}}{{{sympy.latex(below[i, j])}}}"
        assert read_number(total) == read_number(formula) == new[i][j]
    assert ("the entry stays as it is" in step.plain) == (0 in list(below))
    assert ("An entry that is zero stays zero." in step.plain) == any(entry == 0 for row in old for entry in row)
    assert step.value == Matrix(new)


def said(before, after):
    return f"falls from {before} to {after}." if after < before else f"stays {after}."


def check_nmf(x, c, f):
    worked = nmf_update(x, c, f)
    x, c, f = fractions(x), fractions(c), fractions(f)
    new_f = plain_update(x, c, f)
    new_c = transposed(plain_update(transposed(x), transposed(new_f), transposed(c)))
    start, above, below, update, middle, above_c, below_c, update_c, end = worked.steps

    before = check_error(start, "C F", x, c, f)
    assert start.plain.endswith(f"This is the squared error, {before}.")
    factors, product = right_sides(above, r"C^\top X", "")
    assert read_matrices(factors) == [Matrix(c).T, Matrix(x)]
    assert read_matrices(product) == [above.value] == [Matrix(c).T * Matrix(x)]
    gram, product = right_sides(below, r"C^\top C", r"C^\top C F")
    assert read_matrices(gram) == [Matrix(c).T, Matrix(c), Matrix(c).T * Matrix(c)]
    assert read_matrices(product) == [Matrix(c).T * Matrix(c), Matrix(f), below.value]
    assert below.value == Matrix(c).T * Matrix(c) * Matrix(f)
    check_entries(update, "F", f, new_f, above.value, below.value)
    half = check_error(middle, "C F'", x, c, new_f)
    assert middle.plain == f"With the new F the squared error {said(before, half)}"

    factors, product = right_sides(above_c, r"X F'^\top", "")
    assert read_matrices(factors) == [Matrix(x), Matrix(new_f).T]
    assert read_matrices(product) == [above_c.value] == [Matrix(x) * Matrix(new_f).T]
    gram, product = right_sides(below_c, r"F' F'^\top", r"C F' F'^\top")
    square = Matrix(new_f) * Matrix(new_f).T
    assert read_matrices(gram) == [Matrix(new_f), Matrix(new_f).T, square]
    assert read_matrices(product) == [Matrix(c), square, below_c.value]
    assert below_c.value == Matrix(c) * square
    check_entries(update_c, "C", c, new_c, above_c.value, below_c.value)
    after = check_error(end, "C' F'", x, new_c, new_f)
    assert end.plain == f"With both new factors the squared error {said(half, after)}"

    assert worked.result == (Matrix(new_c), Matrix(new_f))
    assert after <= half <= before
    assert all(entry >= 0 for factor in worked.result for entry in factor)
    for old, new in ((c, worked.result.c), (f, worked.result.f)):
        assert all(entry == 0 for was, entry in zip(Matrix(old), new, strict=True) if was == 0)
    return worked


def test_update_by_hand():
    worked = check_nmf(X, C, F)
    assert [step.value for step in worked.steps] == [
        20,
        Matrix([[3, 6], [3, 6]]),
        Matrix([[3, 12], [3, 12]]),
        Matrix([[1, 1], [0, 1]]),
        8,
        Matrix([[2, 2], [3, 3], [4, 1]]),
        Matrix([[3, 2], [3, 2], [3, 2]]),
        Matrix([["2/3", 1], [1, "3/2"], ["4/3", "1/2"]]),
        Rational(95, 18),
    ]
    assert r"F_{1 2}' &= 2 \cdot \frac{6}{12} = 1 \cr" in without_struts(worked.steps[3].latex)


@settings(max_examples=25)
@given(st.data(), sides, sides, sides)
def test_update_steps_follow(data, n, d, k):
    x, c, f = (
        data.draw(matrices(st.just(rows), st.just(columns), not_negative).filter(lambda a: min(map(min, a)) >= 0))
        for rows, columns in ((n, d), (n, k), (k, d))
    )
    worked = check_nmf(x, c, f)
    if all(d != 0 for step in worked.steps[2:7:4] for d in step.value):
        x, c, f = (as_floats(a) for a in (x, c, f))
        f = f * (c.T @ x) / (c.T @ c @ f)
        c = c * (x @ f.T) / (c @ f @ f.T)
        np.testing.assert_allclose(as_floats(worked.result.f), f, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(as_floats(worked.result.c), c, rtol=1e-9, atol=1e-12)


def test_zero_denominators():
    """A column of zeros in C or a row of zeros in F leads to 0 over 0."""
    assert check_nmf([[2, 0], [4, 1]], [[1, 0], [2, 1]], [[2, 0], [0, 1]]).result.c == Matrix([[1, 0], [2, 1]])
    worked = check_nmf([[1, 2]], [[0, 1]], [[5, 7], [1, 1]])
    assert worked.result.f[0, :] == Matrix([[5, 7]])
    assert check_nmf([[1, 2]], [[3, 1]], [[0, 0], [1, 1]]).result.c[0, 0] == 3
    lost = check_nmf([[0, 0], [1, 2]], [[1, 0], [0, 1]], [[1, 1], [1, 1]])  # its row of F becomes zero on the way
    assert lost.result.c == Matrix([[1, 0], [0, 1]])
    assert lost.result.f == Matrix([[0, 0], [1, 2]])


BIG = np.random.default_rng(0).integers(1, 10, (12, 12))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], [[1], [1]], [[1, 1]]), "c must have a row for each row of x, got shapes (2, 1) and (1, 2)"),
        (([[1, 2]], [[1]], [[1]]), "f must have a column for each column of x, got shapes (1, 1) and (1, 2)"),
        (([[1, 2]], [[1, 1]], [[1, 1]]), "c must have a column for each row of f, got shapes (1, 2) and (1, 2)"),
        (([[1, "-1/2"]], [[1]], [[1, 1]]), "x[0][1] must be at least 0, got -1/2"),
        (([[1], [2]], [[1], [-1]], [[1]]), "c[1][0] must be at least 0, got -1"),
        (([[1, 2]], [[1]], [[-3, 1]]), "f[0][0] must be at least 0, got -3"),
        (
            (BIG, BIG[:, :3], BIG[:3]),
            "x, c and f must be small enough to work by hand, got a fraction of some {} digits",
        ),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match="^" + re.escape(message).replace(r"\{\}", r"\d{4}") + "$"):
        nmf_update(*arguments)
