"""Each worked step of NMF, of least squares in turns and of the discriminant follows from the one before, exactly."""

import inspect
import re
import time
from fractions import Fraction

import numpy as np
import pytest
import sympy
import test_byhand
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sympy import Matrix, Rational, nan
from test_byhand import as_floats, matrices, read_matrices, read_number, small_rationals
from test_byhand_attention import fractions, plain_product, read_lines

from lowrank_tutor import _family_byhand, byhand, family
from lowrank_tutor.byhand import als_half_step, linear_discriminant, nmf_update, project

# The examples of the chapter.
X, W, H = [[0, 2], [0, 3], [3, 1]], [[1, 1], [1, 1], [1, 1]], [[1, 2], [0, 2]]
RATINGS, Q = [[2, 3, 2], [3, None, 5], [None, None, None]], [[1, 0], [0, 1], [1, 1]]
A, B = [[0, 2], [1, 1], [3, 1], [4, 0]], [[3, 2], [4, 1], [6, 1], [7, 0]]

not_negative = st.builds(Fraction, st.sampled_from([0, 0, 1, 2, 3, 5]), st.integers(1, 3))
small_integers = st.integers(-4, 4)
sides = st.integers(1, 4)


# Judges that share nothing with the package


def transposed(a):
    return [list(column) for column in zip(*a, strict=True)]


def squares(a, b):
    return sum((x - y) ** 2 for rows in zip(a, b, strict=True) for x, y in zip(*rows, strict=True))


def plain_update(x, w, h):
    """The multiplicative rule, entry by entry; 0 over 0 keeps the entry."""
    above, below = plain_product(transposed(w), x), plain_product(plain_product(transposed(w), w), h)
    return [
        [entry * n / d if d else entry for entry, n, d in zip(*rows, strict=True)]
        for rows in zip(h, above, below, strict=True)
    ]


def read_table(latex):
    """The first matrix of a formula, with NaN for its question marks and NaNs."""
    (first, *_) = re.findall(r"\\begin\{pmatrix\} (.*?) \\end\{pmatrix\}", latex)
    unknown = ("?", r"\operatorname{NaN}")
    return [
        [nan if entry in unknown else read_number(entry) for entry in row.split(" & ")] for row in first.split(r" \cr ")
    ]


def printed(value, *names):
    """The lines of a step, whose left sides must be these; each as the matrices, or the number, that it ends in."""
    lines = read_lines(value.latex)
    assert [line[0].strip() for line in lines] == list(names)
    assert {line[1] for line in lines} == {"="}
    return [line[2] for line in lines]


def same(a, b):
    """Equal, where an unknown is equal to an unknown."""
    return Matrix(a).shape == Matrix(b).shape and all(
        x is y is nan or x == y for x, y in zip(Matrix(a), Matrix(b), strict=True)
    )


# Non-negative factors


def check_error(step, name, x, w, h):
    product, rest, error = printed(step, name, f"X - {name}", rf"\lVert X - {name} \rVert^2")
    assert read_matrices(product) == [Matrix(w), Matrix(h), Matrix(plain_product(w, h))]
    (left,) = read_matrices(rest)
    assert left == Matrix(x) - Matrix(plain_product(w, h))
    formula, total = error.split(" = ")
    assert [read_number(term) for term in formula.split(" + ")] == [entry**2 for entry in left]
    assert all(term.endswith("^2") for term in formula.split(" + "))
    assert read_number(formula) == read_number(total) == step.value == squares(x, plain_product(w, h))
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
    assert ("the entry stays as it is" in step.text) == (0 in list(below))
    assert ("An entry that is zero stays zero." in step.text) == any(entry == 0 for row in old for entry in row)
    assert step.text.startswith(f"Multiply each entry of {name} by its numerator over its denominator.")
    assert step.text.endswith(f"This is the new {name}.")
    assert step.value == Matrix(new)


def said(before, after):
    return f"falls from {before} to {after}." if after < before else f"stays {after}."


