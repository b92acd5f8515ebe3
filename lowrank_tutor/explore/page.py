"""What does an explorer look like on a page? Its self-contained HTML block, and the words both of its faces share."""

from __future__ import annotations

import base64
import html
import io
import itertools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from PIL import Image

MAX_BYTES = 800_000  # one explorer on a page, pictures and all

# Tried in this order until the explorer fits MAX_BYTES: (scale of the picture, WebP quality). The first is lossless
# after a reduction to COLORS colors: that keeps line art sharp at half the size, and would spoil a photograph.
ENCODINGS = ((1.0, None), (1.0, 75), (1.0, 60), (0.8, 60), (2 / 3, 60), (2 / 3, 45), (2 / 3, 30))
COLORS = 64
FAITHFUL = 2.0  # root mean square, of 255, that the reduction may change


class Words(NamedTuple):
    """What sliders and readouts are called, and how their values are written."""

    labels: Mapping[str, str]
    formats: Mapping[str, str]

    def label(self, name: str) -> str:
        """Name a slider or a readout."""
        return self.labels.get(name, name.replace("_", " "))

    def text(self, name: str, value: float) -> str:
        """Write a slider's or a readout's value."""
        return format(value, self.formats.get(name, "," if isinstance(value, int) else ".4g"))


class Frame(NamedTuple):
    """One position of the sliders: its picture (height, width, 3), its words and its numbers."""

    picture: np.ndarray
    alt: str
    numbers: dict[str, float]


class Film(NamedTuple):
    """All that a page shows: the sliders, where they stand at first, and a frame for each position of them."""

    name: str
    caption: str
    words: Words
    sliders: dict[str, tuple[float, ...]]
    start: dict[str, float]
    frames: list[Frame]  # the last slider moves fastest


def asset(kind: str) -> str:
    """Read the style (``css``) or the script (``js``) of an explorer."""
    return files("lowrank_tutor.explore").joinpath(f"explore.{kind}").read_text("utf-8")


def encode(picture: np.ndarray, scale: float, quality: int | None) -> str:
    """Encode one picture as WebP, in base64."""
    image = Image.fromarray(picture)
    if scale != 1:
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    if quality is None:
        reduce_colors(image).save(buffer, "webp", lossless=True, quality=40, method=3)
    else:
        image.save(buffer, "webp", quality=quality, method=4)
    return base64.b64encode(buffer.getvalue()).decode()


def reduce_colors(image: Image.Image) -> Image.Image:
    """Keep the COLORS colors that serve the picture best."""
    return image.quantize(COLORS).convert("RGB")


def is_line_art(picture: np.ndarray) -> bool:
    """Whether a few colors say it all."""
    change = np.asarray(reduce_colors(Image.fromarray(picture)), dtype=float) - picture
    return bool(np.sqrt(np.mean(change**2)) <= FAITHFUL)


def encode_all(pictures: list[np.ndarray], limit: float) -> list[str] | None:
    """Encode with the best quality whose total fits ``limit`` bytes, judged by a sample first."""
    sample = pictures[:: max(1, len(pictures) // 6)]
    line_art = all(map(is_line_art, sample))
    for scale, quality in ENCODINGS if line_art else ENCODINGS[1:]:
        mean = sum(len(encode(p, scale, quality)) for p in sample) / len(sample)
        if mean * len(pictures) <= limit:
            encoded = [encode(p, scale, quality) for p in pictures]
            if sum(map(len, encoded)) <= limit:
                return encoded
    return None


def numbers_html(words: Words, numbers: dict[str, float]) -> str:
    """Write the readouts: words for people, full precision for machines."""
    return "".join(
        f'<div><dt>{html.escape(words.label(n))}</dt><dd><data data-name="{html.escape(n)}" value="{v!r}">'
        f"{html.escape(words.text(n, v))}</data></dd></div>"
        for n, v in numbers.items()
    )


def slider_html(words: Words, name: str, values: tuple[float, ...], value: float) -> str:
    """Write one slider, its label and the value it stands at."""
    text = html.escape(words.text(name, value))
    steps = {b - a for a, b in itertools.pairwise(values)}
    if len(steps) == 1 and all(isinstance(v, int) for v in values):  # the range carries the value itself
        numbers = f'min="{values[0]}" max="{values[-1]}" step="{steps.pop()}" value="{value}"'
    else:  # it carries the position, and says the value in words
        numbers = f'min="0" max="{len(values) - 1}" step="1" value="{values.index(value)}" aria-valuetext="{text}"'
    widest = max(len(words.text(name, v)) for v in values)  # or the slider would move as its value grows
    return (
        f"<label>{html.escape(words.label(name))} "
        f'<input type="range" name="{html.escape(name)}" {numbers} autocomplete="off"></label> '
        f'<output name="{html.escape(name)}" aria-live="off" style="min-width:{widest}ch">{text}</output>'
    )


def page_block(film: Film) -> str:
    """Return the ``<figure>``: sliders, first picture and numbers in the open, the rest for the script."""
    without = fill_block(film, [""] * len(film.frames))
    pictures = encode_all([f.picture for f in film.frames], MAX_BYTES - len(without.encode()))
    if pictures is None:
        height, width = film.frames[0].picture.shape[:2]
        raise ValueError(
            f"{film.name!r} must weigh at most {MAX_BYTES:,} bytes, got more with {len(film.frames)} frames of "
            f"{width} x {height} pixels: draw fewer or smaller ones"
        )
    return fill_block(film, pictures)


def fill_block(film: Film, pictures: list[str]) -> str:
    """Put words and encoded pictures together; each picture stands there once."""
    words = film.words
    start = list(itertools.product(*film.sliders.values())).index(tuple(film.start.values()))
    first = film.frames[start]
    height, width = first.picture.shape[:2]
    content = {
        "sliders": [[words.text(n, v) for v in values] for n, values in film.sliders.items()],
        "alts": [f.alt for f in film.frames],
        "numbers": [[[repr(v), words.text(n, v)] for n, v in f.numbers.items()] for f in film.frames],
        # The first picture stands in the <img> alone, where the script finds it.
        "frames": ["" if i == start else picture for i, picture in enumerate(pictures)],
    }
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    at_first = html.escape(", ".join(f"{words.label(n)} = {words.text(n, v)}" for n, v in film.start.items()))
    sliders = "".join(f"<div>{slider_html(words, n, v, film.start[n])}</div>" for n, v in film.sliders.items())
    return f"""<figure class="explorer" data-name="{film.name}" data-frames="{len(film.frames)}">
<style>{asset("css")}</style>
<div class="explorer-sliders">{sliders}</div>
<noscript><p>The sliders need JavaScript. Shown here: {at_first}.</p></noscript>
<img alt="{html.escape(first.alt)}" width="{width}" height="{height}" src="data:image/webp;base64,{pictures[start]}">
<dl>{numbers_html(words, first.numbers)}</dl>
<p role="status" class="explorer-said"></p>
{f"<figcaption>{html.escape(film.caption)}</figcaption>" if film.caption else ""}
<script type="application/json">{data}</script>
<script>{asset("js")}</script>
</figure>"""
