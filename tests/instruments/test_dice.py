"""Throw a random map: what becomes of the pairs is NumPy's, and the chances are SciPy's."""

import numpy as np
import pytest
from scipy.stats import chi2

from lowrank_tutor.instruments import dice
from lowrank_tutor.instruments.dice import rows


@pytest.fixture(scope="module")
def hand(show):
    return show(dice())


def check(hand):
    state, table = hand.call("state"), hand.call("table")
    points, mapped = np.array(table["points"]), np.array(table["mapped"])
    k, d, n, eps = (state[name] for name in ("k", "d", "n", "eps"))
    assert (points.shape, mapped.shape) == ((n, d), (n, k))
    i, j = np.triu_indices(n, 1)
    after, before = (((x[i] - x[j]) ** 2).sum(axis=1) for x in (mapped, points))
    off = np.abs(after / before - 1)
    chance = chi2.cdf(k * (1 - eps), k) + chi2.sf(k * (1 + eps), k)
    expected = {
        "worst": off.max(),
        "median": np.median(off),
        "inside": (off <= eps).sum(),
        "chance": chance,
        "union": min(1, chance * len(off)),
    }
    assert hand.shown() == pytest.approx(expected, rel=1e-6, abs=1e-12)
    return state, points, mapped


def test_at_fifty_random_states_the_numbers_are_numpys_and_scipys(hand):
    rng = np.random.default_rng(0)
    states = [
        {
            "k": int(rng.integers(1, 401 if i % 5 == 0 else 40)),
            "d": int(rng.integers(1, 1001 if i % 5 == 1 else 60)),
            "n": int(rng.integers(2, 33 if i % 5 == 2 else 8)),
            "eps": float(rng.uniform(0.01, 0.99)),
            "seed": int(rng.integers(1, 1_000_001)),
        }
        for i in range(50)
    ]
    for state, seen in zip(states, hand.tour(states), strict=True):
        assert check(seen)[0] == state


def test_the_map_is_gaussian_linear_and_the_one_that_python_draws(hand):
    hand.set(k=30, d=20, n=8, eps=0.3, seed=77)
    _, points, mapped = check(hand)
    assert points == pytest.approx(rows(0, 8, 20))
    assert mapped == pytest.approx(points @ rows(77, 30, 20).T / np.sqrt(30))
    drawn = rows(5, 400, 1000)
    assert drawn.mean() == pytest.approx(0, abs=0.005)
    assert drawn.std() == pytest.approx(1, abs=0.005)
    assert np.linalg.norm(np.corrcoef(drawn) - np.eye(400), 2) < 1.1 * (2 * np.sqrt(0.4) + 0.4)


def test_sliders_change_k_d_and_n_by_keys_and_by_pointer(hand):
    hand.set(k=16, d=100, n=10, eps=0.5, seed=1)
    for words, key, name, value in (
        ("k, numbers", "ArrowRight", "k", 24),
        ("k, numbers", "End", "k", 400),
        ("d, coordinates", "ArrowLeft", "d", 50),
        ("n, points", "Home", "n", 2),
        ("n, points", "ArrowUp", "n", 3),
    ):
        hand.figure.get_by_label(words).press(key)
        hand.page.wait_for_function(
            "([f, name, value]) => f.instrument.state()[name] === value",
            arg=[hand.figure.element_handle(), name, value],
        )
        hand.settle()
        check(hand)
    for words, share in (("k, numbers", 0.3), ("d, coordinates", 0.9), ("n, points", 0.4)):
        box = hand.figure.get_by_label(words).bounding_box()
        hand.figure.get_by_label(words).click(position={"x": box["width"] * share, "y": box["height"] / 2})
        hand.settle()
        check(hand)


def test_the_lines_are_moved_by_pointer_and_by_keys(hand):
    hand.set(k=16, d=20, n=10, eps=0.5, seed=1)
    seen = []
    for name, dy in (("upper", -20), ("lower", 10), ("upper", 25), ("lower", -12), ("lower", 300)):
        hand.drag(name, 0, dy)
        seen.append(check(hand)[0]["eps"])
    assert seen[1] > seen[0] > 0.5
    assert seen[2] < seen[1]
    assert seen[3] < seen[2]
    assert seen[4] == 0.99
    hand.set(eps=0.5)
    keys = (("upper", "ArrowUp", 0.51), ("lower", "ArrowUp", 0.5), ("lower", "Shift+ArrowDown", 0.6))
    for name, key, eps in (*keys, ("upper", "Home", 0.01), ("lower", "Home", 0.99)):
        hand.handle(name).press(key)
        assert check(hand)[0]["eps"] == pytest.approx(eps)
    assert "pairs keep their squared distance" in hand.said("99%")