def check_nmf(x, w, h):
    worked = nmf_update(x, w, h)
    x, w, h = fractions(x), fractions(w), fractions(h)
    new_h = plain_update(x, w, h)
    new_w = transposed(plain_update(transposed(x), transposed(new_h), transposed(w)))
    start, above, below, update, middle, above_w, below_w, update_w, end = worked.steps

    before = check_error(start, "W H", x, w, h)
    assert start.text.endswith(f"This is the squared error, {before}.")
    factors, product = printed(above, r"W^\top X", "")
    assert read_matrices(factors) == [Matrix(w).T, Matrix(x)]
    assert read_matrices(product) == [above.value] == [Matrix(w).T * Matrix(x)]
    gram, product = printed(below, r"W^\top W", r"W^\top W H")
    assert read_matrices(gram) == [Matrix(w).T, Matrix(w), Matrix(w).T * Matrix(w)]
    assert read_matrices(product) == [Matrix(w).T * Matrix(w), Matrix(h), below.value]
    assert below.value == Matrix(w).T * Matrix(w) * Matrix(h)
    check_entries(update, "H", h, new_h, above.value, below.value)
    half = check_error(middle, "W H'", x, w, new_h)
    assert middle.text == f"With the new H the squared error {said(before, half)}"

    factors, product = printed(above_w, r"X H'^\top", "")
    assert read_matrices(factors) == [Matrix(x), Matrix(new_h).T]
    assert read_matrices(product) == [above_w.value] == [Matrix(x) * Matrix(new_h).T]
    gram, product = printed(below_w, r"H' H'^\top", r"W H' H'^\top")
    square = Matrix(new_h) * Matrix(new_h).T
    assert read_matrices(gram) == [Matrix(new_h), Matrix(new_h).T, square]
    assert read_matrices(product) == [Matrix(w), square, below_w.value]
    assert below_w.value == Matrix(w) * square
    check_entries(update_w, "W", w, new_w, above_w.value, below_w.value)
    after = check_error(end, "W' H'", x, new_w, new_h)
    assert end.text == f"With both new factors the squared error {said(half, after)}"

    assert worked.result == (Matrix(new_w), Matrix(new_h))
    assert after <= half <= before
    assert all(entry >= 0 for factor in worked.result for entry in factor)
    for old, new in ((w, worked.result.w), (h, worked.result.h)):
        assert all(entry == 0 for was, entry in zip(Matrix(old), new, strict=True) if was == 0)
    return worked


def test_three_rows_and_two_parts_by_hand():
    worked = check_nmf(X, W, H)
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
    assert [step.text for step in worked.steps] == [
        "Multiply W with H, and add up the squares of what is left of X. This is the squared error, 20.",
        "Multiply Wᵀ with X. These are the numerators for H.",
        "Multiply Wᵀ W with H. These are the denominators.",
        "Multiply each entry of H by its numerator over its denominator. An entry that is zero stays zero. This is the "
        "new H.",
        "With the new H the squared error falls from 20 to 8.",
        "Multiply X with the transpose of the new H. These are the numerators for W.",
        "Multiply W with the new H times its transpose. These are the denominators.",
        "Multiply each entry of W by its numerator over its denominator. This is the new W.",
        "With both new factors the squared error falls from 8 to 95/18.",
    ]
    assert r"H_{1 2}' &= 2 \cdot \frac{6}{12} = 1 \cr" in worked.steps[3].latex


