"""Check the arguments of figures before anything is drawn."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor._checks import _show, as_float_array, check_integer, check_real

Floats = NDArray[np.float64]


def finite(name: str, value: Any, *shape: int | None, gaps: bool = False) -> Floats:
    """Return finite real numbers of this shape, None being any length but zero.

    With ``gaps``, some may be NaN.
    """
    array = as_float_array(value, name).astype(np.float64)
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(
        have != want for have, want in zip(array.shape, shape, strict=True) if want is not None
    ):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} must have shape ({wanted}{',' if len(shape) == 1 else ''}), got {array.shape}"
        )
    some = gaps and not np.isnan(array).all()
    if (wrong := array[np.isinf(array) if some else ~np.isfinite(array)]).size:
        raise ValueError(f"{name} must be finite, got {wrong[0]}")
    return array


def named(name: str, value: Any, *shape: int | None, gaps: bool = False) -> dict[str, Floats]:
    """Return finite numbers by name, each of this shape."""
    if not isinstance(value, Mapping) or not value:
        raise TypeError(f"{name} must be a dict with at least one name, got {_show(value)}")
    return {
        one: finite(f"{name}[{one!r}]", numbers, *shape, gaps=gaps)
        for one, numbers in value.items()
    }


def number(name: str, value: Any, low: float, high: float) -> float:
    """Return a real number between two others, both included."""
    rule = f"a number from {low:g} to {high:g}"
    return check_real(value, name, rule, low, math.nextafter(high, math.inf))


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two others, both included."""
    return check_integer(value, name, low, high)


def point(name: str, value: Any, reach: float) -> Floats:
    """Return two coordinates, neither of which is farther from zero than ``reach``."""
    array = as_float_array(value, name).astype(np.float64)
    if array.shape != (2,) or not (np.abs(array) <= reach).all():
        raise ValueError(
            f"{name} must be two numbers from {-reach:g} to {reach:g}, got {_show(value)}"
        )
    return array
