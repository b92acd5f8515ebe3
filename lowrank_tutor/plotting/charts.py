"""Where do points lie, and how does one number move with another? Arrows, curves, counts and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.style import GREEN, GREY, OCHER, ORANGE, PINK, PURPLE, TEAL, draw_lines, panels, styled


@styled
def ellipse(a: ArrayLike, u: ArrayLike, s: ArrayLike, vt: ArrayLike) -> Figure:
    """Show what a 2 x 2 matrix does to the unit circle, with its singular directions.

    Parameters
    ----------
    a : array_like, shape (2, 2)
        The matrix.
    u, s, vt : array_like, shapes (2, 2), (2,), (2, 2)
        Its singular value decomposition.

    Returns
    -------
    matplotlib.figure.Figure
    """
    a, u, s, vt = (np.asarray(x) for x in (a, u, s, vt))
    angle = np.linspace(0, 2 * np.pi, 400)
    circle = np.vstack([np.cos(angle), np.sin(angle)])
    fig, axes = plt.subplots(1, 2, figsize=(7, 3.3))
    panels = ((circle, vt.T, np.ones(2), "v", "inputs of length 1"), (a @ circle, u, s, "u", "what A makes of them"))
    for ax, (curve, directions, lengths, letter, title) in zip(axes, panels, strict=True):
        ax.plot(*curve, color=GREY, linewidth=1.2)
        for i, color in enumerate((TEAL, ORANGE)):
            tip = directions[:, i] * lengths[i]
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2})
            name = f"$v_{i + 1}$" if letter == "v" else rf"$\sigma_{i + 1} u_{i + 1}$"
            ax.annotate(name, tip, xytext=5 * np.sign(tip), textcoords="offset points", color=color, fontsize=12)
        reach = 1.25 * lengths[0]
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
    points = np.asarray(points)
    classes = np.zeros(len(points)) if labels is None else np.asarray(labels)
    fig, ax = plt.subplots(figsize=(7, 3.2))
    for value, (mark, color) in zip(np.unique(classes), (("o", GREY), ("^", TEAL), ("s", PURPLE)), strict=False):
        ax.plot(*points[classes == value].T, mark, color=color, alpha=0.5, markersize=3.5)
    looks = ((ORANGE, "-"), (TEAL, "--"), (PURPLE, ":"))  # orange first, which no point is
    for (name, (start, step)), (color, dashes) in zip((arrows or {}).items(), looks, strict=False):
        look = {"arrowstyle": "-|>", "color": color, "lw": 2, "linestyle": dashes, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", tuple(np.add(start, step)), tuple(np.asarray(start)), arrowprops=look)
        ax.plot([], [], dashes, color=color, label=name)
    for (name, path), (color, dashes) in zip((paths or {}).items(), looks, strict=False):
        ax.plot(*np.asarray(path).T, dashes, color=color, label=name)
    if labels is None and paths is None:
        ax.plot(0, 0, "+", color="black", markersize=10)
        ax.annotate("origin", (0, 0), xytext=(6, -12), textcoords="offset points")
    if arrows or paths:
        ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    ax.set_aspect("equal")
    return fig


@styled
def trade_off(rows: Sequence[Mapping[str, Any]], x: str, y: str, *, floor: float, labels: tuple[str, str]) -> Figure:
    """Plot measured methods, one panel a case: what each costs against what it gets wrong.

    Parameters
    ----------
    rows : sequence of mappings
        Each has ``"spectrum"``, ``"method"`` and the two columns.
    x, y : str
        The columns to plot.
    floor : float
        Smaller values of ``y`` are drawn here: below it there is only rounding.
    labels : (str, str)
        Words for the two axes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    cases = list(dict.fromkeys(row["spectrum"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    columns = 3
    lines = -(-len(cases) // columns)
    fig, axes = plt.subplots(lines, columns, figsize=(7, 2.1 * lines + 0.5), sharex=True, sharey=True, squeeze=False)
    for ax, case in zip(axes.flat, cases, strict=False):
        for method, marker, color in zip(
            methods, "osD^vPX", (TEAL, ORANGE, PURPLE, GREEN, PINK, OCHER, GREY), strict=False
        ):
            mine = [row for row in rows if row["spectrum"] == case and row["method"] == method]
            ax.plot(
                [r[x] for r in mine], [max(r[y], floor) for r in mine], marker, color=color, label=method, markersize=6
            )
        ax.set(xscale="log", yscale="log", title=case)
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3)))  # 0.03, 0.1, 0.3: there is no room for more
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    for above, ax in zip(axes.flat[len(cases) - columns :], axes.flat[len(cases) :], strict=False):
        ax.set_axis_off()
        above.tick_params(labelbottom=True)
    fig.supxlabel(labels[0], fontsize=9.5)
    fig.supylabel(labels[1], fontsize=9.5)
    handles, names = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper center", ncols=4)
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
        What was measured. Values beyond the ends of the law are counted at the ends.
    law : (array_like, array_like)
        Abscissas, increasing, and the density there. They also say which part of the axis is shown.
    marks : sequence of float
        Vertical dashed lines.
    xlabel, title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    x, density = (np.asarray(part, dtype=float) for part in law)
    fig, (ax,) = panels(left=0.02)
    bins = np.linspace(x[0], x[-1], 61)
    ax.hist(np.clip(values, x[0], x[-1]), bins=list(bins), density=True, color=TEAL, alpha=0.45)
    ax.plot(x, density, color=TEAL, linewidth=1.5)
    for mark in marks:
        ax.axvline(mark, color=ORANGE, linewidth=1, linestyle="--")
    ax.set(xlabel=xlabel, title=title, xlim=(x[0], x[-1]), yticks=[])
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
    legend: Literal["upper left", "upper right"] | None = None,
) -> Figure:
    """Plot named lines over one axis, with a point on each where a slider stands.

    Parameters
    ----------
    x : array_like, shape (number,)
        Abscissas, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the ordinates of each line.
    at : float, optional
        One of the abscissas: where the points are.
    xlabel, title : str, optional
    scale : (str, str)
        ``"linear"`` or ``"log"`` for each axis.
    ylim : (float or None, float or None)
        Ends of the vertical axis; give them where a slider must not move it.
    legend : {"upper left", "upper right"}, optional
        Where it stands; without it, out of the way of the lines, and with a slider in the upper right corner.

    Returns
    -------
    matplotlib.figure.Figure
    """
    x = np.asarray(x, dtype=float)
    fig, (ax,) = panels(height=2.8, left=0.09, bottom=0.18)
    if at is not None:
        ax.axvline(at, color=GREY, linewidth=0.8, linestyle=":")  # also where a point lies outside the axes
    draw_lines(ax, x, lines, at=at, marker="o" if len(x) < 10 else "")
    ax.set(xlabel=xlabel, title=title, xscale=scale[0], yscale=scale[1], ylim=ylim)
    ax.legend(loc=legend or ("best" if at is None else "upper right"))
    return fig
