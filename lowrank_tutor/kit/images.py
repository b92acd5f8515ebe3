"""Figures as pixels or SVG, and pictures as text for the address of an image, in base64."""

import base64
import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

EDGE = 0.01  # inches beyond the edge of a figure that nobody misses


@contextlib.contextmanager
def _canvas(figure: Figure, dpi: int) -> Iterator[Any]:
    """Draw on a figure in pixels of a size, with labels inside; then leave it as it was, closed."""
    callers_dpi, callers_canvas = figure.dpi, figure.canvas
    canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(dpi)
    if figure.get_layout_engine() is None and _is_cut(figure, canvas.get_renderer()):
        figure.set_layout_engine("constrained")
    yield canvas
    figure.set_canvas(callers_canvas)
    figure.set_dpi(callers_dpi)
    plt.close(figure)  # or a figure per position would stay in memory


def pixels(figure: Figure, dpi: int) -> np.ndarray:
    """Rasterize a figure on white, because it must be legible on a light page and on a dark one."""
    with _canvas(figure, dpi) as canvas:
        canvas.draw()
        rgba = Image.fromarray(np.array(canvas.buffer_rgba()))
    paper = Image.new("RGBA", rgba.size, "white")
    return np.asarray(Image.alpha_composite(paper, rgba).convert("RGB"))


def vector(figure: Figure, dpi: int, salt: str) -> str:
    """Write what stands inside the ``<svg>`` of a figure; a unit is 1/72 inch.

    Letters stay text, in the font of the page. ``data-of`` says what a group is, such as a
    ``line2d``. Names that parts need within the page depend on ``salt``. Images that must be
    resampled get ``dpi`` pixels an inch. Words lose their path effects, or they would be outlines.
    """
    for word in figure.findobj(Text):
        word.set_path_effects([])
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": salt}
    with _canvas(figure, dpi), plt.rc_context(settings):
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(stream := io.StringIO())
    # What stands before is a style for the whole page.
    drawn = stream.getvalue().partition("</defs>")[2].rpartition("</svg>")[0]
    drawn = re.sub(r'<g id="(.*?)(?:_\d+)?"', r'<g data-of="\1"', drawn)
    drawn = re.sub(r"font-family: .*?(?=; |\")|\s+(?=<)", "", drawn)
    return re.sub(r' (?:d|x|y)="[^"]*"', _rounded, drawn)


def _rounded(attribute: re.Match[str]) -> str:
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", attribute[0])


def _is_cut(figure: Figure, renderer: Any) -> bool:
    """Whether labels of a grid of axes lie beyond the edge of a figure that nobody has laid out."""
    if not any(ax.get_subplotspec() for ax in figure.axes):
        return False
    box, (width, height) = figure.get_tightbbox(renderer), figure.get_size_inches()
    return bool(min(box.x0, box.y0, width - box.x1, height - box.y1) < -EDGE)


def _saved(image: Image.Image, kind: str, **settings: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return base64.b64encode(buffer.getvalue()).decode()


def png(picture: np.ndarray, *, scale: float = 1, **settings: Any) -> str:
    """Encode a picture as PNG, in base64."""
    image = Image.fromarray(picture)
    size = round(image.width * scale), round(image.height * scale)
    return _saved(image.resize(size, Image.Resampling.LANCZOS), "png", **settings)


def encode(picture: np.ndarray, quality: int) -> str:
    """Encode a picture as WebP, in base64."""
    return _saved(Image.fromarray(picture), "webp", quality=quality, method=4)
