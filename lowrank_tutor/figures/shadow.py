"""Drag a point and a line, and see how much of the point its shadow on the line keeps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import direction, figure
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import point

REACH = 5.0
SAY = (
    "At {angle:.0f} degrees to the line, the shadow Πx keeps {share:.0%} of the length of x. "
    "The number kept is Fx = {along:.2f}, and Πx is {left_out:.2f} away from x."
)
REMARKS = {
    "kept": "x lies on the line: one number says it all.",
    "lost": "x is perpendicular to the line: nothing of it is kept.",
    "steep": "One degree more would cost another {more:.2%} of the length of x.",
    "zero": "x is zero, so there is nothing to keep and nothing to lose.",
}
CAPTION = (
    "The line is teal, and so is the shadow on it, which is kept. The part that is left out is "
    "orange. The curve shows what share of the length is kept at each angle."
)


def shadow(x: ArrayLike = (2.0, 4.0), f: ArrayLike = (0.8, 0.6)) -> Instrument:
    r"""Show the shadow of a point on a line.

    Both can be dragged, and so can the angle between them. State ``x``, ``theta`` (the angle of the
    row, in radians); numbers ``share`` ($\|\Pi x\| / \|x\|$ with $\Pi = F^\top F$; 1 of a zero),
    ``angle`` (between x and the line, 0 to 90 degrees; 0 of a zero), ``along`` ($Fx$) and
    ``left_out`` ($\|x - \Pi x\|$).

    Parameters
    ----------
    x : array_like, shape (2,)
        The point at first, each coordinate from -5 to 5.
    f : array_like, shape (2,)
        A direction of the line at first, of any length; the row of $F$ has length 1.

    Examples
    --------
    >>> {name: round(value, 4) for name, value in shadow().numbers.items()}
    {'share': 0.8944, 'angle': 26.5651, 'along': 4.0, 'left_out': 2.0}
    """
    place, row = point("x", x, REACH), direction("f", f)
    theta = math.atan2(row[1], row[0])
    return figure(
        name="shadow",
        parts=("vectors",),
        state={"x": place.tolist(), "theta": theta},
        numbers=_numbers(place, theta),
        say=SAY,
        remarks=REMARKS,
        data={"reach": REACH},
        readouts={
            "share": ("length kept", ".1%"),
            "angle": ("angle in degrees", ".1f"),
            "along": ("Fx, the number kept", ".2f"),
            "left_out": ("distance from x to Πx", ".2f"),
        },
        caption=CAPTION,
    )


def _numbers(x: Floats, theta: float) -> dict[str, float]:
    row = np.array([math.cos(theta), math.sin(theta)])
    along = float(row @ x)
    left_out, length = float(np.linalg.norm(x - along * row)), float(np.linalg.norm(x))
    angle = math.degrees(math.atan2(left_out, abs(along)))
    return {
        "share": abs(along) / length if length else 1.0,
        "angle": angle,
        "along": along,
        "left_out": left_out,
    }
