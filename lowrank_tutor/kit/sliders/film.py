"""A film: sliders whose every position is drawn beforehand, as one HTML block for a page."""

import base64
import html
import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lowrank_tutor.kit.block import Block, Script, literal
from lowrank_tutor.kit.images import encode
from lowrank_tutor.kit.words import Format, Value, Words, caption_html, exact

SCRIPT = Script("explorer", ("kit/touch.js", "kit/sliders/explorer.js"))
STYLES = ("kit/sliders/explorer.css",)
MAX_BYTES = 750_000  # one explorer on a page, pictures and all
PIXELS = 112  # the most that an inch of a picture takes on a page

MAX_LABELS = 6  # below a slider
MAX_SEGMENTS = 4  # a slider with no more positions is a row of choices
PHONE, PHONE_LETTER = 328, 7  # pixels of a slider on a screen of 360, and of a digit of its labels


class Panel(NamedTuple):
    """One picture of a frame, its inches, and whether a dark page must leave it as it is.

    It is pixels, (height, width, 3), or what stands in an ``<svg>``.
    """

    picture: Any
    inches: tuple[float, float]
    photograph: bool

    @property
    def look(self) -> str:
        """The attributes that the style needs, and others the size without it."""
        kind = ' class="photograph"' if self.photograph else ""
        width, height = (round(PIXELS * side) for side in self.inches)
        return f'{kind} width="{width}" height="{height}" style="--inches:{self.inches[0]:.4g}"'

    @property
    def svg(self) -> str:
        """Its element on a page."""
        width, height = (f"{72 * side:.6g}" for side in self.inches)
        inside = (
            self.picture
            if isinstance(self.picture, str)
            else '<image width="100%" height="100%" '
            f'href="data:image/webp;base64,{encode(self.picture, 75)}"/>'
        )
        box = f'viewBox="0 0 {width} {height}" stroke-linejoin="round"'
        return f"<svg{self.look} {box}>{inside}</svg>"


class Frame(NamedTuple):
    """One position of the sliders: its pictures, its words and its numbers."""

    panels: tuple[Panel, ...]
    alt: str
    numbers: dict[str, Value]


@dataclass(repr=False, eq=False)
class Film:
    """What a page knows of an explorer: its sliders, where they start, and its words."""

    sliders: Mapping[str, tuple[Value, ...]]
    start: Mapping[str, Value]
    name: str
    caption: str
    labels: Mapping[str, str]
    formats: Mapping[str, Format]
    plays: str | None  # the slider that a button moves by itself
    limit: int

    @property
    def words(self) -> Words:
        """What sliders and readouts are called, and how their values are written."""
        return Words(self.labels, self.formats)

    def positions(self) -> list[dict[str, Value]]:
        """Every combination of slider values, the last slider moving fastest."""
        return [
            dict(zip(self.sliders, values, strict=True))
            for values in itertools.product(*self.sliders.values())
        ]

    @property
    def first(self) -> int:
        """The number of the position that stands there at first."""
        return self.positions().index(dict(self.start))

    def is_choice(self, name: str) -> bool:
        """Whether a slider is a row of choices.

        Its positions are words, or so few that buttons are easier to hit.
        """
        values = self.sliders[name]
        return name != self.plays and (isinstance(values[0], str) or len(values) <= MAX_SEGMENTS)


def panels_html(frame: Frame, pictures: Iterable[str], attributes: str = "") -> str:
    """Write the pictures of a frame side by side."""
    widest = max(panel.inches[0] for panel in frame.panels)
    return (
        f'<div class="explorer-panels"{attributes} style="--widest:{widest:.4g}">'
        f"{''.join(pictures)}</div>"
    )


