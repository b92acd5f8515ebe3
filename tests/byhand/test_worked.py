"""Every worked example reads alike in a notebook and a terminal, and leaves its arguments alone."""

import copy
import pickle
import time

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from sympy import Matrix
from worked import check_worked

from lowrank_tutor import byhand
from lowrank_tutor.byhand import (
    bilinear,
    linformer_attention,
    rank_one,
    row_reduce,
    softmax_attention,
    svd_2x2,
)

TOKENS = {"q": [[1, 1], [0, 2]], "k": [[2, 0], [0, 2], [1, 1]], "v": [[2, 0], [0, 4], [2, 0]]}
E = [["1/2", "1/2", 0], [0, 0, 1]]

EXAMPLES = {
    "reduced": (row_reduce, [[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]]),
    "reduced, zero": (row_reduce, [[0]]),
    "rank one": (rank_one, [["1/2", -2], [-3, 12]]),
    "scored": (bilinear, [1, 2], [[2, 1]], [[1, -1]], [3, 4]),
    "scored, tall": (
        bilinear,
        [1, "2/3", -3],
        [[1, 3, -1], [1, 0, 1]],
        [["3/2", 1], [0, -1]],
        [3, 4],
    ),
    "decomposed, roots": (svd_2x2, [[3, 0], [4, 5]]),
    "decomposed, nested roots": (svd_2x2, [[1, 2], [3, 4]]),
    "decomposed, rotation": (svd_2x2, [[3, -4], [4, 3]]),
    "decomposed, rank 1": (svd_2x2, [[1, 2], [2, 4]]),
    "decomposed, zero": (svd_2x2, [[0, 0], [0, 0]]),
    "decomposed, fractions": (svd_2x2, [["1/3", 2], [-7, "5/11"]]),
    "softmax": (softmax_attention, *TOKENS.values()),
    "softmax, roots": (softmax_attention, [[1, 0], [1, -1]], [[1, 1], [2, 0]], [[1], ["1/3"]]),
    "softmax, one of each": (softmax_attention, [[1]], [[-1]], [[1]]),
    "linformer": (linformer_attention, *TOKENS.values(), E),
}
each_example = pytest.mark.parametrize(
    ("function", "arguments"), [(f, rest) for f, *rest in EXAMPLES.values()], ids=EXAMPLES
)


def test_all_functions_have_examples():
    functions = {name for name in byhand.__all__ if name.islower()}
    assert {function.__name__ for function, *_ in EXAMPLES.values()} == functions


@each_example
def test_examples_read_alike(function, arguments):
    before = copy.deepcopy(arguments)
    check_worked(function(*arguments))
    assert arguments == before


@each_example
def test_arguments_are_left_alone(function, arguments):
    matrices = [Matrix(a) for a in arguments]
    before = pickle.dumps(matrices)
    function(*matrices)
    assert pickle.dumps(matrices) == before


def test_notebook_formats():
    worked = row_reduce([[1, 2], [2, 4]])
    formatter = DisplayFormatter()
    formatter.active_types = ["text/plain", "text/markdown", "text/latex", "text/html"]
    data, _ = formatter.format(worked)
    assert data == {"text/plain": str(worked), "text/markdown": worked._repr_markdown_()}


def test_steps_share_no_matrix():
    steps, result = row_reduce([[1, 2], [2, 4]])
    result[0, 0] = 99
    assert steps[-2].value == Matrix([[1, 2], [0, 0]])


def test_largest_examples_are_fast():
    big, ones = np.random.default_rng(0).integers(1, 10, (12, 12)), np.ones((12, 12), dtype=int)
    start = time.process_time()
    row_reduce(big)
    linformer_attention(ones, ones, ones, ones)
    assert time.process_time() - start < 10
