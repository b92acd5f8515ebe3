"""A figure with sliders, and its two faces: widgets in a live kernel, an HTML block on a page."""

import asyncio
import contextlib
import html
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from lowrank_tutor._on_demand import needed
from lowrank_tutor.kit.block import style
from lowrank_tutor.kit.charts.style import PHOTOGRAPH
from lowrank_tutor.kit.environment import somebody_is_there
from lowrank_tutor.kit.images import encode, pixels, png, vector
from lowrank_tutor.kit.sliders.film import STYLES, Film, Frame, Panel, page_block, panels_html
from lowrank_tutor.kit.words import Value, caption_html

# Pixels an inch of a picture. A page shows at most 112, and a sharp screen has two for each of
# them, which photographs need more than lines do.
LINE_ART_PIXELS, PHOTOGRAPH_PIXELS = 170, 200
# So that lines have as many points at every position, and tables their own pixels: nothing that
# moves is simplified or resampled.
TRAVELING: Any = {"path.simplify": False, "image.interpolation": "none"}
REDRAW_DELAY = (
    0.02  # seconds: a move that has been waiting in the kernel's queue arrives within them
)
STEP = 500  # milliseconds: how long a live figure that plays rests at each position
ASLEEP = "The sliders of this figure move while Python runs: to wake them, run its cell again."
VIEW_WIDTH = "720px"  # of the live face


@dataclass(repr=False, eq=False)
class Explorer(Film):
    """A figure with sliders. Made by :func:`explore`; shows itself as the last line of a cell."""

    draw: Callable[..., Figure | Sequence[Figure]]
    readout: Callable[..., Mapping[str, Value]]
    alt: str

    def __repr__(self) -> str:
        shape = ", ".join(f"{n}: {len(v)} positions" for n, v in self.sliders.items())
        return f"<Explorer {self.name} ({shape})>"

    def numbers(self, **values: Value) -> dict[str, Value]:
        """Return the readout at one position, each number checked to be finite."""
        return {
            key: _readable(key, number, values)
            for key, number in self._ask(self.readout, values).items()
        }

    def sentence(self, **values: Value) -> str:
        """Return what the picture shows at one position, in words."""
        return self.words.sentence(self.alt, values | self.numbers(**values))

    def frame(self, salt: str | None = None, /, **values: Value) -> Frame:
        """Draw one position: its pictures, its words and its numbers.

        With ``salt`` the pictures are SVG, and names within them depend on it.
        """
        numbers = self.numbers(**values)
        with rc_context(TRAVELING if salt else {}):
            panels = _panels(self._ask(self.draw, values), salt)
        return Frame(panels, self.words.sentence(self.alt, values | numbers), numbers)

    def _ask(self, function: Callable[..., Any], values: Mapping[str, Value]) -> Any:
        """Call the author's function, and say where if it fails."""
        try:
            return function(**values)
        except Exception as error:
            error.add_note(f"while {self.name!r} was drawn at {values}")
            raise

    def to_html(self) -> str:
        """Draw every position and return a self-contained ``<figure class="explorer">``.

        Pictures that differ in size and a block heavier than ``limit`` are refused.
        """
        return page_block(self, self.frames()).to_html(linked=False)

    def frames(self) -> list[Frame]:
        """Draw every position for a page."""
        frames = [self.frame(self.name, **values) for values in self.positions()]
        sizes = {tuple(panel.inches for panel in frame.panels) for frame in frames}
        names = {tuple(frame.numbers) for frame in frames}
        if len(sizes) > 1:
            raise ValueError(
                f"draw must make the same panels at every position, got {sorted(sizes)} inches"
            )
        if len(names) > 1:
            raise ValueError(f"readout must name the same numbers everywhere, got {sorted(names)}")
        return frames

    def to_widget(self, first: Frame | None = None) -> Any:
        """Return the live face: sliders or buttons above the pictures and numbers.

        Each parameter gets an ipywidgets slider, or buttons. ``first`` is the frame at the start,
        if it has been drawn.
        """
        with needed("a figure with live sliders"):
            import ipywidgets  # heavy, and not needed on a page

        def control(name: str, values: tuple[Value, ...]) -> Any:
            choice = self.is_choice(name)
            widget = (ipywidgets.ToggleButtons if choice else ipywidgets.SelectionSlider)(
                options=[(self.words.text(name, v), v) for v in values],
                value=self.start[name],
                description=self.words.label(name),
                style={"description_width": "initial"}
                | ({"button_width": "initial"} if choice else {}),
                layout={"width": "100%", "max_width": VIEW_WIDTH},
            )
            widget.add_class("explorer-control")
            return widget

        sliders = {name: control(name, values) for name, values in self.sliders.items()}
        controls = dict(sliders)
        if self.plays:
            slider = sliders[self.plays]
            player = ipywidgets.Play(
                value=slider.index, max=len(self.sliders[self.plays]) - 1, interval=STEP
            )
            ipywidgets.link((player, "value"), (slider, "index"))
            controls[self.plays] = ipywidgets.HBox([slider, player], layout=slider.layout)
        view = ipywidgets.HTML()

        def update() -> None:
            try:
                view.value = self._still(
                    self.frame(**{name: s.value for name, s in sliders.items()})
                )
            except Exception:
                # A notebook hides what a callback raises in a log: show it where the picture would
                # be.
                view.value = f"<pre>{html.escape(traceback.format_exc())}</pre>"
                raise

        view.value = self._still(first or self.frame(**self.start))
        redraw = _Redraw(update)
        for slider in sliders.values():
            slider.observe(redraw.moved, "value")
        return ipywidgets.VBox([*controls.values(), view])

    def _still(self, frame: Frame, *, saved: bool = False) -> str:
        """Return what stands below live sliders, or is shown by a ``saved`` notebook alone."""
        if saved:
            sources = [f"webp;base64,{encode(panel.picture, 80)}" for panel in frame.panels]
            note = (
                f'<p class="explorer-note">{ASLEEP} Shown here: '
                f"{html.escape(self.words.place(self.start))}.</p>"
            )
        else:  # no network is between a kernel and its page, so the pictures need no effort
            sources = [
                f"png;base64,{png(panel.picture, compress_level=1)}" for panel in frame.panels
            ]
            # ipywidgets marks what has lost its kernel, and the style shows the note there.
            note = f'<p class="explorer-note explorer-asleep">{ASLEEP}</p>'
        alts = [html.escape(frame.alt), *[""] * len(sources[1:])]  # the first speaks for all
        pictures = [
            f'<img alt="{alt}"{panel.look} src="data:image/{source}">'
            for alt, panel, source in zip(alts, frame.panels, sources, strict=True)
        ]
        return (
            f'{style(STYLES)}<figure class="explorer" '
            f'style="max-width:{VIEW_WIDTH};margin:0;padding:0;border:0;line-height:1.5">'
            f"{panels_html(frame, pictures)}<dl>{self.words.numbers_html(frame.numbers)}</dl>{note}"
            f"{caption_html(self.caption)}</figure>"
        )

    def _repr_mimebundle_(self, **_kwargs: object) -> dict[str, Any]:
        """Return what each reader can use: sliders, or else a page, a picture, a sentence.

        Sliders are shown where somebody may move them.
        """
        if not somebody_is_there():
            frames = self.frames()
            first = frames[self.first]
            read = self.words.place({**self.start, **first.numbers})
            return {
                "text/plain": f"{first.alt} ({read})",
                "text/html": page_block(self, frames).to_html(),
                "image/png": png(_side_by_side(self.frame(**self.start))),
            }
        first = self.frame(**self.start)
        view = {"version_major": 2, "version_minor": 0, "model_id": self.to_widget(first).model_id}
        return {
            "text/plain": repr(self),
            "text/html": self._still(first, saved=True),
            "image/png": png(_side_by_side(first), scale=0.5),
            "application/vnd.jupyter.widget-view+json": view,
        }

    def _mime_(self) -> tuple[str, str]:
        """Return what marimo shows.

        A page of its own, because marimo runs no script that comes with an output.
        """
        frames = self.frames()
        tallest = max(panel.inches[1] for panel in frames[0].panels)
        height = round(200 + 90 * len(self.sliders) + LINE_ART_PIXELS * tallest)
        block = html.escape(page_block(self, frames).to_html(linked=False))
        return (
            "text/html",
            f'<iframe srcdoc="{block}" width="100%" height="{height}" style="border:0"></iframe>',
        )