@settings(max_examples=40)
@given(st.data(), sides, sides, sides)
def test_each_step_of_an_update_follows_and_the_error_never_rises(data, n, d, k):
    x, w, h = (
        data.draw(matrices(st.just(rows), st.just(columns), not_negative).filter(lambda a: min(map(min, a)) >= 0))
        for rows, columns in ((n, d), (n, k), (k, d))
    )
    worked = check_nmf(x, w, h)
    if all(d != 0 for step in worked.steps[2:7:4] for d in step.value):
        x, w, h = (as_floats(a) for a in (x, w, h))
        h = h * (w.T @ x) / (w.T @ w @ h)
        w = w * (x @ h.T) / (w @ h @ h.T)
        np.testing.assert_allclose(as_floats(worked.result.h), h, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(as_floats(worked.result.w), w, rtol=1e-9, atol=1e-12)


def test_a_factorization_stays_as_it_is():
    worked = check_nmf([[2, 0], [4, 1]], [[1, 0], [2, 1]], [[2, 0], [0, 1]])
    assert worked.result == (Matrix([[1, 0], [2, 1]]), Matrix([[2, 0], [0, 1]]))
    assert worked.steps[4].text == "With the new H the squared error stays 0."


def test_what_nothing_is_multiplied_with_stays_as_it_is():
    """A column of zeros in W, or a row of zeros in H, asks for 0 over 0."""
    worked = check_nmf([[1, 2]], [[0, 1]], [[5, 7], [1, 1]])
    assert worked.result.h[0, :] == Matrix([[5, 7]])
    assert worked.steps[3].text == (
        "Multiply each entry of H by its numerator over its denominator. Where the denominator is zero, the entry "
        "stays as it is. This is the new H."
    )
    assert check_nmf([[1, 2]], [[3, 1]], [[0, 0], [1, 1]]).result.w[0, 0] == 3
    lost = check_nmf([[0, 0], [1, 2]], [[1, 0], [0, 1]], [[1, 1], [1, 1]])  # its row of H becomes zero on the way
    assert lost.result.w == Matrix([[1, 0], [0, 1]])
    assert lost.result.h == Matrix([[0, 0], [1, 2]])


def test_a_least_squares_step_would_leave_the_quadrant():
    """Clipping is not what the rule does: the best H for this W has a negative entry, the new one has none."""
    x, w, h = [[0, 2], [3, 1]], [[1, 1], [1, 2]], [[1, 1], [1, 1]]
    best = np.linalg.solve(np.array(w, dtype=float), np.array(x, dtype=float))
    assert best.min() < -0.5
    assert min(check_nmf(x, w, h).result.h) > 0


# A table with gaps


def check_als(ratings, q, regularization=0):
    worked = als_half_step(ratings, q, regularization)
    penalty = Rational(str(regularization))
    table = [[nan if entry is None else Rational(str(entry)) for entry in row] for row in ratings]
    q = Matrix(fractions(q))
    m, k = q.shape
    start, *steps, end = worked.steps
    shown, factors = printed(start, "R", "Q")
    assert same(read_table(shown), table)
    assert same(start.value, table)
    assert read_matrices(factors) == [q]
    gaps = any(entry is nan for row in table for entry in row)
    assert ("question mark" in start.text) == gaps == ("?" in start.latex)
    rows = []
    for i, row in enumerate(table, start=1):
        known = [j for j in range(m) if row[j] is not nan]
        if not known:
            unknown = steps.pop(0)
            assert unknown.text.startswith(f"Row {i} has no known rating.")
            assert unknown.latex.startswith(f"p_{{{i}}} = ")
            assert same(unknown.value, [nan] * k)
            assert same(read_table(unknown.latex), [[nan]] * k)
            rows.append([nan] * k)
            continue
        normal, solution = steps.pop(0), steps.pop(0)
        mine, wanted = Matrix([list(q[j, :]) for j in known]), Matrix([row[j] for j in known])
        gram = mine.T * mine
        name = rf"Q_{{{i}}}^\top Q_{{{i}}}"
        number = f"{penalty}" if penalty.q == 1 else rf"\left( {sympy.latex(penalty)} \right)"
        with_penalty = [rf"{name} + {number} I"] if penalty else []
        lines = printed(normal, f"Q_{{{i}}}", f"r_{{{i}}}", name, *with_penalty, rf"Q_{{{i}}}^\top r_{{{i}}}")
        whole = gram + penalty * sympy.eye(k)
        judged = [mine, wanted, gram, *([whole] if penalty else []), mine.T * wanted]
        assert [read_matrices(line) for line in lines] == [[matrix] for matrix in judged]
        assert normal.value == (whole, mine.T * wanted)
        columns = [int(number) for number in re.findall(r"\d+", normal.text.split(".")[0])]
        assert columns == [i, *(j + 1 for j in known)]
        assert ("column " in normal.text) == (len(known) == 1) == ("Take this row" in normal.text)
        assert ("columns " in normal.text) == (len(known) > 1) == ("Take these rows" in normal.text)
        assert (f", with {penalty} added along the diagonal." in normal.text) == bool(penalty)

        left = rf"\left( {name} + {number} I \right)" if penalty else name
        formulas = read_lines(solution.latex)
        assert [f"{a} = {b}" for a, _, b in formulas[:1]] == [rf"{left} p_{{{i}}} = Q_{{{i}}}^\top r_{{{i}}}"]
        assert formulas[1][0].endswith(f"p_{{{i}}}")
        assert read_matrices(formulas[1][0]) + read_matrices(formulas[1][2]) == list(normal.value)
        assert formulas[2][0] == f"p_{{{i}}}"
        inverse, right, found = read_matrices(formulas[2][2])
        assert inverse * whole == sympy.eye(k)
        assert right == mine.T * wanted
        assert found == solution.value == inverse * right
        assert solution.text == f"Solve them. This is row {i} of P."
        # the gradient of the objective of this row is zero
        assert mine.T * (mine * found - wanted) + penalty * found == sympy.zeros(k, 1)
        rows.append(list(found))
    assert not steps
    assert same(worked.result, rows)
    factors, estimates, error = printed(end, r"P Q^\top", "", "E")
    assert same(read_table(factors), rows)
    assert read_matrices(factors.split(r"\end{pmatrix}", 1)[1]) == [q.T]
    guesses = [
        [sum(x * y for x, y in zip(row, q[j, :], strict=True)) if row[0] is not nan else nan for j in range(m)]
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
    assert end.text.endswith(f"The squared error E over {counted}: {read_number(total)}.")
    assert ("of the known rows" in end.text) == any(row[0] is nan for row in rows)
    return worked


def test_three_readers_by_hand():
    worked = check_als(RATINGS, Q)
    assert same(worked.result, [[1, 2], [3, 2], [nan, nan]])
    assert same(worked.steps[-1].value, [[1, 2, 3], [3, 2, 5], [nan, nan, nan]])
    assert worked.steps[1].value == (Matrix([[2, 1], [1, 2]]), Matrix([4, 5]))
    assert worked.steps[3].value == (Matrix([[2, 1], [1, 1]]), Matrix([8, 5]))
    assert [step.text for step in worked.steps] == [
        "Start from the ratings R and the factors Q of their columns. A question mark stands for a rating that is not "
        "known.",
        "Row 1 has known ratings in columns 1, 2 and 3. Take these rows of Q for the normal equations.",
        "Solve them. This is row 1 of P.",
        "Row 2 has known ratings in columns 1 and 3. Take these rows of Q for the normal equations.",
        "Solve them. This is row 2 of P.",
        "Row 3 has no known rating. Its row of P is not a number: zero would be an estimate.",
        "Multiply P with Qᵀ. This estimates every rating of the known rows. The squared error E over the 5 known "
        "ratings: 3.",
    ]
    # a gap read as a zero pulls the whole row down
    zeros = [[0 if entry is None else entry for entry in row] for row in RATINGS]
    assert als_half_step(zeros, Q).result == Matrix([[1, 2], ["11/3", "2/3"], [0, 0]])


def test_a_penalty_shrinks_but_leaves_the_unknown_unknown():
    worked = check_als(RATINGS, Q, "1/2")
    assert same(worked.result, [[Rational(20, 21), Rational(34, 21)], [Rational(28, 11), Rational(18, 11)], [nan, nan]])
    assert "with 1/2 added along the diagonal" in worked.steps[1].text
    assert check_als([[None, 3]], [[1, 1], [1, 2]], 1).result == Matrix([["1/2", 1]])


def test_a_table_without_gaps_is_spoken_of_without_gaps():
    steps = check_als([[3]], [[2]]).steps
    assert steps[0].text == "Start from the ratings R and the factors Q of their columns."
    assert steps[-1].text == (
        "Multiply P with Qᵀ. This estimates every rating. The squared error E over the known rating: 0."
    )


@st.composite
def tables(draw, entries=small_rationals):
    n, m, k = (draw(sides) for _ in range(3))
    entry = st.one_of(st.none(), entries, entries)
    ratings = draw(st.lists(st.lists(entry, min_size=m, max_size=m), min_size=n, max_size=n))
    ratings[draw(st.integers(0, n - 1))][draw(st.integers(0, m - 1))] = draw(entries)
    return ratings, draw(matrices(st.just(m), st.just(k), entries))


@settings(max_examples=40)
@given(tables(), st.sampled_from([1, "1/3", 7]))
def test_each_step_of_half_a_step_follows_from_the_one_before(table, regularization):
    worked = check_als(*table, regularization)
    ratings, q = table
    q, penalty = as_floats(q), float(Fraction(regularization))
    for row, found in zip(ratings, worked.result.tolist(), strict=True):
        known = [j for j, entry in enumerate(row) if entry is not None]
        if known:
            ridge = np.vstack([q[known], np.sqrt(penalty) * np.eye(q.shape[1])])
            wanted = np.concatenate([[float(row[j]) for j in known], np.zeros(q.shape[1])])
            judged = np.linalg.lstsq(ridge, wanted, rcond=None)[0]
            np.testing.assert_allclose(as_floats([found])[0], judged, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(tables(small_integers))
def test_without_a_penalty_a_row_is_fitted_or_has_too_few_ratings(table):
    ratings, q = table
    short = [
        i
        for i, row in enumerate(ratings, start=1)
        if (known := [j for j, entry in enumerate(row) if entry is not None])
        and Matrix([list(Matrix(q)[j, :]) for j in known]).rank() < len(q[0])
    ]
    if not short:
        check_als(*table)
        return
    with pytest.raises(ValueError, match=rf"^regularization must be above 0 .* got 0: row {short[0]} of ratings has"):
        als_half_step(*table)


def test_half_a_step_is_what_the_family_does():
    """Started from its own Q, the fit of the chapter's function moves no further."""
    ratings = np.array([[5.0, 3, 1, 4], [4, 2, 1, 0], [1, 1, 5, 2], [2, 1, 4, 1]])
    observed = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]], dtype=bool)
    found = family.factorize_ratings(
        ratings, observed, 2, regularization=1, rng=np.random.default_rng(0), tolerance=0, max_sweeps=3000
    )
    known = [
        [int(r) if o else None for r, o in zip(*rows, strict=True)] for rows in zip(ratings, observed, strict=True)
    ]
    exact = als_half_step(known, [[Fraction(x).limit_denominator(10**9) for x in row] for row in found.q], 1)
    np.testing.assert_allclose(as_floats(exact.result), found.p, atol=1e-4)


