"""Do layers of attention make tokens alike? Two clouds of tokens, without skips and with them."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite, whole
from lowrank_tutor.kit.charts.style import TEAL, styled

Floats = NDArray[np.float64]
PANELS = ("attention alone", "with skips")
SAY = (
    "After layer {layers:.0f}, with matrices of size {size}, the relative distance of the tokens from their mean is "
    "{alone:.2g} with attention alone and {skips:.2g} with skips."
)
REMARKS = {
    "alike": "Attention alone has made the tokens alike, to all digits.",
    "apart": "With skips the tokens stay apart.",
}
ALIKE = 1e-15  # a double cannot tell them apart
WORDS = {
    "panels": [f"{name}, a dot for each token" for name in PANELS],
    "layers": "layers",
    "size": "size of the matrices",
    "play": "Play all layers",
    "apart": "{value:.2g} apart",
    "alike": "alike to all digits",
}


def drift(tokens: ArrayLike, sizes: Sequence[float], layers: int = 0, size: float | None = None) -> Instrument:
    r"""Let layers act on tokens, and watch the tokens drift together.

    A dot is a token less the mean of all, over the norm of all tokens, seen along the two directions in which the
    first tokens vary most.

    State ``layers`` and ``size``; numbers ``alone`` and ``skips``, the norm of the tokens less their mean over the norm
    of the tokens after the last full layer.

    Parameters
    ----------
    tokens : array_like, shape (sizes, 2, layers + 1, n, d)
        For each size of the matrices: the tokens after every layer, without skips and with them; n is 2 or more.
    sizes : sequence of float
        The sizes, as many as ``tokens`` has.
    layers : int
        How many layers have acted at first.
    size : float, optional
        The size at first, by default the middle one.
    """
    all_sizes = finite("sizes", sizes, None).tolist()
    given = finite("tokens", tokens, len(all_sizes), 2, None, None, None)
    if given.shape[3] < 2 or given.shape[4] < 2 or given.shape[2] < 2:
        raise ValueError(f"tokens must have two layers, tokens and numbers at least, got shape {given.shape}")
    size = all_sizes[len(all_sizes) // 2] if size is None else size
    if size not in all_sizes:
        raise ValueError(f"size must be one of {all_sizes}, got {size!r}")
    layers = whole("layers", layers, 0, given.shape[2] - 1)
    places, apart = clouds(given)
    shown = [float(f"{one:.3g}") if one >= ALIKE else 0.0 for one in apart.ravel()]  # the rest is rounding
    apart = np.array(shown).reshape(apart.shape)
    reach = float(np.abs(places).max()) or 1.0
    at = all_sizes.index(size)
    return figure(
        name="drift",
        state={"layers": layers, "size": float(size)},
        numbers=dict(zip(("alone", "skips"), apart[at, :, layers].tolist(), strict=True)),
        say=SAY,
        remarks=REMARKS,
        data={
            "places": _digits(500 + 499 * places / reach),
            "reach": reach,
            "apart": apart.tolist(),
            "sizes": all_sizes,
            "same": ALIKE,
            "room": REMARKS["apart"],
            "words": WORDS,
        },
        readouts={"alone": ("apart, attention alone", ".2g"), "skips": ("apart, with skips", ".2g")},
        picture=lambda: _still(places[at, :, layers]),
    )


def clouds(tokens: Floats) -> tuple[Floats, Floats]:
    """Return places of the tokens in the plane (..., n, 2), and how far apart they are (...)."""
    centered = tokens - tokens.mean(axis=-2, keepdims=True)
    norms = np.linalg.norm(tokens, axis=(-2, -1), keepdims=True)
    first = np.linalg.svd(centered[:, :1, :1], full_matrices=False).Vh[..., :2, :]
    places = centered / np.where(norms > 0, norms, 1) @ np.swapaxes(first, -2, -1)
    apart = np.linalg.norm(centered, axis=(-2, -1)) / np.where(norms > 0, norms, 1)[..., 0, 0]
    return places * np.sqrt(tokens.shape[-2]), apart


def _digits(codes: Floats) -> list[list[list[str]]]:
    """Write numbers from 0 to 999, three digits each: one text for all places after a layer."""
    texts = [
        ["".join(f"{round(one):03}" for one in layer.ravel()) for layer in lines]
        for lines in codes.reshape(-1, *codes.shape[2:])
    ]
    return [texts[i : i + 2] for i in range(0, len(texts), 2)]


@styled
def _still(places: Floats) -> Figure:
    fig, axes = plt.subplots(1, 2, layout="constrained", figsize=(5.4, 2.8))
    reach = 1.1 * max(np.abs(places).max(), 0.1)
    for ax, dots, title in zip(axes, places, PANELS, strict=True):
        ax.plot(*dots.T, "o", color=TEAL, markersize=4)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), title=title, xticks=[], yticks=[])
    return fig
