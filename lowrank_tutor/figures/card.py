"""How many tokens does a graphics card hold? A tank that fills with what a model keeps, and spills over."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole
from lowrank_tutor.kit.charts.style import GRAY, TEAL, styled

ROOM = 80  # GiB of a card: one cell each
ACROSS = 8  # cells in a row of a card
STEP, MOST = 2**13, 2**20  # tokens
CARDS = 4  # as many are drawn
SAY = "{kept}: each token adds {numbers:,} numbers, and {n:,} tokens need {gib:.4g} GiB."
REMARKS = {
    "fits": "That fits on one card. Texts of this length for which a card has room: {times:,}.",
    "full": "The card is exactly full.",
    "spills": "That needs {cards} cards.",
}
WORDS = {
    "title": "Cards of 80 GiB, one square per GiB. Pale squares: what {first} would need",
    "card": "card ",
    "n": "tokens",
    "kept": "numbers that each token adds",
    "run": "Keep writing",
}


def card(designs: Mapping[str, tuple[int, int]], n: int = 2**17, kept: str | None = None) -> Instrument:
    """Fill graphics cards of 80 GiB with a cache that grows token by token, at two bytes a number.

    State ``n`` and ``kept``; numbers ``gib``, ``cards`` (how many the cache needs) and ``numbers``, of a token.

    Parameters
    ----------
    designs : mapping of str to (int, int)
        How many numbers each token adds, and how many do not grow, as :func:`lowrank_tutor.caches.published_caches`
        counts them, by the name of the model. The first one, the largest, fills at most four cards.
    n : int
        How many tokens were written at first: a multiple of 8,192, up to 1,048,576.
    kept : str, optional
        The design at first, by default the first.

    Examples
    --------
    >>> card({"Llama-3-70B": (163_840, 0), "DeepSeek-V3": (35_136, 0)}, n=2**20).numbers
    {'gib': 320.0, 'cards': 4, 'numbers': 163840}
    """
    most = CARDS * ROOM * 2**29  # numbers of two bytes
    counts = {
        name: (whole(f"designs[{name!r}]", growing, 1, most // MOST), whole(f"designs[{name!r}]", fixed, 0, most))
        for name, (growing, fixed) in designs.items()
    }
    first = next(iter(counts), "")
    at_most = {name: MOST * growing + fixed for name, (growing, fixed) in counts.items()}
    if not counts or not max(at_most.values()) <= at_most[first] <= most:
        raise ValueError(f"designs must be one at least, the largest first, four cards at most, got {dict(designs)!r}")
    kept = first if kept is None else kept
    if kept not in counts:
        raise ValueError(f"kept must be one of {', '.join(counts)}, got {kept!r}")
    if whole("n", n, STEP, MOST) % STEP:
        raise ValueError(f"n must be a multiple of {STEP:,}, got {n}")
    pale, gib = ((n * growing + fixed) / 2**29 for growing, fixed in (counts[first], counts[kept]))
    return figure(
        name="card",
        state={"n": int(n), "kept": kept},
        numbers={"gib": gib, "cards": math.ceil(gib / ROOM), "numbers": counts[kept][0]},
        say=SAY,
        remarks=REMARKS,
        data={
            "designs": counts,
            "room": ROOM,
            "across": ACROSS,
            "cards": CARDS,
            "step": STEP,
            "most": MOST,
            "words": {**WORDS, "title": WORDS["title"].format(first=first)},
        },
        readouts={"gib": ("GiB of cache", ".4g"), "cards": ("cards", ","), "numbers": ("numbers a token", ",")},
        picture=lambda: _still(gib, pale),
    )


@styled
def _still(gib: float, at_most: float) -> Figure:
    fig, axes = plt.subplots(1, CARDS, layout="constrained", figsize=(5.4, 2.0))
    for i, ax in enumerate(axes):
        needed = gib > i * ROOM
        edge = Rectangle((-0.3, -0.3), ACROSS + 0.6, ROOM // ACROSS + 0.6, fill=False, linewidth=1.5)
        edge.set(edgecolor=TEAL if needed else GRAY, linestyle="-" if needed else "--")
        ax.add_patch(edge)
        for cell in range(ROOM):
            place = (cell % ACROSS + 0.05, cell // ACROSS + 0.05)
            for size, color, alpha in ((at_most, GRAY, 0.35), (gib, TEAL, 1)):
                share = min(1, max(0, size - i * ROOM - cell))
                ax.add_patch(Rectangle(place, 0.9, 0.9, color=color, alpha=alpha * share, linewidth=0))
        ax.set(xlim=(-0.5, ACROSS + 0.5), ylim=(-0.5, ROOM // ACROSS + 0.5), aspect="equal", title=f"card {i + 1}")
        ax.set_axis_off()
    return fig
