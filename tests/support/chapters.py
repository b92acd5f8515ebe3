"""Run the cells of a chapter, and find the judges of its explorers.

``tests/book/test_chapter_NN.py`` names a judge for each explorer of chapter NN: a function in plain
NumPy that takes the chapter's namespace and the sliders' values::

    EXPLORERS = {"rank-k-photo": judge}

    def judge(chapter: dict, *, k: int) -> dict[str, float]: ...
"""

import ast
import contextlib
import functools
import importlib
import io
import linecache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from lowrank_tutor import storyteller
from lowrank_tutor.kit import sliders
from lowrank_tutor.kit.sliders import Explorer

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]-*.md"))
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
WITH_EXPLORERS = [*CHAPTERS, *(ROOT / "book" / name for name in ("measured.md", "use-sliders.md"))]
CELL_LINES = 15  # of a cell that is shown

Numbers = dict[str, float]


class Ran(NamedTuple):
    """The names, explorers and printed lines that a chapter's cells leave behind."""

    namespace: dict[str, Any]
    explorers: dict[str, Explorer]
    printed: str
    shown: list[Any]  # what stands in the last line of each cell


def code_cells(path):
    """Return the code cells of a chapter in order, including those of its solutions."""
    import jupytext  # slow to load, and only the book's tests need it

    return [cell for cell in jupytext.read(path, fmt="md:myst").cells if cell.cell_type == "code"]


@functools.cache
def run(path):
    """Run a chapter's cells in order in one namespace, and keep their explorers."""
    namespace = {"__name__": "__main__"}
    explorers = {}
    shown = []
    make = sliders.explore

    @functools.wraps(make)
    def keep(*args, **words):
        explorer = make(*args, **words)
        assert explorer.name not in explorers, f"{path.name} names two explorers {explorer.name!r}"
        explorers[explorer.name] = explorer
        return explorer

    printed = io.StringIO()
    with (
        patch.object(sliders, "explore", keep),
        matplotlib.rc_context(),
        contextlib.redirect_stdout(printed),
    ):
        for number, cell in enumerate(code_cells(path), start=1):
            where = f"<{path.name}, code cell {number}>"
            linecache.cache[where] = (
                len(cell.source),
                None,
                cell.source.splitlines(True),
                where,
            )  # for tracebacks
            tree = ast.parse(cell.source)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, where, "exec"), namespace)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), where, "eval"), namespace))
        plt.close("all")
    return Ran(namespace, explorers, printed.getvalue(), shown)


@functools.cache
def judges(path):
    """Return the judges of a page's explorers by name."""
    subject = f"chapter_{path.stem[:2]}" if path in CHAPTERS else path.stem.replace("-", "_")
    return getattr(importlib.import_module(f"tests.book.test_{subject}"), "EXPLORERS", {})


@functools.cache
def explorers():
    """Return the page of every explorer that has a judge, without running a cell."""
    return {name: path for path in WITH_EXPLORERS for name in judges(path)}


class Position(NamedTuple):
    """The sliders' values at one position, the numbers expected there, and those that the explorer
    shows.
    """

    values: Numbers
    expected: Numbers
    own: Numbers


class Judged(NamedTuple):
    """An explorer, its page, and all of its positions."""

    path: Path
    explorer: Explorer
    positions: list[Position]


@functools.cache
def judged(name):
    """Compute the expected numbers of an explorer at every position."""
    path = explorers()[name]
    ran, judge = run(path), judges(path)[name]
    explorer = ran.explorers[name]
    everywhere = explorer.positions()
    return Judged(
        path,
        explorer,
        [Position(v, judge(ran.namespace, **v), explorer.numbers(**v)) for v in everywhere],
    )


def softmax(logits):
    """Return attention weights, a row for each query, by NumPy alone: the judge of several
    chapters.
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def share(told, *, attend=None, weights=None):
    """Return the share of right answers of the storyteller, each question counting once."""
    shares = storyteller.grade(
        functools.partial(storyteller.forward, weights=weights), told, attend=attend
    )
    asked = {job: sum(story.jobs.count(job) for story in told) for job in shares}
    return float(sum(shares[job] * asked[job] for job in shares) / sum(asked.values()))
