"""Which way does it point? Arrows in space with the plane that holds them, and the shadow of an arrow on a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import finite, named, unit
from lowrank_tutor.plotting.style import GRAY, ORANGE, TEAL, WIDTH, styled

ARROW = {"arrowstyle": "-|>", "lw": 2, "shrinkA": 0, "shrinkB": 0}


@styled
def arrows_in_space(vectors: Mapping[str, ArrayLike]) -> Figure:
    """Draw arrows from the origin of space, with a net of the combinations of the first two.

    Parameters
    ----------
    vectors : mapping of str to array_like, shape (3,)
        A name, which may hold formulas, and the arrow's tip. The first two arrows must not be parallel.

    Returns
    -------
    matplotlib.figure.Figure
    """
    tips = np.array(list(named("vectors", vectors, 3).values()))  # (number, 3)
    if len(tips) < 2:
        raise ValueError(f"vectors must be at least two, got {len(tips)}")
    first, second = tips[:2]
    # How far the net must reach along the first two arrows, so that every arrow in their plane lies on it.
    steps = np.linalg.lstsq(tips[:2].T, tips.T, rcond=None)[0]  # (2, number)
    reach = [np.arange(0, np.ceil(s.max()) + 0.75, 0.5) for s in steps]
    fig = plt.figure(figsize=(WIDTH, 2.9), layout="none")
    ax: Any = fig.add_axes((0, 0, 1, 1), projection="3d", computed_zorder=False)
    net = [np.add.outer(reach[0] * first[i], reach[1] * second[i]) for i in range(3)]
    ax.plot_surface(*net, color=TEAL, alpha=0.12, edgecolor=GRAY, linewidth=0.4)
    for i, (name, tip) in enumerate(zip(vectors, tips, strict=True)):
        color = TEAL if i < 2 else ORANGE
        ax.quiver(0, 0, 0, *tip, color=color, linewidth=2, arrow_length_ratio=0.3 / np.linalg.norm(tip))
        side = "left" if i % 3 == 0 else "right"  # so that few names stand on an arrow
        word = ax.text(*(1.06 * tip), name, color=color, fontsize=11, ha=side, va="top" if i == 0 else "bottom")
        word.set_path_effects([withStroke(linewidth=3, foreground="white")])  # it may stand on the net or on an axis
    ax.set(xticks=range(3), yticks=range(3), zticks=range(4), xticklabels=[], yticklabels=[], zticklabels=[])
    ax.view_init(elev=14, azim=-68)
    ax.set_box_aspect((4, 4, 3), zoom=1.28)
    return fig


@styled
def shadow(w: ArrayLike, x: ArrayLike) -> Figure:
    """Draw an arrow in the plane, its shadow on a line, and the right angle between the two.

    Parameters
    ----------
    w : array_like, shape (2,)
        The direction of the line, of length 1.
    x : array_like, shape (2,)
        The arrow.

    Returns
    -------
    matplotlib.figure.Figure
    """
    w, x = unit("w", w), finite("x", x, 2)
    foot = (w @ x) * w
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    far = 1.3 * max(float(np.linalg.norm(foot)), 1.0)
    ax.plot(*np.outer(w, [-0.15 * far, far]), color=GRAY, linewidth=1)
    ax.plot(*zip(x, foot, strict=True), color=GRAY, linewidth=1.2, linestyle=":")
    up = (x - foot) / np.linalg.norm(x - foot)
    corner = np.array([foot - 0.22 * w, foot - 0.22 * w + 0.22 * up, foot + 0.22 * up])
    ax.plot(*corner.T, color=GRAY, linewidth=1)
    for tip, color, name, place in (
        (x, ORANGE, "$x$", (-14, 0)),
        (foot, TEAL, "$Px$", (8, -10)),
        (w, "black", "", None),
    ):
        ax.annotate("", tuple(tip), (0, 0), arrowprops={**ARROW, "color": color, "lw": 3.2 if name == "" else 2})
        if place:
            ax.annotate(name, tuple(tip), xytext=place, textcoords="offset points", color=color, fontsize=12)
    ax.annotate("the row of $W$", tuple(w / 2), xytext=(6, -14), textcoords="offset points")
    ax.margins(0.08)
    ax.set_aspect("equal")
    return fig
