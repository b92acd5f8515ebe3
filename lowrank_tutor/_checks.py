"""Check the arguments of public functions, so that every module refuses the same things in the same words.

Messages read "*argument* must be *rule*, got *value*", where ``name`` is the argument. A wrong type
is a ``TypeError``, a wrong value a ``ValueError``. Past these checks the formulas are those of the
chapters.
"""

import math
import numbers
import reprlib
from collections.abc import Container, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating]
Factor: TypeAlias = (
    Any  # multiplies as ``a @ x`` and ``a.T @ y``: an array, a sparse matrix or an `Operator`
)

# Bounds of the largest entry of an array, so that squares, products and sums neither overflow nor
# vanish.
SIZES = {np.dtype(np.float64): (1e-75, 1e75), np.dtype(np.float32): (1e-12, 1e12)}

NO_NUMBERS = (bool, np.timedelta64)  # though Python and NumPy count them among the integers
LARGEST = (
    2**4096
)  # Python writes out no integer of more than 4300 digits, and messages hold products of two


def _show(value: object) -> str:
    """Name a refused value on one line: the dtype of an array or a table, the (shortened) text of anything else."""
    try:
        is_array = hasattr(value, "__array__") and not isinstance(value, np.generic)
        return f"dtype {np.asarray(value).dtype}" if is_array else reprlib.repr(value)
    except (
        ValueError,
        TypeError,
        RuntimeError,
    ):  # integers of more than 4300 digits; tensors that refuse to be arrays
        return f"an unprintable {type(value).__name__}"


def is_sparse(value: Any) -> bool:
    """Recognize SciPy's sparse matrices and arrays by their methods, without importing SciPy."""
    return hasattr(value, "tocsr") and hasattr(value, "toarray")


def is_operator(value: Any) -> bool:
    """Recognize a linear operator, SciPy's or a look-alike, by its methods."""
    return all(hasattr(value, name) for name in ("matmat", "rmatmat", "shape"))


def as_array(value: Any, name: str, rule: str, advice: str = "") -> NDArray[Any]:
    """Convert a value to an array of any dtype, and refuse what NumPy would misread.

    ``rule`` says what the array must hold, and ``advice`` what else takes a sparse matrix or an
    operator.
    """
    if isinstance(value, np.ma.MaskedArray):  # its masked entries would silently count as numbers
        way = ".astype(float).filled(np.nan) makes gaps of what it hides"
        raise TypeError(f"{name} must be an array without a mask, got a masked array: {way}")
    if is_sparse(value) or is_operator(value):
        kind = "a sparse" if is_sparse(value) else "an operator,"
        way = ".toarray() makes it dense" if is_sparse(value) else "@ np.eye(n) makes it dense"
        refused = f"{kind} {type(value).__name__} of shape {value.shape}"
        raise TypeError(f"{name} must be a dense array, got {refused}: {way}{advice}")
    if getattr(value, "is_meta", False):  # torch's
        raise TypeError(f"{name} must be an array, got a meta tensor, which holds no numbers")
    try:
        return np.asarray(value)
    except (
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
    ):  # ragged lists; tensors that refuse to be arrays
        if hasattr(value, "detach"):
            dense = str(getattr(value, "layout", "torch.strided")) == "torch.strided"
            way = f"{'.detach().cpu().float()' if dense else '.to_dense()'} makes one that it can"
            raise TypeError(
                f"{name} must be an array, got a tensor that NumPy cannot read: {way}"
            ) from None
        raise ValueError(f"{name} must be {rule}, got {reprlib.repr(value)}") from None


def is_short_float(dtype: np.dtype[Any]) -> bool:
    """Recognize float16 and float32, in either byte order: files such as FITS hold big-endian numbers."""
    return dtype.kind == "f" and dtype.itemsize <= 4


def _precision(dtype: np.dtype[Any]) -> type[np.floating]:
    """Return the type to compute in: float32 for float16 and float32, otherwise float64."""
    return np.float32 if is_short_float(dtype) else np.float64


