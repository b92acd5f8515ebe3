"""Two vectors are dragged: the score and its two factors agree with NumPy."""

import numpy as np
import pytest

from lowrank_tutor.bilinear import reduced_rank_score
from lowrank_tutor.figures import score

FIGURE = score


def check(hand):
    u, v, w = (np.array(hand.call("table")[name]) for name in ("u", "v", "w"))
    s, h = (np.array(hand.call("state")[name]) for name in ("s", "h"))
    assert u.shape == v.shape == (1, 2)
    assert (w == u.T @ v).all()
    shown = hand.shown()
    expected = {"score": s @ w @ h, "a": (u @ s).item(), "b": (v @ h).item()}
    assert shown == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert shown["score"] == pytest.approx(reduced_rank_score(s, u, v, h), abs=1e-9)
    return shown


def test_random_states(hand):
    rng = np.random.default_rng(0)
    hand.tour([{name: rng.uniform(-5, 5, 2).tolist() for name in ("s", "h")} for _ in range(50)], check)


def test_terms_add_up(hand):
    for s, h in (([1, 2], [3, 4]), ([-4, 1], [2, -5]), ([5, 5], [5, -5])):
        shown = hand.set(s=s, h=h)
        texts = hand.figure.locator(".panels > div").nth(1).locator("p").all_inner_texts()
        ends = [float(text.split("= ")[-1].replace("\N{MINUS SIGN}", "-")) for text in texts[-2:]]
        assert ends == pytest.approx([shown["score"]] * 2, abs=0.005), "in full, and by shadows"


@pytest.mark.parametrize(("u", "v"), [((0, 1), (1, 0)), ([[10, -0.5]], [[0, 0.1]]), ((1, 1), (1, 1))])
def test_other_tables(show, u, v):
    hand = show(score(u=u, v=v))
    check(hand)
    hand.drag("tip of h", 20, 30)
    check(hand)


def test_only_shadows_count(hand):
    start = hand.set(s=[1, 2], h=[3, 4])
    for key, a in (("ArrowUp", "4.10"), ("ArrowDown", "4.00")):
        hand.handle("tip of s").press(key)
        hand.said(f"a = {a}")
    for _ in range(9):  # to an edge of the plane, and back
        hand.button("Move s along its dashed line").click()
        assert hand.shown() == pytest.approx(start)
    assert "so does the score" in hand.said("shadow stays the same")
    hand.set(s=[1, 2])
    hand.button("Flip s").click()
    assert check(hand)["score"] == -start["score"]
    hand.said("changed its sign")
    hand.button("Double or halve s").click()
    assert check(hand) == {"score": 8, "a": -8, "b": -1}
    hand.said("twice as large")
    hand.button("Double or halve s").click()  # twice as long would leave the plane
    assert check(hand) == {"score": 4, "a": -4, "b": -1}
    hand.said("half as large")


def test_no_shadow(hand):
    hand.set(s=[1, -2.1], h=[3, 4])
    hand.handle("tip of s").press("ArrowUp")
    hand.said("shrunk to nothing")
    assert check(hand)["score"] == pytest.approx(0, abs=1e-9)
