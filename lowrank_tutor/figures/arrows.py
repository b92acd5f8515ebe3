"""Drag the columns of a matrix and a unit vector: the circle becomes an ellipse, and its half-axes give the rank."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import as_float_array, check_choice
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.stills import square
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts import arrow
from lowrank_tutor.kit.charts.arguments import number
from lowrank_tutor.kit.charts.style import GRAY, INK, ORANGE, TEAL, VIOLET, styled

LIMIT = 100  # of an entry
FORMS = {
    "ellipse": (
        "With x at {degrees} degrees, the length of Ax is {length:.2f}. For all inputs of length 1 it is between "
        "{sigma_2:.2f} and {sigma_1:.2f}. The rank is {rank}."
    ),
    "rank": (
        "Half the length of the ellipse is {sigma_1:.2f}, and half its width is {sigma_2:.2f}. The rank is {rank}."
    ),
}
READOUTS = {
    "ellipse": {
        "sigma_1": ("σ₁, the longest Ax", ".2f"),
        "sigma_2": ("σ₂, the shortest Ax", ".2f"),
        "length": ("length of Ax", ".2f"),
        "rank": ("rank", ","),
    },
    "rank": {
        "sigma_1": ("σ₁, half the length of the ellipse", ".2f"),
        "sigma_2": ("σ₂, half its width", ".2f"),
        "rank": ("rank", ","),
    },
}
REMARKS = {
    "flat": "The ellipse has fallen flat: both columns lie on one line, and one direction is left.",
    "zero": "Both columns are zero: no direction is left.",
    "longest": "No input of length 1 becomes longer, and the output of the dashed input is perpendicular to Ax.",
    "shortest": "No input of length 1 becomes shorter, and the output of the dashed input is perpendicular to Ax.",
}
WORDS = {
    "inputs": "inputs of length 1: drag x",
    "outputs": "their outputs Ax: drag the columns",
    "sums": "all x₁a₁ + x₂a₂ with x₁² + x₂² ≤ 1: drag the tips",
    "curve": "length of Ax for each direction of x",
    "columns": ["tip of the first column", "tip of the second column"],
    "x": "input x of length 1",
    "angle": "direction of x",
    "degrees": "direction of x in degrees",
    "turned": " degrees",
    "eigen": "show the eigenvectors too",
    "eigenvalues": "If x lies on a dashed line, so does Ax. Eigenvalues: ",
    "no_eigenvalues": "Ax never lies on the line of x: this matrix has no real eigenvalue.",
}
CAPTIONS = {
    "ellipse": (
        "The first panel shows the inputs of length 1, and the second shows their outputs, which form an ellipse. The "
        "columns of A are teal and violet. The dashed arrows are the input perpendicular to x, and its output. The "
        "curve shows the length of Ax for each direction of x."
    ),
    "rank": (
        "The two columns are teal and violet. The gray ellipse shows what they add up to for all inputs of length at "
        "most 1. The dashed lines show half its length and half its width."
    ),
}


def arrows(a: ArrayLike = ((3, 0), (4, 5)), theta: float = 0.3, *, form: str = "ellipse") -> Instrument:
    r"""Show a matrix whose columns can be dragged, and a unit vector.

    State ``a``, ``theta``; numbers ``sigma_1``, ``sigma_2``, ``rank`` and, of an ellipse, ``length`` ($\|Ax\|$).

    Parameters
    ----------
    a : array_like, shape (2, 2)
        The matrix at first; entries of a size up to 100.
    theta : float
        The direction of the input $x = (\cos\theta, \sin\theta)$ at first, in radians, from -100 to 100.
    form : str
        ``"ellipse"`` shows the unit circle beside its image, and $\|Ax\|$ over the angle. It marks the right angle if
        the images of x and of its perpendicular form one, and eigenvectors on request. ``"rank"`` shows the columns,
        and the ellipse of their sums with its half-axes, which falls flat if both columns lie on one line.

    Examples
    --------
    >>> arrows([[1, 2], [2, 4]]).numbers["rank"]
    1
    """
    matrix = as_float_array(a, "a").astype(np.float64)
    if matrix.shape != (2, 2) or not (np.abs(matrix) <= LIMIT).all():
        raise ValueError(f"a must be 2 by 2 with entries of a size up to {LIMIT}, got {a!r}")
    check_choice(form, "form", tuple(FORMS))
    theta = number("theta", theta, -LIMIT, LIMIT)
    start = {name: value for name, value in numbers(matrix, theta).items() if name in READOUTS[form]}
    outputs = WORDS["outputs"] if form == "ellipse" else WORDS["sums"]
    longest = float(np.linalg.norm(matrix, axis=0).max())
    return figure(
        name="arrows",
        parts=("linalg", "vectors"),
        state={"a": matrix.tolist(), "theta": theta},
        numbers=start,
        values={"degrees": math.floor(math.degrees(theta) + 0.5) % 360},
        say=FORMS[form],
        remarks=REMARKS,
        data={
            "form": form,
            "reach": max(2.0, math.ceil(max(1.2 * start["sigma_1"], longest / 0.7))),
            "words": {**WORDS, "outputs": outputs},
        },
        readouts=READOUTS[form],
        caption=CAPTIONS[form],
        picture=lambda: _still(matrix, theta if form == "ellipse" else None),
    )


def numbers(a: Floats, theta: float) -> dict[str, float]:
    """Compute the numbers of a matrix and an input."""
    longest, shortest = np.linalg.svd(a, compute_uv=False)
    length = np.linalg.norm(a @ [math.cos(theta), math.sin(theta)])
    rank = int(np.linalg.matrix_rank(a))
    return {"sigma_1": float(longest), "sigma_2": float(shortest), "length": float(length), "rank": rank}


@styled
def _still(a: Floats, theta: float | None) -> Figure:
    """Draw the ellipse, beside the circle of the inputs where there is a direction ``theta``."""
    panels = [(a, "")] if theta is None else [(np.eye(2), "inputs of length 1"), (a, "their outputs")]
    fig, axes = plt.subplots(1, len(panels), squeeze=False, layout="constrained", figsize=(2.8 * len(panels), 2.9))
    angles = np.linspace(0, 2 * np.pi, 200)
    for ax, (table, title) in zip(axes[0], panels, strict=True):
        ax.plot(*(table @ [np.cos(angles), np.sin(angles)]), color=GRAY)
        u, s, _ = np.linalg.svd(table)
        square(ax, 1.15 * max(s[0], 1e-3), title)
        if theta is not None:
            arrow(ax, table @ [math.cos(theta), math.sin(theta)], color=ORANGE)
    for tip, color, name in zip(a.T, (TEAL, VIOLET), ("$a_1$", "$a_2$"), strict=True):
        arrow(ax, tip, color=color, name=name)
    if theta is None:
        for half in (u * s).T:
            ax.plot(*np.transpose([(0, 0), half]), "--", color=INK)
    return fig
