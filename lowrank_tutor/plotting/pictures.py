"""What is left of a picture? Photographs, digits, weights and small matrices beside what a few numbers make of them."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.style import GREY, HIDDEN, ORANGE, TEAL, draw_lines, panels, styled, tick_each


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
    fig = plt.figure(figsize=(7, max(2.6, 0.55 * len(rows))), layout="none")
    _image_rows(fig, rows, 0.55, (0, 16))
    ax = fig.add_axes((0.64, 0.16, 0.35, 0.75))
    draw_lines(ax, x, lines, at=at)
    for dotted in (line for line in ax.lines if line.get_linestyle() == ":"):
        dotted.set_zorder(3)  # dots hide little
    ax.set(xlabel="k", title="relative error", ylim=ylim)
    ax.legend(loc="upper right")
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
    weights, approx = np.asarray(weights), np.asarray(approx)
    fig, (left, middle, right) = panels(3, height=2.5, width_ratios=(1, 1, 1.35), left=0.005, right=0.985, wspace=0.2)
    highest = float(np.quantile(weights, 0.99))
    for ax, image, title in ((left, weights, "exact weights"), (middle, approx, f"through k = {at:g}")):
        ax.imshow(image, cmap="gray_r", vmin=0, vmax=highest, interpolation="nearest")
        ax.set(title=title, xticks=[], yticks=[], xlabel="keys")
    draw_lines(right, x, lines, at=at)
    right.set(xlabel="k", title="relative error", xscale="log", ylim=(-0.04, 2.4))
    tick_each(right, x)
    right.legend(loc="upper right")
    return fig