@pytest.mark.parametrize(
    "gaps",
    [RATINGS, [tuple(row) for row in RATINGS], np.array(RATINGS, dtype=object), [np.array(row) for row in RATINGS]],
)
def test_gaps_come_in_many_dresses_and_are_left_alone(gaps):
    before = [list(row) for row in gaps]
    assert same(als_half_step(gaps, Q).result, [[1, 2], [3, 2], [nan, nan]])
    assert [list(row) for row in gaps] == before


# Two classes


def check_discriminant(a, b):
    worked = linear_discriminant(a, b)
    a, b = Matrix(fractions(a)), Matrix(fractions(b))
    means, scatter_a, scatter_b, within, inverse, axis, cut, compare = worked.steps
    judged = [Matrix([sum(points[:, j]) / Rational(points.rows) for j in (0, 1)]) for points in (a, b)]
    lines = printed(means, "m_a", "m_b")
    assert [read_matrices(line) for line in lines] == [[mean] for mean in judged]
    assert means.value == tuple(judged)
    scatters = []
    for name, points, mean, step in (("a", a, judged[0], scatter_a), ("b", b, judged[1], scatter_b)):
        scatter = sympy.zeros(2, 2)
        for i in range(points.rows):
            scatter += (points[i, :].T - mean) * (points[i, :].T - mean).T
        deviations, product, result = printed(step, f"D_{name}", f"S_{name}", "")
        (moved,) = read_matrices(deviations)
        assert moved == Matrix([list(points[i, :] - mean.T) for i in range(points.rows)])
        assert product.startswith(rf"D_{name}^\top D_{name} = ")
        assert read_matrices(product) == [moved.T, moved]
        assert read_matrices(result) == [scatter]
        assert step.value == scatter
        assert step.text.startswith(f"Subtract the mean of {name} from each")
        assert step.text.endswith(f"are the scatter of {name}.")
        scatters.append(scatter)
    whole = scatters[0] + scatters[1]
    assert within.latex.startswith("T = S_a + S_b = ")
    assert read_matrices(within.latex) == [*scatters, whole]
    assert within.value == whole

    determinant, halfway, result = printed(inverse, r"\det T", "T^{-1}", "")
    formula, total = determinant.split(" = ")
    assert read_number(formula) == read_number(total) == whole.det()
    before = halfway.split(r"\begin")[0].strip()
    assert (before == "") == (whole.det() == 1)
    assert (read_number(before) if before else 1) * read_matrices(halfway)[0] == inverse.value
    assert read_matrices(result) == [inverse.value]
    assert inverse.value * whole == sympy.eye(2)

    gap, product, scaled = printed(axis, "m_b - m_a", "T^{-1} (m_b - m_a)", "w")
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
    low, high, below, above, midway = printed(
        cut, r"w^\top A^\top", r"w^\top B^\top", r"w^\top m_a", r"w^\top m_b", "c"
    )
    assert read_matrices(low) == [(a * w).T]
    assert read_matrices(high) == [(b * w).T]
    assert (read_number(below), read_number(above)) == (w.dot(judged[0]), w.dot(judged[1]))
    formula, total = midway.split(" = ")
    assert read_number(formula) == read_number(total) == cut.value == c
    total_points = a.rows + b.rows
    assert cut.text.endswith(f": {right_side} of {total_points} points lie on the side of their class.")

    direction, plain, best = printed(
        compare, "d", r"\frac{(d^\top (m_b - m_a))^2}{d^\top T d}", r"\frac{(w^\top (m_b - m_a))^2}{w^\top T w}"
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
            f"{count(d)[0]} of {total_points} points lie on the side of their class. The squared gap over the scatter "
            f"is {compare.value[0]}; along w it is {compare.value[1]}."
        )
    assert compare.text.endswith(ending)
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
    assert worked.result.axis == Matrix([1, 2])
    assert worked.result.threshold == Rational(11, 2)
    assert [step.text for step in worked.steps] == [
        "Average the points of each class, coordinate by coordinate.",
        "Subtract the mean of a from each of its points. The deviations, multiplied with themselves, are the scatter "
        "of a.",
        "Subtract the mean of b from each of its points. The deviations, multiplied with themselves, are the scatter "
        "of b.",
        "Add the two. This is the scatter within the classes.",
        "Invert it: swap the diagonal, change the other two signs, divide by the determinant.",
        "Multiply the inverse with the difference of the means. In whole numbers without a common factor, this is the "
        "axis w.",
        "Multiply each point by w. Midway between the products of the means is the threshold c, and class b is above "
        "it: 8 of 8 points lie on the side of their class.",
        "Compare: along the plain difference d of the means, 6 of 8 points lie on the side of their class. The squared "
        "gap over the scatter is 9/20; along w it is 9/4.",
    ]
    assert list(project(A, worked.result.axis).result) == [4, 3, 5, 4]
    assert list(project(B, worked.result.axis).result) == [7, 6, 8, 7]


