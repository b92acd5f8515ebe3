"""How do singular values fall, and what does each cut leave out? Spectra, with the error of every cut beside them."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor._checks import check_integer
from lowrank_tutor.plotting.arguments import finite
from lowrank_tutor.plotting.style import (
    GRAY,
    ORANGE,
    TEAL,
    Panels,
    draw_points,
    legend_above,
    panel,
    styled,
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
    s = finite("s", s, None)
    if k is not None:
        check_integer(k, "k", 0, len(s), "len(s)")
    floor = max(s.max(), 1e-300) * 1e-18
    index, drawn = np.arange(1, len(s) + 1), np.maximum(s, floor)
    kept = index <= k if k is not None else s > (level if level is not None else 0)
    fig, ax = panel(height=2.8, left=0.85)
    ax.plot(index[kept], drawn[kept], "o", color=TEAL, label="counted" if level is not None else "kept")
    ax.plot(index[~kept], drawn[~kept], "o", color=GRAY, markerfacecolor="white", label="not")
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
    s = finite("s", s, None)
    check_integer(k, "k", 0, len(s), "len(s)")
    error = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0) / np.sum(s**2))
    (bars, left), (curve, right) = (panel(3.0, 2.5) for _ in range(2))
    index = np.arange(1, len(s) + 1)
    left.bar(index[:k], s[:k], color=TEAL, width=0.8)
    left.bar(index[k:], s[k:], color="white", edgecolor=GRAY, linewidth=0.8, width=0.8)
    left.set(xlabel="number of the value, i", title="singular values", ylim=(0, 1.05 * s[0]), xlim=(0, len(s) + 1))
    right.plot(error, color=GRAY, linewidth=1.2)
    right.set(xlabel="rank kept, k", title="relative error", ylim=(-0.03, 1.05), xlim=(0, len(s)))
    draw_points(right, range(len(error)), {"error": error}, at=k, looks=[(ORANGE, "")])
    return Panels((bars, curve))
