"""What is wrong with this argument of a figure? Asked once, at the door, in the words of all other modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sized
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor._checks import as_float_array

Floats = NDArray[np.float64]


def finite(name: str, value: Any, *shape: int | None, gaps: bool = False) -> Floats:
    """Return finite real numbers of this shape, in which None is any length but zero; NaN alone may be a gap."""
    array = as_float_array(value, name).astype(np.float64)
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(have != want for have, want in zip(array.shape, shape, strict=True) if want is not None):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({wanted}{',' if len(shape) == 1 else ''}), got {array.shape}")
    gap = np.isnan(array) if gaps and not np.isnan(array).all() else False
    if (wrong := array[~np.isfinite(array) & ~np.array(gap)]).size:
        raise ValueError(f"{name} must be finite, got {wrong[0]}")
    return array


def named(name: str, value: Any, *shape: int | None, most: int | None = None, gaps: bool = False) -> dict[str, Floats]:
    """Return finite numbers by their names, without a shape one number each; so many at ``most``."""
    if not isinstance(value, Mapping) or not value:
        raise TypeError(f"{name} must be a dict with at least one name, got {value!r}")
    check_most(name, value, most)
    return {one: finite(f"{name}[{one!r}]", numbers, *shape, gaps=gaps) for one, numbers in value.items()}


def check_most(name: str, things: Sized, most: int | None) -> None:
    """Refuse more things than there are ways to draw them, which would leave some out."""
    if most is not None and len(things) > most:
        raise ValueError(f"{name} must be at most {most}, got {len(things)}")


def unit(name: str, value: Any) -> Floats:
    """Return a vector of the plane that has length 1."""
    vector = finite(name, value, 2)
    if abs(np.linalg.norm(vector) - 1) > 1e-6:
        raise ValueError(f"{name} must have length 1, got length {np.linalg.norm(vector):g}")
    return vector


def number(name: str, value: Any, low: float, high: float) -> float:
    """Return a real number between two others, both included."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number between two others, both included, as Python's integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def point(name: str, value: Any, reach: float) -> Floats:
    """Return two coordinates of this size at most."""
    array = as_float_array(value, name).astype(np.float64)
    if array.shape != (2,) or not (np.abs(array) <= reach).all():
        raise ValueError(f"{name} must be two numbers from {-reach:g} to {reach:g}, got {value!r}")
    return array


def check_setting(name: str, value: Any) -> None:
    """Refuse a number, limits, a text or names that a figure cannot use; a name means the same in all figures."""
    rule, fits = RULES.get(name, ("", None))
    if fits is not None and not fits(value):
        raise (ValueError if isinstance(value, Real | tuple) else TypeError)(f"{name} must be {rule}, got {value!r}")


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and -1e300 < value < 1e300  # type: ignore[operator]


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**31


def _are_limits(value: Any) -> bool:
    pair = isinstance(value, tuple | list) and len(value) == 2 and all(end is None or _is_finite(end) for end in value)
    return pair and (None in value or value[0] < value[1])


RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        "at eps highest level limit lowest reach start threshold top truth".split(), ("finite", _is_finite)
    ),
    **dict.fromkeys("available decimals first heads k layers most".split(), ("a count, at least 0", _is_count)),
    **dict.fromkeys(("xlim", "ylim"), ("two rising numbers, or None for an end", _are_limits)),
    **dict.fromkeys(("title", "xlabel", "whose"), ("a text", lambda value: isinstance(value, str))),
    "marked": ("names", lambda value: isinstance(value, Collection)),
}