def test_where_the_scatter_is_round_the_difference_of_the_means_is_the_axis():
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    worked = check_discriminant(square, [[x + 4, y + 2] for x, y in square])
    assert worked.result.axis == Matrix([2, 1])
    assert worked.steps[-1].text == (
        "Compare: the plain difference d of the means is the same direction, with the same ratio 10."
    )


def test_a_determinant_of_one_is_not_divided_by():
    inverse = check_discriminant([[0, 0], [1, 0]], [[3, 0], [3, 2]]).steps[4]
    assert r"T^{-1} &= \begin{pmatrix} 2 & 0" in inverse.latex


def test_the_axis_points_from_a_to_b():
    there, back = check_discriminant(A, B).result, check_discriminant(B, A).result
    assert back == (-there.axis, -there.threshold)


def test_a_point_on_the_threshold_is_on_no_side():
    """The mean of each class is one of its points, and so is what lies midway between the means, in one class each."""
    a = [[0, 0], [1, 2], [-1, -2], [2, 0], [-2, 0]]
    b = [[4, 0], [5, 2], [3, -2], [2, 0], [6, 0]]
    worked = check_discriminant(a, b)
    assert worked.result.threshold == worked.result.axis.dot(Matrix([2, 0]))
    assert "8 of 10 points" in worked.steps[-2].text


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


