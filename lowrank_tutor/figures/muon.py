"""Show what Muon does to the singular values of an update: bars that walk toward one, round by round."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import finite, whole
from lowrank_tutor.kit.charts.style import GRAY, TEAL, styled

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of Jordan et al. (2024)
BARS, ROUNDS = 10, 6
LOW, HIGH = 0.6818, 1.1344  # where five rounds bring what began above a hundredth
START = [2.0**-i / np.sqrt(4 / 3) for i in range(BARS)]
SAY = "Round {rounds}: the tallest bar is {ratio:.3g} times as tall as the shortest."
REMARKS = {
    "band": "All bars stand between 0.68 and 1.13.",
    "zero": "A bar of zero stays zero: no round brings back a direction that the update does not have.",
}
WORDS = {
    "bars": "Ten singular values of an update. Gray lines mark where they stood one round earlier",
    "bar": "singular value ",
    "title": "direction, largest first",
    "height": "singular value",
    "rounds": "rounds",
    "more": "One more round",
}


def muon(rounds: int = 0, spectrum: Sequence[float] = tuple(START)) -> Instrument:
    r"""Push ten singular values toward one, as the optimizer Muon does.

    Each round replaces an update :math:`G` by :math:`aG + bGG^\top G + c(GG^\top)^2G`, which changes a singular value
    :math:`\sigma` to :math:`a\sigma + b\sigma^3 + c\sigma^5` and no direction (Jordan et al. 2024).

    State ``s`` (the values before the first round) and ``rounds``; number ``ratio``, the tallest bar over the shortest
    one that is not zero.

    Parameters
    ----------
    rounds : int
        How many rounds are done at first, from 0 to 6.
    spectrum : sequence of float
        Ten singular values before the first round, each from 0 to 1; a reader may drag them.

    Examples
    --------
    >>> [f"{muon(rounds).numbers['ratio']:.3g}" for rounds in (0, 3, 5)]
    ['512', '17.2', '1.68']
    """
    rounds = whole("rounds", rounds, 0, ROUNDS)
    s = finite("spectrum", spectrum, BARS)
    if s.min() < 0 or s.max() > 1 or not s.any():
        raise ValueError(f"spectrum must be {BARS} numbers from 0 to 1, not all of them 0, got {list(spectrum)!r}")
    after = walk(s, rounds)
    return figure(
        name="muon",
        state={"s": s.tolist(), "rounds": rounds},
        numbers={"ratio": ratio(after)},
        say=SAY,
        remarks=REMARKS,
        data={"coefficients": COEFFICIENTS, "most": ROUNDS, "band": [LOW, HIGH], "words": WORDS},
        readouts={"ratio": ("tallest over shortest", ".3g")},
        picture=lambda: _still(walk(s, rounds - 1) if rounds else s, after, rounds),
    )


def walk(s: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    """Return singular values after some rounds."""
    a, b, c = COEFFICIENTS
    for _ in range(rounds):
        s = a * s + b * s**3 + c * s**5
    return s


def ratio(s: NDArray[np.float64]) -> float:
    """Return the largest value over the least that is not zero."""
    return float(s.max() / s[s > 0].min())


@styled
def _still(before: NDArray[np.float64], after: NDArray[np.float64], rounds: int) -> Figure:
    fig, ax = plt.subplots(layout="constrained", figsize=(5.2, 2.6))
    places = np.arange(1, BARS + 1)
    ax.axhspan(LOW, HIGH, color=TEAL, alpha=0.1)
    ax.bar(places, before, facecolor="none", edgecolor=GRAY)
    ax.bar(places, after, color=TEAL)
    ax.set(ylim=(0, 1.3), xlabel=WORDS["title"], ylabel=WORDS["height"], title=f"rounds: {rounds}")
    ax.set_yticks([0, LOW, 1, HIGH], ["0", "0.68", "1", "1.13"])
    ax.set_xticks(places)
    return fig
