"""Drag two vectors whose score has rank 1: it depends only on their shadows on two lines."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import direction, figure
from lowrank_tutor.figures.parts.stills import square, still
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts import arrow
from lowrank_tutor.kit.charts.arguments import point
from lowrank_tutor.kit.charts.style import INK, TEAL, VIOLET

REACH = 4.0
SAY = (
    "The score depends only on a = {a:.2f} from s and b = {b:.2f} from h: a times b is {score:.2f}."
)
REMARKS = {
    "same": "The move was at right angles to the line, so the shadow stays the same, "
    "and so does the score.",
    "zero": "One shadow has shrunk to nothing: the score is zero, whatever the other vector is.",
}


def score(
    s: ArrayLike = (1, 2), u: ArrayLike = (2, 1), v: ArrayLike = (1, -1), h: ArrayLike = (3, 4)
) -> Instrument:
    r"""Show two vectors that can be dragged, and their score as the area of a rectangle.

    With $W = u v^\top$ of rank 1 the score $s^\top W h$ is $a b$ with $a = u \cdot s$ and $b = v
    \cdot h$. They depend only on the shadow of s on the line along u and the shadow of h on the
    line along v.

    State ``s``, ``h``; numbers ``score`` (computed from all of W), ``a`` and ``b``.

    Parameters
    ----------
    s, h : array_like, shape (2,)
        The vectors at the start, each coordinate from -4 to 4.
    u, v : array_like, shape (2,) or (1, 2)
        The vectors that make up the table W, not zero.

    Examples
    --------
    >>> score().numbers
    {'score': -4.0, 'a': 4.0, 'b': -1.0}
    """
    s, h = point("s", s, REACH), point("h", h, REACH)
    u, v = direction("u", np.ravel(u)), direction("v", np.ravel(v))
    return figure(
        name="score",
        parts=("vectors",),
        state={"s": s.tolist(), "h": h.tolist()},
        numbers={"score": float(s @ np.outer(u, v) @ h), "a": float(u @ s), "b": float(v @ h)},
        say=SAY,
        remarks=REMARKS,
        data={
            "u": u.tolist(),
            "v": v.tolist(),
            "w": np.outer(u, v).tolist(),
            "reach": REACH,
        },
        readouts={
            "score": ("score sᵀWh", ".2f"),
            "a": ("a = u · s", ".2f"),
            "b": ("b = v · h", ".2f"),
        },
        picture=still(_draw, s, u, v, h, size=(5.8, 2.9), ncols=2),
    )


def _draw(s: Floats, u: Floats, v: Floats, h: Floats, plane: Axes, area: Axes) -> None:
    for tip, row, color, name in ((s, u, TEAL, "s"), (h, v, INK, "h")):
        foot = row * (row @ tip) / (row @ row)
        plane.axline((0, 0), tuple(row), color=color, linewidth=1)
        plane.plot(*np.transpose([foot, tip]), "--", color=color, linewidth=1)
        plane.plot(*np.transpose([0 * foot, foot]), "-", color=color, linewidth=5, alpha=0.5)
        arrow(plane, tip, color=color, name=name)
    square(plane, REACH)
    a, b = float(u @ s), float(v @ h)
    area.fill([0, a, a, 0], [0, 0, b, b], color=VIOLET if a * b < 0 else INK, alpha=0.25)
    area.plot([0, a], [0, 0], "-", color=TEAL, linewidth=4)
    area.plot([0, 0], [0, b], "-", color=INK, linewidth=4)
    square(area, 1.3 * max(abs(a), abs(b), 1.0), f"area {a * b:.2f}")
