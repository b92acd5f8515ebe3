"""Show how far LoRA's first step goes at each rank: eight arrows, and the switches that make them equal."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument, arrow
from lowrank_tutor.kit.charts.arguments import finite, whole
from lowrank_tutor.kit.charts.style import INK, ORANGE, styled

Floats = NDArray[np.float64]
RANKS = (1, 2, 4, 8, 16, 32, 64, 128)
LEVEL = RANKS.index(8)
OPTIMIZERS = ("descent", "Adam")
SCALINGS = {
    "alpha/r": "\u03b1/r",
    "alpha/sqrt(r)": "\u03b1/√r",
}  # names of lowrank_tutor.caches, and how they are written
STEADY = 1.5
SAY = "With {optimizer}, the factor {factor} and {tokens} tokens, the longest step is {ratio:.3g} times the shortest."
REMARKS = {
    "steady": "The steps are about equal: the rank may change while the learning rate stays.",
    "falls": "A larger rank takes a shorter first step.",
    "rises": "A larger rank takes a longer first step.",
}
WORDS = {
    "title": "An output Wx, and how far the first step moves it, relative to rank 8; the longest one fills the height",
    "rank": "rank r",
    "step": "first step",
    "level": "as far as at r = 8",
    "optimizer": "optimizer",
    "scaling": "factor of BA",
    "tokens": "tokens in the batch",
}


def equal_steps(
    descent: ArrayLike,
    adam: ArrayLike,
    batches: Sequence[int],
    *,
    optimizer: str = "descent",
    scaling: str = "alpha/r",
    tokens: int | None = None,
) -> Instrument:
    r"""Compare the first step of a low-rank update at ranks 1, 2, 4, ..., 128.

    A factor in front of the update multiplies a step of gradient descent by its square, because the gradient has that
    factor, too, and a first step of Adam, which does not depend on the gradient's size, by the factor alone.

    State ``optimizer``, ``scaling`` and ``tokens``; number ``ratio``, of the longest step to the shortest.

    Parameters
    ----------
    descent, adam : array_like, shape (batches, 8)
        How far an output moves at each rank if the factor is 1.
    batches : sequence of int
        How many tokens each batch has.
    optimizer : {"descent", "Adam"}
    scaling : {"alpha/r", "alpha/sqrt(r)"}
    tokens : int, optional
        One of the batches, by default the first.

    Examples
    --------
    >>> steps = [[r**0.5 for r in (1, 2, 4, 8, 16, 32, 64, 128)]]
    >>> round(equal_steps(steps, steps, [1], optimizer="Adam").numbers["ratio"], 2)
    11.31
    """
    sizes = [whole("batches", size, 1, 10**9) for size in batches]
    steps = {}
    for name, given in (("descent", descent), ("adam", adam)):
        steps[name] = finite(name, given, len(sizes), len(RANKS))
        if steps[name].min() <= 0:
            raise ValueError(f"{name} must be numbers above 0, got {steps[name].min():g}")
    tokens = sizes[0] if tokens is None else tokens
    choices = {"optimizer": OPTIMIZERS, "scaling": tuple(SCALINGS), "tokens": sizes}
    state = {"optimizer": optimizer, "scaling": scaling, "tokens": tokens}
    for name, value in state.items():
        if value not in choices[name]:
            raise ValueError(f"{name} must be one of {', '.join(map(str, choices[name]))}, got {value!r}")
    at = sizes.index(tokens)
    s = np.array(RANKS) ** (-1.0 if scaling == "alpha/r" else -0.5)
    lengths = s * steps["adam"][at] if optimizer == "Adam" else s**2 * steps["descent"][at]
    return figure(
        name="equal_steps",
        state=state,
        numbers={"ratio": float(lengths.max() / lengths.min())},
        values={"factor": SCALINGS[scaling]},
        say=SAY,
        remarks=REMARKS,
        data={
            "steps": dict(
                zip(
                    OPTIMIZERS,
                    ([[float(f"{one:.7g}") for one in line] for line in steps[name]] for name in ("descent", "adam")),
                    strict=True,
                )
            ),
            "ranks": RANKS,
            "choices": choices,
            "level": LEVEL,
            "steady": STEADY,
            "written": SCALINGS,
            "words": WORDS,
        },
        readouts={"ratio": ("longest over shortest", ".3g")},
        picture=lambda: _still(lengths),
    )


@styled
def _still(lengths: Floats) -> Figure:
    fig, ax = plt.subplots(layout="constrained", figsize=(5.4, 2.4))
    heights = lengths / lengths.max()
    ax.axhline(heights[LEVEL], color=INK, linewidth=0.8, linestyle="--")
    for i, height in enumerate(heights):
        arrow(ax, (i + 0.6, 0), INK, start=(i, 0))
        arrow(ax, (i + 0.6, height), ORANGE, start=(i + 0.6, 0))
    ax.set(xlim=(-0.1, len(RANKS)), ylim=(-0.05, 1.1), xlabel=WORDS["rank"], title="how far the first step moves Wx")
    ax.set_xticks(np.arange(len(RANKS)) + 0.6, map(str, RANKS))
    ax.set_yticks([])
    return fig
