"""Where do points lie, and how does one number move with another? Arrows, curves and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import check_most, finite, named
from lowrank_tutor.plotting.style import (
    GRAY,
    ORANGE,
    TEAL,
    VIOLET,
    Panels,
    draw_lines,
    draw_points,
    legend_above,
    panel,
    styled,
    tick_each,
)


@styled
def ellipse(a: ArrayLike, u: ArrayLike, s: ArrayLike, vt: ArrayLike) -> Panels:
    """Show what a 2 x 2 matrix does to the unit circle, with its singular directions.

    Parameters
    ----------
    a : array_like, shape (2, 2)
        The matrix.
    u, s, vt : array_like, shapes (2, 2), (2,), (2, 2)
        Its singular value decomposition.

    Returns
    -------
    Panels
        The circle; the ellipse.
    """
    a, u, s, vt = finite("a", a, 2, 2), finite("u", u, 2, 2), finite("s", s, 2), finite("vt", vt, 2, 2)
    angle = np.linspace(0, 2 * np.pi, 400)
    circle = np.vstack([np.cos(angle), np.sin(angle)])
    return Panels(
        (
            _directions(circle, vt.T, np.ones(2), ("$v_1$", "$v_2$"), "inputs of length 1"),
            _directions(a @ circle, u, s, (r"$\sigma_1 u_1$", r"$\sigma_2 u_2$"), "what A makes of them"),
        )
    )


def _directions(curve: np.ndarray, ways: np.ndarray, lengths: np.ndarray, names: Sequence[str], title: str) -> Figure:
    """Draw a closed curve around the origin, with two arrows and their names."""
    fig, ax = panel(3.0, 2.95, left=0.5, bottom=0.3)
    ax.plot(*curve, color=GRAY, linewidth=1.2)
    for i, (name, color) in enumerate(zip(names, (TEAL, ORANGE), strict=True)):
        tip = ways[:, i] * lengths[i]
        ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2})
        # Outside the curve, each name on the far side of its tip.
        ax.annotate(name, tip, xytext=6 * np.sign(tip), textcoords="offset points", color=color, fontsize=12,
                    ha="left" if tip[0] >= 0 else "right", va="bottom" if tip[1] >= 0 else "top")  # fmt: skip
    reach = 1.45 * lengths[0]
    ax.set(aspect="equal", title=title, xlim=(-reach, reach), ylim=(-reach, reach))
    return fig


@styled
def cloud(
    points: ArrayLike,
    arrows: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    *,
    labels: ArrayLike | None = None,
    paths: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Scatter points in the plane with named arrows and paths; without labels and paths, mark the origin.

    Parameters
    ----------
    points : array_like, shape (number, 2)
        The points.
    arrows : mapping of str to (start, step), optional
        A name for each arrow, where it starts and where it goes from there, both of shape (2,).
    labels : array_like, shape (number,), optional
        The class of each point; up to three are told apart by their marks.
    paths : mapping of str to array_like, shape (length, 2), optional
        A name for each path, and the points that it joins.

    Returns
    -------
    matplotlib.figure.Figure
    """
    points = finite("points", points, None, 2)
    classes = np.zeros(len(points)) if labels is None else np.asarray(labels)
    if classes.shape != points.shape[:1]:
        raise ValueError(f"labels must have shape ({len(points)},), got {classes.shape}")
    for argument, things in (("classes", np.unique(classes)), ("arrows", arrows or {}), ("paths", paths or {})):
        check_most(argument, things, 3)
    fig, ax = panel(height=3.4, left=0.5, bottom=0.3)
    for value, (mark, color) in zip(np.unique(classes), (("o", GRAY), ("^", TEAL), ("s", VIOLET)), strict=False):
        ax.plot(*points[classes == value].T, mark, color=color, alpha=0.5, markersize=3.5)
    looks = ((ORANGE, "-"), (TEAL, "--"), (VIOLET, ":"))  # orange first, which no point is
    for (name, (start, step)), (color, dashes) in zip((arrows or {}).items(), looks, strict=False):
        look = {"arrowstyle": "-|>", "color": color, "lw": 2, "linestyle": dashes, "shrinkA": 0, "shrinkB": 0}
        foot, way = finite(f"arrows[{name!r}]", start, 2), finite(f"arrows[{name!r}]", step, 2)
        ax.annotate("", tuple(foot + way), tuple(foot), arrowprops=look)
        ax.plot([], [], dashes, color=color, label=name)
    for (name, path), (color, dashes) in zip((paths or {}).items(), looks, strict=False):
        ax.plot(*finite(f"paths[{name!r}]", path, None, 2).T, dashes, color=color, label=name)
    if labels is None and paths is None:
        ax.plot(0, 0, "+", color="black", markersize=10)
        ax.annotate("origin", (0, 0), xytext=(6, -12), textcoords="offset points")
    legend_above(ax)
    ax.set_aspect("equal", adjustable="datalim")
    return fig


