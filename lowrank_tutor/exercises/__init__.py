"""A check for every exercise, with a hint for common wrong answers.

Each exercise of the book has a cell ``check("its-name", ...)``. In a notebook, put your answer in place of the dots.
When a page is built (see ``lowrank_tutor.sphinxext``), the cell becomes a field to type the answer into. Both compare
on the spot: there is no account, and nothing is sent anywhere, so the answers can be found in the page's source. A
book of your own registers its questions in any earlier cell (:func:`register`).
"""

from lowrank_tutor.exercises.answers import Verdict, check
from lowrank_tutor.exercises.own import register

__all__ = ["Verdict", "check", "register"]
__dir__ = __all__.copy  # completion offers no more than that
