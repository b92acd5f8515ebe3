"""Draw matrices as boxes, all to one scale."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lowrank_tutor.kit.charts.style import INK, TEAL, WIDTH, sheet, styled

ROOM = 0.38  # inches between the boxes of a line, for a sign and a letter

# A matrix's name, and for its height and its width a letter and how long that side is.
Box = tuple[str, tuple[str, float], tuple[str, float]]


@styled
def boxes(lines: Mapping[str, Sequence[Box | str]], *, marked: Collection[str] = ()) -> Figure:
    """Draw matrices as rectangles, all to one scale, with the signs between them.

    ``lines`` maps a heading to the boxes and signs of its line. A box is a name, and for its height and its width a
    letter and how long that side is. Those whose names are ``marked`` are what a method brings in, and teal.
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
            face = (TEAL, 0.22) if name in marked else (INK, 0.08)
            corner = (x, middle - height / 2)
            ax.add_patch(Rectangle(corner, width, height, facecolor=face, edgecolor=face[0], lw=1.2))
            ax.text(x + width / 2, middle, name, ha="center", va="center")
            ax.text(x + width / 2, middle + height / 2 + 0.03, columns, ha="center", va="bottom")
            ax.text(x - 0.04, middle, rows, ha="right", va="center")
            x, sign = x + width, ""
        top -= head + tall + foot
    return fig
