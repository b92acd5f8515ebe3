"""Pictures that one number moves: judged by formulas of their own; and the player."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from lowrank_tutor.bilinear import factorize, score_error
from lowrank_tutor.figures import moving
from lowrank_tutor.figures.moving import (
    CIRCLE,
    EXACT,
    GROUPS,
    KEYS,
    POINTS,
    ROOT,
    SCENES,
    VALUES,
    A,
    W,
    _places,
)  # fmt: skip
from lowrank_tutor.jl import norm_failure_chernoff
from lowrank_tutor.lda import lda
from lowrank_tutor.states import linear_state

FIGURE = moving


def shape(scene, t, kind, look=""):
    """The points of the last such shape of a scene."""
    found = [one.points for one in SCENES[scene].at(t)[1] if one.kind == kind and look in one.look]
    return np.array(found[-1], dtype=float)


@pytest.mark.parametrize("scene", SCENES)
def test_as_in_python(show, scene):
    """At places that were drawn, and between them, numbers and the handle are Python's."""
    hand, places = show(moving(scene)), _places(SCENES[scene])[::7]
    tour = hand.tour([{"t": t} for t in places])
    for t, seen in zip(places, tour, strict=True):
        assert seen.shown() == pytest.approx(SCENES[scene].at(t)[0], abs=1e-9)
    if scene not in ("line", "classes"):
        return
    panel, (point,) = SCENES[scene].panels[0], shape(scene, places[-1], "handle")
    reach = panel["x"][1]
    at = 150 + 142 * point / reach * [1, -1]
    moved = hand.figure.locator("g.handle").get_attribute("transform")
    assert np.fromstring(moved[10:-1], sep=" ") == pytest.approx(at, abs=0.3)


def test_turns_end_at_the_matrix():
    assert shape("turns", 3, "line") == pytest.approx(CIRCLE @ A.T)


def test_line_trades():
    """The bars add up to the same, and the most lies along the first principal axis."""
    rows = [SCENES["line"].at(t)[0] for t in range(181)]
    along = np.array([row["along"] for row in rows])
    assert along + [row["across"] for row in rows] == pytest.approx((POINTS**2).sum())
    values, vectors = np.linalg.eigh(POINTS.T @ POINTS)
    assert along.argmax() == round(np.degrees(np.arctan2(*vectors[::-1, 1])) % 180)
    assert along.max() == pytest.approx(values[1], rel=1e-3)


def test_axis_of_lda():
    """The numbers are quadratic forms and distances from two means, and the best axis is that of
    the package.
    """
    rows, classes = [], GROUPS + np.array([3.5, 1])
    means = classes.mean(axis=1)
    t_w = sum(
        (points - mean).T @ (points - mean) for points, mean in zip(classes, means, strict=True)
    )
    for t in range(181):
        axis = np.array([np.cos(t * np.pi / 180), np.sin(t * np.pi / 180)])
        away = [
            np.abs((points[:, None] - means) @ axis) for points in classes
        ]  # (4, 2): from each mean
        right = sum(int((d[:, own] < d[:, 1 - own] - 1e-9).sum()) for own, d in enumerate(away))
        rows.append({"gap": ((means[1] - means[0]) @ axis) ** 2, "scatter": axis @ t_w @ axis})
        rows[-1]["ratio"] = rows[-1]["gap"] / rows[-1]["scatter"]
        assert {**rows[-1], "right": right if t != 90 else 2} == pytest.approx(
            SCENES["classes"].at(t)[0], abs=1e-9
        ), t
    best = lda(np.concatenate(classes), np.repeat([0, 1], 4), 1).axes[:, 0]
    found = round(np.degrees(np.arctan2(best[1], best[0])) % 180)
    assert np.argmax([row["ratio"] for row in rows]) == found == 63


def test_best_stretch_is_chernoffs():
    """Markov's bound is least at t = 1/6, in the first line of the theorem, whose lines add up in
    the package.
    """
    bounds = [SCENES["markov"].at(t)[0]["bound"] for t in _places(SCENES["markov"])]
    assert np.argmin(bounds) == 33
    assert EXACT == pytest.approx(chi2.sf(108, 72))
    least, below = SCENES["markov"].at(1 / 6)[0]["bound"], np.exp(-36 * (-0.5 - np.log(0.5)))
    assert min(bounds) == pytest.approx(least, rel=1e-3)
    assert least + below == pytest.approx(norm_failure_chernoff(72, 0.5))


def test_rescaled_cut_is_the_best():
    whole = score_error(W, np.zeros((1, 2)), np.zeros((1, 2)), s_moment=ROOT @ ROOT)
    errors = [
        score_error(W, *factorize(W, 1, s_moment=m), s_moment=ROOT @ ROOT)
        for m in (ROOT @ ROOT, None)
    ]
    assert list(SCENES["rescale"].at(3)[0].values()) == pytest.approx(np.divide(errors, whole))
    assert np.linalg.matrix_rank(shape("rescale", 3, "dots", "ink"), tol=1e-9) == 1


def test_writes_are_the_delta_rule():
    keys, values = torch.tensor(KEYS), torch.tensor(VALUES)[:, None]
    for t in range(9):
        order = [i % 2 for i in range(t)]
        state = linear_state(keys[order], values[order], delta=1).T if t else torch.zeros(1, 2)
        assert shape("writes", t, "dots", "ink") == pytest.approx(state.numpy(), abs=1e-6)
    assert SCENES["writes"].at(8)[0]["off"] < 6.25 * 0.6**7


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_player(show, motion):
    """It runs to the end by itself, a key stops it, and where no motion is wanted each press goes
    one station on.
    """
    hand = show(moving("line"), reduced_motion=motion)
    states, stations = (
        "() => document.querySelector('figure').instrument.state().t",
        SCENES["line"].stations,
    )
    if motion == "reduce":
        for station in [*stations[1:], stations[0]]:
            hand.button("Next").click()
            assert hand.call("state") == {"t": station}
        return
    hand.button("Play").click()
    hand.page.wait_for_function(f"({states})() > 5")
    hand.button("Pause").click()
    held = hand.call("state")
    hand.page.wait_for_timeout(200)
    assert hand.call("state") == held
    hand.button("Play").click()
    hand.page.wait_for_function(f"({states})() > {held['t']}")
    hand.handle("direction").press("Home")
    hand.page.wait_for_timeout(200)
    assert hand.call("state") == {"t": 0}
    hand.button("Play").click()
    hand.page.wait_for_function(f"({states})() === 180")
    hand.button("Play").wait_for()
