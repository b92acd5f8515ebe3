"""A sentence for chapters 5 to 7: six words with two numbers each, chosen by hand.

The first number of a word says how strongly it names a creature, the second how strongly it says what happens. A word
*asks for* its numbers times ``W_Q``: a word that says what happens asks who does it, twice as loudly as a creature asks
what happens. It is *found by* its own numbers (``W_K``), and *gives* these numbers with the creature counted twice
(``W_V``). Nobody trained these matrices; a model learns such numbers, and many more.

``WORDS`` are the words, ``X`` (6, 2) their numbers, a row for each; ``W_Q``, ``W_K`` and ``W_V`` are (2, 2).
"""

__all__ = ["WORDS", "W_K", "W_Q", "W_V", "X"]
__dir__ = __all__.copy  # completion offers no more than that

WORDS = ("the", "cat", "slept", "it", "was", "tired")
X = ((0, 0), (2, 0), (0, 2), (1, 0), (0, 1), (1, 1))
W_Q = ((0, 1), (2, 0))
W_K = ((1, 0), (0, 1))
W_V = ((2, 0), (0, 1))
