"""Two vectors are dragged: the score and its two factors agree with NumPy."""

import re

import numpy as np
import pytest

from lowrank_tutor.bilinear import reduced_rank_score
from lowrank_tutor.figures import score


@pytest.fixture(scope="module")
def hand(show):
    return show(score())


def check(hand):
    u, v, w = (np.array(hand.call("table")[name]) for name in ("u", "v", "w"))
    s, h = (np.array(hand.call("state")[name]) for name in ("s", "h"))
    assert u.shape == v.shape == (1, 2)
    assert (w == u.T @ v).all()
    shown = hand.shown()
    expected = {"score": s @ w @ h, "a": (u @ s).item(), "b": (v @ h).item()}
    assert shown == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert shown["score"] == pytest.approx(reduced_rank_score(s, u, v, h), abs=1e-9)
    assert "NaN" not in hand.html()
    return shown


def box(hand):
    """The rectangle as it is drawn, in units of the axes."""
    area = hand.figure.locator("rect.area")
    ticks = hand.figure.locator("svg").nth(1).locator(".grid text")
    at = {
        float(text.text_content()): float(text.get_attribute("x"))
        for text in ticks.all()
        if re.fullmatch(r"-?\d+", text.text_content() or "") and text.get_attribute("text-anchor") == "middle"
    }
    unit = (at[5] - at[0]) / 5
    return [float(area.get_attribute(side)) / unit for side in ("width", "height")]


def test_random_states(hand):
    rng = np.random.default_rng(0)
    hand.tour([{name: rng.uniform(-5, 5, 2).tolist() for name in ("s", "h")} for _ in range(50)], check)


def test_rectangle(hand):
    for s, h in (([1, 2], [3, 4]), ([-4, 1], [2, -5]), ([5, 5], [5, -5]), ([1, -2], [0, 1])):
        shown = hand.set(s=s, h=h)
        assert box(hand) == pytest.approx([abs(shown["a"]), abs(shown["b"])], abs=0.01)
        color = "orange" if shown["score"] < 0 else "ink"
        assert hand.figure.locator(f"rect.area.{color}").count() == 1
        texts = hand.figure.locator(".panels > div").nth(1).locator("p").all_inner_texts()
        ends = [float(text.split("= ")[-1].replace("\N{MINUS SIGN}", "-")) for text in texts[-2:]]
        assert ends == pytest.approx([shown["score"]] * 2, abs=0.005), "in full, and by shadows"


@pytest.mark.parametrize(("u", "v"), [((0, 1), (1, 0)), ([[10, -0.5]], [[0, 0.1]]), ((1, 1), (1, 1))])
def test_other_tables(show, u, v):
    hand = show(score(u=u, v=v))
    check(hand)
    hand.drag("tip of h", 20, 30)
    check(hand)


def test_drag(hand):
    hand.set(s=[1, 2], h=[3, 4])
    for name, dx, dy in (("s", 40, 20), ("s", -90, 60), ("h", -30, 80), ("h", -60, -20), ("s", 900, -900)):
        before = hand.call("state")
        hand.drag(f"tip of {name}", dx, dy)
        after = hand.call("state")
        assert [one for one in "sh" if before[one] != after[one]] == [name]
        check(hand)
    assert hand.call("state")["s"] == [5, 5]  # held at the corner


def test_keys(hand):
    hand.set(s=[1, 2], h=[3, 4])
    keys = (("s", "ArrowRight", [1.1, 2]), ("s", "ArrowDown", [1.1, 1.9]), ("s", "Shift+ArrowLeft", [0.1, 1.9]))
    for name, key, place in (*keys, ("h", "Shift+ArrowUp", [3, 5]), ("h", "ArrowLeft", [2.9, 5])):
        hand.handle(f"tip of {name}").press(key)
        assert hand.call("state")[name] == pytest.approx(place)
        check(hand)
    assert hand.handle("tip of h").get_attribute("aria-valuetext") == "x 2.9, y 5.0"
    hand.said("a times b is -4.41")


def test_only_shadows_count(hand):
    start = hand.set(s=[1, 2], h=[3, 4])
    hand.handle("tip of s").press("ArrowUp")
    hand.said("a = 4.10")
    hand.handle("tip of s").press("ArrowDown")
    hand.said("a = 4.00")
    for _ in range(9):  # to an edge of the plane, and back
        hand.button("Move s along its dashed line").click()
        assert hand.shown() == pytest.approx(start)
    assert "so does the score" in hand.said("shadow stays the same")
    assert hand.call("state")["s"] != [1, 2]
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
