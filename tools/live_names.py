"""What does a cell do with the names of its page? Read from its text, with nothing but Python's own library.

For ``live_cells.py``, which asks when the site is made, and for ``live_needs.py``, which asks in the reader's browser.
"""

import ast
import functools
import symtable
from collections.abc import Iterator
from typing import NamedTuple

OURS = "lowrank_tutor"  # its functions change nothing that they are not given
STATELESS = {"default_rng", "Generator", "SeedSequence"}  # of the modules that draw random numbers
DRAWN = ".random"  # stands for the one source that np.random.normal() and its kin draw from
FAR = {"exec", "eval", "compile", "globals", "locals", "vars", "open", "setattr", "delattr", "__import__"}
CHANGES = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "fill",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
    "update",
}
AT_ONCE = {"listcomp", "setcomp", "dictcomp"}  # other blocks run later, or again


class Names(NamedTuple):
    """Names that a cell reads before it binds them, that its functions read at any time, that it binds (in any case).

    ``imports`` tells what an imported name stands for, unless that can be changed; ``called`` and ``changed`` are names
    whose methods it calls for their effect, and whose parts it writes. What a ``far`` cell does, its names do not tell.
    """

    read: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    imports: frozenset[tuple[str, str]] = frozenset()
    called: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    far: bool = False


@functools.cache
def names_of(source: str) -> Names:
    """Read a cell. One that is not Python does nothing when it runs."""
    try:
        tree = ast.parse(source)
        made = mentions(tree)[1]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Names()
    read, bound = read_first(tree.body)
    late = mentions(tree, later=True)[0]
    drawn = {DRAWN} if any(map(_draws, ast.walk(tree))) else set()
    imports = dict(_imports(tree))
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    fixed = {
        (name, what)
        for name, what in imports.items()
        if not (name in assigned or name.isupper() or "random" in what.split(".")[: -1 if name in STATELESS else None])
    }
    called, changed = _effects(tree)
    sets = map(frozenset[str], (read | drawn, late, made | drawn, bound, fixed, called, changed))
    return Names(*sets, far=bool((read | late) & FAR) or "*" in imports)


def mentions(tree: ast.AST, later: bool = False) -> tuple[set[str], set[str]]:
    """Names of the page that some code reads, its functions too (or they alone), and names that it binds."""
    top = symtable.symtable(ast.unparse(tree), "cell", "exec")
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    made = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    for node in ast.walk(tree):  # ``x += 1`` and ``del x`` read x, too
        targets = (
            [node.target] if isinstance(node, ast.AugAssign) else node.targets if isinstance(node, ast.Delete) else []
        )
        read |= made & {target.id for target in targets if isinstance(target, ast.Name)}
    inner: set[str] = set()
    waiting = [(block, False) for block in top.get_children()]
    while waiting:
        block, late = waiting.pop()
        late = late or block.get_name() not in AT_ONCE
        if late or not later:
            inner |= {symbol.get_name() for symbol in block.get_symbols() if symbol.is_global()}
        waiting += [(one, late) for one in block.get_children()]
    return (inner if later else read | inner), made


def read_first(statements: list[ast.stmt], made: frozenset[str] = frozenset()) -> tuple[set[str], frozenset[str]]:
    """Names that statements read before they bind them (a loop binds its own), and those that they bind in any case."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.For):
            found |= mentions(ast.Expr(statement.iter))[0] - made
            own = {node.id for node in ast.walk(statement.target) if isinstance(node, ast.Name)}
            found |= read_first(statement.body, made | own)[0] | read_first(statement.orelse, made)[0]
        else:
            read, new = mentions(statement)
            found |= read - made
            straight = isinstance(statement, ast.Assign | ast.FunctionDef | ast.Import | ast.ImportFrom)
            # ``a = b and (c := d)`` binds c perhaps
            made |= new if straight and not any(isinstance(n, ast.NamedExpr) for n in ast.walk(statement)) else set()
    return found, made


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name.partition(".")[0], alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _draws(node: ast.AST) -> bool:
    """Tell whether this is np.random.something, with the one source that all such functions share."""
    of_random = (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "random"
    )
    return of_random and node.attr not in STATELESS


def _effects(tree: ast.AST) -> tuple[set[str], set[str]]:
    called, changed = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed.add(_root(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called.add(_root(node.value.func))
        elif isinstance(node, ast.Attribute) and node.attr in CHANGES:
            changed.add(_root(node))
        elif isinstance(node, ast.Attribute) and node.attr.startswith(("set", "seed")):
            called.add(_root(node))
    return called, changed


def _root(node: ast.AST) -> str:
    """Return the name at which ``a.b[0].c(...)`` starts."""
    while not isinstance(node, ast.Name):
        inside = getattr(node, "value", None) or getattr(node, "func", None)
        if inside is None:
            return ""
        node = inside
    return node.id
