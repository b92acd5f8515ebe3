"""Name each line where it ends, in its own color, so that nobody has to look names up in a legend."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from lowrank_tutor.kit.charts.style import GRAY, MUTED

APART, WRAP = 6, 14  # points from a line to its name; letters after which a name goes on below


def label_lines(ax: Axes) -> Axes:
    """Write the name of each line where it ends, narrow the axes until the names fit, and return the axes.

    The axes are made by :func:`panel`; a line is named by its label. Call it last: names stay where the limits and
    scales of the axes have put them. Those that would meet are moved apart, in the order of their lines.
    """
    fig: Any = ax.figure
    lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    look: dict[str, Any] = {"va": "center", "fontsize": 9, "linespacing": 1.05, "annotation_clip": False, "zorder": 5}
    look |= {"textcoords": "offset points", "path_effects": [withStroke(linewidth=2.5, foreground="white")]}
    words: list[Any] = []
    for line in lines:
        name = str(line.get_label())
        name = name if "\n" in name else textwrap.fill(name, WRAP, break_long_words=False)
        color = MUTED if line.get_color() == GRAY else line.get_color()  # words need more contrast than lines
        words.append(ax.annotate(name, (0.5, 0.5), (0, 0), "axes fraction", color=color, **look))
    if not words:
        return ax
    wide, high = np.transpose([word.get_window_extent().size for word in words]) * 72 / fig.dpi  # points
    box, right = ax.get_position(), 1 - (wide.max() + APART + 3) / (72 * fig.get_figwidth())
    ax.set_position((box.x0, box.y0, min(box.x1, right) - box.x0, box.height))
    ends = np.array([_end(ax, line) for line in lines]) * 72 / fig.dpi
    low, top = ax.bbox.y0 * 72 / fig.dpi, ax.bbox.y1 * 72 / fig.dpi
    before = [np.nanmean(line.get_transform().transform(line.get_xydata())[:, 1]) for line in lines]
    along, up = (
        np.argsort(ends[:, 0]),
        np.lexsort((before, (ends[:, 1] / 3).round())),
    )  # where ends meet: as before them
    for column in np.split(along, np.flatnonzero(np.diff(ends[along, 0]) > wide.max() + APART) + 1):
        here = [i for i in up if i in column]
        for i, height in zip(here, _apart(ends[here, 1], high[here] + 3, low, top), strict=True):
            words[i].xy, words[i].xycoords = ax.transData.inverted().transform(ends[i] * fig.dpi / 72), "data"
            words[i].xyann = (APART, height - ends[i, 1])
    return ax


def _end(ax: Axes, line: Any) -> tuple[float, float]:
    """Return the pixel where a line ends within the axes; one above or below them is at their edge."""
    x, y = line.get_transform().transform(line.get_xydata()).T
    seen = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & (x <= ax.bbox.x1 + 1))
    last = seen[-1] if seen.size else -1
    at_edge = x[last] > ax.bbox.x1 - 0.08 * ax.bbox.width  # where names stand in one column
    return float(ax.bbox.x1 if at_edge else x[last]), float(np.clip(y[last], ax.bbox.y0, ax.bbox.y1))


def _apart(heights: np.ndarray, sizes: np.ndarray, low: float, high: float) -> np.ndarray:
    """Move rising heights as little as possible, until things of these sizes have room above each other."""
    steps = np.append(0, np.cumsum(sizes[:-1] + sizes[1:]) / 2)
    wanted, number = heights - steps, range(len(heights))
    # The nearest rising sequence (isotonic regression, by its formula of minima and maxima).
    rising = [max(min(wanted[i : k + 1].mean() for k in number[j:]) for i in number[: j + 1]) for j in number]
    lowest, highest = low + sizes[0] / 2, high - sizes[-1] / 2 - steps[-1]
    moved: np.ndarray = np.clip(rising, lowest, max(lowest, highest)) + steps
    return moved