def as_float_array(value: Any, name: str, advice: str = "") -> FloatArray:
    """Convert real numbers to a float array: float32 stays, float16 becomes float32, everything else float64."""
    array = as_array(value, name, "a rectangular array of real numbers", advice)
    table = array.dtype.kind == "O" and hasattr(value, "select_dtypes")
    if (
        table
        and all(each.kind in "biuf" for each in value.dtypes)
        and not value.isna().to_numpy().any()
    ):
        array = np.asarray(value.astype(float))  # bools beside numbers
    if array.dtype.kind not in "biuf":
        ways = {
            "c": ": np.linalg.svd takes complex ones",
            "O": ": try .astype(float)" * hasattr(value, "astype")
            or ": .weight.detach().numpy() has its numbers" * hasattr(value, "weight"),
        }
        way = ways.get(array.dtype.kind, "")
        if hasattr(value, "select_dtypes"):
            way = ": .astype(float) reads NA and numbers in words, .select_dtypes(['number', 'bool']) drops other words"
        raise TypeError(f"{name} must be an array of real numbers, got {_show(value)}{way}")
    with np.errstate(
        over="ignore"
    ):  # a long double beyond float64 turns into an infinity, refused later
        return array.astype(_precision(array.dtype), copy=False)


def _check_entries(array: FloatArray, name: str) -> None:
    """Refuse an array that is empty, holds NaN or infinity, or whose largest entry is beyond `SIZES`; zeros pass."""
    if array.size == 0:
        raise ValueError(f"{name} must be non-empty, got shape {array.shape}")
    low, high = np.array(SIZES[array.dtype], array.dtype)  # rounded as the entries are
    # The norm lies between the largest entry and sqrt(size) times it: one pass settles it, but for
    # extreme cases.
    with np.errstate(over="ignore"):
        if array.flags.forc and 2 * low * math.sqrt(array.size) < np.linalg.norm(array) < high / 2:
            return
    largest = max(
        array.max(), -array.min()
    )  # NaN where one is among them, and two passes without a mask
    if not np.isfinite(largest):
        place = np.argwhere(~np.isfinite(array))[0]
        where = (
            f" at {place.tolist()}" if array.ndim > 1 else ""
        )  # a vector may be what a sparse matrix stores
        if array.ndim == 2 and np.isnan(largest):
            filled = f"lr.factorize_ratings({name} - m, None, k).estimates + m"
            where += f": to fill gaps, m = np.nanmean({name}, axis=0), then {filled}; "
            where += f"if units differ, divide {name} by np.nanstd({name}, axis=0) first"
        raise ValueError(f"{name} must be finite, got {array[tuple(place)]}{where}")
    if largest != 0 and not low <= largest <= high:
        bounds = f"between {low:g} and {high:g}"
        raise ValueError(
            f"{name} must have a largest absolute entry {bounds}, got {largest!s}: change the unit"
        )


def _as_finite(
    value: Any, name: str, rule: str, axes: Container[int], advice: str = "", way: str = ""
) -> FloatArray:
    """Return a finite, non-empty array of float32 or float64 with as many axes as ``rule`` says."""
    array = as_float_array(value, name, advice)
    if array.ndim not in axes:
        raise ValueError(f"{name} must be {rule}, got shape {array.shape}{way}")
    _check_entries(array, name)
    return array


def as_matrix(value: ArrayLike, name: str, advice: str = "") -> FloatArray:
    """Return a finite, non-empty matrix of float32 or float64; it may share memory with ``value``."""
    return _as_finite(value, name, "a matrix (two axes)", (2,), advice)


