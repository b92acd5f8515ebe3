"""How fast can two programs be at most, and which wall stops each? Least times, and how many times one is the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import finite
from lowrank_tutor.plotting.style import GRAY, ORANGE, TEAL, Panels, legend_above, panel, styled

COLORS = (TEAL, ORANGE)
WALLS = {"compute": "-", "memory": (0, (1.2, 1.2))}  # how a line looks where it meets this wall
WIDTH = 3.15  # inches of each: side by side on a wide page
# The vertical axes, which no choice moves: their ends, and where a number stands. Times beyond an end move it.
MILLISECONDS, TIMES = ((3e-4, 2000), (0.01, 1, 100)), ((0.3, 500), (1, 10, 100))


@styled
def rooflines(
    n: ArrayLike,
    floors: Mapping[str, Sequence[tuple[float, str]]],
    *,
    at: float | None = None,
    measured: Mapping[str, ArrayLike] | None = None,
    whose: str = "measured",
    reported: tuple[str, Mapping[int, float]] | None = None,
    title: str = "least time, ms",
) -> Panels:
    """Plot the least times of two programs over the length, and beside them how many times the first is the second.

    A line is full where the processors are the wall that it meets, and dotted where the memory is.

    Parameters
    ----------
    n : array_like, shape (number,)
        Lengths, increasing.
    floors : mapping of str to sequence of (float, str)
        Two names, and for each length the least time in milliseconds and the wall: "compute" or "memory". A time of
        NaN is left out.
    at : float, optional
        One of the lengths: where a slider stands. It moves nothing on the right, which a page then stores once.
    measured : mapping of str to array_like, shape (number, 2), optional
        By the same two names, lengths and the milliseconds that were measured there; NaN where none was.
    whose : str
        What the measured times are called, in the legend on the right.
    reported : (str, mapping of int to float), optional
        Who has reported ratios, and the ratio at each length: marks on the right.
    title : str
        Of the times.

    Returns
    -------
    Panels
        The times; their ratios.
    """
    n = finite("n", n, None)
    times, walls = (np.array([[point[i] for point in line] for line in floors.values()]) for i in range(2))
    left = _times(n, dict(zip(floors, times.astype(float), strict=True)), walls, at, measured or {}, title)
    first, second = times.astype(float)
    return Panels((left, _ratios(n, first / second, (whose, measured or {}), reported)))


def _times(
    n: np.ndarray,
    floors: Mapping[str, np.ndarray],
    walls: np.ndarray,
    at: float | None,
    measured: Mapping[str, ArrayLike],
    title: str,
) -> Figure:
    fig, ax = panel(WIDTH, 3.0, left=0.5, right=0.68)
    for (name, floor), wall, color in zip(floors.items(), walls, COLORS, strict=True):
        _line(ax, n, floor, wall, color)
        ax.annotate(name, (n[-1], floor[-1]), xytext=(5, 0), textcoords="offset points", color=color, va="center")
    for word, kind in (("processors", "compute"), ("memory", "memory")):
        ax.plot([], [], color=GRAY, linestyle=WALLS[kind], label=word)
    pairs = [np.asarray(points, dtype=float).reshape(-1, 2) for points in measured.values()]
    for points, color in zip(pairs, COLORS, strict=False):
        ax.plot(*points.T, "D", color=color, markersize=6)
    if at is not None:
        ax.axvline(at, color=GRAY, linewidth=0.8, linestyle=":")
        for floor, color in zip(floors.values(), COLORS, strict=True):
            ax.plot(at, floor[n == at], "o", color=color, markersize=7, zorder=4)
    _frame(ax, title, MILLISECONDS, [ms for points in pairs for ms in points[:, 1]])
    return fig


def _ratios(
    n: np.ndarray,
    ratio: np.ndarray,
    own: tuple[str, Mapping[str, ArrayLike]],
    reported: tuple[str, Mapping[int, float]] | None,
) -> Figure:
    (whose, measured), found = own, []
    fig, ax = panel(WIDTH, 3.0, left=0.5, right=0.25)
    ax.plot(n, ratio, color="black", label="least times")
    if reported is not None:
        name, marks = reported
        ax.plot(list(marks), list(marks.values()), "x", color="black", markersize=6, markeredgewidth=1.8, label=name)
    if measured:
        slow, fast = (dict(np.asarray(points, dtype=float).reshape(-1, 2)) for points in measured.values())
        both = sorted(slow.keys() & fast.keys())
        found = [slow[x] / fast[x] for x in both]
        ax.plot(both, found, "D", color=GRAY, markersize=6, label=whose)
    _frame(ax, "exact / Linformer", TIMES, found)
    ax.axhline(1, color=GRAY, linewidth=0.8)
    return fig


def _line(ax: Axes, n: np.ndarray, floor: np.ndarray, walls: np.ndarray, color: str) -> None:
    """Draw each piece between two lengths as the wall at its beginning says."""
    for kind, dashes in WALLS.items():
        pieces = walls[:-1] == kind
        seen = np.append(pieces, False) | np.append(False, pieces)
        ax.plot(n, np.where(seen, floor, np.nan), color=color, linestyle=dashes, linewidth=2.2)


def _frame(
    ax: Axes, title: str, axis: tuple[tuple[float, float], tuple[float, ...]], measured: Sequence[float]
) -> None:
    (low, high), ticks = axis
    ylim = np.fmin.reduce([low, *(0.7 * x for x in measured)]), np.fmax.reduce([high, *(1.4 * x for x in measured)])
    ax.set(xscale="log", yscale="log", xlabel="tokens n", title=title, ylim=ylim)
    ax.set_xticks([512, 4096, 32768], ["512", "4,096", "32,768"])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    legend_above(ax)
