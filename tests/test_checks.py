"""Shared checks: what they accept, what they refuse, in which words, and each bound from both
sides.
"""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from lowrank_tutor._checks import (
    as_matrix,
    as_spectrum,
    as_vector,
    as_vectors,
    check_bool,
    check_choice,
    check_integer,
    check_rank,
    check_real,
    check_rng,
    check_size,
)
from lowrank_tutor.rank import numerical_rank


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")

    def __repr__(self):
        return "NoArray()"


def integer(value):
    return check_integer(value, "x", 2, 5, "the end")


def real(value):
    return check_real(value, "x", "at least 0 and below 1", 0, 1)


def choice(value):
    return check_choice(value, "x", ("up", "down"))


a, vector, vectors, spectrum = (
    lambda value, check=it: check(value, "x")
    for it in (as_matrix, as_vector, as_vectors, as_spectrum)
)


def refuse(error, call, value, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call(value)


REAL = "x must be an array of real numbers, got "
RECTANGLE = "x must be a rectangular array of real numbers, got "
MATRIX = "x must be a matrix (two axes), got shape "
VECTOR = "x must be a vector (one axis), got shape "
EMPTY = "x must be non-empty, got shape "
UNREADABLE = "x must be an array, got a tensor that NumPy cannot read: "
INTEGER = "x must be an integer, got "
NUMBER = "x must be a real number, got "
INSIDE = "x must be at least 0 and below 1, got "
WORD = 'x must be "up" or "down", got '
RNG = "rng must be a numpy.random.Generator, a seed (an integer) or None, got "

SPECTRUM = ": np.linalg.svd(a, compute_uv=False) gives those of a matrix"
CENTERED = "m = np.nanmean(x, axis=0), then lr.factorize_ratings(x - m, None, k).estimates + m"
UNITS = "if units differ, divide x by np.nanstd(x, axis=0) first"

WRONG_VALUES = [
    (a, [[1.0, np.nan]], f"x must be finite, got nan at [0, 1]: to fill gaps, {CENTERED}; {UNITS}"),
    (a, [[1.0, np.inf]], "x must be finite, got inf at [0, 1]"),
    (a, np.zeros((0, 3)), EMPTY + "(0, 3)"),
    (a, NoArray(), RECTANGLE + "NoArray()"),
    (a, np.ones((2, 2, 2)), MATRIX + "(2, 2, 2)"),
    (vector, 1.0, VECTOR + "()"),
    (vectors, 1.0, "x must be a vector or an array of vectors (at least one axis), got shape ()"),
    (spectrum, [1.0, 0.0, -2.0], "x must be non-negative, got -2.0" + SPECTRUM),
    (spectrum, np.eye(2), VECTOR + "(2, 2)" + SPECTRUM),
    (spectrum, [3.0, 1.0, 2.0, 4.0], "x must be non-increasing, got 1.0 before 2.0" + SPECTRUM),
    (integer, 1, "x must be between 2 and the end = 5, got 1"),
    (integer, 6, "x must be between 2 and the end = 5, got 6"),
    (lambda v: check_integer(v, "x", 2), 1, "x must be at least 2, got 1"),
    pytest.param(
        integer,
        10**5000,
        "x must be below 2**4096 in size, got an integer of 16610 bits",
        id="huge",
    ),
    (lambda v: check_rank(v, (2, 3)), 0, "k must be between 1 and min(m, n) = 2, got 0"),
    (lambda v: check_rank(v, (2, 3)), 3, "k must be between 1 and min(m, n) = 2, got 3"),
    (lambda v: check_size(v, "x", bits=3), 0, "x must be at least 1, got 0"),
    (lambda v: check_size(v, "x", bits=3), 8, "x must be below 2**3, got 8"),
    (real, 1, INSIDE + "1.0"),
    (real, -5e-324, INSIDE + "-5e-324"),
    (real, 10**400, INSIDE + "inf"),
    (lambda v: check_real(v, "x", "finite", 0), math.inf, "x must be finite, got inf"),
    (check_rng, -1, "rng must be at least 0, got -1"),
]


class Frame:
    """A table that prints itself over several lines, as pandas' do."""

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, *_args, **_kwargs):
        return np.array(self.rows, dtype=object)

    def __repr__(self):
        return "\n".join(map(str, self.rows * 9))

    def astype(self, _dtype):
        return self


class Mixed(Frame):
    """A table of columns with types of their own, as pandas' are."""

    dtypes = (np.dtype(bool), np.dtype(float))

    def select_dtypes(self, _include):
        raise NotImplementedError

    def isna(self):
        return self

    def to_numpy(self):
        return np.array([row[1] != row[1] for row in self.rows])

    def astype(self, dtype):
        return np.array(self.rows, dtype)


