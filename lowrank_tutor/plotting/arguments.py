"""What is wrong with this argument of a figure? Asked once, at the door, in the words of all other modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor._checks import as_float_array


def finite(name: str, value: Any, *shape: int | None) -> NDArray[np.float64]:
    """Return finite real numbers of this shape, in which None stands for any length but zero."""
    array = as_float_array(value, name).astype(np.float64)
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(have != want for have, want in zip(array.shape, shape, strict=True) if want is not None):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({wanted}{',' if len(shape) == 1 else ''}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def named(name: str, value: Any, *shape: int | None) -> dict[str, NDArray[np.float64]]:
    """Return finite numbers by their names; with no shape, a number for each name."""
    if not isinstance(value, Mapping) or not value:
        raise TypeError(f"{name} must be a dict from names to numbers, with at least one name, got {value!r}")
    return {str(one): finite(f"{name}[{one!r}]", numbers, *shape) for one, numbers in value.items()}
