"""A point and a line are dragged: the shadow, its length and the angle are NumPy's."""

import numpy as np
import pytest

from lowrank_tutor.figures import shadow

FIGURE = shadow


def check(hand):
    table = hand.call("table")
    w, x = np.array(table["w"]), np.array(table["x"])
    assert np.linalg.norm(w) == pytest.approx(1)
    shown = hand.shown()
    assert shown["along"] == pytest.approx((w @ x).item(), abs=1e-9)
    assert shown["left_out"] == pytest.approx(np.linalg.norm(x - w.T @ (w @ x)), abs=1e-9)
    share = np.linalg.norm(w.T @ (w @ x)) / np.linalg.norm(x)
    assert shown["share"] == pytest.approx(share, abs=1e-9)
    assert shown["angle"] == pytest.approx(np.degrees(np.arccos(min(1, share))), abs=1e-5)
    degrees, kept = np.array(table["curve"]).T
    assert kept == pytest.approx(np.cos(np.radians(degrees)), abs=1e-12)
    assert np.interp(shown["angle"], degrees, kept) == pytest.approx(
        share, abs=1e-4
    )  # the point is on the curve
    return shown


def test_random_states(hand):
    rng = np.random.default_rng(0)
    hand.tour(
        [
            {"x": rng.uniform(-5, 5, 2).tolist(), "theta": float(rng.uniform(-7, 7))}
            for _ in range(50)
        ],
        check,
    )


def test_drag_of_the_angle(hand):
    for x in ([2, 4], [-1, 3], [-3, -1], [3, -2]):  # on every side of the origin and of the line
        hand.set(x=x, theta=0.1)
        before = check(hand)
        hand.drag("angle between", 30, 0)
        after = check(hand)
        assert after["angle"] > before["angle"]
        assert after["angle"] == pytest.approx(round(after["angle"]))
        w, turned = (np.array(hand.call("table")[name]) for name in ("w", "x"))
        assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(x))
        sides = [np.sign([w[0] @ at, np.linalg.det([w[0], at])]).tolist() for at in (x, turned)]
        assert sides[0] == sides[1]


def test_remarks(hand):
    for x, key, words in (
        ([2, 0.1], "ArrowDown", "says it all"),
        ([0, 2.1], "ArrowDown", "nothing of it is kept"),
    ):
        hand.set(x=x, theta=0)
        hand.handle("tip of x").press(key)
        assert hand.said(words)
    hand.set(x=[0, 0.1])
    hand.handle("tip of x").press("ArrowDown")
    assert hand.said("x is zero")
    assert hand.shown() == {"share": 1, "angle": 0, "along": 0, "left_out": 0}
