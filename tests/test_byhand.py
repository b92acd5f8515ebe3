"""Each step follows from the one before, exactly, and the result is what NumPy finds."""

import itertools
import math
import re
import time
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sympy import Matrix, Rational, sqrt
from sympy.parsing.sympy_parser import implicit_multiplication as implicit
from sympy.parsing.sympy_parser import parse_expr, standard_transformations

from lowrank_tutor import byhand
from lowrank_tutor.byhand import bilinear, project, rank_one, row_reduce, svd_2x2

MULTIPLES = [[1, 2, 3], [2, 4, 6], [3, 6, 9]]

small_rationals = st.builds(Fraction, st.integers(-9, 9), st.integers(1, 5))


up_to_five = st.integers(1, 5)


def matrices(rows=up_to_five, columns=up_to_five, entries=small_rationals):
    """Small rational matrices; a good share of them with dependent rows."""

    def build(shape):
        m, n = shape
        row = st.lists(entries, min_size=n, max_size=n)
        free = st.lists(row, min_size=m, max_size=m)
        repeated = st.builds(
            lambda one, scales: [[scale * entry for entry in one] for scale in scales],
            row,
            st.lists(st.integers(-2, 2), min_size=m, max_size=m),
        )
        return st.one_of(free, repeated)

    return st.tuples(rows, columns).flatmap(build)


def as_floats(matrix):
    return np.array(sympy.Matrix(matrix).evalf(30).tolist(), dtype=float)


def exactly_zero(number):
    """An exact judge for nested roots that shares nothing with the package: the minimal polynomial of zero is x."""
    x = sympy.Symbol("x")
    return sympy.minimal_polynomial(number, x) == x


def numerically_zero(number):
    return abs(number.evalf(80, maxn=400)) < sympy.Float("1e-60")


# Row reduction


def apply_printed_operation(latex, matrix):
    """Do to ``matrix`` what the formula says, read from its text alone."""
    rows = [list(matrix[i, :]) for i in range(matrix.rows)]
    operation = latex.split(r" \qquad ")[0].replace("{", "").replace("}", "")
    if swap := re.fullmatch(r"R_(\d+) \\leftrightarrow R_(\d+)", operation):
        i, j = (int(name) - 1 for name in swap.groups())
        assert i != j
        rows[i], rows[j] = rows[j], rows[i]
        return Matrix(rows)
    target, formula = operation.split(r" \leftarrow ")
    terms = re.findall(r"([+-]?) ?(\d+(?:/\d+)?)? ?R_(\d+)", formula)
    assert "".join("".join(term) for term in terms) == formula.replace(" ", "").replace("R_", "")  # nothing left over
    i = int(target.removeprefix("R_")) - 1
    new = [sympy.Integer(0)] * matrix.cols
    used = []
    for sign, size, name in terms:
        factor = Rational(size or "1") * (-1 if sign == "-" else 1)
        used.append((int(name) - 1, factor))
        new = [entry + factor * other for entry, other in zip(new, rows[int(name) - 1], strict=True)]
    if len(used) == 1:  # scaling
        assert used[0][0] == i
        assert used[0][1] not in (0, 1)
    else:  # a multiple of another row added
        assert len(used) == 2
        assert used[0] == (i, 1)
        assert used[1][0] != i
    rows[i] = new
    return Matrix(rows)


def plain_fractions(latex):
    return re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", latex)


def printed_matrix(latex):
    """The last matrix of a formula, read from its text."""
    body = re.findall(r"\\begin\{pmatrix\} (.*?) \\end\{pmatrix\}", plain_fractions(latex))[-1]
    return Matrix([[Rational(entry.replace(" ", "")) for entry in row.split(" & ")] for row in body.split(r" \cr ")])


def check_row_reduction(a):
    start, *operations, last = row_reduce(a).steps
    assert start.value == printed_matrix(start.latex) == Matrix(a)
    for before, after in itertools.pairwise([start, *operations]):
        assert apply_printed_operation(plain_fractions(after.latex), before.value) == after.value
        assert printed_matrix(after.latex) == after.value
        assert after.value != before.value
    reduced, pivots = Matrix(a).rref()
    assert row_reduce(a).result == [start, *operations][-1].value == reduced
    assert last.value == tuple(pivot + 1 for pivot in pivots)
    assert last.latex == rf"\operatorname{{rank}} A = {len(pivots)}"
    assert f"so the rank is {len(pivots)}." in last.text


@settings(deadline=None)
@given(matrices())
def test_each_printed_row_operation_gives_the_next_matrix_and_the_end_is_reduced(a):
    check_row_reduction(a)


def test_the_matrix_of_multiples_is_reduced_in_two_operations():
    worked = row_reduce(MULTIPLES)
    assert [step.text for step in worked.steps] == [
        "Start from A.",
        "Subtract 2 times row 1 from row 2.",
        "Subtract 3 times row 1 from row 3.",
        "The matrix is reduced. It has 1 pivot, in column 1, so the rank is 1.",
    ]
    assert worked.steps[1].latex.startswith(r"R_{2} \leftarrow R_{2} - 2 R_{1} \qquad")
    assert worked.steps[1].value == Matrix([[1, 2, 3], [0, 0, 0], [3, 6, 9]])
    assert worked.result == Matrix([[1, 2, 3], [0, 0, 0], [0, 0, 0]])


