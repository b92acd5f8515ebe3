"""Draw charts of numbers: curves and arrows.

Each line is named where it ends, so that nobody needs a legend. Where a function takes ``**room``,
these are the arguments of :func:`panel`, in inches.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from lowrank_tutor.kit.charts.arguments import finite, named
from lowrank_tutor.kit.charts.style import GRAY, LINES, MUTED, panel, styled

APART, WRAP = 6, 14  # points from a line to its name; letters after which a name goes on below


@styled
def curves(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    at: float | None = None,
    xlabel: str = "",
    title: str = "",
    scale: tuple[str, str] = ("linear", "linear"),
    xlim: tuple[float | None, float | None] = (None, None),
    ylim: tuple[float | None, float | None] = (None, None),
    looks: Sequence[tuple[str, Any]] = LINES,
    **room: float,
) -> Figure:
    """Plot named lines over one axis, with a point on each where a slider stands.

    ``lines`` maps a name to ordinates (number,) over the abscissas ``x`` (number,), which increase;
    NaN leaves a gap. Points stand at ``at``, one of the abscissas; one beyond the axes is an arrow
    at their edge. ``scale`` is "linear" or "log" for each axis. Give ``xlim`` and ``ylim`` where a
    slider must not move the ends of the axes. ``looks`` are a color and dashes for each line;
    dashes "o" and "x" are points.
    """
    x = finite("x", x, None)
    fig, ax = panel(**{"height": 3.0, "left": 0.62, **room})
    if at is not None:
        ax.axvline(
            at, color=GRAY, linewidth=0.8, linestyle=":"
        )  # also where a point lies outside the axes
    heights = _draw_lines(ax, x, lines, looks, marker="o" if len(x) < 10 else "")
    ax.set(xlabel=xlabel, title=title, xscale=scale[0], yscale=scale[1], xlim=xlim, ylim=ylim)
    if scale[0] == "log" and len(x) <= 12:
        skip = -(
            -len(x) // (round(fig.get_figwidth()) + 2)
        )  # a tick at each abscissa, a number where there is room
        ax.set_xticks(x, [f"{value:,g}" if i % skip == 0 else "" for i, value in enumerate(x)])
        ax.minorticks_off()
    elif scale[0] == "linear" and len(x) <= 12 and (x == x.round()).all():
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if at is not None:
        _draw_points(ax, x == at, heights, at, looks)
    if len(lines) > 1:
        label_lines(ax)
    return fig


def arrow(
    ax: Axes,
    tip: ArrayLike,
    start: ArrayLike = (0, 0),
    *,
    color: str,
    name: str = "",
    place: tuple[float, float] = (4, 3),
    **look: Any,
) -> None:
    """Draw an arrow in the plane from ``start`` to ``tip``, both (2,), with its name at its tip.

    The name stands ``place`` points from the tip. ``look`` is what else matplotlib shall know, such
    as ``lw``.
    """
    tip, start = finite("tip", tip, 2), finite("start", start, 2)
    style = {"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0, **look}
    ax.annotate("", tuple(tip), tuple(start), arrowprops=style)
    side = "left" if place[0] > 0 else "right" if place[0] < 0 else "center"
    word = ax.annotate(
        name,
        tuple(tip),
        xytext=place,
        textcoords="offset points",
        color=color,
        fontsize=12,
        ha=side,
    )
    word.set(
        va="bottom" if place[1] >= 0 else "top",
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def label_lines(ax: Axes) -> Axes:
    """Name each line where it ends, narrow the axes until the names fit, and return the axes.

    The axes are made by :func:`panel`; a line is named by its label. Call it last: names stay where
    the limits and scales of the axes have put them. Those that would meet are moved apart, in the
    order of their lines.
    """
    fig: Any = ax.figure
    lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    look: dict[str, Any] = {
        "va": "center",
        "fontsize": 9,
        "linespacing": 1.05,
        "annotation_clip": False,
        "zorder": 5,
        "textcoords": "offset points",
        "path_effects": [withStroke(linewidth=2.5, foreground="white")],
    }
    words: list[Any] = []
    for line in lines:
        name = str(line.get_label())
        name = name if "\n" in name else textwrap.fill(name, WRAP, break_long_words=False)
        color = (
            MUTED if line.get_color() == GRAY else line.get_color()
        )  # words need more contrast than lines
        words.append(ax.annotate(name, (0.5, 0.5), (0, 0), "axes fraction", color=color, **look))
    if not words:
        return ax
    wide, high = (
        np.transpose([word.get_window_extent().size for word in words]) * 72 / fig.dpi
    )  # points
    box, right = ax.get_position(), 1 - (wide.max() + APART + 3) / (72 * fig.get_figwidth())
    ax.set_position((box.x0, box.y0, min(box.x1, right) - box.x0, box.height))
    ends = np.array([_end(ax, line) for line in lines]) * 72 / fig.dpi
    low, top = ax.bbox.y0 * 72 / fig.dpi, ax.bbox.y1 * 72 / fig.dpi
    before = [np.nanmean(line.get_transform().transform(line.get_xydata())[:, 1]) for line in lines]
    along = np.argsort(ends[:, 0])
    up = np.lexsort((before, (ends[:, 1] / 3).round()))  # where ends meet: as before them
    for column in np.split(along, np.flatnonzero(np.diff(ends[along, 0]) > wide.max() + APART) + 1):
        here = [i for i in up if i in column]
        for i, height in zip(here, _apart(ends[here, 1], high[here] + 3, low, top), strict=True):
            words[i].xy = ax.transData.inverted().transform(ends[i] * fig.dpi / 72)
            words[i].xycoords = "data"
            words[i].xyann = (APART, height - ends[i, 1])
    return ax


def _end(ax: Axes, line: Any) -> tuple[float, float]:
    """Return the pixel where a line ends within the axes.

    One above or below them is at their edge.
    """
    x, y = line.get_transform().transform(line.get_xydata()).T
    seen = np.flatnonzero(np.isfinite(y) & (x <= ax.bbox.x1 + 1))
    last = seen[-1] if seen.size else -1
    at_edge = x[last] > ax.bbox.x1 - 0.08 * ax.bbox.width  # where names stand in one column
    return float(ax.bbox.x1 if at_edge else x[last]), float(
        np.clip(y[last], ax.bbox.y0, ax.bbox.y1)
    )


def _apart(heights: np.ndarray, sizes: np.ndarray, low: float, high: float) -> np.ndarray:
    """Move rising heights as little as possible, until things of these sizes have room."""
    steps = np.append(0, np.cumsum(sizes[:-1] + sizes[1:]) / 2)
    wanted, number = heights - steps, range(len(heights))
    # The nearest rising sequence (isotonic regression, by its formula of minima and maxima).
    rising = [
        max(min(wanted[i : k + 1].mean() for k in number[j:]) for i in number[: j + 1])
        for j in number
    ]
    lowest, highest = low + sizes[0] / 2, high - sizes[-1] / 2 - steps[-1]
    moved: np.ndarray = np.clip(rising, lowest, max(lowest, highest)) + steps
    return moved


def _draw_lines(
    ax: Axes, x: Any, lines: Mapping[str, ArrayLike], looks: Any, **style: Any
) -> list[np.ndarray]:
    """Draw named lines, each in its own color and dashes or as points, and return their heights.

    NaN leaves a gap. After its last number a line stays there: on a page it travels on from there.
    """
    heights = named("lines", lines, len(x), gaps=True)
    for (name, y), (color, dashes) in zip(heights.items(), cycle(looks), strict=False):
        look = (
            {**style, "marker": dashes, "linestyle": ""}
            if dashes in ("o", "x")
            else {**style, "linestyle": dashes}
        )
        until = np.minimum(range(len(x)), np.flatnonzero(np.isfinite(y))[-1])
        ax.plot(x[until], y[until], color=color, label=name, **look)
    return list(heights.values())


def _draw_points(
    ax: Axes, here: np.ndarray, heights: Sequence[np.ndarray], at: float, looks: Any
) -> None:
    """Mark the slider's position on each line.

    A point beyond the axes becomes an arrow at their edge.
    """
    if not here.any():
        raise ValueError(f"at must be one of the abscissas x, got {at}")
    low, high = sorted(ax.get_ylim())
    for y, (color, _) in zip(heights, cycle(looks), strict=False):
        (value,) = y[here]
        mark = "^" if value > high else "v" if value < low else "o"
        ax.plot(
            at, np.clip(value, low, high), mark, color=color, markersize=7, clip_on=False, zorder=4
        )
