"""What do groups of old tokens cost? A strip of tokens whose first border is dragged, and one vote per group or m."""

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor.figures.parts.figure import figure, one_of, two_digits
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import whole
from lowrank_tutor.kit.charts.style import INK, ORANGE, TEAL

TOKENS, LAST, WIDTH = 32, 16, 8  # how many tokens there are, how many stay exact, and numbers in each
RHOS = (0.0, 0.9, 0.95, 0.99)
WAYS = {"one": "one vote per group", "votes": "m votes per group", "none": "the last 16 alone"}
SAY = (
    "Groups of {m}, {counted}: the last token gives its older tokens {old:.0%} of its weight, where exact attention "
    "gives them {exact_old:.0%}. The error of its output is {error:.0%}."
)
REMARKS = {"exact": "A group of one token is the token itself.", "apart": "Here neighbors have nothing in common."}


def votes(m: int = 8, way: str = "one", rho: float = 0.95) -> Instrument:
    r"""Let the last of 32 tokens see older ones in groups of ``m``, and watch its weights.

    The last 16 tokens are seen one by one. The older ones are cut into groups of ``m``, counted from the first, and
    what is left over is seen one by one, too. A group has the mean of its keys and of its values, and counts as one
    token or as ``m``: then :math:`\ln m` is added to its logit.

    State ``m``, ``way`` and ``rho``; numbers ``error`` (of the last token's output), ``old`` and ``exact_old`` (the
    weight of the 16 older tokens) and ``seen`` (how many keys the last token sees).

    Parameters
    ----------
    m : int
        Tokens in a group at first, from 1 to 16.
    way : str
        How a group counts at first: ``"one"``, ``"votes"``, or ``"none"``, which leaves all older tokens out.
    rho : float
        The correlation of neighbors at first: 0, 0.9, 0.95 or 0.99.

    Examples
    --------
    >>> [f"{votes(8, way).numbers['error']:.0%}" for way in ("votes", "one", "none")]
    ['4%', '54%', '72%']
    """
    m = whole("m", m, 1, LAST)
    way, rho = one_of("way", way, WAYS), one_of("rho", rho, RHOS)
    rng = np.random.default_rng(87)  # one draw; the page says so
    noise_codes, noise = two_digits(rng.standard_normal((TOKENS, WIDTH)), 16)
    map_codes, maps = two_digits(rng.standard_normal((3 * WIDTH, WIDTH)) / np.sqrt(WIDTH), 32)
    weights, shared, found = attend(noise, maps, m, way, float(rho))
    return figure(
        name="votes",
        parts=("linalg", "vectors"),
        state={"m": m, "way": way, "rho": float(rho)},
        numbers=found,
        values={"counted": WAYS[way]},
        say=SAY,
        remarks=REMARKS,
        data={
            "noise": noise_codes,
            "maps": map_codes,
            "rhos": RHOS,
            "ways": WAYS,
            "last": LAST,
            "room": REMARKS["apart"],
        },
        readouts={
            "error": ("error of the output", ".1%"),
            "old": ("older tokens get", ".0%"),
            "exact_old": ("they should get", ".0%"),
            "seen": ("keys seen, of 32", ","),
        },
        picture=still(_draw, weights, shared, m, found["error"], size=(5.6, 2.5), ncols=2, width_ratios=(6, 1)),
    )


def attend(noise: Floats, maps: Floats, m: int, way: str, rho: float) -> tuple[Floats, Floats, dict[str, float]]:
    """Return the exact weights of the last token, those that each token gets of its group, and the numbers."""
    x = noise.copy()
    for i in range(1, TOKENS):
        x[i] = rho * x[i - 1] + np.sqrt(1 - rho**2) * noise[i]
    q, k, v = x[-1] @ maps[:WIDTH], x @ maps[WIDTH : 2 * WIDTH], x @ maps[2 * WIDTH :]
    sizes = np.array([m] * (LAST // m) + [1] * (LAST % m + LAST))
    starts = np.cumsum(sizes) - sizes
    keys, values = (np.add.reduceat(part, starts) / sizes[:, None] for part in (k, v))
    powers = np.exp(keys @ q / np.sqrt(WIDTH)) * (sizes if way == "votes" else 1) * ((starts >= LAST) | (way != "none"))
    exact, grouped = np.exp(k @ q / np.sqrt(WIDTH)), powers / powers.sum()
    exact /= exact.sum()
    shared = np.repeat(grouped / sizes, sizes)
    error = np.linalg.norm(grouped @ values - exact @ v) / np.linalg.norm(exact @ v)
    seen = LAST if way == "none" else len(sizes)
    totals = {"old": float(shared[:LAST].sum()), "exact_old": float(exact[:LAST].sum())}
    return exact, shared, {"error": float(error), **totals, "seen": seen}


def _draw(exact: Floats, shared: Floats, m: int, error: float, ax: Axes, right: Axes) -> None:
    ax.bar(np.arange(TOKENS) + 0.5, shared, width=1, color=TEAL)
    ax.bar(np.arange(TOKENS) + 0.5, exact, width=0.8, facecolor="none", edgecolor=INK)
    ax.axvline(m, color=ORANGE, linewidth=2)
    ax.set(xlim=(0, TOKENS), xlabel="token, the oldest first", ylabel="weight")
    ax.set_title("Weights of the last token. Outlined: exact. Filled: with groups")
    right.bar([0], [error], color=ORANGE)
    right.set(ylim=(0, 1.2), xticks=[], xlabel=f"error {error:.0%}")
