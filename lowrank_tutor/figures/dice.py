"""Throw a random map again and again, and see which pairs of points keep their distance."""

import math

import numpy as np

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.jl import norm_failure_probability
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import number, whole

MOST = {"k": 400, "d": 1000, "n": 32, "seed": 1_000_000}
SIZES = {
    "k": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 400),
    "d": (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000),
    "n": tuple(range(2, 33)),
}
SEED = 1  # of the first throw
THROWS = 40
TOP = 3.0  # of the ratios that are drawn
SAY = (
    "In this throw {inside} of {pairs} pairs keep their squared distance within {eps:.0%}; "
    "the worst is off by {worst:.0%}, the median by {median:.1%}."
)
REMARKS = {
    "wide": "Here k is not smaller than d, so nothing is saved.",
    "empty": "For this many pairs the union bound promises nothing: take a larger k.",
}


def dice(k: int = 64, d: int = 100, n: int = 10, *, eps: float = 0.5) -> Instrument:
    r"""Show which pairs of points keep their distance under a Gaussian map to draw again.

    State ``k``, ``d``, ``n``, ``eps``, ``seed`` (of the throw); numbers ``worst`` and ``median``
    (absolute change of squared distances, as a fraction), ``inside`` (pairs), ``chance`` (exact, of
    one pair to fall outside) and ``union`` (the union bound on the chance that some pair does).

    Parameters
    ----------
    k : int
        Rows of the map $R$ at first, 1 to 400: each point keeps that many numbers. Entries are
        $N(0, 1/k)$.
    d : int
        Coordinates of each point at first, 1 to 1000, independent standard normal.
    n : int
        Points at first, 2 to 32.
    eps : float
        How far a ratio of squared distances may be from 1 and count as inside, 0.01 to 0.99.

    Examples
    --------
    >>> dice(k=400, eps=0.5).numbers["inside"]
    45
    """
    k, d, n = whole("k", k, 1, MOST["k"]), whole("d", d, 1, MOST["d"]), whole("n", n, 2, MOST["n"])
    eps = number("eps", eps, 0.01, 0.99)
    points = rows(0, n, d)
    changed = ratios(points, points @ rows(SEED, k, d).T / math.sqrt(k))
    return figure(
        name="dice",
        parts=("linalg", "background", "chisquare", "throws", "pairs"),
        state={"k": k, "d": d, "n": n, "eps": eps, "seed": SEED},
        numbers=numbers(changed, k, eps),
        values={"pairs": n * (n - 1) // 2},
        say=SAY,
        remarks=REMARKS,
        data={"most": MOST, "sizes": SIZES, "throws": THROWS, "top": TOP},
        readouts={
            "union": ("union bound on all pairs", ".1%"),
            "chance": ("chance of one pair outside", ".2%"),
            "inside": ("pairs inside", ","),
            "worst": ("worst pair off by", ".1%"),
            "median": ("median pair off by", ".1%"),
        },
    )


def numbers(changed: Floats, k: int, eps: float) -> dict[str, float]:
    """Compute the numbers from the ratios of squared distances of all pairs."""
    off, chance = np.abs(changed - 1), norm_failure_probability(k, eps)
    return {
        "union": min(1.0, len(off) * chance),
        "chance": chance,
        "inside": int((off <= eps).sum()),
        "worst": float(off.max()),
        "median": float(np.median(off)),
    }


def ratios(points: Floats, mapped: Floats) -> Floats:
    """Return squared distances after over before, of the pairs (1, 0), (2, 0), (2, 1), ..."""
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
