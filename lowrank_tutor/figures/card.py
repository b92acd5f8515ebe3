"""How many tokens does a graphics card hold? A tank that fills with what a model keeps, and spills over."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from lowrank_tutor.figures.parts.figure import figure, one_of
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
    kept = one_of("kept", first if kept is None else kept, counts)
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
    fig, ax = plt.subplots(layout="constrained", figsize=(4.5, 2.2))
    cards = range(1, CARDS + 1)
    for size, look in ((at_most, {"color": GRAY, "alpha": 0.35}), (gib, {"color": TEAL})):
        ax.bar(cards, [min(ROOM, max(0, size - (i - 1) * ROOM)) for i in cards], width=0.6, **look)
    ax.axhline(ROOM, color=GRAY, linestyle="--")
    ax.set(xlabel="card", ylabel="GiB", xticks=cards, yticks=(0, ROOM))
    return fig
