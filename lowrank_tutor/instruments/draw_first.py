"""What do you expect? The reader commits to a guess first; only then the truth unfolds over it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.instruments.instrument import Instrument
from lowrank_tutor.plotting.style import GREY, ORANGE, styled

KINDS = ("number", "mark", "choice", "curve")
LIMIT = 1e15  # of a number
MOST = 20  # places of a curve, or words to choose from: as many as a finger tells apart
FIRST = {
    "number": "First type a number, or press Show me.",
    "mark": "First drag the mark, or press Show me.",
    "choice": "First choose an answer, or press Show me.",
    "curve": "First drag the points to where you expect them, or press Show me.",
}
SENTENCES = {
    "shown": "The answer: {truth}.",
    "correct": "You guessed {guess}, and that is right.",
    "low": "You guessed {guess}, and the answer is {truth}: {gap} too low.",
    "high": "You guessed {guess}, and the answer is {truth}: {gap} too high.",
    "choice": "You guessed: {guess}. The answer is: {truth}.",
    "curve": "On average your points are {gap} away from the answer.",
}
GAPS = {
    "number": "between guess and answer",
    "mark": "between guess and answer",
    "choice": "your guess",
    "curve": "between guess and answer, on average",
}
WORDS = {
    "commit": "That is my guess",
    "show": "Show me",
    "field": "Your guess:",
    "choose": "Your guess",
    "mark": "your guess",
    "drag": "drag the mark to your guess",
    "at": "your guess at ",
    "guess": "you: ",
    "truth": "answer: ",
    "right_one": "✓ the answer",
    "hits": ["right", "not right"],
    "factor": "a factor of ",
    "points": " percentage points",
}


def draw_first(
    question: str,
    truth: Any,
    *,
    kind: str = "number",
    choices: Sequence[str] = (),
    x: ArrayLike = (),
    limits: tuple[float, float] | None = None,
    log: bool = False,
    titles: tuple[str, str] = ("", ""),
    format: str = "",
    unit: str = "",
    note: str = "",
) -> Instrument:
    """Ask for a guess, and show the truth only after it.

    The guess stays in the browser: nothing is sent. In print and without JavaScript the question stands there with its
    answer.

    Parameters
    ----------
    question : str
        A question, in words that need no formula.
    truth : float, str or array_like
        The answer: a number, one of ``choices``, or the heights of a curve at ``x``.
    kind : str
        ``"number"``: to be typed. ``"mark"``: a place on a line between ``limits``. ``"choice"``: one of ``choices``.
        ``"curve"``: a height between ``limits`` at each place of ``x``.
    choices : sequence of str
        The answers to choose from.
    x : array_like, shape (n,)
        The places of a curve, rising, 2 to 20 of them.
    limits : (float, float), optional
        The ends of the line, or of the vertical axis of a curve.
    log : bool
        Whether the line, or the horizontal axis of a curve, is logarithmic.
    titles : (str, str)
        Words for the horizontal and the vertical axis.
    format : str
        How numbers are written: ``","``, ``".2f"``, ``".1%"`` (then a guess is typed in percent), ``".3g"``, ``"g"``.
        By default ``","`` for a whole number and ``".3g"`` for another.
    unit : str
        What follows a number, such as ``"layers"``.
    note : str
        A sentence that follows the answer.

    Returns
    -------
    Instrument
        State ``guess`` (None until there is one) and ``shown`` (whether the truth is). Once there is a guess, number
        ``gap``: its absolute difference from the truth; on a logarithmic line the factor between the two, at least 1;
        of a choice 0 if it is right and 1 if not; of a curve the mean of the absolute differences.

    Raises
    ------
    ValueError
        If there is no such kind, or the truth, choices, places or limits do not fit it.

    Examples
    --------
    >>> draw_first("How many legs has a spider?", 8)
    <Instrument draw_first: How many legs has a spider? The answer: 8.>
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question must be words, got {question!r}")
    places = np.asarray(x, dtype=float)
    if kind in ("mark", "curve"):
        limits = _check_limits(limits, above=0 if log and kind == "mark" else -LIMIT)
    if kind == "choice":
        _check_choices(choices, truth)
    elif kind == "curve":
        truth = _check_curve(truth, places, limits, log)
    else:
        low, high = limits or (-LIMIT, LIMIT)
        if isinstance(truth, str | bool) or np.ndim(truth) or not low <= truth <= high:
            raise ValueError(f"truth must be a number from {low:g} to {high:g}, got {truth!r}")
        truth = int(truth) if isinstance(truth, int | np.integer) else float(truth)
    whole = isinstance(truth, int)
    spec = format or ("," if whole else ".3g")
    after = "" if not unit else unit if unit == "%" else f" {unit}"
    if kind == "curve":
        answer = ", ".join(f"{value:{spec}}{after} at {at:g}" for at, value in zip(places, truth, strict=True))
    else:
        answer = truth if kind == "choice" else f"{truth:{spec}}{after}"
    said = " ".join(part for part in (question, SENTENCES["shown"].format(truth=answer), note) if part)
    return Instrument(
        "draw_first",
        parts=("guesses",),
        algebra=False,
        state={"guess": None, "shown": False},
        numbers={},
        say="{words}",
        values={"words": said},
        data={
            "kind": kind,
            "question": question,
            "truth": truth,
            "answer": answer,
            "choices": list(choices),
            "x": places.tolist(),
            "limits": limits,
            "log": log,
            "whole": whole,
            "spec": spec,
            "unit": after,
            "titles": titles,
            "note": note,
            "words": {**WORDS, "first": FIRST[kind], "gap": GAPS[kind], "sentences": SENTENCES},
        },
        picture=lambda: _still(question, truth, answer, kind, choices, places, limits, log, titles),
    )


