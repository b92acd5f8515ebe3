"""Draw diagrams of boxes: matrices to one scale, and which places of a model share a matrix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lowrank_tutor.plotting.style import INK, TEAL, VIOLET, WIDTH, sheet, styled

ROOM = 0.38  # inches between the boxes of a line, for a sign and a letter

# A matrix's name, and for its height and its width a letter and how long that side is.
Box = tuple[str, tuple[str, float], tuple[str, float]]


@styled
def boxes(lines: Mapping[str, Sequence[Box | str]], *, marked: Collection[str] = ()) -> Figure:
    """Draw matrices as rectangles, all to one scale, with the signs between them.

    Parameters
    ----------
    lines : mapping of str to sequence of (str, (str, float), (str, float)) or str
        A heading for each line, its boxes and the signs between them. A box is a name, and for its height and its width
        a letter and how long that side is.
    marked : collection of str, optional
        Names of the boxes that a method brings in, which are teal.
    """
    margin, head, foot = 0.25, 0.5, 0.12  # inches
    shapes = [[part for part in line if not isinstance(part, str)] for line in lines.values()]
    scale = min(
        (WIDTH - 2 * margin - ROOM * (len(each) - 1)) / sum(wide for _, _, (_, wide) in each) for each in shapes
    )
    tallest = [scale * max(high for _, (_, high), _ in each) for each in shapes]
    fig, ax = sheet(WIDTH, sum(tallest) + len(lines) * (head + foot))
    top = 0.0
    for (heading, line), tall in zip(lines.items(), tallest, strict=True):
        ax.text(margin / 3, top - 0.06, heading, va="top", fontweight="bold")
        x, sign, middle = margin, "", top - head - tall / 2
        for part in line:
            if isinstance(part, str):
                sign = part
                continue
            if x > margin:
                ax.text(x + ROOM * 0.3, middle, sign, ha="center", va="center", fontsize=12)
                x += ROOM
            name, (rows, high), (columns, wide) = part
            width, height = scale * wide, scale * high
            _block(ax, (x, middle + height / 2), (width, height), TEAL if name in marked else INK, name)
            ax.text(x + width / 2, middle + height / 2 + 0.03, columns, ha="center", va="bottom")
            ax.text(x - 0.04, middle, rows, ha="right", va="center")
            x, sign = x + width, ""
        top -= head + tall + foot
    return fig


@styled
def sharing(ways: Mapping[str, tuple[bool, bool, bool]]) -> Figure:
    """Draw which places of a model of three layers, two heads each, one matrix serves: a block covers them.

    Parameters
    ----------
    ways : mapping of str to (bool, bool, bool)
        A name, and whether the heads of a layer share a matrix, whether its keys and values do, and whether all layers
        do. The later ones need the earlier ones.
    """
    layers, heads = 3, 2
    unit, left, top, between, apart = 0.36, 1.55, 0.3, 0.22, 0.2  # inches
    fig, ax = sheet(WIDTH, top + len(ways) * (2 * unit + between))
    starts = [left + layer * (heads * unit + apart) for layer in range(layers)]
    for layer, start in enumerate(starts):
        ax.text(start + heads * unit / 2, -0.06, f"layer {layer + 1}", ha="center", va="top")
    for row, (name, (over_heads, over_kinds, over_layers)) in enumerate(ways.items()):
        y = -top - row * (2 * unit + between)
        ax.text(0.05, y - unit, name, va="center", fontweight="bold")
        high = 2 * unit if over_kinds else unit
        long = heads * unit if over_heads else unit
        places = [start + head * unit for start in starts for head in range(1 if over_heads else heads)]
        if over_layers:
            places, long = [left], starts[-1] + heads * unit - left
        for place in places:
            for kind in range(1 if over_kinds else 2):
                label = "E = F" if over_kinds else "EF"[kind]
                color = TEAL if over_kinds or kind == 0 else VIOLET
                _block(ax, (place, y - kind * high), (long, high), color, label)
    return fig


def _block(ax: Axes, corner: tuple[float, float], size: tuple[float, float], color: str, name: str) -> None:
    """Draw a box by its upper left corner, with its name inside."""
    (x, y), (width, height) = corner, size
    ax.add_patch(Rectangle((x, y - height), width, height, facecolor=color, alpha=0.08 if color == INK else 0.22, lw=0))
    ax.add_patch(Rectangle((x, y - height), width, height, fill=False, edgecolor=color, lw=1.2))
    ax.text(x + width / 2, y - height / 2, name, ha="center", va="center")
