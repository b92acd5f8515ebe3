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
    als_half_step,
    bilinear,
    delta_rule,
    latent_scores,
    linear_discriminant,
    linformer_attention,
    lora,
    nmf_update,
    rank_one,
    row_reduce,
    semiseparable,
    softmax_attention,
    svd_2x2,
)

TOKENS = {"q": [[1, 1], [0, 2]], "k": [[2, 0], [0, 2], [1, 1]], "v": [[2, 0], [0, 4], [2, 0]]}
E, F = [["1/2", "1/2", 0], [0, 0, 1]], [[1, -1, 0], [0, "2/3", 1]]
A, B = [["1/2", -1], [0, 3], ["-2/3", 0]], [[4, 4], [5, "1/7"]]

EXAMPLES = {
    "reduced": (row_reduce, [[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]]),
    "reduced, zero": (row_reduce, [[0]]),
    "rank one": (rank_one, [["1/2", -2], [-3, 12]]),
    "scored": (bilinear, [1, 2], [[2, 1]], [[1, -1]], [3, 4]),
    "scored, tall": (bilinear, [1, "2/3", -3], [[1, 3, -1], [1, 0, 1]], [["3/2", 1], [0, -1]], [3, 4]),
    "decomposed, roots": (svd_2x2, [[3, 0], [4, 5]]),
    "decomposed, nested roots": (svd_2x2, [[1, 2], [3, 4]]),
    "decomposed, rotation": (svd_2x2, [[3, -4], [4, 3]]),
    "decomposed, rank 1": (svd_2x2, [[1, 2], [2, 4]]),
    "decomposed, zero": (svd_2x2, [[0, 0], [0, 0]]),
    "decomposed, fractions": (svd_2x2, [["1/3", 2], [-7, "5/11"]]),
    "nmf": (nmf_update, [[0, 2], [0, 3], [3, 1]], [[1, 1]] * 3, [[1, 2], [0, 2]]),
    "nmf, fractions and zeros": (nmf_update, [["1/2", 0, 3]], [[0, "2/3"]], [[1, 2, 0], ["1/3", 0, "5/2"]]),
    "als": (als_half_step, [[2, 3, 2], [3, None, 5], [None, None, None]], [[1, 0, 1], [0, 1, 1]]),
    "als, penalty": (als_half_step, [[2, 3, 2], [3, None, 5]], [[1, 0, 1], [0, 1, 1]], "1/2"),
    "als, one": (als_half_step, [[3]], [["-2/3"]]),
    "discriminant": (linear_discriminant, [[0, 2], [1, 1], [3, 1], [4, 0]], [[3, 2], [4, 1], [6, 1], [7, 0]]),
    "discriminant, fractions": (linear_discriminant, A, B),
    "softmax": (softmax_attention, *TOKENS.values()),
    "softmax, roots": (softmax_attention, [[1, 0], [1, -1]], [[1, 1], [2, 0]], [[1], ["1/3"]]),
    "softmax, one of each": (softmax_attention, [[1]], [[-1]], [[1]]),
    "linformer": (linformer_attention, *TOKENS.values(), E),
    "linformer, two matrices": (linformer_attention, *TOKENS.values(), E, F),
    "latents": (latent_scores, [[1], ["2/3"], [-1]], [[2, "1/2"]], [1, -1]),
    "update": (lora, [[2, 0], [0, "1/3"]], [[1], [2]], [[1, -1]], [1, "3/2"]),
    "update, smaller": (lora, [[2, 0]], [[1]], [[1, -1]], [1, 2], "1/2"),
    "delta": (delta_rule, [[1, 0], ["3/5", "4/5"]], [[5], [0]]),
    "delta, half": (delta_rule, [[1, 1]], [[2, -1]], "1/2"),
    "recurrence": (semiseparable, [1, "2/3", 1, -3], [1, 0, "1/2", 0]),
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
    matrices = [Matrix(a) if None not in np.ravel(a) else a for a in arguments if not isinstance(a, str)]
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
    nmf_update(big[:5, :4], big[:5, :2], big[:2, :4])
    assert nmf_update(ones, ones, ones).steps[-1].value == 0
    als_half_step(big, big[:3], 1)
    linear_discriminant(big[:, :2], big[:, 2:4])
    linformer_attention(ones, ones, ones, ones)
    assert time.process_time() - start < 10
