"""What is an explorer? A figure with sliders, and its two faces: widgets in a live kernel, an HTML block on a page."""

from __future__ import annotations

import asyncio
import base64
import html
import io
import itertools
import math
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from lowrank_tutor.explore.page import (
    DPI,
    PHOTOGRAPH_DPI,
    Film,
    Frame,
    Panel,
    Value,
    Words,
    asset,
    numbers_html,
    page_block,
    panels_html,
)
from lowrank_tutor.sphinxext import page_is_built

if TYPE_CHECKING:
    from ipywidgets import VBox

BREATH = 0.02  # seconds: a move that was waiting is handled within them
VIEW_WIDTH = "720px"  # of the live face
PHOTOGRAPH = "photograph"  # the group identifier of figures that a dark page leaves as they are


class Explorer:
    """A figure with sliders. Made by :func:`explore`; shows itself as the last line of a cell."""

    def __init__(
        self,
        draw: Callable[..., Figure | Sequence[Figure]],
        readout: Callable[..., Mapping[str, float]],
        sliders: Mapping[str, tuple[Value, ...]],
        start: Mapping[str, Value],
        name: str,
        alt: str,
        caption: str,
        labels: Mapping[str, str],
        formats: Mapping[str, str],
    ) -> None:
        self.draw, self.readout = draw, readout
        self.sliders, self.start = sliders, start
        self.name, self.alt, self.caption = name, alt, caption
        self.labels, self.formats = labels, formats
        self.words = Words(labels, formats)

    def __repr__(self) -> str:
        shape = ", ".join(f"{n}: {len(v)} positions" for n, v in self.sliders.items())
        return f"<Explorer {self.name} ({shape})>"

    def positions(self) -> list[dict[str, Value]]:
        """Every combination of slider values, the last slider moving fastest."""
        return [dict(zip(self.sliders, values, strict=True)) for values in itertools.product(*self.sliders.values())]

    def numbers(self, **values: Value) -> dict[str, float]:
        """Return the readout at one position, each number checked to be finite."""
        numbers = self.readout(**values)
        if not isinstance(numbers, Mapping):
            raise TypeError(f"readout must return a dict of named numbers, got {numbers!r}")
        return {key: _finite(key, number, values) for key, number in numbers.items()}

    def frame(self, **values: Value) -> Frame:
        """Draw one position: its pictures, its words and its numbers."""
        numbers = self.numbers(**values)
        return Frame(_panels(self.draw(**values)), self.alt.format(**values, **numbers), numbers)

    def to_html(self) -> str:
        """Draw every position and return the self-contained HTML block.

        Returns
        -------
        str
            A ``<figure class="explorer">`` with its style, script, pictures and numbers inside.

        Raises
        ------
        ValueError
            If the pictures differ in size, the numbers in name, or the block would weigh more than 0.75 MB.
        """
        frames = [self.frame(**values) for values in self.positions()]
        sizes = {tuple(panel.picture.shape[:2] for panel in f.panels) for f in frames}
        names = {tuple(f.numbers) for f in frames}
        if len(sizes) > 1:
            raise ValueError(f"draw must make the same panels at every position, got {sorted(sizes)} pixels")
        if len(names) > 1:
            raise ValueError(f"readout must name the same numbers everywhere, got {sorted(names)}")
        return page_block(Film(self.name, self.caption, self.words, self.sliders, self.start, frames))

    def to_widget(self) -> VBox:
        """Return the live face: an ipywidgets slider, or buttons, for each parameter above the pictures and numbers."""
        import ipywidgets  # heavy, and not needed on a page

        def control(name: str, values: tuple[Value, ...]) -> Any:
            choice = isinstance(values[0], str)
            return (ipywidgets.ToggleButtons if choice else ipywidgets.SelectionSlider)(
                options=[(self.words.text(name, v), v) for v in values],
                value=self.start[name],
                description=self.words.label(name),
                style={"description_width": "initial"} | ({"button_width": "initial"} if choice else {}),
                layout={"width": "100%", "max_width": VIEW_WIDTH},
            )

        sliders = {name: control(name, values) for name, values in self.sliders.items()}
        view = ipywidgets.HTML()

        def update() -> None:
            try:
                view.value = _live_view(self, {name: s.value for name, s in sliders.items()})
            except Exception:
                # A notebook hides what a callback raises in a log: show it where the picture would be.
                view.value = f"<pre>{html.escape(traceback.format_exc())}</pre>"
                raise

        update()
        redraw = _Redraw(update)
        for slider in sliders.values():
            slider.observe(redraw.moved, "value")
        return ipywidgets.VBox([*sliders.values(), view])

    def _repr_mimebundle_(self, **_kwargs: object) -> dict[str, Any]:
        if page_is_built():
            return {"text/plain": repr(self), "text/html": self.to_html()}
        view = {"version_major": 2, "version_minor": 0, "model_id": self.to_widget().model_id}
        return {"text/plain": repr(self), "application/vnd.jupyter.widget-view+json": view}


