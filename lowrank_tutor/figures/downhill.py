"""Drag a ball over a map of heights, and let it roll downhill in steps."""

from __future__ import annotations

from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import number, point

REACH = 2.4
LAST = 20  # steps
SIZES = (0.02, 0.4)
SAY = (
    "After {step} steps of size {size:g}, f is {f:.2f}, c is {c:.2f}, "
    "and the height is {height:.4f}."
)
REMARKS = {
    "uphill": "The last step jumped across the valley, and landed higher.",
    "gone": "The next step would leave the map.",
    "level": "The ground is level here, but this is no valley: it is a saddle.",
}
CAPTION = (
    "The gray lines join places of the same height: \u00bc, 1, and 4. The dotted curves are the "
    "bottoms of the two valleys, with the height 0. Small teal dots mark where the ball has been, "
    "and the arrow shows its next step."
)


def downhill(start: ArrayLike = (2.0, 0.0), size: float = 0.1) -> Instrument:
    """Show a ball in the landscape (1 - cf)^2, to drag or to move by gradient descent.

    State ``start`` (f and c), ``size`` (of a step) and ``step`` (how many were taken, at most 20;
    none leads off the map); numbers ``f``, ``c`` and ``height``.

    Parameters
    ----------
    start : array_like, shape (2,)
        Where the ball is at first, each coordinate from -2.4 to 2.4.
    size : float
        What the gradient is multiplied by, from 0.02 to 0.4.

    Examples
    --------
    >>> downhill((2, 1)).numbers["height"]
    1.0
    """
    place, size = point("start", start, REACH), number("size", size, *SIZES)
    f, c = map(float, place)
    return figure(
        name="downhill",
        parts=("vectors",),
        state={"start": [f, c], "size": size, "step": 0},
        numbers={"f": f, "c": c, "height": (1 - c * f) ** 2},
        say=SAY,
        remarks=REMARKS,
        data={"reach": REACH, "last": LAST, "sizes": SIZES},
        readouts={"height": ("height", ".4f"), "f": ("f", ".2f"), "c": ("c", ".2f")},
        caption=CAPTION,
    )
