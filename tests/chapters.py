"""Run a chapter as its reader would, and find what judges it.

A new chapter needs one test file. Whatever ``tests/test_*.py`` holds, it may name a judge for each explorer of the
chapter, a function in plain NumPy that takes what the chapter's cells have made and the sliders' values::

    EXPLORERS = {"rank-k-photo": judge}

    def judge(chapter: dict, *, k: int) -> dict[str, float]: ...
"""

import contextlib
import functools
import importlib
import io
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import jupytext
import matplotlib
import matplotlib.pyplot as plt
from nbformat import NotebookNode

from lowrank_tutor import explore
from lowrank_tutor.explore import Explorer

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]-*.md"))


Numbers = dict[str, float]


class Ran(NamedTuple):
    """What a chapter's cells leave behind."""

    namespace: dict[str, Any]
    explorers: dict[str, Explorer]
    printed: str


def code_cells(path: Path) -> list[NotebookNode]:
    """The code cells of a chapter, those of its folded solutions too, in reading order."""
    return [cell for cell in jupytext.read(path, fmt="md:myst").cells if cell.cell_type == "code"]


@functools.cache
def run(path: Path) -> Ran:
    """Execute a chapter's cells in order in one namespace, and keep the explorers that they make."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    explorers: dict[str, Explorer] = {}
    make = explore.explore

    @functools.wraps(make)
    def keep(*args: Any, **words: Any) -> Explorer:
        explorer = make(*args, **words)
        assert explorer.name not in explorers, f"{path.name} names two explorers {explorer.name!r}"
        explorers[explorer.name] = explorer
        return explorer

    printed = io.StringIO()
    with patch.object(explore, "explore", keep), matplotlib.rc_context(), contextlib.redirect_stdout(printed):
        for number, cell in enumerate(code_cells(path), start=1):
            where = f"<{path.name}, code cell {number}>"
            linecache.cache[where] = (len(cell.source), None, cell.source.splitlines(True), where)  # for tracebacks
            exec(compile(cell.source, where, "exec"), namespace)
        plt.close("all")
    return Ran(namespace, explorers, printed.getvalue())


def judges() -> dict[str, Callable[..., Numbers]]:
    """Every judge that a test file names, by the name of its explorer."""
    found: dict[str, Callable[..., Numbers]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if re.search(r"^EXPLORERS = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            named = importlib.import_module(path.stem).EXPLORERS
            assert not found.keys() & named.keys(), f"{path.name} judges again {sorted(found.keys() & named.keys())}"
            found |= named
    return found


class Position(NamedTuple):
    """One position: the sliders' values, the numbers that must be read there, and those that the explorer reads."""

    values: Numbers
    expected: Numbers
    own: Numbers


class Judged(NamedTuple):
    """An explorer, the chapter that makes it, and all of its positions."""

    path: Path
    explorer: Explorer
    positions: list[Position]


@functools.cache
def judged(name: str) -> Judged:
    """Ask an explorer's judge about every position."""
    (path,) = [p for p in CHAPTERS if name in run(p).explorers]
    ran, judge = run(path), judges()[name]
    explorer = ran.explorers[name]
    everywhere = explorer.positions()
    return Judged(path, explorer, [Position(v, judge(ran.namespace, **v), explorer.numbers(**v)) for v in everywhere])