def test_tables_of_bools_and_numbers():
    assert numerical_rank(Mixed([[True, 0.5], [False, 2.0]])) == 2
    with pytest.raises(
        TypeError, match=r"got dtype object: \.astype\(float\) reads NA and numbers"
    ):
        numerical_rank(Mixed([[True, np.nan]]))


WRONG_TYPES = [
    (a, np.array([["a"]]), REAL + "dtype <U1"),
    (a, np.array([[1j]]), REAL + "dtype complex128: np.linalg.svd takes complex ones"),
    (a, Frame([[1, "x"]]), REAL + "dtype object: try .astype(float)"),
    (
        a,
        torch.nn.Linear(1, 1),
        REAL + "Linear(in_fea...=1, bias=True): .weight.detach().numpy() has its numbers",
    ),
    (integer, torch.ones(1, requires_grad=True), INTEGER + "an unprintable Tensor"),
    (
        a,
        np.ma.masked_equal([[1.0, 2.0]], 2.0),
        "x must be an array without a mask, "
        "got a masked array: .astype(float).filled(np.nan) makes gaps of what it hides",
    ),
    (
        a,
        torch.ones(1, 1, device="meta"),
        "x must be an array, got a meta tensor, which holds no numbers",
    ),
    (
        a,
        torch.ones(1, 1, requires_grad=True),
        UNREADABLE + ".detach().cpu().float() makes one that it can",
    ),
    (a, torch.eye(2).to_sparse(), UNREADABLE + ".to_dense() makes one that it can"),
    (integer, True, INTEGER + "True"),
    (integer, np.array([3]), INTEGER + "dtype int64"),
    (integer, np.timedelta64(3), INTEGER + repr(np.timedelta64(3))),
    (real, True, NUMBER + "True"),
    (choice, None, WORD + "None"),
    (lambda v: check_bool(v, "x"), 1, "x must be True or False, got 1"),
    (check_rng, "0", RNG + "'0'"),
]


@pytest.mark.parametrize(("call", "value", "message"), WRONG_VALUES)
def test_wrong_values_are_refused(call, value, message):
    refuse(ValueError, call, value, message)


@pytest.mark.parametrize(("call", "value", "message"), WRONG_TYPES)
def test_wrong_types_are_refused(call, value, message):
    refuse(TypeError, call, value, message)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.float64, 1e-75, 1e75), (np.float32, 1e-12, 1e12)]
)
@pytest.mark.parametrize(
    ("check", "shape"), [(as_matrix, (2, 1)), (as_vector, (2,)), (as_vectors, (2, 1, 1))]
)
def test_bounds_of_largest_entry(check, shape, dtype, low, high):
    rule = f"x must have a largest absolute entry between {low:g} and {high:g}, got"
    for sign in (1, -1):
        for edge in (dtype(low), dtype(high)):
            array = np.array([0, sign * edge], dtype=dtype).reshape(shape)
            np.testing.assert_array_equal(check(array, "x"), array)
        for size in (np.nextafter(dtype(low), dtype(0)), np.nextafter(dtype(high), dtype(np.inf))):
            array = np.array([0, sign * size], dtype=dtype).reshape(shape)
            refuse(ValueError, lambda v: check(v, "x"), array, f"{rule} {size!s}: change the unit")


def test_small_entries_pass():
    for value in (
        [[1.0, 1e-300], [-5e-324, 0.0]],
        [[0.0]],
        [[False]],
        np.float16([[6e-8]]),
        [[2**63]],
    ):
        np.testing.assert_array_equal(a(value), np.asarray(value, dtype=np.float64))
    np.testing.assert_array_equal(
        spectrum([3, 3, 0, 0]), [3.0, 3.0, 0.0, 0.0]
    )  # level steps and zeros at the end


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (">f8", np.float64),
        (np.uint64, np.float64),
        (bool, float),
    ],
)
def test_dtypes(given, kept):
    for check, value in ((as_matrix, [[1, 0]]), (as_vector, [1, 0]), (as_vectors, [[[1, 0]]])):
        array = check(np.array(value, dtype=given), "x")
        assert array.dtype == kept
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, value)
    assert a(eye := np.eye(2)) is eye  # no needless copy


def test_numbers_of_every_kind_pass():
    for value in (2, np.int8(2), 10**400):
        number = check_integer(value, "x", 2)
        assert (number, type(number)) == (value, int)
    assert [integer(value) for value in (2, np.uint64(5))] == [2, 5]
    assert [check_rank(value, (3, 2), "x") for value in (1, 2)] == [1, 2]
    assert [check_size(value, "x", bits=3) for value in (1, np.int8(7))] == [1, 7]
    assert check_size(2**31 - 1, "x") == 2**31 - 1
    for value in (0, 0.5, Fraction(1, 2), np.float32(0.5), math.nextafter(1, 0)):
        number = real(value)
        assert (number, type(number)) == (value, float)
    assert check_real(1.7e308, "x", "at least 0", 0) == 1.7e308
    assert choice("up") == "up"
    assert check_bool(False, "x") is False
