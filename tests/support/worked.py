"""Draw input for worked examples, and judge them by loops over fractions."""

from fractions import Fraction

import numpy as np
import sympy
from hypothesis import strategies as st
from sympy import Matrix

small_rationals = st.builds(Fraction, st.integers(-9, 9), st.integers(1, 5))
small_integers = st.integers(-4, 4)
up_to_five, sides = st.integers(1, 5), st.integers(1, 4)


def matrices(rows=up_to_five, columns=up_to_five, entries=small_rationals):
    """Draw small rational matrices, a good share of them with dependent rows."""

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


def numerically_zero(number):
    return abs(number.evalf(80, maxn=400)) < sympy.Float("1e-60")


def plain_product(left, right):
    """Multiply by loops over fractions."""
    columns = list(zip(*right, strict=True))
    return [[sum(map(lambda x, y: x * y, row, column)) for column in columns] for row in left]


def fractions(a):
    return [[Fraction(str(entry)) for entry in row] for row in Matrix(a).tolist()]
