"""Check the arguments of public functions, so that all modules refuse in the same words.

Messages read "*argument* must be *rule*, got *value*", where ``name`` is the argument. A wrong type
is a ``TypeError``, a wrong value a ``ValueError``. Past these checks the formulas are those of the
chapters.
"""

import math
import numbers
import reprlib
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating]
# Multiplies as ``a @ x`` and ``a.T @ y``: an array, a sparse matrix, or an operator of SciPy.
Factor: TypeAlias = Any

# Bounds of the largest entry of an array, by its type, so that squares, products and sums neither
# overflow nor vanish.
SIZES = {"d": (1e-75, 1e75), "f": (1e-12, 1e12)}


def _show(value: object) -> str:
    """Name a refused value on one line, shortened."""
    return " ".join(reprlib.repr(value).split())


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Convert a value to an array of any dtype."""
    # NumPy would misread both. A method tells SciPy's sparse arrays, without importing SciPy.
    if isinstance(value, np.ma.MaskedArray) or hasattr(value, "tocsr"):
        raise TypeError(f"{name} must be neither masked nor sparse, got {type(value).__name__}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; some of torch's tensors
        raise ValueError(f"{name} must be a rectangular array, got {_show(value)}") from error


def precision(dtype: np.dtype[Any]) -> type[np.floating]:
    """Return the type to compute in: float32 for float16 and float32, otherwise float64.

    The byte order may be any: files such as FITS hold big-endian numbers.
    """
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def as_float_array(value: Any, name: str) -> FloatArray:
    """Convert real numbers to a float array.

    float32 stays, float16 becomes float32, everything else float64.
    """
    array = as_array(value, name)
    if array.dtype.kind == "O" and hasattr(value, "select_dtypes"):  # pandas': bools beside numbers
        if all(column.kind in "biuf" for column in value.dtypes):
            array = np.asarray(value.astype(float))
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {_show(value)} of dtype {array.dtype}")
    return array.astype(precision(array.dtype), copy=False)


def check_shape(name: str, array: Any, axes: Sequence[str | int]) -> None:
    """Refuse an array or a tensor that does not have these axes.

    A name allows any size, a number only that size; "..." in front stands for further axes.
    """
    shape = tuple(array.shape)
    sizes = ("...", *shape[1 - len(axes) :]) if axes[0] == "..." else shape
    if len(sizes) != len(axes) or any(
        size != axis for size, axis in zip(sizes, axes, strict=True) if isinstance(axis, int)
    ):
        raise ValueError(f"{name} must have shape ({', '.join(map(str, axes))}), got shape {shape}")


def _check_entries(array: FloatArray, name: str) -> None:
    """Refuse an array that is empty or holds NaN, infinity, or an entry beyond `SIZES`.

    Zeros pass.
    """
    if array.size == 0:
        raise ValueError(f"{name} must be non-empty, got shape {array.shape}")
    largest = max(array.max(), -array.min())  # NaN where one is among them
    low, high = np.array(SIZES[array.dtype.char], array.dtype)  # rounded as the entries are
    if largest != 0 and not low <= largest <= high:  # written so that NaN fails
        raise ValueError(
            f"{name} must be finite, its largest absolute entry between {low:g} and {high:g}, "
            f"got {largest!s}"
        )


def as_matrix(
    value: ArrayLike, name: str, dtype: Any = None, axes: Sequence[str | int] = ("m", "n")
) -> FloatArray:
    """Return finite, non-empty numbers of float32 or float64 with these axes, as in `check_shape`.

    They may share memory with ``value``. What is computed in float64 anyway names that ``dtype``,
    so that only the bounds of float64 hold.
    """
    array = as_float_array(value, name)
    array = array if dtype is None else array.astype(dtype, copy=False)
    check_shape(name, array, axes)
    _check_entries(array, name)
    return array


def as_matrices(value: ArrayLike, name: str, dtype: Any = None) -> FloatArray:
    """Return one matrix or a stack (..., m, n), each matrix checked as `as_matrix` does."""
    array = as_matrix(value, name, dtype, ("...", "m", "n"))
    for index in np.ndindex(array.shape[:-2]):  # each has a unit of its own
        _check_entries(array[index], name)
    return array


def as_vector(value: ArrayLike, name: str, dtype: Any = None) -> FloatArray:
    """Return a finite, non-empty vector of float32 or float64; otherwise like `as_matrix`."""
    return as_matrix(value, name, dtype, ("n",))


def as_spectrum(value: ArrayLike, name: str) -> FloatArray:
    """Return singular values as float64: a vector that is non-negative and never rises."""
    s = as_vector(value, name, np.float64)
    if (np.diff(s, append=0) > 0).any():
        raise ValueError(
            f"{name} must be non-negative and non-increasing, as singular values are, "
            f"got {_show(s.tolist())}"
        )
    return s


def names_of(table: Any, fitted: list[Any] | None = None, name: str = "x") -> list[Any] | None:
    """Return the names of a table's columns, unless they only count them.

    Other names than those ``fitted`` are refused.
    """
    names = list(getattr(table, "columns", ()))
    if names == list(range(len(names))):
        return None
    if fitted and names != fitted:
        raise ValueError(f"{name} must have the columns {fitted} in this order, got {names}")
    return names


def as_new_rows(
    value: ArrayLike, name: str, width: int, names: list[Any] | None = None
) -> tuple[FloatArray, Any]:
    """Return rows in float64 for what was fitted to these columns, and the type they came in."""
    rows = as_matrix(value, name, np.float64, ("n", width))
    names_of(value, names, name)
    return rows, as_float_array(value, name).dtype


def as_factor(value: Any, name: str) -> Factor:
    """Return a dense matrix, a sparse one (CSR) that `as_matrix` would take, or an operator."""
    sparse = hasattr(value, "tocsr")
    if not sparse and not hasattr(value, "matmat"):
        return as_matrix(value, name)
    kind = np.dtype(value.dtype)
    if kind.kind not in "biuf" or len(value.shape) != 2:
        raise ValueError(
            f"{name} must be a matrix or an operator of real numbers, "
            f"got dtype {kind} and shape {value.shape}"
        )
    if not sparse:
        return value
    rows = value.tocsr().astype(precision(kind), copy=False)
    if rows.nnz:
        _check_entries(rows.data, name)
    return rows


def check_integer(
    value: object, name: str, low: int = 1, high: float = 2**53, high_name: str = ""
) -> int:
    """Return an integer from ``low`` to ``high``, called ``high_name`` in messages.

    A bool or a float is refused. Floats hold all integers up to 2**53.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {_show(value)}")
    number = int(value)
    if not low <= number <= high:
        upper = f"{high_name} = {high}" if high_name else "2**53" if high == 2**53 else high
        raise ValueError(f"{name} must be between {low} and {upper}, got {number}")
    return number


def check_rank(k: object, shape: tuple[int, ...]) -> int:
    """Return a rank as a Python int between 1 and min(m, n)."""
    return check_integer(k, "k", 1, min(shape), "min(m, n)")


def check_real(
    value: object, name: str, rule: str, low: float, high: float = sys.float_info.max
) -> float:
    """Return a real number with ``low <= value < high`` as a float; ``rule`` says so in words.

    A bool is refused.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {_show(value)}")
    number: Any = value
    if not low <= number < high:  # written so that NaN fails
        raise ValueError(f"{name} must be {rule}, got {number}")
    return float(number)


def check_fraction(value: object, name: str, low: float = math.ulp(0.0)) -> float:
    """Return a real number above 0, or with ``low=0`` at least 0, and below 1."""
    rule = f"{'above' if low else 'at least'} 0 and below 1"
    return check_real(value, name, rule, low, 1)


def check_choice(value: str, name: str, choices: Sequence[str]) -> str:
    """Return a string that is one of ``choices``."""
    if value not in choices:
        rule = " or ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be {rule}, got {_show(value)}")
    return value


def check_bool(value: object, name: str) -> bool:
    """Return True or False; anything else that Python would count as true or false is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_show(value)}")
    return value
