"""What does a state of fixed size remember? An album of pictures that is written over."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor.figures.parts.figure import figure, one_of, two_digits
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import finite, whole

MOST, SIDE = 64, 8  # pictures, and pixels to a side
WIDTHS = (16, 32, 64)
GRAYS = 32  # the darkest: one letter or digit writes a gray
METHODS = {"sum": "sum", "delta": "delta rule", "best": "best state", "cache": "cache"}
SAY = (
    "Of {written} pictures, written under keys of {d} numbers, {given_back} are given back: what "
    "their key reads is nearer to them than to any other. "
    "A cache of as many numbers holds {holds}, exactly."
)
REMARKS = {
    "cache": "The cache grows with every picture.",
    "best": "The best state solves for all pictures at once, and is exact for up to {d} of them.",
    "old": "The delta rule gives up old pictures for new ones.",
    "noisy": "A sum keeps something of every picture, "
    "so all of them get noisier with each new one.",
}


def album(pictures: ArrayLike, written: int = 48, d: int = 32, method: str = "sum") -> Instrument:
    r"""Write pictures into a state one by one, and see what their keys read.

    A key is a random direction of length 1, a value a picture. The *sum* adds
    :math:`k v^\top`; the *delta rule* adds :math:`k (v - S^\top k)^\top`; the *best state* solves
    :math:`K S = V` by least squares; a *cache* keeps all. A picture is given back if what its key
    reads is nearer to it than to any other one written.

    State ``written``, ``d`` and ``method``; numbers ``given_back``, ``error`` (of what is read,
    relative to the values), ``kept`` (how many numbers are kept) and ``holds`` (how many keys and
    pictures these would hold).

    Parameters
    ----------
    pictures : array_like, shape (64, 8, 8)
        The pictures, dark where their numbers are large.
    written : int
        How many are written at first, from 1 to 64.
    d : int
        The width of a key at first: 16, 32 or 64.
    method : str
        The rule at first: ``"sum"``, ``"delta"``, ``"best"`` or ``"cache"``.
    """
    given = finite("pictures", pictures, MOST, SIDE, SIDE)
    written = whole("written", written, 1, MOST)
    method, d = one_of("method", method, METHODS), one_of("d", d, WIDTHS)
    low, high = given.min(), given.max()
    grays = np.rint(GRAYS * (given - low) / ((high - low) or 1)).reshape(MOST, -1)
    # Of this draw the counts lie within one of the medians of twenty.
    codes, keys = two_digits(np.random.default_rng(10).standard_normal((MOST, max(WIDTHS))), 16)
    read = reads(keys, grays, written, d, method)
    return figure(
        name="album",
        parts=("linalg", "vectors", "layers"),
        state={"written": written, "d": d, "method": method},
        numbers=numbers(read, grays, written, d, method),
        say=SAY,
        remarks=REMARKS,
        data={
            "keys": codes,
            "grays": ["".join(np.base_repr(int(one), 36) for one in row) for row in grays],
            "most": GRAYS,
            "widths": WIDTHS,
            "methods": METHODS,
        },
        readouts={
            "given_back": ("pictures given back", ","),
            "error": ("error of what is read", ".0%"),
            "kept": ("numbers kept", ","),
            "holds": ("a cache of that size holds", ","),
        },
    )


def reads(keys: Floats, grays: Floats, written: int, d: int, method: str) -> Floats:
    """Return what the first ``written`` keys read, (written, 64), in grays from 0 to 32."""
    k, v = keys[:written, :d], grays[:written]
    k = k / np.linalg.norm(k, axis=1, keepdims=True)
    if method == "cache":
        return v
    state = np.linalg.pinv(k) @ v if method == "best" else np.zeros((d, v.shape[1]))
    if method in ("sum", "delta"):
        for key, value in zip(k, v, strict=True):
            state += np.outer(key, value - (key @ state if method == "delta" else 0))
    return np.asarray(k @ state)


def numbers(read: Floats, grays: Floats, written: int, d: int, method: str) -> dict[str, float]:
    """Return how many pictures are given back, the error, and how many numbers are kept."""
    values = grays[:written]
    kept = written * (d + SIDE**2) if method == "cache" else d * SIDE**2
    return {
        "given_back": int(_nearest(read, grays).sum()),
        "error": float(np.linalg.norm(read - values) / np.linalg.norm(values)),
        "kept": kept,
        "holds": kept // (d + SIDE**2),
    }


def _nearest(read: Floats, grays: Floats) -> NDArray[np.bool_]:
    """Mark the keys that read something nearest to their own picture."""
    distances = ((read[:, None] - grays[None, : len(read)]) ** 2).sum(axis=2)
    return np.asarray(distances.argmin(axis=1) == np.arange(len(read)))
