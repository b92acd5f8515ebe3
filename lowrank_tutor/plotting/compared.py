"""How do named things compare? Bars with intervals, lines over named places, and weights beside what estimates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import finite, named
from lowrank_tutor.plotting.style import (
    GRAY,
    LINES,
    ORANGE,
    TEAL,
    WIDTH,
    Panels,
    draw_lines,
    draw_points,
    legend_above,
    panel,
    photograph,
    styled,
    tick_each,
)


def _apart(ends: Sequence[float], least: float) -> np.ndarray:
    """Move heights apart until neighbors are ``least`` from each other, so that words at them can be read."""
    order = np.argsort(ends)
    moved = np.asarray(ends, dtype=float)[order]
    for _ in range(100):
        gaps = np.diff(moved)
        close = np.flatnonzero(gaps < least * 0.999)
        if not len(close):
            break
        for i in close:
            short = (least - (moved[i + 1] - moved[i])) / 2
            moved[i], moved[i + 1] = moved[i] - short, moved[i + 1] + short
    result = np.empty(len(moved))
    result[order] = moved
    return result


def _name_ends(ax: Axes, ends: Mapping[str, float], ylim: tuple[float, float]) -> None:
    """Write the name of each line at its right end, in its color."""
    heights = _apart(list(ends.values()), 0.075 * (ylim[1] - ylim[0]))
    for name, height, (color, _) in zip(ends, heights, LINES, strict=False):
        place = (1.01, float(height))
        ax.annotate(name, place, xycoords=("axes fraction", "data"), color=color, va="center", annotation_clip=False)


@styled
def by_name(
    names: Sequence[str],
    lines: Mapping[str, ArrayLike],
    *,
    spreads: Mapping[str, ArrayLike] | None = None,
    ylim: tuple[float, float],
    xlabel: str = "",
    title: str = "",
) -> Figure:
    """Plot lines over places that have names instead of numbers; each line is named at its end.

    Parameters
    ----------
    names : sequence of str
        The places, from left to right.
    lines : mapping of str to array_like, shape (number of places,)
        A name and the heights of each line; at most five.
    spreads : mapping of str to array_like, shape (number of places,), optional
        Half the length of an interval around each height, for the lines that have one.
    ylim : (float, float)
        Ends of the vertical axis.
    xlabel, title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, ax = panel(
        height=2.9, left=0.5, right=0.15 + 0.075 * max(len(part) for name in lines for part in name.split("\n"))
    )
    x = np.arange(len(names))
    lines = named("lines", lines, len(names), most=len(LINES))
    spreads = named("spreads", spreads, len(names)) if spreads else None
    for (name, heights), (color, dashes) in zip(lines.items(), LINES, strict=False):
        interval = (spreads or {}).get(name)
        ax.errorbar(x, heights, interval, color=color, linestyle=dashes, marker="o", markersize=5, capsize=3)
    ax.set_xticks(x, names)
    ax.set(xlabel=xlabel, title=title, ylim=ylim)
    _name_ends(ax, {name: float(np.asarray(heights)[-1]) for name, heights in lines.items()}, ylim)
    return fig


