"""What the pages of this book ask: exercises that check an answer, and problems that never run out.

:func:`~lowrank_tutor.kit.questions.check` knows the exercises by name. :func:`another` draws a
problem of one of the ``KINDS``, each of which belongs to a chapter: fresh numbers, every step, and
a hint for each typical mistake.
"""

from lowrank_tutor.course.answers import check
from lowrank_tutor.course.practice import KINDS, Problem, another

__all__ = ["KINDS", "Problem", "another", "check"]