def as_matrices(value: ArrayLike, name: str, dtype: Any = None, advice: str = "") -> FloatArray:
    """Return one matrix or a stack of them, (..., m, n), of which each is checked as `as_matrix` does.

    What is computed in float64 anyway names that ``dtype``, so that only the bounds of float64
    hold.
    """
    array = as_float_array(value, name, advice)
    array = array if dtype is None else array.astype(dtype)
    if array.ndim < 2:
        raise ValueError(
            f"{name} must be a matrix (two axes) or a stack of matrices, got shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} must be non-empty, got shape {array.shape}")
    for index in np.ndindex(array.shape[:-2]):
        _check_entries(array[index], name + (str(list(index)) if index else ""))
    return array


def as_vector(value: ArrayLike, name: str) -> FloatArray:
    """Return a finite, non-empty vector of float32 or float64; otherwise like `as_matrix`."""
    return _as_finite(value, name, "a vector (one axis)", (1,))


def as_vectors(value: ArrayLike, name: str) -> FloatArray:
    """Return one finite vector or many, along the last axis, of float32 or float64; otherwise like `as_matrix`."""
    return _as_finite(
        value, name, "a vector or an array of vectors (at least one axis)", range(1, 99)
    )


def as_spectrum(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return singular values as float64: a vector that is non-negative and never rises."""
    way = ": np.linalg.svd(a, compute_uv=False) gives those of a matrix"
    # In float64 at once, as only the bounds of float64 hold for what is computed from them.
    wide = as_float_array(value, name).astype(np.float64)
    s = _as_finite(wide, name, "a vector (one axis)", (1,), way=way).astype(np.float64, copy=False)
    if (s < 0).any():
        raise ValueError(f"{name} must be non-negative, got {s[s < 0][0]}{way}")
    rises = np.flatnonzero(s[1:] > s[:-1])
    if rises.size:
        i = int(rises[0])
        raise ValueError(f"{name} must be non-increasing, got {s[i]} before {s[i + 1]}{way}")
    return s


def names_of(table: Any, fitted: list[Any] | None = None, name: str = "x") -> list[Any] | None:
    """Return the names of a table's columns, unless they only count them, and refuse others than those ``fitted``."""
    names = list(getattr(table, "columns", ()))
    if names == list(range(len(names))):
        return None
    if fitted and names != fitted:
        wanted, found = reprlib.repr(fitted), reprlib.repr(names)
        raise ValueError(f"{name} must have the columns {wanted} in this order, got {found}")
    return names


def as_new_rows(
    value: ArrayLike, name: str, width: int, names: list[Any] | None = None
) -> tuple[FloatArray, Any]:
    """Return rows for what was fitted to as many columns, of these names, in float64, and the type they came in."""
    original = as_float_array(value, name)
    rows = as_matrix(original.astype(np.float64), name)
    if rows.shape[1] != width:
        raise ValueError(f"{name} must have {width} columns, got shape {rows.shape}")
    names_of(value, names, name)
    return rows, original.dtype


class Operator:
    """A linear operator whose products are checked: they must be real and finite, and of the right shape."""

    def __init__(self, operator: Any, name: str, dtype: Any, turned: bool = False) -> None:
        self.shape = tuple(map(int, operator.shape[::-1] if turned else operator.shape))
        self.dtype = np.dtype(dtype)
        self._operator, self._name, self._turned = operator, name, turned

    @property
    def T(self) -> "Operator":
        """The transpose."""
        return Operator(self._operator, self._name, self.dtype, not self._turned)

    def __matmul__(self, x: FloatArray) -> FloatArray:
        try:
            product = np.asarray(
                (self._operator.rmatmat if self._turned else self._operator.matmat)(x)
            )
        except (
            TypeError,
            NotImplementedError,
            AttributeError,
        ) as error:  # SciPy asks for no rmatvec until it is used
            if not self._turned:
                raise
            rule = "an operator whose transpose multiplies too (give it rmatvec or rmatmat)"
            raise TypeError(
                f"{self._name} must be {rule}, got {type(error).__name__} from rmatmat"
            ) from error
        shape = (self.shape[0], x.shape[1])
        if product.dtype.kind not in "biuf" or product.shape != shape:
            rule = f"an operator of real numbers whose product has shape {shape}"
            raise ValueError(
                f"{self._name} must be {rule}, got dtype {product.dtype} and shape {product.shape}"
            )
        product = product.astype(self.dtype, copy=False)
        if not np.isfinite(product).all():
            raise ValueError(
                f"{self._name} must be finite, got {product[~np.isfinite(product)][0]} in a product"
            )
        return product


def as_factor(value: Any, name: str) -> Factor:
    """Return a dense matrix, a sparse one (CSR) that obeys the rules of `as_matrix`, or an `Operator`."""
    if not (is_sparse(value) or is_operator(value)):
        return as_matrix(value, name)
    noun, of = ("a matrix", "of") if is_sparse(value) else ("an operator", "on")
    kind = np.dtype(getattr(value, "dtype", None) or np.float64)
    if kind.kind not in "biuf":
        raise TypeError(f"{name} must be {noun} {of} real numbers, got dtype {kind}")
    if len(value.shape) != 2 or 0 in value.shape:
        raise ValueError(f"{name} must be {noun} with rows and columns, got shape {value.shape}")
    if not is_sparse(value):
        return Operator(value, name, _precision(kind))
    rows = value.tocsr()
    if rows.nnz:
        _check_entries(as_float_array(rows.data, name), name)
    return rows.astype(_precision(kind), copy=False)


def check_integer(
    value: object, name: str, low: int, high: int | None = None, high_name: str = ""
) -> int:
    """Return an integer from ``low`` to ``high``, which messages call ``high_name``; refuse a bool, and a float."""
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {_show(value)}")
    number = int(value)
    if abs(number) >= LARGEST:
        raise ValueError(
            f"{name} must be below 2**4096 in size, got an integer of {number.bit_length()} bits"
        )
    if number < low or (high is not None and number > high):
        upper = f"{high_name} = {high}" if high_name else f"{high}"
        rule = f"at least {low}" if high is None else f"between {low} and {upper}"
        raise ValueError(f"{name} must be {rule}, got {number}")
    return number


def check_size(value: object, name: str, low: int = 1, bits: int = 31) -> int:
    """Return an integer from ``low`` to below ``2**bits``: beyond that nothing fits into memory, or ever ends."""
    number = check_integer(value, name, low)
    if number >= 2**bits:
        raise ValueError(f"{name} must be below 2**{bits}, got {number}")
    return number


def check_rank(k: object, shape: tuple[int, ...], name: str = "k") -> int:
    """Return a rank as a Python int between 1 and min(m, n)."""
    return check_integer(k, name, 1, min(shape), "min(m, n)")


def check_real(value: object, name: str, rule: str, low: float, high: float = math.inf) -> float:
    """Return a real number with ``low <= value < high`` as a float; ``rule`` says so in words. A bool is refused."""
    if isinstance(value, NO_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {_show(value)}")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction beyond every float
        number = -math.inf if value < 0 else math.inf
    if not low <= number < high:  # written so that NaN fails
        raise ValueError(f"{name} must be {rule}, got {number}")
    return number


def check_choice(value: object, name: str, choices: Sequence[str], way: str = "") -> str:
    """Return a string that is one of ``choices``; ``way`` says what to do with another."""
    rule = " or ".join(f'"{choice}"' for choice in choices)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {rule}, got {_show(value)}")
    if value not in choices:
        raise ValueError(f"{name} must be {rule}, got {value!r}{way}")
    return value


def check_bool(value: object, name: str) -> bool:
    """Return True or False; anything else that Python would count as true or false is refused."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_show(value)}")
    return value


def check_rng(rng: object, name: str = "rng") -> np.random.Generator:
    """Return the generator itself, one made from a seed as ``numpy.random.default_rng`` does, or for None a new one."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, NO_NUMBERS) or not isinstance(rng, numbers.Integral):
        raise TypeError(
            f"{name} must be a numpy.random.Generator, a seed (an integer) or None, got {_show(rng)}"
        )
    return np.random.default_rng(check_integer(rng, name, 0))
