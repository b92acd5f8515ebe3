"""The table of notation and the docstrings give each letter the same shapes."""

import importlib
import inspect
import itertools
import re

import pytest
from chapters import ROOT

CONCEPTS = (
    (ROOT / "book" / "cheat-sheet.md")
    .read_text(encoding="utf-8")
    .partition("## Figures and exercises of the book")[0]
)
MODULES = [
    importlib.import_module(it) for it in re.findall(r"automodule:: (lowrank_tutor\.\w+)", CONCEPTS)
]
# One size under several names: queries and keys may differ in number, values in width; batches
# lead.
ALIKE = {
    "n_queries": "n",
    "n_keys": "n",
    "max_len": "n",
    "d_v": "d",
    "query_dim": "d2",
    "key_dim": "d1",
    "D": "dim",
}
LEADING = {"batch", "heads", "groups", "..."}

SHAPE = r"\((?:[\w.]+|min\(m, n\)),(?:\s*[\w.]+,?)*\)"
IN_A_LINE = re.compile(rf"^ *(\w+(?:, \w+)*) : (.*{SHAPE}.*)$", re.M)  # q, k : Tensor, shape (n, d)
IN_PROSE = re.compile(rf"((?:``\w+``(?:,| and|)\s+)+)({SHAPE})")  # ``q``, ``k`` (n, d)


def sizes(shape):
    """The last one or two sizes of a shape, under the names of the table."""
    parts = [
        part.strip() for part in re.split(r",(?![^(]*\))", shape.strip()[1:-1]) if part.strip()
    ]
    return tuple(ALIKE.get(part, part) for part in parts if part not in LEADING)


def table():
    """The shapes of each name in the last column."""
    found = {}
    for row in (ROOT / "book" / "glossary.md").read_text(encoding="utf-8").splitlines():
        for names, shape in re.findall(
            r"((?:`\w+`,? )+)(?:shape )?`(\(.*?\))`(?=[,;]|\s|$)", row.rpartition(" | ")[2]
        ):
            for name in re.findall(r"\w+", names):
                found.setdefault(name, set()).add(sizes(shape))
    return found


def docstrings():
    """The text of every concept module, and of its public objects and their methods."""
    for module in MODULES:
        own = [
            n
            for n, it in vars(module).items()
            if getattr(it, "__module__", "") == module.__name__ and n[0] != "_"
        ]
        things = [getattr(module, name) for name in getattr(module, "__all__", own)]
        methods = [
            it
            for thing in things
            if inspect.isclass(thing)
            for it in vars(thing).values()
            if callable(it)
        ]
        rooms = {inspect.getmodule(thing) for thing in things} - {None}
        for it in [module, *rooms, *things, *methods]:
            yield getattr(it, "__qualname__", module.__name__), inspect.getdoc(it) or ""


def documented():
    """Every shape in a docstring, with its letter and where it stands."""
    for where, text in docstrings():
        for listed, said in IN_A_LINE.findall(text) + IN_PROSE.findall(text):
            names, shapes = (
                re.findall(r"``(\w+)``", listed) or re.findall(r"\w+", listed),
                re.findall(SHAPE, said),
            )
            each = len(names) == len(shapes)  # u, v : shapes (k, d2) and (k, d1)
            for name, shape in (
                zip(names, shapes, strict=True) if each else itertools.product(names, shapes)
            ):
                yield where, name, sizes(shape)


DOCUMENTED = sorted(set(documented()))
# A shape with a number in it, such as (m, 1), is a case of a larger one.
LETTERS = [it for it in DOCUMENTED if len(it[1]) <= 2 and not any(size.isdigit() for size in it[2])]


@pytest.mark.parametrize(("where", "name", "shape"), LETTERS)
def test_docstring_shapes_are_listed(where, name, shape):
    one = (
        shape[1:] if shape[0] == "n" else shape
    )  # n vectors, a row each, may share the letter of one
    assert {shape, one} & table()[name], (
        f"{name} {shape} of {where} is not in the table: {table()[name]}"
    )


@pytest.mark.parametrize("name", sorted(table()))
def test_listed_shapes_are_documented(name):
    used = {shape for _, one, shape in DOCUMENTED if one == name}
    assert sorted(table()[name] - used) == []
