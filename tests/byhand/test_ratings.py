"""Each step of half a step of ALS follows from the one before, and unknown ratings stay unknown."""

import re
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational, nan
from worked import (
    as_floats,
    fractions,
    matrices,
    read_lines,
    read_matrices,
    read_number,
    right_sides,
    sides,
    small_integers,
    small_rationals,
)

from lowrank_tutor.byhand import als_half_step

RATINGS, F = [[2, 3, 2], [3, None, 5], [None, None, None]], [[1, 0, 1], [0, 1, 1]]  # of the chapter


def read_table(latex):
    """Read the first matrix of a formula, with NaN for its question marks and NaNs."""
    (first, *_) = re.findall(r"\\begin\{pmatrix\} (.*?) \\end\{pmatrix\}", latex)
    unknown = ("?", r"\operatorname{NaN}")
    return [
        [nan if entry in unknown else read_number(entry) for entry in row.split(" & ")] for row in first.split(r" \cr ")
    ]


def same(a, b):
    """Say whether two matrices are equal; an unknown equals an unknown."""
    return Matrix(a).shape == Matrix(b).shape and all(
        x is y is nan or x == y for x, y in zip(Matrix(a), Matrix(b), strict=True)
    )


def check_als(ratings, f, regularization=0):
    worked = als_half_step(ratings, f, regularization)
    penalty = Rational(str(regularization))
    table = [[nan if entry is None else Rational(str(entry)) for entry in row] for row in ratings]
    f = Matrix(fractions(f))
    k, m = f.shape
    start, *steps, end = worked.steps
    shown, factors = right_sides(start, "X", "F")
    assert same(read_table(shown), table)
    assert same(start.value, table)
    assert read_matrices(factors) == [f]
    gaps = any(entry is nan for row in table for entry in row)
    assert ("question mark" in start.plain) == gaps == ("?" in start.latex)
    rows = []
    for i, row in enumerate(table, start=1):
        known = [j for j in range(m) if row[j] is not nan]
        if not known:
            unknown = steps.pop(0)
            assert unknown.plain.startswith(f"Row {i} has no known rating.")
            assert unknown.latex.startswith(f"c_{{{i}}} = ")
            assert same(unknown.value, [nan] * k)
            assert same(read_table(unknown.latex), [[nan]] * k)
            rows.append([nan] * k)
            continue
        normal, solution = steps.pop(0), steps.pop(0)
        mine, wanted = f.extract(list(range(k)), known), Matrix([row[j] for j in known])
        gram = mine * mine.T
        name = rf"F_{{{i}}} F_{{{i}}}^\top"
        number = f"{penalty}" if penalty.q == 1 else rf"\left( {sympy.latex(penalty)} \right)"
        with_penalty = [rf"{name} + {number} I"] if penalty else []
        lines = right_sides(normal, f"F_{{{i}}}", f"x_{{{i}}}", name, *with_penalty, f"F_{{{i}}} x_{{{i}}}")
        whole = gram + penalty * sympy.eye(k)
        judged = [mine, wanted, gram, *([whole] if penalty else []), mine * wanted]
        assert [read_matrices(line) for line in lines] == [[matrix] for matrix in judged]
        assert normal.value == (whole, mine * wanted)
        columns = [int(number) for number in re.findall(r"\d+", normal.plain.split(".")[0])]
        assert columns == [i, *(j + 1 for j in known)]
        assert (f", with {penalty} added along the diagonal." in normal.plain) == bool(penalty)
        left = rf"\left( {name} + {number} I \right)" if penalty else name
        formulas = read_lines(solution.latex)
        assert [f"{a} = {b}" for a, _, b in formulas[:1]] == [rf"{left} c_{{{i}}} = F_{{{i}}} x_{{{i}}}"]
        assert formulas[1][0].endswith(f"c_{{{i}}}")
        assert read_matrices(formulas[1][0]) + read_matrices(formulas[1][2]) == list(normal.value)
        assert formulas[2][0] == f"c_{{{i}}}"
        inverse, right, found = read_matrices(formulas[2][2])
        assert inverse * whole == sympy.eye(k)
        assert right == mine * wanted
        assert found == solution.value == inverse * right
        # the gradient of this row's objective is zero
        assert mine * (mine.T * found - wanted) + penalty * found == sympy.zeros(k, 1)
        rows.append(list(found))
    assert not steps
    assert same(worked.result, rows)
    factors, estimates, error = right_sides(end, "C F", "", r"\text{squared error}")
    assert same(read_table(factors), rows)
    assert read_matrices(factors.split(r"\end{pmatrix}", 1)[1]) == [f]
    guesses = [
        [sum(x * y for x, y in zip(row, f[:, j], strict=True)) if row[0] is not nan else nan for j in range(m)]
        for row in rows
    ]
    assert same(end.value, guesses)
    assert same(read_table(estimates), guesses)
    misses = [
        a - b for one, two in zip(table, guesses, strict=True) for a, b in zip(one, two, strict=True) if a is not nan
    ]
    formula, total = error.split(" = ")
    assert [read_number(term) for term in formula.split(" + ")] == [miss**2 for miss in misses]
    assert read_number(total) == sum(miss**2 for miss in misses)
    counted = "the known rating" if len(misses) == 1 else f"the {len(misses)} known ratings"
    assert end.plain.endswith(f"The squared error over {counted} is {read_number(total)}.")
    return worked


