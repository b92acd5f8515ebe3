"""Ask for a guess, and unfold the truth over it only then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_bool, check_choice, check_real
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite
from lowrank_tutor.kit.questions.prediction_words import FIRST, FORMAT, SENTENCES, WORDS, written

KINDS = ("number", "mark", "choice", "curve")
FILES = ("numbers", "predictions", "ruler", "carry_on", *(f"guess_{kind}" for kind in KINDS), "draw_first")
LIMIT = 1e15  # of a number
MOST = 20  # places of a curve, or words to choose from: as many as a finger tells apart


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
    then: Mapping[str, float | str | bool] | None = None,
) -> Instrument:
    """Ask for a guess, and show the truth only after it.

    The guess stays in the browser: nothing is sent. In print and without JavaScript the question stands there with its
    answer.

    State ``guess`` (None until there is one) and ``shown`` (whether the truth is). Once there is a guess, two numbers.
    ``gap`` is its absolute difference from the truth; on a logarithmic line the factor between the two, at least 1; of
    a choice 0 if it is right and 1 if not; of a curve the mean of the absolute differences. ``grade`` is 1 if the guess
    is right, 1/2 if it is near (within a tenth of the line or axis), and 0 if it is neither.

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
        By default ``","`` for a whole number and ``".3g"`` for another. A guess is right if it is written as the truth
        is.
    unit : str
        What follows a number, such as ``"layers"``.
    note : str
        A sentence that follows the answer.
    then : mapping, optional
        What the next figure of the page moves to once the reader has answered: a part of the state of an instrument
        (``{"k": 7}``), or for sliders of ``explore`` what is written beside them.

    Examples
    --------
    >>> draw_first("How many legs has a spider?", 8)
    <Instrument draw_first: How many legs has a spider? The answer: 8.>
    """
    check_choice(kind, "kind", KINDS)
    check_bool(log, "log")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question must be words, got {question!r}")
    if then is not None and not (isinstance(then, Mapping) and all(isinstance(name, str) for name in then)):
        raise TypeError(f"then must be a dict from names to values, got {then!r}")
    for name, words in (("unit", unit), ("note", note), ("format", format)):
        if not isinstance(words, str):
            raise TypeError(f"{name} must be words, got {words!r}")
    if format and not re.fullmatch(FORMAT, format):
        raise ValueError(f'format must be like "," ".2f" ".1%" ".3g" or "g", got {format!r}')
    if not isinstance(titles, tuple | list) or len(titles) != 2 or not all(isinstance(words, str) for words in titles):
        raise ValueError(f"titles must be words for two axes, got {titles!r}")
    for name, value, kinds in (
        ("choices", choices, ("choice",)),
        ("x", np.atleast_1d(x).tolist(), ("curve",)),
        ("log", log, ("mark", "curve")),
        ("limits", limits, ("number", "mark", "curve")),
    ):
        if value and kind not in kinds:
            raise ValueError(f"{name} must be left out where kind is {kind!r}, got {value!r}")
    places = finite("x", x, None) if kind == "curve" else np.empty(0)
    if limits is not None or kind in ("mark", "curve"):
        limits = _check_limits(limits, above=0 if log and kind == "mark" else -LIMIT)
    if kind == "choice":
        _check_choices(choices, truth)
    elif kind == "curve":
        truth = _check_curve(truth, places, limits, log)
    else:
        low, high = limits or (-LIMIT, LIMIT)
        number = check_real(truth, "truth", rule := f"a number from {low:g} to {high:g}", low)
        if number > high:
            raise ValueError(f"truth must be {rule}, got {truth!r}")
        truth = int(truth) if isinstance(truth, Integral) else number
    whole = isinstance(truth, int)
    spec = format or ("," if whole else ".3g")
    after = "" if not unit else unit if unit == "%" else f" {unit}"
    if kind == "curve":
        pairs = zip(places.tolist(), truth, strict=True)
        answer = ", ".join(f"{written(value, spec)}{after} at {written(at, 'g')}" for at, value in pairs)
    else:
        answer = truth if kind == "choice" else written(truth, spec) + after
    said = " ".join(part for part in (question, SENTENCES["shown"].format(truth=answer), note) if part)
    data = {
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
        "then": then,
        "words": {**WORDS, "first": FIRST[kind], "sentences": SENTENCES},
    }
    return Instrument(
        name="draw_first",
        scripts=tuple(f"kit/questions/{name}.js" for name in FILES),
        state={"guess": None, "shown": False},
        numbers={},
        say="{words}",
        values={"words": said},
        data=data,
    )


def _check_limits(limits: tuple[float, float] | None, above: float) -> tuple[float, float]:
    pair = finite("limits", (1, 0) if limits is None else limits, 2)
    if not above <= pair[0] < pair[1] <= LIMIT or (above == 0 and pair[0] == 0):
        rule = "two rising numbers" + (" above 0, for a logarithmic line" if above == 0 else "")
        raise ValueError(f"limits must be {rule}, got {limits!r}")
    return float(pair[0]), float(pair[1])


def _check_choices(choices: Sequence[str], truth: object) -> None:
    words = isinstance(choices, list | tuple) and all(isinstance(word, str) and word for word in choices)
    if not words or not 2 <= len(set(choices)) == len(choices) <= MOST:
        raise ValueError(f"choices must be 2 to {MOST} different words, got {choices!r}")
    if not isinstance(truth, str) or truth not in choices:
        raise ValueError(f"truth must be one of {', '.join(choices)}, got {truth!r}")


def _check_curve(
    truth: ArrayLike, places: np.ndarray[Any, np.dtype[np.float64]], limits: tuple[float, float] | None, log: bool
) -> list[float]:
    low, high = limits or (-LIMIT, LIMIT)
    lowest = 0 if log else -np.inf
    if not 2 <= places.size <= MOST or not (np.diff(places) > 0).all() or (log and places[0] <= lowest):
        rule = f"2 to {MOST} rising numbers" + (" above 0, for a logarithmic axis" if log else "")
        raise ValueError(f"x must be {rule}, got {places.tolist()!r}")
    heights = finite("truth", truth, places.size)
    if not ((heights >= low) & (heights <= high)).all():
        raise ValueError(f"truth must be {places.size} numbers from {low:g} to {high:g}, got {truth!r}")
    return [float(height) for height in heights]
