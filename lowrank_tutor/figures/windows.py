"""Drag the borders of windows over a sentence, and a query among its keys, and see what windows lose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import as_float_array
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.typed import REACH, phrases, read
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import number, point
from lowrank_tutor.kit.charts.style import INK, ORANGE, TEAL, styled

MOST = 12  # words
SHARPEST = 4.0
FINE = 0.15  # a gap that is small
SENTENCE = "the old gray cat slept because it was tired after the hunt"
# How much a word names a creature, and how much it tells what happens: six words have the numbers of sentence.
_CHOSEN = "0 0, 0.7 0.4, 1.4 -0.4, 2 0, 0 2, -0.7 0.6, 1 0, 0 1, 1 1, -0.6 1.2, 0 0, 0.9 1.7"
KEYS = np.array([[float(number) for number in pair.split()] for pair in _CHOSEN.split(", ")])
VALUES = KEYS * [2, 1]  # a creature counts twice
SAY = (
    "The query looks most at “{most}”, with {share:.0%} of its weight; through windows that word gets {through:.0%}. "
    "The outputs are {gap:.0%} apart, with {weights_mixed} weights in place of {weights_exact}."
)
REMARKS = {
    "each": "Every word is a window of its own, so nothing is lost and nothing saved.",
    "single": "With a single window every query gets the same: the mean of all values.",
    "votes": "This query has no preference: each window has one vote, whether it holds one word or many.",
    "near": "Words that share a window are alike here, or this query hardly looks at them.",
    "own": "Keys and values of your own words are made up.",
}
WORDS = {
    "plane": "Keys. Drag the query: it looks at keys in its direction. Teal: the mean key of each window.",
    "list": "Weights. Narrow bars: exact. Teal: through windows, shared equally by the words. Drag the borders.",
    "result": "Values, and what the query gets, exactly and through windows",
    "query": "tip of the query",
    "border": "border {j}, between windows",
    "between": "between {before} and {after}",
    "weight": "weight (right: of a whole window)",
    "exact": "exact",
    "mixed": "windows",
    "gap": "Gap: ",
    "between_outputs": "The line between what the query gets exactly and through windows. Gray: the values.",
    "sharpness": "sharpness",
    "times": "scores times ",
    "count": "windows",
    "of": "{k} for {n} words",
    **phrases(MOST),
    "rule": (
        "Words of the first sentence have numbers chosen by hand: right for a creature, up for what happens. "
        "Others get random ones, drawn from their spelling."
    ),
    "made_up": "Words of the first sentence have the numbers given for them. Others get random ones.",
}


def windows(
    borders: Sequence[int] | None = None,
    sharpness: float = 1.0,
    query: ArrayLike = (2.5, 0.0),
    sentence: str = SENTENCE,
    *,
    keys: ArrayLike | None = None,
    values: ArrayLike | None = None,
) -> Instrument:
    r"""Show windows over twelve words, whose borders can be dragged, and what a query loses by them.

    Exact attention gives the query the output $PV$ with $P = \operatorname{softmax}(\beta K q / \sqrt 2)$, where the
    sharpness $\beta$ multiplies the logits. Through windows, each acts as one token, with the mean of its keys and the
    mean of its values. A reader may type other words; their keys and values are then made up from their spelling.

    State ``borders``, ``sharpness``, ``query``, ``words`` (the sentence); numbers ``gap`` (the distance of the two
    outputs over the norm of the exact one), ``weights_exact`` and ``weights_mixed`` (how many weights there are).

    Parameters
    ----------
    borders : sequence of int, optional
        The first token of each window at first, counted from 0: rising, and the first is 0. By default every third.
    sharpness : float
        What multiplies the logits at first, from 0 to 4.
    query : array_like, shape (2,)
        The query at first, each number from -2.6 to 2.6.
    sentence : str
        The words at first, 1 to 12 of those whose keys and values were chosen by hand: those of "the old gray cat
        slept because it was tired after the hunt". With ``keys`` and ``values``, any different words.
    keys, values : array_like, shape (words, 2), optional
        A key and a value for each word of your own sentence, each number from -2.6 to 2.6; both or neither.

    Examples
    --------
    >>> start, better = windows().numbers, windows(borders=[0, 2, 4, 6]).numbers
    >>> f"{start['gap']:.0%}, {better['gap']:.0%}"
    '62%, 9%'
    """
    own = {} if keys is None and values is None else {"keys": keys, "values": values}
    words, known, (k, v) = read(sentence, MOST, SENTENCE.split(), {"keys": KEYS, "values": VALUES}, own)
    wished = as_float_array(range(0, len(words), 3) if borders is None else borders, "borders")
    first = [int(border) for border in np.nan_to_num(wished).ravel()]
    rising = all(before < after for before, after in pairwise([*first, len(words)]))
    if not rising or first[:1] != [0] or first != wished.tolist():
        rule = f"whole numbers from 0, each larger than the one before and below {len(words)}"
        raise ValueError(f"borders must be {rule}, got {borders!r}")
    sharpness = number("sharpness", sharpness, 0, SHARPEST)
    asked = point("query", query, REACH)
    exact, mixed = _weights(k, first, sharpness, asked)
    spread = _spread(mixed, first, len(words))
    most = int(exact.argmax())
    return figure(
        name="windows",
        parts=("linalg", "vectors", "labels", "typed"),
        state={"borders": first, "sharpness": sharpness, "query": asked.tolist(), "words": " ".join(words)},
        numbers=numbers(k, v, first, sharpness, asked),
        values={"most": words[most], "share": exact[most], "through": spread[most]},
        say=SAY,
        remarks=REMARKS,
        data={
            "keys": (k if own else KEYS).tolist(),
            "values": (v if own else VALUES).tolist(),
            "known": known,
            "reach": REACH,
            "most": MOST,
            "sharpest": SHARPEST,
            "fine": FINE,
            "words": WORDS | ({"rule": WORDS["made_up"]} if own else {}),
        },
        readouts={
            "gap": ("gap between the outputs", ".1%"),
            "weights_exact": ("weights, exact", ","),
            "weights_mixed": ("weights through windows", ","),
        },
        picture=lambda: _still(exact, spread, first, words),
    )


def numbers(keys: Floats, values: Floats, borders: Sequence[int], sharpness: float, query: Floats) -> dict[str, float]:
    """Compute the numbers of tokens, windows and a query."""
    exact, mixed = _weights(keys, borders, sharpness, query)
    output = exact @ values
    gap = np.linalg.norm(output - mixed @ _means(values, borders)) / (np.linalg.norm(output) or 1)
    return {"gap": float(gap), "weights_exact": len(exact), "weights_mixed": len(mixed)}


def _means(rows: Floats, borders: Sequence[int]) -> Floats:
    """Return the mean row of each window."""
    sizes = np.diff([*borders, len(rows)])
    return np.asarray(np.add.reduceat(rows, borders) / sizes[:, None])


def _weights(keys: Floats, borders: Sequence[int], sharpness: float, query: Floats) -> tuple[Floats, Floats]:
    """Return the weights of the query over the tokens, and over the windows."""
    powers = [np.exp(sharpness * some @ query / np.sqrt(2)) for some in (keys, _means(keys, borders))]
    return powers[0] / powers[0].sum(), powers[1] / powers[1].sum()


def _spread(mixed: Floats, borders: Sequence[int], count: int) -> Floats:
    """Return what each token gets of the weights of the windows."""
    sizes = np.diff([*borders, count])
    return np.repeat(mixed / sizes, sizes)


@styled
def _still(exact: Floats, spread: Floats, borders: Sequence[int], words: Sequence[str]) -> Figure:
    fig, ax = plt.subplots(layout="constrained", figsize=(4.6, 1 + 0.2 * len(words)))
    rows = np.arange(len(words))
    ax.barh(rows, spread, height=1.0, color=TEAL, alpha=0.3, label="through windows")
    ax.barh(rows, exact, height=0.4, color=INK, label="exact")
    ax.hlines(np.array(borders[1:]) - 0.5, 0, exact.max(), color=ORANGE)
    ax.set_yticks(rows, words)
    ax.set(ylim=(len(words) - 0.5, -0.5), xlabel="weight of the query")
    ax.legend(loc="lower right")
    return fig
