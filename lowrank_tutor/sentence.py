"""A sentence for chapters 5 to 7: six words with two numbers each, chosen by hand.

The first number of a word says how strongly it names a creature, the second how strongly it says
what happens. A word *asks for* its numbers times ``W_Q``: a word that says what happens asks who
does it, twice as loudly as a creature asks what happens. It is *found by* its own numbers
(``W_K``), and *gives* these numbers with the creature counted twice (``W_V``). Nobody trained these
matrices; a model learns such numbers, and many more.

``WORDS`` are the words, ``X`` (6, 2) their numbers, a row for each; ``W_Q``, ``W_K`` and ``W_V``
are (2, 2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import FloatArray, as_matrix

__all__ = ["WORDS", "W_K", "W_Q", "W_V", "X", "attention"]

WORDS = ("the", "cat", "slept", "it", "was", "tired")
X = ((0, 0), (2, 0), (0, 2), (1, 0), (0, 1), (1, 1))
W_Q = ((0, 1), (2, 0))
W_K = ((1, 0), (0, 1))
W_V = ((2, 0), (0, 1))


def attention(x: ArrayLike = X) -> tuple[FloatArray, FloatArray]:
    r"""Return the weights (n, n) with which words listen to each other, and what they give, (n, 2).

    ``x`` (n, 2) are the numbers of the words. The weights are $P = \mathrm{softmax}(QK^\top / \sqrt
    2)$, and $PV$ is what the words hear.

    >>> attention()[0][WORDS.index("slept")].round(2)  # most to the cat
    array([0.  , 0.89, 0.  , 0.05, 0.  , 0.05])
    """
    words = as_matrix(x, "x", np.float64, ("n", 2))
    logits = words @ W_Q @ (words @ W_K).T / math.sqrt(2)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), words @ W_V
