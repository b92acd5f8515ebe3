"""Draw tables: photographs, small images, equations of matrices, words, and boxes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from lowrank_tutor.kit.charts.arguments import finite, named
from lowrank_tutor.kit.charts.style import (
    GRAY,
    HIDDEN,
    INK,
    SIGNED,
    TEAL,
    WEIGHTS,
    WIDTH,
    Panels,
    panel,
    photograph,
    sheet,
    styled,
)

# The share of the way from white to teal up to which black words are clearer than white ones.
LEGIBLE = 0.85

ROOM = 0.38  # inches between the boxes of a line, for a sign and a letter

# A matrix's name, and for its height and its width a letter and how long that side is.
Box = tuple[str, tuple[str, float], tuple[str, float]]
# A table's title, its entries (m, n), and a word for each of its rows and columns.
Grid = tuple[str, ArrayLike, Sequence[str], Sequence[str]]


@styled
def picture(
    image: ArrayLike, title: str, *, width: float = 2.2, below: float = 0.03, **look: Any
) -> Figure:
    """Show a matrix (m, n) as a picture, over the whole ``width`` of a figure, in inches.

    In black and white it is a photograph, which a dark page leaves as it is; with a ``cmap`` it is
    line art. ``below`` are inches for an axis label, and ``look`` is what matplotlib's ``imshow``
    takes.
    """
    image = finite("image", image, None, None)
    rows, columns = image.shape
    height = (width - 0.06) * rows / columns + 0.32 + below
    fig, ax = panel(width, height, left=0.03, right=0.03, bottom=below)
    ax.imshow(image, aspect="auto", **look)
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    return fig if "cmap" in look else photograph(fig)


def draw_row(
    ax: Axes,
    images: ArrayLike,
    corner: tuple[float, float],
    side: float,
    *,
    title: str = "",
    **look: Any,
) -> None:
    """Draw images (number, 64) of 8 x 8 pixels side by side on a :func:`sheet`.

    A pixel that is NaN is orange. The first has its upper left ``corner`` there, and ``side``
    inches on begins the next. The title stands above. ``look`` is what matplotlib's ``imshow``
    takes.
    """
    images = finite("images", images, None, 64, gaps=True)
    left, top = corner
    ax.text(left, top + 0.02, title, va="bottom", fontsize=10, fontweight="bold")
    color = plt.get_cmap(look.pop("cmap", "gray_r")).with_extremes(bad=HIDDEN)
    for place, image in enumerate(images):
        x = left + place * side
        extent = (x, x + 0.94 * side, top - 0.94 * side, top)
        ax.imshow(image.reshape(8, 8), cmap=color, extent=extent, aspect="auto", **look)


@styled
def equation(*parts: ArrayLike | str) -> Figure:
    """Draw matrices and the signs between them, such as ``equation(a, "=", c, "@", f)``.

    ``"@"`` is drawn as mathematics writes it, one matrix beside the other. A phone has room for
    nine columns.
    """
    drawn = [p if isinstance(p, str) else finite("parts", p, None, None) for p in parts]
    shapes = [(1, 0.25 if p == "@" else 0.5) if isinstance(p, str) else p.shape for p in drawn]
    largest = max(float(np.abs(p).max()) for p in drawn if not isinstance(p, str))
    height, width = max(shape[0] for shape in shapes), sum(shape[1] for shape in shapes)
    unit = min(0.5, (WIDTH - 0.1) / width)
    fig = plt.figure(figsize=(unit * width + 0.1, unit * height + 0.1), layout="none")
    size, at = fig.get_size_inches(), 0.05
    for part, (rows, columns) in zip(drawn, shapes, strict=True):
        wide, high = unit * columns, unit * rows
        low = 0.05 + unit * (height - rows) / 2
        ax = fig.add_axes((at / size[0], low / size[1], wide / size[0], high / size[1]))
        ax.set_axis_off()
        at += wide
        if isinstance(part, str):
            ax.text(0.5, 0.5, "" if part == "@" else part, ha="center", va="center", fontsize=16)
            continue
        # Pale, so that entries stay legible.
        ax.imshow(part, cmap=SIGNED, vmin=-1.6 * largest, vmax=1.6 * largest, aspect="auto")
        for (i, j), entry in np.ndenumerate(part):
            seen = entry if abs(entry) > 1e-12 * largest else 0.0  # what rounding leaves of a zero
            ax.text(j, i, f"{seen:.3g}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center")
    return fig


def _write_entries(
    ax: Axes, table: np.ndarray, spell: Callable[[float], str], *, dark: float
) -> None:
    """Write each entry into its cell, in white where the cell is dark."""
    for (i, j), entry in np.ndenumerate(table):
        color = "white" if entry > dark else "black"
        ax.text(j, i, spell(entry), ha="center", va="center", color=color, fontsize=9)


@styled
def word_maps(
    maps: Mapping[str, ArrayLike],
    words: Sequence[str],
    *,
    decimals: int,
    axes: tuple[str, str] = ("looks", "is looked at"),
) -> Panels:
    """Show tables (n, n) that have the same n words on both axes, side by side.

    ``maps`` maps a title to a table without negative entries: a row for each word that looks, a
    column for each looked at. White is zero, and the darkest is the largest entry of each table.
    Entries are written into the picture with some ``decimals``. ``axes`` say what the word of a row
    does, and the word of a column.
    """
    maps = named("maps", maps, len(words), len(words))
    longest = max(map(len, words))
    beside, below = 0.3 + 0.072 * longest, 0.35 + 0.065 * longest  # inches that the words take
    side = min(2.2, 3.1 - beside)  # so that two stand side by side
    upright = len(words) > 8 or longest > 6  # or words at the edge would be cut
    drawn = []
    for title, table in maps.items():
        fig, ax = panel(
            beside + side + 0.05, 0.3 + side + below, left=beside, right=0.05, top=0.3, bottom=below
        )
        highest = float(table.max())
        ax.imshow(table, cmap=WEIGHTS, vmin=0, vmax=highest, interpolation="nearest")
        ax.set_xticks(range(len(words)), words, rotation=90 if upright else 45, ha="center")
        ax.set_yticks(range(len(words)), words)
        ax.tick_params(length=0)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        _write_entries(ax, table, f"{{:.{decimals}f}}".format, dark=LEGIBLE * highest)
        ax.set(title=title, xlabel=axes[1], ylabel=axes[0])
        drawn.append(fig)
    return Panels(drawn)


@styled
def grids(*parts: Grid, borders: Sequence[int] = (), written: bool = False) -> Figure:
    """Show tables side by side, dark where an entry is large, all on one scale.

    The scale goes from 0 to the largest entry of all. Each of ``parts`` is a title, entries (m, n)
    of at least 0, and words for the m rows and the n columns. Only the first shows the words of its
    rows. Lines stand before the columns ``borders`` of the last table, such as where a window
    begins. If ``written``, entries other than 0 are written out.
    """
    entries = [finite(part[0], part[1], len(part[2]), len(part[3])) for part in parts]
    left = start = 0.1 + 0.075 * max(map(len, parts[0][2]))  # inches
    gap = 0.3
    room = WIDTH - left - 0.1 - gap * (len(parts) - 1)
    unit = min(0.45, room / sum(each.shape[1] for each in entries))
    above = 0.3 + 0.075 * max(len(word) for part in parts for word in part[3])
    height = above + unit * max(len(each) for each in entries) + 0.08
    fig = plt.figure(figsize=(WIDTH, height), layout="none")
    highest = max(float(each.max()) for each in entries)
    for (title, _, row_words, column_words), each in zip(parts, entries, strict=True):
        rows, columns = each.shape
        place = (
            start / WIDTH,
            1 - (above + unit * rows) / height,
            unit * columns / WIDTH,
            unit * rows / height,
        )
        ax = fig.add_axes(place)
        ax.imshow(each, cmap=WEIGHTS, vmin=0, vmax=highest, aspect="auto")
        ax.grid(visible=False)
        ax.grid(which="minor", color="white", linewidth=1)  # thin lines between the cells
        ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.tick_params(which="both", length=0)
        ax.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
        ax.spines[:].set(visible=True, color=GRAY)
        ax.set_title(title, pad=72 * (above - 0.3) + 8)  # above the words of the columns
        ax.set_xticks(range(columns), column_words, rotation=90)
        ax.set_yticks(range(rows), row_words if start == left else [""] * rows)
        if written:
            _write_entries(
                ax,
                each,
                lambda entry: f"{entry:.2f}".lstrip("0") if entry else "",
                dark=LEGIBLE * highest,
            )
        start += unit * columns + gap
    for border in borders:
        ax.axvline(border - 0.5, color=INK, linewidth=2)
    return fig


@styled
def boxes(lines: Mapping[str, Sequence[Box | str]], *, marked: Collection[str] = ()) -> Figure:
    """Draw matrices as rectangles, all to one scale, with the signs between them.

    ``lines`` maps a heading to the boxes and signs of its line. A box is a name, and for its height
    and its width a letter and how long that side is. Those whose names are ``marked`` are what a
    method brings in, and teal.
    """
    margin = 0.25  # inches
    head, foot = 0.5, 0.12
    shapes = [[part for part in line if not isinstance(part, str)] for line in lines.values()]
    scale = min(
        (WIDTH - 2 * margin - ROOM * (len(each) - 1)) / sum(wide for _, _, (_, wide) in each)
        for each in shapes
    )
    tallest = [scale * max(high for _, (_, high), _ in each) for each in shapes]
    fig, ax = sheet(WIDTH, sum(tallest) + len(lines) * (head + foot))
    top = 0.0
    for (heading, line), tall in zip(lines.items(), tallest, strict=True):
        ax.text(margin / 3, top - 0.06, heading, va="top", fontweight="bold")
        x, sign = margin, ""
        middle = top - head - tall / 2
        for part in line:
            if isinstance(part, str):
                sign = part
                continue
            if x > margin:
                ax.text(x + ROOM * 0.3, middle, sign, ha="center", va="center", fontsize=12)
                x += ROOM
            name, (rows, high), (columns, wide) = part
            width, height = scale * wide, scale * high
            face = (TEAL, 0.22) if name in marked else (INK, 0.08)
            corner = (x, middle - height / 2)
            ax.add_patch(
                Rectangle(corner, width, height, facecolor=face, edgecolor=face[0], lw=1.2)
            )
            ax.text(x + width / 2, middle, name, ha="center", va="center")
            ax.text(x + width / 2, middle + height / 2 + 0.03, columns, ha="center", va="bottom")
            ax.text(x - 0.04, middle, rows, ha="right", va="center")
            x, sign = x + width, ""
        top -= head + tall + foot
    return fig
