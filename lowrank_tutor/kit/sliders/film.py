"""A film: sliders whose every position is drawn beforehand, as one HTML block for a page."""

import html
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lowrank_tutor.kit.block import Block, Script
from lowrank_tutor.kit.images import encode, has_few_colors
from lowrank_tutor.kit.words import Format, Value, Words, caption_html, exact

SCRIPT = Script("explorer", ("kit/touch.js", "kit/sliders/explorer.js"))
STYLES = ("kit/sliders/explorer.css",)
MAX_BYTES = 750_000  # one explorer on a page, pictures and all

# Tried in this order until the explorer fits: (scale, WebP quality) of line art and of all else. No
# quality means lossless in few colors: that keeps line art sharp at half the size, and would spoil
# a photograph.
ENCODINGS = (
    ((1, None), (1, 80)),
    ((0.75, None), (0.8, 60)),
    ((0.6, 60), (0.6, 50)),
    ((0.5, 45), (0.5, 35)),
)
MAX_LABELS = 6  # below a slider
MAX_SEGMENTS = 4  # a slider with no more positions is a row of choices
PHONE, PHONE_LETTER = 328, 7  # pixels of a slider on a screen of 360, and of a digit of its labels


class Panel(NamedTuple):
    """One picture of a frame, (height, width, 3), and its width.

    It also says whether a dark page must leave it as it is.
    """

    picture: np.ndarray
    inches: float
    photograph: bool


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


def encode_all(strips: Sequence[Sequence[np.ndarray]], limit: float) -> list[list[str]] | None:
    """Encode strips of pictures with the best quality whose total fits ``limit`` bytes."""
    few_colors = [all(map(has_few_colors, strip[:: max(1, len(strip) // 6)])) for strip in strips]
    for line_art, other in ENCODINGS:
        settings = [line_art if few else other for few in few_colors]
        encoded = [
            [encode(picture, *setting) for picture in strip]
            for strip, setting in zip(strips, settings, strict=True)
        ]
        if sum(len(one) for strip in encoded for one in strip) <= limit:
            return encoded
    return None


def panels_html(frame: Frame, sources: Sequence[str]) -> str:
    """Write the pictures of a frame; the first says what all of them show."""
    images = []
    for i, (panel, source) in enumerate(zip(frame.panels, sources, strict=True)):
        height, width = panel.picture.shape[:2]
        kind = ' class="photograph"' if panel.photograph else ""
        alt = html.escape(frame.alt) if i == 0 else ""
        size = f'width="{width}" height="{height}" style="--inches:{panel.inches:.4g}"'
        images.append(f'<img alt="{alt}"{kind} {size} src="{source}">')
    widest = max(panel.inches for panel in frame.panels)
    return f'<div class="explorer-panels" style="--widest:{widest:.4g}">{"".join(images)}</div>'


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
    strips, shown = without_repetition(frames)
    without = fill_block(film, frames, [[""] * len(strip) for strip in strips], shown)
    encoded = encode_all(strips, film.limit - len(without.to_html(linked=False).encode()))
    if encoded is None:
        sizes = " and ".join(
            f"{p.picture.shape[1]} x {p.picture.shape[0]}" for p in frames[0].panels
        )
        raise ValueError(
            f"{film.name!r} must weigh at most {film.limit:,} bytes, got more with "
            f"{len(frames)} frames of {sizes} pixels: draw fewer or smaller ones, or raise limit"
        )
    return fill_block(film, frames, encoded, shown)


def without_repetition(frames: Sequence[Frame]) -> tuple[list[list[np.ndarray]], list[list[int]]]:
    """Return for each panel its different pictures, and for each frame which of them it shows."""
    strips, shown = [], []
    for panel in range(len(frames[0].panels)):
        pictures = [frame.panels[panel].picture for frame in frames]
        keys = [picture.tobytes() for picture in pictures]
        different = dict(zip(keys, pictures, strict=True))
        places = {key: i for i, key in enumerate(different)}
        strips.append(list(different.values()))
        shown.append([places[key] for key in keys])
    return strips, [list(row) for row in zip(*shown, strict=True)]


def fill_block(
    film: Film, frames: Sequence[Frame], strips: list[list[str]], shown: list[list[int]]
) -> Block:
    """Put words and encoded pictures together; each picture stands there once."""
    words, first, there = film.words, frames[film.first], shown[film.first]
    urls = [f"data:image/webp;base64,{strip[i]}" for strip, i in zip(strips, there, strict=True)]
    content = {
        "sliders": [[words.text(n, v) for v in values] for n, values in film.sliders.items()],
        "alts": [f.alt for f in frames],
        "numbers": [[[exact(v), words.text(n, v)] for n, v in f.numbers.items()] for f in frames],
        # The first pictures stand in the <img>s alone, where the script finds them.
        "pictures": [
            ["" if i == at else text for i, text in enumerate(strip)]
            for strip, at in zip(strips, there, strict=True)
        ],
        "frames": shown,
    }
    controls = "".join(control_html(film, name) for name in film.sliders)
    standing = f"""<div class="explorer-sliders">{controls}</div>
<noscript><p>The sliders need JavaScript. Shown here: \
{html.escape(words.place(film.start))}.</p></noscript>
{panels_html(first, urls)}
<dl>{words.numbers_html(first.numbers)}</dl>
<p role="status" class="explorer-said"></p>
{caption_html(film.caption)}"""
    attributes = {"data-frames": str(len(frames))} | (
        {"data-plays": film.plays} if film.plays else {}
    )
    attributes["data-lm-suppress-shortcuts"] = (
        "true"  # JupyterLab would take arrow keys to move to another cell
    )
    return Block(
        kind="explorer",
        name=film.name,
        first=standing,
        data=content,
        script=SCRIPT,
        styles=STYLES,
        attributes=attributes,
    )
