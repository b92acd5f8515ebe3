"""Every worked example reads alike in a notebook and a terminal, and leaves its arguments alone."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sympy import Matrix

from lowrank_tutor import byhand
from lowrank_tutor.byhand import (
    bilinear,
    linformer_attention,
    rank_one,
    row_reduce,
    softmax_attention,
    svd_2x2,
)

TOKENS = [[1, 1], [0, 2]], [[2, 0], [0, 2], [1, 1]], [[2, 0], [0, 4], [2, 0]]
E = [["1/2", "1/2", 0], [0, 0, 1]]
TALL = [1, "2/3", -3], [[1, 3, -1], [1, 0, 1]], [["3/2", 1], [0, -1]], [3, 4]
EXAMPLES = {
    "reduced": (row_reduce, [[0, -1, 3], [2, 4, 1], [1, 1, 1], [-1, 5, "1/2"]]),
    "reduced, zero": (row_reduce, [[0]]),
    "rank one": (rank_one, [["1/2", -2], [-3, 12]]),
    "scored": (bilinear, [1, 2], [[2, 1]], [[1, -1]], [3, 4]),
    "scored, tall": (bilinear, *TALL),
    "decomposed, roots": (svd_2x2, [[3, 0], [4, 5]]),
    "decomposed, nested roots": (svd_2x2, [[1, 2], [3, 4]]),
    "decomposed, rotation": (svd_2x2, [[3, -4], [4, 3]]),
    "decomposed, rank 1": (svd_2x2, [[1, 2], [2, 4]]),
    "decomposed, zero": (svd_2x2, [[0, 0], [0, 0]]),
    "decomposed, fractions": (svd_2x2, [["1/3", 2], [-7, "5/11"]]),
    "softmax": (softmax_attention, *TOKENS),
    "softmax, roots": (softmax_attention, [[1, 0], [1, -1]], [[1, 1], [2, 0]], [[1], ["1/3"]]),
    "softmax, one of each": (softmax_attention, [[1]], [[-1]], [[1]]),
    "linformer": (linformer_attention, *TOKENS, E),
}
# The formulas of each example, a line for each step, after the numbers of its sentence.
PRINTED = Path(__file__).with_name("printed.txt").read_text("utf-8").strip().split("\n\n")


def test_all_functions_have_examples():
    functions = {name for name in byhand.__all__ if name.islower()}
    assert {function.__name__ for function, *_ in EXAMPLES.values()} == functions


@pytest.mark.parametrize(
    ("name", "printed"), list(zip(EXAMPLES, PRINTED, strict=True)), ids=EXAMPLES
)
def test_examples_are_typeset(name, printed):
    function, *arguments = EXAMPLES[name]
    matrices = [Matrix(a) for a in arguments]
    before = pickle.dumps(matrices)
    worked = function(*matrices)
    assert pickle.dumps(matrices) == before
    lines = [" ".join([*re.findall(r"\d+", s.plain), s.latex]) for s in worked.steps]
    assert [f"% {name}", *lines] == printed.splitlines()
    markdown = worked._repr_markdown_()
    typeset = MarkdownIt().use(dollarmath_plugin).parse(markdown)
    plain = MarkdownIt("commonmark").parse(markdown)
    for i, step in enumerate(worked.steps):
        sentence, formula = typeset[4 * i + 1], typeset[4 * i + 3]
        assert (formula.type, formula.content) == ("math_block", step.latex)
        kinds = [child.type for child in sentence.children]
        assert kinds.count("math_inline") == step.text.count("$") / 2, "each letter is typeset"
        *_, text = plain[6 * i + 1].children  # no emphasis, no link, no lost backslash
        assert text.content == f" {step.text}"
        assert plain[6 * i + 4].children[0].content == f"$${step.latex}$$"
        assert not re.search(r"[\\$`*_<>\[\]{}^]", step.plain)


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


def test_largest_examples_are_worked():
    """A general simplifier would take hours."""
    big, ones = np.random.default_rng(0).integers(1, 10, (12, 12)), np.ones((12, 12), dtype=int)
    row_reduce(big)
    assert linformer_attention(ones, ones, ones, ones).result == Matrix(12 * ones)
