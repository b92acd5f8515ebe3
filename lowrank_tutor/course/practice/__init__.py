"""Problems that never run out: fresh numbers, every step, and a hint for each typical mistake.

:func:`another` draws a problem of one of the ``KINDS``, each of which belongs to a chapter.
"""

from lowrank_tutor.course.practice.problem import ALL, Problem, another

__all__ = ["KINDS", "Problem", "another"]

KINDS = {name: kind.chapter for name, kind in ALL.items()}
