"""A cache that fills cards: every count is that of the package."""

import math

import numpy as np
import pytest

from lowrank_tutor.caches import kv_cache_numbers
from lowrank_tutor.instruments import card

DESIGNS = {
    "64 (MHA)": kv_cache_numbers(80, heads=64, width=128),
    "8 (GQA)": kv_cache_numbers(80, groups=8, width=128),
    "a latent (MLA)": kv_cache_numbers(80, latent=512, rotary=64),
}


@pytest.fixture(scope="module")
def hand(show):
    return show(card(DESIGNS))


def test_random_states_match_counts(hand):
    rng = np.random.default_rng(0)
    states = [{"n": 1024 * int(rng.integers(1, 129)), "kept": str(rng.choice(list(DESIGNS)))} for _ in range(20)]

    def judge(seen):
        n, kept = seen.call("state").values()
        gib = 2 * n * DESIGNS[kept] / 2**30
        assert seen.shown() == {"gib": gib, "cards": math.ceil(gib / 80), "numbers": DESIGNS[kept]}
        filled = [min(80, max(0, gib - 80 * i)) for i in range(4)]
        assert seen.call("table")["cells"] == pytest.approx(filled)
        assert seen.html().count("edge teal") == math.ceil(gib / 80)

    hand.tour(states, judge)


def test_cards_fill_and_drain(hand):
    hand.set(n=2**15, kept="64 (MHA)")
    slider = hand.figure.get_by_label("tokens", exact=True)
    slider.press("End")
    hand.said("That takes 4 cards.")
    hand.figure.get_by_role("radio", name="8 (GQA)").check()
    hand.said("That fits on one card, 2 times.")
    assert hand.shown() == {"gib": 40, "cards": 1, "numbers": 163_840}
    hand.figure.get_by_role("radio", name="64 (MHA)").check()
    box = hand.figure.locator(".instrument-live svg").bounding_box()
    hand.page.mouse.click(box["x"] + box["width"] / 4 - 8, box["y"] + 25)  # the last square of the first card
    hand.said("full to the brim")
    assert hand.call("state")["n"] == 2**15
    hand.button("Write on").click()
    hand.said("That takes 4 cards.")
    assert hand.call("state")["n"] == 2**17


WRONG = {
    "n": [0, 1000, 2**17 + 1024, 2048.0],
    "kept": ["12", None, 8],
    "designs": [{}, {"a": 0}, {"a": 1.5}, {"a": 1_310_721}, {"a": 1, "b": 2}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]], ids=repr)
def test_bad_arguments(hand, name, value):
    if (name, value) != ("kept", None):  # the default
        with pytest.raises(ValueError, match=f"^{name}.* must be "):
            card(**{"designs": DESIGNS, name: value})
    if name != "designs" and value != 2048.0:  # to the browser both are 2048
        before = hand.call("state")
        with pytest.raises(Exception, match="must be"):
            hand.call("set", {name: value})
        assert hand.call("state") == before
