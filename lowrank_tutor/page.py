"""What goes onto a page: styles and scripts, data inside HTML, pictures as addresses, and the words of numbers.

A block (``explore``, ``instruments``, ``exercises``) works from its own HTML alone, in a notebook as on a page. Styles
and scripts that several blocks share carry ``data-once``: where a page has equal ones, ``sphinxext`` keeps the first.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowrank_tutor import palette

if TYPE_CHECKING:
    import PIL.Image

BLOCKS = ":is(.explorer, .instrument, .check)"
COLORS = 64  # of a picture that is kept without loss
FAITHFUL = 2.0  # root mean square, of 255, that the reduction to COLORS may change

Value = float | str  # a position of a slider, or a readout: a number, or words
Format = str | Callable[[Any], str]


# Styles and scripts


def asset(path: str) -> str:
    """Read a text file of the package, such as ``explore/explore.css``."""
    return files("lowrank_tutor").joinpath(path).read_text("utf-8")


def literal(value: object) -> str:
    """Write plain data as JSON that can stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _once(tag: str, text: str) -> str:
    return f'<{tag} data-once="{_key(text)}">{text}</{tag}>\n'


def style(path: str) -> str:
    """Return the style elements of a block: the colors that all share, and a sheet of its own."""
    shared, own = (re.sub(r"(?s)/\*.*?\*/\n?|(?m:^ +)", "", sheet) for sheet in (asset("page.css"), asset(path)))
    return _once("style", palette.css(BLOCKS) + shared) + _once("style", own)


def script(paths: Sequence[str], result: str, names: str = "", given: str = "") -> tuple[str, str]:
    """Join script files into an element that runs once a page, and say where its result is found.

    Each file of ``paths`` sees what those before it declare, and nothing outside sees any of it. ``result`` is a
    JavaScript expression of their names. The function around them has the parameter ``names``, which gets the value of
    the expression ``given``. Returned are the ``<script>`` element and the expression for its result. The key in it is
    made of the text, so that outputs of different versions can share a notebook.
    """
    code = re.sub(r"(?m)^ *(//.*\n|/\*\*.*\*/\n)?", "", "".join(map(asset, paths)))  # no indents, no lines of comments
    source = f"({names}) => {{\n{code}return {result};\n}}"
    place = f'lowrankTutor["{_key(source)}"]'
    return _once("script", f"window.lowrankTutor ??= {{}};\n{place} ??= ({source})({given});"), place


# Pictures


def _image(picture: np.ndarray, scale: float = 1) -> PIL.Image.Image:
    from PIL import Image  # who only checks answers needs no Pillow

    image = Image.fromarray(picture)
    size = round(image.width * scale), round(image.height * scale)
    return image if scale == 1 else image.resize(size, Image.Resampling.LANCZOS)


def _few_colors(image: PIL.Image.Image) -> PIL.Image.Image:
    return image.quantize(COLORS).convert("RGB")


def _saved(image: PIL.Image.Image, kind: str, **settings: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return base64.b64encode(buffer.getvalue()).decode()


def png(picture: np.ndarray, *, scale: float = 1, **settings: Any) -> str:
    """Encode a picture as PNG, in base64."""
    return _saved(_image(picture, scale), "png", **settings)


def encode(picture: np.ndarray, scale: float, quality: int | None) -> str:
    """Encode a picture as WebP, in base64: without a quality it keeps its best COLORS colors, and those exactly."""
    image = _image(picture, scale)
    if quality is None:
        return _saved(_few_colors(image), "webp", lossless=True, quality=40, method=3)
    return _saved(image, "webp", quality=quality, method=4)


def has_few_colors(picture: np.ndarray) -> bool:
    """Whether a few colors are enough, as they are for line art."""
    change = np.asarray(_few_colors(_image(picture)), dtype=float) - picture
    return bool(np.sqrt(np.mean(change**2)) <= FAITHFUL)


# Words and numbers


class Words(NamedTuple):
    """What sliders and readouts are called, and how their values are written."""

    labels: Mapping[str, str]
    formats: Mapping[str, Format]

    def label(self, name: str) -> str:
        """Name a slider or a readout."""
        return self.labels.get(name, name.replace("_", " "))

    def text(self, name: str, value: Value) -> str:
        """Write a slider's or a readout's value."""
        usual = "" if isinstance(value, str) else "," if isinstance(value, int) else ".4g"
        how = self.formats.get(name, usual)
        if callable(how):
            return str(how(value))
        return how.format(value) if "{" in how else format(value, how)

    def place(self, values: Mapping[str, Value]) -> str:
        """List several values with their names."""
        return ", ".join(f"{self.label(n)} = {self.text(n, v)}" for n, v in values.items())

    def sentence(self, template: str, values: Mapping[str, Value]) -> str:
        """Fill a template: a name without a format of its own is written as it stands on the page."""
        return template.format_map({name: _Written(self, name, value) for name, value in values.items()})

    def numbers_html(self, numbers: Mapping[str, Value]) -> str:
        """Write readouts: words for people, full precision for machines."""
        return "".join(
            f"<div><dt>{html.escape(self.label(n))}</dt>"
            f'<dd><data data-name="{html.escape(n)}" value="{html.escape(exact(v))}">'
            f"{html.escape(self.text(n, v))}</data></dd></div>"
            for n, v in numbers.items()
        )


def exact(value: Value) -> str:
    """Write a value for machines, numbers in full precision."""
    return value if isinstance(value, str) else repr(value)


def caption_html(words: str) -> str:
    """Write the caption of a figure, if it has one."""
    return f"<figcaption>{html.escape(words)}</figcaption>" if words else ""


class _Written:
    """A value inside a template: without a format of its own it is written in the words of the page."""

    def __init__(self, words: Words, name: str, value: Value) -> None:
        self.words, self.name, self.value = words, name, value

    def __format__(self, how: str) -> str:
        return format(self.value, how) if how else self.words.text(self.name, self.value)

    def __repr__(self) -> str:
        return repr(self.value)
