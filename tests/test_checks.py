"""Shared checks: what they accept, what they refuse, and each bound from both sides."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import torch

from lowrank_tutor._checks import (
    as_matrix,
    as_spectrum,
    as_vector,
    check_bool,
    check_choice,
    check_integer,
    check_real,
)
from lowrank_tutor.rank import numerical_rank


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")


class Table:
    """A table whose columns have types of their own, as pandas' do."""

    dtypes = (np.dtype(bool), np.dtype(float))

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, *_args, **_kwargs):
        return np.array(self.rows, dtype=object)

    def select_dtypes(self, _include):
        raise NotImplementedError

    def astype(self, dtype):
        return np.array(self.rows, dtype)


def integer(value, name):
    return check_integer(value, name, 2, 5, "the end")


def real(value, name):
    return check_real(value, name, "at least 0 and below 1", 0, 1)


def choice(value, name):
    return check_choice(value, name, ("up", "down"))


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (as_matrix, [
            [[1.0, np.nan]], np.zeros((0, 3)), NoArray(), np.ones((2, 2, 2)), [["a"]], [[1j]],
            np.ma.masked_equal([[1.0, 2.0]], 2.0), scipy.sparse.eye_array(2), [[1], [2, 3]],
            torch.ones(1, 1, device="meta"), torch.ones(1, 1, requires_grad=True),
            Table([[True, np.nan]]), torch.nn.Linear(1, 1),
        ]),
        (as_vector, [1.0, [[1.0]]]),
        (as_spectrum, [[1.0, 0.0, -2.0], np.eye(2), [3.0, 1.0, 2.0]]),
        (integer, [1, 6, True, np.array([3]), 3.0, torch.ones(1)]),
        (real, [1, -5e-324, True, math.nan, "0"]),
        (choice, [None, "left"]),
        (check_bool, [1, None]),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(check, values):
    for value in values:
        with pytest.raises((TypeError, ValueError), match=r"^x must .*, got .+$"):
            check(value, "x")


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (integer, 6, "x must be between 2 and the end = 5, got 6"),
        (real, 1, "x must be at least 0 and below 1, got 1"),
        (choice, "left", 'x must be "up" or "down", got \'left\''),
    ],
)
def test_messages_name_rule_and_value(check, value, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the whole text is compared)
        check(value, "x")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.float64, 1e-75, 1e75), (np.float32, 1e-12, 1e12)]
)
@pytest.mark.parametrize(("check", "shape"), [(as_matrix, (2, 1)), (as_vector, (2,))])
def test_bounds_of_largest_entry(check, shape, dtype, low, high):
    for sign in (1, -1):
        for edge in (dtype(low), dtype(high)):
            array = np.array([0, sign * edge], dtype=dtype).reshape(shape)
            np.testing.assert_array_equal(check(array, "x"), array)
        for beyond in (np.nextafter(dtype(low), dtype(0)), np.nextafter(dtype(high), np.inf)):
            array = np.array([0, sign * beyond], dtype=dtype).reshape(shape)
            with pytest.raises(ValueError, match=r"^x must be finite, its largest absolute entry"):
                check(array, "x")


def test_small_entries_pass():
    values = [[1.0, 1e-300], [-5e-324, 0.0]], [[0.0]], [[False]], np.float16([[6e-8]]), [[2**63]]
    for value in values:
        np.testing.assert_array_equal(as_matrix(value, "x"), np.asarray(value, dtype=np.float64))
    level = [3.0, 3.0, 0.0, 0.0]  # level steps, and zeros at the end
    np.testing.assert_array_equal(as_spectrum(level, "s"), level)
    assert numerical_rank(Table([[True, 0.5], [False, 2.0]])) == 2


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.uint64, np.float64),
        (bool, float),
    ],
)
def test_dtypes(given, kept):
    for check, value in ((as_matrix, [[1, 0]]), (as_vector, [1, 0])):
        array = check(np.array(value, dtype=given), "x")
        assert array.dtype == kept
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, value)
    assert as_matrix(eye := np.eye(2), "x") is eye  # no needless copy


def test_numbers_of_every_kind_pass():
    for value in (2, np.int8(2), 2**53):
        number = check_integer(value, "x", 2)
        assert (number, type(number)) == (value, int)
    assert (integer(2, "x"), integer(np.uint64(5), "x")) == (2, 5)
    for value in (0, Fraction(1, 2), np.float32(0.5), math.nextafter(1, 0)):
        number = real(value, "x")
        assert (number, type(number)) == (value, float)
    assert check_real(1.7e308, "x", "at least 0", 0) == 1.7e308
    assert choice("up", "x") == "up"
    assert check_bool(False, "x") is False
