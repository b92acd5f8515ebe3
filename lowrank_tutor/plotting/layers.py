"""What does one layer add? Pictures as sums of layers, with what each layer is made of and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_rank
from lowrank_tutor.plotting.arguments import finite
from lowrank_tutor.plotting.style import (
    GRAY,
    ORANGE,
    TEAL,
    VIOLET,
    WIDTH,
    Panels,
    draw_points,
    legend_above,
    panel,
    photograph,
    styled,
)


@styled
def layers_and_sums(u: ArrayLike, s: ArrayLike, vt: ArrayLike, ks: Sequence[int]) -> Figure:
    """Show some layers of a picture, and below each the sum of all layers up to it with its relative error.

    Parameters
    ----------
    u, s, vt : array_like, shapes (m, r), (r,), (r, n)
        The picture's singular value decomposition; its gray values go from 0 to 1.
    ks : sequence of int
        Which layers, counted from 1.

    Returns
    -------
    matplotlib.figure.Figure
    """
    s = finite("s", s, None)
    u, vt = finite("u", u, None, len(s)), finite("vt", vt, len(s), None)
    for k in ks:
        check_rank(k, s.shape, "each of ks")
    error = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0) / np.sum(s**2))  # from the spectrum alone
    side = WIDTH / len(ks)
    fig, axes = plt.subplots(2, len(ks), figsize=(WIDTH, 2 * side + 0.7), layout="none")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.08, wspace=0.06, hspace=0.25)
    for (above, below), k in zip(axes.T, ks, strict=True):
        alone = s[k - 1] * np.outer(u[:, k - 1], vt[k - 1])
        limit = np.abs(alone).max()
        above.imshow(alone, cmap="RdBu_r", vmin=-limit, vmax=limit)
        below.imshow((u[:, :k] * s[:k]) @ vt[:k], vmin=0, vmax=1)
        above.set_title(f"layer {k}", pad=3)
        below.set_title("1 layer" if k == 1 else f"sum of {k}", pad=3)
        below.text(0.5, -0.05, f"error {error[k]:.0%}", ha="center", va="top", transform=below.transAxes)
        for ax in (above, below):
            ax.set_axis_off()
    return photograph(fig)


@styled
def above_level(s: ArrayLike, level: float, *, title: str, lowest: float) -> Figure:
    """Show singular values on a logarithmic axis and how many of them lie above a level.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values, largest first, all positive.
    level : float
        Values above it count.
    title : str
        Whose values they are.
    lowest : float
        Lower end of the vertical axis; the upper end is ``4 * s[0]``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    s = finite("s", s, None)
    index, counted = np.arange(1, len(s) + 1), s > level
    fig, ax = panel(3.1, left=0.56)
    ax.plot(index[counted], s[counted], "o", color=TEAL)
    ax.plot(index[~counted], s[~counted], "o", color=GRAY, markerfacecolor="white")
    ax.axhline(level, color=ORANGE, linewidth=1.2)
    ax.set(yscale="log", xlabel="number of the value, i", title=f"{title}: {counted.sum()} count")
    ax.set_ylim(lowest, 4 * s[0])
    return fig


