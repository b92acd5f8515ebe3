"""Which row meets which token, and how large is what? Small tables with words on their sides, and boxes to scale.

Each figure is no wider than ``WIDTH``, so that a phone shows its words at a size that can be read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import finite
from lowrank_tutor.plotting.style import GRAY, HIDDEN, ORANGE, TEAL, WIDTH, sheet, styled

SHADES = LinearSegmentedColormap.from_list("white to teal", ("white", TEAL))
ROOM = 0.38  # inches between the boxes of a line, for a sign and a letter


# A table's title, its entries (m, n), and a word for each of its rows and columns.
Grid = tuple[str, ArrayLike, Sequence[str], Sequence[str]]
# A matrix's name, and for its height and its width a letter and how long that side is.
Box = tuple[str, tuple[str, float], tuple[str, float]]


@styled
def grids(
    *parts: Grid,
    borders: Sequence[int] = (),
    hidden: Collection[int] = (),
    written: bool = False,
    notes: Sequence[str] = (),
) -> Figure:
    """Show tables side by side, dark where an entry is large, on one scale from 0 to the largest entry of all.

    Parameters
    ----------
    *parts : (str, array_like of shape (m, n), m words, n words)
        The title of each table, its entries, none of them negative, and the words for its rows and columns. Only the
        first shows the words of its rows.
    borders : sequence of int, optional
        Columns of the last table before which a line stands, such as where a window begins.
    hidden : collection of int, optional
        Columns that are hatched: their tokens are hidden.
    written : bool
        Whether entries other than 0 are written out, as decimals.
    notes : sequence of str, optional
        Words at the right of each row of the last table.

    Returns
    -------
    matplotlib.figure.Figure
    """
    entries = [finite(part[0], part[1], len(part[2]), len(part[3])) for part in parts]
    widths = [each.shape[1] for each in entries]
    left = 0.1 + 0.075 * max(map(len, parts[0][2]))  # inches
    right = 0.1 + 0.075 * max(map(len, notes), default=0)
    gap = 0.3
    unit = min(0.45, (WIDTH - left - right - gap * (len(parts) - 1)) / sum(widths))
    above = 0.3 + 0.075 * max(len(word) for part in parts for word in part[3])
    height = above + unit * max(len(each) for each in entries) + 0.08
    fig = plt.figure(figsize=(WIDTH, height), layout="none")
    highest = max(float(each.max()) for each in entries)
    start = left
    for (title, _, row_words, column_words), each in zip(parts, entries, strict=True):
        rows, columns = each.shape
        place = (start / WIDTH, 1 - (above + unit * rows) / height, unit * columns / WIDTH, unit * rows / height)
        ax = fig.add_axes(place)
        ax.imshow(each, cmap=SHADES, vmin=0, vmax=highest, aspect="auto")
        _frame_cells(ax, rows, columns)
        ax.set_title(title, pad=72 * (above - 0.3) + 8)  # above the words of the columns
        ax.set_xticks(range(columns), column_words, rotation=90)
        ax.set_yticks(range(rows), row_words if start == left else [""] * rows)
        for column in hidden:
            ax.add_patch(Rectangle((column - 0.5, -0.5), 1, rows, fill=False, hatch="////", edgecolor=HIDDEN, lw=0))
        if written:
            _write_entries(ax, each, 0.7 * highest)
        start += unit * columns + gap
    for border in borders:
        ax.axvline(border - 0.5, color=ORANGE, linewidth=2)
    for row, note in enumerate(notes):
        ax.text(columns - 0.3, row, note, va="center")
    return fig


@styled
def boxes(lines: Mapping[str, Sequence[Box | str]], *, marked: Collection[str] = ()) -> Figure:
    """Draw matrices as rectangles, all to one scale, with the signs between them.

    Parameters
    ----------
    lines : mapping of str to sequence of (str, (str, float), (str, float)) or str
        A heading for each line, its boxes and the signs between them. A box is a name, and for its height and its width
        a letter and how long that side is.
    marked : collection of str, optional
        Names of boxes in the second color.

    Returns
    -------
    matplotlib.figure.Figure
    """
    margin = 0.25
    shapes = [[part for part in line if not isinstance(part, str)] for line in lines.values()]
    scale = min(
        (WIDTH - 2 * margin - ROOM * (len(each) - 1)) / sum(wide for _, _, (_, wide) in each) for each in shapes
    )
    tallest = [scale * max(high for _, (_, high), _ in each) for each in shapes]  # inches
    head, foot = 0.5, 0.12
    height = sum(tallest) + len(lines) * (head + foot)
    fig, ax = sheet(WIDTH, height)
    top = 0.0
    for (heading, line), tall in zip(lines.items(), tallest, strict=True):
        ax.text(margin / 3, top - 0.06, heading, va="top", fontweight="bold")
        x, sign = margin, ""
        for part in line:
            if isinstance(part, str):
                sign = part
                continue
            if x > margin:
                ax.text(x + ROOM * 0.2, top - head - tall / 2, sign, ha="center", va="center", fontsize=12)
                x += ROOM
            high = scale * part[1][1]
            _draw_box(ax, part, (x, top - head - (tall - high) / 2), scale, ORANGE if part[0] in marked else TEAL)
            x, sign = x + scale * part[2][1], ""
        top -= head + tall + foot
    return fig


@styled
def sharing(ways: Mapping[str, tuple[bool, bool, bool]], *, layers: int = 3, heads: int = 2) -> Figure:
    """Draw which places of a model one matrix serves: a block reaches over all of them.

    Parameters
    ----------
    ways : mapping of str to (bool, bool, bool)
        A name, and whether the heads of a layer share a matrix, whether its keys and values do, and whether all layers
        do. The later ones need the earlier ones.
    layers, heads : int
        How many are drawn.

    Returns
    -------
    matplotlib.figure.Figure
    """
    unit, left, top, between, apart = 0.36, 1.55, 0.3, 0.22, 0.2
    height = top + len(ways) * (2 * unit + between)
    fig, ax = sheet(WIDTH, height)
    starts = [left + layer * (heads * unit + apart) for layer in range(layers)]
    for layer, start in enumerate(starts):
        ax.text(start + heads * unit / 2, -0.06, f"layer {layer + 1}", ha="center", va="top")
    for row, (name, (over_heads, over_kinds, over_layers)) in enumerate(ways.items()):
        y = -top - row * (2 * unit + between)
        ax.text(0.05, y - unit, name, va="center", fontweight="bold")
        long = heads * unit if over_heads else unit
        high = 2 * unit if over_kinds else unit
        if over_layers:
            starts_of, long = [left], starts[-1] + heads * unit - left
        else:
            starts_of = [start + head * unit for start in starts for head in range(1 if over_heads else heads)]
        for start in starts_of:
            for kind in range(1 if over_kinds else 2):
                label = "E = F" if over_kinds else "EF"[kind]
                color = ORANGE if over_kinds or kind == 0 else TEAL
                _block(ax, (start, y - kind * high), (long, high), color, label)
    return fig


def _frame_cells(ax: Axes, rows: int, columns: int) -> None:
    """Put thin lines between the cells, and words above the columns."""
    ax.grid(visible=False)
    ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(GRAY)


def _write_entries(ax: Axes, entries: np.ndarray, dark: float) -> None:
    for (i, j), entry in np.ndenumerate(entries):
        if entry:
            color = "white" if entry > dark else "black"
            ax.text(j, i, f"{entry:.2f}".lstrip("0"), ha="center", va="center", color=color, fontsize=9)


def _draw_box(ax: Axes, box: Box, corner: tuple[float, float], scale: float, color: str) -> None:
    """Draw a box with its upper left corner here, its name inside and a letter at two sides."""
    name, (rows, high), (columns, wide) = box
    (x, y), height, width = corner, scale * high, scale * wide
    _block(ax, corner, (width, height), color, name)
    ax.text(x + width / 2, y + 0.03, columns, ha="center", va="bottom")
    ax.text(x - 0.04, y - height / 2, rows, ha="right", va="center")


def _block(ax: Axes, corner: tuple[float, float], size: tuple[float, float], color: str, name: str) -> None:
    (x, y), (width, height) = corner, size
    ax.add_patch(Rectangle((x, y - height), width, height, facecolor=color, alpha=0.22, lw=0))
    ax.add_patch(Rectangle((x, y - height), width, height, fill=False, edgecolor=color, lw=1.2))
    ax.text(x + width / 2, y - height / 2, name, ha="center", va="center")
