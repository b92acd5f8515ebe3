"""Which word looks at which, and who comes first? Tables with words on both axes, words as points, two orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.arguments import finite, named
from lowrank_tutor.plotting.style import (
    GRAY,
    LINES,
    ORANGE,
    TEAL,
    Panels,
    legend_above,
    panel,
    styled,
)


def _draw_map(ax: Axes, table: np.ndarray, names: Sequence[str], highest: float, decimals: int | None) -> None:
    """Draw one table, dark where its entries are large, with its entries where they are to be read."""
    ax.imshow(table, cmap="gray_r", vmin=0, vmax=highest, interpolation="nearest")
    upright = len(names) > 8 or max(map(len, names)) > 6  # or words at the edge would be cut
    ax.set_xticks(range(len(names)), names, rotation=90 if upright else 45, ha="center")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    if decimals is not None:
        for (i, j), entry in np.ndenumerate(table):
            color = "white" if entry > 0.55 * highest else "black"
            ax.text(j, i, f"{entry:.{decimals}f}", ha="center", va="center", fontsize=9, color=color)


@styled
def word_maps(
    maps: Mapping[str, ArrayLike],
    words: Sequence[str],
    *,
    decimals: int | None = None,
    axes: tuple[str, str] = ("looks", "is looked at"),
) -> Panels:
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
    Panels
    """
    maps = named("maps", maps, len(words), len(words))
    longest = max(map(len, words))
    beside, below = 0.3 + 0.072 * longest, 0.35 + 0.065 * longest  # inches that the words take
    side = min(2.2, 3.1 - beside)  # so that two stand side by side
    drawn = []
    for title, table in maps.items():
        fig, ax = panel(beside + side + 0.05, 0.3 + side + below, left=beside, right=0.05, top=0.3, bottom=below)
        _draw_map(ax, table, words, float(table.max()), decimals)
        ax.set(title=title, xlabel=axes[1], ylabel=axes[0])
        drawn.append(fig)
    return Panels(drawn)


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
def word_points(places: Mapping[str, ArrayLike], words: Sequence[str]) -> Panels:
    """Show where words lie in the plane, in one panel for each set of coordinates.

    Parameters
    ----------
    places : mapping of str to array_like, shape (n, 2)
        A title and two numbers for each word.
    words : sequence of str
        The n words.

    Returns
    -------
    Panels
    """
    places = named("places", places, len(words), 2)
    reach = 1.3 * max(float(np.abs(points).max()) for points in places.values())
    drawn = []
    for title, points in places.items():
        fig, ax = panel(3.0, 2.7, left=0.5, bottom=0.3)
        ax.axhline(0, color=GRAY, linewidth=0.8)
        ax.axvline(0, color=GRAY, linewidth=0.8)
        joined = _together(points, words, 0.04 * reach)
        for (x, y), name in joined:
            ax.plot(x, y, "o", color=TEAL, markersize=5)
            side = -1 if x > 0.3 * reach else 1  # near the right edge a name has more room at the left of its point
            below = any(0 < other[1] - y < 0.2 * reach for other, _ in joined)  # or it would meet that of another
            place = (5 * side, -4 if below else 4)  # points
            text = ax.annotate(name, (float(x), float(y)), xytext=place, textcoords="offset points")
            text.set(ha="left" if side > 0 else "right", va="top" if below else "bottom")
        ax.set(title=title, xlim=(-reach, reach), ylim=(-reach, reach))
        drawn.append(fig)
    return Panels(drawn)


@styled
def rankings(truth: ArrayLike, others: Mapping[str, ArrayLike], *, first: int = 3) -> Panels:
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
    Panels
    """
    place = np.argsort(np.argsort(-finite("truth", truth, None)))
    drawn = []
    for title, scores in named("others", others, len(place)).items():
        fig, ax = panel(3.0, 3.1, left=0.05, right=0.05, top=0.3, bottom=0.05)
        after = np.argsort(np.argsort(-scores))
        for before, now in zip(place, after, strict=True):
            kept = before < first
            color = TEAL if kept and now == before else ORANGE if kept else GRAY
            ax.plot((0, 1), (before, now), "o-", color=color, linewidth=2.2 if kept else 0.9, markersize=5)
            for x, y, side in ((-0.05, before, "right"), (1.05, now, "left")):
                weight = "bold" if kept else "normal"
                ax.text(x, y, f"{before + 1}", ha=side, va="center", color=color, weight=weight)
        ax.set(xlim=(-0.3, 1.3), ylim=(len(place) - 0.5, -1.4), xticks=[], yticks=[], title=title)
        for x, words in ((0, "true order"), (1, "order found")):
            ax.text(x, -1, words, ha="center", va="center")
        ax.spines[:].set_visible(False)
        drawn.append(fig)
    return Panels(drawn)


@styled
def clouds(parts: Mapping[str, tuple[ArrayLike, Mapping[str, ArrayLike]]], *, reach: float) -> Panels:
    """Show clouds of points in the plane, each with directions through the origin.

    Parameters
    ----------
    parts : mapping of str to (array_like of shape (number, 2), mapping of str to array_like of shape (2,))
        A title; the points; and directions, a name and a vector each, drawn as lines of unit vectors both ways.
    reach : float
        Both axes go from ``-reach`` to ``reach``.

    Returns
    -------
    Panels
    """
    drawn = []
    for title, (points, directions) in parts.items():
        fig, ax = panel(3.0, 3.3, left=0.4, bottom=0.3)
        ax.plot(*finite(f"parts[{title!r}]", points, None, 2).T, "o", color=GRAY, alpha=0.45, markersize=3)
        vectors = named(f"directions of {title!r}", directions, 2, most=len(LINES)) if directions else {}
        for (name, vector), (color, dashes) in zip(vectors.items(), LINES, strict=False):
            unit = vector / np.linalg.norm(vector)
            ends = np.stack([-unit, unit]) * 0.92 * reach
            ax.plot(*ends.T, linestyle=dashes, color=color, linewidth=2.4, label=name)
        ax.set(title=title, aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        ax.set_xticks(ax.get_yticks())  # alike, as the scales are
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
        legend_above(ax)
        drawn.append(fig)
    return Panels(drawn)
