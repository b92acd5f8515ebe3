"""The checks at the door: what they let in, what they refuse, in which words, and each bound from both sides."""

import datetime
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import torch

from lowrank_tutor._checks import (
    as_matrix,
    as_spectrum,
    as_vector,
    as_vectors,
    check_choice,
    check_integer,
    check_rank,
    check_real,
    check_rng,
    check_size,
)


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")

    def __repr__(self):
        return "NoArray()"


REAL = "x must be an array of real numbers, got "
RECTANGLE = "x must be a rectangular array of real numbers, got "
MATRIX = "x must be a matrix (two axes), got shape "
VECTOR = "x must be a vector (one axis), got shape "
UNREADABLE = "x must be an array, got a tensor that NumPy cannot read: .detach().cpu().float() makes one that it can"
with np.errstate(over="ignore"):  # infinite where a long double is no longer than a double
    BEYOND_FLOAT64 = np.full((2, 2), np.longdouble(1e308) * 100)

# (check, value, error, message)
BAD_ARRAYS = [
    (as_matrix, [[1.0, np.nan]], ValueError, "x must be finite, got nan"),
    (as_matrix, [[1.0, np.inf]], ValueError, "x must be finite, got inf"),
    (as_matrix, np.float32([[1.0, -np.inf]]), ValueError, "x must be finite, got -inf"),
    (as_matrix, BEYOND_FLOAT64, ValueError, "x must be finite, got inf"),
    (
        as_matrix,
        [[1e300, 0.0]],
        ValueError,
        "x must have a largest absolute entry between 1e-75 and 1e+75, got 1e+300: change the unit",
    ),
    (as_matrix, np.zeros((0, 3)), ValueError, "x must be non-empty, got shape (0, 3)"),
    (as_matrix, np.zeros((3, 0)), ValueError, "x must be non-empty, got shape (3, 0)"),
    (as_matrix, [[1, 2], [3]], ValueError, RECTANGLE + "[[1, 2], [3]]"),
    (as_matrix, NoArray(), ValueError, RECTANGLE + "NoArray()"),
    (as_matrix, "one", TypeError, REAL + "'one'"),
    (as_matrix, [["1", "2"]], TypeError, REAL + "[['1', '2']]"),
    (as_matrix, np.array([["a"]]), TypeError, REAL + "dtype <U1"),
    (as_matrix, None, TypeError, REAL + "None"),
    (as_matrix, np.array([[1j]]), TypeError, REAL + "dtype complex128"),
    (as_matrix, np.array([[1, None]]), TypeError, REAL + "dtype object"),
    (as_matrix, [[10**30]], TypeError, REAL + f"[[{10**30}]]"),  # beyond 64 bits
    (as_matrix, [[datetime.date(2026, 1, 1)]], TypeError, REAL + "[[datetime.date(2026, 1, 1)]]"),
    (
        as_matrix,
        np.ma.masked_equal([[1.0, 2.0]], 2.0),
        TypeError,
        "x must be an array without a mask, got a masked array",
    ),
    (
        as_matrix,
        scipy.sparse.csr_array((2, 3)),
        TypeError,
        "x must be a dense array, got a sparse csr_array of shape (2, 3): .toarray() makes it dense",
    ),
    (as_matrix, torch.ones(4, 3, requires_grad=True), TypeError, UNREADABLE),
    (as_matrix, torch.ones(4, 3, dtype=torch.bfloat16), TypeError, UNREADABLE),
    (as_matrix, 3.0, ValueError, MATRIX + "()"),
    (as_matrix, [1.0, 2.0], ValueError, MATRIX + "(2,)"),
    (as_matrix, [], ValueError, MATRIX + "(0,)"),
    (as_matrix, np.ones((2, 2, 2)), ValueError, MATRIX + "(2, 2, 2)"),
    (as_vector, 1.0, ValueError, VECTOR + "()"),
    (as_vector, [[1.0]], ValueError, VECTOR + "(1, 1)"),
    (as_vector, [], ValueError, "x must be non-empty, got shape (0,)"),
    (as_vector, [1.0, np.nan], ValueError, "x must be finite, got nan"),
    (as_vector, ["1"], TypeError, REAL + "['1']"),
    (
        as_vectors,
        1.0,
        ValueError,
        "x must be a vector or an array of vectors (at least one axis), got shape ()",
    ),
    (as_vectors, np.zeros((2, 0)), ValueError, "x must be non-empty, got shape (2, 0)"),
    (as_vectors, [[[np.inf]]], ValueError, "x must be finite, got inf"),
    (as_vectors, [1j], TypeError, REAL + "[1j]"),
    (as_spectrum, [[1.0]], ValueError, VECTOR + "(1, 1)"),
    (as_spectrum, [1.0, 0.0, -2.0], ValueError, "x must be non-negative, got -2.0"),
    (as_spectrum, [3.0, 1.0, 2.0, 4.0], ValueError, "x must be non-increasing, got 1.0 before 2.0"),
]


