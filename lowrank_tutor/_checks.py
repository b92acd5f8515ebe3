"""What is wrong with this argument? One line says so, in the same words everywhere.

No chapter: the modules of every chapter share these checks, so that each refuses the same things with the same words,
"*argument* must be *rule*, got *value*". A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

import math
import numbers
import reprlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating]

# Between these the largest entry of an array must lie, so that squares, products and sums neither overflow nor vanish.
# Checks stand at the door, and behind it the formulas are those of the chapters.
SIZES = {np.dtype(np.float64): (1e-75, 1e75), np.dtype(np.float32): (1e-12, 1e12)}


def _show(value: object) -> str:
    """Name a refused value in a few characters: the dtype of an array, the (shortened) text of anything else."""
    return f"dtype {value.dtype}" if isinstance(value, np.ndarray) else reprlib.repr(value)


def as_float_array(value: ArrayLike, name: str) -> FloatArray:
    """Turn real numbers into a float array: float32 stays, float16 becomes float32, all else float64."""
    if isinstance(value, np.ma.MaskedArray):  # its masked entries would silently count as numbers
        raise TypeError(f"{name} must be an array without a mask, got a masked array")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; tensors that refuse to become arrays
        raise ValueError(f"{name} must be a rectangular array of real numbers, got {reprlib.repr(value)}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers, got {_show(value)}")
    if array.dtype in (np.float16, np.float32):
        return array.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):  # a long double beyond float64 turns into an infinity, refused below
        return array.astype(np.float64, copy=False)


def _check_entries(array: FloatArray, name: str) -> None:
    """Refuse an array that is empty, holds NaN or infinity, or whose largest entry is beyond `SIZES`; zeros pass."""
    if array.size == 0:
        raise ValueError(f"{name} must be non-empty, got shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        raise ValueError(f"{name} must be finite, got {array[~finite][0]}")
    largest = max(array.max(), -array.min())
    low, high = np.array(SIZES[array.dtype], array.dtype)  # rounded as the entries are
    if largest != 0 and not low <= largest <= high:
        bounds = f"between {low:g} and {high:g}"
        raise ValueError(f"{name} must have a largest absolute entry {bounds}, got {largest!s}: change the unit")


def as_matrix(value: ArrayLike, name: str) -> FloatArray:
    """Return a finite, non-empty matrix of float32 or float64; it may share memory with ``value``.

    Parameters
    ----------
    value : array_like, shape (m, n)
        Real numbers. Float32 stays float32, float16 becomes float32, everything else float64.
    name : str
        The argument's name, for the message.

    Returns
    -------
    ndarray, shape (m, n)

    Raises
    ------
    TypeError
        If ``value`` holds anything but real numbers, or is a masked array.
    ValueError
        If it is ragged, empty, has other than two axes, holds NaN or infinity, or if its largest absolute entry is
        outside 1e-75 .. 1e75 (float32: 1e-12 .. 1e12). Zeros alone are fine.
    """
    array = as_float_array(value, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix (two axes), got shape {array.shape}")
    _check_entries(array, name)
    return array


def as_vector(value: ArrayLike, name: str) -> FloatArray:
    """Return a finite, non-empty vector of float32 or float64; otherwise like `as_matrix`."""
    array = as_float_array(value, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector (one axis), got shape {array.shape}")
    _check_entries(array, name)
    return array


def as_vectors(value: ArrayLike, name: str) -> FloatArray:
    """Return one finite vector or many, along the last axis, of float32 or float64; otherwise like `as_matrix`."""
    array = as_float_array(value, name)
    if array.ndim == 0:
        raise ValueError(f"{name} must be a vector or an array of vectors (at least one axis), got shape ()")
    _check_entries(array, name)
    return array


def as_spectrum(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return singular values as float64: a vector that is non-negative and never rises."""
    s = as_vector(value, name).astype(np.float64)
    if (s < 0).any():
        raise ValueError(f"{name} must be non-negative, got {s[s < 0][0]}")
    rises = np.flatnonzero(s[1:] > s[:-1])
    if rises.size:
        i = int(rises[0])
        raise ValueError(f"{name} must be non-increasing, got {s[i]} before {s[i + 1]}")
    return s


def check_integer(value: object, name: str, low: int, high: int | None = None, high_name: str = "") -> int:
    """Return ``value`` as a Python int between ``low`` and ``high``, both included.

    Parameters
    ----------
    value : int or numpy integer
        A bool or a float is refused, even a whole one.
    name : str
        The argument's name, for the message.
    low, high : int
        The bounds; ``high=None`` leaves the upper end open.
    high_name : str
        What the upper bound is, for the message: ``"min(m, n)"``.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If ``value`` is not an integer.
    ValueError
        If it lies outside the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {_show(value)}")
    number = int(value)
    if high is None:
        if number < low:
            raise ValueError(f"{name} must be at least {low}, got {number}")
    elif not low <= number <= high:
        raise ValueError(f"{name} must be between {low} and {high_name} = {high}, got {number}")
    return number


def check_rank(k: object, shape: tuple[int, ...], name: str = "k") -> int:
    """Return a rank as a Python int between 1 and min(m, n), or refuse it as `check_integer` does."""
    return check_integer(k, name, 1, min(shape), "min(m, n)")


def check_real(value: object, name: str, rule: str, low: float, high: float = math.inf) -> float:
    """Return ``value`` as a float with ``low <= value < high``, or refuse it with ``rule``.

    Parameters
    ----------
    value : float
        Any real number; a bool is refused.
    name : str
        The argument's name, for the message.
    rule : str
        The rule in words, for the message: ``"at least 0 and below 1"``.
    low, high : float
        The bounds, the lower included and the upper not.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If ``value`` is not a real number.
    ValueError
        If it is NaN or outside the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {_show(value)}")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction beyond every float
        number = -math.inf if value < 0 else math.inf
    if not low <= number < high:  # written so that NaN fails
        raise ValueError(f"{name} must be {rule}, got {number}")
    return number


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``; a ``TypeError`` if it is not a string, else a ``ValueError``."""
    rule = " or ".join(f'"{choice}"' for choice in choices)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {rule}, got {_show(value)}")
    if value not in choices:
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return value


def check_rng(rng: object, name: str = "rng") -> np.random.Generator:
    """Return the generator that came in, or a new, unseeded one for ``None``; refuse anything else."""
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"{name} must be a numpy.random.Generator or None, got {_show(rng)}")
    return rng