@styled
def bars(
    means: Mapping[str, float],
    spreads: Mapping[str, float] | None = None,
    *,
    start: float = 0.0,
    decimals: int = 2,
    marked: Sequence[str] = (),
    title: str = "",
) -> Figure:
    """Show one number of each of several things as a horizontal bar with an interval and the number behind it.

    Parameters
    ----------
    means : mapping of str to float
        A name and a number each.
    spreads : mapping of str to float, optional
        Half the length of the interval around each number.
    start : float
        Where the bars begin. Where that is not 0, their lengths show differences only.
    decimals : int
        Digits after the point of the numbers written behind the bars.
    marked : sequence of str
        Names of bars in another color.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    means = {name: float(mean) for name, mean in named("means", means).items()}
    if spreads and named("spreads", spreads).keys() != means.keys():
        raise ValueError(f"spreads must have the names of means, {', '.join(means)}, got {', '.join(spreads)}")
    longest = max(map(len, means))
    left, right = 0.12 + 0.066 * longest, 0.05  # inches
    fig, ax = panel(WIDTH, 0.24 * len(means) + 0.45, left=left, right=right, top=0.32, bottom=0.05)
    half = spreads or dict.fromkeys(means, 0.0)
    farthest = max(means[name] + half[name] for name in means)
    for place, (name, mean) in enumerate(means.items()):
        color = ORANGE if name in marked else TEAL
        ax.barh(place, mean - start, left=start, height=0.62, color=color, alpha=0.75)
        if spreads:
            ax.errorbar(mean, place, xerr=half[name], color="black", linewidth=1.2, capsize=2.5)
        ax.text(mean + half[name] + 0.03 * (farthest - start), place, f"{mean:.{decimals}f}", va="center")
    ax.set_yticks(range(len(means)), list(means))
    ax.set(xlim=(start, farthest + 0.22 * (farthest - start)), ylim=(len(means) - 0.4, -0.6), xticks=[])
    ax.set_title(title, x=(0.12 - left) / (WIDTH - left - right))  # above the names, too
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    return fig


@styled
def weights_spectra_and_errors(
    weights: ArrayLike, spectra: Mapping[str, ArrayLike], x: ArrayLike, lines: Mapping[str, ArrayLike]
) -> Panels:
    """Show weights of attention, spectra relative to their largest value, and errors over the rank kept.

    Parameters
    ----------
    weights : array_like, shape (n, n)
        Weights, drawn from 0 to the largest of them.
    spectra : mapping of str to array_like, shape (r,)
        A name and singular values, largest first.
    x : array_like, shape (number,)
        Ranks, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the relative errors at these ranks.

    Returns
    -------
    Panels
    """
    weights, height = finite("weights", weights, None, None), 2.65
    spectra = named("spectra", spectra, None, most=len(LINES))
    (picture, left), (values, middle), (curve, right) = (
        panel(1.85, height, left=0.28, right=0.05, bottom=0.3),
        panel(2.25, height, left=0.52, right=0.1),
        panel(2.15, height, left=0.44, right=0.1),
    )
    left.imshow(weights, cmap="gray_r", vmin=0, vmax=float(weights.max()), interpolation="nearest")
    left.set(title="the weights", xticks=[], yticks=[], xlabel="looked at", ylabel="looks")
    left.set_anchor("N")  # its title stands as high as the others
    for (name, s), (color, style) in zip(spectra.items(), LINES, strict=False):
        middle.plot(np.arange(1, len(s) + 1), np.maximum(s / s[0], 1e-17), linestyle=style, color=color, label=name)
    middle.set(yscale="log", xlabel="number of the value", ylim=(3e-17, 3), title="singular values")
    draw_lines(right, x, lines, looks=LINES[1:], marker="o", markersize=4)
    right.set(xlabel="rank kept, k", xscale="log", ylim=(-0.03, 1.05), title="error of the output")
    tick_each(right, x, at_most=4)
    legend_above(middle)
    legend_above(right)
    return Panels((photograph(picture), values, curve))


@styled
def weights_and_curves(
    exact: ArrayLike,
    estimate: ArrayLike,
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    *,
    at: float,
    highest: float,
    ylim: tuple[float, float],
) -> Panels:
    """Show one row of weights as bars, what estimates them, and the error of the output over a number of features.

    Parameters
    ----------
    exact, estimate : array_like, shape (number,)
        True weights, drawn as bars, and their estimates, drawn as points.
    x : array_like, shape (number of counts,)
        Numbers of features, increasing.
    lines : mapping of str to array_like, shape (number of counts,)
        A name and the errors.
    at : float
        The number of features that the estimates use.
    highest : float
        Upper end of the axis of the weights; estimates above it are drawn at it, as triangles.
    ylim : (float, float)
        Ends of the axis of the errors.

    Returns
    -------
    Panels
    """
    exact = finite("exact", exact, None)
    estimate = finite("estimate", estimate, len(exact))
    (row, left), (curve, right) = panel(3.1, 2.8, left=0.55), panel(3.0, 2.8, left=0.6)
    place, over = np.arange(len(exact)), estimate > highest
    left.bar(place, np.minimum(exact, highest), color=GRAY, alpha=0.55, width=0.8, label="true")
    left.plot(place[~over], estimate[~over], "o", color=ORANGE, label="estimated")
    left.plot(place[over], np.full(over.sum(), highest), "^", color=ORANGE, markersize=6, clip_on=False)
    left.set(xlabel="token looked at", ylim=(0, highest), title="one row of weights")
    right.axvline(at, color=GRAY, linewidth=0.8, linestyle=":")
    draw_lines(right, x, lines)
    right.set(xlabel="features m", xscale="log", yscale="log", ylim=ylim, title="error of the output")
    tick_each(right, x, at_most=5)
    draw_points(right, x, lines, at=at)
    legend_above(left)
    legend_above(right)
    return Panels((row, curve))
