"""Drag a cloud of points off the origin, and see its first direction turn to the mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import point

REACH = 8.0
COUNT = 120
SAY = (
    "The first directions with and without centering are {apart:.0f} degrees apart; "
    "without it, the first one holds {share_raw:.0%} of the sum of squares."
)
REMARKS = {
    "home": "The mean is the origin, so centering changes nothing.",
    "across": "Without centering the first direction points at the mean, across the cloud.",
}


def cloud(center: ArrayLike = (6.0, 3.0)) -> Instrument:
    """Show a cloud of 120 random points to drag, and its first direction, centered or not.

    State ``center``; numbers ``apart`` (the angle between the two directions, in degrees),
    ``share_pca`` (the explained variance ratio of the first axis) and ``share_raw`` (the same
    without centering).

    Parameters
    ----------
    center : array_like, shape (2,)
        The mean of the points at first, each coordinate from -8 to 8.

    Examples
    --------
    >>> cloud((0, 0)).numbers["apart"] < 1e-6
    True
    """
    middle, shape = point("center", center, REACH), _shape()
    return figure(
        name="cloud",
        parts=("linalg", "vectors"),
        state={"center": middle.tolist()},
        numbers=_numbers(shape + middle),
        say=SAY,
        remarks=REMARKS,
        data={"points": shape.tolist(), "reach": REACH},
        readouts={
            "apart": ("degrees between the directions", ".1f"),
            "share_pca": ("share along the first, centered", ".1%"),
            "share_raw": ("share along the first, not centered", ".1%"),
        },
    )


def _numbers(points: Floats) -> dict[str, float]:
    (pca, share_pca), (raw, share_raw) = _first(points - points.mean(axis=0)), _first(points)
    across, along = abs(pca[0] * raw[1] - pca[1] * raw[0]), abs(pca @ raw)
    return {
        "apart": float(np.degrees(np.arctan2(across, along))),
        "share_pca": share_pca,
        "share_raw": share_raw,
    }


def _first(rows: Floats) -> tuple[Floats, float]:
    """Return the first right singular vector, and the share of the sum of squares along it."""
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return vt[0], float(s[0] ** 2 / (s @ s))


def _shape() -> Floats:
    """Return points whose mean is exactly zero: whole thousandths, each with its mirror image."""
    half = np.random.default_rng(5).standard_normal((COUNT // 2, 2)) @ [[-1.9, 2.2], [0.35, 0.55]]
    half = np.round(half, 3)
    return np.concatenate([half, -half])
