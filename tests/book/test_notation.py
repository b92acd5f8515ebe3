"""The table of notation agrees with the docstrings: each letter has the shapes that stand there, and no others."""

import importlib
import inspect
import re
from collections.abc import Iterator

import pytest
from chapters import ROOT

CONCEPTS = (ROOT / "book" / "api.md").read_text(encoding="utf-8").partition("## Figures, sliders and exercises")[0]
MODULES = re.findall(r"automodule:: lowrank_tutor\.(\w+)", CONCEPTS)
WHERE_NAMES_STAND = re.compile(r"^(?:Parameters|Returns|Attributes)\n-+\n(.*?)(?=\n\n\w[\w ]*\n-{3,}|\Z)", re.M | re.S)
# One size under several names: queries and keys may differ in number, values in width; batches lead.
ALIKE = {"n_queries": "n", "n_keys": "n", "max_len": "n", "d_v": "d", "query_dim": "d2", "key_dim": "d1"}
LEADING = {"batch", "heads", "..."}


def sizes(shape: str) -> tuple[str, ...]:
    """The last one or two sizes of a shape, under the names of the table."""
    parts = [part.strip() for part in re.split(r",(?![^(]*\))", shape.strip()[1:-1]) if part.strip()]
    return tuple(ALIKE.get(part, part) for part in parts if part not in LEADING)


def table() -> dict[str, set[tuple[str, ...]]]:
    """The shapes of each name in the last column."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for row in (ROOT / "book" / "notation.md").read_text(encoding="utf-8").splitlines():
        if row.startswith("|"):
            code = row.rstrip("| ").rsplit("|", 1)[1]
            for names, shape in re.findall(r"((?:`\w+`,? )+)(?:shape )?`(\(.*?\))`(?=[,;]|\s|$)", code):
                for name in re.findall(r"\w+", names):
                    found.setdefault(name, set()).add(sizes(shape))
    return found


def documented() -> Iterator[tuple[str, str, str]]:
    """Every object, name and shape in a docstring of the concept modules."""
    for module in (importlib.import_module(f"lowrank_tutor.{name}") for name in MODULES):
        own = [n for n, it in vars(module).items() if getattr(it, "__module__", "") == module.__name__ and n[0] != "_"]
        for name in getattr(module, "__all__", own):
            thing = getattr(module, name)
            methods = vars(thing).items() if inspect.isclass(thing) else []
            for where, it in [(name, thing), *((f"{name}.{m}", f) for m, f in methods if callable(f))]:
                text = "\n\n".join(WHERE_NAMES_STAND.findall(inspect.getdoc(it) or ""))
                for names, shapes in re.findall(r"^(\w+(?:, \w+)*) : (.*\(.*\).*)$", text, re.M):
                    for one in names.split(", "):
                        for shape in re.findall(r"\((?:[^()]|\([^()]*\))*\)", shapes):
                            yield f"{module.__name__}.{where}", one, shape


# A shape of numbers alone, such as (2, 2), is a case of a larger one.
LETTERS = sorted({it for it in documented() if len(it[1]) <= 2 and not all(size.isdigit() for size in sizes(it[2]))})


def test_the_table_and_the_docstrings_are_read():
    assert table()["a"] == {("m", "n"), ("n", "2"), ("r", "n"), ("n",)}
    assert sizes("(batch, heads, n_keys, d)") == ("n", "d")
    assert sizes("(min(m, n),)") == ("min(m, n)",)
    assert ("k", "n") in table()["e"]
    assert len(LETTERS) > 60


@pytest.mark.parametrize(("where", "name", "shape"), LETTERS)
def test_a_letter_of_a_docstring_has_a_shape_of_the_table(where, name, shape):
    assert sizes(shape) in table()[name], f"{name} {shape} of {where} is not in the table: {table()[name]}"


@pytest.mark.parametrize("name", sorted(table()))
def test_a_shape_of_the_table_stands_in_some_docstring(name):
    used = {sizes(shape) for _, one, shape in documented() if one == name}
    assert sorted(table()[name] - used) == []


def test_every_letter_of_the_table_stands_in_a_chapter():
    chapters = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "book").glob("0*.md")))
    formulas = "".join(re.findall(r"\$\$.*?\$\$|\$[^$\n]+\$", chapters, re.S))
    for row in re.findall(r"^\| \$(.*?)\$", (ROOT / "book" / "notation.md").read_text(encoding="utf-8"), re.M):
        letter = re.search(r"[A-Z]|\\(?!lVert|bar)[a-z]+|(?<![\\a-z])[a-z](?![a-z])", row)[0]
        assert letter in formulas, row
