"""Check that figures can be read on a phone and on a wide page, those of the package and those of the chapters."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

PHONE = 328  # pixels that a phone of 360 gives a figure
PIXELS_AN_INCH = 72  # at least: explore.css and book.css give that much to each panel that fits into a line


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
    """Type of 9 pixels on a phone, panels side by side on a wide page, and no word cut at an edge."""
    assert sum(figure.get_figwidth() for figure in panels) <= 7.2
    for figure in panels:
        width, pixels = figure.get_figwidth(), rendered(figure)
        shown = min(PHONE, PIXELS_AN_INCH * width)
        smallest = min((text.get_fontsize() for text in figure.findobj(Text) if text.get_text()), default=9)
        assert smallest / 72 * shown / width >= 9
        assert pixels.std() > 5, "an empty sheet"
        for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
            assert (edge == 255).all()
