"""What do all figures share? Their colors and their style, which leave no trace behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from typing import Any, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

P = ParamSpec("P")

# Each at least 3 : 1 against white, and 4.5 : 1 where a word is written in it. Lines differ in more than color.
TEAL, ORANGE, PURPLE, GREY, PINK = "#0b6e83", "#b84a00", "#6a4c93", "#757b82", "#b0578a"
GREEN, OCHER = "#00795a", "#a06d00"
HIDDEN = "#d0713a"
LINES = ((TEAL, "-"), (ORANGE, "--"), (PURPLE, "-."), ("black", ":"), (PINK, (0, (6, 1, 1, 1, 1, 1))))


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the book's style without changing anybody's settings, and leave no figure open.

    Parameters
    ----------
    draw : callable
        Any function that returns a figure.

    Returns
    -------
    callable
        The same function, styled.
    """

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with as_file(files("lowrank_tutor.plotting") / "lowrank.mplstyle") as style, plt.style.context(style):
            figure = draw(*args, **kwargs)
        plt.close(figure)
        return figure

    return wrapped


def panels(
    number: int = 1, *, height: float = 2.6, width_ratios: Sequence[float] | None = None, **margins: float
) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure as wide as the page, with panels side by side that no slider moves, whatever is drawn in them."""
    fig, axes = plt.subplots(1, number, layout="none", figsize=(7, height), width_ratios=width_ratios, squeeze=False)
    fig.subplots_adjust(**{"left": 0.07, "right": 0.98, "top": 0.88, "bottom": 0.19, **margins})
    return fig, axes[0]


def draw_lines(
    ax: Axes, x: ArrayLike, lines: Mapping[str, ArrayLike], *, at: float | None = None, looks: Any = LINES, **style: Any
) -> None:
    """Draw named lines, each in a look of its own, with a point on each where a slider stands."""
    x = np.asarray(x, dtype=float)
    for (name, y), (color, dashes) in zip(lines.items(), looks, strict=False):
        y = np.asarray(y, dtype=float)
        ax.plot(x, y, linestyle=dashes, color=color, label=name, **style)
        if at is not None:
            ax.plot(at, y[x == at], "o", color=color, markersize=7)


def tick_each(ax: Axes, x: ArrayLike) -> None:
    """Put a tick at each abscissa, and nowhere else."""
    x = np.asarray(x, dtype=float)
    ax.set_xticks(x, [f"{value:g}" for value in x])
    ax.minorticks_off()
