"""What does it look like? Every figure of the book, drawn in one style.

Each function returns a matplotlib figure that is not registered with pyplot, so that a notebook shows it once, where it
is the last line of a cell. Letters: ``a`` is (m, n); ``s`` its singular values, largest first; ``k`` the rank kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from typing import Any, Literal, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

P = ParamSpec("P")

# Each at least 3 : 1 against white, and 4.5 : 1 where a word is written in it. Lines differ in more than color.
TEAL, ORANGE, PURPLE, GREY, PINK = "#0b6e83", "#b84a00", "#6a4c93", "#757b82", "#b0578a"
GREEN, OCHER, BLUE = "#00795a", "#a06d00", "#2f7fb8"
HIDDEN = "#d0713a"
LINES = ((TEAL, "-"), (ORANGE, "--"), (PURPLE, "-."), ("black", ":"), (PINK, (0, (6, 1, 1, 1, 1, 1))))


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the book's style without changing anybody's settings, and leave no figure open.

    Parameters
    ----------
    draw : callable
        Any function that returns a figure.

    Returns
    -------
    callable
        The same function, styled.
    """

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with as_file(files("lowrank_tutor") / "lowrank.mplstyle") as style, plt.style.context(style):
            figure = draw(*args, **kwargs)
        plt.close(figure)
        return figure

    return wrapped


def _mark_cut(ax: Axes, s: np.ndarray, k: int) -> None:
    """Singular values that are kept, those that are cut, and the line between them."""
    index = np.arange(1, len(s) + 1)
    ax.plot(index[:k], s[:k], color=TEAL)
    ax.plot(index[max(k - 1, 0) :], s[max(k - 1, 0) :], color=GREY, linewidth=1)
    ax.fill_between(index[:k], s[:k], np.min(s[s > 0], initial=1e-16), color=TEAL, alpha=0.15, linewidth=0)
    ax.axvline(k + 0.5, color=ORANGE, linewidth=1)


@styled
def photo_cut(photo: ArrayLike, approx: ArrayLike, s: ArrayLike, k: int) -> Figure:
    """Show a rank-``k`` photograph, what it leaves out, and the spectrum with the cut.

    Parameters
    ----------
    photo, approx : array_like, shape (m, n)
        Gray values from 0 to 1, and their rank-``k`` approximation.
    s : array_like, shape (min(m, n),)
        Singular values of ``photo``.
    k : int
        The rank kept.

    Returns
    -------
    matplotlib.figure.Figure
    """
    photo, approx, s = np.asarray(photo), np.asarray(approx), np.asarray(s)
    fig, (left, middle, right) = plt.subplots(1, 3, layout="none", figsize=(7, 2.8))
    for ax, place in ((left, (0.005, 0.01, 0.31, 0.89)), (middle, (0.33, 0.01, 0.31, 0.89))):
        ax.set_position(place)
        ax.set_anchor("NW")
    right.set_position((0.72, 0.18, 0.275, 0.72))
    left.imshow(approx, vmin=0, vmax=1)
    left.set_title(f"rank {k}")
    middle.imshow(photo - approx, cmap="RdBu_r", vmin=-0.5, vmax=0.5)
    middle.set_title("what is left out")
    for ax in (left, middle):
        ax.set_axis_off()
    _mark_cut(right, s, k)
    lowest = np.min(s[s > 0], initial=s[0])
    right.set(xscale="log", yscale="log", xlabel="i", title="singular values", ylim=(lowest / 2, 2 * s[0]))
    return fig


