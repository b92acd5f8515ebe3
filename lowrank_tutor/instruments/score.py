"""Drag two vectors whose score has rank 1: only their shadows on two lines count."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import as_float_array
from lowrank_tutor.instruments.instrument import Floats, Instrument, arrow
from lowrank_tutor.plotting.arguments import point
from lowrank_tutor.plotting.style import ORANGE, TEAL, VIOLET, styled

REACH = 5.0
LIMIT = 10.0  # of an entry of u and v
SAY = "The score takes p = {p:.2f} from s and q = {q:.2f} from h, and nothing else: p times q is {score:.2f}."
REMARKS = {
    "same": "Each moved only across its line: the shadows are the same, and so is the score.",
    "flipped": "One shadow flipped to the other side, and the score changed its sign.",
    "doubled": "One side is twice as long, and so the score is twice as large.",
    "halved": "One side is half as long, and so the score is half as large.",
    "zero": "One shadow has shrunk to nothing: the score is zero, whatever the other vector does.",
}
WORDS = {
    "plane": "Drag s and h. Thick: their shadows. Along a dashed line a shadow stays the same.",
    "area": "The score is the area p times q in unit squares, negative where p and q have different signs.",
    "s": "tip of s",
    "h": "tip of h",
    "row": {"s": "u", "h": "v"},
    "p": "p = u · s",
    "q": "q = v · h",
    "size": "area ",
    "full": "In full, sᵀWh = ",
    "short": "By shadows, p · q = ",
    "push": "Push s across its line",
    "flip": "Flip s",
    "double": "Double or halve s",
    "no_room": "There is no room for that: drag s nearer to the middle first.",
}


def score(
    s: ArrayLike = (1.0, 2.0),
    u: ArrayLike = (2.0, 1.0),
    v: ArrayLike = (1.0, -1.0),
    h: ArrayLike = (3.0, 4.0),
) -> Instrument:
    r"""Show two vectors that can be dragged, and their score as the area of a rectangle.

    With $W = u v^\top$ of rank 1 the score $s^\top W h$ is $p q$ with $p = u \cdot s$ and $q = v \cdot h$. These are
    what the shadows of s and h are worth, on a line along u and a line along v.

    State ``s``, ``h``; numbers ``score`` (computed from all of W), ``p`` and ``q``.

    Parameters
    ----------
    s, h : array_like, shape (2,)
        The vectors at first, each coordinate from -5 to 5.
    u, v : array_like, shape (2,) or (1, 2)
        The vectors of which the table W is made, not zero, each entry from -10 to 10.

    Examples
    --------
    >>> score().numbers
    {'score': -4.0, 'p': 4.0, 'q': -1.0}
    """
    tips = {"s": point("s", s, REACH), "h": point("h", h, REACH)}
    rows = {name: as_float_array(value, name).astype(np.float64) for name, value in (("u", u), ("v", v))}
    for name, row in rows.items():
        if row.shape not in ((2,), (1, 2)) or not (np.abs(row) <= LIMIT).all() or np.abs(row).max() < 1 / LIMIT:
            rule = f"two numbers from {-LIMIT:g} to {LIMIT:g}, one of a size of at least {1 / LIMIT:g}"
            raise ValueError(f"{name} must be {rule}, got {row.tolist()!r}")
    left, right = rows["u"].reshape(2), rows["v"].reshape(2)
    start = numbers(tips["s"], left, right, tips["h"])
    return Instrument(
        name="score",
        state={name: tip.tolist() for name, tip in tips.items()},
        numbers=start,
        say=SAY,
        remarks=REMARKS,
        data={
            "u": left.tolist(),
            "v": right.tolist(),
            "w": np.outer(left, right).tolist(),
            "reach": REACH,
            "words": {**WORDS, "table": f"This is W = uvᵀ with u = {_written(left)} and v = {_written(right)}."},
        },
        readouts={"score": ("score sᵀWh", ".2f"), "p": ("p = u · s", ".2f"), "q": ("q = v · h", ".2f")},
        picture=lambda: _still(tips["s"], left, right, tips["h"]),
    )


def numbers(s: Floats, u: Floats, v: Floats, h: Floats) -> dict[str, float]:
    """Compute the numbers of two vectors and the table of u and v."""
    return {"score": float(s @ np.outer(u, v) @ h), "p": float(u @ s), "q": float(v @ h)}


def _written(row: Floats) -> str:
    return f"({row[0]:g}, {row[1]:g})"


@styled
def _still(s: Floats, u: Floats, v: Floats, h: Floats) -> Figure:
    fig, (plane, area) = plt.subplots(1, 2, layout="constrained", figsize=(5.8, 2.9))
    for tip, row, color, name in ((s, u, TEAL, "s"), (h, v, VIOLET, "h")):
        foot = row * (row @ tip) / (row @ row)
        far = row / np.abs(row).max() * REACH
        plane.plot(*np.transpose([-far, far]), "-", color=color, linewidth=1)
        plane.plot(*np.transpose([foot, tip]), "--", color=color, linewidth=1)
        plane.plot(*np.transpose([0 * foot, foot]), "-", color=color, linewidth=5, alpha=0.5)
        arrow(plane, tip, color, name)
    plane.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal")
    found = numbers(s, u, v, h)
    p, q = found["p"], found["q"]
    area.fill([0, p, p, 0], [0, 0, q, q], color=ORANGE if found["score"] < 0 else "black", alpha=0.25)
    area.plot([0, p], [0, 0], "-", color=TEAL, linewidth=4)
    area.plot([0, 0], [0, q], "-", color=VIOLET, linewidth=4)
    far = 1.3 * max(abs(p), abs(q), 1.0)
    area.set(xlim=(-far, far), ylim=(-far, far), aspect="equal", title=f"area {found['score']:.2f}", xlabel="p")
    return fig
