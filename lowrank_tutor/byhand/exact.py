"""Read exact numbers: integers, fractions and decimals written as strings; floats are refused."""

import math
import numbers
import reprlib
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy import Matrix, Rational

# Nobody works larger examples by hand, and their steps would fill the page.
MAX_SIDE = 12
MAX_DIGITS = 20


def as_exact_matrix(name: str, value: Any) -> Matrix:
    """Read a matrix of exact numbers."""
    array = _objects(value)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"{name} must be a list of rows of exact numbers, all of one length, "
            f"got {reprlib.repr(value)}"
        )
    if max(array.shape) > MAX_SIDE:
        raise ValueError(
            f"{name} must have at most {MAX_SIDE} rows and columns, to work by hand, "
            f"got shape {array.shape}"
        )
    return Matrix(*array.shape, [as_exact_number(name, entry) for entry in array.flat])


def as_exact_vector(name: str, value: Any) -> Matrix:
    """Read one vector of exact numbers: a flat list, or a matrix of one column."""
    array = _objects(value)
    vector = as_exact_matrix(name, array[:, np.newaxis] if array.ndim == 1 else array)
    if vector.cols != 1:
        raise ValueError(f"{name} must be one vector, got shape {vector.shape}")
    return vector


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
