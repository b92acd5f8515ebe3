"""Draw diagrams: matrices as boxes to one scale or as stacks of sheets, and what shares a matrix in a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import named
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
def stacks(spectra: Mapping[str, ArrayLike]) -> Figure:
    """Draw matrices as stacks of sheets, side by side: a sheet for each singular value, the darker the larger it is.

    Values that are nothing but rounding, up to 1e-10 times the first, are no sheets.

    Parameters
    ----------
    spectra : mapping of str to array_like, shape (number,)
        The name of each matrix and its singular values, the largest first.
    """
    checked = {name: s[s > 1e-10 * s.max()] for name, s in named("spectra", spectra, None).items()}
    room, side, slant, flat, rise = WIDTH / len(checked), 0.9, 0.5, 0.45, 0.026  # inches
    most = max(map(len, checked.values()))
    high = 0.62 + side * flat + rise * most
    fig, ax = sheet(WIDTH, high)
    for place, (name, s) in enumerate(checked.items()):
        left = place * room + (room - side * (1 + slant)) / 2
        for i, share in enumerate(s / s.max(initial=1e-300)):
            low = -high + 0.06 + rise * i
            back = low + side * flat
            corners = [(left, low), (left + side, low), (left + side * (1 + slant), back), (left + side * slant, back)]
            ax.add_patch(Polygon(corners, facecolor="white", lw=0))
            ax.add_patch(Polygon(corners, facecolor=(TEAL, 0.85 * share), edgecolor=(TEAL, 0.3 + 0.7 * share), lw=0.8))
        word = f"{name}: {len(s)} sheet{'s' if len(s) > 1 else ''}"
        ax.text(place * room + room / 2, -0.04, word, ha="center", va="top", fontweight="bold")
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
