"""The still pictures of figures: what a page shows before scripts run, and what is printed."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.kit.charts.style import GRAY, INK, TEAL, styled


def still(
    draw: Callable[..., None], *facts: Any, size: tuple[float, float], **grid: Any
) -> Callable[[], Figure]:
    """Return a function that makes a picture of ``size`` inches.

    Its ``draw(*facts, *axes)`` fills a grid of axes.
    """

    @styled
    def picture() -> Figure:
        fig = plt.figure(layout="constrained", figsize=size)
        draw(*facts, *fig.subplots(squeeze=False, **grid).flat)
        return fig

    return picture


def square(ax: Axes, reach: float, title: str = "") -> None:
    """Show the plane from ``-reach`` to ``reach``, a unit as long across as up."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=title)


def gray_picture(ax: Axes, gray: ArrayLike, title: str) -> None:
    """Show grays from 0, which is black, to 255."""
    ax.imshow(gray, cmap="gray", vmin=0, vmax=255)
    ax.set_axis_off()
    ax.set_title(title)


def bars_with_cut(ax: Axes, heights: ArrayLike, k: int, title: str) -> None:
    """Draw a bar for each sheet, and the cut after the first ``k``."""
    index = np.arange(1, np.size(heights) + 1)
    ax.bar(index, heights, color=[TEAL if i <= k else GRAY for i in index])
    ax.axvline(k + 0.5, color=INK)
    ax.set(title=title, xlabel="sheet")
    ax.locator_params("x", integer=True)
