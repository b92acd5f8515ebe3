"""Questions with an answer: predictions before a picture, and checks after an exercise.

A cell ``check("its-name", ...)`` compares an answer, with a hint for common wrong ones. In a
notebook, put your answer in place of the dots. When a page is built (see
``lowrank_tutor.kit.sphinxext``), the cell becomes a field to type the answer into. Both compare on
the spot: there is no account, and nothing is sent anywhere, so the answers can be found in the
page's source. A book registers its questions in any earlier cell (:func:`register`).
:func:`draw_first` asks for a guess, and shows the answer only after it.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.kit.questions.exercises import Verdict, check, register

if TYPE_CHECKING:  # its picture needs matplotlib, which who only checks answers need not have
    from lowrank_tutor.kit.questions.prediction import draw_first

__all__ = ["Verdict", "check", "draw_first", "register"]
__getattr__, __dir__ = on_demand(__name__, "prediction")