def test_half_step_by_hand():
    worked = check_als(RATINGS, F)
    assert same(worked.result, [[1, 2], [3, 2], [nan, nan]])
    assert same(worked.steps[-1].value, [[1, 2, 3], [3, 2, 5], [nan, nan, nan]])
    assert worked.steps[1].value == (Matrix([[2, 1], [1, 2]]), Matrix([4, 5]))
    assert worked.steps[3].value == (Matrix([[2, 1], [1, 1]]), Matrix([8, 5]))
    # contrast: a gap read as a zero pulls the whole row down
    zeros = [[0 if entry is None else entry for entry in row] for row in RATINGS]
    assert als_half_step(zeros, F).result == Matrix([[1, 2], ["11/3", "2/3"], [0, 0]])


def test_penalty_by_hand():
    worked = check_als(RATINGS, F, "1/2")
    assert same(worked.result, [[Rational(20, 21), Rational(34, 21)], [Rational(28, 11), Rational(18, 11)], [nan, nan]])
    assert "with 1/2 added along the diagonal" in worked.steps[1].plain
    assert check_als([[None, 3]], [[1, 1], [1, 2]], 1).result == Matrix([["1/2", 1]])


@st.composite
def tables(draw, entries=small_rationals):
    n, m, k = (draw(sides) for _ in range(3))
    entry = st.one_of(st.none(), entries, entries)
    ratings = draw(st.lists(st.lists(entry, min_size=m, max_size=m), min_size=n, max_size=n))
    ratings[draw(st.integers(0, n - 1))][draw(st.integers(0, m - 1))] = draw(entries)
    return ratings, draw(matrices(st.just(k), st.just(m), entries))


@settings(max_examples=25)
@given(tables(), st.sampled_from([1, "1/3", 7]))
def test_half_steps_follow(table, regularization):
    worked = check_als(*table, regularization)
    ratings, f = table
    f, penalty = as_floats(f), float(Fraction(regularization))
    for row, found in zip(ratings, worked.result.tolist(), strict=True):
        known = [j for j, entry in enumerate(row) if entry is not None]
        if known:
            ridge = np.vstack([f[:, known].T, np.sqrt(penalty) * np.eye(len(f))])
            wanted = np.concatenate([[float(row[j]) for j in known], np.zeros(len(f))])
            judged = np.linalg.lstsq(ridge, wanted, rcond=None)[0]
            np.testing.assert_allclose(as_floats([found])[0], judged, rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(tables(small_integers))
def test_without_penalty(table):
    ratings, f = table
    short = [
        i
        for i, row in enumerate(ratings, start=1)
        if (known := [j for j, entry in enumerate(row) if entry is not None])
        and Matrix(f).extract(list(range(len(f))), known).rank() < len(f)
    ]
    if not short:
        check_als(*table)
        return
    with pytest.raises(ValueError, match=rf"^regularization must be above 0 .* got 0: row {short[0]} of ratings has"):
        als_half_step(*table)


@pytest.mark.parametrize(
    "gaps",
    [RATINGS, [tuple(row) for row in RATINGS], np.array(RATINGS, dtype=object), [np.array(row) for row in RATINGS]],
)
def test_forms_of_gaps(gaps):
    before = [list(row) for row in gaps]
    assert same(als_half_step(gaps, F).result, [[1, 2], [3, 2], [nan, nan]])
    assert [list(row) for row in gaps] == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[None, None]], [[1, 1]]), "ratings must hold at least one known entry, got none"),
        (([[1, None]], [[1]]),
         "f must have a column for each column of ratings, got shapes (1, 1) and (1, 2)"),
        (([[1]], [[1]], -1), "regularization must be at least 0, got -1"),
        (([[1]], [[1]], "-1/9"), "regularization must be at least 0, got -1/9"),
        (([[1]], [[1]], float("nan")), "regularization must be finite, got nan"),
        (([[2, 1], [None, 3]], [[1, 0], [1, 1]]),
         "regularization must be above 0 where a row has more than one solution, got 0: row 2 of ratings has known "
         "entries of rank 1 in f, for k = 2"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        als_half_step(*arguments)


def test_long_fractions_are_refused():
    long = np.random.default_rng(0).integers(1, 10**18, (12, 12))
    with_gaps = [[None if i == j else x for j, x in enumerate(row)] for i, row in enumerate(long)]
    inverses = [[Fraction(1, int(x)) for x in row] for row in long[:4]]
    for arguments in ((long[:1], inverses), (with_gaps, long[:4])):  # too long in a solution, and in the error
        with pytest.raises(ValueError, match=r"^ratings and f must be small enough .* got a fraction of some \d{4} "):
            als_half_step(*arguments)
