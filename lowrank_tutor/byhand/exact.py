"""Read exact numbers: integers, fractions and decimals written as strings; floats are refused."""

import math
import numbers
import re
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
    if not _is_list(rows):
        raise TypeError(f"{name} must be a list of rows of exact numbers, got {_short(value)}")
    rows = [_unpack(row) for row in rows]
    if vector_allowed and rows and not any(_is_list(row) for row in rows):
        rows = [[entry] for entry in rows]
    if not rows or any(_is_list(row) and not row for row in rows):
        raise ValueError(f"{name} must have at least one row and one column, got {_short(value)}")
    if not all(_is_list(row) for row in rows) or any(
        _is_list(entry) for row in rows for entry in row
    ):
        axes = "1 or 2 axes" if vector_allowed else "2 axes, a list of rows"
        raise ValueError(f"{name} must have {axes}, got {_short(value)}")
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise ValueError(f"{name} must have rows of one length, got lengths {_short(lengths)}")
    if max(len(rows), lengths[0]) > MAX_SIDE:
        raise ValueError(
            f"{name} must be small enough to work by hand, at most {MAX_SIDE} rows and columns, "
            f"got shape {(len(rows), lengths[0])}"
        )
    return Matrix(
        [
            [as_exact_number(f"{name}[{i}][{j}]", entry) for j, entry in enumerate(row)]
            for i, row in enumerate(rows)
        ]
    )


def as_exact_vector(name: str, value: Any) -> Matrix:
    """Read one vector of exact numbers: a flat list, or a matrix of one column."""
    vector = as_exact_matrix(name, value, vector_allowed=True)
    if vector.cols != 1:
        raise ValueError(f"{name} must be one vector, got shape {vector.shape}")
    return vector


def as_exact_number(name: str, value: Any) -> Any:
    """Read one exact number as a SymPy rational, or refuse it and say how to write it."""
    rule = 'a number given exactly (an integer, a Fraction, or a string such as "1/3")'
    if isinstance(value, str):
        if (
            not re.fullmatch(r"\s*[+-]?(\d+(/\d+)?|\d*\.\d+|\d+\.)\s*", value, re.ASCII)
            or len(value) > 3 * MAX_DIGITS
        ):
            raise ValueError(f"{name} must be {rule}, got {_short(value)}")
        try:
            value = Fraction(value)
        except ZeroDivisionError:
            raise ValueError(
                f"{name} must have a denominator other than zero, got {_short(value)}"
            ) from None
    if isinstance(value, bool) or not isinstance(value, numbers.Real | sympy.Number):
        raise TypeError(f"{name} must be {rule}, got {_short(value)}")
    if value != value or value in (math.inf, -math.inf) or value is sympy.nan:
        raise ValueError(f"{name} must be finite, got {value}")
    if not isinstance(value, numbers.Rational):
        raise TypeError(
            f"{name} must be {rule}, got the float {value}; write {_as_fraction(str(value))}"
        )
    number = Rational(int(value.numerator), int(value.denominator))
    if max(abs(number.p), number.q) >= 10**MAX_DIGITS:
        raise ValueError(
            f"{name} must have at most {MAX_DIGITS} digits above and below the fraction bar, "
            "got more"
        )
    return number


def _as_fraction(number: str) -> str:
    fraction = Fraction(number)
    if max(abs(fraction.numerator), fraction.denominator) >= 10**MAX_DIGITS:
        return "it as a Fraction"
    return (
        str(fraction)
        if fraction.denominator == 1
        else f"Fraction({fraction.numerator}, {fraction.denominator})"
    )


def _unpack(value: Any) -> Any:
    """Turn NumPy arrays and SymPy matrices into lists."""
    try:
        return value.tolist() if hasattr(value, "tolist") else value
    except (
        TypeError,
        RuntimeError,
    ):  # classes, and tensors that are sparse, nested or without numbers
        return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _short(value: Any) -> str:
    return reprlib.repr(value)


def without_common_factor(vector: Matrix) -> Matrix:
    """Scale a rational vector to whole numbers without a common divisor.

    The first entry that is not zero becomes positive.
    """
    if not all(entry.is_Rational for entry in vector):
        return vector
    whole = vector * math.lcm(*(entry.q for entry in vector))
    lead = next(entry for entry in whole if entry != 0)
    return whole / (math.gcd(*(int(entry) for entry in whole)) * sympy.sign(lead))
