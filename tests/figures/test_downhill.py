"""A ball is dragged, and rolls: each step is judged by slopes from central differences."""

import numpy as np
import pytest

from lowrank_tutor.figures import downhill

FIGURE = downhill


def height(at):
    return (1 - at[0] * at[1]) ** 2


def after(at, size):
    return at - size * np.array(
        [(height(at + e) - height(at - e)) / 2e-6 for e in 1e-6 * np.eye(2)]
    )


def check(hand):
    """Follow the ball until a step would leave the map."""
    state, places = hand.call("state"), np.array(hand.call("table")["places"])
    expected = [state["start"], *(after(at, state["size"]) for at in places[:-1])]
    assert places == pytest.approx(np.array(expected), abs=1e-6)
    left = np.abs(after(places[-1], state["size"])).max() > 2.4
    assert len(places) == state["step"] + 1 or (left and len(places) <= state["step"])
    f, c = places[-1]
    assert hand.shown() == pytest.approx({"f": f, "c": c, "height": height((f, c))}, abs=1e-9)
    return hand.shown()


def test_random_states(hand):
    rng = np.random.default_rng(0)
    starts, sizes, steps = (
        rng.uniform(-2.4, 2.4, (50, 2)),
        rng.uniform(0.02, 0.4, 50),
        rng.integers(0, 21, 50),
    )
    every = zip(starts.tolist(), sizes.tolist(), steps.tolist(), strict=True)
    hand.tour([{"start": start, "size": size, "step": step} for start, size, step in every], check)


def test_as_the_chapter_says(hand):
    """Three steps of 0.1, and one of 0.3, which leads uphill."""
    ways = ((0.1, 1), (0.1, 2), (0.1, 3), (0.3, 1), (0.3, 20))
    states = [{"start": [2, 0], "size": size, "step": step} for size, step in ways]
    one, two, three, far, end = (seen["height"] for seen in hand.tour(states, check))
    assert one == pytest.approx(0.04)
    assert two > 0.001 > three
    assert far == pytest.approx(1.96)
    assert end < 0.001


def test_ball_by_hand(hand):
    for start, size, steps, words in (([2, 0], 0.3, 1, "landed higher"),
                                      ([1, -1], 0.1, 20, "saddle"),
                                      ([2.4, 2.4], 0.4, 1, "leave the map")):  # fmt: skip
        hand.set(start=start, size=size, step=steps - 1)
        hand.figure.get_by_label("steps", exact=True).press("ArrowRight")
        assert hand.said(words)
        check(hand)
    hand.set(start=[1, 1], size=0.1, step=5)
    hand.drag("the ball", 40, -20)
    assert hand.call("state")["step"] == 0
    assert check(hand)["height"] > 0.1
    hand.button("Roll").click()
    hand.page.wait_for_function(
        "() => document.querySelector('figure').instrument.state().step === 20"
    )
    assert check(hand)["height"] < 0.001