@styled
def spectrum(s: ArrayLike, k: int | None = None, *, level: float | None = None, title: str = "") -> Figure:
    """Plot singular values on a logarithmic axis, with a cut after ``k`` or at a ``level``.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values, largest first. Zeros are drawn at the lower edge.
    k : int, optional
        The number of values kept.
    level : float, optional
        A horizontal line: values above it count.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    s = np.asarray(s, dtype=float)
    floor = max(s.max(), 1e-300) * 1e-18
    index, drawn = np.arange(1, len(s) + 1), np.maximum(s, floor)
    kept = index <= k if k is not None else s > (level if level is not None else 0)
    fig, ax = plt.subplots(layout="none", figsize=(7, 2.6))
    fig.subplots_adjust(left=0.1, right=0.98, top=0.88, bottom=0.19)
    ax.plot(index[kept], drawn[kept], "o", color=TEAL, label="counted" if level is not None else "kept")
    ax.plot(index[~kept], drawn[~kept], "o", color=GREY, markerfacecolor="white", label="not")
    if k is not None:
        ax.axvline(k + 0.5, color=ORANGE, linewidth=1)
    if level is not None:
        ax.axhline(level, color=ORANGE, linewidth=1)
        ax.set_ylim(s.max() * 1e-17, s.max() * 5)  # the same for every level, so that only the line moves
    ax.set(yscale="log", xlabel="i", ylabel="singular value", title=title)
    ax.legend(loc="upper right")
    return fig


@styled
def equation(*parts: ArrayLike | str) -> Figure:
    """Draw matrices with their entries and the signs between them, such as ``equation(a, "=", c, "@", f)``.

    Parameters
    ----------
    *parts : array_like of shape (m, n), or str
        Matrices in the order of the formula, and the signs between them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shapes = [(1, 0.5) if isinstance(p, str) else np.shape(p) for p in parts]
    limit = max(float(np.abs(np.asarray(p, dtype=float)).max()) for p in parts if not isinstance(p, str))
    height = max(shape[0] for shape in shapes)
    width = sum(shape[1] for shape in shapes)
    unit = min(0.5, 6.6 / width)
    fig, axes = plt.subplots(
        1, len(parts), width_ratios=[shape[1] for shape in shapes], figsize=(unit * width + 0.4, unit * height + 0.2)
    )
    for ax, part in zip(np.atleast_1d(axes), parts, strict=True):
        ax.set_axis_off()
        if isinstance(part, str):
            ax.text(0.5, 0.5, part, ha="center", va="center", fontsize=16, transform=ax.transAxes)
            continue
        matrix = np.asarray(part, dtype=float)
        ax.imshow(matrix, cmap="PuOr", vmin=-1.6 * limit, vmax=1.6 * limit)  # pale, so that entries stay legible
        for (i, j), entry in np.ndenumerate(matrix):
            ax.text(j, i, f"{entry:.3g}", ha="center", va="center")
    return fig


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
def digits_cut(digits: ArrayLike, approx: ArrayLike, explained: ArrayLike, k: int) -> Figure:
    """Show digits, what ``k`` components make of them, and the share of the variance explained.

    Parameters
    ----------
    digits, approx : array_like, shape (number, 64)
        Images of 8 x 8 pixels, a row each, and their approximation.
    explained : array_like, shape (r,)
        Share of the variance that each component explains, largest first.
    k : int
        The number of components kept.

    Returns
    -------
    matplotlib.figure.Figure
    """
    digits, approx = np.asarray(digits), np.asarray(approx)
    fig = plt.figure(figsize=(7, 2.1), layout="none")
    grid = fig.add_gridspec(2, len(digits), left=0.005, right=0.62, top=0.87, bottom=0.01, wspace=0.05, hspace=0.3)
    for row, (images, title) in enumerate(
        ((digits, "the digits, 64 numbers each"), (approx, f"from {k} number{'s' if k > 1 else ''} each"))
    ):
        for column, image in enumerate(images):
            ax = fig.add_subplot(grid[row, column])
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
            ax.set_axis_off()
            if column == 0:
                ax.set_title(title, pad=4)
    ax = fig.add_axes((0.71, 0.22, 0.28, 0.65))
    total = np.concatenate([[0], np.cumsum(explained)])
    ax.plot(total, color=GREY, linewidth=1)
    ax.plot(total[: k + 1], color=TEAL)
    ax.plot(k, total[k], "o", color=ORANGE, markersize=6)
    ax.set(xlabel="components kept", title="variance explained", ylim=(0, 1.03), xlim=(0, len(total) - 1))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return fig


def _image_rows(fig: Figure, rows: Mapping[str, ArrayLike], right: float, scale: tuple[float, float] | None) -> None:
    """Draw images of 8 x 8 pixels between the left edge and ``right``, a named row after the other."""
    number = len(np.asarray(next(iter(rows.values()))))
    grid = fig.add_gridspec(len(rows), number, left=0.19, right=right, top=0.99, bottom=0.01, wspace=0.06, hspace=0.08)
    for row, (name, images) in enumerate(rows.items()):
        for column, image in enumerate(np.asarray(images, dtype=float)):
            ax = fig.add_subplot(grid[row, column])
            ax.set_facecolor(HIDDEN)  # seen where a pixel is NaN
            low, high = scale or (float(np.nanmin(image)), float(np.nanmax(image)))
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=low, vmax=high)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if column == 0:
                ax.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=6)


