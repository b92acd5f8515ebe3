"""Drag the borders of windows over a sentence, and a query among its keys, and see what windows lose."""

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.figures.parts.typed import REACH, phrases
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.style import INK, ORANGE, TEAL

WIDE = 3  # words in a window at first
QUERY = (2.5, 0.0)  # at first
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


def windows() -> Instrument:
    r"""Show windows over twelve words, whose borders can be dragged, and what a query loses by them.

    Exact attention gives the query the output $PV$ with $P = \operatorname{softmax}(\beta K q / \sqrt 2)$, where the
    sharpness $\beta$ multiplies the logits. Through windows, each acts as one token, with the mean of its keys and the
    mean of its values. A reader may type other words; their keys and values are then made up from their spelling.

    State ``borders`` (the first token of each window, counted from 0: every third at first), ``sharpness``, ``query``,
    ``words`` (the sentence); numbers ``gap`` (the distance of the two outputs over the norm of the exact one),
    ``weights_exact`` and ``weights_mixed`` (how many weights there are).

    Examples
    --------
    >>> f"{windows().numbers['gap']:.0%}"
    '62%'
    """
    words, borders = SENTENCE.split(), list(range(0, len(KEYS), WIDE))
    exact, mixed = _weights(KEYS), _weights(_means(KEYS))
    output, shared = exact @ VALUES, np.repeat(mixed / WIDE, WIDE)
    most = int(exact.argmax())
    return figure(
        name="windows",
        parts=("linalg", "vectors", "labels", "typed"),
        state={"borders": borders, "sharpness": 1.0, "query": list(QUERY), "words": SENTENCE},
        numbers={
            "gap": float(np.linalg.norm(output - mixed @ _means(VALUES)) / np.linalg.norm(output)),
            "weights_exact": len(exact),
            "weights_mixed": len(mixed),
        },
        values={"most": words[most], "share": exact[most], "through": shared[most]},
        say=SAY,
        remarks=REMARKS,
        data={
            "keys": KEYS.tolist(),
            "values": VALUES.tolist(),
            "known": words,
            "reach": REACH,
            "most": len(words),
            "sharpest": SHARPEST,
            "fine": FINE,
            "words": phrases(len(words)),
        },
        readouts={
            "gap": ("gap between the outputs", ".1%"),
            "weights_exact": ("weights, exact", ","),
            "weights_mixed": ("weights through windows", ","),
        },
        picture=still(_draw, exact, shared, borders, words, size=(4.6, 1 + 0.2 * len(words))),
    )


def _means(rows: Floats) -> Floats:
    """Return the mean row of each window."""
    return np.asarray(rows.reshape(-1, WIDE, 2).mean(axis=1))


def _weights(keys: Floats) -> Floats:
    """Return the weights of the query over keys."""
    powers = np.exp(keys @ QUERY / np.sqrt(2))
    return np.asarray(powers / powers.sum())


def _draw(exact: Floats, shared: Floats, borders: list[int], words: list[str], ax: Axes) -> None:
    rows = np.arange(len(words))
    ax.barh(rows, shared, height=1.0, color=TEAL, alpha=0.3, label="through windows")
    ax.barh(rows, exact, height=0.4, color=INK, label="exact")
    ax.hlines(np.array(borders[1:]) - 0.5, 0, exact.max(), color=ORANGE)
    ax.set_yticks(rows, words)
    ax.set(ylim=(len(words) - 0.5, -0.5), xlabel="weight of the query")
    ax.legend(loc="lower right")
