"""Drag a matrix's columns and a unit vector: the circle becomes an ellipse.

Its half-axes give the rank.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite

LIMIT = 100  # of an entry
THETA = 0.3  # the direction of the input at first, in radians
INPUT = (math.cos(THETA), math.sin(THETA))
FORMS = {
    "ellipse": (
        "With x at {degrees} degrees, the length of Ax is {length:.2f}. For all inputs of length 1 "
        "it is between {sigma_2:.2f} and {sigma_1:.2f}. The rank is {rank}."
    ),
    "rank": (
        "Half the length of the ellipse is {sigma_1:.2f}, and half its width is {sigma_2:.2f}. "
        "The rank is {rank}."
    ),
}
SIGMAS = {
    "ellipse": ("σ₁, the longest Ax", "σ₂, the shortest Ax"),
    "rank": ("σ₁, half the length of the ellipse", "σ₂, half its width"),
}
REMARKS = {
    "flat": "The ellipse has fallen flat: both columns lie on one line, and one direction is left.",
    "zero": "Both columns are zero: no direction is left.",
    "longest": "No input of length 1 becomes longer, "
    "and the output of the dashed input is perpendicular to Ax.",
    "shortest": "No input of length 1 becomes shorter, "
    "and the output of the dashed input is perpendicular to Ax.",
}
CAPTIONS = {
    "ellipse": (
        "The first panel shows the inputs of length 1, and the second shows their outputs, which "
        "form an ellipse. The columns of A are teal and violet. The dashed arrows are the input "
        "perpendicular to x, and its output. "
        "The curve shows the length of Ax for each direction of x."
    ),
    "rank": (
        "The two columns are teal and violet. The gray ellipse shows what they add up to for all "
        "inputs of length at most 1. The dashed lines show half its length and half its width."
    ),
}


def arrows(a: ArrayLike = ((3, 0), (4, 5)), *, form: str = "ellipse") -> Instrument:
    r"""Show a matrix with columns to drag, and a unit vector $x = (\cos\theta, \sin\theta)$.

    State ``a`` and ``theta`` (in radians); numbers ``sigma_1``, ``sigma_2``, ``rank`` and, of an
    ellipse, ``length`` ($\|Ax\|$).

    Parameters
    ----------
    a : array_like, shape (2, 2)
        The matrix at first; entries of a size up to 100.
    form : str
        ``"ellipse"`` shows the unit circle beside its image, and $\|Ax\|$ over the angle. It marks
        the right angle if the images of x and of its perpendicular form one. ``"rank"`` shows the
        columns, and the ellipse of their sums with its half-axes, which falls flat if both columns
        lie on one line.

    Examples
    --------
    >>> arrows([[1, 2], [2, 4]]).numbers["rank"]
    1
    """
    matrix, turns = finite("a", a, 2, 2), one_of("form", form, FORMS) == "ellipse"
    if np.abs(matrix).max() > LIMIT:
        raise ValueError(f"a must be of entries of a size up to {LIMIT}, got {a!r}")
    longest, shortest = np.linalg.svd(matrix, compute_uv=False)
    far = max(
        1.2 * longest, np.linalg.norm(matrix, axis=0).max() / 0.7
    )  # the columns are in reach, too
    return figure(
        name="arrows",
        parts=("linalg", "vectors"),
        state={"a": matrix.tolist(), "theta": THETA},
        numbers={
            "sigma_1": float(longest),
            "sigma_2": float(shortest),
            **({"length": float(np.linalg.norm(matrix @ INPUT))} if turns else {}),
            "rank": int(np.linalg.matrix_rank(matrix)),
        },
        values={"degrees": round(math.degrees(THETA))},
        say=FORMS[form],
        remarks=REMARKS,
        data={"form": form, "reach": max(2.0, math.ceil(far))},
        readouts={
            "sigma_1": (SIGMAS[form][0], ".2f"),
            "sigma_2": (SIGMAS[form][1], ".2f"),
            "length": ("length of Ax", ".2f"),
            "rank": ("rank", ","),
        },
        caption=CAPTIONS[form],
    )
