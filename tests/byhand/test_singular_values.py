"""The values of each step of a 2 by 2 decomposition follow, and NumPy finds the same."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Matrix, Rational, sqrt
from worked import as_floats, matrices, numerically_zero

from lowrank_tutor.byhand import svd_2x2

SVD_CASES = {
    "square roots of five": [[3, 0], [4, 5]],
    "golden ratio": [[1, 1], [0, 1]],
    "nested roots": [[1, 2], [3, 4]],
    "symmetric, negative eigenvalue": [[1, 2], [2, 1]],
    "diagonal": [[2, 0], [0, 5]],
    "antidiagonal": [[0, 2], [-3, 0]],
    "rotation": [[3, -4], [4, 3]],
    "rank 1": [[1, 2], [2, 4]],
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


def check_svd(a, is_zero=exactly_zero):
    steps, (u, s, vt) = svd_2x2(a)
    gram, polynomial, eigenvalues, sigmas, v1, v2, u1, u2, product = (x.value for x in steps)
    matrix = Matrix([[Rational(str(entry)) for entry in row] for row in a])
    assert product == matrix
    assert gram == matrix.T * matrix
    unknown = sympy.Symbol("lambda")
    assert sympy.expand(polynomial - (gram - unknown * sympy.eye(2)).det()) == 0
    assert sympy.expand((unknown - eigenvalues[0]) * (unknown - eigenvalues[1]) - polynomial) == 0
    assert (u, s, vt) == (Matrix.hstack(u1, u2), sigmas, Matrix.hstack(v1, v2).T)
    assert bool(sigmas[0] >= sigmas[1] >= 0)
    for value, sigma, right, left in zip(eigenvalues, sigmas, (v1, v2), (u1, u2), strict=True):
        assert sympy.expand(sigma**2 - value) == 0
        for residual in (*(gram * right - value * right), *(matrix * right - sigma * left)):
            assert is_zero(residual)
        assert sympy.expand(right.dot(right)) == sympy.expand(left.dot(left)) == 1
        for free in (right, left)[: 2 if sigma == 0 else 1]:
            assert bool(next(entry for entry in free if entry != 0) > 0)
    assert is_zero(v1.dot(v2))
    assert is_zero(u1.dot(u2))
    floats = as_floats(matrix)
    judged = np.linalg.svd(floats, compute_uv=False)
    np.testing.assert_allclose(as_floats([s])[0], judged, atol=1e-9 * (1 + judged[0]))


@pytest.mark.parametrize("a", SVD_CASES.values(), ids=SVD_CASES)
def test_identities_hold_exactly(a):
    check_svd(a)
    for sigma in svd_2x2(a).result.s:  # no roots are nested
        assert all(power.base.is_Rational for power in sigma.atoms(sympy.Pow))


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


def test_roots_by_hand():
    u, s, vt = svd_2x2([[3, 0], [4, 5]]).result
    assert s == (3 * sqrt(5), sqrt(5))
    assert vt == Matrix([[1, 1], [1, -1]]) / sqrt(2)
    assert u == Matrix([[1, 3], [3, -1]]) / sqrt(10)
    large, small = svd_2x2([[1, 2], [3, 4]]).result.s
    assert (large + small, large - small) == (sqrt(34), sqrt(26))