def test_the_sentence_says_what_the_formula_says():
    worked = row_reduce([[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]])
    check_row_reduction([[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]])
    said = [(step.text, plain_fractions(step.latex).split(r" \qquad ")[0]) for step in worked.steps[1:7]]
    assert said == [
        ("Swap rows 1 and 2.", r"R_{1} \leftrightarrow R_{2}"),
        ("Divide row 1 by 2.", r"R_{1} \leftarrow 1/2 R_{1}"),
        ("Subtract row 1 from row 3.", r"R_{3} \leftarrow R_{3} - R_{1}"),
        ("Add row 1 to row 4.", r"R_{4} \leftarrow R_{4} + R_{1}"),
        ("Change the sign of row 2.", r"R_{2} \leftarrow - R_{2}"),
        ("Subtract 2 times row 2 from row 1.", r"R_{1} \leftarrow R_{1} - 2 R_{2}"),
    ]


@pytest.mark.parametrize(
    ("a", "pivots"),
    [
        ([[1, 0, 5], [0, 1, 7]], "2 pivots, in columns 1, 2"),
        ([[0, 0], [0, 0], [0, 0]], "no pivot"),
        ([[0]], "no pivot"),
        ([[1]], "1 pivot, in column 1"),
    ],
)
def test_a_reduced_matrix_needs_no_operation(a, pivots):
    worked = row_reduce(a)
    assert len(worked.steps) == 2
    assert worked.result == Matrix(a)
    assert pivots in worked.steps[-1].text


@pytest.mark.parametrize("a", [[[7]], [["-1/3"]], [[0, 0, 3, 1]], [[0], [0], [-5]], [[1, 2], [3, 4]], [[0, 1], [1, 0]]])
def test_row_reduction_of_edge_shapes(a):
    check_row_reduction(a)


def test_the_rank_is_what_numpy_finds_on_a_matrix_with_a_chosen_rank():
    rng = np.random.default_rng(0)
    for rank in range(5):
        a = rng.integers(-3, 4, (6, rank)) @ rng.integers(-3, 4, (rank, 5))
        assert len(row_reduce(a).steps[-1].value) == np.linalg.matrix_rank(a)


# Outer product


def test_the_matrix_of_multiples_is_an_outer_product_of_six_numbers_and_five_degrees_of_freedom():
    worked = rank_one(MULTIPLES)
    u, v = worked.result
    assert u == Matrix([1, 2, 3])
    assert v == Matrix([1, 2, 3])
    assert [step.value for step in worked.steps] == [v, u, Matrix(MULTIPLES), (9, 6, 5)]
    assert "The matrix has 9 numbers, the factors have 6, 3 fewer." in worked.steps[-1].text
    assert "5 degrees of freedom" in worked.steps[-1].text


@settings(deadline=None)
@given(
    st.lists(small_rationals, min_size=1, max_size=5).filter(any),
    st.lists(small_rationals, min_size=1, max_size=5).filter(any),
)
def test_the_factors_of_any_outer_product_multiply_back(left, right):
    a = Matrix(left) * Matrix(right).T
    worked = rank_one(a)
    u, v = worked.result
    assert u.shape == (len(left), 1)
    assert v.shape == (len(right), 1)
    assert u * v.T == a
    assert worked.steps[0].value == v
    assert worked.steps[1].value == u
    assert worked.steps[2].value == u * v.T
    assert printed_matrix(worked.steps[0].latex) == v.T
    assert printed_matrix(worked.steps[1].latex) == u
    assert printed_matrix(worked.steps[2].latex) == a
    assert all(entry.is_Integer for entry in v)
    assert math.gcd(*(int(entry) for entry in v)) == 1
    assert next(entry for entry in v if entry != 0) > 0
    m, n = a.shape
    assert worked.steps[3].value == (m * n, m + n, m + n - 1)


def test_the_common_factor_of_the_first_row_goes_to_u():
    worked = rank_one([[0, 0], [-4, -6], [2, 3]])
    assert worked.result == (Matrix([0, -2, 1]), Matrix([2, 3]))
    assert worked.steps[0].text == "Row 2 is the first that is not zero. Take out its factor -2 and call the rest v."


@pytest.mark.parametrize(
    ("a", "said"), [([[1, 2], [2, 4]], "nothing"), ([[1, 2, 3]], "nothing"), (MULTIPLES, "3 fewer")]
)
def test_the_saving_is_counted_honestly(a, said):
    assert said in rank_one(a).steps[-1].text


@pytest.mark.parametrize(("a", "rank"), [([[0, 0]], 0), ([[1, 0], [0, 1]], 2), ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 2)])
def test_other_ranks_are_refused(a, rank):
    with pytest.raises(ValueError, match=f"a must be a matrix of rank 1, got rank {rank}"):
        rank_one(a)


# Projection and compression


def test_the_first_coordinate_of_2_4_6_is_2():
    worked = project([[1, 0, 0]], [2, 4, 6])
    assert worked.result == Matrix([2])
    assert worked.steps[0].latex == r"y_{1} = 1 \cdot 2 + 0 \cdot 4 + 0 \cdot 6 = 2"
    assert "a compression map, not a projection" in worked.steps[-1].text
    assert "of rank 1 (full)" in worked.steps[-1].text


