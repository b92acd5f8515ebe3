"""The check of an answer, in a notebook and in a field of a page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING

from lowrank_tutor.kit.block import Block, Script
from lowrank_tutor.kit.environment import somebody_is_there
from lowrank_tutor.kit.questions.judge import (
    ANOTHER_ORDER,
    COUNTED,
    MISSING,
    Answer,
    Number,
    Question,
    exactly,
    numbers_of,
)
from lowrank_tutor.kit.questions.registry import question_named, real_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SCRIPT = Script("answerForm", ("kit/questions/numbers.js", "kit/questions/answer_form.js"))
STYLES = ("kit/questions/answer_form.css",)
# The marks tell right from not yet where colors cannot.
RIGHT_MARK, OPEN_MARK = "✓", "○"
WAITING = "Put your answer in place of the dots, and run the cell again."


@dataclass(frozen=True)
class Verdict:
    """The result of :func:`check`: true if the answer is right; shows itself as the last line of a cell."""

    name: str
    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str | None:
        waiting_on_a_page = self.message.startswith(WAITING) and not somebody_is_there()
        return answer_form(self.name, question_named(self.name)).to_html() if waiting_on_a_page else None


def check(name: str, answer: ArrayLike | EllipsisType) -> Verdict:
    """Compare an answer with that of an exercise (``lowrank_tutor.answers``) or a question of yours (:func:`register`).

    The answer is as many finite numbers as the exercise asks for, in its order; ``...`` stands for what you do not have
    yet. The verdict is true if each is near enough: exact for counts, within the rounding of the exercise otherwise.
    Its text judges each number alone, a direction as a whole, and has a hint for what is not right.
    """
    question = question_named(name)
    given = real_numbers("answer", answer)
    if all(one is None for one in given):
        return Verdict(name, False, f"{WAITING} {_asked(question)}")
    if len(given) != len(question.numbers):
        return Verdict(name, False, f"{OPEN_MARK} Not yet. {_asked(question)}")
    said = question.judge(given)
    return Verdict(name, not any(words is not None for words in said), "\n".join(_lines(question, said)))


def _lines(question: Question, said: list[str | None]) -> list[str]:
    """Write the verdict: one line if it fits the whole answer, else one for each part."""
    if all(words is None for words in said):
        return [f"{RIGHT_MARK} Right."]
    if ANOTHER_ORDER in said or len(said) == 1:
        return [f"{OPEN_MARK} Not yet. {ANOTHER_ORDER if ANOTHER_ORDER in said else said[0]}"]
    lines: list[str] = []
    for (name, _), words in zip(question.parts, said, strict=True):
        if words is None:
            lines.append(f"{RIGHT_MARK} {name}: right.")
        elif not words:
            lines.append(f"{OPEN_MARK} {name}: still empty.")
        else:  # the same hint once
            hint = "" if words in said[: len(lines)] else f" {words}"
            lines.append(f"{OPEN_MARK} {name}: not yet.{hint}")
    return lines


def _asked(question: Question) -> str:
    """Write what is asked for, and how near an answer must be."""
    asked = "; ".join(f"{number.name} ({number.rule})" for number in question.numbers)
    count = len(question.numbers)
    how = "Give one number" if count == 1 else f"Give a list of {COUNTED[count]} numbers"
    return f"{how}: {asked}."


def answer_form(name: str, question: Question) -> Block:
    """Return a field for each number, the button and the script that compares as :func:`check` does."""
    numbers = question.numbers
    content = {
        "numbers": [_for_the_page(number) for number in numbers],
        "parts": [[part, *places.indices(len(numbers))[:2]] for part, places in question.parts],
        "hints": [[_with_slack(numbers, wrong), hint] for wrong, hint in question.hints],
        "otherwise": question.otherwise,
        "order": ANOTHER_ORDER,
        "missing": MISSING,
    }
    asked = html.escape(", ".join(number.name for number in numbers))
    fields = "\n".join(_field(f"{name}-{i}", f"{name}-said", number) for i, number in enumerate(numbers))
    note = f"\n<p>{html.escape(question.note)}</p>" if question.note else ""
    standing = f"""<div>
{fields}
</div>{note}
<button type="submit" aria-label="Check: {asked}">Check</button>
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
        attributes={"autocomplete": "off", "aria-label": f"Check your answer: {', '.join(n.name for n in numbers)}"},
    )


def _field(key: str, said: str, number: Number) -> str:
    return (
        f'<label for="{key}">{html.escape(number.name)}</label>'
        f'<span><input id="{key}" type="text" maxlength="64" spellcheck="false" aria-describedby="{key}-rule {said}">'
        f'<small id="{key}-rule">{number.rule}</small></span>'
    )


def _with_slack(numbers: Sequence[Number], wrong: Answer) -> list[tuple[float | str, float]]:
    pairs = zip(numbers_of(wrong), numbers, strict=True)
    return [(_as_digits(one), number.common_slack(one)) for one, number in pairs]


def _for_the_page(number: Number) -> dict[str, object]:
    return {
        "name": number.name,
        "right": _as_digits(number.right),
        "slack": number.slack(number.right),
        "common": number.common_slack(number.right),
        "whole": number.whole,
        "fewer": number.fewer_digits,
        "nearly": number.nearly,
        "rounded": number.rounded_words,
    }


def _as_digits(value: float) -> float | str:
    """Return a whole number beyond 2**53 as the digits that it stands for, which JSON would round."""
    return str(exactly(value)) if abs(value) >= 2**53 else value
