"""Ask for a guess, and unfold the truth over it only then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_choice
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite

FIRST = {
    "mark": "First drag the mark, or press Show me.",
    "choice": "First press an answer, or Show me.",
    "curve": "First drag the points to where you expect them, or press Show me.",
}
SENTENCES = {
    "shown": "The answer: {truth}.",
    "correct": "Right: {truth}.",
    "wrong": "Not quite. {why}The answer: {truth}.",
    "low": "You guessed {guess}, and the answer is {truth}: {gap} too low.",
    "high": "You guessed {guess}, and the answer is {truth}: {gap} too high.",
    "curve": "On average your points are {gap} away from the answer.",
}
WORDS = {
    "eyebrow": "Predict",
    "commit": "That is my guess",
    "show": "Show me",
    "choose": "Your guess",
    "mark": "your guess",
    "drag": "drag the mark to your guess",
    "at": "your guess at ",
    "guess": "you: ",
    "truth": "answer: ",
    "right_one": "✓ ",
    "factor": "a factor of ",
    "points": " percentage points",
}
FILES = ("predictions", "ruler", "carry_on", *(f"guess_{kind}" for kind in FIRST), "draw_first")
FORMAT = r",|g|\.\d\d?[f%]|\.[1-9]\d?g"  # what both Python and the browser can write
MOST = 20  # places of a curve, or words to choose from: as many as a finger tells apart


def draw_first(
    question: str,
    truth: Any,
    *,
    kind: str = "mark",
    choices: Sequence[str] = (),
    x: ArrayLike = (),
    limits: tuple[float, float] = (0, 1),
    log: bool = False,
    titles: tuple[str, str] = ("", ""),
    format: str = "",
    unit: str = "",
    then: Mapping[str, float | str | bool] | None = None,
    replies: Mapping[str, str] | None = None,
) -> Instrument:
    """Ask for a guess, and show the truth only after it.

    The guess stays in the browser: nothing is sent. In print and without JavaScript the question
    stands there with its answer.

    State ``guess`` (None until there is one) and ``shown`` (whether the truth is). Once there is a
    guess, two numbers. ``gap`` is its absolute difference from the truth; on a logarithmic line the
    factor between the two, at least 1; of a choice 0 if it is right and 1 if not; of a curve the
    mean of the absolute differences. ``grade`` is 1 if the guess is right, 1/2 if it is near
    (within a tenth of the line or axis), and 0 if it is neither.

    Parameters
    ----------
    question : str
        A question, in words that need no formula.
    truth : float, str or array_like
        The answer: a number, one of ``choices``, or the heights of a curve at ``x``.
    kind : str
        ``"mark"``: a place on a line between ``limits``. ``"choice"``: one of ``choices``.
        ``"curve"``: a height between ``limits`` at each place of ``x``.
    choices : sequence of str
        The answers to choose from, 2 to 20 of them.
    x : array_like, shape (n,)
        The places of a curve, rising, 2 to 20 of them.
    limits : (float, float)
        The ends of the line, or of the vertical axis of a curve.
    log : bool
        Whether the line, or the horizontal axis of a curve, is logarithmic.
    titles : (str, str)
        Words for the horizontal and the vertical axis.
    format : str
        How numbers are written: ``","``, ``".2f"``, ``".1%"``, ``".3g"``, ``"g"``. By default
        ``","`` for a whole number and ``".3g"`` for another. A guess is right if it is written as
        the truth is.
    unit : str
        What follows a number, such as ``"layers"``.
    then : mapping, optional
        What the next figure of the page moves to once the reader has answered: a part of the state
        of an instrument (``{"k": 7}``), or for sliders of ``explore`` what is written beside them.
    replies : mapping, optional
        What is said first to a wrong choice, by the choice: all of them, if any.

    Examples
    --------
    >>> draw_first("How many legs has a spider?", 8, limits=(2, 20))
    <Instrument draw_first: How many legs has a spider? The answer: 8.>
    """
    check_choice(kind, "kind", tuple(FIRST))
    for name, value, for_kind in (
        ("choices", choices, "choice"),
        ("replies", list(replies or ()), "choice"),
        ("x", x, "curve"),
    ):
        if np.size(value) and kind != for_kind:
            raise ValueError(f'{name} must be left out where kind is "{kind}", got {value!r}')
    if format and not re.fullmatch(FORMAT, format):
        raise ValueError(f'format must be like "," ".2f" ".1%" ".3g" or "g", got {format!r}')
    whole = kind == "mark" and isinstance(truth, Integral)
    spec = format or ("," if whole else ".3g")
    after = "" if not unit else unit if unit == "%" else f" {unit}"
    places: list[float] = []
    if kind == "choice":
        if not 2 <= len(set(choices)) == len(choices) <= MOST:
            raise ValueError(f"choices must be 2 to {MOST} different words, got {choices!r}")
        if truth not in choices:
            raise ValueError(f"truth must be one of {', '.join(choices)}, got {truth!r}")
        if replies and {*replies, truth} != {*choices}:
            raise ValueError(f"replies must have one for each wrong choice, got {replies!r}")
        answer, ends = truth, None
    elif kind == "mark":
        ends = _rising("limits", limits, log, 2)
        truth = int(_between(truth, ends)) if whole else _between(truth, ends)
        answer = _written(truth, spec) + after
    else:
        places, ends = _rising("x", x, log, MOST), _rising("limits", limits, False, 2)
        truth = _between(truth, ends, len(places))
        pairs = zip(places, truth, strict=True)
        answer = ", ".join(
            f"{_written(value, spec)}{after} at {_written(at, 'g')}" for at, value in pairs
        )
    data = {
        "kind": kind,
        "question": question,
        "truth": truth,
        "answer": answer,
        "choices": list(choices),
        "replies": {choice: f"{reply} " for choice, reply in (replies or {}).items()},
        "x": places,
        "limits": ends,
        "log": log,
        "whole": whole,
        "spec": spec,
        "unit": after,
        "titles": titles,
        "then": then,
        "words": {**WORDS, "first": FIRST[kind], "sentences": SENTENCES},
    }
    return Instrument(
        name="draw_first",
        scripts=tuple(f"kit/questions/{name}.js" for name in FILES),
        state={"guess": None, "shown": False},
        numbers={},
        say="{words}",
        values={"words": f"{question} {SENTENCES['shown'].format(truth=answer)}"},
        data=data,
    )


def _rising(name: str, value: ArrayLike, log: bool, most: int) -> list[float]:
    numbers: list[float] = finite(name, value, None).tolist()
    if (
        not 2 <= len(numbers) <= most
        or numbers != sorted(set(numbers))
        or (log and numbers[0] <= 0)
    ):
        rule = f"2 to {most} rising numbers" if most > 2 else "two rising numbers"
        raise ValueError(f"{name} must be {rule}{' above 0' if log else ''}, got {value!r}")
    return numbers


def _between(truth: ArrayLike, limits: Sequence[float], *shape: int) -> Any:
    numbers = finite("truth", truth, *shape)
    if not ((limits[0] <= numbers) & (numbers <= limits[1])).all():
        raise ValueError(f"truth must be from {limits[0]:g} to {limits[1]:g}, got {truth!r}")
    return numbers.tolist()


def _written(value: float, spec: str) -> str:
    """Write a number without exponents, rounding ties away from zero.

    This is what ``format`` in values.js does.
    """
    text = format(value, spec)
    return f"{Decimal(text):f}" if spec.endswith("g") else text
