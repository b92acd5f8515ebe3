"""The names of sliders and numbers, and how values are written, for people and machines."""

import html
import re
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
        return self.labels.get(name) or name.replace("_", " ")

    def text(self, name: str, value: Value) -> str:
        """Write a slider's or a readout's value."""
        usual = "" if isinstance(value, str) else "," if isinstance(value, int) else ".4g"
        how = self.formats.get(name, usual)
        if callable(how):
            return str(how(value))
        return minus(how.format(value) if "{" in how else format(value, how))

    def place(self, values: Mapping[str, Value]) -> str:
        """List several values with their names."""
        return ", ".join(f"{self.label(n)} = {self.text(n, v)}" for n, v in values.items())

    def sentence(self, template: str, values: Mapping[str, Value]) -> str:
        """Fill a template: ``{k}`` is written as on the page, ``{k:.1%}`` in its own format."""

        def written(field: re.Match[str]) -> str:
            name, how = field.groups()
            if name not in values:
                raise ValueError(f"alt must use only {sorted(values)}, got {template!r}")
            return minus(format(values[name], how)) if how else self.text(name, values[name])

        return re.sub(r"\{([^{}:]*):?([^{}]*)\}", written, template)

    def numbers_html(self, numbers: Mapping[str, Value]) -> str:
        """Write readouts: words for people, full precision for machines.

        People do not see a number whose label is empty.
        """
        return "".join(
            f"<div{' hidden' * (self.labels.get(n) == '')}><dt>{html.escape(self.label(n))}</dt>"
            f'<dd><data data-name="{html.escape(n)}" value="{html.escape(exact(v))}">'
            f"{html.escape(self.text(n, v))}</data></dd></div>"
            for n, v in numbers.items()
        )


def minus(text: str) -> str:
    """Write the signs of negative numbers as minus signs.

    >>> minus("-3.00, low-rank")
    '\u22123.00, low-rank'
    """
    return re.sub(r"(?<!\w)-(?=[\d.])", "\N{MINUS SIGN}", text)


def exact(value: Value) -> str:
    """Write a value for machines, numbers in full precision."""
    return value if isinstance(value, str) else repr(value)


def caption_html(words: str) -> str:
    """Write the caption of a figure, if it has one."""
    return f"<figcaption>{html.escape(words)}</figcaption>" if words else ""
