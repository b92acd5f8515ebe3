"""How do singular values fall, and what does each cut leave out? Spectra, with the error of every cut beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.plotting.style import GREY, LINES, ORANGE, PURPLE, TEAL, draw_lines, panels, styled, tick_each


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
    fig, (ax,) = panels(left=0.1)
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
    fig, (left, right) = panels(2, wspace=0.22)
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
    fig, (left, right) = panels(2, wspace=0.22)
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
    fig, (left, right) = panels(2, left=0.08, right=0.985, bottom=0.18, wspace=0.2)
    for (name, s), (color, style) in zip(spectra.items(), LINES, strict=False):
        s = np.asarray(s, dtype=float)
        left.plot(np.arange(1, len(s) + 1), np.maximum(s / s[0], 1e-17), linestyle=style, color=color, label=name)
    left.set(yscale="log", xlabel="i", title="singular values", ylim=(3e-17, 3))
    left.legend(loc="center right")
    draw_lines(right, x, lines, looks=LINES[1:], marker="o", markersize=4)
    right.set(xlabel="k", title="relative error of the output", xscale="log", ylim=(-0.03, 1.25))
    tick_each(right, x)
    right.legend(loc="upper right")
    return fig
