"""Drag the bars of a spectrum: the picture that has it and the error of each cut follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.sample_pictures import portrait
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import finite, whole

COUNT, MOST = (
    12,
    40,
)  # bars: as many as a finger can take hold of, side by side on a phone; as can be seen
SIZE = 64  # pixels of the picture to a side
LIMIT = 1000  # of a bar

SAY = "A cut after {k} of {n} sheets leaves an error of {relative_error:.1%}."
REMARKS = {
    "flat": "All sheets weigh the same, so no cut is cheap.",
    "zero": "All bars are down: the picture is black, and there is nothing to cut.",
    "exact": "The picture itself has rank {rank}, so the cut leaves nothing out.",
}


def spectrum(s: ArrayLike | None = None, k: int | None = None) -> Instrument:
    r"""Show a spectrum whose bars can be dragged, and the picture that has it.

    State ``s`` (falling), ``k``; number ``relative_error``, the root of $\sum_{i > k} s_i^2 /
    \sum_i s_i^2$.

    Parameters
    ----------
    s : array_like, shape (n,), optional
        The singular values at first, 2 to 40 from 0 to 1000, in any order; by default 12 of a
        portrait.
    k : int, optional
        The number of sheets kept at first, 1 to n; by default 4, or all.

    Examples
    --------
    >>> spectrum([4, 3] + 10 * [0], k=1).numbers["relative_error"]
    0.6
    """
    bars = _layers(COUNT)[1] if s is None else finite("s", s, None)
    if not 2 <= len(bars) <= MOST or bars.min() < 0 or bars.max() > LIMIT:
        got = f"{len(bars)} from {bars.min():g} to {bars.max():g}"
        way = "divide by the first, and plot more by kit.curves"
        raise ValueError(f"s must be 2 to {MOST} numbers from 0 to {LIMIT}, got {got}: {way}")
    bars, k = np.sort(bars)[::-1], whole("k", min(4, len(bars)) if k is None else k, 1, len(bars))
    u, own, v = _layers(len(bars))
    index = np.arange(1, len(bars) + 1)
    flat = np.ones(len(bars))
    presets = {
        "the portrait": own,
        "halving": 0.5 ** (index - 1),
        "1, 1/2, 1/3, ...": 1 / index,
        "all the same": flat,
    }
    scale = float(np.linalg.svd(portrait(SIZE), compute_uv=False)[0])
    return figure(
        name="spectrum",
        parts=("linalg", "layers"),
        state={"s": bars.tolist(), "k": k},
        numbers={"relative_error": _error(bars, k)},
        values={"n": len(bars)},
        say=SAY,
        remarks=REMARKS,
        data={
            "size": SIZE,
            "scale": scale,
            "u": np.round(u, 3).tolist(),
            "v": np.round(v, 3).tolist(),
            "presets": {name: np.round(values, 4).tolist() for name, values in presets.items()},
        },
        readouts={"relative_error": ("relative error", ".1%")},
    )


def _error(s: Floats, k: int) -> float:
    return float(np.linalg.norm(s[k:]) / (np.linalg.norm(s) or 1.0))


def _layers(count: int) -> tuple[Floats, Floats, Floats]:
    """Return directions and rounded weights of the portrait's first sheets.

    The weights are relative to the first.
    """
    u, s, vt = np.linalg.svd(portrait(SIZE))
    return u[:, :count], np.round(s[:count] / s[0], 4), vt[:count].T