@settings(deadline=None)
@given(st.data(), st.integers(1, 4))
def test_each_entry_is_the_printed_sum_of_products(data, d):
    w = data.draw(matrices(columns=st.just(d)))
    x = data.draw(matrices(rows=st.just(d)))
    worked = project(w, x)
    *entries, collected, kind = worked.steps
    assert [entry.value for entry in entries] == list((Matrix(w) * Matrix(x)).T)  # column by column
    for entry in entries:
        _, formula, total = plain_fractions(entry.latex).split(" = ")
        formula = formula.replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\cdot", "*")
        products = [
            [Rational(factor.strip(" ()").replace(" ", "")) for factor in term.split("*")]
            for term in formula.split(" + ")
        ]
        assert sum(left * right for left, right in products) == entry.value == Rational(total.replace(" ", ""))
    assert worked.result == collected.value == printed_matrix(collected.latex)
    np.testing.assert_allclose(as_floats(worked.result), as_floats(w) @ as_floats(x), atol=1e-12)
    rows, columns = Matrix(w).shape
    square = Matrix(w) ** 2 if rows == columns else None
    assert kind.value == (Matrix(w).rank() if square is None else square)


@pytest.mark.parametrize(
    ("w", "x", "said"),
    [
        ([[1, 0], [0, 0]], [3, 5], "W is a projection (P² = P), symmetric, so at a right angle."),
        ([[1, 1], [0, 0]], [3, 5], "W is a projection (P² = P), not symmetric, so at a slant."),
        ([[0, 1], [1, 0]], [3, 5], "W is not a projection"),
        ([["1/2", "1/2"], ["1/2", "1/2"]], [3, 5], "W is a projection"),
        ([[2]], [1], "W is not a projection"),
        ([[1, 2], [2, 4], [0, 0]], [3, 5], "of rank 1. It turns 2 numbers into 3"),
        ([[1], [2]], [3], "It turns 1 number into 2, so it cannot be applied twice: a map to more dimensions"),
        ([[1, 2, 0], [0, 1, 1]], [1, 1, 1], "of rank 2 (full). It turns 3 numbers into 2"),
        ([[1, 2, 1], [2, 4, 2]], [1, 1, 1], "of rank 1. It turns 3 numbers into 2"),
    ],
)
def test_the_last_step_tells_a_projection_from_a_compression_map(w, x, said):
    last = project(w, x).steps[-1]
    assert said in last.text
    if len(w) == len(w[0]):
        assert (r"\neq" in last.latex) == ("not a projection" in last.text)


def test_two_vectors_are_two_columns():
    worked = project([[1, 0, 2], [0, 1, -1]], [[1, 4], [2, 5], [3, 6]])
    assert worked.result == Matrix([[7, 16], [-1, -1]])
    assert worked.steps[3].latex == r"y_{2, 2} = 0 \cdot 4 + 1 \cdot 5 + \left( -1 \right) \cdot 6 = -1"
    assert worked.steps[3].text == "Multiply row 2 of W with column 2 of x, entry by entry, and add."


def test_shapes_that_do_not_match_are_both_named():
    with pytest.raises(ValueError, match=r"x must be as long as w is wide, got x .*\(2, 1\).* and w .*\(1, 3\)"):
        project([[1, 0, 0]], [1, 2])
    with pytest.raises(ValueError, match="w must have 2 axes"):
        project([1, 0, 0], [2, 4, 6])


# Singular values

SVD_CASES = {
    "square roots of five": [[3, 0], [4, 5]],
    "golden ratio": [[1, 1], [0, 1]],
    "integers": [[2, 2], [-1, 1]],
    "nested roots": [[1, 2], [3, 4]],
    "negative determinant": [[1, 2], [3, 1]],
    "symmetric": [[2, 1], [1, 2]],
    "symmetric, negative eigenvalue": [[1, 2], [2, 1]],
    "diagonal": [[2, 0], [0, 5]],
    "diagonal in order": [[-5, 0], [0, 2]],
    "antidiagonal": [[0, 2], [-3, 0]],
    "rotation": [[3, -4], [4, 3]],
    "reflection": [[3, 4], [4, -3]],
    "rank 1": [[1, 2], [2, 4]],
    "rank 1 with a zero row": [[0, 0], [3, 4]],
    "rank 1 with a zero column": [[0, 3], [0, 4]],
    "one entry": [[0, 0], [0, -3]],
    "zero": [[0, 0], [0, 0]],
    "rational": [["1/3", 2], [-7, "5/11"]],
    "sum of two roots": [[1, 1], [1, 2]],
}


def check_svd(a, exact_judge=exactly_zero):
    matrix = Matrix([[Rational(str(entry)) for entry in row] for row in a])
    worked = svd_2x2(a)
    u, s, vt = worked.result
    gram, polynomial, eigenvalues, sigmas, v1, v2, u1, u2, product = (step.value for step in worked.steps)
    # step 1 from the input, and each step from those before
    assert gram == matrix.T * matrix
    unknown = sympy.Symbol("lambda")
    assert sympy.expand(polynomial - (gram - unknown * sympy.eye(2)).det()) == 0
    assert all(sympy.expand(polynomial.subs(unknown, value)) == 0 for value in eigenvalues)
    assert sympy.expand(sum(eigenvalues) - gram.trace()) == 0
    assert bool(eigenvalues[0] >= eigenvalues[1] >= 0)
    assert all(sympy.expand(sigma**2 - value) == 0 for sigma, value in zip(sigmas, eigenvalues, strict=True))
    assert bool(sigmas[0] >= sigmas[1] >= 0)
    for sigma, right, left in zip(sigmas, (v1, v2), (u1, u2), strict=True):
        for residual in (*(gram * right - sigma**2 * right), *(matrix * right - sigma * left)):
            assert exact_judge(residual)
        assert sympy.expand(right.dot(right)) == 1
        assert sympy.expand(left.dot(left)) == 1
        first = next(entry for entry in right if entry != 0)
        assert bool(first > 0)
        if sigma == 0:
            assert bool(next(entry for entry in left if entry != 0) > 0)
    assert exact_judge(v1.dot(v2))
    assert exact_judge(u1.dot(u2))
    assert product == matrix
    # the result holds the factors of the steps
    assert u == Matrix.hstack(u1, u2)
    assert vt == Matrix.hstack(v1, v2).T
    assert s == sigmas
    # NumPy
    floats = as_floats(matrix)
    np.testing.assert_allclose(
        [float(sigma) for sigma in s], np.linalg.svd(floats)[1], atol=1e-9 * (1 + abs(floats).max())
    )
    np.testing.assert_allclose(as_floats(u) @ np.diag([float(x) for x in s]) @ as_floats(vt), floats, atol=1e-9)