@styled
def histogram(
    values: ArrayLike,
    *,
    law: tuple[ArrayLike, ArrayLike],
    marks: Sequence[float] = (),
    xlabel: str = "",
    title: str = "",
) -> Figure:
    """Show how often values occur, and the density that theory gives them.

    Parameters
    ----------
    values : array_like, shape (number,)
        What was measured. Values beyond an end of the law are counted in the last bar there, and its tick says so.
    law : (array_like, array_like)
        Abscissas, increasing, and the density there. They also say which part of the axis is shown.
    marks : sequence of float
        Vertical dashed lines.
    xlabel, title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    values, x = finite("values", values, None), finite("law[0]", law[0], None)
    density = finite("law[1]", law[1], len(x))
    fig, ax = panel(left=0.25, right=0.3)
    bins = np.linspace(x[0], x[-1], 61)
    ax.hist(np.clip(values, x[0], x[-1]), bins=list(bins), density=True, color=TEAL, alpha=0.45)
    ax.plot(x, density, color=TEAL, linewidth=1.5)
    for mark in marks:
        ax.axvline(mark, color=ORANGE, linewidth=1, linestyle="--")
    ax.set(xlabel=xlabel, title=title, xlim=(x[0], x[-1]), yticks=[])
    ticks = [tick for tick in ax.get_xticks() if x[0] <= tick <= x[-1]]
    words = [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks]
    if ticks[0] == x[0] and np.min(values) < x[0]:
        words[0] = f"\N{LESS-THAN OR EQUAL TO} {words[0]}"
    if ticks[-1] == x[-1] and np.max(values) > x[-1]:
        words[-1] = f"\N{GREATER-THAN OR EQUAL TO} {words[-1]}"
    ax.set_xticks(ticks, words)
    return fig


@styled
def curves(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    at: float | None = None,
    xlabel: str = "",
    title: str = "",
    scale: tuple[str, str] = ("linear", "linear"),
    ylim: tuple[float | None, float | None] = (None, None),
) -> Figure:
    """Plot named lines over one axis, with a point on each where a slider stands.

    Parameters
    ----------
    x : array_like, shape (number,)
        Abscissas, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the ordinates of each line, five at most; NaN leaves a gap.
    at : float, optional
        One of the abscissas: where the points are. A point beyond the axes is an arrow at their edge.
    xlabel, title : str, optional
    scale : (str, str)
        ``"linear"`` or ``"log"`` for each axis.
    ylim : (float or None, float or None)
        Ends of the vertical axis; give them where a slider must not move it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    x = finite("x", x, None)
    fig, ax = panel(height=3.0, left=0.62)
    if at is not None:
        ax.axvline(at, color=GRAY, linewidth=0.8, linestyle=":")  # also where a point lies outside the axes
    draw_lines(ax, x, lines, marker="o" if len(x) < 10 else "")
    ax.set(xlabel=xlabel, title=title, xscale=scale[0], yscale=scale[1], ylim=ylim)
    if scale[0] == "log" and len(x) <= 12:
        tick_each(ax, x, at_most=6)
    if at is not None:
        draw_points(ax, x, lines, at=at)
    if len(lines) > 1 or not title:  # a title alone names a single line
        legend_above(ax)
    return fig


@styled
def dots(
    values: Mapping[str, float],
    *,
    marked: str | None = None,
    marks: Mapping[str, float] | None = None,
    xlabel: str = "",
    xlim: tuple[float, float] | None = None,
) -> Figure:
    """Plot one positive number for each name, a row each, over a logarithmic axis.

    Parameters
    ----------
    values : mapping of str to float
        A name and its number, from the top row to the lowest.
    marked : str, optional
        The name whose dot stands out.
    marks : mapping of str to float, optional
        A word and a number for each vertical line.
    xlabel : str, optional
    xlim : (float, float), optional
        Ends of the axis; give them where a slider must not move it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    for argument, numbers in (("values", values), ("marks", marks or values)):
        if any(number <= 0 for number in named(argument, numbers).values()):
            raise ValueError(f"{argument} must be positive, got {dict(numbers)}")
    fig, ax = panel(height=0.9 + 0.24 * len(values), left=0.3 + 0.075 * max(map(len, values)))
    for row, (name, value) in enumerate(values.items()):
        color, size = (ORANGE, 10) if name == marked else (TEAL, 7)
        ax.plot(value, row, "o", color=color, markersize=size)
    for word, value in (marks or {}).items():
        ax.axvline(value, color=GRAY, linewidth=1, linestyle="--")
        ax.annotate(word, (value, -0.5), xytext=(0, 3), textcoords="offset points", color=GRAY, ha="center")
    ax.set(xscale="log", xlabel=xlabel, xlim=xlim, ylim=(len(values) - 0.5, -0.5))
    ax.set_yticks(range(len(values)), list(values))
    ax.grid(axis="x", linewidth=0.5)
    return fig
