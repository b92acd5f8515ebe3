"""Register questions, and check their answers, in a notebook and in a field of a page."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral
from types import EllipsisType

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import _show, check_fraction, check_integer
from lowrank_tutor.kit.block import Block, Script
from lowrank_tutor.kit.environment import somebody_is_there
from lowrank_tutor.kit.questions.judge import (
    ANOTHER_ORDER,
    COUNTED,
    MISSING,
    Answer,
    Number,
    Question,
)

QUESTIONS: dict[str, Question] = {}  # those that can be asked, by name, for as long as Python runs
MOST = len(COUNTED)  # numbers of an answer, and digits of a number
SCRIPT = Script(
    "answerForm", ("kit/element.js", "kit/questions/numbers.js", "kit/questions/answer_form.js")
)
STYLES = ("kit/questions/answer_form.css",)
# The marks tell right from not yet where colors cannot.
RIGHT_MARK, OPEN_MARK = "✓", "○"
WAITING = "Put your answer in place of the dots, and run the cell again."


def register(
    name: str,
    ask: str | Sequence[str],
    right: ArrayLike,
    *,
    otherwise: str,
    hints: Mapping[float | Answer, str] | None = None,
    within: float = 0.0,
    digits: int = 3,
    note: str = "",
    direction: bool = False,
) -> None:
    """Register a question of your own, so that :func:`check` judges its answers.

    This works in a notebook and on a page.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens, such as ``"ex-my-flux"``. A later registration replaces
        an earlier one, so that a cell can be run again.
    ask : str, or sequence of str
        A name for each number that is asked for, nine at most.
    right : number, or array_like of numbers
        The right answer. An integer must be met exactly.
    otherwise : str
        The hint for any wrong answer that has none of its own.
    hints : mapping, optional
        Hints for certain wrong answers: ``{0.5: "That is half of it."}``; a tuple where several
        numbers are asked for. The nearest of them counts; none may be near enough to be right.
    within : float
        The relative tolerance: ``0.01`` for 1%. By default ``digits`` count.
    digits : int
        To how many digits a number that is not an integer must be right, from one to nine.
    note : str
        A sentence below the fields of the page, such as how the numbers may be written.
    direction : bool
        Whether the numbers are the entries of one vector, judged as a whole. A hint then serves
        every multiple of its wrong answer, and that for twice the right one says how long the
        vector should be.

    Examples
    --------
    >>> from lowrank_tutor.kit.questions import check
    >>> hints = {25: "Was it per centimeter?"}
    >>> register("ex-my-flux", "The flux", 2.5, otherwise="Use Fourier's law.", hints=hints)
    >>> check("ex-my-flux", 25)
    ○ Not yet. Was it per centimeter?
    >>> check("ex-my-flux", 2.5)
    ✓ Right.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case words joined by hyphens, got {_show(name)}")
    asked = (ask,) if isinstance(ask, str) else tuple(ask)
    if not 1 <= len(asked) <= MOST:
        raise ValueError(f"ask must name 1 to {MOST} numbers, got {_show(ask)}")
    question = Question(
        asked,
        _answer("right", right, len(asked)),
        otherwise,
        tuple((_answer("hints", wrong, len(asked)), hint) for wrong, hint in (hints or {}).items()),
        check_fraction(within, "within", 0),
        check_integer(digits, "digits", 1, MOST),
        note,
        direction=("", len(asked) if direction else 0),
    )
    if (wrong := question.unreachable()) is not None:
        rule = "be answers that are refused, each apart from the others"
        raise ValueError(
            f"hints must {rule}, "
            f"got {wrong!r}, which is taken for the right one or for another of them"
        )
    QUESTIONS[name] = question


def _answer(argument: str, value: ArrayLike, count: int) -> Answer:
    numbers = tuple(
        number for number in real_numbers(argument, value) if number is not None
    )  # dots are no answer
    if len(numbers) != count:
        raise ValueError(
            f"{argument} must have a number for each name in ask, {count}, got {_show(value)}"
        )
    return numbers


def real_numbers(argument: str, value: ArrayLike | EllipsisType) -> tuple[float | None, ...]:
    """Return an answer as numbers, whole ones as Python's integers, with None for each ``...``."""
    try:
        entries = np.asarray(value, dtype=object).ravel()
        numbers = tuple(None if entry is ... else _real(entry) for entry in entries)
    except (
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
    ):  # RuntimeError: tensors that NumPy cannot read
        raise TypeError(
            f"{argument} must be a finite number or a list of them, got {_show(value)}"
        ) from None
    if not all(number is None or isfinite(number) for number in numbers):
        raise ValueError(f"{argument} must be finite, got {_show(value)}")
    return numbers


def _real(entry: object) -> float:
    value = entry.item() if hasattr(entry, "item") else entry
    if isinstance(value, bool | str | bytes):
        raise TypeError
    number = float(value)  # type: ignore[arg-type]  # SymPy's numbers, fractions: whatever can be one
    return int(value) if isinstance(value, Integral) else number


