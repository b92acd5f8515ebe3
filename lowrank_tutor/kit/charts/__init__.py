"""Draw every figure of the book in one style.

Each function returns a matplotlib figure, or :class:`Panels`, several that stand side by side where
there is room and one below the other on a phone. None is registered with pyplot, so that a notebook
shows each once, where it is the last line of a cell. A chapter composes what it alone needs on a
:func:`panel` or a :func:`sheet`, in a function that is :func:`styled`.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.kit.charts.charts import arrow, curves, label_lines
    from lowrank_tutor.kit.charts.pictures import (
        boxes,
        draw_row,
        equation,
        grids,
        picture,
        word_maps,
    )
    from lowrank_tutor.kit.charts.style import (
        GRAY,
        INK,
        MUTED,
        ORANGE,
        SIGNED,
        TEAL,
        VIOLET,
        WEIGHTS,
        Panels,
        panel,
        photograph,
        sheet,
        styled,
    )

__all__ = [
    "GRAY", "INK", "MUTED", "ORANGE", "SIGNED", "TEAL", "VIOLET", "WEIGHTS", "Panels", "arrow",
    "boxes", "curves", "draw_row", "equation", "grids", "label_lines", "panel",
    "photograph", "picture", "sheet", "styled", "word_maps",
]  # fmt: skip
