"""Check the arguments of figures before anything is drawn."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor._checks import _show, as_float_array

Floats = NDArray[np.float64]


def finite(name: str, value: Any, *shape: int | None) -> Floats:
    """Return finite real numbers of this shape, None being any length but zero."""
    array = as_float_array(value, name).astype(np.float64)
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(
        want not in (None, have) for have, want in zip(array.shape, shape, strict=True)
    ):
        wanted = str(shape).replace("None", "any")
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {_show(value)}")
    return array


def number(name: str, value: Any, low: float, high: float) -> float:
    """Return a real number between two others, both included."""
    array = as_float_array(value, name)
    if array.shape or not low <= array <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {_show(value)}")
    return float(array)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two others, both included."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {_show(value)}")
    return int(value)


def point(name: str, value: Any, reach: float) -> Floats:
    """Return two coordinates, neither of which is farther from zero than ``reach``."""
    array = finite(name, value, 2)
    if np.abs(array).max() > reach:
        raise ValueError(f"{name} must be from {-reach:g} to {reach:g}, got {_show(value)}")
    return array
