"""The bars of a spectrum are dragged: the error of the cut is NumPy's, and the picture has those
singular values.
"""

import numpy as np
import pytest

from lowrank_tutor.figures import spectrum
from lowrank_tutor.svd import tail_error

FIGURE = spectrum


def check(hand):
    s, k = hand.call("table")["s"], hand.call("state")["k"]
    assert s == sorted(s, reverse=True)
    total = tail_error(s, 0)
    expected = tail_error(s, k) / total if total else 0
    assert hand.shown() == pytest.approx({"relative_error": expected}, abs=1e-9)
    return s


def test_random_states(hand):
    rng = np.random.default_rng(0)
    bars = [np.sort(10 ** rng.uniform(-6, 0, 12) * (i % 7))[::-1].tolist() for i in range(50)]
    hand.tour([{"s": s, "k": int(rng.integers(1, 13))} for s in bars], check)


def test_drag_of_a_bar(hand):
    hand.set(s=[1, *[0.5] * 11], k=4)
    hand.drag("singular value 5", 0, -40)
    lifted = check(hand)
    assert lifted[4] > 0.6
    assert lifted[1:5] == [lifted[4]] * 4
    assert lifted[5:] == [0.5] * 7
    hand.drag("singular value 2", 0, 300)
    assert check(hand) == [1, *[0] * 11]


def test_painted_bars(hand):
    hand.set(s=[1] * 12, k=4)
    box = hand.figure.locator("svg.paint").bounding_box()
    hand.page.mouse.move(box["x"] + box["width"] * 0.15, box["y"] + box["height"] * 0.1)
    hand.page.mouse.down()
    hand.page.mouse.move(box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 0.8, steps=30)
    hand.page.mouse.up()
    s = check(hand)
    assert s[0] > 0.8
    assert s[11] < 0.2
    assert len(set(s)) >= 10


def test_picture(hand):
    hand.button("halving").click()
    hand.set(s=[0.4, 0.1, 0.05, *[0] * 9], k=2)
    data = (
        "(c) => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]"
        ".filter((_, i) => i % 4 === 0)"
    )
    gray = np.array(hand.figure.locator("canvas").first.evaluate(data), dtype=float).reshape(64, 64)
    s = np.linalg.svd(gray, compute_uv=False)
    assert (gray.min(), gray.max()) > (0, 0)
    assert s[1] / s[0] == pytest.approx(
        0.25, abs=0.01
    )  # grays are whole, and those below 0 are black
    assert s[2] / s[0] == pytest.approx(0.125, abs=0.01)
    assert s[3] / s[0] < 0.01
