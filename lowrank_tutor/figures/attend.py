"""Show what attention does with one word: a query to turn, weights as arcs, and the output on springs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.typed import phrases, read
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts import arrow
from lowrank_tutor.kit.charts.arguments import number, point
from lowrank_tutor.kit.charts.style import GRAY, INK, styled
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X

MOST, REACH, SHARPEST = 8, 4.4, 4.0  # words; how far a query goes; what multiplies the scores
SAY = (
    "Asking for {asks}, “{word}” gives {share:.0%} of its weight to {most}. It gets {gets}: the average of all values "
    "with these weights."
)
REMARKS = {
    "nothing": "A word that asks for nothing gets the plain mean of all values.",
    "own": "The numbers of your own words are made up from their spelling.",
}
CAPTION = (
    "Each arc is as thick as its weight. Left: the query (arrow) and the keys by which words are found (dots). Right: "
    "the values that words give. Each spring is as stiff as its weight, so the large dot, which is what the word gets, "
    "comes to rest at the weighted average."
)
PHRASES = {
    **phrases(MOST),
    "sentence": "Choose the word that listens",
    "chosen": "the word that asks",
    "keys": "Query and keys: drag the arrow",
    "values": "Values, and what the word gets",
    "query": "tip of the query",
    "creature": "creature",
    "happens": "what happens",
    "gets": "gets",
    "everyone": "all alike",
    "more": "More",
    "sharpness": "sharpness",
    "times": "scores times ",
}


def attend(
    word: str = "slept", query: ArrayLike | None = None, sharpness: float = 1.0, sentence: str = " ".join(WORDS)
) -> Instrument:
    r"""Show what one word of a sentence gets by attention, and let readers turn its query.

    The word with the query $q$ gives the words the weights $p = \operatorname{softmax}(K q / \sqrt 2)$, and gets
    $V^\top p$, the average of their values. Springs from all values, each as stiff as its weight, hold a dot at that
    place.

    State ``row`` (the word, counted from 0), ``query``, ``sharpness`` and ``words`` (the sentence); numbers ``share``
    (the largest weight), ``creature`` and ``happens`` (what the word gets).

    Parameters
    ----------
    word : str
        The word that asks at first, one of the sentence.
    query : array_like, shape (2,), optional
        What it asks for at first, each number from -4.4 to 4.4; without it, its own query.
    sharpness : float
        What multiplies the scores at first, from 0 to 4. The slider for it is folded away.
    sentence : str
        The words at first, 1 to 8 of those of ``lowrank_tutor.sentence``. Readers may type others, whose
        numbers are then made up from their spelling.

    Examples
    --------
    >>> {name: round(value, 2) for name, value in attend("slept").numbers.items()}
    {'share': 0.89, 'creature': 3.75, 'happens': 0.06}
    """
    words, _, (x,) = read(sentence, MOST, WORDS, {"x": np.array(X, float)}, {})
    row = words.index(one_of("word", word, words))
    asked = x[row] @ W_Q if query is None else point("query", query, REACH)
    sharpness = number("sharpness", sharpness, 0, SHARPEST)
    powers = np.exp(sharpness * x @ W_K @ asked / np.sqrt(2))
    weights, values = powers / powers.sum(), x @ W_V
    share, gets = weights.max(), weights @ values
    most = "all alike" if np.ptp(weights) < 1e-6 else f"“{words[weights.argmax()]}”"
    return figure(
        name="attend",
        parts=("linalg", "vectors", "labels", "typed", "arcs"),
        state={"row": row, "query": asked.tolist(), "sharpness": sharpness, "words": " ".join(words)},
        numbers={"share": float(share), "creature": float(gets[0]), "happens": float(gets[1])},
        values={"word": word, "most": most, "asks": _pair(asked), "gets": _pair(gets)},
        say=SAY,
        remarks=REMARKS,
        data={
            "known": WORDS,
            "numbers": X,
            "maps": [W_Q, W_K, W_V],
            "most": MOST,
            "reach": 2,
            "far": REACH,
            "sharpest": SHARPEST,
            "words": PHRASES,
        },
        readouts={
            "share": ("largest weight", ".0%"),
            "creature": ("output, creature", ".2f"),
            "happens": ("output, what happens", ".2f"),
        },
        caption=CAPTION,
        picture=lambda: _still(x @ W_K, values, asked, weights, words),
    )


def _pair(point: Floats) -> str:
    return "({:.1f}, {:.1f})".format(*point)


@styled
def _still(keys: Floats, values: Floats, query: Floats, weights: Floats, words: list[str]) -> Figure:
    fig, axes = plt.subplots(1, 2, layout="constrained", figsize=(4.6, 1.9))
    for ax, points, title in zip(axes, (keys, values), ("keys and the query", "values and the output"), strict=True):
        ax.plot(*points.T, "o", color=GRAY)
        for word, place in zip(words, points, strict=True):
            ax.annotate(word, place, xytext=(4, 4), textcoords="offset points")
        ax.set(title=title, xlabel="creature", ylabel="what happens")
    axes[0].plot(*query, "")  # within the limits
    arrow(axes[0], query, color=INK)
    for value, weight in zip(values, weights, strict=True):
        axes[1].plot(*zip(weights @ values, value, strict=True), color=INK, linewidth=0.4 + 8 * weight)
    axes[1].plot(*(weights @ values), "o", color=INK, markersize=9)
    return fig
