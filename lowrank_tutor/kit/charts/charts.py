"""Draw charts of numbers: curves, bars and arrows.

Where a function takes ``**room``, these are the arguments of :func:`panel`, in inches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_integer, check_real
from lowrank_tutor.kit.charts.arguments import finite, named
from lowrank_tutor.kit.charts.labels import label_lines
from lowrank_tutor.kit.charts.style import (
    GRAY,
    INK,
    LINES,
    TEAL,
    WIDTH,
    draw_lines,
    draw_points,
    panel,
    styled,
    tick_each,
)


@styled
def curves(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    at: float | None = None,
    xlabel: str = "",
    title: str = "",
    scale: tuple[str, str] = ("linear", "linear"),
    xlim: tuple[float | None, float | None] = (None, None),
    ylim: tuple[float | None, float | None] = (None, None),
    looks: Sequence[tuple[str, Any]] = LINES,
    **room: float,
) -> Figure:
    """Plot named lines over one axis, with a point on each where a slider stands.

    ``lines`` maps a name to ordinates (number,) over the abscissas ``x`` (number,), which increase; NaN leaves a gap.
    Points stand at ``at``, one of the abscissas; one beyond the axes is an arrow at their edge. ``scale`` is "linear"
    or "log" for each axis. Give ``xlim`` and ``ylim`` where a slider must not move the ends of the axes. ``looks`` are
    a color and dashes for each line, five by default; dashes "o" and "x" are points.
    """
    x = finite("x", x, None)
    if at is not None:
        check_real(at, "at", "finite", -1e300, 1e300)
    for name, (low, high) in (("xlim", xlim), ("ylim", ylim)):
        if low is not None and high is not None and not low < high:
            raise ValueError(f"{name} must rise, or have None for an end, got ({low}, {high})")
    fig, ax = panel(**{"height": 3.0, "left": 0.62, **room})
    if at is not None:
        ax.axvline(at, color=GRAY, linewidth=0.8, linestyle=":")  # also where a point lies outside the axes
    draw_lines(ax, x, lines, looks=looks, marker="o" if len(x) < 10 else "")
    title = title or (next(iter(lines)) if len(lines) == 1 else "")
    ax.set(xlabel=xlabel, title=title, xscale=scale[0], yscale=scale[1], xlim=xlim, ylim=ylim)
    if scale[0] == "log" and len(x) <= 12:
        tick_each(ax, x, at_most=round(fig.get_figwidth()) + 2)
    elif scale[0] == "linear" and len(x) <= 12 and (x == x.round()).all():
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if at is not None:
        draw_points(ax, x, list(lines.values()), at=at, looks=looks)
    if len(lines) > 1:
        label_lines(ax)
    return fig


@styled
def bars(
    means: Mapping[str, float],
    spreads: Mapping[str, float] | None = None,
    *,
    decimals: int = 2,
    color: str = TEAL,
    colors: Mapping[str, str] | None = None,
    title: str = "",
) -> Figure:
    """Show one number of each of several things as a horizontal bar, with the number behind it to some ``decimals``.

    ``means`` maps a name to its number, and ``spreads`` the same names to half the length of an interval around it.
    ``colors`` maps names of bars to the color that each has instead of ``color``.
    """
    means = {name: float(mean) for name, mean in named("means", means).items()}
    check_integer(decimals, "decimals", 0, 15)
    if spreads and named("spreads", spreads).keys() != means.keys():
        raise ValueError(f"spreads must have the names of means, {', '.join(means)}, got {', '.join(spreads)}")
    left, right = 0.12 + 0.074 * max(map(len, means)), 0.05  # inches
    fig, ax = panel(WIDTH, 0.24 * len(means) + 0.45, left=left, right=right, top=0.32, bottom=0.05)
    half = spreads or dict.fromkeys(means, 0.0)
    farthest = max(means[name] + half[name] for name in means)
    for place, (name, mean) in enumerate(means.items()):
        ax.barh(place, mean, height=0.62, color=(colors or {}).get(name, color), alpha=0.75)
        if spreads:
            ax.errorbar(mean, place, xerr=half[name], color=INK, linewidth=1.2, capsize=2.5)
        ax.text(mean + half[name] + 0.03 * farthest, place, f"{mean:.{decimals}f}", va="center")
    ax.set_yticks(range(len(means)), list(means))
    number = 0.15 + 0.075 * len(f"{farthest:.{decimals}f}")  # inches
    across = WIDTH - left - right
    ax.set(xlim=(0, farthest * across / (across - number)), ylim=(len(means) - 0.4, -0.6), xticks=[])
    ax.set_title(title, x=(0.12 - left) / (WIDTH - left - right))  # above the names, too
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    return fig


@styled
def by_name(
    names: Sequence[str],
    lines: Mapping[str, ArrayLike],
    *,
    spreads: Mapping[str, ArrayLike] | None = None,
    ylim: tuple[float, float],
    xlabel: str = "",
    title: str = "",
    looks: Sequence[tuple[str, Any]] = LINES,
) -> Figure:
    """Plot at most five lines over places that have names instead of numbers; each line is named at its end.

    ``lines`` maps a name to the heights (len(names),) of a line, from left to right, and ``spreads``, for the lines
    that have one, to half the length of an interval around each. ``looks`` is as in `curves`.
    """
    lines = named("lines", lines, len(names), most=len(looks))
    intervals = named("spreads", spreads, len(names)) if spreads else {}
    fig, ax = panel(height=2.9)
    draw_lines(ax, range(len(names)), lines, looks=looks, marker="o", markersize=5)
    for line in list(ax.lines):
        half = intervals.get(str(line.get_label()))
        ax.errorbar(line.get_xdata(), line.get_ydata(), half, fmt="none", color=line.get_color(), capsize=3)
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel=xlabel, title=title, ylim=ylim)
    label_lines(ax)
    return fig


def arrow(
    ax: Axes,
    tip: ArrayLike,
    start: ArrayLike = (0, 0),
    *,
    color: str,
    name: str = "",
    place: tuple[float, float] = (4, 3),
    **look: Any,
) -> None:
    """Draw an arrow in the plane from ``start`` to ``tip``, both (2,), with its name at its tip.

    The name stands ``place`` points from the tip. ``look`` is what else matplotlib shall know, such as ``lw``.
    """
    tip, start = finite("tip", tip, 2), finite("start", start, 2)
    style = {"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0, **look}
    ax.annotate("", tuple(tip), tuple(start), arrowprops=style)
    side = "left" if place[0] > 0 else "right" if place[0] < 0 else "center"
    word = ax.annotate(name, tuple(tip), xytext=place, textcoords="offset points", color=color, fontsize=12, ha=side)
    word.set(va="bottom" if place[1] >= 0 else "top", path_effects=[withStroke(linewidth=3, foreground="white")])
