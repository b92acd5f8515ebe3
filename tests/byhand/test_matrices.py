"""Each step of a row reduction, an outer product and a score follows from the one before."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational
from worked import as_floats, ends, matrices, read_matrices, read_number, small_rationals

from lowrank_tutor.byhand import bilinear, rank_one, row_reduce

# Row reduction


NUMBER = r"(-?\d+(?:/\d+)?)"


def apply_operation(sentence, matrix):
    """Apply the row operation that a sentence names to ``matrix``."""
    rows = [matrix[i, :] for i in range(matrix.rows)]
    if found := re.fullmatch(r"Swap rows (\d+) and (\d+)\.", sentence):
        i, j = (int(name) - 1 for name in found.groups())
        assert i != j
        rows[i], rows[j] = rows[j], rows[i]
    elif found := re.fullmatch(r"Change the sign of row (\d+)\.", sentence):
        i = int(found[1]) - 1
        rows[i] = -rows[i]
    elif found := re.fullmatch(rf"Divide row (\d+) by {NUMBER}\.", sentence):
        i = int(found[1]) - 1
        rows[i] = rows[i] / Rational(found[2])
    else:
        pattern = rf"(Subtract|Add) (?:{NUMBER} times )?row (\d+) (from|to) row (\d+)\."
        verb, size, source, link, target = re.fullmatch(pattern, sentence).groups()
        assert (verb, link) in (("Subtract", "from"), ("Add", "to"))
        assert source != target
        factor = Rational(size or "1") * (1 if verb == "Add" else -1)
        rows[int(target) - 1] = rows[int(target) - 1] + factor * rows[int(source) - 1]
    return Matrix.vstack(*rows)


def check_row_reduction(a):
    start, *operations, last = row_reduce(a).steps
    assert start.value == read_matrices(start.latex)[-1] == Matrix(a)
    for before, after in itertools.pairwise([start, *operations]):
        assert apply_operation(after.plain, before.value) == after.value
        assert read_matrices(after.latex) == [after.value]
        assert after.value != before.value
    reduced, pivots = Matrix(a).rref()
    assert row_reduce(a).result == [start, *operations][-1].value == reduced
    assert last.value == tuple(pivot + 1 for pivot in pivots)
    assert last.latex == rf"\operatorname{{rank}} A = {len(pivots)}"
    assert f"so the rank is {len(pivots)}." in last.plain


@settings(max_examples=25)
@given(matrices())
def test_row_operations_follow(a):
    check_row_reduction(a)


def test_operations_in_words():
    worked = row_reduce([[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]])
    assert [step.plain for step in worked.steps[1:7]] == [
        "Swap rows 1 and 2.",
        "Divide row 1 by 2.",
        "Subtract row 1 from row 3.",
        "Add row 1 to row 4.",
        "Change the sign of row 2.",
        "Subtract 2 times row 2 from row 1.",
    ]
    ends_with = "It has 3 pivots, in columns 1, 2, 3, so the rank is 3."
    assert worked.steps[-1].plain.endswith(ends_with)
    assert "It has no pivot" in row_reduce([[0]]).steps[-1].plain
    assert "It has 1 pivot, in column 1" in row_reduce([[1]]).steps[-1].plain


@pytest.mark.parametrize(
    "a",
    [
        [[7]],
        [["-1/3"]],
        [[0, 0, 3, 1]],
        [[0], [0], [-5]],
        [[0, 1], [1, 0]],
        [[1, 0, 5], [0, 1, 7]],
        [[0, 0]] * 3,
        [[1]],
    ],
)
def test_row_reduction_edge_cases(a):
    check_row_reduction(a)


# Outer product


def test_rank_one_by_hand():
    multiples = [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    worked, v = rank_one(multiples), Matrix([1, 2, 3])
    assert worked.result == (v, v)
    assert [step.value for step in worked.steps] == [v, v, Matrix(multiples), (9, 6, 5)]
    assert "The matrix has 9 numbers, and the factors have 6, 3 fewer." in worked.steps[-1].plain
    assert "5 degrees of freedom" in worked.steps[-1].plain
    assert "which saves nothing" in rank_one([[1, 2, 3]]).steps[-1].plain
    worked = rank_one([[0, 0], [-4, -6], [2, 3]])
    assert worked.result == (Matrix([0, -2, 1]), Matrix([2, 3]))
    assert (
        worked.steps[0].plain
        == "Row 2 is the first that is not zero. Take out its factor -2 and call the rest v."
    )


@settings(max_examples=25)
@given(
    st.lists(small_rationals, min_size=1, max_size=5).filter(any),
    st.lists(small_rationals, min_size=1, max_size=5).filter(any),
)
def test_outer_products_multiply_back(left, right):
    a = Matrix(left) * Matrix(right).T
    worked = rank_one(a)
    u, v = worked.result
    m, n = a.shape
    assert (u.shape, v.shape) == ((m, 1), (n, 1))
    assert [step.value for step in worked.steps] == [v, u, a, (m * n, m + n, m + n - 1)]
    assert [read_matrices(step.latex)[-1] for step in worked.steps[:3]] == [v.T, u, a]
    assert all(entry.is_Integer for entry in v)
    assert math.gcd(*(int(entry) for entry in v)) == 1
    assert next(entry for entry in v if entry != 0) > 0


# Scores

GOLDEN_SCORE = ([1, 2], [[2, 1]], [[1, -1]], [3, 4])


def check_printed_product(step, letter):
    """Check a step's result by its own numbers; return the matrix and the vector it printed."""
    first, *entries = ends(step.latex)
    matrix, vector = read_matrices(first)
    for row, line in enumerate(entries):
        formula, total = line.split(" = ")
        assert (
            read_number(formula)
            == matrix[row, :].dot(vector)
            == read_number(total)
            == step.value[row]
        )
        assert f"{letter}_{{{row + 1}}} &= {line}" in step.latex
    assert step.value.shape == (len(entries), 1) == (matrix.rows, 1)
    return matrix, vector


