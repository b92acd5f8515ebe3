"""The columns of a matrix and a unit vector are dragged: the browser's numbers are NumPy's."""

import math

import numpy as np
import pytest

from lowrank_tutor.figures import arrows

FIGURE = arrows

START = {"a": [[3, 0], [4, 5]], "theta": 0.3}


def check(hand, form="ellipse"):
    a, theta = np.array(hand.call("table")["a"]), hand.call("state")["theta"]
    shown = hand.shown()
    s = np.linalg.svd(a, compute_uv=False)
    expected = {"sigma_1": s[0], "sigma_2": s[1], "rank": np.linalg.matrix_rank(a)}
    if form == "ellipse":  # the other shows no single input
        expected["length"] = np.linalg.norm(a @ [np.cos(theta), np.sin(theta)])
    assert shown == pytest.approx(expected, rel=1e-6, abs=1e-6)
    return shown


def test_random_states(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(50):
        a = rng.normal(scale=10 ** rng.uniform(-2, 1), size=(2, 2))
        if i % 5 == 0:
            a[:, 1] = 2 * a[:, 0]
        states.append({"a": a.tolist(), "theta": float(rng.uniform(-7, 7))})
    special = [
        [[0, 0], [0, 0]],
        [[1, 0], [0, 1]],
        [[0, -1], [1, 0]],
        [[0, 0], [5, 0]],
        [[2, 1], [4, 2]],
    ]
    hand.tour([*states, *({"a": a, "theta": 0.5} for a in special)], check)


def test_drag_of_a_column(hand):
    hand.set(**START | {"theta": 0})
    hand.drag("tip of the first column", 30, 12)
    moved = np.array(hand.call("state")["a"])
    assert moved[0, 0] > 3
    assert moved[1, 0] < 4
    assert moved[:, 1].tolist() == [0, 5]
    check(hand)


def test_longest_image_is_perpendicular(hand):
    hand.set(**START | {"theta": math.radians(40)})
    corner = hand.figure.locator("svg").nth(1).locator("path.line.ink:not(.arrow)")
    assert not corner.is_visible()
    for _ in range(5):
        hand.handle("input x").press("ArrowUp")
    assert hand.shown()["length"] == pytest.approx(3 * math.sqrt(5))
    assert corner.is_visible()
    assert "No input of length 1 becomes longer" in hand.said("longer")


def test_rank_one(show):
    hand = show(arrows([[1, 2], [2, 1]], form="rank"))
    for _ in range(15):
        hand.handle("tip of the second column").press("ArrowLeft")
    assert check(hand, "rank")["rank"] == 1
    assert "fallen flat" in hand.said("flat")
