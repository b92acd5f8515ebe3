"""What sliders and numbers are called, and how their values are written, for people and for machines."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Value = float | str  # a position of a slider, or a readout: a number, or words
Format = str | Callable[[Any], str]


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
