"""Show what attention does with one word.

There is a query to turn, weights as arcs, and the output on springs.
"""

import numpy as np

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X, attention

REACH, SHARPEST = 4.4, 4.0  # how far a query goes; what multiplies the scores
SAY = (
    "Asking for {asks}, “{word}” gives {share:.0%} of its weight to {most}. It gets {gets}: "
    "the average of all values with these weights."
)
REMARKS = {"nothing": "A word that asks for nothing gets the plain mean of all values."}
CAPTION = (
    "Each arc is as thick as its weight. Left: the query (arrow) and the keys by which words are "
    "found (dots). Right: the values that words give. Each spring is as stiff as its weight, so "
    "the large dot, which is what the word gets, comes to rest at the weighted average."
)


def attend(word: str = "slept") -> Instrument:
    r"""Show what one word of a sentence gets by attention, and let readers turn its query.

    The word with the query $q$ gives the words the weights $p = \operatorname{softmax}(K q / \sqrt
    2)$, and gets $V^\top p$, the average of their values. Springs from all values, each as stiff as
    its weight, hold a dot at that place.

    State ``row`` (the word, counted from 0), ``query`` and ``sharpness``; numbers ``share`` (the
    largest weight), ``creature`` and ``happens`` (what the word gets).

    Parameters
    ----------
    word : str
        The word that asks at first, one of "the cat slept it was tired".

    Examples
    --------
    >>> {name: round(value, 2) for name, value in attend("slept").numbers.items()}
    {'share': 0.89, 'creature': 3.75, 'happens': 0.06}
    """
    row = WORDS.index(one_of("word", word, WORDS))
    table, values = attention()
    asked, weights = np.array(X[row], float) @ W_Q, table[row]
    share, gets = weights.max(), weights @ values
    most = "all alike" if np.ptp(weights) < 1e-6 else f"“{WORDS[weights.argmax()]}”"
    return figure(
        name="attend",
        parts=("linalg", "vectors", "labels", "arcs"),
        state={"row": row, "query": asked.tolist(), "sharpness": 1.0},
        numbers={"share": float(share), "creature": float(gets[0]), "happens": float(gets[1])},
        values={"word": word, "most": most, "asks": _pair(asked), "gets": _pair(gets)},
        say=SAY,
        remarks=REMARKS,
        data={
            "tokens": WORDS,
            "numbers": X,
            "maps": [W_Q, W_K, W_V],
            "far": REACH,
            "sharpest": SHARPEST,
        },
        readouts={
            "share": ("largest weight", ".0%"),
            "creature": ("output, creature", ".2f"),
            "happens": ("output, what happens", ".2f"),
        },
        caption=CAPTION,
    )


def _pair(point: Floats) -> str:
    return "({:.1f}, {:.1f})".format(*point)
