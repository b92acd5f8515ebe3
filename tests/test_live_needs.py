"""After the cells that it needs, a cell finds what it would find after all cells above it."""

import contextlib
import io
import random

import pytest
from live_needs import Runs, needs

NUMPY = "import numpy as np\nA = np.ones(3)"


@pytest.mark.parametrize(
    ("cells", "changed", "needed"),
    [
        ([NUMPY, "b = 1", "print(A)"], [], [0]),
        ([NUMPY, "b = np.ones(2)", "print(np.ones(1))"], [], [0]),
        (["A = [1]", "A += [2]", "print(A)"], [], [0, 1]),
        (["A = [1]", "B = [A]", "for b in B: b[0] = 5", "print(A)"], [], [0, 1, 2]),
        (["A = [1]", "def f(): A.append(2)", "f()", "print(A)"], [], [0, 1, 2]),
        (["A = 1", "def f():\n    global A\n    A = 2", "f()", "print(A)"], [], [0, 1, 2]),
        (["def f(): return g()", "def g(): return 1", "print(f())"], [], [0, 1]),
        (["A = [1]", "del A", "print(A)"], [], [0, 1]),
        (["import math as A", "A = 2", "print(A)"], [], [0, 1]),
        (["exec('A = 1')", "print(A)"], [0], [0]),
        (["from math import *", "print(pi)"], [0], [0]),
        (["b = 1", "import numpy as np; np.set_printoptions(b)", "print(1 / 3)"], [1], [0, 1]),
        (["x = = 1", "print(1)"], [], []),
    ],
)
def test_needs_by_hand(cells, changed, needed):
    assert needs(cells, changed, len(cells) - 1) == needed


def inside(value, depth=5):
    """What a value holds, to a depth: lists may hold one another."""
    if isinstance(value, list | tuple):
        return [inside(one, depth - 1) for one in value] if depth else len(value)
    return value if isinstance(value, int | str) else type(value)


def result(cells, order, names):
    """What the last cell of an order prints, when they run in one Python."""
    names["show"] = lambda value: print(inside(value))
    for i in order:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(cells[i], names)
    return out.getvalue()


BIND = """
A = [1] | B = [A] | A = [*B] | B = 2 | C = [2] | C = F(A) | A = A, B | C = [B for B in A] | A = list(C) | A, B = B, A
C = (a for a in B) | B = lambda: C | C = B() | A: list = [4] | C = B or (A := [5]) | import math as A | del C; C = [6]
def F(x=0): return A | def F(x=0): return C, x | def A(x): return F(x) | for B in C: A = [B] | for A in []: pass
for C in A: C | if A: B = [A] | with memoryview(b"") as C: A = B
"""
CHANGE = """
A += [4] | B += [5] | A.append(6) | C.append(7) | A[0] = 8 | C[0] = B | F() | F(C) | B = A | C = A.pop()
[b.append(9) for b in list(B)] | def F(x=0): A.append(x); return A | def F(x=0): x.append(A) | if F(A): del A[0]
def F(x=0): global B; B = A, x | for C in list(A): C.append(1) | for C in list(A): B[-1] = C
"""
OTHERS = str.maketrans("ABCF", "DEGH")


def pages(statements, count=30):
    """Pages at random, with what each of their cells prints when all of them run; there, each comes to its end."""
    draw = random.Random(0)
    choices = [one.strip() for line in statements.strip().splitlines() for one in line.split("|")]
    while count:
        start = "A, B, C = [1], [2], [3]\ndef F(x=0): return B"
        cells = [start, start.translate(OTHERS)]
        for _ in range(6):
            lines = [
                *draw.choices(choices, k=draw.choice((1, 1, 2))),
                draw.choice(["show(A)", "show(C)", "show(F(B))"]),
            ]
            cells.append("\n".join(lines).translate(draw.choice([{}, OTHERS])))
        with contextlib.suppress(Exception):
            names: dict[str, object] = {}
            yield draw, cells, [result(cells, [i], names) for i in range(len(cells))]
            count -= 1


def test_needed_cells_suffice():
    saved = 0
    for _, cells, expected in pages(BIND + CHANGE):
        for last in range(len(cells)):
            order = Runs().plan(cells, [], last)
            assert result(cells, order, {}) == expected[last], (cells, order)
            saved += last + 1 - len(order)
    assert saved > 60


def test_names_after_edits():
    """As a reader works: change a cell, and run others, below and above it."""
    for draw, cells, _ in pages(BIND):
        runs, names, before, last = Runs(), {}, list(cells), None
        for _ in range(8):
            cells[draw.randrange(1, len(cells))] += draw.choice(["", "\nA = [1]", "\nC = [B]"])
            last = draw.choice([i for i in range(len(cells)) if i != last])  # twice the same one goes on where it was
            order = runs.plan(cells, [i for i in range(last) if cells[i] != before[i]], last)
            for i in order:
                runs.note(i, cells[i])
            assert result(cells, order, names) == result(cells, range(last + 1), {}), (cells, order)


def test_cells_run_once():
    cells = ["a = 1", "b = a", "c = 1", "print(b)", "a = 2"]
    runs = Runs()
    for last, order in ((3, [0, 1, 3]), (3, [3]), (2, [2]), (4, [4]), (3, [0, 1, 3]), (1, [0, 1])):
        assert runs.plan(cells, [], last) == order
        for i in order:
            runs.note(i, cells[i])
    cells[0] = "a = 3"
    assert runs.plan(cells, [0], 3) == [0, 1, 3]
