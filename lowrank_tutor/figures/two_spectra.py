"""Compare a cut of weights with a cut for their inputs: two skylines, one cut, and the inputs in between."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite, number, whole
from lowrank_tutor.kit.charts.style import GRAY, ORANGE, TEAL, styled

Floats = NDArray[np.float64]
PULLED = 10  # the input whose bar has the handle: at decay 1 it is a tenth of the first
STEEPEST = 2.0
SAY = (
    "Rank {k} of {n}; input i has size 1/i to the power of {decay:.2f}. The error of the outputs is {plain:.0%} after "
    "the best cut of the weights, and {weighted:.0%} after the best cut for these inputs."
)
REMARKS = {
    "alike": "All inputs have the same size, so both cuts are the same.",
    "all": "Nothing is cut.",
}
WORDS = {
    "label": "Singular values of the weights, sizes of the inputs, and singular values of inputs times weights",
    "weights": "the weights W",
    "inputs": "the inputs",
    "product": "inputs times weights",
    "off": "error of the outputs ",
    "pull": "pull this one down",
    "pulled": "size of input direction 10",
    "cut": "rank kept",
    "of": " of ",
    "direction": "direction",
}


def two_spectra(table: ArrayLike, k: int = 8, decay: float = 0.0) -> Instrument:
    r"""Cut weights for their own sake, and for the inputs that they meet.

    Input direction i has the size :math:`i^{-\text{decay}}`, so the outputs are those of the table whose row i is
    :math:`i^{-\text{decay}}` times row i of the weights. The best cut for the inputs is a cut of that table.

    State ``k`` and ``decay``; numbers ``plain`` and ``weighted``, the relative errors of the outputs after the two
    cuts.

    Parameters
    ----------
    table : array_like, shape (n, n)
        Weights, a row for each input direction; n from 10 to 64, and not of lower rank.
    k : int
        The rank kept at first.
    decay : float
        How fast the inputs shrink at first, from 0 to 2.

    Examples
    --------
    >>> two_spectra(np.diag(np.arange(12, 0, -1)), k=6, decay=1).alt[:29]
    'Rank 6 of 12; input i has siz'
    """
    w = finite("table", table, None, None)
    n = len(w)
    if w.shape != (n, n) or not PULLED <= n <= 64:
        raise ValueError(f"table must be square, of {PULLED} to 64 rows, got shape {w.shape}")
    w = np.array([[float(f"{one:.3g}") for one in row] for row in w])  # as the browser gets it
    if np.linalg.matrix_rank(w) < n:
        raise ValueError(f"table must have rank {n}, got {np.linalg.matrix_rank(w)}")
    k, decay = whole("k", k, 1, n), number("decay", decay, 0, STEEPEST)
    plain, weighted = errors(w, k, decay)
    return figure(
        name="two_spectra",
        parts=("linalg",),
        state={"k": k, "decay": decay},
        numbers={"plain": plain, "weighted": weighted},
        values={"n": n},
        say=SAY,
        remarks=REMARKS,
        data={"w": w.tolist(), "pulled": PULLED, "steepest": STEEPEST, "words": WORDS},
        readouts={"plain": ("error, cut for the weights", ".1%"), "weighted": ("error, cut for the inputs", ".1%")},
        picture=lambda: _still(w, k, decay, (plain, weighted)),
    )


def errors(w: Floats, k: int, decay: float) -> tuple[float, float]:
    """Return the relative errors of the outputs after the best cut of the weights, and after that for the inputs."""
    sizes = np.arange(1, len(w) + 1.0)[:, None] ** -decay
    u, s, _ = np.linalg.svd(w)
    missed = float(np.linalg.norm(sizes * u[:, k:] * s[k:]))
    values = np.linalg.svd(sizes * w, compute_uv=False)
    size = float(np.linalg.norm(values))
    return missed / size, float(np.linalg.norm(values[k:])) / size


@styled
def _still(w: Floats, k: int, decay: float, off: tuple[float, float]) -> Figure:
    fig, axes = plt.subplots(3, 1, layout="constrained", figsize=(5.4, 3.6), sharex=True)
    at = np.arange(1, len(w) + 1)
    sizes = at**-decay
    values = [np.linalg.svd(one, compute_uv=False) for one in (w, sizes[:, None] * w)]
    bars = (values[0] / values[0][0], sizes, values[1] / values[1][0])
    said = (f"{WORDS['off']}{off[0]:.0%}", "", f"{WORDS['off']}{off[1]:.0%}")
    for ax, heights, title, words in zip(
        axes, bars, (WORDS["weights"], WORDS["inputs"], WORDS["product"]), said, strict=True
    ):
        ax.bar(at, heights, color=[TEAL if i <= k else GRAY for i in at])
        ax.axvline(k + 0.5, color=ORANGE)
        ax.set_title(title)
        ax.text(1, 0.95, words, color=ORANGE, ha="right", va="top", transform=ax.transAxes)
        ax.set(yticks=[], ylim=(0, 1.3))
    axes[-1].set_xlabel("direction")
    return fig