@pytest.mark.parametrize("a", SVD_CASES.values(), ids=SVD_CASES)
def test_each_identity_of_a_2x2_decomposition_holds_exactly(a):
    check_svd(a)


@settings(max_examples=60, deadline=None)
@given(matrices(st.just(2), st.just(2)))
def test_a_2x2_decomposition_of_any_small_rational_matrix_holds_to_60_digits(a):
    check_svd(a, numerically_zero)


@settings(max_examples=25, deadline=None)
@given(matrices(st.just(2), st.just(2), st.integers(-(10**19), 10**19)))
def test_a_2x2_decomposition_of_long_numbers_multiplies_back_exactly(a):
    worked = svd_2x2(a)
    assert worked.steps[-1].value == Matrix(a)
    assert worked.result.s[0] >= worked.result.s[1]


def test_the_example_with_roots_of_five_by_hand():
    worked = svd_2x2([[3, 0], [4, 5]])
    u, s, vt = worked.result
    assert worked.steps[0].value == Matrix([[25, 20], [20, 25]])
    assert worked.steps[1].latex.endswith(r"&= \lambda^{2} - 50 \lambda + 225 \end{aligned}")
    assert worked.steps[2].value == (45, 5)
    assert s == (3 * sqrt(5), sqrt(5))
    assert vt == Matrix([[1, 1], [1, -1]]) / sqrt(2)
    assert u == Matrix([[1, 3], [3, -1]]) / sqrt(10)
    half = Rational(1, 2)
    layers = half * Matrix([[3, 3], [9, 9]]), half * Matrix([[3, -3], [-1, 1]])
    assert s[0] * u[:, 0] * vt[0, :] == layers[0]
    assert s[1] * u[:, 1] * vt[1, :] == layers[1]
    printed = re.findall(r"\\begin\{pmatrix\} .*? \\end\{pmatrix\}", worked.steps[-1].latex)[-3:]
    assert [printed_matrix(text) for text in printed] == [*layers, Matrix([[3, 0], [4, 5]])]


def test_the_shear_stretches_by_the_golden_ratio():
    s = svd_2x2([[1, 1], [0, 1]]).result.s
    assert s == (sympy.GoldenRatio.expand(func=True), sympy.GoldenRatio.expand(func=True) - 1)


def test_a_singular_value_needs_no_root_inside_a_root():
    assert svd_2x2([[1, 2], [3, 4]]).result.s == ((sqrt(34) + sqrt(26)) / 2, (sqrt(34) - sqrt(26)) / 2)
    for a in SVD_CASES.values():
        for sigma in svd_2x2(a).result.s:
            assert all(power.base.is_Rational for power in sigma.atoms(sympy.Pow))


def read_number(latex):
    """The number that a printed formula stands for, read from its text alone."""
    text = latex
    while r"\frac{" in text:  # the innermost fraction first
        start = text.rindex(r"\frac{")
        depth = list(itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in text[start:]))
        middle = start + depth.index(0, depth.index(1))
        end = start + depth.index(0, middle - start + 2)
        text = f"{text[:start]}(({text[start + 6 : middle]})/({text[middle + 2 : end]})){text[end + 1 :]}"
    for printed, meant in (
        (r"\left", ""),
        (r"\right", ""),
        (r"\cdot", "*"),
        (r"\sqrt", "sqrt"),
        (r"\lambda", "t"),
        ("^", "**"),
    ):
        text = text.replace(printed, meant)
    return parse_expr(text.replace("{", "(").replace("}", ")"), transformations=(*standard_transformations, implicit))


def read_matrices(latex):
    bodies = re.findall(r"\\begin\{pmatrix\} (.*?) \\end\{pmatrix\}", latex)
    return [Matrix([[read_number(x) for x in row.split(" & ")] for row in body.split(r" \cr ")]) for body in bodies]


def read_lines(latex):
    """The right-hand sides of aligned equations."""
    body = latex.removeprefix(r"\begin{aligned} ").removesuffix(r" \end{aligned}")
    assert body != latex
    matrices_hidden = re.sub(
        r"\\begin\{pmatrix\}.*?\\end\{pmatrix\}", lambda found: found[0].replace(r"\cr", "@"), body
    )
    return [line.split("&= ")[1].replace("@", r"\cr") for line in matrices_hidden.split(r" \cr ")]


def assert_equal_to_60_digits(left, right):
    assert all(numerically_zero(entry) for entry in Matrix([left]) - Matrix([right]))


