"""A check for every exercise, with a hint for the answers that many people give first.

Each exercise of the book has a cell ``check("its-name", ...)``. In a notebook, put an answer in place of the dots. On
a page that is being built (see ``lowrank_tutor.sphinxext``) the cell comes out as a field to type the answer in. Both
compare on the spot: no account, and nothing is sent anywhere. A book of your own registers its questions in any cell
before that one (:func:`register`). As with every page that checks by itself, whoever looks at its source finds the
answers there.
"""

from lowrank_tutor.exercises.answers import Verdict, check
from lowrank_tutor.exercises.own import register

__all__ = ["Verdict", "check", "register"]
