"""Which cells must run before another one, so that it finds what all above it leave behind? Read from their text.

Rather too many than too few. Cells belong together if they mention the same name, whatever they do with it, for it may
be changed there, also under a second name. A name that is bound anew is another one, unless a function reads it, which
may happen at any time. What is imported is only read, and what may change the whole program comes before all below it.
"""

from live_names import OURS, names_of

Node = tuple[str, int]  # a name, and the cell that has bound it
Makers = tuple[int | str, ...]  # what a name stands for: something imported, or what a cell, and perhaps others, made


def bind(makers: Makers, name: str, cell: int, source: str) -> Makers:
    """Return what a name stands for when one more cell has run."""
    names = names_of(source)
    if name not in names.made:
        return makers
    what = dict(names.imports).get(name, cell)
    return (what,) if name in names.bound else (*(one for one in makers if one != what), what)


class Page:
    """The cells of a page, as they stand."""

    def __init__(self, cells: list[str]) -> None:
        self.cells = cells
        self.names = [names_of(cell) for cell in cells]
        self.tied = self._tie()
        self.far = self._find_far()
        self.known: dict[int, list[int]] = {}

    def needs(self, last: int) -> list[int]:
        """Cells above one that it needs, in their order."""
        if last not in self.known:
            together, before = {last}, set[int]()
            while together != before:
                before, nodes = together, set[Node]().union(*(self.tied[i] for i in together))
                together = together | {i for i in range(last) if self.tied[i] & nodes}
            apart = {i for i in range(last) if i in self.far or any(self._imports_for(i, one) for one in together)}
            found = together.union(*(self.needs(i) for i in apart - together), apart)
            self.known[last] = sorted(found - {last})
        return self.known[last]

    def makers(self, name: str, cells: list[int]) -> Makers:
        """Return what a name stands for after some cells."""
        makers: Makers = ()
        for i in cells:
            makers = bind(makers, name, i, self.cells[i])
        return makers

    def _tie(self) -> list[set[Node]]:
        data = {name for one in self.names for name in one.made - dict(one.imports).keys()}
        late = set[str]().union(*(one.late for one in self.names)) & data
        now: dict[str, set[Node]] = {name: {(name, -1)} for name in late}
        tied = []
        for i, one in enumerate(self.names):
            mine = set[Node]().union(*(now.get(name, set()) for name in one.read | (one.late & late)))
            for name in one.made:
                new = {(name, -1 if name in late else i)} - {(name, i) for name in dict(one.imports)}
                now[name] = new if name in one.bound - late else new | now.get(name, set())
                mine |= new
            tied.append(mine)
        return tied

    def _imports_for(self, i: int, other: int) -> bool:
        """Tell whether a cell imports what another one reads, or may read later."""
        reader = self.names[other]
        return any(
            name in (reader.read | reader.late if i < other else reader.late) for name, _ in self.names[i].imports
        )

    def _find_far(self) -> set[int]:
        imports = {pair for one in self.names for pair in one.imports}
        every = {name for name, _ in imports}
        foreign = {name for name, what in imports if what.partition(".")[0] != OURS}
        return {i for i, one in enumerate(self.names) if one.far or one.called & foreign or one.changed & every}


class Runs:
    """What has run so far, in the Python that the page has started."""

    def __init__(self) -> None:
        self.ran: dict[int, tuple[int, str]] = {}  # the time and the text of a cell's last run
        self.bound: dict[str, Makers] = {}
        self.time = 0

    def note(self, cell: int, source: str) -> None:
        """Write down that a cell runs."""
        self.time += 1
        self.ran[cell] = self.time, source
        for name in names_of(source).made:
            self.bound[name] = bind(self.bound.get(name, ()), name, cell, source)

    def plan(self, cells: list[str], last: int) -> list[int]:
        """Return which cells must run now, in this order, so that the last of them can."""
        page, trial = Page(cells), Runs()
        trial.ran, trial.bound, trial.time = dict(self.ran), dict(self.bound), self.time
        needed, order = page.needs(last), list[int]()
        for one in needed:
            if trial.stands(page, one, last):
                continue
            if not all(trial.stands(page, each, one) for each in page.needs(one)):
                return [*needed, last]  # names that it needs stand for something else by now
            trial.note(one, cells[one])
            order.append(one)
        return [*order, last]

    def stands(self, page: Page, one: int, reader: int) -> bool:
        """Tell whether what a cell has left behind is still what a reader of it needs."""
        time, source = self.ran.get(one, (0, None))
        if source != page.cells[one] or any(self.ran[each][0] > time for each in page.needs(one)):
            return False
        needed = page.needs(reader)
        read = page.names[reader].read.union(*(page.names[each].late for each in (*needed, reader)))
        expected = {name: page.makers(name, needed) for name in read & page.names[one].made}
        mine = {name for name, makers in expected.items() if dict(page.names[one].imports).get(name, one) in makers}
        return all(self.bound[name] == expected[name] for name in mine)