@pytest.mark.parametrize("a", SVD_CASES.values(), ids=SVD_CASES)
def test_each_printed_formula_of_a_2x2_decomposition_is_true(a):
    worked = svd_2x2(a)
    u, s, vt = worked.result
    gram, polynomial, eigenvalues, sigmas, *vectors, check = worked.steps
    left, right, product = read_matrices(gram.latex)
    assert left.T == right == Matrix([[Rational(str(entry)) for entry in row] for row in a])
    assert left * right == product == gram.value

    unknown = sympy.Symbol("t")
    for line in read_lines(polynomial.latex):
        assert sympy.expand(read_number(line) - polynomial.value.subs(sympy.Symbol("lambda"), unknown)) == 0

    formula, *printed = read_lines(eigenvalues.latex)
    assert_equal_to_60_digits([read_number(line) for line in printed], eigenvalues.value)
    assert_equal_to_60_digits([read_number(formula.replace(r"\pm", sign)) for sign in "+-"], eigenvalues.value)

    for line, sigma in zip(read_lines(sigmas.latex), s, strict=True):
        for form in line.split(" = "):
            assert_equal_to_60_digits(read_number(form), sigma)

    for i in (0, 1):
        equation, direction, length, unit = read_lines(vectors[i].latex)
        ((shifted,), (w,), (v,)) = (read_matrices(line) for line in (equation, direction, unit))
        assert_equal_to_60_digits(shifted, gram.value - s[i] ** 2 * sympy.eye(2))
        assert_equal_to_60_digits(shifted * w, sympy.zeros(2, 1))
        assert_equal_to_60_digits(v * read_number(length), w)
        assert_equal_to_60_digits(v, vt[i, :].T)
        if s[i] == 0:
            (printed_u,) = read_matrices(vectors[2 + i].latex)
            assert vectors[2 + i].latex.startswith(rf"A v_{i + 1} = 0, \qquad u_{i + 1} =")
        else:
            _, inserted, unit = read_lines(vectors[2 + i].latex)
            (printed_u,) = read_matrices(unit)
            matrix, v = read_matrices(inserted)
            assert_equal_to_60_digits(read_number(inserted.split(r"\begin")[0]) * matrix * v, printed_u)
        assert printed_u == u[:, i]

    printed = read_matrices(check.latex)
    assert printed[:3] == [u, sympy.diag(*s), vt]
    for i in (0, 1):
        assert_equal_to_60_digits(printed[3 + i], s[i] * u[:, i] * vt[i, :])
    assert printed[5] == (printed[3] + printed[4]).applyfunc(sympy.expand) == right


@pytest.mark.parametrize(
    ("a", "index", "said"),
    [
        ([[3, -4], [4, 3]], 4, "Every direction is an eigenvector, because AᵀA is a multiple of I. Take axis 1 as v1."),
        ([[3, -4], [4, 3]], 5, "Take axis 2 as v2."),
        ([[3, 0], [4, 5]], 4, "Find the eigenvector w1"),
        ([[3, 0], [4, 5]], 7, "Apply A to v2 and divide by singular value 2: u2."),
        (
            [[1, 2], [2, 4]],
            7,
            "Singular value 2 is zero, so A does not say what u2 is: take a unit vector at a right angle",
        ),
        ([[0, 0], [0, 0]], 6, "any unit vector will do"),
        ([[0, 0], [0, 0]], 7, "at a right angle to u1"),
    ],
)
def test_the_sentences_name_the_special_cases(a, index, said):
    assert said in svd_2x2(a).steps[index].text


@pytest.mark.parametrize("a", [*SVD_CASES.values(), [[10**20 - 1, 10**19 + 1], [7, 10**20 - 11]]])
def test_a_2x2_decomposition_takes_less_than_a_second(a):
    fastest = float("inf")
    for _ in range(3):  # the machine may be busy with something else
        start = time.perf_counter()
        svd_2x2(a)
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 1


@pytest.mark.parametrize("a", [[[1]], [[1, 2]], [[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]]])
def test_only_2x2_matrices_are_decomposed(a):
    with pytest.raises(ValueError, match=rf"a must be a 2 by 2 matrix, got shape \({len(a)}, {len(a[0])}\)"):
        svd_2x2(a)


# Scores

GOLDEN_SCORE = ([1, 2], [[2, 1]], [[1, -1]], [3, 4])


def printed_sum(formula):
    """Add up a printed sum of products, read from its text alone."""
    formula = plain_fractions(formula).replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\cdot", "*")
    products = [
        [Rational(factor.strip(" ()").replace(" ", "")) for factor in term.split("*")] for term in formula.split(" + ")
    ]
    return sum(left * right for left, right in products)


def check_printed_product(step, letter):
    """The step's own numbers give its own result; return the matrix and the vector that it printed."""
    first, *entries = read_lines(step.latex)
    matrix, vector = read_matrices(first)
    for row, line in enumerate(entries):
        formula, total = line.split(" = ")
        assert printed_sum(formula) == matrix[row, :].dot(vector) == read_number(total) == step.value[row]
        assert f"{letter}_{{{row + 1}}} &= {line}" in step.latex
    assert step.value.shape == (len(entries), 1) == (matrix.rows, 1)
    return matrix, vector