@dataclass(frozen=True)
class Verdict:
    """The result of :func:`check`, true if the answer is right.

    It shows itself as the last line of a cell.
    """

    name: str
    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str | None:
        waiting_on_a_page = self.message.startswith(WAITING) and not somebody_is_there()
        return answer_form(self.name, QUESTIONS[self.name]).to_html() if waiting_on_a_page else None


def check(name: str, answer: ArrayLike | EllipsisType) -> Verdict:
    """Compare an answer with that of an exercise or of a question of yours.

    Exercises are in ``lowrank_tutor.course.answers``; :func:`register` adds questions. The answer
    is as many finite numbers as the exercise asks for, in its order; ``...`` stands for what you do
    not have yet. The verdict is true if each is near enough: exact for counts, within the rounding
    of the exercise otherwise. Its text judges each number alone, a direction as a whole, and has a
    hint for what is not right.
    """
    if name not in QUESTIONS:
        raise ValueError(
            f"name must be one of {', '.join(QUESTIONS) or 'those registered'}, got {_show(name)}"
        )
    question, numbers = QUESTIONS[name], real_numbers("answer", answer)
    if all(number is None for number in numbers):
        return Verdict(name, False, f"{WAITING} {_asked(question)}")
    if len(numbers) != len(question.numbers):
        return Verdict(name, False, f"{OPEN_MARK} Not yet. {_asked(question)}")
    hints = question.judge(numbers)
    return Verdict(name, all(hint is None for hint in hints), "\n".join(_lines(question, hints)))


def _lines(question: Question, hints: list[str | None]) -> list[str]:
    """Write the verdict: one line if it fits the whole answer, else one for each part."""
    if all(hint is None for hint in hints):
        return [f"{RIGHT_MARK} Right."]
    if ANOTHER_ORDER in hints or len(hints) == 1:
        return [f"{OPEN_MARK} Not yet. {ANOTHER_ORDER if ANOTHER_ORDER in hints else hints[0]}"]
    lines: list[str] = []
    for (name, _), hint in zip(question.parts, hints, strict=True):
        verdict = "right." if hint is None else "not yet." if hint else "still empty."
        new = f" {hint}" if hint and hint not in hints[: len(lines)] else ""  # a hint is given once
        lines.append(f"{RIGHT_MARK if hint is None else OPEN_MARK} {name}: {verdict}{new}")
    return lines


def _asked(question: Question) -> str:
    """Write what is asked for, and how near an answer must be."""
    asked = "; ".join(f"{number.name} ({number.rule})" for number in question.numbers)
    count = len(question.numbers)
    how = "Give one number" if count == 1 else f"Give a list of {COUNTED[count]} numbers"
    return f"{how}: {asked}."


def answer_form(name: str, question: Question) -> Block:
    """Return a field for each number, the button, and the script that compares."""
    numbers = question.numbers
    content = {
        "numbers": [
            {
                "name": number.name,
                "right": number.right,
                "slack": number.slack(number.right),
                "common": number.common_slack(number.right),
                "whole": number.whole,
                "fewer": number.fewer_digits,
                "nearly": number.nearly,
                "rounded": number.rounded_words,
            }
            for number in numbers
        ],
        "parts": [[part, *places.indices(len(numbers))[:2]] for part, places in question.parts],
        "hints": [
            [
                [
                    (one, number.common_slack(one))
                    for one, number in zip(wrong, numbers, strict=True)
                ],
                hint,
            ]
            for wrong, hint in question.hints
        ],
        "otherwise": question.otherwise,
        "order": ANOTHER_ORDER,
        "missing": MISSING,
    }
    names = ", ".join(number.name for number in numbers)
    fields = "\n".join(
        _field(f"{name}-{i}", f"{name}-said", number) for i, number in enumerate(numbers)
    )
    note = f"\n<p>{html.escape(question.note)}</p>" if question.note else ""
    standing = f"""<div>
{fields}
</div>{note}
<button type="submit" aria-label="Check: {html.escape(names)}">Check</button>
<output id="{name}-said" aria-live="polite"></output>
<noscript><p>To check an answer here needs JavaScript.</p></noscript>"""
    return Block(
        kind="check",
        name=name,
        first=standing,
        data=content,
        script=SCRIPT,
        styles=STYLES,
        tag="form",
        attributes={"autocomplete": "off", "aria-label": f"Check your answer: {names}"},
    )


def _field(key: str, output: str, number: Number) -> str:
    return (
        f'<label for="{key}">{html.escape(number.name)}</label><span><input id="{key}" type="text" '
        f'maxlength="64" spellcheck="false" aria-describedby="{key}-rule {output}"><small '
        f'id="{key}-rule">{number.rule}</small></span>'
    )
