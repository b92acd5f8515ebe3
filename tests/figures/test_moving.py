"""Pictures that one number moves: judged by formulas of their own, at every station and between;
and the player.
"""

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from lowrank_tutor.bilinear import factorize, score_error
from lowrank_tutor.figures import moving
from lowrank_tutor.figures.moving import GROUPS, KEYS, POINTS, ROOT, SCENES, VALUES, W
from lowrank_tutor.jl import norm_failure_chernoff
from lowrank_tutor.lda import lda
from lowrank_tutor.states import linear_state

FIGURE = moving


@pytest.mark.parametrize("scene", SCENES)
def test_as_in_python(show, scene):
    """At every station and between two of them the browser's numbers are Python's, and so are those
    of the start.
    """
    hand, stations = show(moving(scene)), np.array(SCENES[scene].stations)
    for t, seen in zip(places := [*stations, *(stations[:-1] + 0.3 * np.diff(stations))],
                       hand.tour([{"t": float(t)} for t in places]), strict=True):  # fmt: skip
        assert seen.shown() == pytest.approx(moving(scene, float(t)).numbers, abs=1e-9)


def test_line_trades(show):
    """The bars add up to the same, and the most lies along the first principal axis."""
    seen = show(moving("line")).tour([{"t": t} for t in range(181)])
    along = np.array([each.shown()["along"] for each in seen])
    assert along + [each.shown()["across"] for each in seen] == pytest.approx(
        np.full(181, (POINTS**2).sum())
    )
    values, vectors = np.linalg.eigh(POINTS.T @ POINTS)
    assert along.argmax() == round(np.degrees(np.arctan2(*vectors[::-1, 1])) % 180)
    assert along.max() == pytest.approx(values[1], rel=1e-3)


def test_axis_of_lda(show):
    """Gap and scatter are quadratic forms, and the best axis is that of the package."""
    classes = GROUPS + np.array([3.5, 1])
    means = classes.mean(axis=1)
    away = (classes - means[:, None]).reshape(-1, 2)
    ratios = []
    for t, seen in enumerate(show(moving("classes")).tour([{"t": t} for t in range(181)])):
        axis = np.array([np.cos(t * np.pi / 180), np.sin(t * np.pi / 180)])
        shown = seen.shown()
        assert shown["gap"] == pytest.approx(((means[1] - means[0]) @ axis) ** 2, abs=1e-9)
        assert shown["scatter"] == pytest.approx(np.sum((away @ axis) ** 2), abs=1e-9)
        assert shown["ratio"] == pytest.approx(shown["gap"] / shown["scatter"], abs=1e-9)
        ratios.append(shown["ratio"])
    best = lda(np.concatenate(classes), np.repeat([0, 1], 4), 1).axes[:, 0]
    found = round(np.degrees(np.arctan2(best[1], best[0])) % 180)
    assert np.argmax(ratios) == found == 63


def test_best_stretch_is_chernoffs(show):
    """Markov's bound is least at t = 1/6, in the first line of the theorem, whose lines add up in
    the package.
    """
    seen = show(moving("markov")).tour([{"t": t / 200} for t in range(61)])
    bounds = [each.shown()["bound"] for each in seen]
    assert np.argmin(bounds) == 33
    assert SCENES["markov"].data["exact"] == pytest.approx(chi2.sf(108, 72))
    least, below = moving("markov", 1 / 6).numbers["bound"], np.exp(-36 * (-0.5 - np.log(0.5)))
    assert min(bounds) == pytest.approx(least, rel=1e-3)
    assert least + below == pytest.approx(norm_failure_chernoff(72, 0.5))


def test_rescaled_cut_is_the_best(show):
    (end,) = show(moving("rescale")).tour([{"t": 3}])
    whole = score_error(W, np.zeros((1, 2)), np.zeros((1, 2)), s_moment=ROOT @ ROOT)
    errors = [
        score_error(W, *factorize(W, 1, s_moment=m), s_moment=ROOT @ ROOT)
        for m in (ROOT @ ROOT, None)
    ]
    assert [end.shown()[name] for name in ("error", "plain")] == pytest.approx(
        np.divide(errors, whole)
    )
    assert np.linalg.matrix_rank(end.call("table")["cut"], tol=1e-9) == 1


def test_writes_are_the_delta_rule(show):
    keys, values = torch.tensor(KEYS), torch.tensor(VALUES)[:, None]
    for t, seen in enumerate(show(moving("writes")).tour([{"t": t} for t in range(9)])):
        order = [i % 2 for i in range(t)]
        state = linear_state(keys[order], values[order], delta=1).T if t else torch.zeros(1, 2)
        assert seen.call("table")["state"] == pytest.approx(state.numpy(), abs=1e-6)
    assert seen.shown()["off"] < 6.25 * 0.6**7


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_player(show, motion):
    """It runs to the end by itself, a key stops it, and where no motion is wanted each press goes
    one station on.
    """
    hand = show(moving("line", 0), reduced_motion=motion)
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
