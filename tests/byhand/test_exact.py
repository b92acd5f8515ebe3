"""Exact numbers are accepted in every form; others are refused by the name of their argument."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from sympy import Matrix, Rational

from lowrank_tutor import byhand
from lowrank_tutor.byhand.exact import as_exact_matrix, as_exact_vector

ONE_THIRD = Matrix([[Rational(1, 3), 2]])


@pytest.mark.parametrize(
    "a",
    [
        [[" +1/3 ", "2."]],
        ((Fraction(1, 3), Fraction(2)),),
        [[Rational(1, 3), sympy.Integer(2)]],
        sympy.ImmutableMatrix(ONE_THIRD),
        np.array([[Fraction(1, 3), 2]], dtype=object),
        [np.array([Fraction(1, 3), np.int8(2)], dtype=object)],
    ],
    ids=str,
)
def test_forms_of_exact_numbers(a):
    assert as_exact_matrix("a", a) == ONE_THIRD


@pytest.mark.parametrize("dtype", [np.int8, np.uint64])
def test_numpy_integers_do_not_overflow(dtype):
    a = as_exact_matrix("a", np.array([[100, 2], [3, 4]], dtype=dtype))
    assert a * a == Matrix([[10006, 208], [312, 22]])
    lowest = np.iinfo(dtype).min  # whose size the type does not hold
    assert list(as_exact_matrix("a", [np.array([lowest, 1], dtype=dtype)])) == [int(lowest), 1]


def test_vectors_and_limits():
    assert as_exact_vector("a", [1, 2]) == Matrix([1, 2])
    assert as_exact_vector("a", [[1], [2]]) == Matrix([1, 2])
    assert list(as_exact_matrix("a", [["0.1", "-.5"]])) == [Rational(1, 10), Rational(-1, 2)]
    assert as_exact_matrix("a", np.eye(12, dtype=int)) == sympy.eye(12)
    longest = [[-(10**20) + 1, Fraction(1, 10**20 - 1)]]
    assert as_exact_matrix("a", longest).tolist() == longest


ENTRIES = [-2.0, np.float32(0.25), sympy.Float(0.5), float("nan"), sympy.nan, sympy.oo,
           sympy.Symbol("t"), sympy.sqrt(2), sympy.I, None, True, "", "1/0", "one", 10**20,
           -(10**5000), Fraction(1, 10**20)]  # fmt: skip
TABLES = [[], [1, 2], [1, [2]], [[1, 2], [3]], [[[1, 2]]], np.zeros((2, 0), int), 5, None, "12",
          [[1] * 13], [[1]] * 13, torch.eye(2)]  # fmt: skip


@pytest.mark.parametrize("bad", [*([[1, entry]] for entry in ENTRIES), *TABLES])
def test_bad_numbers_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match=r"^name must .*, got "):
        as_exact_matrix("name", bad)


# Good arguments of each function, and for each of them a wrong shape.
SQUARE, WIDE = [[1, 2], [2, 4]], [[1, 2, 3]]
ARGUMENTS = {
    "row_reduce": {"a": (SQUARE, [1, 2])},
    "rank_one": {"a": (SQUARE, [[1, 2], [3, 5]])},
    "svd_2x2": {"a": (SQUARE, WIDE)},
    "bilinear": {"s": ([1, 2], SQUARE), "u": (SQUARE, WIDE), "v": (SQUARE, [[1, 2]]),
                 "h": ([1, 2], [[1, 2]])},
    "softmax_attention": {"q": (SQUARE, [1]), "k": (SQUARE, WIDE), "v": (SQUARE, WIDE)},
    "linformer_attention": {"q": (SQUARE, [1]), "k": (SQUARE, WIDE), "v": (SQUARE, WIDE),
                            "e": (SQUARE, WIDE)},
}  # fmt: skip


@pytest.mark.parametrize("function", [name for name in byhand.__all__ if name.islower()])
def test_arguments_are_checked(function):
    called, both = getattr(byhand, function), ARGUMENTS[function]
    assert list(inspect.signature(called).parameters) == list(both)
    good = {name: value for name, (value, _) in both.items()}
    called(**good)
    for name, (_, shape) in both.items():
        for bad in (0.5, [[0.5, 1], [1, 1]], shape):
            with pytest.raises((TypeError, ValueError), match=rf"^{name} must .*, got "):
                called(**good | {name: bad})