@settings(max_examples=40)
@given(classes())
def test_each_step_of_a_discriminant_follows_from_the_one_before(drawn):
    a, b, possible = drawn
    if possible:
        check_discriminant(a, b)
        return
    with pytest.raises(ValueError, match=r"must have another mean|must spread in two directions"):
        linear_discriminant(a, b)


@settings(max_examples=30)
@given(classes(small_integers))
def test_scikit_learn_finds_the_same_axis_and_threshold(drawn):
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
    found = family.lda(np.vstack([a, b]), [0] * len(a) + [1] * len(b), 1).axes[:, 0]
    cosine = found @ as_floats(axis)[:, 0] / np.linalg.norm(found) / np.linalg.norm(as_floats(axis))
    np.testing.assert_allclose(abs(cosine), 1, atol=1e-6)


# What the reader sees

WORKED = {
    "nmf": nmf_update(X, W, H),
    "nmf, fractions and zeros": nmf_update([["1/2", 0, 3]], [[0, "2/3"]], [[1, 2, 0], ["1/3", 0, "5/2"]]),
    "als": als_half_step(RATINGS, Q),
    "als, penalty": als_half_step(RATINGS, Q, "1/2"),
    "als, one": als_half_step([[3]], [["-2/3"]]),
    "discriminant": linear_discriminant(A, B),
    "discriminant, fractions": linear_discriminant([["1/2", -1], [0, 3], ["-2/3", 0]], [[4, 4], [5, "1/7"]]),
}
every_example = pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED)