class _Redraw:
    """Redraws when a slider moves, and skips positions that were passed during a drawing.

    A move is drawn at once, while its message is handled: Colab may not show what is sent later
    (googlecolab/colabtools#3373). A move that comes within REDRAW_DELAY of the last picture has
    been waiting for it, perhaps with others behind it: then the event loop takes those first, and
    draws once after them.
    """

    def __init__(self, draw: Callable[[], None]) -> None:
        self.draw = draw
        self.drawn = -math.inf  # when the last picture was ready
        self.ahead = False  # whether the event loop will draw

    def moved(self, _change: object) -> None:
        """Draw, now or soon."""
        if self.ahead:
            return
        if time.monotonic() - self.drawn <= REDRAW_DELAY:
            with contextlib.suppress(RuntimeError):  # no kernel, so that nothing can be waiting
                asyncio.get_running_loop().call_later(REDRAW_DELAY, self.now)
                self.ahead = True
                return
        self.now()

    def now(self) -> None:
        """Draw where the sliders stand."""
        self.ahead = False
        try:
            self.draw()
        finally:
            self.drawn = time.monotonic()


def _readable(name: str, value: Any, values: Mapping[str, Value]) -> Value:
    """Return a finite number or words, unpacked from NumPy or PyTorch."""
    plain = (
        value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
    )
    if isinstance(plain, str) and plain.strip():
        return plain
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        raise ValueError(
            f"readout {name!r} must be a finite number or words, got {value!r} at {values}"
        )
    return plain


def _panels(drawn: Figure | Sequence[Figure], salt: str | None) -> tuple[Panel, ...]:
    """Turn what was drawn into pixels, or with ``salt`` into SVG."""
    figures = tuple(drawn) if isinstance(drawn, list | tuple) else (drawn,)
    if not figures or not all(isinstance(figure, Figure) for figure in figures):
        raise TypeError(f"draw must return a matplotlib figure or a list of them, got {drawn!r}")
    return tuple(_panel(figure, salt and f"{salt}-{i}") for i, figure in enumerate(figures))


def _panel(figure: Figure, salt: str | None) -> Panel:
    is_photograph = figure.get_gid() == PHOTOGRAPH
    width, height = map(float, figure.get_size_inches())
    dpi = PHOTOGRAPH_PIXELS if is_photograph else LINE_ART_PIXELS
    lines = vector(figure, dpi, salt) if salt and not is_photograph else None
    return Panel(lines or pixels(figure, dpi), (width, height), is_photograph)


def _side_by_side(frame: Frame) -> np.ndarray:
    """Join a frame's panels into one image, for formats that show only one."""
    pictures = [panel.picture for panel in frame.panels]
    tallest = max(picture.shape[0] for picture in pictures)
    images = [
        Image.fromarray(p).resize((round(p.shape[1] * tallest / p.shape[0]), tallest))
        for p in pictures
    ]
    return np.concatenate([np.asarray(image) for image in images], axis=1)
