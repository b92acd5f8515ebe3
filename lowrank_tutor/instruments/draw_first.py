"""What do you expect? The reader commits to a guess first; only then the truth unfolds over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.instruments.guesses import FIRST, GAPS, SENTENCES, WORDS, still
from lowrank_tutor.instruments.instrument import Instrument

KINDS: dict[str, tuple[str, ...]] = {  # with the scripts that each of them needs
    "number": ("guesses", "ruler", "guess_number"),
    "mark": ("guesses", "ruler", "guess_mark"),
    "choice": ("guesses", "guess_choice"),
    "curve": ("guesses", "guess_curve"),
}
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
        parts=KINDS[kind],
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
        picture=lambda: still(question, truth, answer, kind, choices, places, limits, log, titles),
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
