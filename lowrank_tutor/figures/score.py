"""Drag two vectors whose score has rank 1: it depends only on their shadows on two lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import direction, figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import point

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
    )