def check_bilinear(s, u, v, h):
    s, u, v, h = Matrix(s), Matrix(u), Matrix(v), Matrix(h)
    p, q, score, w, r, again, kept, work = bilinear(s, u, v, h).steps
    assert check_printed_product(p, "p") == (u, s)
    assert check_printed_product(q, "q") == (v, h)
    *_, formula, total = score.latex.split(" = ")
    assert printed_sum(formula) == p.value.dot(q.value) == read_number(total) == score.value
    left, right, product = read_matrices(w.latex)
    assert (left, right) == (u.T, v)
    assert left * right == product == w.value
    d2, d1 = w.value.shape
    if d2 <= d1:
        assert check_printed_product(r, "r") == (w.value, h)
        assert r.value.dot(s) == again.value
    else:
        assert check_printed_product(r, "r") == (w.value.T, s)
        assert r.value.dot(h) == again.value
    *_, formula, total = again.latex.split(" = ")
    assert printed_sum(formula) == read_number(total) == again.value
    assert again.value == score.value == bilinear(s, u, v, h).result
    # the counts, each from what the steps printed
    k = u.rows
    assert kept.value == (len(u) + len(v), len(w.value), Rational(d1 * d2, d1 + d2))
    sums = [step.latex.count(r"\cdot") for step in (p, q, score, r, again)]
    assert work.value == (sum(sums[:3]), sum(sums[3:]), k, min(d1, d2))
    for step, words in ((kept, kept.value[:2]), (work, work.value[:2])):
        few, many = words
        said = "nothing" if few == many else f"saves {many - few}." if few < many else f"costs {few - many} more."
        assert said in step.text
        for equation in step.latex.replace(r"\qquad ", "").split(", "):
            *_, inserted, total = equation.split(" = ")
            if "d_" not in inserted:
                assert read_number(inserted) == read_number(total)
    assert f"k is below {kept.value[2]}." in kept.text
    return w.value


def test_the_score_is_minus_4_by_both_routes_for_4_numbers_against_4():
    worked = bilinear(*GOLDEN_SCORE)
    values = [step.value for step in worked.steps]
    assert values == [
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
    assert worked.steps[2].latex == r"(U s)^\top (V h) = p^\top q = 4 \cdot \left( -1 \right) = -4"
    assert "which saves nothing" in worked.steps[6].text
    check_bilinear(*GOLDEN_SCORE)


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5))
def test_each_step_of_a_score_follows_from_the_one_before(data, k, d2, d1):
    u, v = (data.draw(matrices(rows=st.just(k), columns=st.just(width))) for width in (d2, d1))
    s, h = (data.draw(st.lists(small_rationals, min_size=width, max_size=width)) for width in (d2, d1))
    w = check_bilinear(s, u, v, h)
    np.testing.assert_allclose(
        float(bilinear(s, u, v, h).result),
        (as_floats([s]) @ as_floats(w) @ as_floats([h]).T).item(),
        atol=1e-9,
    )
    np.testing.assert_allclose(as_floats(u).T @ as_floats(v), as_floats(w), atol=1e-9)


@pytest.mark.parametrize(
    ("k", "d2", "d1", "numbers", "work"),
    [
        (2, 5, 5, "The factors have 20 numbers and W has 25, which saves 5.", "22 multiplications and the long way 30"),
        (3, 5, 5, "The factors have 30 numbers and W has 25, which costs 5 more.", "33 multiplications"),
        (1, 2, 2, "The factors have 4 numbers and W has 4, which saves nothing.", "which saves 1."),
        (
            1,
            1,
            1,
            "The factors have 2 numbers and W has 1, which costs 1 more.",
            "3 multiplications and the long way 2",
        ),
        (2, 4, 4, "which saves nothing. The factors have fewer only where k is below 2.", "which saves 2."),
        (1, 3, 2, "fewer only where k is below 6/5.", "once Wᵀ s is known, it takes 2."),
        (1, 2, 3, "fewer only where k is below 6/5.", "once W h is known, it takes 2."),
    ],
)
def test_the_cost_of_a_score_is_counted_honestly(k, d2, d1, numbers, work):
    steps = bilinear([1] * d2, [[1] * d2] * k, [[1] * d1] * k, [1] * d1).steps
    assert numbers in steps[-2].text
    assert work in steps[-1].text


def test_a_matrix_of_rank_2_is_missed_by_its_best_factors_of_rank_1():
    """[[3, 0], [4, 5]] scores 73; the nearest matrix of rank 1 scores 73 and a half."""
    w = Matrix([[3, 0], [4, 5]])
    u, sigma, vt = svd_2x2(w).result
    nearest = (sigma[0] * u[:, 0] * vt[0, :]).applyfunc(sympy.expand)
    assert nearest == check_bilinear([1, 2], [[1, 3]], [["3/2", "3/2"]], [3, 4])
    assert bilinear([1, 2], [[1, 3]], [["3/2", "3/2"]], [3, 4]).result == Rational(147, 2)
    assert bilinear([1, 2], [[1, 0], [0, 1]], w, [3, 4]).result == 73


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([1, 2], [[1, 2, 3]], [[1, 2]], [1, 2]),
            "u must be as wide as s is long, got u of shape (1, 3) and s of length 2",
        ),
        (
            ([1, 2], [[1, 2]], [[1, 2]], [1]),
            "v must be as wide as h is long, got v of shape (1, 2) and h of length 1",
        ),
        (
            ([1, 2], [[1, 2]], [[1], [2]], [1]),
            "u and v must have equally many rows, got shapes (1, 2) and (2, 1)",
        ),
        (([[1, 2]], [[1, 2]], [[1]], [1]), "s must be one vector, got shape (1, 2)"),
        (([1], [[1]], [[1]], [[1, 2], [3, 4]]), "h must be one vector, got shape (2, 2)"),
        (([1], [1], [[1]], [1]), "u must have 2 axes, a list of rows, got [1]"),
    ],
)
def test_shapes_that_cannot_be_scored_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bilinear(*arguments)


# What the reader sees

