"""Show the attention of a sentence as a stack of sheets, and let readers drag how many of them are kept."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import FloatArray
from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.stills import bars_with_cut
from lowrank_tutor.figures.parts.typed import phrases, read
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole
from lowrank_tutor.kit.charts.style import SIGNED, styled
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X, attention
from lowrank_tutor.svd import best_rank_k

MOST = 8  # words
SAY = (
    "With {k} of {n} sheets the error of the table is {table_error:.0%}, and the error of what the words hear is "
    "{output_error:.0%}. “{word}” listens {heard}."
)
REMARKS = {
    "same": "The same is true with all sheets.",
    "other": "With all sheets it would listen {right}.",
    "alike": "A single sheet cannot tell words apart: each of them listens most to the same word.",
    "all": "With all its sheets the table is exact.",
    "own": "The numbers of your own words are made up from their spelling.",
}
CAPTION = (
    "The sheets that are kept are teal, and so is the table that they add up to. Orange marks numbers below zero. For "
    "comparison, outlines and dots show the whole table: how much the chosen word listens to each word, and which word "
    "each word listens to most."
)
PHRASES = {
    **phrases(MOST),
    "sentence": "Choose the word that listens",
    "chosen": "the word that listens",
    "stack": "A stack of sheets",
    "table": "What they add up to",
    "cut": "sheets that are kept",
    "keep": "keep {k} of {n}",
    "drag": "drag: ",
    "skyline": "How much each sheet weighs: drag the ring",
    "most_to": "most to ",
    "alike": "to all alike",
}


def sheets(
    k: int = 2,
    word: str | None = None,
    sentence: str = " ".join(WORDS),
    demo: bool = False,
    *,
    x: ArrayLike | None = None,
) -> Instrument:
    r"""Lift sheets off the attention of six words, and see who still hears whom.

    Attention of the words is a table :math:`P = \operatorname{softmax}(QK^\top / \sqrt 2)`, a row for each word that
    listens. Its singular value decomposition writes it as a stack of sheets :math:`\sigma_i u_i v_i^\top`. The figure
    keeps the first ``k``, and compares the table and the outputs :math:`PV` with the exact ones.

    State ``k``, ``row`` (the chosen word, counted from 0) and ``words`` (the sentence); numbers ``table_error``
    :math:`\|P - P_k\|_F / \|P\|_F` and ``output_error`` :math:`\|(P - P_k) V\|_F / \|PV\|_F`.

    Parameters
    ----------
    k : int
        How many sheets are kept at first, from 1 to the number of words.
    word : str, optional
        The word whose row is shown as arcs at first, one of the sentence; by default "cat", or else the first.
    sentence : str
        The words at first, 1 to 8 of those of ``lowrank_tutor.sentence``, or with ``x`` any different words. Readers
        may type others, whose numbers are then made up from their spelling.
    demo : bool
        Whether the figure lifts its own sheets once, in about four seconds, when it is first seen.
    x : array_like, shape (words, 2), optional
        Two numbers for each word of your own sentence, from -2.6 to 2.6.

    Examples
    --------
    >>> one, two = sheets(1).numbers, sheets(2).numbers
    >>> f"{one['table_error']:.0%}, {one['output_error']:.0%}; {two['table_error']:.0%}, {two['output_error']:.0%}"
    '56%, 31%; 19%, 6%'
    """
    words, known, (rows,) = read(sentence, MOST, WORDS, {"x": np.array(X, float)}, {} if x is None else {"x": x})
    word = one_of("word", ("cat" if "cat" in words else words[0]) if word is None else word, words)
    k = whole("k", k, 1, len(words))
    weights, values = attention(rows)
    row, kept = words.index(word), best_rank_k(weights, k)
    return figure(
        name="sheets",
        parts=("linalg", "labels", "typed", "arcs", "demonstrate"),
        state={"k": k, "row": row, "words": " ".join(words)},
        numbers=numbers(weights, values, k),
        values={"n": len(words), "word": word, "heard": _most(kept[row], words), "right": _most(weights[row], words)},
        say=SAY,
        remarks=REMARKS,
        data={
            "known": known,
            "numbers": X if x is None else rows.tolist(),
            "maps": [W_Q, W_K, W_V],
            "most": MOST,
            "reach": 2,
            "words": PHRASES,
            "demo": k if demo else 0,
        },
        readouts={
            "table_error": ("error of the table", ".0%"),
            "output_error": ("error of what the words hear", ".0%"),
        },
        caption=CAPTION,
        picture=lambda: _still(weights, kept, k, words),
    )


def numbers(weights: FloatArray, values: FloatArray, k: int) -> dict[str, float]:
    """Return the errors of table and outputs, relative; an output of zero has the error 0."""
    missing = weights - best_rank_k(weights, k)
    of_output = np.linalg.norm(missing @ values) / (np.linalg.norm(weights @ values) or 1)
    return {"table_error": float(np.linalg.norm(missing) / np.linalg.norm(weights)), "output_error": float(of_output)}


def _most(row: FloatArray, words: list[str]) -> str:
    return "to all alike" if np.ptp(row) < 1e-6 else f"most to “{words[row.argmax()]}”"


@styled
def _still(weights: FloatArray, kept: FloatArray, k: int, words: list[str]) -> Figure:
    fig, axes = plt.subplots(1, 3, layout="constrained", figsize=(5.2, 2.1))
    top, s = weights.max(), np.linalg.svd(weights, compute_uv=False)
    for ax, table, title in zip(axes, (weights, kept), ("the whole table", f"{k} of {len(s)} sheets"), strict=False):
        ax.imshow(table, cmap=SIGNED, vmin=-top, vmax=top)
        ax.set_title(title)
        ax.set_xticks(range(len(words)), words, rotation=90)
        ax.set_yticks(range(len(words)), words if ax is axes[0] else [])
        ax.grid(visible=False)
    bars_with_cut(axes[2], s, k, "weights")
    return fig