def _check_limits(limits: tuple[float, float] | None, above: float) -> tuple[float, float]:
    pair = np.asarray(() if limits is None else limits, dtype=float)
    if pair.shape != (2,) or not above <= pair[0] < pair[1] <= LIMIT or (above == 0 and pair[0] == 0):
        rule = "two rising numbers" + (" above 0, for a logarithmic line" if above == 0 else "")
        raise ValueError(f"limits must be {rule}, got {limits!r}")
    return float(pair[0]), float(pair[1])


def _check_choices(choices: Sequence[str], truth: object) -> None:
    words = isinstance(choices, list | tuple) and all(isinstance(word, str) and word for word in choices)
    if not words or not 2 <= len(set(choices)) == len(choices) <= MOST:
        raise ValueError(f"choices must be 2 to {MOST} different words, got {choices!r}")
    if truth not in choices:
        raise ValueError(f"truth must be one of {', '.join(choices)}, got {truth!r}")


def _check_curve(
    truth: ArrayLike, places: np.ndarray[Any, np.dtype[np.float64]], limits: tuple[float, float] | None, log: bool
) -> list[float]:
    low, high = limits or (-LIMIT, LIMIT)
    lowest = 0 if log else -np.inf
    fits = places.ndim == 1 and 2 <= places.size <= MOST and np.isfinite(places).all()
    if not fits or not (np.diff(places) > 0).all() or (log and places[0] <= lowest):
        rule = f"2 to {MOST} rising numbers" + (" above 0, for a logarithmic axis" if log else "")
        raise ValueError(f"x must be {rule}, got {places.tolist()!r}")
    heights = np.asarray(truth, dtype=float)
    if heights.shape != places.shape or not ((heights >= low) & (heights <= high)).all():
        raise ValueError(f"truth must be {places.size} numbers from {low:g} to {high:g}, got {truth!r}")
    return [float(height) for height in heights]


@styled
def _still(
    question: str,
    truth: Any,
    answer: str,
    kind: str,
    choices: Sequence[str],
    x: np.ndarray[Any, np.dtype[np.float64]],
    limits: tuple[float, float] | None,
    log: bool,
    titles: tuple[str, str],
) -> Figure:
    lines = textwrap.wrap(question, 50)
    inches = {"curve": 2.3, "mark": 1.0, "number": 0.45, "choice": 0.1 + 0.22 * len(choices)}[kind]
    fig, ax = plt.subplots(layout="constrained", figsize=(4.5, inches + 0.2 * len(lines)))
    ax.set_title("\n".join(lines), parse_math=False)
    if kind == "curve":
        ax.plot(x, truth, "o-", color=ORANGE)
        ax.set(xscale="log" if log else "linear", ylim=limits, xlabel=titles[0], ylabel=titles[1])
        return fig
    if kind == "mark":
        ax.axvline(truth, color=ORANGE, linewidth=2)
        ax.set(xscale="log" if log else "linear", xlim=limits, yticks=[], xlabel=titles[0] or answer)
        ax.annotate(answer, (truth, 0.5), xytext=(4, 0), textcoords="offset points", color=ORANGE, parse_math=False)
        return fig
    _list_words(ax, choices if kind == "choice" else [answer], answer)
    return fig


def _list_words(ax: Axes, words: Sequence[str], answer: str) -> None:
    for i, word in enumerate(words):
        right = word == answer
        look: dict[str, Any] = {
            "color": ORANGE if right else GREY,
            "weight": "bold" if right else "normal",
            "parse_math": False,
        }
        ax.text(0, len(words) - i - 0.5, ("answer: " if right else "") + word, va="center", **look)
    ax.set(ylim=(0, len(words)), xlim=(0, 1))
    ax.set_axis_off()
