"""Check that figures can be read on a phone and on a wide page, those of the package and those of
the chapters.
"""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.text import Text

from lowrank_tutor.kit.palette import COLORS, SURFACES

PHONE = 328  # pixels that a phone of 360 gives a figure
PIXELS_AN_INCH = (
    72  # at least: explore.css and book.css give that much to each panel that fits into a line
)
PALETTE = {color.light for color in (COLORS | SURFACES).values()} | {
    COLORS["orange"].either,
    SURFACES["ink"].either,
}
PAPER_AND_WORDS = {"#ffffff", "#000000", "#2b2f33"}
MAPS = {"signed", "weights", "gray", "gray_r"}  # the last two for photographs and digits


def figures(drawn):
    """The figures of what a function has drawn, one or several; none if it is something else."""
    panels = drawn if isinstance(drawn, tuple | list) else (drawn,)
    return list(panels) if all(isinstance(panel, Figure) for panel in panels) else []


def rendered(figure):
    """Draw, so that whatever matplotlib complains about is heard, and return the pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def check_fit(panels):
    """Type of 9 pixels on a phone, panels side by side on a wide page, no word cut off."""
    assert sum(figure.get_figwidth() for figure in panels) <= 7.2
    for figure in panels:
        width, pixels = figure.get_figwidth(), rendered(figure)
        shown = min(PHONE, PIXELS_AN_INCH * width)
        smallest = min(
            (text.get_fontsize() for text in figure.findobj(Text) if text.get_text()), default=9
        )
        assert smallest / 72 * shown / width >= 9
        assert pixels.std() > 5, "an empty sheet"
        for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
            assert (edge[..., :3] == 255).all()


def check_look(figure):
    """Every color and map is the palette's, and lines that have names show them."""
    for ax in (ax for ax in figure.axes if ax.name != "3d"):
        mapped = [*ax.images, *(each for each in ax.collections if each.get_array() is not None)]
        assert {each.cmap.name for each in mapped} <= MAPS
        parts = [
            (line.get_color(), line.get_markerfacecolor(), line.get_markeredgecolor())
            for line in ax.lines
        ]
        parts += [(patch.get_facecolor(), patch.get_edgecolor()) for patch in ax.patches]
        parts += [
            (each.get_facecolor(), each.get_edgecolor())
            for each in ax.collections
            if each not in mapped
        ]
        parts += [(text.get_color(),) for text in ax.texts if text.get_text()]
        used = {
            to_hex(rgba)
            for part in parts
            for color in part
            for rgba in to_rgba_array(color)
            if rgba[3] > 0
        }
        assert used <= PALETTE | PAPER_AND_WORDS, used - PALETTE - PAPER_AND_WORDS
        names = [
            str(line.get_label()) for line in ax.lines if not str(line.get_label()).startswith("_")
        ]
        legend = ax.get_legend()
        written = [text.get_text() for text in (*ax.texts, *(legend.get_texts() if legend else ()))]
        said = "".join("".join(written).split())
        assert len(names) < 2 or all("".join(name.split()) in said for name in names), names
