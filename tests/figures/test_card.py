"""A cache that fills cards: every count is that of the package."""

import math
from functools import partial

import numpy as np
import pytest

from lowrank_tutor.caches import published_caches
from lowrank_tutor.figures import card

DESIGNS = {name: each[:2] for name, each in published_caches().items()}
FIGURE = partial(card, DESIGNS)


def test_random_states_match_counts(hand):
    rng = np.random.default_rng(0)
    states = [{"n": 2**13 * int(rng.integers(1, 129)), "kept": str(rng.choice(list(DESIGNS)))} for _ in range(20)]

    def judge(seen):
        n, kept = seen.call("state").values()
        growing, fixed = DESIGNS[kept]
        gib = 2 * (n * growing + fixed) / 2**30
        assert seen.shown() == {"gib": gib, "cards": math.ceil(gib / 80), "numbers": growing}
        filled = [min(80, max(0, gib - 80 * i)) for i in range(4)]
        assert seen.call("table")["cells"] == pytest.approx(filled)

    hand.tour(states, judge)


def test_cards_fill(hand):
    hand.set(n=2**17, kept="Llama-3-70B")
    box = hand.figure.locator(".instrument-live svg").bounding_box()
    hand.page.mouse.click(box["x"] + box["width"] / 4 - 8, box["y"] + 25)  # the last square of the first card
    hand.said("exactly full")
    assert hand.call("state")["n"] == 2**18
    hand.button("Keep writing").click()
    hand.said("That needs 4 cards.")
    hand.figure.get_by_role("radio", name="Gemma-3-27B 40,960").check()
    hand.said("That needs 2 cards.")  # but for its windows it would be one
