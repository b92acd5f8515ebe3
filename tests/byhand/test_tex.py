"""Decimals are rounded, and rows of fractions are held apart."""

import pytest
import sympy
from sympy import E, Matrix, Rational, exp

from lowrank_tutor.byhand.tex import tex_matrix


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (Rational(1, 3), "0.333"),
        (Rational(2, 3), "0.667"),
        (-E, "-2.718"),
        (sympy.Integer(0), "0.000"),
        (sympy.Integer(2), "2.000"),
        (Rational(6, 10**4), "0.001"),
        (Rational(4, 10**4), "0.000"),
        (Rational(-4, 10**4), "0.000"),
        (Rational(-1, 10**5), "0.000"),
        (exp(-(10**30)), "0.000"),
        (1 - exp(-100), "1.000"),
        (10**41 + Rational(1, 4), f"1{'0' * 41}.250"),
    ],
)
def test_decimals_are_rounded(number, shown):
    assert (
        tex_matrix(Matrix([[number, 1]]), decimals=True)
        == rf"\begin{{pmatrix}} {shown} & 1.000 \end{{pmatrix}}"
    )