class _Redraw:
    """Redraws when a slider moves, and drops the positions that a hand has passed while a picture was being drawn.

    A move is drawn at once, while its message is handled: until the kernel is idle again the page holds back all but
    the latest position, and what is sent afterwards Colab may not show (googlecolab/colabtools#3373). Only a move that
    comes within a breath of the last picture has been waiting for it, perhaps with others behind it. Then the event
    loop hands those over first, and draws after them.
    """

    def __init__(self, draw: Callable[[], None]) -> None:
        self.draw = draw
        self.drawn = -math.inf  # when the last picture was ready
        self.ahead = False  # whether the event loop will draw

    def moved(self, _change: object) -> None:
        """Draw, now or soon."""
        if self.ahead:
            return
        if time.monotonic() - self.drawn > BREATH:
            self.now()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel, so that nothing can be waiting
            self.now()
        else:
            self.ahead = True
            loop.call_later(BREATH, self.now)

    def now(self) -> None:
        """Draw where the sliders stand."""
        self.ahead = False
        try:
            self.draw()
        finally:
            self.drawn = time.monotonic()


def _finite(name: str, number: float, values: Mapping[str, Value]) -> float:
    number = number.item() if isinstance(number, np.generic) else number
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"readout {name!r} must be a finite number, got {number!r} at {values}")
    return number


def _panels(drawn: Figure | Sequence[Figure]) -> tuple[Panel, ...]:
    """Rasterize what was drawn."""
    figures = tuple(drawn) if isinstance(drawn, list | tuple) else (drawn,)
    if not figures or not all(isinstance(figure, Figure) for figure in figures):
        raise TypeError(f"draw must return a matplotlib figure or a list of them, got {drawn!r}")
    return tuple(map(_panel, figures))


def _panel(figure: Figure) -> Panel:
    photograph = figure.get_gid() == PHOTOGRAPH
    return Panel(_pixels(figure, PHOTOGRAPH_DPI if photograph else DPI), float(figure.get_figwidth()), photograph)


def _pixels(figure: Figure, dpi: int) -> np.ndarray:
    """Rasterize a figure on white: a frame must be legible on a light page and on a dark one."""
    callers_dpi, callers_canvas = figure.dpi, figure.canvas
    canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(dpi)
    canvas.draw()
    rgba = Image.fromarray(np.array(canvas.buffer_rgba()))
    figure.set_canvas(callers_canvas)
    figure.set_dpi(callers_dpi)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)  # or a figure per position would stay in memory
    paper = Image.new("RGBA", rgba.size, "white")
    return np.asarray(Image.alpha_composite(paper, rgba).convert("RGB"))


def _live_view(explorer: Explorer, values: dict[str, Value]) -> str:
    frame = explorer.frame(**values)
    caption = f"<figcaption>{html.escape(explorer.caption)}</figcaption>" if explorer.caption else ""
    # As on a page, but without the frame around it: the sliders stand above, outside this HTML.
    return (
        f"<style>{asset('css')}</style>"
        f'<figure class="explorer" style="max-width:{VIEW_WIDTH};margin:0;padding:0;border:0;line-height:1.5">'
        f"{panels_html(frame, [_as_png(panel.picture) for panel in frame.panels])}"
        f"<dl>{numbers_html(explorer.words, frame.numbers)}</dl>{caption}</figure>"
    )


def _as_png(picture: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "png", compress_level=1)  # no network is between a kernel and its page
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
