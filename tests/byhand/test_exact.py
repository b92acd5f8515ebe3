"""Exact numbers are accepted in every form; others are refused with their place, the rule and the
value.
"""

import inspect
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from sympy import Matrix, Rational

from lowrank_tutor import byhand
from lowrank_tutor.byhand.exact import as_exact_matrix

ONE_THIRD = Matrix([[Rational(1, 3), 2]])


@pytest.mark.parametrize(
    "a",
    [
        [["1/3", 2]],
        [[" +1/3 ", "2."]],
        ((Fraction(1, 3), Fraction(2)),),
        [[Rational(1, 3), sympy.Integer(2)]],
        ONE_THIRD,
        sympy.ImmutableMatrix(ONE_THIRD),
        np.array([[Fraction(1, 3), 2]], dtype=object),
        [np.array([Fraction(1, 3), np.int8(2)], dtype=object)],
    ],
    ids=str,
)
def test_forms_of_exact_numbers(a):
    assert as_exact_matrix("a", a) == ONE_THIRD


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_numpy_integers_do_not_overflow(dtype):
    a = as_exact_matrix("a", np.array([[100, 2], [3, 4]], dtype=dtype))
    assert a * a == Matrix([[10006, 208], [312, 22]])
    lowest = np.iinfo(dtype).min  # whose size the type does not hold
    assert list(as_exact_matrix("a", [np.array([lowest, 1], dtype=dtype)])) == [int(lowest), 1]


def test_vectors():
    assert as_exact_matrix("a", [1, 2], vector_allowed=True) == Matrix([1, 2])
    assert as_exact_matrix("a", [[1, 2]], vector_allowed=True) == Matrix([[1, 2]])
    assert list(as_exact_matrix("a", [["0.1", "-.5"]])) == [Rational(1, 10), Rational(-1, 2)]
    with pytest.raises(ValueError, match=r"^a must have 2 axes, a list of rows, got \[1, 2\]$"):
        as_exact_matrix("a", [1, 2])
    with pytest.raises(ValueError, match=r"^a must have 1 or 2 axes, got \[1, \[2\]\]$"):
        as_exact_matrix("a", [1, [2]], vector_allowed=True)


def test_limits_are_allowed():
    assert as_exact_matrix("a", np.eye(12, dtype=int)) == sympy.eye(12)
    longest = [[-(10**20) + 1, Fraction(1, 10**20 - 1)]]
    assert as_exact_matrix("a", longest).tolist() == longest


@pytest.mark.parametrize(
    ("bad", "error", "rule"),
    [
        (
            [[0.1, 1], [1, 1]],
            TypeError,
            r"\[0\]\[0\] must be .* got the float 0.1; write Fraction\(1, 10\)",
        ),
        (
            [[1, 1], [1, -2.0]],
            TypeError,
            r"\[1\]\[1\] must be a number given exactly .* got the float -2.0; write -2$",
        ),
        (
            np.float32,
            TypeError,
            "must be a list of rows of exact numbers, got <class 'numpy.float32'>",
        ),
        (
            torch.eye(2, device="meta"),
            TypeError,
            "must be a list of rows of exact numbers, got tensor",
        ),
        (
            torch.eye(2).to_sparse(),
            TypeError,
            "must be a list of rows of exact numbers, got tensor",
        ),
        (
            np.array([[0.25, 1], [1, 1]], dtype=np.float32),
            TypeError,
            r"got the float 0.25; write Fraction\(1, 4\)",
        ),
        ([[sympy.Float(0.5), 1]], TypeError, r"got the float 0.5.*; write Fraction\(1, 2\)"),
        ([[1e-300, 1]], TypeError, "got the float .*; write it as a Fraction"),
        ([[float("nan"), 1]], ValueError, r"\[0\]\[0\] must be finite, got nan"),
        ([[1, float("inf")]], ValueError, r"\[0\]\[1\] must be finite, got inf"),
        ([[1, sympy.nan]], ValueError, "must be finite, got nan"),
        ([[1, sympy.oo]], ValueError, "must be finite, got oo"),
        ([[1, sympy.Symbol("t")]], TypeError, "must be a number given exactly .* got t"),
        ([[1, sympy.sqrt(2)]], TypeError, r"got sqrt\(2\)"),
        ([[1, sympy.I]], TypeError, "got I"),
        ([[1, None]], TypeError, "got None"),
        ([[True, 1]], TypeError, "got True"),
        ([["1e3", 1]], ValueError, "got '1e3'"),
        ([["", 1]], ValueError, "got ''"),
        ([["1/0", 1]], ValueError, "must have a denominator other than zero, got '1/0'"),
        ([["1" * 61, 1]], ValueError, "must be a number given exactly .* got '111"),
        ([[10**20, 1]], ValueError, "must have at most 20 digits"),
        ([[1, -(10**5000)]], ValueError, "must have at most 20 digits"),
        ([[1, Fraction(1, 10**20)]], ValueError, "must have at most 20 digits"),
        ([[1, 2], [3]], ValueError, r"must have rows of one length, got lengths \[2, 1\]"),
        ([], ValueError, r"must have at least one row and one column, got \[\]"),
        (np.zeros((2, 0), dtype=int), ValueError, "must have at least one row and one column"),
        ([[[1, 2]]], ValueError, "must have .*2 axes"),
        ([1, [2, 3]], ValueError, "must have .*2 axes"),
        (5, TypeError, "must be a list of rows of exact numbers, got 5"),
        (None, TypeError, "must be a list of rows of exact numbers, got None"),
        ("12", TypeError, "must be a list of rows of exact numbers, got '12'"),
        ([[1] * 13], ValueError, r"at most 12 rows and columns, got shape \(1, 13\)"),
        ([[1]] * 13, ValueError, r"at most 12 rows and columns, got shape \(13, 1\)"),
    ],
)
def test_bad_numbers_are_refused(bad, error, rule):
    with pytest.raises(error, match=f"^name.*{rule}"):
        as_exact_matrix("name", bad)


# Good arguments for each function: in each in turn one number becomes a float, which is refused by
# name.
SQUARE = [[1, 2], [3, 5]]
ARGUMENTS = {
    "row_reduce": {"a": SQUARE},
    "rank_one": {"a": SQUARE},
    "svd_2x2": {"a": SQUARE},
    "bilinear": {"s": [1, 2], "u": SQUARE, "v": SQUARE, "h": [1, 2]},
    "softmax_attention": {"q": SQUARE, "k": SQUARE, "v": SQUARE},
    "linformer_attention": {"q": SQUARE, "k": SQUARE, "v": SQUARE, "e": SQUARE},
}


@pytest.mark.parametrize(
    ("function", "name"), [(f, name) for f, names in ARGUMENTS.items() for name in names]
)
def test_arguments_must_be_exact(function, name):
    called, given = getattr(byhand, function), ARGUMENTS[function]
    bad = [0.5, 1] if np.ndim(given[name]) == 1 else [[0.5, 1], [1, 1]]
    with pytest.raises(
        TypeError, match=rf"^{name}\S* must be a number given exactly .* write Fraction\(1, 2\)$"
    ):
        called(**{**given, name: bad})
    if np.ndim(given[name]) == 2:
        with pytest.raises(ValueError, match=f"^{name} must have .*2 axes"):
            called(**{**given, name: [1, 2]})


def test_all_arguments_are_listed():
    wanted = {
        name: list(inspect.signature(getattr(byhand, name)).parameters)
        for name in byhand.__all__
        if name.islower()
    }
    assert {name: list(given) for name, given in ARGUMENTS.items()} == wanted