def check_bilinear(s, u, v, h):
    s, u, v, h = Matrix(s), Matrix(u), Matrix(v), Matrix(h)
    x, y, score, w, z, again, kept, work = bilinear(s, u, v, h).steps
    assert check_printed_product(x, "x") == (u, s)
    assert check_printed_product(y, "y") == (v, h)
    *_, formula, total = score.latex.split(" = ")
    assert read_number(formula) == x.value.dot(y.value) == read_number(total) == score.value
    left, right, product = read_matrices(w.latex)
    assert (left, right) == (u.T, v)
    assert left * right == product == w.value
    d2, d1 = w.value.shape
    if d2 <= d1:
        assert check_printed_product(z, "z") == (w.value, h)
        assert z.value.dot(s) == again.value
    else:
        assert check_printed_product(z, "z") == (w.value.T, s)
        assert z.value.dot(h) == again.value
    *_, formula, total = again.latex.split(" = ")
    assert read_number(formula) == read_number(total) == again.value
    assert again.value == score.value == bilinear(s, u, v, h).result
    # counts, from what the steps printed
    k = u.rows
    assert kept.value == (len(u) + len(v), len(w.value), Rational(d1 * d2, d1 + d2))
    sums = [step.latex.count(r"\cdot") for step in (x, y, score, z, again)]
    assert work.value == (sum(sums[:3]), sum(sums[3:]), k, min(d1, d2))
    for step, words in ((kept, kept.value[:2]), (work, work.value[:2])):
        few, many = words
        said = (
            "nothing"
            if few == many
            else f"saves {many - few}."
            if few < many
            else f"costs {few - many} more."
        )
        assert said in step.plain
        for equation in step.latex.replace(r"\qquad ", "").split(", "):
            *_, inserted, total = equation.split(" = ")
            if "d_" not in inserted:
                assert read_number(inserted) == read_number(total)
    assert f"k is below {kept.value[2]}." in kept.plain
    return w.value


def test_bilinear_by_hand():
    worked = bilinear(*GOLDEN_SCORE)
    assert [step.value for step in worked.steps] == [
        Matrix([4]),
        Matrix([-1]),
        -4,
        Matrix([[2, -2], [1, -1]]),
        Matrix([-2, -1]),
        -4,
        (4, 4, 1),
        (5, 6, 1, 2),
    ]
    assert worked.result == -4
    check_bilinear(*GOLDEN_SCORE)


@settings(max_examples=25)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
def test_bilinear_steps_follow(data, k, d2, d1):
    u, v = (data.draw(matrices(rows=st.just(k), columns=st.just(width))) for width in (d2, d1))
    s, h = (
        data.draw(st.lists(small_rationals, min_size=width, max_size=width)) for width in (d2, d1)
    )
    w = check_bilinear(s, u, v, h)
    judged = (as_floats([s]) @ as_floats(w) @ as_floats([h]).T).item()
    np.testing.assert_allclose(float(bilinear(s, u, v, h).result), judged, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_one([[0, 0]]), "a must be a matrix of rank 1, got rank 0"),
        (lambda: rank_one([[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
         "a must be a matrix of rank 1, got rank 2"),
        (lambda: bilinear([1, 2], [[1, 2, 3]], [[1, 2]], [1, 2]),
         "u must be as wide as s is long, got u of shape (1, 3) and s of length 2"),
        (lambda: bilinear([1, 2], [[1, 2]], [[1, 2]], [1]),
         "v must be as wide as h is long, got v of shape (1, 2) and h of length 1"),
        (lambda: bilinear([1, 2], [[1, 2]], [[1], [2]], [1]),
         "u and v must have equally many rows, got shapes (1, 2) and (2, 1)"),
        (lambda: bilinear([[1, 2]], [[1, 2]], [[1]], [1]),
         "s must be one vector, got shape (1, 2)"),
        (lambda: bilinear([1], [[1]], [[1]], [[1, 2], [3, 4]]),
         "h must be one vector, got shape (2, 2)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()
