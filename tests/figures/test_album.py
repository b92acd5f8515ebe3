"""An album that is written over: what is read, and given back, is NumPy's."""

import re
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits

from lowrank_tutor.figures import album

PICTURES = load_digits().images[:64]
FIGURE = partial(album, PICTURES)


def expected(keys, grays, written, d, method):
    """By least squares and by loops, not as the module computes it."""
    k, v = keys[:written, :d].copy(), grays[:written]
    k /= np.sqrt((k**2).sum(1))[:, None]
    if method == "cache":
        read = v
    elif method == "sum":
        read = (k @ k.T) @ v
    elif method == "best":
        read = k @ np.linalg.lstsq(k, v, rcond=None)[0]
    else:
        state = np.zeros((d, 64))
        for t in range(written):
            state = state - k[t][:, None] * (k[t] @ state) + k[t][:, None] * v[t]
        read = k @ state
    return read


def test_random_states(hand):
    data = album(PICTURES).data
    codes = np.array([re.findall("..", row) for row in data["keys"]], dtype=int)
    grays = np.array([[int(one, 36) for one in row] for row in data["grays"]])
    keys = (codes - 50) / 16
    rng = np.random.default_rng(0)
    states = [
        {"written": int(rng.integers(1, 65)), "d": int(rng.choice([16, 32, 64])), "method": method}
        for method in ("sum", "delta", "best", "cache") * 8
    ]

    def check(seen):
        state = {name: seen.call("state")[name] for name in ("written", "d", "method")}
        read, written, method = expected(keys, grays, **state), state["written"], state["method"]
        assert np.array(seen.call("table")["read"]) == pytest.approx(read, abs=1e-5)
        far = np.linalg.norm(read[:, None] - grays[None, :written], axis=2)
        right = int((far.argmin(1) == np.arange(written)).sum())
        kept = written * (state["d"] + 64) if method == "cache" else state["d"] * 64
        error = np.linalg.norm(read - grays[:written]) / np.linalg.norm(grays[:written])
        holds = written if method == "cache" else state["d"] * 64 // (state["d"] + 64)
        shown = {
            "given_back": right,
            "kept": kept,
            "holds": holds,
            "error": pytest.approx(error, abs=1e-6),
        }
        assert seen.shown() == shown
        assert album(PICTURES, **state).numbers == shown

    hand.tour(states, check)


def test_controls_move(hand):
    hand.call("set", album(PICTURES).state)
    hand.figure.get_by_role("button", name="Write one more").click()
    assert hand.call("state")["written"] == 49
    hand.figure.get_by_label("delta rule").check()
    hand.said("gives up old pictures")
    hand.figure.locator(".frames rect").nth(10).click(force=True)
    assert hand.call("state") == {"written": 11, "d": 32, "method": "delta"}
