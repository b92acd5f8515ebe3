"""Name the files of a figure, and check what several figures ask for."""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import finite

STYLES = ("figures/figures.css",)
Choice = TypeVar("Choice")


def figure(
    name: str, *, parts: tuple[str, ...] = (), styles: tuple[str, ...] = STYLES, **fields: Any
) -> Instrument:
    """Make an instrument with the script ``figures/<name>.js``.

    Scripts of ``figures/parts`` that it needs come first.
    """
    own = f"figures/{name.replace('-', '_')}.js"
    scripts = (*(f"figures/parts/{part}.js" for part in parts), own)
    return Instrument(name=name, scripts=scripts, styles=styles, **fields)


def one_of(name: str, value: Choice, choices: Iterable[Choice]) -> Choice:
    """Return one of the choices, or refuse it in the words of ``check.one`` in ``values.js``."""
    if value not in (allowed := list(choices)):
        written = ", ".join(
            f"{choice:g}" if isinstance(choice, float) else str(choice) for choice in allowed
        )
        raise ValueError(f"{name} must be one of {written}, got {value!r}")
    return value


def direction(name: str, value: Any) -> Floats:
    """Return two finite numbers that are not both zero."""
    row = finite(name, value, 2)
    if not row.any():
        raise ValueError(f"{name} must be two numbers, not both zero, got {row.tolist()}")
    return row


def two_digits(rows: Floats, scale: int) -> tuple[list[str], Floats]:
    """Write each row as one text, two digits a number: steps of 1 / scale about 50.

    The texts and the rounded rows are returned.
    """
    codes = np.clip(np.rint(scale * rows) + 50, 0, 99)
    return ["".join(f"{int(code):02}" for code in row) for row in codes], (codes - 50) / scale
