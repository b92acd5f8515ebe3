"""Name the files of a figure, and check what several figures ask for."""

from collections.abc import Iterable
from typing import Any, TypeVar

from lowrank_tutor.kit.canvas.instrument import Floats, Instrument

STYLES = ("figures/figures.css",)
Choice = TypeVar("Choice")


def figure(name: str, *, parts: tuple[str, ...] = (), **fields: Any) -> Instrument:
    """Make an instrument whose script is ``figures/<name>.js``, after those of ``figures/parts`` that it needs."""
    scripts = (*(f"figures/parts/{part}.js" for part in parts), f"figures/{name}.js")
    return Instrument(name=name, scripts=scripts, styles=STYLES, **fields)


def one_of(name: str, value: Choice, choices: Iterable[Choice]) -> Choice:
    """Return one of the choices, or refuse it in the words of ``check.one`` in ``values.js``."""
    if value not in (allowed := list(choices)):
        written = ", ".join(f"{choice:g}" if isinstance(choice, float) else str(choice) for choice in allowed)
        raise ValueError(f"{name} must be one of {written}, got {value!r}")
    return value


def two_digits(rows: Floats) -> list[str]:
    """Write each row of whole numbers from 0 to 99 as one text, two digits each."""
    return ["".join(f"{int(code):02}" for code in row) for row in rows]
