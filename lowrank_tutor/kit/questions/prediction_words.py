"""The words of ``draw_first``, and its static picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from lowrank_tutor.kit.charts.style import GRAY, styled

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


@styled
def still(data: Mapping[str, Any]) -> Figure:
    """Draw a question with its answer, for print and where no script runs."""
    kind, answer, titles = data["kind"], data["answer"], data["titles"]
    lines = textwrap.wrap(data["question"], 44)
    words = data["choices"] if kind == "choice" else [answer]
    inches = {"curve": 2.3, "mark": 1.0, "number": 0.45, "choice": 0.1 + 0.22 * len(words)}[kind]
    fig, ax = plt.subplots(layout="constrained", figsize=(4.5, inches + 0.2 * len(lines)))
    ax.set_title("\n".join(lines), parse_math=False)
    scale = "log" if data["log"] else "linear"
    if kind == "curve":
        ax.plot(data["x"], data["truth"], "o-", color="black")
        ax.set(xscale=scale, ylim=data["limits"])
        ax.set_ylabel(titles[1], parse_math=False)
        ax.set_xticks(data["x"], [f"{at:g}" for at in data["x"]], minor=False)
        ax.set_xticks([], minor=True)
    elif kind == "mark":
        ax.axvline(data["truth"], color="black", linewidth=2)
        ax.set(xscale=scale, xlim=data["limits"], yticks=[])
        look: dict[str, Any] = {"textcoords": "offset points", "color": "black", "parse_math": False}
        ax.annotate(answer, (data["truth"], 0.5), xytext=(4, 0), **look)
    else:
        ax.set(ylim=(0, len(words)), xlim=(0, 1))
        ax.set_axis_off()
        for i, word in enumerate(words):
            is_answer, height = word == answer, len(words) - i - 0.5
            look = {"color": "black", "weight": "bold"} if is_answer else {"color": GRAY}
            ax.text(0, height, ("answer: " if is_answer else "") + word, va="center", parse_math=False, **look)
    ax.set_xlabel(titles[0] or (answer if kind == "mark" else ""), parse_math=False)
    return fig