def test_the_knobs_of_the_two_lines_stay_apart(hand):
    for eps in (0.01, 0.05, 0.3):
        hand.set(k=16, d=20, n=10, eps=eps, seed=1)
        above, below = (hand.handle(name).locator(".hit").bounding_box() for name in ("upper", "lower"))
        assert above["x"] + above["width"] < below["x"]
    hand.drag("lower", 0, 20)
    assert check(hand)[0]["eps"] > 0.35


def test_a_pair_shows_its_coordinates(hand):
    hand.set(k=16, d=20, n=5, eps=0.5, seed=1)
    pair = hand.handle("pair")
    for key, words in {
        "Home": "points 1 and 2",
        "ArrowRight": "points 1 and 3",
        "ArrowUp": "points 2 and 3",
        "ArrowDown": "points 1 and 3",
        "End": "points 4 and 5",
    }.items():
        pair.press(key)
        assert pair.get_attribute("aria-valuetext").startswith(words)
        assert hand.figure.get_by_text(words).is_visible()
    _, points, mapped = check(hand)
    ratio = ((mapped[3] - mapped[4]) ** 2).sum() / ((points[3] - points[4]) ** 2).sum()
    assert pair.get_attribute("aria-valuetext").endswith(f"ratio {ratio:.2f}")
    hand.drag("pair", -250, 0)
    assert "points 4 and 5" not in pair.get_attribute("aria-valuetext")


def test_throws_are_remembered_and_counted_by_the_lines_that_stand(hand):
    hand.set(k=48, d=20, n=6, eps=0.5, seed=1000)
    for _ in range(2):
        hand.figure.get_by_role("button", name="Another R").click()
        hand.settle()
    assert check(hand)[0]["seed"] == 1002
    hand.figure.get_by_role("button", name="40 more throws").click()
    tally = hand.figure.get_by_text("All pairs inside:").first
    hand.page.wait_for_function("(p) => p.textContent.includes(' of 43.')", arg=tally.element_handle())
    hand.settle()
    state, points, _ = check(hand)
    assert state["seed"] == 1042
    i, j = np.triu_indices(6, 1)
    before = ((points[i] - points[j]) ** 2).sum(axis=1)
    worst = []
    for seed in range(1000, 1043):
        y = points @ rows(seed, 48, 20).T / np.sqrt(48)
        worst.append(np.abs(((y[i] - y[j]) ** 2).sum(axis=1) / before - 1).max())
    for eps in (0.5, 0.4, 0.7):
        hand.set(eps=eps)
        assert f"All pairs inside: {(np.array(worst) <= eps).sum()} of 43." in tally.inner_text()
    hand.set(k=24)
    assert "of 1." in tally.inner_text()


def test_seeds_begin_again_after_the_last(hand):
    hand.set(seed=1_000_000, n=3, d=5, k=4)
    hand.figure.get_by_role("button", name="Another R").click()
    hand.settle()
    assert check(hand)[0]["seed"] == 1


def test_it_says_where_nothing_is_saved_or_promised(hand):
    hand.set(k=24, d=20, n=3, eps=0.9)
    hand.figure.get_by_label("k, numbers").press("ArrowRight")
    assert hand.said("nothing is saved")
    hand.set(k=3, d=50, n=10, eps=0.3)
    hand.handle("upper").press("ArrowUp")
    assert hand.said("promises nothing")


def test_a_drag_never_waits(hand):
    hand.set(k=400, d=1000, n=32, eps=0.5, seed=3)
    times = hand.figure.evaluate(
        """async (f) => {
          const times = [];
          for (let i = 0; i < 30; i++) {
            const before = performance.now();
            const drawn = f.instrument.set(i % 2 ? { eps: 0.2 + i / 100 } : { k: 300 + i });
            times.push(performance.now() - before);
            await drawn;
          }
          return times;
        }"""
    )
    assert np.median(times) < 16
    check(hand)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 401},
        {"k": 2.0},
        {"d": 0},
        {"d": True},
        {"n": 1},
        {"n": 33},
        {"eps": 0},
        {"eps": "wide"},
        {"seed": 0},
    ],
)
def test_python_refuses_what_there_is_not(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be .*, got "):
        dice(**wrong)
