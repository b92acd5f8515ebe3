"""Keep the questions that can be asked, for as long as Python runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from math import isfinite
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from lowrank_tutor._checks import _show, check_bool, check_real
from lowrank_tutor.kit.questions.judge import COUNTED, Answer, Question, numbers_of

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import ArrayLike

QUESTIONS: dict[str, Question] = {}  # by name
TAKEN: set[str] = set()  # names of a book whose questions nobody else may replace
MOST = len(COUNTED)  # numbers of an answer, and digits of a number


def register(
    name: str,
    ask: str | Sequence[str],
    right: ArrayLike,
    *,
    otherwise: str,
    hints: Mapping[Answer, str] | None = None,
    within: float = 0.0,
    digits: int = 3,
    note: str = "",
    direction: bool = False,
) -> None:
    """Register a question of your own, so that :func:`check` judges its answers, in a notebook and on a page.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, such as ``"ex-my-flux"``; not the name of an exercise of the book. A later
        registration replaces an earlier one, so that a cell can be run again.
    ask : str, or sequence of str
        A name for each number that is asked for, nine at most.
    right : number, or array_like of numbers
        The right answer. An integer must be met exactly.
    otherwise : str
        The hint for any wrong answer that has none of its own.
    hints : mapping, optional
        Hints for certain wrong answers: ``{0.5: "That is half of it."}``; a tuple where several numbers are asked for.
        The nearest of them counts; none may be near enough to be right.
    within : float
        The relative tolerance: ``0.01`` for 1%. By default ``digits`` count.
    digits : int
        To how many digits a number that is not an integer must be right, from one to nine.
    note : str
        A sentence below the fields of the page, such as how the numbers may be written.
    direction : bool
        Whether the numbers are the entries of one vector, judged as a whole. A hint then serves every multiple of its
        wrong answer, and that for twice the right one says how long the vector should be.

    Examples
    --------
    >>> from lowrank_tutor.kit.questions import check
    >>> register("ex-my-flux", "The flux", 2.5, otherwise="Use Fourier's law.", hints={25: "Was it per centimeter?"})
    >>> check("ex-my-flux", 25)
    ○ Not yet. Was it per centimeter?
    >>> check("ex-my-flux", 2.5)
    ✓ Right.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case words joined by hyphens, got {_show(name)}")
    if name in TAKEN:
        raise ValueError(f"name must not be that of an exercise of the book, got {name!r}")
    asked = (ask,) if isinstance(ask, str) else tuple(islice(ask, MOST + 1)) if isinstance(ask, Sequence) else ()
    if not 1 <= len(asked) <= MOST:
        raise ValueError(f"ask must name 1 to {MOST} numbers, got {_show(ask)}")
    if not isinstance(note, str):
        raise ValueError(f"note must be words, got {_show(note)}")
    for argument, words in (*(("ask", one) for one in asked), ("otherwise", otherwise)):
        if not isinstance(words, str) or not words.strip():
            raise ValueError(f"{argument} must be words, got {_show(words)}")
    if hints is not None and not isinstance(hints, Mapping):
        raise TypeError(f"hints must be a dict from wrong answers to words, got {_show(hints)}")
    for words in (hints or {}).values():
        if not isinstance(words, str) or not words.strip():
            raise ValueError(f"hints must hold words, got {_show(words)}")
    if isinstance(digits, bool) or not isinstance(digits, Integral) or not 1 <= digits <= MOST:
        raise ValueError(f"digits must be an integer from 1 to {MOST}, got {_show(digits)}")
    question = Question(
        asked,
        _answer("right", right, len(asked)),
        otherwise,
        tuple((_answer("hints", wrong, len(asked)), hint) for wrong, hint in (hints or {}).items()),
        check_real(within, "within", "at least 0 and below 1", 0, 1),
        int(digits),
        note,
        direction=("", len(asked) if check_bool(direction, "direction") else 0),
    )
    if (wrong := question.unreachable()) is not None:
        shown = wrong if len(asked) > 1 else numbers_of(wrong)[0]
        rule = "be answers that are refused, each apart from the others"
        raise ValueError(f"hints must {rule}, got {shown!r}, which is taken for the right one or for another of them")
    QUESTIONS[name] = question


def register_book(questions: Mapping[str, Question]) -> None:
    """Register the exercises of a book, which :func:`register` then does not replace."""
    QUESTIONS.update(questions)
    TAKEN.update(questions)


def question_named(name: str) -> Question:
    """Find a registered question."""
    if not isinstance(name, str) or name not in QUESTIONS:
        near = difflib.get_close_matches(name, QUESTIONS, n=1) if isinstance(name, str) else []
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"name must be one of {', '.join(QUESTIONS) or 'those registered'}, got {_show(name)}{meant}")
    return QUESTIONS[name]


def _answer(argument: str, given: ArrayLike, count: int) -> tuple[float, ...]:
    found = real_numbers(argument, given)
    numbers = tuple(one for one in found if one is not None)  # dots are no answer
    if not len(found) == len(numbers) == count:
        raise ValueError(f"{argument} must have a number for each name in ask, {count}, got {_show(given)}")
    return numbers


def real_numbers(argument: str, given: ArrayLike | EllipsisType) -> tuple[float | None, ...]:
    """Return an answer as numbers, whole ones as Python's integers, with None for each ``...``."""
    try:
        if isinstance(given, np.ma.MaskedArray):  # its masked entries would silently count as numbers
            raise TypeError
        held = given[: MOST + 1] if isinstance(given, range) else given  # written out, it may fill the memory
        found = np.asarray(held, dtype=object).ravel()
        numbers = tuple(None if one is ... else _real(one) for one in found)
    except OverflowError:
        raise ValueError(f"{argument} must be finite, and below 1e308, got {_show(given)}") from None
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: tensors that NumPy cannot read
        raise TypeError(f"{argument} must be a number or a list of numbers, got {_show(given)}") from None
    if not all(one is None or isfinite(one) for one in numbers):
        raise ValueError(f"{argument} must be finite, got {_show(given)}")
    return numbers


def _real(one: object) -> float:
    """Return one number, an integer as it is: as a float it would lose digits beyond 2**53."""
    value = one.item() if hasattr(one, "item") else one
    if isinstance(value, bool | str | bytes):
        raise TypeError
    number = float(value)  # type: ignore[arg-type]  # SymPy's numbers, fractions: whatever can be one
    return int(value) if isinstance(value, Integral) else number
