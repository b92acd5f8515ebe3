"""Cut a story until its own tables are off by as much as another cut's.

Settings are whole numbers: sheets, words, bits. Between two of them the next sheet fades, or both
are mixed, so that every error in between can be met.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lowrank_tutor._checks import as_vector, check_choice, check_real
from lowrank_tutor.storyteller.cuts import bits, cut_latents, faded_sheets, mixed, window
from lowrank_tutor.storyteller.in_numpy import tables, trained_weights
from lowrank_tutor.storyteller.language import encode

# The mildest setting of each cut; sheets and windows begin with as many as there are words.
MOST = {"sheets": 96, "window": 96, "bits": 8, "latents": 64}
STEPS, CLOSE = 12, 0.001


def between(cut: str, amount: float) -> dict[str, Any]:
    """Return a cut between two settings for ``forward`` and the like: ``attend``, or ``weights``.

    >>> sorted(between("window", 5.5)), sorted(between("latents", 24.5))
    (['attend'], ['weights'])
    """
    check_choice(cut, "cut", [*MOST])
    amount = check_real(amount, "amount", "at least 1", 1)
    if cut == "sheets":
        return {"attend": faded_sheets(amount)}
    low = int(amount)
    share = amount - low
    if cut == "latents":
        fewer, more = latents(low), latents(min(low + 1, 64))
        return {"weights": {name: w + share * (more[name] - w) for name, w in fewer.items()}}
    one = {"window": window, "bits": bits}[cut]
    return {"attend": mixed(one(low), one(low + 1), share)}


@cache
def latents(rank: int) -> dict[str, Any]:
    """Return the trained weights with keys and values of ``rank`` numbers a word."""
    return cut_latents(trained_weights(), rank)


def matched(words: str | Sequence[str], cut: str, errors: Sequence[float]) -> list[float]:
    """Return how much a cut keeps of a story where its tables are first off by each error.

    The error is the norm of the difference of all tables over that of the exact ones.

    >>> kept = matched("<s> Ada wears red . Ben wears blue . Ada wears", "window", [0.1, 0.3])
    >>> [round(amount, 1) for amount in kept]
    [10.3, 8.4]
    """
    check_choice(cut, "cut", [*MOST])
    wanted = as_vector(errors, "errors")
    ids = [encode(words)]
    exact = tables(ids)

    @cache
    def off(amount: float) -> float:
        used = tables(ids, **between(cut, amount))
        return float(np.linalg.norm(used - exact) / np.linalg.norm(exact))

    mildest = MOST[cut] if cut in ("bits", "latents") else len(ids[0])

    def first(error: float) -> float:
        low: float = next((k for k in range(mildest, 1, -1) if off(k) >= error), 1)
        over = off(low) - error
        if low == mildest or over <= 0:
            return low
        high, under, amount = low + 1.0, error - off(low + 1), float(low)
        for _ in range(STEPS):  # false position, which halves an end that stays
            amount = low + (high - low) * over / (over + under)
            left = off(amount) - error
            if abs(left) < CLOSE:
                break
            if left > 0:
                low, over, under = amount, left, under / 2
            else:
                high, under, over = amount, -left, over / 2
        return amount

    return [first(error) for error in wanted.tolist()]
