"""What does a map from many numbers to few do to points? Shadows, pairs before and after, classes along an axis.

Each figure is one panel, narrow enough for a phone: an explorer puts several side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import check_most, finite, unit
from lowrank_tutor.plotting.style import (
    GRAY,
    LINES,
    ORANGE,
    TEAL,
    TITLE,
    VIOLET,
    draw_image,
    draw_lines,
    draw_points,
    legend_above,
    panel,
    sheet,
    styled,
)


@styled
def shadows(arrows: ArrayLike, x: ArrayLike, *, reach: float) -> Figure:
    r"""Draw random arrows in the plane and their shadows on the line of a unit vector.

    Parameters
    ----------
    arrows : array_like, shape (number, 2)
        The arrows, from the origin.
    x : array_like, shape (2,)
        The vector, of length 1.
    reach : float
        How far the plane is shown in each direction.

    Returns
    -------
    matplotlib.figure.Figure
    """
    arrows, x = finite("arrows", arrows, None, 2), unit("x", x)
    feet = (arrows @ x)[:, np.newaxis] * x  # (number, 2)
    fig, ax = panel(2.7, 2.9, left=0.1, right=0.1, bottom=0.1)
    ax.plot(*np.transpose([-2 * reach * x, 2 * reach * x]), color=TEAL, linewidth=0.8)
    for arrow, foot in zip(arrows, feet, strict=True):
        ax.plot(*np.transpose([arrow, foot]), ":", color=ORANGE, linewidth=1)
        if len(arrows) <= 12:  # more of them would hide each other
            ax.annotate(
                "", tuple(arrow), (0, 0), arrowprops={"arrowstyle": "-|>", "color": GRAY, "lw": 1, "shrinkB": 0}
            )
    ax.plot(*arrows.T, "o", color=GRAY, markersize=3)
    ax.plot(*feet.T, "o", color=ORANGE, markersize=4)
    ax.annotate(
        "", tuple(x), (0, 0), arrowprops={"arrowstyle": "-|>", "color": TEAL, "lw": 2.5, "shrinkA": 0, "shrinkB": 0}
    )
    name = ax.annotate("x", tuple(x), xytext=(3, -12), textcoords="offset points", color=TEAL, fontsize=11, zorder=5)
    name.set_path_effects([withStroke(linewidth=4, foreground="white")])  # it may stand among many dots
    ax.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], title="shadows on x")
    ax.spines[:].set_visible(False)
    return fig


@styled
def mean_of_bars(values: ArrayLike, *, truth: float, title: str, top: float) -> Figure:
    """Draw numbers as bars, their mean, and what the mean should be.

    Parameters
    ----------
    values : array_like, shape (number,)
        The heights. A bar that is too high for the axis is cut, and its value written above it.
    truth : float
        Drawn as a dashed line.
    title : str
    top : float
        End of the axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    values = finite("values", values, None)
    fig, ax = panel(3.5, 2.9, left=0.35, bottom=0.1)
    places = np.arange(1, len(values) + 1)
    ax.bar(places, np.minimum(values, top), color=ORANGE, alpha=0.55, width=0.8)
    if len(values) <= 32:
        for place, value in zip(places[values > top], values[values > top], strict=True):
            ax.text(place, top, f"{value:.1f}", ha="center", va="bottom", color=ORANGE)
    ax.axhline(values.mean(), color=TEAL, linewidth=2)
    ax.axhline(truth, color="black", linewidth=1, linestyle="--")
    ax.set(ylim=(0, top), xlim=(0.3, max(len(values), 6) + 0.7), title=title, xticks=[])
    ax.grid(axis="x", visible=False)
    return fig


