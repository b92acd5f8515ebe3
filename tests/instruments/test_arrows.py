"""Grab the columns of a matrix and a unit vector: the browser's numbers are NumPy's."""

import math

import numpy as np
import pytest

from lowrank_tutor.instruments import arrows


@pytest.fixture(scope="module")
def hand(show):
    return show(arrows())


def check(hand, form="ellipse"):
    """NumPy's numbers, from the table and from what Ax is."""
    a, theta = np.array(hand.call("table")["a"]), hand.call("state")["theta"]
    angles = np.linspace(0, np.pi, 20001)
    lengths = np.linalg.norm(a @ [np.cos(angles), np.sin(angles)], axis=0)
    shown = hand.shown()
    s = np.linalg.svd(a, compute_uv=False)
    expected = {"sigma_1": s[0], "sigma_2": s[1], "rank": np.linalg.matrix_rank(a)}
    if form == "ellipse":  # the other shows no single input
        expected["length"] = np.linalg.norm(a @ [np.cos(theta), np.sin(theta)])
    assert shown == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert [lengths.max(), lengths.min()] == pytest.approx(s, rel=1e-3, abs=2e-4 * s[0])
    return shown


def test_at_fifty_random_states_the_numbers_are_numpys(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(50):
        a = rng.normal(scale=10 ** rng.uniform(-2, 1), size=(2, 2))
        if i % 5 == 0:
            a[:, 1] = 2 * a[:, 0]
        states.append({"a": a.tolist(), "theta": float(rng.uniform(-7, 7))})
    for state, seen in zip(states, hand.tour(states), strict=True):
        assert seen.call("state") == state
        check(seen)


@pytest.mark.parametrize(
    "a", [[[0, 0], [0, 0]], [[1, 0], [0, 1]], [[0, -1], [1, 0]], [[0, 0], [5, 0]], [[2, 1], [4, 2]]]
)
def test_special_matrices_are_drawn_too(hand, a):
    hand.set(a=a, theta=0.5)
    check(hand)
    assert "NaN" not in hand.figure.inner_html()


def test_the_columns_and_the_input_are_dragged(hand):
    hand.set(a=[[3, 0], [4, 5]], theta=0.3)
    before = hand.call("state")
    hand.drag("tip of the first column", 30, 12)
    moved = hand.call("state")
    assert moved["a"][0][0] > 3
    assert moved["a"][1][0] < 4
    assert [row[1] for row in moved["a"]] == [0, 5]
    assert moved["theta"] == before["theta"]
    check(hand)
    hand.drag("tip of the second column", -40, 60)
    check(hand)
    for dx, dy in ((-60, -40), (-20, 90), (120, 60)):
        hand.drag("input x", dx, dy)
        check(hand)
    hand.drag("direction of x", 50, 0)
    check(hand)
    assert hand.call("state")["a"][0][0] == moved["a"][0][0]


def test_keys_move_the_tips_by_tenths_and_the_input_by_degrees(hand):
    hand.set(a=[[3, 0], [4, 5]], theta=0)
    tip = hand.handle("tip of the first column")
    for key, column in {"ArrowRight": [3.1, 4], "ArrowUp": [3.1, 4.1], "Shift+ArrowLeft": [2.1, 4.1]}.items():
        tip.press(key)
        assert [row[0] for row in hand.call("state")["a"]] == pytest.approx(column)
        check(hand)
    assert tip.get_attribute("aria-valuetext") == "x 2.10, y 4.10"
    x = hand.handle("input x")
    for key, degrees in {"ArrowUp": 1, "Shift+ArrowRight": 16, "ArrowLeft": 15, "End": 90, "Home": 0}.items():
        x.press(key)
        assert math.degrees(hand.call("state")["theta"]) == pytest.approx(degrees)
        assert x.get_attribute("aria-valuetext") == f"{degrees} degrees"
        check(hand)


def test_the_longest_image_is_found_by_turning_and_has_the_right_angle(hand):
    hand.set(a=[[3, 0], [4, 5]], theta=math.radians(40))
    corner = hand.figure.locator("svg").nth(1).locator("path.line.orange:not(.arrow)")
    assert not corner.is_visible()
    for _ in range(5):
        hand.handle("input x").press("ArrowUp")
    assert hand.shown()["length"] == pytest.approx(3 * math.sqrt(5))
    assert corner.is_visible()
    assert "No input of length 1 becomes longer" in hand.said("longer")


def test_columns_pushed_together_leave_rank_one(show):
    hand = show(arrows([[1, 2], [2, 1]], form="rank"))
    tip = hand.handle("tip of the second column")
    for key, times in {"ArrowLeft": 15, "ArrowUp": 0}.items():
        for _ in range(times):
            tip.press(key)
    assert hand.shown()["rank"] == 1
    assert "fallen flat" in hand.said("flat")
    check(hand, "rank")


def test_eigenvectors_stand_beside_on_request_where_there_are_any(hand):
    hand.set(a=[[3, 0], [4, 5]], theta=0.3)
    box = hand.figure.get_by_label("show the eigenvectors too")
    box.check()
    assert "Eigenvalues: 5.00 and 3.00." in hand.figure.inner_text()
    ends = hand.figure.locator("svg").first.locator("path.pink").first.get_attribute("d")
    assert ends  # along (0, 1) and (1, -2)
    hand.set(a=[[0, -1], [1, 0]])
    assert "no real eigenvalue" in hand.figure.inner_text()
    assert hand.figure.locator("path.pink:visible").count() == 0
    box.uncheck()


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"a": [[1, 2]]}, "a"),
        ({"a": [[1, 2], [3, math.nan]]}, "a"),
        ({"theta": 101}, "theta"),
        ({"form": "x"}, "form"),
        ({"a": "a"}, "a"),
        ({"a": 1j * np.eye(2)}, "a"),
        ({"theta": None}, "theta"),
        ({"form": ["rank"]}, "form"),
    ],
)
def test_python_refuses_what_there_is_not(wrong, name):
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        arrows(**wrong)
