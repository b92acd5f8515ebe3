"""Where does a book of one's own keep its questions? Beside those of this book, for as long as Python runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from math import isfinite

from lowrank_tutor.exercises.questions import COUNTED, QUESTIONS, Answer, Question

OWN: dict[str, Question] = {}
MOST = len(COUNTED)  # numbers of an answer, and digits of a number


def register(
    name: str,
    ask: str | Sequence[str],
    right: Answer | Sequence[float],
    *,
    otherwise: str,
    hints: Mapping[Answer, str] | None = None,
    within: float = 0.0,
    digits: int = 3,
    note: str = "",
) -> None:
    """Register a question of your own, so that :func:`check` judges its answers, in a notebook and on a page.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, such as ``"ex-my-flux"``; not the name of an exercise of this book. Under a
        name of your own the last registration counts, so that a cell can be run again.
    ask : str, or sequence of str
        What is asked for: a name for each number, nine at most.
    right : number, or sequence of numbers
        The right answer. An integer must be met exactly.
    otherwise : str
        The hint for any wrong answer that has none of its own.
    hints : mapping, optional
        Hints for certain wrong answers: ``{0.5: "That is half of it."}``; a tuple where several numbers are asked for.
    within : float
        How near is near enough, relative to the answer: ``0.01`` for 1%. By default ``digits`` count.
    digits : int
        To how many digits a number that is not an integer must be right, from one to nine.
    note : str
        A sentence below the fields of the page, such as how the numbers may be written.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        If the name is taken by this book or not of that form, words are missing, there are not as many numbers as
        names, or a number is not finite.

    Examples
    --------
    >>> from lowrank_tutor.exercises import check
    >>> register("ex-my-flux", "The flux", 2.5, otherwise="Use Fourier's law.", hints={25: "Was it per centimeter?"})
    >>> check("ex-my-flux", 25)
    ○ Not yet. Was it per centimeter?
    >>> check("ex-my-flux", 2.5)
    ✓ Right.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case words joined by hyphens, got {name!r}")
    if name in QUESTIONS:
        raise ValueError(f"name must not be that of an exercise of this book, got {name!r}")
    asked = (ask,) if isinstance(ask, str) else tuple(ask)
    if not 1 <= len(asked) <= MOST:
        raise ValueError(f"ask must name 1 to {MOST} numbers, got {len(asked)}")
    for argument, words in (*(("ask", one) for one in asked), ("otherwise", otherwise)):
        if not isinstance(words, str) or not words.strip():
            raise ValueError(f"{argument} must be words, got {words!r}")
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= MOST:
        raise ValueError(f"digits must be an integer from 1 to {MOST}, got {digits!r}")
    if not 0 <= within < 1:
        raise ValueError(f"within must be at least 0 and below 1, got {within!r}")
    expected = _answer("right", right, len(asked))
    explained = tuple((_answer("hints", wrong, len(asked)), str(hint)) for wrong, hint in (hints or {}).items())
    OWN[name] = Question(asked, expected, otherwise, explained, float(within), digits, note)


def question_named(name: str) -> Question:
    """Find a question of this book or of one's own."""
    known = {**QUESTIONS, **OWN}
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"name must be one of {', '.join(known)}, got {name!r}{meant}")
    return known[name]


def _answer(argument: str, given: Answer | Sequence[float], count: int) -> tuple[float, ...]:
    numbers = (given,) if isinstance(given, int | float) else tuple(given)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
            raise ValueError(f"{argument} must hold finite numbers, got {number!r}")
    if len(numbers) != count:
        raise ValueError(f"{argument} must have a number for each name in ask, {count}, got {len(numbers)}")
    return numbers
