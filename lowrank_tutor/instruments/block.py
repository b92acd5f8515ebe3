"""What does an instrument look like on a page? One self-contained HTML block: style, picture, numbers, script."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from lowrank_tutor.explore.page import Words, encode, has_few_colors, numbers_html

# One scope for all: a later file may use the names of an earlier one, and none is seen outside.
CORE = ("stage", "controls", "values", "instrument")
ALGEBRA = ("linalg", "background")  # for those that compute more than a few sums
DPI = 150  # the picture that stands there without JavaScript

# What every instrument says. Words that only one of them needs come from its own module.
WORDS = {
    "reset": "Start again",
    "copy": "Copy a link to this state",
    "copied": "The link is copied: whoever opens it sees the figure as it stands now.",
    "in_address": "The address of this page now holds the figure as it stands: copy it from there.",
    "bad_address": "The address holds a state that this figure does not understand, so it starts as usual.",
}


def asset(name: str) -> str:
    """Read a file of the instruments, or the one that the exercises lend them."""
    home = "exercises" if name == "numbers.js" else "instruments"
    return files(f"lowrank_tutor.{home}").joinpath(name).read_text("utf-8")


def bare(source: str) -> str:
    """Leave out of a script what only people read: indentation, and comments that have lines of their own."""
    source = re.sub(r"^ */\*\*.*?\*/$", "", source, flags=re.M | re.S)
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def literal(value: object) -> str:
    """Write plain data so that it can stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def script(name: str, parts: tuple[str, ...], config: Mapping[str, Any], algebra: bool = True) -> str:
    """Write the one classic script of a block: the core, the instrument's own files, and the call that mounts it."""
    core = (*ALGEBRA, *CORE) if algebra else CORE
    sources = "\n".join(bare(asset(f"{part}.js")) for part in (*core, *parts))
    build = "".join(word.capitalize() if i else word for i, word in enumerate(name.split("_")))
    return f"(() => {{\n{sources}\nmount({literal(name)}, {build}, {literal(config)});\n}})();"


def encode_figure(figure: Figure) -> tuple[str, int, int]:
    """Encode a figure as WebP in base64, with its width and height in pixels."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    picture = np.asarray(Image.open(buffer).convert("RGB"))
    return encode(picture, 1.0, None if has_few_colors(picture) else 75), picture.shape[1], picture.shape[0]


def page_block(
    name: str,
    source: str,
    picture: tuple[str, int, int],
    alt: str,
    caption: str,
    words: Words,
    numbers: dict[str, float],
) -> str:
    """Return the ``<figure>``: a picture and its numbers in the open, and the script that brings them to life."""
    encoded, width, height = picture
    return f"""<figure class="instrument" data-name="{name}">
<style>{asset("instrument.css")}</style>
<img class="instrument-still photograph" alt="{html.escape(alt)}" width="{width}" height="{height}" \
src="data:image/webp;base64,{encoded}">
<noscript><p>This figure can be taken hold of where JavaScript runs. Shown here: how it starts.</p></noscript>
<div class="instrument-live"></div>
<dl>{numbers_html(words, numbers)}</dl>
<p role="status"></p>
{f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""}
<script>{source}</script>
</figure>"""