@styled
def numbers_and_direction(numbers: ArrayLike, direction: ArrayLike, k: int) -> Figure:
    """Show the direction that number ``k`` belongs to, and the numbers of one image as bars, ``k`` of them filled.

    Parameters
    ----------
    numbers : array_like, shape (r,)
        The image's coordinates along all directions.
    direction : array_like, shape (64,)
        Direction ``k``, as an image of 8 x 8 pixels.
    k : int
        How many numbers are kept, at least 1.

    Returns
    -------
    matplotlib.figure.Figure
    """
    numbers, direction = finite("numbers", numbers, None), finite("direction", direction, 64)
    check_rank(k, numbers.shape)
    width, height = 2.4, 1.75
    fig, ax = panel(width, height, left=1.42, right=0.08, top=0.32, bottom=0.3)
    index = np.arange(1, len(numbers) + 1)
    ax.bar(index[: k - 1], numbers[: k - 1], color=TEAL)
    ax.bar(k, numbers[k - 1], color=ORANGE)
    ax.bar(index[k:], numbers[k:], color="white", edgecolor=GRAY, linewidth=0.4)
    ax.set(title="first digit", xlim=(0, len(numbers) + 1), xticks=[i for i in (1, 20, 40, 60) if i <= len(numbers)])
    side = 0.98  # inches
    low = height - 0.32 - side  # both begin at one height, and so do their titles
    image = fig.add_axes((0.02 / width, low / height, side / width, side / height))
    limit = np.abs(direction).max()
    image.imshow(direction.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    image.set_axis_off()
    image.set_title(f"direction {k}")
    return fig


@styled
def gray_picture(matrix: ArrayLike, scale: tuple[float, float], title: str) -> Figure:
    """Show a matrix as a small picture.

    Parameters
    ----------
    matrix : array_like, shape (m, n)
        The matrix.
    scale : (float, float)
        What is drawn black and what white.
    title : str
        A word or two.

    Returns
    -------
    matplotlib.figure.Figure
    """
    matrix = finite("matrix", matrix, None, None)
    fig, ax = panel(1.62, 1.91, left=0.03, right=0.03, bottom=0.03)
    ax.imshow(matrix, vmin=scale[0], vmax=scale[1], interpolation="nearest", aspect="auto")
    ax.set(title=title)
    ax.set_axis_off()
    return photograph(fig)


@styled
def noise_cut(
    signal: ArrayLike, noisy: ArrayLike, cut: ArrayLike, s: ArrayLike, errors: ArrayLike, k: int, threshold: float
) -> Panels:
    """Show a signal in noise before and after a cut, the noisy spectrum, and the error of every cut.

    Parameters
    ----------
    signal, noisy, cut : array_like, shape (m, n)
        The matrices, drawn on the scale of the signal.
    s : array_like, shape (r,)
        Singular values of the noisy matrix.
    errors : array_like, shape (number of cuts + 1,)
        Relative error against the signal when 0, 1, 2, ... values are kept.
    k : int
        The number of values kept.
    threshold : float
        Values above it are kept by the rule that is shown.

    Returns
    -------
    Panels
        The signal above the noisy matrix; the cut matrix above what it has wrong; the spectrum; the error, up to 180%.
    """
    s, errors, signal = finite("s", s, None), finite("errors", errors, None), finite("signal", signal, None, None)
    noisy, cut = finite("noisy", noisy, *signal.shape), finite("cut", cut, *signal.shape)
    index, best = np.arange(1, len(s) + 1), int(np.argmin(errors))
    values, left = panel(1.8, 2.9, left=0.4, right=0.1)
    left.plot(index[s > threshold], s[s > threshold], "o", color=TEAL)
    left.plot(index[s <= threshold], s[s <= threshold], "o", color=GRAY, markerfacecolor="white")
    left.axhline(threshold, color=VIOLET, linewidth=1.2, linestyle="--", label="threshold")
    left.set(xlabel="value number i", title="singular values", ylim=(0, None))
    curve, right = panel(1.8, 2.9, left=0.55, right=0.1)
    right.plot(errors, color=GRAY, linewidth=1.2)
    right.axvline(best, color=TEAL, linewidth=1.2, linestyle=":", label=f"least at {best}")
    right.set(xlabel="rank kept, k", title="error", ylim=(0, 1.8))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    draw_points(right, range(len(errors)), {"error": errors}, at=k, looks=[(ORANGE, "")])
    legend_above(left)
    legend_above(right)
    limit = float(np.abs(signal).max())
    before = _two_matrices({"signal": signal, "with noise": noisy}, limit)
    after = _two_matrices({"after the cut": cut, "what is wrong": cut - signal}, limit)
    return Panels((before, after, values, curve))


def _two_matrices(named: Mapping[str, np.ndarray], limit: float) -> Figure:
    few_colors = plt.get_cmap("PuOr", 15)  # noise in few colors can be kept without loss (explore/page.py)
    fig, axes = plt.subplots(2, 1, figsize=(1.3, 2.9), layout="none")
    fig.subplots_adjust(left=0.02, right=0.98, top=0.9, bottom=0.02, hspace=0.24)
    for ax, (name, matrix) in zip(axes, named.items(), strict=True):
        ax.imshow(matrix, cmap=few_colors, vmin=-limit, vmax=limit, interpolation="nearest", aspect="auto")
        ax.set_title(name, pad=4)
        ax.set_axis_off()
    return fig
