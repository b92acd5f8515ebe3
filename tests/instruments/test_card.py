"""A cache that fills cards: every count is that of the package."""

import math

import numpy as np
import pytest

from lowrank_tutor.caches import published_caches
from lowrank_tutor.figures import card

DESIGNS = {name: each[:2] for name, each in published_caches().items()}


@pytest.fixture(scope="module")
def hand(show):
    return show(card(DESIGNS))


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
        assert seen.html().count("edge teal") == math.ceil(gib / 80)

    hand.tour(states, judge)


def test_cards_fill_and_drain(hand):
    hand.set(n=2**17, kept="Llama-3-70B")
    slider = hand.figure.get_by_label("tokens", exact=True)
    slider.press("End")
    hand.said("That needs 4 cards.")
    hand.figure.get_by_role("radio", name="Gemma-3-27B 40,960").check()
    hand.said("That needs 2 cards.")  # but for its windows it would be one
    hand.figure.get_by_role("radio", name="gpt-oss-120b 18,432").check()
    hand.said("room: 2.")
    hand.figure.get_by_role("radio", name="Llama-3-70B 163,840").check()
    box = hand.figure.locator(".instrument-live svg").bounding_box()
    hand.page.mouse.click(box["x"] + box["width"] / 4 - 8, box["y"] + 25)  # the last square of the first card
    hand.said("exactly full")
    assert hand.call("state")["n"] == 2**18
    hand.button("Keep writing").click()
    hand.said("That needs 4 cards.")
    assert hand.call("state")["n"] == 2**20


ONE = (163_840, 0)
WRONG = {
    "n": [0, 10_000, 2**20 + 2**13, 131_072.0],
    "kept": ["12", None, 8],
    "designs": [{}, {"a": (0, 1)}, {"a": (1.5, 0)}, {"a": (1, -1)}, {"a": (163_840, 1)}, {"a": (1, 0), "b": ONE}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]], ids=repr)
def test_bad_arguments(hand, name, value):
    if (name, value) != ("kept", None):  # the default
        with pytest.raises(ValueError, match=f"^{name}.* must be "):
            card(**{"designs": DESIGNS, name: value})
    if name != "designs" and value != 131_072.0:  # to the browser both are 131072
        before = hand.call("state")
        with pytest.raises(Exception, match="must be"):
            hand.call("set", {name: value})
        assert hand.call("state") == before
