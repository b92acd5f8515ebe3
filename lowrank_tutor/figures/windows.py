"""Drag the borders of windows over a story, and see whether a model still knows it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowrank_tutor import storyteller as model
from lowrank_tutor._checks import FloatArray
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.storyteller import MODEL, PHRASES, TALES, after, loudest, tables
from lowrank_tutor.kit.canvas.instrument import Instrument

STORY = TALES["far fact"]
WORDS = ["<s>", *STORY.split()]
BORDERS = list(range(0, len(WORDS), 4))  # the first word of each window at first
SAY = "With {count} the model says “{says}”{verdict} The tables are off by {table_error:.0%}."
REMARKS = {
    "each": "Every word is a window of its own, so nothing is lost and nothing saved.",
    "single": "With a single window, every word gets the mean of all that came before it.",
    "few": "These few averages are enough: they keep by itself the word that is asked for.",
}
LABELS = PHRASES | {
    "list": "What the last word listens to. Narrow bars: exact. Teal: through windows. "
    "Drag the borders.",
    "next": "The next word; outlines: exact attention",
    "border": "border {j}, between windows",
    "between": "between {before} and {after}",
    "weight": "weight (right: of a whole window)",
    "count": "equal windows",
    "of": "{k} for {n} words",
}
CAPTION = (
    "Each window acts as one token, with the mean of its words' keys and values, in all eight "
    "heads; it votes as often as it has words. Weights are those of one head. "
    "Nothing was retrained."
)


def windows() -> Instrument:
    """Show windows over a story, with borders to drag, and what the model then says next.

    In every head of :mod:`lowrank_tutor.storyteller` a window acts as one token, with the mean key
    and the mean value of its words, and votes as often as it has words; a word inside a window sees
    the window's earlier part.

    State ``borders``, the first word of each window; numbers ``right`` (chance of the right word),
    ``table_error`` (of the tables) and ``windows``.

    Examples
    --------
    >>> f"{windows().numbers['right']:.0%}"
    '12%'
    """
    attend = through(BORDERS)
    read = after(WORDS, attend=attend)
    _, _, error = tables(WORDS, attend=attend)
    return figure(
        name="windows",
        engine=MODEL,
        state={"borders": BORDERS},
        numbers={"right": read["right"], "table_error": error, "windows": len(BORDERS)},
        values=read | {"count": f"{len(BORDERS)} windows"},
        say=SAY,
        remarks=REMARKS,
        data={
            "words": LABELS, "story": WORDS, "head": loudest(STORY), "vocabulary": model.WORDS,
            "answer": model.answer(STORY)[0],
        },
        readouts={
            "right": ("chance of the right word", ".0%"),
            "table_error": ("error of the tables", ".0%"),
            "windows": ("windows", ","),
        },
        caption=CAPTION,
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
