"""Drag a point and a line: the number kept and the distance to the shadow are NumPy's."""

import math

import numpy as np
import pytest

from lowrank_tutor.instruments import shadow


@pytest.fixture(scope="module")
def hand(show):
    return show(shadow())


def check(hand):
    table = hand.call("table")
    w, x = np.array(table["w"]), np.array(table["x"])
    assert np.linalg.norm(w) == pytest.approx(1)
    shown = hand.shown()
    assert shown["along"] == pytest.approx((w @ x).item(), abs=1e-9)
    assert shown["left_out"] == pytest.approx(np.linalg.norm(x - w.T @ (w @ x)), abs=1e-9)
    assert shown["along"] ** 2 + shown["left_out"] ** 2 == pytest.approx(x @ x)  # Pythagoras
    return shown


def test_at_fifty_random_states_the_numbers_are_numpys(hand):
    rng = np.random.default_rng(0)
    states = [{"x": rng.uniform(-5, 5, 2).tolist(), "theta": float(rng.uniform(-7, 7))} for _ in range(50)]
    for state, seen in zip(states, hand.tour(states), strict=True):
        assert seen.call("state") == state
        check(seen)


def test_point_and_line_are_dragged(hand):
    hand.set(x=[2, 4], theta=0.6)
    for dx, dy in ((20, 10), (-80, 40), (30, 60)):
        hand.drag("tip of x", dx, dy)
        check(hand)
    before = hand.call("state")
    for dx, dy in ((-40, -60), (-90, 10)):
        hand.drag("direction of the line", dx, dy)
        check(hand)
    after = hand.call("state")
    assert after["x"] == before["x"]
    assert after["theta"] != before["theta"]


def test_keys_move_the_point_by_tenths_and_the_line_by_degrees(hand):
    hand.set(x=[1, 2], theta=0)
    for key, x in {"ArrowRight": [1.1, 2], "ArrowDown": [1.1, 1.9], "Shift+ArrowUp": [1.1, 2.9]}.items():
        hand.handle("tip of x").press(key)
        assert hand.call("state")["x"] == pytest.approx(x)
        check(hand)
    for key, degrees in {"ArrowUp": 1, "Shift+ArrowLeft": -14, "End": 90, "Home": 0}.items():
        hand.handle("direction of the line").press(key)
        assert math.degrees(hand.call("state")["theta"]) == pytest.approx(degrees)
        check(hand)


def test_on_the_line_all_is_kept_and_across_it_nothing(hand):
    hand.set(x=[2, 0.1], theta=0)
    hand.handle("tip of x").press("ArrowDown")
    assert hand.said("says it all")
    assert check(hand)["left_out"] == 0
    hand.set(x=[0, 2.1])
    hand.handle("tip of x").press("ArrowDown")
    assert hand.said("nothing of it is kept")


@pytest.mark.parametrize(
    "wrong", [{"x": [6, 0]}, {"x": [1]}, {"x": [math.nan, 0]}, {"w": [0, 0]}, {"w": [math.inf, 1]}]
)
def test_python_refuses_what_there_is_not(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        shadow(**wrong)
