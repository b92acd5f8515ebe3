"""What the still pictures of several figures share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from lowrank_tutor.kit.charts.style import GRAY, ORANGE, TEAL


def square(ax: Axes, reach: float, title: str = "") -> None:
    """Show the plane from ``-reach`` to ``reach``, a unit as long across as up."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=title)


def bars_with_cut(ax: Axes, heights: ArrayLike, k: int, title: str) -> None:
    """Draw a bar for each sheet, and the cut after the first ``k``."""
    index = np.arange(1, np.size(heights) + 1)
    ax.bar(index, heights, color=[TEAL if i <= k else GRAY for i in index])
    ax.axvline(k + 0.5, color=ORANGE)
    ax.set(title=title, xlabel="sheet")
    ax.locator_params("x", integer=True)