@every_example
def test_it_reads_like_every_worked_example(worked):
    test_byhand.test_markdown_is_numbered_sentences_and_one_formula_each(worked)
    test_byhand.test_plain_commonmark_leaves_each_formula_as_it_is(worked)
    test_byhand.test_a_terminal_shows_every_sentence_and_value(worked)
    test_byhand.test_formulas_are_balanced_and_use_only_what_every_renderer_knows(worked)


@pytest.mark.parametrize("function", [nmf_update, als_half_step, linear_discriminant])
def test_every_argument_is_described(function):
    doc = inspect.getdoc(function)
    assert re.findall(r"^(\w+) : ", doc, re.MULTILINE) == list(inspect.signature(function).parameters)
    assert getattr(byhand, function.__name__) is getattr(_family_byhand, function.__name__) is function
    assert function.__name__ in byhand.__all__


def test_the_largest_examples_take_little_time():
    rng = np.random.default_rng(0)
    big = rng.integers(1, 10, (12, 12))
    start = time.perf_counter()
    nmf_update(big[:5, :4], big[:5, :2], big[:2, :4])
    als_half_step(big, big[:, :3], 1)
    linear_discriminant(big[:, :2], big[:, 2:4])
    assert time.perf_counter() - start < 10


def test_fractions_that_grow_beyond_all_reason_are_refused():
    rng = np.random.default_rng(0)
    big, long = rng.integers(1, 10, (12, 12)), rng.integers(1, 10**18, (12, 12))
    with pytest.raises(
        ValueError, match=r"^x, w and h must be small enough to work by hand, got a fraction of some \d{4}"
    ):
        nmf_update(big, big[:, :3], big[:3])
    with pytest.raises(
        ValueError, match=r"^ratings and q must be small enough to work by hand, got a fraction of some"
    ):
        als_half_step(long[:1], [[Fraction(1, int(x)) for x in row] for row in long[:, :4]])  # its solution
    with pytest.raises(
        ValueError, match=r"^ratings and q must be small enough to work by hand, got a fraction of some"
    ):
        als_half_step([[None if i == j else x for j, x in enumerate(row)] for i, row in enumerate(long)], long[:, :4])
    points = [[[Fraction(1, int(x)) for x in row] for row in pair] for pair in (long[:, :2], long[:, 2:4])]
    with pytest.raises(
        ValueError, match=r"^a and b must be small enough to work by hand, got a fraction of some \d{4}"
    ):
        linear_discriminant(*points)
    _family_byhand._short_enough("a", Rational(1, 2**3335), sympy.Integer(-1))  # 1000 digits
    with pytest.raises(
        ValueError, match=r"^a must be small enough to work by hand, got a fraction of some 1002 digits$"
    ):
        _family_byhand._short_enough("a", sympy.Integer(1), sympy.Integer(-(2**3339)))
    assert linear_discriminant(long[:6, :2], long[6:, :2]).result.axis.shape == (2, 1)


def test_the_callers_matrices_are_left_alone():
    mine = [Matrix(a) for a in (X, W, H, Q, A, B)]
    nmf_update(*mine[:3])
    als_half_step(Matrix([[1, 2, 3]]), mine[3])
    linear_discriminant(*mine[4:])
    assert mine == [Matrix(a) for a in (X, W, H, Q, A, B)]


# Input

FUNCTIONS = {
    "nmf, x": (lambda bad: nmf_update(bad, [[1]], [[1, 1]]), "x"),
    "nmf, w": (lambda bad: nmf_update([[1, 2]], bad, [[1, 1]]), "w"),
    "nmf, h": (lambda bad: nmf_update([[1, 2]], [[1]], bad), "h"),
    "als, ratings": (lambda bad: als_half_step(bad, [[1], [1]]), "ratings"),
    "als, q": (lambda bad: als_half_step([[1]], bad), "q"),
    "discriminant, a": (lambda bad: linear_discriminant(bad, B), "a"),
    "discriminant, b": (lambda bad: linear_discriminant(A, bad), "b"),
}


