"""Plan which cells must run before another one, so that it finds the names it needs. Runs in the reader's browser.

Cells belong together if they mention the same name, whatever they do with it: it may be changed there, also under a
second name. What is only imported ties a cell to its import and to nothing else. A cell that the reader has changed
runs before everything below it, because its effect need not show in its names.
"""

from __future__ import annotations

import ast
import functools
from typing import NamedTuple


class Names(NamedTuple):
    """Names that a cell mentions, those that it imports, and those that it binds in any other way."""

    mentioned: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()


@functools.cache
def names_of(source: str) -> Names:
    """Read a cell; one that is not Python does nothing when it runs."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Names()
    names = [node for node in nodes if isinstance(node, ast.Name)]
    aliases = [node for node in nodes if isinstance(node, ast.alias)]
    defined = {node.name for node in nodes if node not in aliases and isinstance(getattr(node, "name", None), str)}
    bound = defined | {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    imported = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    return Names(frozenset(bound | {name.id for name in names}), frozenset(imported), frozenset(bound))


def needs(cells: list[str], changed: list[int], last: int) -> list[int]:
    """Return the cells above one that it needs, in the order of the page."""
    names = [names_of(cell) for cell in cells]
    shared = frozenset[str]().union(*(one.bound for one in names))
    found, before = {last, *(i for i in changed if i < last)}, set[int]()
    while found != before:
        before, wanted = found, frozenset[str]().union(*(names[i].mentioned for i in found))
        ties = [one.imported & wanted | (one.mentioned | one.imported) & wanted & shared for one in names[:last]]
        found = found | {i for i, names_in_both in enumerate(ties) if names_in_both}
    return sorted(found - {last})


class Runs:
    """What has run so far in the Python that the page has started."""

    def __init__(self) -> None:
        self.ran: dict[int, tuple[int, str]] = {}  # the time and the text of a cell's last run
        self.time = 0

    def note(self, cell: int, source: str) -> None:
        """Write down that a cell runs."""
        self.time += 1
        self.ran[cell] = self.time, source

    def plan(self, cells: list[str], changed: list[int], last: int) -> list[int]:
        """Return which cells must run now, in this order, so that the last of them can.

        What has run in the order of the page, as it stands now, does not run again. But where a cell from below has run
        since then, or one with another text, or a part of what is needed must be repeated, all of it runs anew.
        """
        needed = needs(cells, changed, last)
        others = (time for i, (time, text) in self.ran.items() if i > last or (i < last and text != cells[i]))
        since, stand = max(others, default=0), 0
        for i in needed:
            time, _ = self.ran.get(i, (0, ""))
            if time <= since:
                break
            since, stand = time, stand + 1
        again = any(i in self.ran for i in needed[stand:])
        return [*needed[0 if again else stand :], last]