def control_html(film: Film, name: str) -> str:
    """Write one slider with its name, value and scale, or one row of choices."""
    words, values, value = film.words, film.sliders[name], film.start[name]
    label, quoted = html.escape(words.label(name)), html.escape(name)
    texts = [html.escape(words.text(name, v)) for v in values]
    text = texts[values.index(value)]
    if film.is_choice(name):
        choices = "".join(
            f'<label><input type="radio" name="{film.name}-{quoted}" '
            f'value="{html.escape(str(v))}"{" checked" if v == value else ""} autocomplete="off"> '
            f"{t}</label> "
            for v, t in zip(values, texts, strict=True)
        )
        return f'<fieldset data-slider="{quoted}"><legend>{label}</legend> {choices}</fieldset>'
    steps = {float(b) - float(a) for a, b in itertools.pairwise(values)}
    if len(steps) == 1 and all(
        isinstance(v, int) for v in values
    ):  # the range carries the value itself
        numbers = f'min="{values[0]}" max="{values[-1]}" step="{int(steps.pop())}" value="{value}"'
        shown = [0, len(values) - 1]
    else:  # it carries the position, and says the value in words
        numbers = (
            f'min="0" max="{len(values) - 1}" step="1" value="{values.index(value)}" '
            f'aria-valuetext="{text}"'
        )
        shown = labeled(texts, values)
    scale = "".join(
        f'<span style="--at:{i / (len(values) - 1):.4g}">{texts[i]}</span>' for i in shown
    )
    # Without a script it could do nothing: the script shows it.
    play = (
        '<button type="button" class="explorer-play" hidden>Play</button>'
        if name == film.plays
        else ""
    )
    return (
        f'<div><label>{label} <input type="range" name="{quoted}" data-slider="{quoted}" {numbers} '
        f'autocomplete="off"></label> <output name="{quoted}" '
        f'aria-live="off">{text}</output>{play}<div class="explorer-scale" '
        f'aria-hidden="true">{scale}</div></div>'
    )


def labeled(texts: Sequence[str], values: Sequence[Value]) -> list[int]:
    """Choose the positions to write below a slider of uneven steps.

    They are both ends, and what fits evenly between. Powers of two are preferred to other
    positions, because they make an even scale of their own.
    """
    last = len(texts) - 1
    powers = [i for i, v in enumerate(values) if isinstance(v, int) and v > 0 and v & (v - 1) == 0]
    for marks in (powers, range(last + 1)):
        if len(marks) < 3 or (marks[0], marks[-1]) != (0, last):
            continue
        for stride in (n for n in range(1, len(marks) // 2 + 1) if (len(marks) - 1) % n == 0):
            shown = list(marks[::stride])
            if len(shown) <= MAX_LABELS and _stand_apart(
                [texts[i] for i in shown], [i / last for i in shown]
            ):
                return shown
    return [0, last]


def _stand_apart(texts: Sequence[str], at: Sequence[float]) -> bool:
    """Whether labels leave gaps on a phone.

    Each is centered below its position, and the outer two stay within the ends.
    """
    half = [PHONE_LETTER * len(text) / 2 for text in texts]
    middles = [half[0], *(place * PHONE for place in at[1:-1]), PHONE - half[-1]]
    ends = itertools.pairwise(zip(middles, half, strict=True))
    return all(right - left >= a + b + PHONE_LETTER for (left, a), (right, b) in ends)


def page_block(film: Film, frames: Sequence[Frame]) -> Block:
    """Return the block: sliders, first pictures and numbers, the rest for the script."""
    words, first = film.words, frames[film.first]
    drawn = [[panel.svg for panel in frame.panels] for frame in frames]
    strips = [list(dict.fromkeys(strip)) for strip in zip(*drawn, strict=True)]
    content = {
        "sliders": [[words.text(n, v) for v in values] for n, values in film.sliders.items()],
        "alts": [f.alt for f in frames],
        "numbers": [[[exact(v), words.text(n, v)] for n, v in f.numbers.items()] for f in frames],
        "pictures": base64.b64encode(zlib.compress(literal(strips).encode(), 9)).decode(),
        "frames": [list(map(list.index, strips, pictures)) for pictures in drawn],
    }
    label = f' role="img" aria-label="{html.escape(first.alt)}"'
    controls = "".join(control_html(film, name) for name in film.sliders)
    standing = f"""<div class="explorer-sliders">{controls}</div>
<noscript><p>The sliders need JavaScript. Shown here: \
{html.escape(words.place(film.start))}.</p></noscript>
{panels_html(first, drawn[film.first], label)}
<dl>{words.numbers_html(first.numbers)}</dl>
<p role="status" class="explorer-said"></p>
{caption_html(film.caption)}"""
    attributes = {
        "data-frames": str(len(frames)),
        # JupyterLab would take arrow keys to move to another cell.
        "data-lm-suppress-shortcuts": "true",
    }
    if film.plays:
        attributes["data-plays"] = film.plays
    block = Block(
        kind="explorer",
        name=film.name,
        first=standing,
        data=content,
        script=SCRIPT,
        styles=STYLES,
        attributes=attributes,
    )
    weight = len(block.to_html(linked=False).encode())
    if weight > film.limit:
        raise ValueError(
            f"{film.name!r} must weigh at most {film.limit:,} bytes, got {weight:,} with "
            f"{len(frames)} frames: draw fewer or simpler ones, or raise limit"
        )
    return block
