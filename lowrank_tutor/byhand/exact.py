"""Read exact numbers: integers, fractions and decimals written as strings; floats are refused."""

import math
import numbers
import reprlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy import Matrix, Rational

# Nobody works larger examples by hand, and their steps would fill the page.
MAX_SIDE = 12
MAX_DIGITS = 20


def as_exact_matrix(name: str, value: Any, *, vector_allowed: bool = False) -> Matrix:
    """Read a matrix of exact numbers; if allowed, a flat list is one column."""
    rows = _unpack(value)
    rows = [_unpack(row) for row in rows] if _is_list(rows) else []
    if vector_allowed and not any(map(_is_list, rows)):
        rows = [[entry] for entry in rows]
    widths = {len(row) if _is_list(row) else 0 for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise ValueError(
            f"{name} must be a list of rows of exact numbers, all of one length, "
            f"got {reprlib.repr(value)}"
        )
    if max(len(rows), *widths) > MAX_SIDE:
        raise ValueError(
            f"{name} must have at most {MAX_SIDE} rows and columns, to work by hand, "
            f"got {len(rows)} rows of {max(widths)}"
        )
    return Matrix([[as_exact_number(name, entry) for entry in row] for row in rows])


def as_exact_vector(name: str, value: Any) -> Matrix:
    """Read one vector of exact numbers: a flat list, or a matrix of one column."""
    vector = as_exact_matrix(name, value, vector_allowed=True)
    if vector.cols != 1:
        raise ValueError(f"{name} must be one vector, got shape {vector.shape}")
    return vector


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


def _unpack(value: Any) -> Any:
    """Turn NumPy arrays and SymPy matrices into lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def without_common_factor(vector: Matrix) -> Matrix:
    """Scale a rational vector to whole numbers without a common divisor.

    The first entry that is not zero becomes positive.
    """
    if not all(entry.is_Rational for entry in vector):
        return vector
    whole = vector * math.lcm(*(entry.q for entry in vector))
    lead = next(entry for entry in whole if entry != 0)
    return whole / (math.gcd(*(int(entry) for entry in whole)) * sympy.sign(lead))
