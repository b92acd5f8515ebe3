"""Helpers of the book *Low-Rank Attention*: one concept, one module, one chapter.

Import what you need from its module, for example ``from lowrank_tutor.svd import truncated_svd``.
Importing the package itself imports nothing else.
"""

__version__ = "0.1.0"
