"""Check the arguments of figures before anything is drawn."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor._checks import _show, as_float_array

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
    gap = np.isnan(array) if gaps and not np.isnan(array).all() else False
    if (wrong := array[~np.isfinite(array) & ~np.array(gap)]).size:
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
    if not _lies(value, Real, low, high):
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {_show(value)}")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two others, both included."""
    if not _lies(value, Integral, low, high):
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {_show(value)}")
    return int(value)


def point(name: str, value: Any, reach: float) -> Floats:
    """Return two coordinates, neither of which is farther from zero than ``reach``."""
    array = as_float_array(value, name).astype(np.float64)
    if array.shape != (2,) or not (np.abs(array) <= reach).all():
        raise ValueError(
            f"{name} must be two numbers from {-reach:g} to {reach:g}, got {_show(value)}"
        )
    return array


def _lies(value: Any, kind: Any, low: float, high: float) -> bool:
    """Whether this is a number of a kind, and no bool, between two others."""
    return isinstance(value, kind) and not isinstance(value, bool) and bool(low <= value <= high)