@styled
def images(rows: Mapping[str, ArrayLike], *, scale: tuple[float, float] | None = None) -> Figure:
    """Show rows of small images, each row with its name.

    Parameters
    ----------
    rows : mapping of str to array_like, shape (number, 64)
        A name and images of 8 x 8 pixels, a row each, as many in each; a pixel that is NaN is drawn in orange.
    scale : (float, float), optional
        What is drawn white and what black; without it, the least and the largest number of each image.

    Returns
    -------
    matplotlib.figure.Figure
    """
    number = len(np.asarray(next(iter(rows.values()))))
    fig = plt.figure(figsize=(7, len(rows) * 5.6 / number), layout="none")
    _image_rows(fig, rows, 0.995, scale)
    return fig


@styled
def images_and_curves(
    rows: Mapping[str, ArrayLike], x: ArrayLike, lines: Mapping[str, ArrayLike], *, at: float, ylim: tuple[float, float]
) -> Figure:
    """Show what several methods make of the same images at one k, beside the error of each over k.

    Parameters
    ----------
    rows : mapping of str to array_like, shape (number, 64)
        A name and images of 8 x 8 pixels with values from 0 to 16; a pixel that is NaN is drawn in orange.
    x : array_like, shape (number,)
        Values of k, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the relative errors of each method; NaN where it has none.
    at : float
        The k of the images.
    ylim : (float, float)
        Ends of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    x = np.asarray(x, dtype=float)
    fig = plt.figure(figsize=(7, max(2.6, 0.55 * len(rows))), layout="none")
    _image_rows(fig, rows, 0.55, (0, 16))
    ax = fig.add_axes((0.64, 0.16, 0.35, 0.75))
    for (name, y), (color, style) in zip(lines.items(), LINES, strict=False):
        y = np.asarray(y, dtype=float)
        ax.plot(x, y, linestyle=style, color=color, label=name, zorder=3 if style == ":" else 2)  # dots hide little
        ax.plot(at, y[x == at], "o", color=color, markersize=7)
    ax.set(xlabel="k", title="relative error", ylim=ylim)
    ax.legend(loc="upper right")
    return fig


@styled
def spectrum_cut(s: ArrayLike, k: int) -> Figure:
    """Show a spectrum with its cut after ``k``, and the relative error of every cut.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values, largest first.
    k : int
        The rank kept.

    Returns
    -------
    matplotlib.figure.Figure
    """
    s = np.asarray(s, dtype=float)
    error = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0) / np.sum(s**2))
    fig, (left, right) = plt.subplots(1, 2, layout="none", figsize=(7, 2.6))
    fig.subplots_adjust(left=0.07, right=0.98, top=0.88, bottom=0.19, wspace=0.22)
    index = np.arange(1, len(s) + 1)
    left.bar(index[:k], s[:k], color=TEAL, width=0.8)
    left.bar(index[k:], s[k:], color="white", edgecolor=GREY, linewidth=0.8, width=0.8)
    left.set(xlabel="i", title="singular values", ylim=(0, 1.05 * s[0]), xlim=(0, len(s) + 1))
    right.plot(error, color=GREY, linewidth=1.2)
    right.plot(k, error[k], "o", color=ORANGE, markersize=7)
    right.set(xlabel="rank kept, k", title="relative error", ylim=(-0.03, 1.05), xlim=(0, len(s)))
    return fig


@styled
def denoise_cut(s: ArrayLike, errors: ArrayLike, k: int, threshold: float) -> Figure:
    """Show a noisy spectrum with a threshold, and the error against the truth for every cut.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values of the noisy matrix.
    errors : array_like, shape (number of cuts + 1,)
        Relative error against the truth when 0, 1, 2, ... values are kept.
    k : int
        The number of values kept.
    threshold : float
        Values above it are kept by the rule that is shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    s, errors = np.asarray(s), np.asarray(errors)
    fig, (left, right) = plt.subplots(1, 2, layout="none", figsize=(7, 2.6))
    fig.subplots_adjust(left=0.07, right=0.98, top=0.88, bottom=0.19, wspace=0.22)
    index = np.arange(1, len(s) + 1)
    left.plot(index[:k], s[:k], "o", color=TEAL)
    left.plot(index[k:], s[k:], "o", color=GREY, markerfacecolor="white")
    left.axhline(threshold, color=PURPLE, linewidth=1.2, linestyle="--")
    left.text(len(s), threshold, "threshold", color=PURPLE, ha="right", va="bottom", fontsize=9)
    left.set(xlabel="i", title="singular values of the noisy matrix", ylim=(0, None))
    right.plot(errors, color=GREY, linewidth=1.2)
    right.plot(k, errors[k], "o", color=ORANGE, markersize=7)
    best = int(np.argmin(errors))
    right.axvline(best, color=TEAL, linewidth=1, linestyle=":")
    right.text(best + 0.3, 0.02, f"best k = {best}", color=TEAL, fontsize=9)
    right.set(xlabel="rank kept, k", title="error against the truth", ylim=(0, 1.3))
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
    fig, ax = plt.subplots(layout="none", figsize=(7, 2.6))
    fig.subplots_adjust(left=0.02, right=0.98, top=0.88, bottom=0.19)
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
    fig, ax = plt.subplots(layout="none", figsize=(7, 2.8))
    fig.subplots_adjust(left=0.09, right=0.98, top=0.88, bottom=0.18)
    if at is not None:
        ax.axvline(at, color=GREY, linewidth=0.8, linestyle=":")  # also where a point lies outside the axes
    for (name, y), (color, style) in zip(lines.items(), LINES, strict=False):
        y = np.asarray(y, dtype=float)
        ax.plot(x, y, linestyle=style, color=color, label=name, marker="o" if len(x) < 10 else "")
        if at is not None:
            ax.plot(at, y[x == at], "o", color=color, markersize=7)
    ax.set(xlabel=xlabel, title=title, xscale=scale[0], yscale=scale[1], ylim=ylim)
    ax.legend(loc=legend or ("best" if at is None else "upper right"))
    return fig