@pytest.mark.parametrize(("check", "value", "error", "message"), BAD_ARRAYS)
def test_bad_arrays(check, value, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check(value, "x")


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float64, 1e-75, 1e75), (np.float32, 1e-12, 1e12)])
@pytest.mark.parametrize(("check", "shape"), [(as_matrix, (2, 1)), (as_vector, (2,)), (as_vectors, (2, 1, 1))])
def test_largest_entry_bounds(check, shape, dtype, low, high):
    outside = np.nextafter(dtype(low), dtype(0)), np.nextafter(dtype(high), dtype(np.inf))
    for sign in (1, -1):
        for edge in (dtype(low), dtype(high)):
            array = np.array([0, sign * edge], dtype=dtype).reshape(shape)
            np.testing.assert_array_equal(check(array, "x"), array)
        for size in outside:
            message = (
                f"x must have a largest absolute entry between {low:g} and {high:g}, got {size!s}: change the unit"
            )
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                check(np.array([0, sign * size], dtype=dtype).reshape(shape), "x")


def test_small_entries_pass():
    for value in ([[1.0, 1e-300], [-5e-324, 0.0]], [[0.0]], [[False]], np.float16([[6e-8]]), [[2**63]]):
        np.testing.assert_array_equal(as_matrix(value, "x"), np.asarray(value, dtype=np.float64))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (bool, np.float64),
    ],
)
def test_precision(given, kept):
    for check, value in ((as_matrix, [[1, 0]]), (as_vector, [1, 0]), (as_vectors, [[[1, 0]]])):
        array = check(np.array(value, dtype=given), "x")
        assert array.dtype == kept
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, value)
    assert as_spectrum(np.array([1, 0], dtype=given), "x").dtype == np.float64


