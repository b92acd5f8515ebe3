"""A random map is thrown: the changes of distances are NumPy's, and the chances are SciPy's."""

import numpy as np
import pytest
from scipy.stats import chi2

from lowrank_tutor.figures import dice
from lowrank_tutor.figures.dice import rows

FIGURE = dice


def squared(points):
    """Squared distances of all pairs."""
    i, j = np.triu_indices(len(points), 1)
    return ((points[i] - points[j]) ** 2).sum(axis=1)


def check(hand):
    state, table = hand.call("state"), hand.call("table")
    points, mapped = np.array(table["points"]), np.array(table["mapped"])
    k, d, n, eps = (state[name] for name in ("k", "d", "n", "eps"))
    assert (points.shape, mapped.shape) == ((n, d), (n, k))
    off = np.abs(squared(mapped) / squared(points) - 1)
    chance = chi2.cdf(k * (1 - eps), k) + chi2.sf(k * (1 + eps), k)
    expected = {
        "worst": off.max(),
        "median": np.median(off),
        "inside": (off <= eps).sum(),
        "chance": chance,
    }
    expected["union"] = min(1, chance * len(off))
    assert hand.shown() == pytest.approx(expected, rel=1e-6, abs=1e-12)
    return state, points, mapped


def test_random_states(hand):
    rng = np.random.default_rng(0)
    states = [
        {
            "k": int(rng.integers(1, 401 if i % 5 == 0 else 40)),
            "d": int(rng.integers(1, 1001 if i % 5 == 1 else 60)),
            "n": int(rng.integers(2, 33 if i % 5 == 2 else 8)),
            "eps": float(rng.uniform(0.01, 0.99)),
            "seed": int(rng.integers(1, 1_000_001)),
        }
        for i in range(25)
    ]
    hand.tour(states, check)


def test_map_is_gaussian_and_pythons(hand):
    hand.set(k=30, d=20, n=8, eps=0.3, seed=77)
    _, points, mapped = check(hand)
    assert points == pytest.approx(rows(0, 8, 20))
    assert mapped == pytest.approx(points @ rows(77, 30, 20).T / np.sqrt(30))
    drawn = rows(5, 400, 1000)
    assert (drawn.mean(), drawn.std(), (np.abs(drawn) < 1.96).mean()) == pytest.approx(
        (0, 1, 0.95), abs=0.005
    )


def test_lines(hand):
    hand.set(k=16, d=20, n=10, eps=0.5, seed=1)
    seen = []
    for name, dy in (("upper", -20), ("lower", 10), ("lower", 300)):
        hand.drag(name, 0, dy)
        seen.append(check(hand)[0]["eps"])
    assert 0.5 < seen[0] < seen[1] < seen[2] == 0.99


def test_pair(hand):
    hand.set(k=16, d=20, n=5, eps=0.5, seed=1)
    pair = hand.handle("pair")
    for key, words in {
        "Home": "1 and 2",
        "ArrowRight": "1 and 3",
        "ArrowUp": "2 and 3",
        "End": "4 and 5",
    }.items():
        pair.press(key)
        assert pair.get_attribute("aria-valuetext").startswith(f"points {words}")
    _, points, mapped = check(hand)
    ratio = squared(mapped[3:])[0] / squared(points[3:])[0]
    assert pair.get_attribute("aria-valuetext").endswith(f"ratio {ratio:.2f}")


def test_throws_are_counted(hand):
    hand.set(k=48, d=20, n=6, eps=0.5, seed=1000)
    for _ in range(2):
        hand.button("Another R").click()
        hand.settle()
    assert check(hand)[0]["seed"] == 1002
    hand.button("40 more throws").click()
    tally = hand.figure.get_by_text("All pairs inside:").first
    hand.page.wait_for_function(
        "(p) => p.textContent.includes(' of 43.')", arg=tally.element_handle()
    )
    hand.settle()
    state, points, _ = check(hand)
    assert state["seed"] == 1042
    images = [points @ rows(seed, 48, 20).T / np.sqrt(48) for seed in range(1000, 1043)]
    worst = np.array([np.abs(squared(y) / squared(points) - 1).max() for y in images])
    hand.set(eps=0.4)
    assert f"All pairs inside: {(worst <= 0.4).sum()} of 43." in tally.inner_text()
