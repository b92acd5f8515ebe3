"""What does one number keep of two? Drag a point and a line: the shadow, its one coordinate, and what is left out."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor.instruments.instrument import Instrument
from lowrank_tutor.plotting.style import ORANGE, PURPLE, TEAL, styled

REACH = 5.0
SAY = (
    "W x = {along:.2f} is all that is kept of x. It leads back to the shadow Px on the line, "
    "which is {left_out:.2f} away from x."
)
REMARKS = {
    "kept": "x lies on the line: its one coordinate says it all.",
    "lost": "x is perpendicular to the line: nothing of it is kept.",
}
WORDS = {
    "plane": "the plane: drag x, or turn the line",
    "x": "tip of x",
    "line": "direction of the line, the row of W",
    "degrees": " degrees",
}


def shadow(x: ArrayLike = (2.0, 4.0), w: ArrayLike = (0.8, 0.6)) -> Instrument:
    r"""Drag a point and a line, and see the shadow.

    Parameters
    ----------
    x : array_like, shape (2,)
        The point at first, each coordinate from -5 to 5.
    w : array_like, shape (2,)
        A direction of the line at first, of any length; the row of $W$ has length 1.

    Returns
    -------
    Instrument
        State ``x``, ``theta`` (the angle of the row, in radians); numbers ``along`` ($Wx$) and ``left_out``
        ($\|x - W^\top W x\|$).

    Raises
    ------
    ValueError
        If ``x`` or ``w`` is not two numbers, ``x`` lies too far out, or ``w`` is zero.

    Examples
    --------
    >>> {name: round(value, 6) for name, value in shadow().numbers.items()}
    {'along': 4.0, 'left_out': 2.0}
    """
    point, row = np.asarray(x, dtype=float), np.asarray(w, dtype=float)
    if point.shape != (2,) or not (np.abs(point) <= REACH).all():
        raise ValueError(f"x must be two numbers from {-REACH:g} to {REACH:g}, got {x!r}")
    if row.shape != (2,) or not np.isfinite(row).all() or not row.any():
        raise ValueError(f"w must be two finite numbers, not both zero, got {w!r}")
    theta = math.atan2(row[1], row[0])
    return Instrument(
        "shadow",
        state={"x": point.tolist(), "theta": theta},
        numbers=numbers(point, theta),
        say=SAY,
        remarks=REMARKS,
        data={"reach": REACH, "words": WORDS},
        labels={"along": "W x, the one number kept", "left_out": "distance from x to Px"},
        formats={"along": ".2f", "left_out": ".2f"},
        picture=lambda: _still(point, theta),
    )


def numbers(x: NDArray[np.float64], theta: float) -> dict[str, float]:
    """Return what the instrument says of a point and a line."""
    row = np.array([math.cos(theta), math.sin(theta)])
    along = float(row @ x)
    return {"along": along, "left_out": float(np.linalg.norm(x - along * row))}


@styled
def _still(x: NDArray[np.float64], theta: float) -> Figure:
    row = np.array([math.cos(theta), math.sin(theta)])
    foot = (row @ x) * row
    fig, ax = plt.subplots(layout="none", figsize=(3.2, 3.2))
    ax.plot(*np.outer(row, [-REACH, REACH]), color=PURPLE, linewidth=1)
    ax.plot(*np.transpose([foot, x]), "--", color=ORANGE)
    for tip, color, name in ((x, TEAL, "x"), (foot, PURPLE, "Px")):
        ax.annotate("", tuple(tip), (0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2})
        ax.annotate(name, tuple(tip), xytext=(4, 4), textcoords="offset points", color=color)
    ax.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
    return fig
