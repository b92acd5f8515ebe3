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
    hand.tour(
        [{name: rng.uniform(-4, 4, 2).tolist() for name in ("s", "h")} for _ in range(50)], check
    )


@pytest.mark.parametrize(
    ("u", "v"), [((0, 1), (1, 0)), ([[10, -0.5]], [[0, 0.1]]), ((1, 1), (1, 1))]
)
def test_other_tables(show, u, v):
    hand = show(score(u=u, v=v))
    check(hand)
    hand.drag("tip of h", 20, 30)
    check(hand)


def test_only_shadows_count(hand):
    """Dragged along its dashed line, a pixel beside it, s keeps the score; dragged off the line it
    does not.
    """
    start = hand.set(s=[1, 2], h=[3, 4])
    hand.page.wait_for_timeout(500)  # after a rest a new change begins
    hand.drag("tip of s", 31, 60)
    assert hand.call("state")["s"] != [1, 2]
    assert check(hand) == pytest.approx(start)
    assert "so does the score" in hand.said("shadow stays the same")
    hand.page.wait_for_timeout(500)
    hand.drag("tip of s", 40, 0)
    assert check(hand)["score"] < start["score"] - 1
    for key in ("ArrowUp", "ArrowDown"):
        hand.handle("tip of s").press(key)
        check(hand)


def test_no_shadow(hand):
    hand.set(s=[1, -2.1], h=[3, 4])
    hand.handle("tip of s").press("ArrowUp")
    hand.said("shrunk to nothing")
    assert check(hand)["score"] == pytest.approx(0, abs=1e-9)
