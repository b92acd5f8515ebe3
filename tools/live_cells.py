"""Decide from their text which cells of a page can run in a browser, and what they need there.

PyTorch does not run in a browser. A statement needs it if it imports a module that does, or uses a name that such a
statement has made. A cell with such a statement is not offered; its other statements still run, unseen, so that the
cells after it find their names.
"""

from __future__ import annotations

import ast
import functools
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "lowrank_tutor"
ALWAYS = {"numpy"}  # the first thing that a reader will import
STAND_INS = {"IPython"}  # live_run.py brings what a page needs of it


class Cell(NamedTuple):
    """A code cell: its text, whether it needs PyTorch, and the lines of it that do not."""

    source: str
    needs_torch: bool
    rest: str


class Page(NamedTuple):
    """A page: its cells, and the packages that Pyodide must load for them."""

    cells: list[Cell]
    packages: list[str]


def read_page(path: Path, lock: dict[str, Any]) -> Page:
    """Read a page's cells and find out what each of them needs."""
    notebook = read_myst_markdown_notebook(path.read_text(encoding="utf-8"), MdParserConfig())
    known = {name: key for key, entry in lock["packages"].items() for name in entry["imports"]}
    tainted: set[str] = set()
    generators: set[str] = set()
    imported: set[str] = set()  # their functions change nothing of theirs
    cells, modules = [], set(ALWAYS)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        kept = []
        whole = True
        for statement in _one_import_each(ast.parse(cell.source)):
            read, made = _mentioned(statement)
            if set(_imports(statement)) - set(known) or read & tainted:
                whole = False
                tainted |= made | (_changed(statement) - imported)
                if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    tainted |= read & generators  # it has drawn numbers that others would get
            else:
                tainted -= made
                generators = generators | made if "default_rng(" in ast.unparse(statement) else generators - made
                imported = imported | made if isinstance(statement, ast.Import | ast.ImportFrom) else imported - made
                kept.append(statement)
        cells.append((cell.source, whole, kept))
    result = []
    for source, whole, kept in cells:
        rest = [] if whole else kept[:-1] if kept and isinstance(kept[-1], ast.Expr) else kept
        for statement in kept if whole else rest:
            modules |= _imports(statement, lazily=True)
        result.append(Cell(source, not whole, "\n".join(map(ast.unparse, rest))))
    return Page(result, closure(lock, {known[name] for name in modules if name in known}))


def closure(lock: dict[str, Any], packages: set[str]) -> list[str]:
    """Add what the packages depend on."""
    found: set[str] = set()
    waiting = set(packages)
    while waiting:
        package = waiting.pop()
        found.add(package)
        waiting |= set(lock["packages"][package]["depends"]) - found
    return sorted(found)


def _one_import_each(tree: ast.Module) -> Iterator[ast.stmt]:
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield ast.ImportFrom(statement.module, [alias], statement.level)
        else:
            yield statement


def _mentioned(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Names of the page that a statement reads, its functions too, and names that it binds."""
    top = symtable.symtable(ast.unparse(statement), "cell", "exec")
    made = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    if isinstance(statement, ast.For):  # what it binds before it reads that is its own
        read = _mentioned(ast.Expr(statement.iter))[0]
        own = {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
        for inner in statement.body + statement.orelse:
            new, bound = _mentioned(inner)
            read |= new - own
            own |= bound if isinstance(inner, ast.Assign) else set()
        return read, made
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    read |= made if isinstance(statement, ast.AugAssign) else set()
    blocks = top.get_children()
    while blocks:
        block = blocks.pop()
        read |= {symbol.get_name() for symbol in block.get_symbols() if symbol.is_global()}
        blocks += block.get_children()
    return read, made


def _changed(statement: ast.stmt) -> set[str]:
    """Names whose values a statement changes: ``results.append(...)``, ``results[k] = ...``."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return set()  # it changes nothing before it is called
    calls = [
        node.value.func
        for node in ast.walk(statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    places = [
        node for node in ast.walk(statement) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    owners = [node.value for node in (*calls, *places) if isinstance(node, ast.Attribute | ast.Subscript)]
    return {owner.id for owner in owners if isinstance(owner, ast.Name)}


def _imports(statement: ast.AST, lazily: bool = False) -> set[str]:
    """Foreign modules that the imports of a statement bring along."""
    return set().union(*(_brought(module, name, lazily) for module, name in _asked(statement)))


def _asked(statement: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Every module that a statement imports, and what from it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def _names(node: ast.ImportFrom) -> set[str]:
    """Return what a statement calls the things that it imports."""
    return {alias.asname or alias.name for alias in node.names}


@functools.cache
def _brought(module: str, name: str | None, lazily: bool) -> set[str]:
    """Foreign modules behind ``from module import name``; with ``lazily`` those that its functions import, too."""
    if _is_foreign(module):
        return _foreign(module)
    found = set(_behind(module))
    if name is None:
        return found
    for own in _named(module, name):
        found |= _behind(own)
    tree = _tree(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in (None, module) and name in _names(node):
            found |= _brought(node.module, name, lazily)
        elif lazily and isinstance(node, ast.FunctionDef) and node.name == name:
            found |= _imports(tree)
    return found


@functools.cache
def _behind(module: str) -> frozenset[str]:
    """Foreign modules that a module of the package imports as soon as it is imported."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        for statement in _at_once(_tree(name).body):
            for other, part in _asked(statement):
                if _is_foreign(other):
                    found |= _foreign(other)
                else:
                    waiting += [other, *_named(other, part)]
    return frozenset(found)


def _at_once(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the imports that run with a module, also those inside ``with needed(...)``."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.With):
            yield from _at_once(statement.body)


def _named(module: str, name: str | None) -> list[str]:
    """Return the modules of the package that define a name of a module, even if it is imported on first use."""
    own = [f"{module}.{name}"] if _file(f"{module}.{name}") else []
    return own + [place for given, place in _given(module) if given == name]


@functools.cache
def _given(module: str) -> list[tuple[str, str]]:
    """Return the names that a module imports from others of the package, and from which."""
    nodes = [node for node in ast.walk(_tree(module)) if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if node.module and not _is_foreign(node.module)]
    return [(alias.name, node.module or "") for node in own for alias in node.names]


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] != PACKAGE


def _foreign(module: str) -> set[str]:
    return {module.partition(".")[0]} - (sys.stdlib_module_names | STAND_INS)


def _file(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@functools.cache
def _tree(module: str) -> ast.Module:
    path = _file(module)
    return ast.parse(path.read_text(encoding="utf-8")) if path else ast.Module([], [])
