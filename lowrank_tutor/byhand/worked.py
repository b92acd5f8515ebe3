"""A worked example as numbered steps, each a sentence, a formula and its value."""

import re
import textwrap
from typing import Any, NamedTuple

import sympy

# The terminal's form of every command used in a sentence.
PLAIN = {r"^\top": "ᵀ", "_": "", r"\sqrt{d}": "√d", r"\lambda": "λ"}


class Step(NamedTuple):
    """One step of a worked example: a sentence, its formula, and its value."""

    text: str  # its letters stand between dollar signs; there is no other mark-up
    latex: str  # without dollar signs
    # The exact SymPy object that the formula ends in (decimals aside), for the next step and for
    # tests.
    value: Any

    @property
    def plain(self) -> str:
        """The sentence for a terminal, its letters without mark-up: ``Wᵀ``."""
        return re.sub(r"\$(.*?)\$", lambda formula: _plain_formula(formula[1]), self.text)


class Worked(NamedTuple):
    """A worked example: its steps in order, and the result.

    >>> from lowrank_tutor.byhand import rank_one
    >>> print(rank_one([[1, 2], [3, 6]]))
    1. Row 1 is the first that is not zero. Call it v.
       ⎡1⎤
       ⎢ ⎥
       ⎣2⎦
    2. Every row is a multiple of v. The multiples form u.
       ⎡1⎤
       ⎢ ⎥
       ⎣3⎦
    3. Multiply u by v to check.
       ⎡1  2⎤
       ⎢    ⎥
       ⎣3  6⎦
    4. The matrix has 4 numbers, and the factors have 4, which saves nothing. One of the 4 is
       redundant, because 2u and v/2 give the same matrix: there are 3 degrees of freedom.
       (4, 4, 3)
    """

    steps: tuple[Step, ...]
    result: Any

    def _repr_markdown_(self) -> str:
        # No lists: Markdown parsers disagree on indented $$ blocks. One line a formula: a second
        # line could be mistaken for the underline of a heading.
        return "\n\n".join(
            f"**{i}.** {step.text}\n\n$${step.latex}$$"
            for i, step in enumerate(self.steps, start=1)
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{i}. {step.plain}\n{plain_text(step.value)}"
            for i, step in enumerate(self.steps, start=1)
        )

    def __repr__(self) -> str:
        return str(self)


def _plain_formula(latex: str) -> str:
    for command, letter in PLAIN.items():
        latex = latex.replace(command, letter)
    return latex


def saving(few: int, many: int) -> str:
    """Say in words how much ``few`` saves compared with ``many``."""
    if few == many:
        return "which saves nothing"
    return f"which saves {many - few}" if few < many else f"which costs {few - many} more"


def plain_text(value: Any) -> str:
    """Write a value for a terminal, indented."""
    order = None if getattr(value, "free_symbols", None) else "none"
    text: str = sympy.pretty(value, order=order, use_unicode=True, wrap_line=False)
    return textwrap.indent(text.replace("\N{SCRIPT SMALL E}", "e"), "   ")
