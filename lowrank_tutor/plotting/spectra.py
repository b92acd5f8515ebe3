"""How do singular values fall, and what does each cut leave out? Spectra, with the error of every cut beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.style import (
    GREY,
    LINES,
    ORANGE,
    PURPLE,
    TEAL,
    Panels,
    draw_lines,
    draw_points,
    legend_above,
    panel,
    styled,
    tick_each,
)


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
    fig, ax = panel(height=2.8, left=0.85)
    ax.plot(index[kept], drawn[kept], "o", color=TEAL, label="counted" if level is not None else "kept")
    ax.plot(index[~kept], drawn[~kept], "o", color=GREY, markerfacecolor="white", label="not")
    if k is not None:
        ax.axvline(k + 0.5, color=ORANGE, linewidth=1)
    if level is not None:
        ax.axhline(level, color=ORANGE, linewidth=1)
        ax.set_ylim(s.max() * 1e-17, s.max() * 5)  # the same for every level, so that only the line moves
    ax.set(yscale="log", xlabel="number of the value, i", ylabel="singular value", title=title)
    legend_above(ax)
    return fig


@styled
def spectrum_cut(s: ArrayLike, k: int) -> Panels:
    """Show a spectrum with its cut after ``k``, and the relative error of every cut.

    Parameters
    ----------
    s : array_like, shape (r,)
        Singular values, largest first.
    k : int
        The rank kept.

    Returns
    -------
    Panels
        The spectrum; the error.
    """
    s = np.asarray(s, dtype=float)
    error = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0) / np.sum(s**2))
    (bars, left), (curve, right) = (panel(3.0, 2.5) for _ in range(2))
    index = np.arange(1, len(s) + 1)
    left.bar(index[:k], s[:k], color=TEAL, width=0.8)
    left.bar(index[k:], s[k:], color="white", edgecolor=GREY, linewidth=0.8, width=0.8)
    left.set(xlabel="number of the value, i", title="singular values", ylim=(0, 1.05 * s[0]), xlim=(0, len(s) + 1))
    right.plot(error, color=GREY, linewidth=1.2)
    right.set(xlabel="rank kept, k", title="relative error", ylim=(-0.03, 1.05), xlim=(0, len(s)))
    draw_points(right, range(len(error)), {"error": error}, at=k, looks=[(ORANGE, "")])
    return Panels((bars, curve))


@styled
def denoise_cut(s: ArrayLike, errors: ArrayLike, k: int, threshold: float) -> Panels:
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
    Panels
        The spectrum; the error, on an axis up to 1.8.
    """
    s, errors = np.asarray(s), np.asarray(errors)
    (values, left), (curve, right) = (panel(3.0, 2.7) for _ in range(2))
    index = np.arange(1, len(s) + 1)
    left.plot(index[:k], s[:k], "o", color=TEAL)
    left.plot(index[k:], s[k:], "o", color=GREY, markerfacecolor="white")
    left.axhline(threshold, color=PURPLE, linewidth=1.2, linestyle="--", label="threshold")
    left.set(xlabel="number of the value, i", title="noisy singular values", ylim=(0, None))
    right.plot(errors, color=GREY, linewidth=1.2)
    best = int(np.argmin(errors))
    right.axvline(best, color=TEAL, linewidth=1, linestyle=":", label=f"best k = {best}")
    right.set(xlabel="rank kept, k", title="error against the truth", ylim=(0, 1.8))
    draw_points(right, range(len(errors)), {"error": errors}, at=k, looks=[(ORANGE, "")])
    legend_above(left)
    legend_above(right)
    return Panels((values, curve))


@styled
def spectra_and_errors(spectra: Mapping[str, ArrayLike], x: ArrayLike, lines: Mapping[str, ArrayLike]) -> Panels:
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
    Panels
        The spectra; the errors.
    """
    (values, left), (curve, right) = panel(3.0, 2.9, left=0.6), panel(3.0, 2.9)
    for (name, s), (color, style) in zip(spectra.items(), LINES, strict=False):
        s = np.asarray(s, dtype=float)
        left.plot(np.arange(1, len(s) + 1), np.maximum(s / s[0], 1e-17), linestyle=style, color=color, label=name)
    left.set(yscale="log", xlabel="number of the value, i", title="singular values", ylim=(3e-17, 3))
    draw_lines(right, x, lines, looks=LINES[1:], marker="o", markersize=4)
    right.set(xlabel="rank kept, k", title="error of the output", xscale="log", ylim=(-0.03, 1.25))
    tick_each(right, x)
    legend_above(left)
    legend_above(right)
    return Panels((values, curve))
