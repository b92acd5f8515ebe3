"""Which word looks at which, and who comes first? Tables with words on both axes, words as points, two orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.style import GREY, LINES, ORANGE, TEAL, panels, styled


def _draw_map(ax: Axes, table: np.ndarray, names: Sequence[str], highest: float, decimals: int | None) -> None:
    """Draw one table, dark where its entries are large, with its entries where they are to be read."""
    ax.imshow(table, cmap="gray_r", vmin=0, vmax=highest, interpolation="nearest")
    ax.set_xticks(range(len(names)), names, rotation=90 if len(names) > 8 else 45, ha="center")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    if decimals is not None:
        for (i, j), entry in np.ndenumerate(table):
            color = "white" if entry > 0.55 * highest else "black"
            ax.text(j, i, f"{entry:.{decimals}f}", ha="center", va="center", fontsize=8.5, color=color)


@styled
def word_maps(
    maps: Mapping[str, ArrayLike],
    words: Sequence[str],
    *,
    decimals: int | None = None,
    axes: tuple[str, str] = ("looks", "is looked at"),
) -> Figure:
    """Show tables that have the same words on both axes, side by side.

    Parameters
    ----------
    maps : mapping of str to array_like, shape (n, n)
        A title and a table without negative entries: a row for each word that looks, a column for each looked at. White
        is zero, and the darkest is the largest entry of each table.
    words : sequence of str
        The n words.
    decimals : int, optional
        Digits after the point with which entries are written into the picture; without it, none are.
    axes : (str, str), optional
        What the word of a row does, and the word of a column.

    Returns
    -------
    matplotlib.figure.Figure
    """
    left = 0.06 + 0.0115 * max(map(len, words))
    fig, drawn = panels(len(maps), height=3.3, left=left, right=0.99, bottom=0.28, top=0.91, wspace=0.28)
    for ax, (title, table) in zip(drawn, maps.items(), strict=True):
        table = np.asarray(table, dtype=float)
        _draw_map(ax, table, words, float(table.max()), decimals)
        ax.set_title(title)
        ax.set_xlabel(axes[1])
    drawn[0].set_ylabel(axes[0])
    return fig


def _together(points: np.ndarray, words: Sequence[str], near: float) -> list[tuple[np.ndarray, str]]:
    """Join the names of words that lie in one place."""
    found: list[tuple[np.ndarray, str]] = []
    for word, point in zip(words, points, strict=True):
        same = [i for i, (other, _) in enumerate(found) if np.abs(other - point).max() < near]
        if same:
            found[same[0]] = (found[same[0]][0], f"{found[same[0]][1]}, {word}")
        else:
            found.append((point, word))
    return found


@styled
def word_points(places: Mapping[str, ArrayLike], words: Sequence[str]) -> Figure:
    """Show where words lie in the plane, in one panel for each set of coordinates.

    Parameters
    ----------
    places : mapping of str to array_like, shape (n, 2)
        A title and two numbers for each word.
    words : sequence of str
        The n words.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, drawn = panels(len(places), height=2.7, left=0.06, right=0.97, bottom=0.12, wspace=0.2)
    reach = 1.25 * max(float(np.abs(np.asarray(points)).max()) for points in places.values())
    for ax, (title, points) in zip(drawn, places.items(), strict=True):
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.axvline(0, color=GREY, linewidth=0.8)
        for (x, y), name in _together(np.asarray(points, dtype=float), words, 0.04 * reach):
            ax.plot(x, y, "o", color=TEAL, markersize=5)
            ax.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points")
        ax.set(title=title, xlim=(-reach, reach), ylim=(-reach, reach))
    return fig


@styled
def rankings(truth: ArrayLike, others: Mapping[str, ArrayLike], *, first: int = 3) -> Figure:
    """Show the true order of some items at the left and another order at the right, with a line for each item.

    Parameters
    ----------
    truth : array_like, shape (number,)
        True scores; the item with the largest comes first.
    others : mapping of str to array_like, shape (number,)
        A title and other scores of the same items, one panel each.
    first : int
        How many of the truly first items are drawn in color.

    Returns
    -------
    matplotlib.figure.Figure
    """
    place = np.argsort(np.argsort(-np.asarray(truth, dtype=float)))
    fig, drawn = panels(len(others), height=3.0, left=0.03, right=0.97, bottom=0.03, top=0.8, wspace=0.16)
    for ax, (title, scores) in zip(drawn, others.items(), strict=True):
        after = np.argsort(np.argsort(-np.asarray(scores, dtype=float)))
        for before, now in zip(place, after, strict=True):
            kept = before < first
            color = TEAL if kept and now == before else ORANGE if kept else GREY
            ax.plot((0, 1), (before, now), "o-", color=color, linewidth=2.2 if kept else 0.9, markersize=5)
            for x, y, ha in ((-0.05, before, "right"), (1.05, now, "left")):
                weight = "bold" if kept else "normal"
                ax.text(x, y, f"{before + 1}", ha=ha, va="center", color=color, weight=weight)
        ax.set(xlim=(-0.2, 1.2), ylim=(len(place) - 0.5, -1.4), xticks=[], yticks=[])
        ax.text(0, -1, "true order", ha="center", va="center")
        ax.text(1, -1, "order found", ha="center", va="center")
        ax.set_title(title)
        ax.spines[:].set_visible(False)
    return fig


@styled
def clouds(parts: Mapping[str, tuple[ArrayLike, Mapping[str, ArrayLike]]], *, reach: float) -> Figure:
    """Show clouds of points in the plane, each with directions through the origin.

    Parameters
    ----------
    parts : mapping of str to (array_like of shape (number, 2), mapping of str to array_like of shape (2,))
        A title; the points; and directions, a name and a vector each, drawn as lines of unit vectors both ways.
    reach : float
        Both axes go from ``-reach`` to ``reach``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, drawn = panels(len(parts), height=3.5, left=0.05, right=0.98, bottom=0.08, top=0.78, wspace=0.14)
    for ax, (title, (points, directions)) in zip(drawn, parts.items(), strict=True):
        ax.plot(*np.asarray(points, dtype=float).T, "o", color=GREY, alpha=0.45, markersize=3)
        for (name, vector), (color, dashes) in zip(directions.items(), LINES, strict=False):
            unit = np.asarray(vector, dtype=float) / np.linalg.norm(vector)
            ends = np.stack([-unit, unit]) * 0.92 * reach
            ax.plot(*ends.T, linestyle=dashes, color=color, linewidth=2.4, label=name)
        ax.set(title=title, aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
    handles, names = drawn[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="upper center", ncols=len(names))
    return fig
