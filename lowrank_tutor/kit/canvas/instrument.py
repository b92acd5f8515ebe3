"""A figure that computes in the reader's browser; Python chooses its data and its words."""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lowrank_tutor.kit.block import Block, Script
from lowrank_tutor.kit.images import encode, has_few_colors, pixels
from lowrank_tutor.kit.words import Words, caption_html, minus

Floats = NDArray[np.float64]

# What every instrument draws with, and what it may call.
ENGINE = Script(
    "kit",
    (
        "kit/element.js",
        "kit/touch.js",
        *(f"kit/canvas/{name}.js" for name in ("stage", "controls", "values", "instrument")),
    ),
)
STYLES = ("kit/canvas/instrument.css",)
DPI = 120  # of the still picture, which only paper and pages without scripts show

# What every instrument says. Words that only one of them needs come from its own module.
WORDS = {
    "reset": "Start again",
    "copy": "Copy a link to this state",
    "copied": "The link is copied: whoever opens it sees the figure as it stands now.",
    "in_address": "The address of this page now holds the figure as it stands: copy it from there.",
    "bad_address": "The address holds a state that this figure does not understand, "
    "so it starts as usual.",
}


@dataclass(kw_only=True, repr=False, eq=False)
class Instrument:
    """A figure to take hold of, made by the functions of this package.

    It shows itself as the last line of a cell.
    """

    name: str
    scripts: tuple[
        str, ...
    ]  # files of the package; the last declares the function that draws, the name in camel case
    styles: tuple[str, ...] = ()  # further style sheets
    engine: Script = (
        ENGINE  # or one with ENGINE as its own: what several figures share, which a page loads once
    )
    state: Mapping[
        str, Any
    ]  # at first: words, numbers, switches, lists of numbers, or rows of numbers
    numbers: Mapping[
        str, float
    ]  # what NumPy computes for that state, by the names that the browser uses
    say: str  # the sentence for any state, with fields such as {k} or {relative_error:.1%}
    picture: Callable[[], Figure] | None = (
        None  # draws that state, for print and where no script runs; else a sentence
    )
    values: Mapping[str, Any] = field(
        default_factory=dict
    )  # further fields of the sentence, for the start
    remarks: Mapping[str, str] = field(
        default_factory=dict
    )  # sentences that may follow, by the script's names
    data: Mapping[str, Any] = field(default_factory=dict)  # what else the script needs
    readouts: Mapping[str, tuple[str, str]] = field(
        default_factory=dict
    )  # what each number is called, and its format
    caption: str = ""

    @property
    def words(self) -> Words:
        """What the numbers are called, and how they are written."""
        return Words(*({name: both[i] for name, both in self.readouts.items()} for i in (0, 1)))

    @property
    def alt(self) -> str:
        """Describe the start in a sentence."""
        return minus(self.say.format(**{**self.state, **self.numbers, **self.values}))

    def __repr__(self) -> str:
        return f"<Instrument {self.name}: {self.alt}>"

    @property
    def block(self) -> Block:
        """The figure as HTML, data, scripts, and styles."""
        first, *others = self.name.replace("-", "_").split("_")  # the function in camel case
        data = {
            "state": self.state,
            "data": self.data,
            "formats": self.words.formats,
            "say": self.say,
            "remarks": self.remarks,
            "words": WORDS,
        }
        if self.picture:
            still = _image(self.picture(), self.alt)
            offer = "You can drag this figure if JavaScript is on. Here you see how it starts."
        else:
            still = f'<p class="instrument-still">{html.escape(self.alt)}</p>'
            offer = "You can try it yourself if JavaScript is on."
        standing = f"""{still}
<noscript><p>{offer}</p></noscript>
<div class="instrument-live"></div>
<dl>{self.words.numbers_html(self.numbers)}</dl>
<p role="status"></p>
{caption_html(self.caption)}"""
        return Block(
            kind="instrument",
            name=self.name,
            first=standing,
            data=data,
            script=Script(first + "".join(map(str.capitalize, others)), self.scripts, self.engine),
            styles=STYLES + self.styles,
        )

    def to_html(self) -> str:
        """Return a ``<figure class="instrument">`` that needs no kernel, library or network."""
        return self.block.to_html(linked=False)

    def _repr_html_(self) -> str:
        return self.block.to_html()


def _image(figure: Figure, alt: str) -> str:
    picture = pixels(figure, DPI)
    ways = [75, None] if has_few_colors(picture) else [75]
    encoded, (height, width) = (
        min((encode(picture, way) for way in ways), key=len),
        picture.shape[:2],
    )
    return (
        f'<img class="instrument-still photograph" alt="{html.escape(alt)}" width="{width}" '
        f'height="{height}" src="data:image/webp;base64,{encoded}">'
    )
