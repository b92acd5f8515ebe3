"""How is an answer judged? By one comparison, in a notebook and in a field of a page."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from importlib.resources import files
from types import EllipsisType
from typing import TYPE_CHECKING

import numpy as np

from lowrank_tutor.exercises.questions import ANOTHER_ORDER, QUESTIONS, Question, numbers_of
from lowrank_tutor.sphinxext import page_is_built

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

RIGHT, WRONG = "Right.", "Not yet."
WAITING = "Put your answer in place of the dots, and run the cell again."


@dataclass(frozen=True)
class Verdict:
    """What :func:`check` says. True if the answer is right; shows itself as the last line of a cell."""

    name: str
    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str | None:
        waiting_on_a_page = self.message == WAITING and page_is_built()
        return page_form(self.name, QUESTIONS[self.name]) if waiting_on_a_page else None


def check(name: str, answer: ArrayLike | EllipsisType) -> Verdict:
    """Compare an answer with that of an exercise.

    Parameters
    ----------
    name : str
        The exercise, such as ``"ex-rank-hand"``.
    answer : number or array_like of numbers, or ``...``
        As many numbers as the exercise asks for, in its order. With ``...`` the cell waits for an answer.

    Returns
    -------
    Verdict
        True if each number is near enough: exact for counts, within the rounding of the exercise otherwise. Its text is
        a hint if not.

    Raises
    ------
    TypeError
        If ``answer`` is not made of real numbers.
    ValueError
        If there is no such exercise, or a number is not finite.

    Examples
    --------
    >>> check("ex-rank-hand", 3)
    Not yet. After the two subtractions the second and the third row are the same: one of them adds nothing.
    >>> check("ex-rank-hand", 2)
    Right.
    """
    if name not in QUESTIONS:
        raise ValueError(f"name must be one of {', '.join(QUESTIONS)}, got {name!r}")
    if answer is ...:
        return Verdict(name, False, WAITING)
    question, given = QUESTIONS[name], _finite_numbers(answer)
    if len(given) != len(question.numbers):
        return Verdict(name, False, f"{WRONG} {_count_hint(question)}")
    if question.accepts(given):
        return Verdict(name, True, RIGHT)
    return Verdict(name, False, f"{WRONG} {question.hint(given)}")


def _finite_numbers(answer: ArrayLike) -> tuple[float, ...]:
    found = np.asarray(answer)
    try:
        if found.dtype.kind not in "iufO":  # O: fractions and SymPy's numbers
            raise TypeError
        numbers = tuple(map(float, found.ravel()))
    except TypeError:
        raise TypeError(f"answer must be a number or a list of numbers, got {answer!r}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"answer must be finite, got {answer!r}")
    return numbers


def _count_hint(question: Question) -> str:
    count = len(question.numbers)
    return "Give one number." if count == 1 else f"Give {count} numbers, in the order asked for."


def page_form(name: str, question: Question) -> str:
    """Return the field, the button and the script that compares as :func:`check` does."""
    content = {
        "right": question.numbers,
        "within": question.within,
        "hints": [[numbers_of(wrong), hint] for wrong, hint in question.hints],
        "otherwise": question.otherwise,
        "words": {"right": RIGHT, "wrong": WRONG, "count": _count_hint(question), "order": ANOTHER_ORDER},
    }
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    style, script = (
        files("lowrank_tutor.exercises").joinpath(f"exercises.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    asked = html.escape(question.ask.rstrip(":"))
    return f"""<form class="check" data-name="{name}" autocomplete="off" aria-label="Check your answer: {asked}">
<style>{style}</style>
<label>{html.escape(question.ask)} <input type="text" spellcheck="false" aria-describedby="{name}-said"></label>
<button type="submit" aria-label="Check: {asked}">Check</button>
<output id="{name}-said" aria-live="polite"></output>
<noscript><p>To check an answer here needs JavaScript.</p></noscript>
<script type="application/json">{data}</script>
<script>{script}</script>
</form>"""
