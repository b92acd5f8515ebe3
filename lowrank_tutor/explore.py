"""How does a number move when I move k? One call makes a figure with sliders, for a kernel and for a page.

Every chapter uses it. In a live kernel an :class:`Explorer` is ordinary ipywidgets and draws on demand. On a page that
is being built (see ``lowrank_tutor.sphinxext``) it is one self-contained HTML block: native range inputs, one
picture per position, a few lines of script. That block needs no kernel, no library and no network.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import itertools
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from tqdm import tqdm

from lowrank_tutor._page import numbers_html, page_block, text_of
from lowrank_tutor.sphinxext import PAGE_VARIABLE

if TYPE_CHECKING:
    from ipywidgets import VBox

__all__ = ["Explorer", "explore"]

MAX_POSITIONS = 48  # a slider: more positions than that are no easier to hit than a number is to type
MAX_FRAMES = 240  # all sliders together
DPI = 150  # pictures are drawn for sharp screens: 1.5 times the 100 that a figure's inches are laid out for


class Frame(NamedTuple):
    """One position of the sliders: its picture (height, width, 3), its words and its numbers."""

    picture: np.ndarray
    alt: str
    numbers: dict[str, float]


class Explorer:
    """A figure with sliders. Made by :func:`explore`; shows itself as the last line of a cell."""

    def __init__(
        self,
        draw: Callable[..., Figure],
        readout: Callable[..., Mapping[str, float]],
        sliders: dict[str, tuple[float, ...]],
        start: dict[str, float],
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

    def __repr__(self) -> str:
        shape = ", ".join(f"{n}: {len(v)} positions" for n, v in self.sliders.items())
        return f"<Explorer {self.name} ({shape})>"

    def positions(self) -> list[dict[str, float]]:
        """Every combination of slider values, the last slider moving fastest."""
        return [dict(zip(self.sliders, values, strict=True)) for values in itertools.product(*self.sliders.values())]

    def numbers(self, **values: float) -> dict[str, float]:
        """Return the readout at one position, each number checked to be finite."""
        numbers = self.readout(**values)
        if not isinstance(numbers, Mapping):
            raise TypeError(f"readout must return a dict of named numbers, got {numbers!r}")
        return {key: _finite(key, number, values) for key, number in numbers.items()}

    def frame(self, **values: float) -> Frame:
        """Draw one position: the picture, its words and its numbers."""
        numbers = self.numbers(**values)
        return Frame(_pixels(self.draw(**values)), self.alt.format(**values, **numbers), numbers)

    def to_html(self) -> str:
        """Draw every position and return the self-contained HTML block.

        Returns
        -------
        str
            A ``<figure class="explorer">`` with its style, script, pictures and numbers inside.

        Raises
        ------
        ValueError
            If the pictures differ in size, the numbers in name, or the block would weigh more than 0.8 MB.
        """
        with _progress_file() as file:
            # The bar appears only when drawing takes longer than two seconds.
            bar = tqdm(self.positions(), desc=self.name, unit="frame", delay=2, leave=False, file=file)
            frames = [self.frame(**values) for values in bar]
        sizes = {f.picture.shape[:2] for f in frames}
        names = {tuple(f.numbers) for f in frames}
        if len(sizes) > 1:
            raise ValueError(f"draw must make every picture of one size, got {sorted(sizes)} pixels")
        if len(names) > 1:
            raise ValueError(f"readout must name the same numbers everywhere, got {sorted(names)}")
        return page_block(self, frames)

    def to_widget(self) -> VBox:
        """Return the live face: one ipywidgets slider a parameter above the picture and its numbers."""
        import ipywidgets  # heavy, and not needed on a page

        sliders = {
            name: ipywidgets.SelectionSlider(
                options=[(text_of(self, name, v), v) for v in values],
                value=self.start[name],
                description=self.labels.get(name, name),
                continuous_update=False,
                style={"description_width": "initial"},
            )
            for name, values in self.sliders.items()
        }
        view = ipywidgets.HTML()

        def update(_change: object = None) -> None:
            try:
                view.value = _live_view(self, {name: s.value for name, s in sliders.items()})
            except Exception:
                # A notebook hides what a callback raises in a log: show it where the picture would be.
                view.value = f"<pre>{html.escape(traceback.format_exc())}</pre>"
                raise

        for slider in sliders.values():
            slider.observe(update, "value")
        update()
        return ipywidgets.VBox([*sliders.values(), view])

    def _repr_mimebundle_(self, **_kwargs: object) -> dict[str, Any]:
        if PAGE_VARIABLE in os.environ:
            return {"text/plain": repr(self), "text/html": self.to_html()}
        view = {"version_major": 2, "version_minor": 0, "model_id": self.to_widget().model_id}
        return {"text/plain": repr(self), "application/vnd.jupyter.widget-view+json": view}


def explore(
    draw: Callable[..., Figure],
    readout: Callable[..., Mapping[str, float]] | None = None,
    *,
    alt: str,
    caption: str = "",
    name: str | None = None,
    start: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
    formats: Mapping[str, str] | None = None,
    **sliders: Iterable[float],
) -> Explorer:
    r"""Put sliders on a figure.

    Parameters
    ----------
    draw : callable
        ``draw(k=...)`` returns a matplotlib figure. Its size must be the same at every position.
    readout : callable, optional
        ``readout(k=...)`` returns a dict of named finite numbers, the same names at every position.
    alt : str
        What the picture shows, in words, for people who cannot see it. A template: ``{k}`` is the slider's value,
        ``{relative_error:.1%}`` a number of the readout.
    caption : str, optional
        A sentence below the figure (plain text).
    name : str, optional
        The explorer's name on the page; by default the name of ``draw`` with hyphens.
    start : mapping, optional
        Where each slider stands at first; by default at its first value.
    labels, formats : mapping, optional
        Words and format specifications (``".1%"``) for sliders and readouts, by name.
    **sliders : iterable of numbers
        One slider each, such as ``k=range(1, 49)``: increasing, 2 to 48 positions, 240 frames in all.

    Returns
    -------
    Explorer
        Shows itself when it is the last line of a cell.

    Raises
    ------
    TypeError
        If ``draw`` or ``readout`` cannot be called, or a slider's value is not a number.
    ValueError
        If there is no slider, a slider has too few or too many positions or does not increase, there are too many
        frames, or ``alt``, ``start``, ``labels`` or ``formats`` do not fit the sliders.

    Examples
    --------
    >>> from lowrank_tutor import plotting
    >>> from lowrank_tutor.svd import tail_error
    >>> s = [3.0, 2.0, 1.0]
    >>> explore(
    ...     lambda k: plotting.spectrum(s, k),
    ...     lambda k: {"error": tail_error(s, k)},
    ...     alt="Three singular values; cutting after {k} leaves an error of {error:.3f}.",
    ...     name="three-values",
    ...     k=range(1, 4),
    ... )
    <Explorer three-values (k: 3 positions)>
    """
    readout = readout if readout is not None else _no_numbers
    for argument, function in (("draw", draw), ("readout", readout)):
        if not callable(function):
            raise TypeError(f"{argument} must be callable, got {function!r}")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt must be words that describe the picture, got {alt!r}")
    values = {slider: _slider_values(slider, raw) for slider, raw in sliders.items()}
    if not values:
        raise ValueError("sliders must be given by name, such as k=range(1, 49), got none")
    counts = [len(v) for v in values.values()]
    if math.prod(counts) > MAX_FRAMES:
        product = " x ".join(map(str, counts)) + f" = {math.prod(counts)}"
        raise ValueError(f"sliders must give at most {MAX_FRAMES} frames, got {product}")
    first = {slider: v[0] for slider, v in values.items()}
    for slider, value in (start or {}).items():
        if value not in values.get(slider, ()):
            raise ValueError(f"start must be a position of a slider, got {slider}={value!r}")
        first[slider] = values[slider][values[slider].index(value)]  # the slider's own 8, not the caller's np.int64(8)
    name = name if name is not None else getattr(draw, "__name__", "explorer").replace("_", "-")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case words joined by hyphens, got {name!r}")
    explorer = Explorer(draw, readout, values, first, name, alt, caption, dict(labels or {}), dict(formats or {}))
    _check_words(explorer)
    return explorer


def _no_numbers(**_values: float) -> dict[str, float]:
    return {}


def _slider_values(name: str, raw: Iterable[float]) -> tuple[float, ...]:
    if isinstance(raw, str) or not isinstance(raw, Iterable):
        raise TypeError(f"{name} must be a sequence of numbers, got {raw!r}")
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in raw)
    for v in values:
        if isinstance(v, bool) or not isinstance(v, int | float):
            raise TypeError(f"{name} must hold numbers, got {v!r}")
        if not math.isfinite(v):
            raise ValueError(f"{name} must hold finite numbers, got {v!r}")
    if not 2 <= len(values) <= MAX_POSITIONS:
        raise ValueError(f"{name} must have 2 to {MAX_POSITIONS} positions, got {len(values)}")
    if any(b <= a for a, b in itertools.pairwise(values)):
        raise ValueError(f"{name} must increase, got {list(values)}")
    return values


def _check_words(explorer: Explorer) -> None:
    """Refuse words for what does not exist: a typing slip would otherwise show only on the page."""
    numbers = explorer.numbers(**explorer.start)
    if both := set(numbers) & set(explorer.start):
        raise ValueError(f"readout must not name a number like a slider, got {sorted(both)}")
    known = {**explorer.start, **numbers}
    for argument in ("labels", "formats"):
        if unknown := set(getattr(explorer, argument)) - set(known):
            raise ValueError(f"{argument} must name one of {sorted(known)}, got {sorted(unknown)}")
    for name, spec in explorer.formats.items():
        try:
            format(known[name], spec)
        except (ValueError, TypeError) as error:
            raise ValueError(f"formats must fit the number {known[name]!r}, got {name}={spec!r}") from error
    try:
        explorer.alt.format(**known)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"alt must use only {sorted(known)}, got {explorer.alt!r}") from error


def _finite(name: str, number: float, values: dict[str, float]) -> float:
    number = number.item() if isinstance(number, np.generic) else number
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise ValueError(f"readout {name!r} must be a finite number, got {number!r} at {values}")
    return number


def _pixels(figure: Figure) -> np.ndarray:
    """Rasterize a figure on white: a frame must be legible on a light page and on a dark one."""
    if not isinstance(figure, Figure):
        raise TypeError(f"draw must return a matplotlib figure, got {figure!r}")
    callers_dpi, callers_canvas = figure.dpi, figure.canvas
    canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(DPI)
    canvas.draw()
    rgba = Image.fromarray(np.array(canvas.buffer_rgba()))
    figure.set_canvas(callers_canvas)
    figure.set_dpi(callers_dpi)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)  # or a figure per position would stay in memory
    paper = Image.new("RGBA", rgba.size, "white")
    return np.asarray(Image.alpha_composite(paper, rgba).convert("RGB"))


def _live_view(explorer: Explorer, values: dict[str, float]) -> str:
    frame = explorer.frame(**values)
    buffer = io.BytesIO()
    Image.fromarray(frame.picture).save(buffer, "png")
    picture = base64.b64encode(buffer.getvalue()).decode()
    caption = f"<p><em>{html.escape(explorer.caption)}</em></p>" if explorer.caption else ""
    style = "display:flex;flex-wrap:wrap;gap:0 2em;margin:.5em 0"
    return (
        f'<img alt="{html.escape(frame.alt)}" style="width:100%;max-width:720px" src="data:image/png;base64,{picture}">'
        f'<dl style="{style}">{numbers_html(explorer, frame.numbers)}</dl>{caption}'
    )


@contextlib.contextmanager
def _progress_file() -> Iterator[TextIO]:
    """Where a progress bar may be seen: on a page that is being built it must not land among the cell's outputs."""
    if PAGE_VARIABLE not in os.environ:
        yield sys.stderr
        return
    with open(os.environ[PAGE_VARIABLE], "w", encoding="utf-8") as terminal:
        yield terminal
