"""What does attention do to a sentence? Six words with two numbers each, chosen by hand, for chapters 5 to 7.

The first number of a word says how much it names a creature, the second how much it tells what happens. What a word
*asks* is its row of numbers times ``W_Q``: a word that tells what happens asks who does it, and twice as loudly as a
creature asks what happens. What it is *found by* are its own numbers (``W_K``), and what it *gives* are these numbers
with the creature counted twice (``W_V``). Nobody trained these matrices; a model learns such numbers, and many more.

``WORDS`` are the words, ``X`` (6, 2) their numbers, a row for each; ``W_Q``, ``W_K`` and ``W_V`` are (2, 2).
"""

WORDS = ("the", "cat", "slept", "it", "was", "tired")
X = ((0, 0), (2, 0), (0, 2), (1, 0), (0, 1), (1, 1))
W_Q = ((0, 1), (2, 0))
W_K = ((1, 0), (0, 1))
W_V = ((2, 0), (0, 1))
