"""The engine of the pages: sliders, figures, questions, charts, and tables.

It knows no low rank, and any notebook or book can use it: ``lowrank_tutor/kit/README.md`` says how
it works. The calls that people need come from here, such as ``from lowrank_tutor.kit import
explore``; what draws is in :mod:`lowrank_tutor.kit.charts`.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand

if TYPE_CHECKING:
    from lowrank_tutor.kit.canvas import Instrument
    from lowrank_tutor.kit.charts import curves
    from lowrank_tutor.kit.questions import check, draw_first, register
    from lowrank_tutor.kit.sliders import Explorer, explore
    from lowrank_tutor.kit.tables import number, table

__all__ = [
    "Explorer",
    "Instrument",
    "check",
    "curves",
    "draw_first",
    "explore",
    "number",
    "register",
    "table",
]
__getattr__, __dir__ = on_demand(__name__, "questions", "tables", "sliders", "canvas", "charts")
