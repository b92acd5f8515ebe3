"""Bars that walk to one: every round is what Newton and Schulz's step makes of a diagonal matrix."""

import numpy as np
import pytest
import torch

from lowrank_tutor.caches import newton_schulz
from lowrank_tutor.figures import muon


@pytest.fixture(scope="module")
def hand(show):
    return show(muon())


def test_random_states_match_newton_schulz(hand):
    rng = np.random.default_rng(0)
    states = []
    for i in range(20):
        s = rng.uniform(0, 1, 10) * 10.0 ** -rng.integers(0, 4, 10)
        states.append({"s": (s / np.linalg.norm(s)).round(9).tolist(), "rounds": i % 7})

    def judge(seen):
        state, bars = seen.call("state"), np.array(seen.call("table")["bars"])
        expected = newton_schulz(torch.diag(torch.tensor(state["s"]).double()), steps=state["rounds"]).diagonal()
        assert bars == pytest.approx(expected.numpy(), rel=1e-4)  # of values rounded to a norm of nearly 1
        assert seen.shown() == {"ratio": pytest.approx(bars.max() / bars[bars > 0].min())}

    hand.tour(states, judge)


def test_rounds_as_the_book_says():
    ratios = [muon(rounds).numbers["ratio"] for rounds in range(6)]
    assert ratios == pytest.approx([512, 195, 56, 17, 5.1, 1.7], rel=0.02)


def test_bars_and_rounds_move(hand):
    hand.set(**muon().state)
    bar = hand.handle("singular value 10")
    bar.press("End")
    assert hand.call("state")["s"][9] == 1
    bar.press("Home")
    hand.said("stays zero")
    bar.press("Shift+ArrowUp")
    assert hand.call("state")["s"][9] == pytest.approx(0.1)
    hand.drag("singular value 2", 0, 60)
    assert hand.call("state")["s"][1] < 0.4
    for rounds in (1, 2):
        hand.figure.get_by_role("button", name="One more round").click()
        assert hand.call("state")["rounds"] == rounds
    assert hand.figure.locator(".handle:visible").count() == 0
    hand.figure.get_by_label("6", exact=True).check()
    assert hand.figure.get_by_role("button", name="One more round").is_disabled()
    hand.set(rounds=5, s=muon().state["s"])
    hand.figure.get_by_label("5", exact=True).check()
    assert hand.shown()["ratio"] < 1.7


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": -1},
        {"rounds": 7},
        {"rounds": 1.5},
        {"spectrum": [1] * 9},
        {"spectrum": [0] * 10},
        {"spectrum": [2] + [1] * 9},
    ],
)
def test_bad_arguments(hand, wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must "):
        muon(**wrong)
    before = hand.call("state")
    with pytest.raises(Exception, match="must be"):
        hand.call("set", {("s" if name == "spectrum" else name): value for name, value in wrong.items()})
    assert hand.call("state") == before