WORKED = {
    "row_reduce": row_reduce([[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]]),
    "row_reduce of zero": row_reduce([[0]]),
    "rank_one": rank_one([["1/2", -2], [-3, 12]]),
    "project": project([[1, 0, -2]], [["2/3", 1], [4, 5], [6, 7]]),
    "project, square": project([[1, 1], [0, 0]], [1, -1]),
    "bilinear": bilinear(*GOLDEN_SCORE),
    "bilinear, more rows than columns": bilinear(
        [1, "2/3", -3], [[1, 3, -1], [1, 0, 1]], [["3/2", 1], [0, -1]], [3, 4]
    ),
    **{f"svd_2x2, {name}": svd_2x2(a) for name, a in SVD_CASES.items()},
}
every_example = pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED)


@every_example
def test_markdown_is_numbered_sentences_and_one_formula_each(worked):
    markdown = worked._repr_markdown_()
    tokens = MarkdownIt().use(dollarmath_plugin).parse(markdown)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close", "math_block"] * len(
        worked.steps
    )
    for number, step in enumerate(worked.steps, start=1):
        sentence, formula = tokens[4 * number - 3], tokens[4 * number - 1]
        assert sentence.content == f"**{number}.** {step.text}"
        assert [child.type for child in sentence.children] == ["text", "strong_open", "text", "strong_close", "text"]
        assert formula.content == step.latex


@every_example
def test_plain_commonmark_leaves_each_formula_as_it_is(worked):
    tokens = MarkdownIt("commonmark").parse(worked._repr_markdown_())
    for number, step in enumerate(worked.steps, start=1):
        (text,) = tokens[6 * number - 2].children  # no emphasis, no link, no lost backslash
        assert text.content == f"$${step.latex}$$"


@every_example
def test_formulas_are_balanced_and_use_only_what_every_renderer_knows(worked):
    known = {
        "begin",
        "end",
        "cr",
        "frac",
        "sqrt",
        "left",
        "right",
        "cdot",
        "top",
        "qquad",
        "leftarrow",
        "leftrightarrow",
    }
    known |= {"lambda", "sigma", "Sigma", "pm", "det", "lVert", "rVert", "operatorname", "mathbb", "in", "times", "neq"}
    for step in worked.steps:
        assert "\n" not in step.latex
        assert "$" not in step.latex + step.text
        assert "\\\\" not in step.latex
        depth = list(itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in step.latex))
        assert depth[-1] == 0
        assert min(depth) >= 0
        assert set(re.findall(r"\\([a-zA-Z]+|.)", step.latex)) <= known
        opened, closed = (re.findall(rf"\\{side}\{{(\w+)\}}", step.latex) for side in ("begin", "end"))
        assert sorted(opened) == sorted(closed)
        assert step.latex.count(r"\left(") == step.latex.count(r"\right)")
        assert step.text.endswith(".")
        assert not re.search(r"[\\`*_<>\[\]{}]", step.text)


@every_example
def test_a_terminal_shows_every_sentence_and_value(worked):
    shown = str(worked)
    assert repr(worked) == shown
    assert [line for line in shown.splitlines() if re.match(r"\d+\. ", line)] == [
        f"{number}. {step.text}" for number, step in enumerate(worked.steps, start=1)
    ]


def test_a_notebook_is_given_markdown_and_text():
    worked = row_reduce([[1, 2], [2, 4]])
    formatter = DisplayFormatter()
    formatter.active_types = ["text/plain", "text/markdown", "text/latex", "text/html"]
    data, _ = formatter.format(worked)
    assert data == {"text/plain": str(worked), "text/markdown": worked._repr_markdown_()}


def test_worked_unpacks_into_steps_and_result():
    steps, result = row_reduce([[2]])
    assert steps[-2].value == result == Matrix([[1]])


# Input

ONE_THIRD = Matrix([[Rational(1, 3), 2]])


@pytest.mark.parametrize(
    "a",
    [
        [["1/3", 2]],
        [[" +1/3 ", "2."]],
        ((Fraction(1, 3), Fraction(2)),),
        [[Rational(1, 3), sympy.Integer(2)]],
        ONE_THIRD,
        sympy.ImmutableMatrix(ONE_THIRD),
        np.array([[Fraction(1, 3), 2]], dtype=object),
        [np.array([Fraction(1, 3), np.int8(2)], dtype=object)],
    ],
    ids=str,
)
def test_exact_numbers_come_in_many_dresses(a):
    assert row_reduce(a).steps[0].value == ONE_THIRD


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_numpy_integers_are_exact(dtype):
    a = np.array([[1, 2], [3, 4]], dtype=dtype)
    assert row_reduce(a).steps[0].value == Matrix([[1, 2], [3, 4]])
    assert project(a, np.array([100, 100], dtype=dtype)).result == Matrix([300, 700])  # no overflow


def test_a_decimal_string_is_the_decimal():
    assert row_reduce([["0.1", "-.5"]]).steps[0].value == Matrix([[Rational(1, 10), Rational(-1, 2)]])


def test_the_callers_matrix_is_left_alone():
    mine = [[2, 4], [1, 3]]
    symbolic, array = Matrix(mine), np.array(mine)
    for a in (mine, symbolic, array):
        row_reduce(a)
        svd_2x2(a)
    assert mine == [[2, 4], [1, 3]]
    assert symbolic == Matrix(mine)
    assert (array == mine).all()


def test_the_steps_do_not_share_their_matrix():
    worked = row_reduce([[1, 2], [2, 4]])
    worked.result[0, 0] = 99
    assert worked.steps[-2].value == Matrix([[1, 2], [0, 0]])


