"""The words of ``draw_first``, and how it writes numbers."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

FIRST = {
    "number": "First type a number, or press Show me.",
    "mark": "First drag the mark, or press Show me.",
    "choice": "First press an answer, or Show me.",
    "curve": "First drag the points to where you expect them, or press Show me.",
}
SENTENCES = {
    "shown": "The answer: {truth}.",
    "correct": "Right: {truth}.",
    "wrong": "Not quite. The answer: {truth}.",
    "low": "You guessed {guess}, and the answer is {truth}: {gap} too low.",
    "high": "You guessed {guess}, and the answer is {truth}: {gap} too high.",
    "curve": "On average your points are {gap} away from the answer.",
    "read": "“{typed}” was read as {value}.",
}
WORDS = {
    "eyebrow": "Predict",
    "commit": "That is my guess",
    "show": "Show me",
    "field": "Your guess:",
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
FORMAT = r",|g|\.\d\d?[f%]|\.[1-9]\d?g"  # what both sides can write


def written(value: float, spec: str) -> str:
    """Write a number as ``format`` in values.js does: a tie is rounded away from zero, and there are no exponents."""
    digits = int(re.sub(r"\D", "", spec) or 6)
    rounding = Context(prec=500, rounding=ROUND_HALF_UP)
    if spec == ",":  # at most three digits after the point
        return _plain(Decimal(repr(value)).quantize(Decimal("0.001"), context=rounding), ",f")
    if spec.endswith("g"):
        exact = Decimal(value)
        near = exact.quantize(Decimal((0, (1,), exact.adjusted() + 1 - digits)), context=rounding)
        return _plain(near, "f" if 1e-6 <= abs(near) or not near else "e")
    times = 100 if spec.endswith("%") else 1
    return f"{Decimal(times * value).quantize(Decimal((0, (1,), -digits)), context=rounding):f}" + "%" * (times > 1)


def _plain(number: Decimal, form: str) -> str:
    return format(number.normalize(Context(prec=500)) if number else Decimal(0), form)
