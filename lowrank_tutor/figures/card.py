"""How many tokens does a graphics card hold? A tank that fills with what a model keeps, and spills over."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole
from lowrank_tutor.kit.charts.style import GRAY, TEAL

ROOM = 80  # GiB of a card: one cell each
ACROSS = 8  # cells in a row of a card
STEP, START, MOST = 2**13, 2**17, 2**20  # tokens
CARDS = 4  # as many are drawn
SAY = "{kept}: each token adds {numbers:,} numbers, and {n:,} tokens need {gib:.4g} GiB."
REMARKS = {
    "fits": "That fits on one card. Texts of this length for which a card has room: {times:,}.",
    "full": "The card is exactly full.",
    "spills": "That needs {cards} cards.",
}


def card(designs: Mapping[str, tuple[int, int]]) -> Instrument:
    """Fill graphics cards of 80 GiB with a cache that grows token by token, at two bytes a number.

    State ``n``, the tokens written, 131,072 at first, and ``kept``, the design, at first the first one; numbers
    ``gib``, ``cards`` (how many the cache needs) and ``numbers``, of a token.

    Parameters
    ----------
    designs : mapping of str to (int, int)
        How many numbers each token adds, and how many do not grow, as :func:`lowrank_tutor.caches.published_caches`
        counts them, by the name of the model. The first one, the largest, fills at most four cards.

    Examples
    --------
    >>> card({"Llama-3-70B": (163_840, 0), "DeepSeek-V3": (35_136, 0)}).numbers
    {'gib': 40.0, 'cards': 1, 'numbers': 163840}
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
    growing, fixed = counts[first]
    gib = (START * growing + fixed) / 2**29
    return figure(
        name="card",
        state={"n": START, "kept": first},
        numbers={"gib": gib, "cards": math.ceil(gib / ROOM), "numbers": growing},
        say=SAY,
        remarks=REMARKS,
        data={"designs": counts, "room": ROOM, "across": ACROSS, "cards": CARDS, "step": STEP, "most": MOST},
        readouts={"gib": ("GiB of cache", ".4g"), "cards": ("cards", ","), "numbers": ("numbers a token", ",")},
        picture=still(_draw, gib, size=(4.5, 2.2)),
    )


def _draw(gib: float, ax: Axes) -> None:
    cards = range(1, CARDS + 1)
    ax.bar(cards, [min(ROOM, max(0, gib - (i - 1) * ROOM)) for i in cards], width=0.6, color=TEAL)
    ax.axhline(ROOM, color=GRAY, linestyle="--")
    ax.set(xlabel="card", ylabel="GiB", xticks=cards, yticks=(0, ROOM))
