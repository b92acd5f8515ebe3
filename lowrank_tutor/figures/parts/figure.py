"""Name the files of a figure."""

from typing import Any

from lowrank_tutor.kit.canvas import Instrument

STYLES = ("figures/figures.css",)


def figure(name: str, *, parts: tuple[str, ...] = (), **fields: Any) -> Instrument:
    """Make an instrument whose script is ``figures/<name>.js``, after those of ``figures/parts`` that it needs."""
    scripts = (*(f"figures/parts/{part}.js" for part in parts), f"figures/{name}.js")
    return Instrument(name=name, scripts=scripts, styles=STYLES, **fields)