@styled
def pairs(before: ArrayLike, after: ArrayLike, *, eps: float) -> Figure:
    r"""Plot the distance of each pair of points after a map against that before.

    Parameters
    ----------
    before, after : array_like, shape (number,)
        The distances.
    eps : float
        Dashed lines mark where the *square* of a distance changes by this fraction.

    Returns
    -------
    matplotlib.figure.Figure
    """
    before = finite("before", before, None)
    after = finite("after", after, len(before))
    fig, ax = panel(2.6, 2.6, left=0.45)
    ax.plot(before, after, "o", color=TEAL, markersize=2.5, alpha=0.35, markeredgewidth=0)
    ends = np.array([0, 1.08 * before.max()])
    ax.plot(ends, ends, color="black", linewidth=1)
    for factor in (1 - eps, 1 + eps):
        ax.plot(ends, np.sqrt(factor) * ends, "--", color=ORANGE, linewidth=1)
    ax.set(xlim=ends, ylim=1.6 * ends, xlabel="distance before", ylabel="distance after", title="each pair of points")
    return fig


@styled
def dimensions_needed(n: ArrayLike, eps: ArrayLike, k: ArrayLike, *, available: int) -> Figure:
    """Show how many dimensions are needed for many numbers of points and many tolerances, as a map.

    Parameters
    ----------
    n : array_like, shape (columns,)
        Numbers of points, increasing in equal ratios.
    eps : array_like, shape (rows,)
        Tolerances, increasing.
    k : array_like, shape (rows, columns)
        The dimensions needed.
    available : int
        Where as many or more are needed, the map is gray and hatched.

    Returns
    -------
    matplotlib.figure.Figure
    """
    n, eps = finite("n", n, None), finite("eps", eps, None)
    k = finite("k", k, len(eps), len(n))
    fig, ax = panel(4.5, 3.1, left=0.6)
    columns, rows = np.arange(len(n)), np.arange(len(eps))
    ax.pcolormesh(columns, rows, k, cmap="BuPu", norm=LogNorm(10, 3e5), edgecolors="white", linewidth=0.5)
    for row, column in np.ndindex(k.shape):
        useless = k[row, column] >= available
        if useless:
            corner = (column - 0.5, row - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, facecolor="#eceef0", edgecolor=GRAY, hatch="////", linewidth=0.5))
        ink = "white" if k[row, column] > 4000 and not useless else "black"
        paper = {"facecolor": "#eceef0", "edgecolor": "none", "pad": 1.5} if useless else None
        ax.text(column, row, f"{k[row, column]:,.0f}", ha="center", va="center", color=ink, fontsize=9, bbox=paper)
    # Seven digits would touch those beside them.
    ax.set_xticks(columns, [f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:g} million" for value in n])
    ax.set_yticks(rows, [f"{value:.0%}" for value in eps])
    ax.set(xlabel="n, points", ylabel="ε, change allowed", title=f"k needed (no use where gray: d = {available:,})")
    ax.grid(visible=False)
    return fig


@styled
def classes_and_axes(a: ArrayLike, b: ArrayLike, axes: Mapping[str, tuple[ArrayLike, float]]) -> Figure:
    """Draw two classes of points in the plane, and for each axis its direction and the line of its threshold.

    Parameters
    ----------
    a, b : array_like, shape (number, 2)
        The points of the two classes.
    axes : mapping of str to (array_like of shape (2,), float)
        A letter for each axis, the axis w, and the threshold c: the line is where w' x = c.

    Returns
    -------
    matplotlib.figure.Figure
    """
    a, b = finite("a", a, None, 2), finite("b", b, None, 2)
    check_most("axes", axes, 2)
    middle = (a.mean(axis=0) + b.mean(axis=0)) / 2
    fig, ax = panel(4.5, 2.4, left=0.3, top=0.1, bottom=0.3)
    ax.plot(*a.T, "^", color=TEAL, markersize=7)
    ax.plot(*b.T, "s", color=VIOLET, markersize=6)
    for (letter, (axis, threshold)), (color, dashes) in zip(axes.items(), ((ORANGE, "-"), (GRAY, "--")), strict=False):
        w = finite(f"axes[{letter!r}]", axis, 2)
        w /= np.linalg.norm(w)
        on_line = middle + (threshold / np.linalg.norm(axis) - middle @ w) * w
        along = np.array([-w[1], w[0]])
        foot = on_line - (0.6 if color == GRAY else 0) * along  # below the first arrow's
        ax.plot(*np.transpose([on_line - 9 * along, on_line + 9 * along]), dashes, color=color, linewidth=1.5)
        look = {"arrowstyle": "-|>", "color": color, "lw": 2, "linestyle": dashes, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", foot + 1.2 * w, foot, arrowprops=look)
        ax.annotate(letter, foot + 1.2 * w, xytext=(4, 3), textcoords="offset points", color=color, fontsize=12)
    points = np.concatenate([a, b])
    (left, low), (right, high) = points.min(axis=0) - 0.7, points.max(axis=0) + 0.7
    ax.set(aspect="equal", xlim=(left, right), ylim=(low, high))
    return fig


@styled
def digits_and_blocks(digits: ArrayLike, approx: ArrayLike, blocks: ArrayLike, *, most: int) -> Figure:
    """Show digits, what a method makes of them, and what one more of each of its numbers adds.

    Parameters
    ----------
    digits, approx : array_like, shape (number, 64)
        Images of 8 x 8 pixels with values from 0 to 16, and what is made of them.
    blocks : array_like, shape (k, 64)
        What each number adds, in any unit: purple is more ink, orange less.
    most : int
        For how many blocks there is room.

    Returns
    -------
    matplotlib.figure.Figure
    """
    digits, blocks = finite("digits", digits, None, 64), finite("blocks", blocks, None, 64)
    approx = finite("approx", approx, *digits.shape)
    width, ink = 3.6, {"cmap": "gray_r", "vmin": 0, "vmax": 16}
    fig, ax = sheet(width, 2.75)
    rows: tuple[tuple[str, np.ndarray, int, float, dict[str, Any]], ...] = (
        ("new digits", digits, len(digits), 0.2, ink),
        (f"made of {len(blocks)} number{'s' if len(blocks) > 1 else ''} each", approx, len(digits), 1.16, ink),
        ("what each number adds", blocks, most, 2.25, {"cmap": "PuOr"}),
    )
    for title, images, columns, down, look in rows:
        side = width / columns
        ax.text(0.02, 0.01 - down, title, **TITLE)
        for column, image in enumerate(images):
            limit = float(np.abs(image).max()) or 1.0
            scale = {"vmin": -limit, "vmax": limit} | look
            draw_image(ax, image.reshape(8, 8), ((column + 0.03) * side, -down), (0.94 * side, 0.94 * side), **scale)
    return fig


@styled
def one_of_several(
    x: ArrayLike, lines: Mapping[str, ArrayLike], *, chosen: str, at: float, title: str, ylim: tuple[float, float]
) -> Figure:
    """Plot named lines over one axis, one of them chosen, with a point on it.

    Parameters
    ----------
    x : array_like, shape (number,)
        Abscissas, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the ordinates of each line.
    chosen : str
        The name of the line that stands out.
    at : float
        One of the abscissas: where the point is.
    title : str
    ylim : (float, float)
        Ends of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    x = finite("x", x, None)
    if chosen not in lines:
        raise ValueError(f"chosen must be one of {', '.join(lines)}, got {chosen!r}")
    fig, ax = panel(2.9, 2.75, left=0.45)
    draw_lines(ax, x, lines)
    for line in ax.lines:
        line.set(**({"linewidth": 2.5} if line.get_label() == chosen else {"linewidth": 1.2, "alpha": 0.6}))
    ax.set(xlabel="k", title=title, ylim=ylim, xlim=(x[0], x[-1]))
    draw_points(ax, x, {chosen: lines[chosen]}, at=at, looks=[LINES[list(lines).index(chosen)]])
    legend_above(ax)
    return fig
