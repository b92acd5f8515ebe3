"""What is wrong with this argument? One line says so, in the same words everywhere.

No chapter: the modules of every chapter share these checks, so that each refuses the same things with the same words,
"*argument* must be *rule*, got *value*". A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

import math
import numbers
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating]

# Between these the largest entry of an array must lie, so that squares, products and sums neither overflow nor vanish.
# Checks stand at the door, and behind it the formulas are those of the chapters.
SIZES = {np.dtype(np.float64): (1e-75, 1e75), np.dtype(np.float32): (1e-12, 1e12)}

NO_NUMBERS = (bool, np.timedelta64)  # though Python and NumPy count them among the integers
LARGEST = 2**4096  # Python writes out no integer of more than 4300 digits, and messages hold products of two


Factor = Any  # what multiplies from both sides: an array, a sparse matrix or a linear operator


def _show(value: object) -> str:
    """Name a refused value in a few characters: the dtype of an array, the (shortened) text of anything else."""
    try:
        return f"dtype {value.dtype}" if isinstance(value, np.ndarray) else reprlib.repr(value)
    except ValueError:  # Python writes out no integer of more than 4300 digits
        return f"an unprintable {type(value).__name__}"


def is_sparse(value: Any) -> bool:
    """Say whether this is one of SciPy's sparse matrices or arrays, told by what it can do; SciPy is not imported."""
    return hasattr(value, "tocsr") and hasattr(value, "toarray")


def as_array(value: Any, name: str, rule: str) -> NDArray[Any]:
    """Convert a value to an array of any kind; refuse what NumPy would misread. ``rule`` says what it must hold."""
    if isinstance(value, np.ma.MaskedArray):  # its masked entries would silently count as numbers
        raise TypeError(f"{name} must be an array without a mask, got a masked array")
    if is_sparse(value):
        found = f"a sparse {type(value).__name__} of shape {value.shape}"
        raise TypeError(f"{name} must be a dense array, got {found}: .toarray() makes it dense")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, AttributeError):  # ragged lists; tensors that refuse to be arrays
        if hasattr(value, "detach"):
            way = ".detach().cpu().float() makes one that it can"
            raise TypeError(f"{name} must be an array, got a tensor that NumPy cannot read: {way}") from None
        raise ValueError(f"{name} must be {rule}, got {reprlib.repr(value)}") from None


def as_float_array(value: Any, name: str) -> FloatArray:
    """Turn real numbers into a float array: float32 stays, float16 becomes float32, all else float64."""
    array = as_array(value, name, "a rectangular array of real numbers")
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
    low, high = np.array(SIZES[array.dtype], array.dtype)  # rounded as the entries are
    # The norm lies between the largest entry and sqrt(size) times it: one pass settles it, but for extreme cases.
    with np.errstate(over="ignore"):
        if array.flags.forc and 2 * low * math.sqrt(array.size) < np.linalg.norm(array) < high / 2:
            return
    largest = max(array.max(), -array.min())  # NaN where one is among them, and two passes without a mask
    if not np.isfinite(largest):
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if largest != 0 and not low <= largest <= high:
        bounds = f"between {low:g} and {high:g}"
        raise ValueError(f"{name} must have a largest absolute entry {bounds}, got {largest!s}: change the unit")


def as_matrix(value: ArrayLike, name: str) -> FloatArray:
    """Return a finite, non-empty matrix of float32 or float64, as `as_float_array` does; it may share memory.

    Anything but real numbers is a ``TypeError``. A ``ValueError`` says what is ragged, empty or not finite, has other
    than two axes, or has its largest absolute entry outside `SIZES`; zeros alone are fine.
    """
    array = as_float_array(value, name)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix (two axes), got shape {array.shape}")
    _check_entries(array, name)
    return array


def as_factor(value: Any, name: str) -> Factor:
    """Return a dense or sparse matrix, or an operator, that multiplies as ``a @ x`` and ``a.T @ y``.

    A sparse matrix obeys the rules of `as_matrix`. An operator's products are not checked.
    """
    if hasattr(value, "rmatmat"):
        if np.dtype(value.dtype) not in SIZES:
            raise TypeError(f"{name} must be an operator on float32 or float64, got dtype {value.dtype}")
        return value
    if not is_sparse(value):
        return as_matrix(value, name)
    if value.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a matrix of real numbers, got dtype {value.dtype}")
    if len(value.shape) != 2 or 0 in value.shape:
        raise ValueError(f"{name} must be a matrix with rows and columns, got shape {value.shape}")
    rows = value.tocsr()
    if rows.nnz:
        _check_entries(as_float_array(rows.data, name), name)
    return rows.astype(np.float32 if rows.dtype in (np.float16, np.float32) else np.float64, copy=False)


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
    """Return ``value`` as a Python int from ``low`` to ``high``, which ``high_name`` names, as in ``"min(m, n)"``.

    A bool or a float is a ``TypeError``, even a whole one; what lies outside the bounds is a ``ValueError``.
    """
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {_show(value)}")
    number = int(value)
    if abs(number) >= LARGEST:
        raise ValueError(f"{name} must be below 2**4096 in size, got an integer of {number.bit_length()} bits")
    if high is None:
        if number < low:
            raise ValueError(f"{name} must be at least {low}, got {number}")
    elif not low <= number <= high:
        raise ValueError(f"{name} must be between {low} and {high_name} = {high}, got {number}")
    return number


def check_size(value: object, name: str, low: int = 1, bits: int = 31) -> int:
    """Return an integer from ``low`` to below ``2**bits``: what is longer fits into no memory, or never ends."""
    number = check_integer(value, name, low)
    if number >= 2**bits:
        raise ValueError(f"{name} must be below 2**{bits}, got {number}")
    return number


def check_rank(k: object, shape: tuple[int, ...], name: str = "k") -> int:
    """Return a rank as a Python int between 1 and min(m, n), or refuse it as `check_integer` does."""
    return check_integer(k, name, 1, min(shape), "min(m, n)")


def check_real(value: object, name: str, rule: str, low: float, high: float = math.inf) -> float:
    """Return ``value`` as a float with ``low <= value < high``; ``rule`` says so, as in ``"at least 0 and below 1"``.

    What is no real number, a bool included, is a ``TypeError``; NaN and what lies outside is a ``ValueError``.
    """
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Real):
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


def check_bool(value: object, name: str) -> bool:
    """Return ``value`` if it is True or False; what only counts as true or false is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_show(value)}")
    return value


def check_rng(rng: object, name: str = "rng") -> np.random.Generator:
    """Return the generator that came in, one made from a seed, or an unseeded one for ``None``; refuse anything else.

    A seed is an integer of at least 0, as in ``numpy.random.default_rng``: the same seed, the same numbers.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, NO_NUMBERS) or not isinstance(rng, numbers.Integral):
        raise TypeError(f"{name} must be a numpy.random.Generator, a seed (an integer) or None, got {_show(rng)}")
    return np.random.default_rng(check_integer(rng, name, 0))
