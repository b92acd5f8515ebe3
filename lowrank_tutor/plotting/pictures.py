"""What is left of a picture? Photographs, digits, weights and small matrices beside what a few numbers make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_integer
from lowrank_tutor.plotting.arguments import finite, named
from lowrank_tutor.plotting.style import (
    GRAY,
    HIDDEN,
    LINES,
    ORANGE,
    TEAL,
    TITLE,
    WIDTH,
    Panels,
    draw_image,
    draw_lines,
    draw_points,
    legend_above,
    panel,
    photograph,
    sheet,
    styled,
    tick_each,
)


def _mark_cut(ax: Axes, s: np.ndarray, k: int) -> None:
    """Singular values that are kept, those that are cut, and the line between them."""
    index = np.arange(1, len(s) + 1)
    ax.plot(index[:k], s[:k], color=TEAL)
    ax.plot(index[max(k - 1, 0) :], s[max(k - 1, 0) :], color=GRAY, linewidth=1)
    ax.fill_between(index[:k], s[:k], np.min(s[s > 0], initial=1e-16), color=TEAL, alpha=0.15, linewidth=0)
    ax.axvline(k + 0.5, color=ORANGE, linewidth=1)


@styled
def photo_cut(photo: ArrayLike, approx: ArrayLike, s: ArrayLike, k: int) -> Panels:
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
    Panels
        The photograph; what is left out, red where the former is too dark and blue where it is too bright; the
        spectrum. ``photo_cut(...)[::2]`` shows the first and the last alone.
    """
    photo, s = finite("photo", photo, None, None), finite("s", s, None)
    approx = finite("approx", approx, *photo.shape)
    check_integer(k, "k", 0, len(s), "len(s)")
    left = _picture(approx, f"rank {k}", width=2.0, vmin=0, vmax=1)
    middle = _picture(photo - approx, "what is left out", width=2.0, cmap="RdBu_r", vmin=-0.5, vmax=0.5)
    right, ax = panel(1.9, float(left.get_figheight()), left=0.52)
    _mark_cut(ax, s, k)
    lowest = np.min(s[s > 0], initial=s[0])
    ax.set(xscale="log", yscale="log", xlabel="number i", title="singular values", ylim=(lowest / 2, 2 * s[0]))
    return Panels((left, middle, right))


