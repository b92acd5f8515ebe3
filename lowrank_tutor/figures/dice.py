"""Throw a random map again and again, and see for each pair of points whether it keeps the distance."""

from __future__ import annotations

import math
import reprlib

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._on_demand import needed
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import finite, number, whole
from lowrank_tutor.kit.charts.style import ORANGE, TEAL, styled

MOST = {"k": 400, "d": 1000, "n": 32, "seed": 1_000_000}
SIZES = {
    "k": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 400),
    "d": (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000),
    "n": tuple(range(2, 33)),
}
THROWS = 40
TOP = 3.0  # of the ratios that are drawn
SAY = (
    "In this throw {inside} of {pairs} pairs keep their squared distance within {eps:.0%}; the worst is off by "
    "{worst:.0%}, the median by {median:.1%}."
)
REMARKS = {
    "wide": "Here k is not smaller than d, so nothing is saved.",
    "empty": "For this many pairs the union bound promises nothing: take a larger k.",
}
WORDS = {
    "k": "k, numbers kept of each point",
    "d": "d, coordinates of each point",
    "n": "n, points",
    "another": "Another R",
    "many": f"{THROWS} more throws",
    "throwing": "Throwing ...",
    "tally": "All pairs inside: {good} of {throws}.",
    "others": "other points",
    "dots": "a dot for each pair: press one, or drag the lines",
    "strips": "coordinates of one pair",
    "across": "pairs",
    "up": "squared distance, after / before",
    "pair": "pair of points",
    "above": "upper line, 1 plus epsilon",
    "below": "lower line, 1 minus epsilon",
    "points": "points ",
    "and": " and ",
    "ratio": ": ratio ",
    "before": "differences before: ",
    "after": "differences after: ",
}


def dice(
    k: int = 64, d: int = 100, n: int = 10, *, eps: float = 0.5, seed: int = 1, points: ArrayLike | None = None
) -> Instrument:
    r"""Show which pairs of points keep their distance under a Gaussian map, which can be drawn again.

    State ``k``, ``d``, ``n``, ``eps``, ``seed``; numbers ``worst`` and ``median`` (absolute change of squared
    distances, as a fraction), ``inside`` (pairs), ``chance`` (exact, of one pair to fall outside) and ``union`` (the
    union bound on the chance that some pair does).

    Parameters
    ----------
    k : int
        Rows of the map $R$ at first, 1 to 400: each point keeps that many numbers. Entries are $N(0, 1/k)$.
    d : int
        Coordinates of each point at first, 1 to 1000, independent standard normal.
    n : int
        Points at first, 2 to 32.
    eps : float
        How far a ratio of squared distances may be from 1 and count as inside, 0.01 to 0.99.
    seed : int
        Which throw is the first, 1 to a million.
    points : array_like, shape (n, d), optional
        Your own points, no two the same; ``n`` and ``d`` are then those of its shape.

    Examples
    --------
    >>> dice(k=400, eps=0.5).numbers["inside"]
    45
    """
    own = None if points is None else finite("points", points, None, None)
    if own is not None:
        n, d = own.shape
        if len(np.unique(own, axis=0)) < n:
            raise ValueError(f"points must be all different, got {reprlib.repr(points)}")
    asked = (("k", k, 1), ("d", d, 1), ("n", n, 2), ("seed", seed, 1))
    k, d, n, seed = (whole(name, value, low, MOST[name]) for name, value, low in asked)
    eps = number("eps", eps, 0.01, 0.99)
    drawn = rows(0, n, d) if own is None else own
    mapped = drawn @ rows(seed, k, d).T / math.sqrt(k)
    start = numbers(drawn, mapped, eps)
    return figure(
        name="dice",
        state={"k": k, "d": d, "n": n, "eps": eps, "seed": seed},
        numbers=start,
        values={"pairs": n * (n - 1) // 2},
        say=SAY,
        remarks=REMARKS,
        parts=("linalg", "background", "chisquare", "throws", "pairs"),
        data={
            "most": MOST,
            "sizes": SIZES,
            "throws": THROWS,
            "top": TOP,
            "words": WORDS,
            "points": own if own is None else own.tolist(),
        },
        readouts={
            "union": ("union bound on all pairs", ".1%"),
            "chance": ("chance of one pair outside", ".2%"),
            "inside": ("pairs inside", ","),
            "worst": ("worst pair off by", ".1%"),
            "median": ("median pair off by", ".1%"),
        },
        picture=lambda: _still(drawn, mapped, eps),
    )


def numbers(points: Floats, mapped: Floats, eps: float) -> dict[str, float]:
    """Compute the numbers of points and their images."""
    with needed("the figure of dice"):
        from scipy.special import gammainc, gammaincc  # type: ignore[import-untyped]  # heavy, and needed here only

    off, half = np.abs(ratios(points, mapped) - 1), mapped.shape[1] / 2
    chance = float(gammainc(half, half * (1 - eps)) + gammaincc(half, half * (1 + eps)))  # of chi-square / k
    return {
        "union": min(1.0, len(off) * chance),
        "chance": chance,
        "inside": int((off <= eps).sum()),
        "worst": float(off.max()),
        "median": float(np.median(off)),
    }


def ratios(points: Floats, mapped: Floats) -> Floats:
    """Return squared distances after, over those before, of the pairs (1, 0), (2, 0), (2, 1), ..."""
    first, second = np.tril_indices(len(points), -1)
    after, before = (((x[first] - x[second]) ** 2).sum(axis=1) for x in (mapped, points))
    return np.asarray(after / before)


def rows(seed: int, count: int, width: int) -> Floats:
    """Return the standard normal rows that ``throws.js`` draws, each from a stream of its own."""
    start = seed * 0x9E3779B1 + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x85EBCA6B)
    steps = np.arange(1, 2 * width + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5)
    at = (start[:, None] + steps).astype(np.uint32)
    bits = (at ^ (at >> 15)) * (at | 1)
    bits ^= bits + (bits ^ (bits >> 7)) * (bits | 61)
    uniform = ((bits ^ (bits >> 14)) + 0.5) / 2.0**32
    return np.asarray(np.sqrt(-2 * np.log(uniform[:, 0::2])) * np.cos(2 * np.pi * uniform[:, 1::2]))


@styled
def _still(points: Floats, mapped: Floats, eps: float) -> Figure:
    fig, ax = plt.subplots(layout="constrained", figsize=(4.5, 2.4))
    changed = ratios(points, mapped)
    inside, index = np.abs(changed - 1) <= eps, np.arange(1, len(changed) + 1)
    for which, mark, color in ((inside, "o", TEAL), (~inside, "^", ORANGE)):
        ax.plot(index[which], np.minimum(changed[which], TOP), mark, color=color, markersize=4)
    ax.hlines((1 - eps, 1 + eps), 0, len(changed) + 1, color=ORANGE, linestyle="--")
    ax.set(ylim=(0, TOP), xlabel="pairs", title="squared distance, after / before")
    return fig
