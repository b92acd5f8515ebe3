"""Drag the borders of windows over a story, and see whether a model still knows it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor import storyteller as model
from lowrank_tutor._checks import FloatArray, as_float_array
from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.figures.storyteller import MODEL, TALES, loudest
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.style import INK, TEAL

SAY = "With {count} the model says “{says}”{verdict} The tables are off by {table_error:.0%}."
REMARKS = {
    "each": "Every word is a window of its own, so nothing is lost and nothing saved.",
    "single": "With a single window, every word gets the mean of all that came before it.",
    "few": "These few averages are enough: they keep by itself the word that is asked for.",
}
WORDS = {
    "list": "What the last word listens to. Narrow bars: exact. Teal: through windows. "
    "Drag the borders.",
    "next": "The next word; outlines: exact attention",
    "border": "border {j}, between windows",
    "between": "between {before} and {after}",
    "weight": "weight (right: of a whole window)",
    "count": "equal windows",
    "of": "{k} for {n} words",
    "knows": " and is right.",
    "forgot": " instead of “{answer}.”",
}
CAPTION = (
    "Each window acts as one token, with the mean of its words' keys and values, in all eight "
    "heads; it votes as often as it has words. Weights are those of one head. "
    "Nothing was retrained."
)


def windows(borders: Sequence[int] | None = None, tale: str = "far fact") -> Instrument:
    """Show windows over a story, with borders to drag, and what the model then says next.

    In every head of :mod:`lowrank_tutor.storyteller` a window acts as one token, with the mean key
    and the mean value of its words, and votes as often as it has words; a word inside a window sees
    the window's earlier part.

    State ``borders``; numbers ``right`` (chance of the right word), ``table_error`` (of the tables)
    and ``windows``.

    Parameters
    ----------
    borders : sequence of int, optional
        The first word of each window at first, counted from 0: rising, and the first is 0. By
        default every fourth.
    tale : str
        A story, by the job that it tests, one of ``TALES`` of
        :mod:`lowrank_tutor.figures.storyteller`.

    Examples
    --------
    >>> start, better = windows().numbers, windows(borders=[0, 3, 4]).numbers
    >>> f"{start['right']:.0%}, {better['right']:.0%}"
    '12%, 100%'
    """
    words = ["<s>", *TALES[one_of("tale", tale, TALES)].split()]
    wished = as_float_array(range(0, len(words), 4) if borders is None else borders, "borders")
    first = [int(border) for border in np.nan_to_num(wished).ravel()]
    rising = all(before < after for before, after in pairwise([*first, len(words)]))
    if not rising or first[:1] != [0] or first != wished.tolist():
        rule = f"whole numbers from 0, each larger than the one before and below {len(words)}"
        raise ValueError(f"borders must be {rule}, got {borders!r}")
    found, head = measured(words, first), loudest(TALES[tale])
    heard = [found.pop(name).reshape(8, len(words), -1)[head, -1] for name in ("exact", "used")]
    return figure(
        name="windows",
        engine=MODEL,
        state={"borders": first},
        numbers={name: found.pop(name) for name in ("right", "table_error", "windows")},
        values=found,
        say=SAY,
        remarks=REMARKS,
        data={
            "words": WORDS, "story": words, "head": head, "vocabulary": model.WORDS,
            "answer": model.answer(words)[0],
        },
        readouts={
            "right": ("chance of the right word", ".0%"),
            "table_error": ("error of the tables", ".0%"),
            "windows": ("windows", ","),
        },
        caption=CAPTION,
        picture=still(_draw, *heard, first, words, size=(4.6, 1 + 0.2 * len(words))),
    )  # fmt: skip


def through(borders: Sequence[int]) -> model.Cut:
    """Let each word see itself and what stands before it, as means of windows.

    The windows start at ``borders``.
    """

    def table(q: FloatArray, k: FloatArray) -> Any:
        logs = np.log(np.maximum(model.exact.table(q, k), 1e-300))
        shared = np.zeros_like(logs)
        for i in range(q.shape[-2]):
            starts = [border for border in borders if border <= i]
            sizes = np.diff([*starts, i + 1])
            votes = sizes * np.exp(np.add.reduceat(logs[..., i, : i + 1], starts, axis=-1) / sizes)
            shares = votes / votes.sum(axis=-1, keepdims=True)
            shared[..., i, : i + 1] = np.repeat(shares / sizes, sizes, axis=-1)
        return shared

    return model.Cut(table)


def measured(words: Sequence[str], borders: Sequence[int]) -> dict[str, Any]:
    """Return what the model says through windows, and its tables, exact and used."""
    ids, cut = [model.encode(words)], through(borders)
    chances, (answer, _) = model.next_words(words, attend=cut), model.answer(words)
    exact, used = model.tables(ids), model.tables(ids, attend=cut)
    says = max(chances, key=lambda word: chances[word])
    return {
        "right": chances[answer],
        "table_error": float(np.linalg.norm(used - exact) / np.linalg.norm(exact)),
        "windows": len(borders),
        "says": says,
        "count": f"{len(borders)} window{'s' if len(borders) > 1 else ''}",
        "verdict": WORDS["knows"] if says == answer else WORDS["forgot"].format(answer=answer),
        "exact": exact,
        "used": used,
    }


def _draw(
    exact: FloatArray, spread: FloatArray, borders: Sequence[int], words: Sequence[str], ax: Axes
) -> None:
    rows = np.arange(len(words))
    ax.barh(rows, spread, height=1.0, color=TEAL, alpha=0.3, label="through windows")
    ax.barh(rows, exact, height=0.4, color=INK, label="exact")
    ax.hlines(np.array(borders[1:]) - 0.5, 0, exact.max(), color=INK)
    ax.set_yticks(rows, words)
    ax.set(ylim=(len(words) - 0.5, -0.5), xlabel="weight of the last word")
    ax.legend(loc="lower right")