FUNCTIONS = {
    "row_reduce": (row_reduce, "a"),
    "rank_one": (rank_one, "a"),
    "svd_2x2": (svd_2x2, "a"),
    "project, w": (lambda bad: project(bad, [1, 2]), "w"),
    "project, x": (lambda bad: project([[1, 2]], bad), "x"),
    "bilinear, s": (lambda bad: bilinear(bad, [[1, 2]], [[1, 2]], [1, 2]), "s"),
    "bilinear, u": (lambda bad: bilinear([1, 2], bad, [[1, 2]], [1, 2]), "u"),
    "bilinear, v": (lambda bad: bilinear([1, 2], [[1, 2]], bad, [1, 2]), "v"),
    "bilinear, h": (lambda bad: bilinear([1, 2], [[1, 2]], [[1, 2]], bad), "h"),
}
every_function = pytest.mark.parametrize(("function", "name"), FUNCTIONS.values(), ids=FUNCTIONS)


@every_function
@pytest.mark.parametrize(
    ("bad", "error", "rule"),
    [
        (
            [[0.1, 1], [1, 1]],
            TypeError,
            r"\[0\]\[0\] must be a number given exactly .* got the float 0.1; write Fraction\(1, 10\)",
        ),
        ([[1, 1], [1, -2.0]], TypeError, r"\[1\]\[1\] must be a number given exactly .* got the float -2.0; write -2$"),
        (np.array([[0.25, 1], [1, 1]], dtype=np.float32), TypeError, r"got the float 0.25; write Fraction\(1, 4\)"),
        ([[sympy.Float(0.5), 1]], TypeError, r"got the float 0.5.*; write Fraction\(1, 2\)"),
        ([[1e300, 1]], TypeError, "got the float .*; write it as a Fraction"),
        ([[1e-300, 1]], TypeError, "got the float .*; write it as a Fraction"),
        ([[float("nan"), 1]], ValueError, r"\[0\]\[0\] must be finite, got nan"),
        ([[1, float("inf")]], ValueError, r"\[0\]\[1\] must be finite, got inf"),
        ([[1, -np.inf]], ValueError, "must be finite, got -inf"),
        ([[1, sympy.nan]], ValueError, "must be finite, got nan"),
        ([[1, sympy.oo]], ValueError, "must be finite, got oo"),
        ([[1, sympy.Symbol("t")]], TypeError, "must be a number given exactly .* got t"),
        ([[1, sympy.sqrt(2)]], TypeError, r"got sqrt\(2\)"),
        ([[1, sympy.zoo]], TypeError, "got zoo"),
        ([[1, 2j]], TypeError, "got 2j"),
        ([[1, sympy.I]], TypeError, "got I"),
        ([[1, None]], TypeError, "got None"),
        ([[1, {}]], TypeError, r"got \{\}"),
        ([[True, 1]], TypeError, "got True"),
        (np.array([[True, False]]), TypeError, "got True"),
        ([["one", 1]], ValueError, "got 'one'"),
        ([["1e3", 1]], ValueError, "got '1e3'"),
        ([["", 1]], ValueError, "got ''"),
        ([["1/0", 1]], ValueError, "must have a denominator other than zero, got '1/0'"),
        ([["1" * 61, 1]], ValueError, "must be a number given exactly .* got '111"),
        ([[10**20, 1]], ValueError, "must have at most 20 digits"),
        ([[1, -(10**5000)]], ValueError, "must have at most 20 digits"),
        ([[1, Fraction(1, 10**20)]], ValueError, "must have at most 20 digits"),
        ([[1, 2], [3]], ValueError, r"must have rows of one length, got lengths \[2, 1\]"),
        ([], ValueError, r"must have at least one row and one column, got \[\]"),
        ([[]], ValueError, r"must have at least one row and one column, got \[\[\]\]"),
        (np.zeros((2, 0), dtype=int), ValueError, "must have at least one row and one column"),
        ([[[1, 2]]], ValueError, "must have .*2 axes"),
        (np.ones((2, 2, 2), dtype=int), ValueError, "must have .*2 axes"),
        ([1, [2, 3]], ValueError, "must have .*2 axes"),
        (5, TypeError, "must be a list of rows of exact numbers, got 5"),
        (None, TypeError, "must be a list of rows of exact numbers, got None"),
        ("12", TypeError, "must be a list of rows of exact numbers, got '12'"),
        ({1: 2}, TypeError, "must be a list of rows of exact numbers"),
        ([[1] * 13], ValueError, r"at most 12 rows and columns, got shape \(1, 13\)"),
        ([[1]] * 13, ValueError, r"at most 12 rows and columns, got shape \(13, 1\)"),
    ],
)
def test_bad_input_is_refused_with_its_name_the_rule_and_the_value(function, name, bad, error, rule):
    with pytest.raises(error, match=rf"^{name}.*{rule}"):
        function(bad)


def test_a_flat_list_is_no_matrix():
    for function in (row_reduce, rank_one, svd_2x2):
        with pytest.raises(ValueError, match=r"a must have 2 axes, a list of rows, got \[1, 2\]"):
            function([1, 2])


def test_the_limits_themselves_are_allowed():
    check_row_reduction([[i * j % 5 for j in range(12)] for i in range(12)])
    assert row_reduce([[-(10**20) + 1]]).result == Matrix([[1]])
    assert row_reduce([[Fraction(1, 10**20 - 1)]]).result == Matrix([[1]])


def test_the_public_names_are_listed():
    assert all(hasattr(byhand, name) for name in byhand.__all__)
