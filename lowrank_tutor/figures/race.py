"""Which attention is faster on a card at best? Two runners under the roof that memory and processors make."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from lowrank_tutor._checks import check_choice
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole
from lowrank_tutor.kit.charts.style import GRAY, INK, TEAL, styled

HEADS, WIDTH = 8, 64
MIXTURES = (128, 256, 1024)
SHORTEST, LONGEST = 512, 65536  # tokens; MIXTURES[-1] needs more than the shortest
INTENSITY, SPEED = (24, 50_000), (4e12, 4e15)  # what the picture shows: operations a byte, operations a second
SAY = (
    "On the {gpu}, exact attention takes at least {exact:.3g} ms for {n:,} tokens, and {k} mixtures take at least "
    "{mixed:.3g} ms. {waits}"
)
REMARKS = {
    "behind": "Here the mixtures are slower.",
    "waits": "With so few mixtures this card waits for its memory at every length, so fewer would save little.",
}
WALLS = {"memory": "memory", "compute": "processors"}
WORDS = {
    "roof": "The roof of the card. Drag exact attention along the axis: the longer the text, the farther right",
    "bars": "Least times. The longer bar always fills the width: compare the other with it",
    "exact": "exact",
    "named": "exact, {n} tokens",
    "mixed": "k = {k}",
    "runner": "tokens",
    "both": "Both wait for the {wall}.",
    "waits": "Exact attention waits for the {exact}, the mixtures for the {mixed}.",
    "x": "operations for each byte that is moved",
    "y": "trillion operations a second",
    "gpu": "card",
    "k": "k, mixtures",
    "race": "Race",
    "slower": "slowed down {factor} times",
    "tokens": "{n} tokens",
    "ms": "{ms} ms",
}


def race(gpu: str = "T4", k: int = 256, n: int = 8192) -> Instrument:
    r"""Let exact attention and Linformer run under the roof of a card.

    A program that does so many operations for each byte can do at most so many a second: what the memory brings in
    time, or what the processors do. Eight heads of width 64, one sequence, numbers of two bytes; the least times are
    those of :func:`lowrank_tutor.roofline.gpu_floor`.

    State ``gpu``, ``k`` and ``n``; numbers ``exact`` and ``mixed`` (least milliseconds), ``ratio`` and ``pays``
    (:func:`lowrank_tutor.roofline.gpu_crossover`).

    Parameters
    ----------
    gpu : str
        The card at first, one of ``GPUS``.
    k : int
        The number of mixtures at first: 128, 256 or 1024.
    n : int
        The number of tokens at first, from 512 to 65,536, and not below ``k``.

    Examples
    --------
    >>> [f"{race().numbers[name]:.3g}" for name in ("exact", "mixed", "ratio")]
    ['2.11', '0.132', '16']
    """
    from lowrank_tutor.roofline import GPUS, gpu_crossover, gpu_floor

    check_choice(gpu, "gpu", tuple(GPUS))
    if k not in MIXTURES:
        raise ValueError(f"k must be one of {MIXTURES}, got {k!r}")
    n = whole("n", n, max(SHORTEST, k), LONGEST)
    exact, mixed = gpu_floor(n, WIDTH, HEADS, gpu), gpu_floor(n, WIDTH, HEADS, gpu, k=k)
    pays = {card: {str(k): gpu_crossover(k, WIDTH, HEADS, card) for k in MIXTURES} for card in GPUS}
    return figure(
        name="race",
        state={"gpu": gpu, "k": k, "n": n},
        numbers={
            "exact": 1000 * exact.seconds,
            "mixed": 1000 * mixed.seconds,
            "ratio": exact.seconds / mixed.seconds,
            "pays": pays[gpu][str(k)],
        },
        values={"waits": _waits(WALLS[exact.wall], WALLS[mixed.wall])},
        say=SAY,
        remarks=REMARKS,
        data={
            "cards": {name: [card.flops, card.bandwidth] for name, card in GPUS.items()},
            "pays": pays,
            "mixtures": MIXTURES,
            "width": HEADS * WIDTH,
            "lengths": [SHORTEST, LONGEST],
            "intensity": INTENSITY,
            "speed": SPEED,
            "walls": WALLS,
            "words": WORDS,
        },
        readouts={
            "exact": ("exact, least ms", ".3g"),
            "mixed": ("mixtures, least ms", ".3g"),
            "ratio": ("exact / mixtures", ".1f"),
            "pays": ("floors cross at n =", ","),
        },
        picture=lambda: _still(gpu, k, n),
    )


def _waits(exact: str, mixed: str) -> str:
    return WORDS["both" if exact == mixed else "waits"].format(wall=exact, exact=exact, mixed=mixed)


@styled
def _still(gpu: str, k: int, n: int) -> Figure:
    from lowrank_tutor.roofline import GPUS, gpu_floor

    fig, ax = plt.subplots(layout="constrained", figsize=(5.2, 3))
    card, x = GPUS[gpu], np.geomspace(*INTENSITY, 200)
    roof = np.minimum(card.bandwidth * x, card.flops)
    ax.fill_between(x, SPEED[0], roof, color=GRAY, alpha=0.2)
    ax.loglog(x, roof, color=INK)
    for name, rank, color in (("exact", None, INK), (f"k = {k}", k, TEAL)):
        floor = gpu_floor(n, WIDTH, HEADS, gpu, k=rank)
        at, speed = floor.flops / floor.moved_bytes, floor.flops / floor.seconds
        ax.plot([at, at], [SPEED[0], speed], color=color, marker="o", markevery=[1])
        ax.annotate(
            f"{name}: {1000 * floor.seconds:.3g} ms", (at, speed), (4, 6), textcoords="offset points", color=color
        )
    ax.set(xlim=INTENSITY, ylim=SPEED, xlabel=WORDS["x"], ylabel=WORDS["y"], title=f"{gpu}, {n:,} tokens")
    return fig