@styled
def attention_cut(
    weights: ArrayLike, approx: ArrayLike, x: ArrayLike, lines: Mapping[str, ArrayLike], *, at: float
) -> Figure:
    """Show weights of attention, what stands in for them, and the error of several ways over the rank kept.

    Parameters
    ----------
    weights, approx : array_like, shape (n, n)
        Weights, and an approximation of them. Both are drawn on one scale, from 0 to the 99th percentile of the first.
    x : array_like, shape (number,)
        Ranks, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the errors of each way.
    at : float
        The rank that the approximation has.

    Returns
    -------
    matplotlib.figure.Figure
    """
    weights, approx, x = np.asarray(weights), np.asarray(approx), np.asarray(x, dtype=float)
    fig, (left, middle, right) = plt.subplots(1, 3, layout="none", figsize=(7, 2.5), width_ratios=(1, 1, 1.35))
    fig.subplots_adjust(left=0.005, right=0.985, top=0.88, bottom=0.19, wspace=0.2)
    for ax, image, title in ((left, weights, "exact weights"), (middle, approx, f"through k = {at:g}")):
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=float(np.quantile(weights, 0.99)), interpolation="nearest")
        ax.set(title=title, xticks=[], yticks=[], xlabel="keys")
    for (name, y), (color, style) in zip(lines.items(), LINES, strict=False):
        y = np.asarray(y, dtype=float)
        right.plot(x, y, linestyle=style, color=color, label=name)
        right.plot(at, y[x == at], "o", color=color, markersize=7)
    right.set(xlabel="k", title="relative error", xscale="log", ylim=(-0.04, 2.4))
    right.set_xticks(x, [f"{value:g}" for value in x])
    right.minorticks_off()
    right.legend(loc="upper right")
    return fig


@styled
def spectra_and_errors(spectra: Mapping[str, ArrayLike], x: ArrayLike, lines: Mapping[str, ArrayLike]) -> Figure:
    """Show spectra, each relative to its largest value, beside errors over the rank kept.

    Parameters
    ----------
    spectra : mapping of str to array_like, shape (r,)
        A name and singular values, largest first.
    x : array_like, shape (number,)
        Ranks, increasing.
    lines : mapping of str to array_like, shape (number,)
        A name and the relative errors at these ranks.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fig, (left, right) = plt.subplots(1, 2, layout="none", figsize=(7, 2.6))
    fig.subplots_adjust(left=0.08, right=0.985, top=0.88, bottom=0.18, wspace=0.2)
    for (name, s), (color, style) in zip(spectra.items(), LINES, strict=False):
        s = np.asarray(s, dtype=float)
        left.plot(np.arange(1, len(s) + 1), np.maximum(s / s[0], 1e-17), linestyle=style, color=color, label=name)
    left.set(yscale="log", xlabel="i", title="singular values", ylim=(3e-17, 3))
    left.legend(loc="center right")
    x = np.asarray(x, dtype=float)
    for (name, y), (color, style) in zip(lines.items(), LINES[1:], strict=False):
        y = np.asarray(y, dtype=float)
        right.plot(x, y, linestyle=style, color=color, label=name, marker="o", markersize=4)
    right.set(xlabel="k", title="relative error of the output", xscale="log", ylim=(-0.03, 1.25))
    right.set_xticks(x, [f"{value:g}" for value in x])
    right.minorticks_off()
    right.legend(loc="upper right")
    return fig