@pytest.mark.parametrize(("function", "name"), FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(
    ("bad", "error", "rule"),
    [
        ([[0.5, 1]], TypeError, r"\[0\]\[0\] must be a number given exactly .* the float 0.5; write Fraction\(1, 2\)"),
        (np.ones((1, 2)), TypeError, r"\[0\]\[0\] must be a number given exactly .* got the float 1.0; write 1$"),
        ([[1, float("nan")]], ValueError, r"\[0\]\[1\] must be finite, got nan"),
        ([[1, "one"]], ValueError, r"\[0\]\[1\] must be a number given exactly .* got 'one'"),
        ([[1, True]], TypeError, r"\[0\]\[1\] must be a number given exactly .* got True"),
        ([1, 2], ValueError, r" must have 2 axes, a list of rows, got \[1, 2\]"),
        ([[]], ValueError, r" must have at least one row and one column, got \[\[\]\]"),
        ([], ValueError, r" must have at least one row and one column, got \[\]"),
        ([[1, 2], [3]], ValueError, r" must have rows of one length, got lengths \[2, 1\]"),
        ([[1] * 13], ValueError, r" must be small enough .* at most 12 rows and columns, got shape \(1, 13\)"),
        ([[1, 1]] * 13, ValueError, r" must be small enough .* at most 12 rows and columns, got shape \(13, 2\)"),
        (5, TypeError, " must be a list of rows of exact numbers, got 5"),
        ("12", TypeError, " must be a list of rows of exact numbers, got '12'"),
        (None, TypeError, " must be a list of rows of exact numbers, got None"),
    ],
)
def test_bad_input_is_named(function, name, bad, error, rule):
    with pytest.raises(error, match=f"^{name}{rule}"):
        function(bad)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (
            nmf_update,
            ([[1, 2]], [[1], [1]], [[1, 1]]),
            "w must have a row for each row of x, got shapes (2, 1) and (1, 2)",
        ),
        (
            nmf_update,
            ([[1, 2]], [[1]], [[1]]),
            "h must have a column for each column of x, got shapes (1, 1) and (1, 2)",
        ),
        (
            nmf_update,
            ([[1, 2]], [[1, 1]], [[1, 1]]),
            "w must have a column for each row of h, got shapes (1, 2) and (1, 2)",
        ),
        (nmf_update, ([[1, "-1/2"]], [[1]], [[1, 1]]), "x[0][1] must be at least 0, got -1/2"),
        (nmf_update, ([[1], [2]], [[1], [-1]], [[1]]), "w[1][0] must be at least 0, got -1"),
        (nmf_update, ([[1, 2]], [[1]], [[-3, 1]]), "h[0][0] must be at least 0, got -3"),
        (als_half_step, ([[None, None]], [[1], [1]]), "ratings must hold at least one known entry, got none"),
        (
            als_half_step,
            ([[1, None]], [[1]]),
            "q must have a row for each column of ratings, got q of shape (1, 1) and ratings of (1, 2)",
        ),
        (als_half_step, ([[1]], [[1]], -1), "regularization must be at least 0, got -1"),
        (als_half_step, ([[1]], [[1]], "-1/9"), "regularization must be at least 0, got -1/9"),
        (
            als_half_step,
            ([[2, 1], [None, 3]], [[1, 0], [1, 1]]),
            "regularization must be above 0 where a row has more than one solution, got 0: row 2 of ratings has known "
            "entries of rank 1 in q, for k = 2",
        ),
        (linear_discriminant, ([[1, 2, 3]], B), "a must hold points of two coordinates, got shape (1, 3)"),
        (linear_discriminant, (A, [[1], [2]]), "b must hold points of two coordinates, got shape (2, 1)"),
        (linear_discriminant, (A, [[1, "1/2"], [3, "3/2"]]), "b must have another mean than a, got (2, 1) for both"),
        (
            linear_discriminant,
            ([[0, 0], [1, 1]], [[4, 0], [5, 1]]),
            "a and b must spread in two directions around their means, got a scatter of rank 1",
        ),
        (
            linear_discriminant,
            ([[0, 0]], [[4, 0]]),
            "a and b must spread in two directions around their means, got a scatter of rank 0",
        ),
    ],
)
def test_what_cannot_be_worked_is_refused(function, arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(*arguments)


@pytest.mark.parametrize("bad", [0.5, float("nan"), True, None, [1]])
def test_a_penalty_is_one_exact_number(bad):
    with pytest.raises((TypeError, ValueError), match=r"^regularization must be "):
        als_half_step([[1]], [[1]], bad)


def test_twelve_of_everything_is_the_most():
    ones = np.ones((12, 12), dtype=int)
    assert nmf_update(ones, ones, ones).steps[-1].value == 0
    assert als_half_step(ones, np.eye(12, dtype=int)).result == sympy.ones(12, 12)