def _picture(image: np.ndarray, title: str, *, width: float = 2.2, below: float = 0.03, **look: Any) -> Figure:
    """Draw an image over the whole width of a figure, under its title."""
    rows, columns = image.shape
    side = width - 0.06
    fig, ax = panel(width, side * rows / columns + 0.3 + below, left=0.03, right=0.03, top=0.3, bottom=below)
    ax.imshow(image, aspect="auto", **look)
    ax.set(title=title, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    return photograph(fig)


@styled
def equation(*parts: ArrayLike | str, names: Sequence[str] = (), limit: float | None = None) -> Figure:
    """Draw matrices with their entries and the signs between them, such as ``equation(a, "=", c, "@", f)``.

    Parameters
    ----------
    *parts : array_like of shape (m, n), or str
        Matrices in the order of the formula, and the signs between them; ``"@"`` is drawn as mathematics writes it,
        one matrix beside the other. At most nine columns of numbers can be read on a phone.
    names : sequence of str, optional
        What is written above each matrix, in their order; ``""`` for nothing.
    limit : float, optional
        The absolute value with the darkest color, by default the largest of all entries; give it where a slider must
        not change the color of a number.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shapes = [(1, 0.25 if p == "@" else 0.5) if isinstance(p, str) else np.shape(p) for p in parts]
    for shape in shapes:
        if len(shape) != 2:
            raise ValueError(f"parts must be matrices (two axes) or signs, got shape {shape}")
    parts = tuple(p if isinstance(p, str) else finite("parts", p, None, None) for p in parts)
    matrices = [p for p in parts if not isinstance(p, str)]
    largest = max(float(np.abs(matrix).max()) for matrix in matrices)
    limit = largest if limit is None else limit
    above = iter([*names, *[""] * (len(matrices) - len(names))])
    height, width = max(shape[0] for shape in shapes), sum(shape[1] for shape in shapes)
    unit = min(0.5, (WIDTH - 0.1) / width)
    head = 0.25 if any(names) else 0.0
    fig = plt.figure(figsize=(unit * width + 0.1, unit * height + 0.1 + head), layout="none")
    size, at = fig.get_size_inches(), 0.05
    for part, (rows, columns) in zip(parts, shapes, strict=True):
        wide, high = unit * columns, unit * rows
        low = 0.05 + unit * (height - rows) / 2
        ax = fig.add_axes((at / size[0], low / size[1], wide / size[0], high / size[1]))
        ax.set_axis_off()
        at += wide
        if isinstance(part, str):
            ax.text(0.5, 0.5, "" if part == "@" else part, ha="center", va="center", fontsize=16)
            continue
        # Pale, so that entries stay legible.
        ax.imshow(np.asarray(part, float), cmap="PuOr", vmin=-1.6 * limit, vmax=1.6 * limit, aspect="auto")
        for (i, j), entry in np.ndenumerate(np.asarray(part, dtype=float)):
            seen = entry if abs(entry) > 1e-12 * largest else 0.0  # what rounding leaves of a zero
            ax.text(j, i, f"{seen:.3g}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center")
        ax.text(0.5, 1, next(above), ha="center", va="bottom", transform=ax.transAxes)
    return fig


@styled
def digits_cut(digits: ArrayLike, approx: ArrayLike, explained: ArrayLike, k: int) -> Panels:
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
    Panels
        The digits above their approximations; the share.
    """
    digits, explained = finite("digits", digits, None, 64), finite("explained", explained, None)
    approx = finite("approx", approx, *digits.shape)
    check_integer(k, "k", 0, len(explained), "len(explained)")
    width, top, below = 3.9, 0.27, 0.35
    side = min(width / len(digits), 0.55)  # two rows fit
    images, ax = sheet(width, 1.75)
    titles = ("the digits, 64 numbers each", f"from {k} number{'s' if k > 1 else ''} each")
    for row, (shown, title) in enumerate(zip((digits, approx), titles, strict=True)):
        y = -top - row * (side + below)
        ax.text(0.02, y + 0.02, title, **TITLE)
        for column, image in enumerate(shown):
            corner = (column * side + 0.03 * side, y)
            draw_image(ax, image.reshape(8, 8), corner, (0.94 * side, 0.94 * side), cmap="gray_r", vmin=0, vmax=16)
    curve, ax = panel(2.3, 1.75, left=0.55)
    total = np.concatenate([[0], np.cumsum(explained)])
    ax.plot(total, color=GRAY, linewidth=1)
    ax.plot(total[: k + 1], color=TEAL)
    ax.set(xlabel="components kept", title="variance explained", ylim=(0, 1.03), xlim=(0, len(total) - 1))
    draw_points(ax, range(len(total)), {"": total}, at=k, looks=[(ORANGE, "")])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return Panels((images, curve))


def _image_rows(rows: Mapping[str, ArrayLike], width: float, scale: tuple[float, float] | None) -> Figure:
    """Draw images of 8 x 8 pixels, a row after the other, each with its name at the left."""
    rows = named("rows", rows, None, 64, gaps=True)
    number = len(next(iter(rows.values())))
    words = 0.2 + 0.078 * max(map(len, rows))  # inches
    side = (width - words) / number
    fig, ax = sheet(width, side * len(rows) + 0.04)
    hidden = plt.get_cmap("gray_r").with_extremes(bad=HIDDEN)  # seen where a pixel is NaN
    for row, (name, images) in enumerate(rows.items()):
        y = -0.02 - side * row
        ax.text(words - 0.09, y - side / 2, name, ha="right", va="center")
        for column, image in enumerate(images):
            low, high = scale or (float(np.nanmin(image)), float(np.nanmax(image)))
            corner = (words + column * side, y)
            draw_image(ax, image.reshape(8, 8), corner, (0.94 * side, 0.94 * side), cmap=hidden, vmin=low, vmax=high)
    return fig


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
    return _image_rows(rows, WIDTH, scale)


@styled
def images_and_curves(
    rows: Mapping[str, ArrayLike], x: ArrayLike, lines: Mapping[str, ArrayLike], *, at: float, ylim: tuple[float, float]
) -> Panels:
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
    Panels
        The images; the errors.
    """
    images = _image_rows(rows, 3.7, (0, 16))
    curve, ax = panel(2.5, max(2.6, float(images.get_figheight())), left=0.45)
    looks = (LINES[1], LINES[0], *LINES[2:])  # orange first, as the pixels that are hidden
    draw_lines(ax, x, lines, looks=looks)
    ax.set(xlabel="k", title="relative error", ylim=ylim, xlim=(np.min(x), np.max(x)))
    draw_points(ax, x, lines, at=at, looks=looks)
    legend_above(ax)
    return Panels((images, curve))


@styled
def attention_cut(
    weights: ArrayLike, approx: ArrayLike, x: ArrayLike, lines: Mapping[str, ArrayLike], *, at: float
) -> Panels:
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
    Panels
        The weights, dark where a query looks; their approximation; the errors. A row is a query, a column a key.
    """
    weights = finite("weights", weights, None, None)
    approx = finite("approx", approx, *weights.shape)
    few_grays = plt.get_cmap("gray_r", 15)  # which pictures keep without loss (explore/page.py)
    look = {"cmap": few_grays, "vmin": 0, "vmax": float(np.quantile(weights, 0.99)), "interpolation": "nearest"}
    pictures = [
        _picture(image, title, width=2.05, below=0.25, **look)
        for image, title in ((weights, "exact weights"), (approx, f"through k = {at:g}"))
    ]
    for picture in pictures:
        picture.axes[0].set_xlabel("keys across, queries down", labelpad=4)
    curve, ax = panel(2.1, float(pictures[0].get_figheight()), left=0.4, right=0.1, top=0.3)
    draw_lines(ax, x, lines)
    ax.set(xlabel="k", title="relative error", xscale="log", ylim=(-0.04, 2.4))
    tick_each(ax, x, at_most=4)
    draw_points(ax, x, lines, at=at)
    legend_above(ax)
    return Panels((*pictures, curve))