def test_good_arrays_are_not_copied():
    a = np.eye(2)
    assert as_matrix(a, "x") is a
    assert as_vector(a[0], "x").base is a
    np.testing.assert_array_equal(as_spectrum([3, 3, 0, 0], "x"), [3.0, 3.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1, ValueError, "x must be at least 2, got 1"),
        (-5, ValueError, "x must be at least 2, got -5"),
        (True, TypeError, "x must be an integer, got True"),
        (np.bool_(True), TypeError, f"x must be an integer, got {np.bool_(True)!r}"),
        (3.0, TypeError, "x must be an integer, got 3.0"),
        (math.nan, TypeError, "x must be an integer, got nan"),
        ("3", TypeError, "x must be an integer, got '3'"),
        (None, TypeError, "x must be an integer, got None"),
        (np.array([3]), TypeError, "x must be an integer, got dtype int64"),
        (np.timedelta64(3), TypeError, f"x must be an integer, got {np.timedelta64(3)!r}"),
        pytest.param(10**5000, ValueError, "x must be below 2**4096 in size, got an integer of 16610 bits", id="huge"),
    ],
)
def test_bad_integers(value, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check_integer(value, "x", 2)
    if error is TypeError:
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            check_integer(value, "x", 2, 5, "the end")


def test_integer_bounds():
    for value in (2, np.int8(2), 10**400):
        number = check_integer(value, "x", 2)
        assert number == value
        assert type(number) is int
    assert [check_integer(value, "x", 2, 5, "the end") for value in (2, np.uint64(5))] == [2, 5]
    assert [check_rank(value, (3, 2), "x") for value in (1, 2)] == [1, 2]
    for value in (1, 6):
        with pytest.raises(ValueError, match=f"^x must be between 2 and the end = 5, got {value}$"):
            check_integer(value, "x", 2, 5, "the end")
    for value in (0, 3):
        with pytest.raises(ValueError, match=rf"^k must be between 1 and min\(m, n\) = 2, got {value}$"):
            check_rank(value, (2, 3))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1, ValueError, "x must be at least 0 and below 1, got 1.0"),
        (-5e-324, ValueError, "x must be at least 0 and below 1, got -5e-324"),
        (math.nan, ValueError, "x must be at least 0 and below 1, got nan"),
        (math.inf, ValueError, "x must be at least 0 and below 1, got inf"),
        (10**400, ValueError, "x must be at least 0 and below 1, got inf"),
        (-(10**400), ValueError, "x must be at least 0 and below 1, got -inf"),
        ("0.1", TypeError, "x must be a real number, got '0.1'"),
        (None, TypeError, "x must be a real number, got None"),
        (True, TypeError, "x must be a real number, got True"),
        (0.1j, TypeError, "x must be a real number, got 0.1j"),
        (np.array([0.1]), TypeError, "x must be a real number, got dtype float64"),
        (np.timedelta64(0), TypeError, f"x must be a real number, got {np.timedelta64(0)!r}"),
    ],
)
def test_bad_real_numbers(value, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        check_real(value, "x", "at least 0 and below 1", 0, 1)


def test_size_bounds():
    assert [check_size(value, "x", bits=3) for value in (1, np.int8(7))] == [1, 7]
    assert check_size(2**31 - 1, "x") == 2**31 - 1
    for value, rule in ((0, "at least 1"), (8, "below 2**3"), (10**30, "below 2**3")):
        with pytest.raises(ValueError, match=f"^{re.escape(f'x must be {rule}, got {value}')}$"):
            check_size(value, "x", bits=3)


def test_real_numbers():
    for value in (0, 0.5, Fraction(1, 2), np.float32(0.5), math.nextafter(1, 0)):
        number = check_real(value, "x", "at least 0 and below 1", 0, 1)
        assert number == value
        assert type(number) is float
    assert check_real(1.7e308, "x", "at least 0", 0) == 1.7e308
    with pytest.raises(ValueError, match=r"^x must be finite, got inf$"):
        check_real(10**400, "x", "finite", 0)


def test_choices():
    assert check_choice("up", "x", ("up", "down")) == "up"
    for value, error in (("left", ValueError), ("Up", ValueError), (None, TypeError), (2, TypeError)):
        with pytest.raises(error, match=f'^x must be "up" or "down", got {value!r}$'):
            check_choice(value, "x", ("up", "down"))


def test_generators_and_seeds():
    rng = np.random.default_rng(0)
    assert check_rng(rng) is rng
    assert check_rng(None).random() != check_rng(None).random()
    for seed in (0, 42, np.int64(42), 2**70):
        assert check_rng(seed).random() == np.random.default_rng(seed).random()
    with pytest.raises(ValueError, match=r"^rng must be at least 0, got -1$"):
        check_rng(-1)
    rule = r"a numpy\.random\.Generator, a seed \(an integer\) or None"
    for value, shown in (
        (0.0, r"0\.0"), (True, "True"), ("0", "'0'"), (np.random.RandomState(0), "RandomState"), (np.random, "<module"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"^rng must be {rule}, got {shown}"):
            check_rng(value)
