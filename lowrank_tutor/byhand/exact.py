"""Read exact numbers: integers, fractions and decimals written as strings; floats are refused."""

import math
import numbers
import reprlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy import Matrix, Rational

from lowrank_tutor._checks import check_shape

# Nobody works larger examples by hand, and their steps would fill the page.
MAX_SIDE = 12
MAX_DIGITS = 20


def as_exact_matrix(name: str, value: Any, axes: Sequence[str | int] = ("m", "n")) -> Matrix:
    """Read a matrix of exact numbers with these axes, as in `check_shape`."""
    array = _objects(value)
    if array.ndim != 2 or not array.size or max(array.shape) > MAX_SIDE:
        raise ValueError(
            f"{name} must be a list of rows of exact numbers, all of one length, and have at most "
            f"{MAX_SIDE} rows and columns, got {reprlib.repr(value)}"
        )
    check_shape(name, array, axes)
    return Matrix(*array.shape, [as_exact_number(name, entry) for entry in array.flat])


def as_exact_vector(name: str, value: Any) -> Matrix:
    """Read one vector of exact numbers: a flat list, or a matrix of one column."""
    array = _objects(value)
    return as_exact_matrix(name, array[:, np.newaxis] if array.ndim == 1 else array, ("n", 1))


def _objects(value: Any) -> Any:
    """Return an array of whatever stands in lists, arrays, tensors, or matrices of SymPy."""
    return np.array(value.tolist() if hasattr(value, "tolist") else value, dtype=object)


def as_exact_number(name: str, value: Any) -> Any:
    """Read one exact number as a SymPy rational, or refuse it."""
    try:
        number = Fraction(value) if isinstance(value, str) else value
    except (ValueError, ZeroDivisionError):
        number = None
    if isinstance(number, bool) or not isinstance(number, numbers.Rational):
        raise TypeError(
            f'{name} must hold exact numbers (integers, Fractions, or strings such as "1/3"), '
            f"got {value!r}"
        )
    exact = Rational(int(number.numerator), int(number.denominator))
    if max(abs(exact.p), exact.q) >= 10**MAX_DIGITS:
        raise ValueError(f"{name} must hold numbers of at most {MAX_DIGITS} digits, got more")
    return exact


def without_common_factor(vector: Matrix) -> Matrix:
    """Scale a rational vector to whole numbers without a common divisor.

    The first entry that is not zero becomes positive.
    """
    if not all(entry.is_Rational for entry in vector):
        return vector
    whole = vector * math.lcm(*(entry.q for entry in vector))
    lead = next(entry for entry in whole if entry != 0)
    return whole / (math.gcd(*(int(entry) for entry in whole)) * sympy.sign(lead))
