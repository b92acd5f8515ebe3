"""Each step of a 2 by 2 decomposition follows from the one before, and NumPy finds the same."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational, sqrt
from worked import (
    as_floats,
    assert_equal_to_60_digits,
    ends,
    matrices,
    numerically_zero,
    read_matrices,
    read_number,
)

from lowrank_tutor.byhand import svd_2x2

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


def exactly_zero(number):
    """Decide exactly whether nested roots are zero: the minimal polynomial of zero is x."""
    x = sympy.Symbol("x")
    return sympy.minimal_polynomial(number, x) == x


def check_svd(a, exact_judge=exactly_zero):
    matrix = Matrix([[Rational(str(entry)) for entry in row] for row in a])
    worked = svd_2x2(a)
    u, s, vt = worked.result
    gram, polynomial, eigenvalues, sigmas, v1, v2, u1, u2, product = (
        step.value for step in worked.steps
    )
    assert gram == matrix.T * matrix
    unknown = sympy.Symbol("lambda")
    assert sympy.expand(polynomial - (gram - unknown * sympy.eye(2)).det()) == 0
    assert all(sympy.expand(polynomial.subs(unknown, value)) == 0 for value in eigenvalues)
    assert sympy.expand(sum(eigenvalues) - gram.trace()) == 0
    assert bool(eigenvalues[0] >= eigenvalues[1] >= 0)
    assert all(
        sympy.expand(sigma**2 - value) == 0
        for sigma, value in zip(sigmas, eigenvalues, strict=True)
    )
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
    assert u == Matrix.hstack(u1, u2)
    assert vt == Matrix.hstack(v1, v2).T
    assert s == sigmas
    floats = as_floats(matrix)
    np.testing.assert_allclose(
        [float(sigma) for sigma in s], np.linalg.svd(floats)[1], atol=1e-9 * (1 + abs(floats).max())
    )
    np.testing.assert_allclose(
        as_floats(u) @ np.diag([float(x) for x in s]) @ as_floats(vt), floats, atol=1e-9
    )


@pytest.mark.parametrize("a", SVD_CASES.values(), ids=SVD_CASES)
def test_identities_hold_exactly(a):
    check_svd(a)


@settings(max_examples=12)
@given(matrices(st.just(2), st.just(2)))
def test_small_rational_matrices(a):
    check_svd(a, numerically_zero)


@settings(max_examples=12)
@given(matrices(st.just(2), st.just(2), st.integers(-(10**19), 10**19)))
def test_long_numbers_multiply_back(a):
    worked = svd_2x2(a)
    assert worked.steps[-1].value == Matrix(a)
    assert worked.result.s[0] >= worked.result.s[1]


def test_roots_of_five_by_hand():
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
    assert read_matrices(worked.steps[-1].latex)[-3:] == [*layers, Matrix([[3, 0], [4, 5]])]


def test_no_nested_roots():
    golden = sympy.GoldenRatio.expand(func=True)
    assert svd_2x2([[1, 1], [0, 1]]).result.s == (golden, golden - 1)
    assert svd_2x2([[1, 2], [3, 4]]).result.s == (
        (sqrt(34) + sqrt(26)) / 2,
        (sqrt(34) - sqrt(26)) / 2,
    )
    for a in SVD_CASES.values():
        for sigma in svd_2x2(a).result.s:
            assert all(power.base.is_Rational for power in sigma.atoms(sympy.Pow))


@pytest.mark.parametrize("a", SVD_CASES.values(), ids=SVD_CASES)
def test_printed_formulas(a):
    worked = svd_2x2(a)
    u, s, vt = worked.result
    gram, polynomial, eigenvalues, sigmas, *vectors, check = worked.steps
    left, right, product = read_matrices(gram.latex)
    assert left.T == right == Matrix([[Rational(str(entry)) for entry in row] for row in a])
    assert left * right == product == gram.value

    unknown = sympy.Symbol("t")
    for line in ends(polynomial.latex):
        assert (
            sympy.expand(read_number(line) - polynomial.value.subs(sympy.Symbol("lambda"), unknown))
            == 0
        )

    formula, *printed = ends(eigenvalues.latex)
    assert_equal_to_60_digits([read_number(line) for line in printed], eigenvalues.value)
    assert_equal_to_60_digits(
        [read_number(formula.replace(r"\pm", sign)) for sign in "+-"], eigenvalues.value
    )

    for line, sigma in zip(ends(sigmas.latex), s, strict=True):
        for form in line.split(" = "):
            assert_equal_to_60_digits(read_number(form), sigma)

    for i in (0, 1):
        equation, direction, length, unit = ends(vectors[i].latex)
        ((shifted,), (w,), (v,)) = (read_matrices(line) for line in (equation, direction, unit))
        assert_equal_to_60_digits(shifted, gram.value - s[i] ** 2 * sympy.eye(2))
        assert_equal_to_60_digits(shifted * w, sympy.zeros(2, 1))
        assert_equal_to_60_digits(v * read_number(length), w)
        assert_equal_to_60_digits(v, vt[i, :].T)
        if s[i] == 0:
            (printed_u,) = read_matrices(vectors[2 + i].latex)
            assert vectors[2 + i].latex.startswith(rf"A v_{i + 1} = 0, \qquad u_{i + 1} =")
        else:
            _, inserted, unit = ends(vectors[2 + i].latex)
            (printed_u,) = read_matrices(unit)
            matrix, v = read_matrices(inserted)
            assert_equal_to_60_digits(
                read_number(inserted.split(r"\begin")[0]) * matrix * v, printed_u
            )
        assert printed_u == u[:, i]

    printed = read_matrices(check.latex)
    assert printed[:3] == [u, sympy.diag(*s), vt]
    for i in (0, 1):
        assert_equal_to_60_digits(printed[3 + i], s[i] * u[:, i] * vt[i, :])
    assert printed[5] == (printed[3] + printed[4]).applyfunc(sympy.expand) == right


@pytest.mark.parametrize("a", [[[1, 2]], [[1, 2, 3], [4, 5, 6]]])
def test_bad_shapes_are_refused(a):
    with pytest.raises(
        ValueError, match=rf"^a must be a 2 by 2 matrix, got shape \({len(a)}, {len(a[0])}\)$"
    ):
        svd_2x2(a)
