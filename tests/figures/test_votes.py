"""Groups of old tokens: weights, and what is lost, are those of the package's causal windows."""

import re

import numpy as np
import pytest
import torch

from lowrank_tutor.figures import votes
from lowrank_tutor.states import window_attention

FIGURE = votes


def heads(rho):
    """Return queries, keys and values of the 32 tokens, from what the page is given."""
    data = votes().data
    noise, maps = (
        (np.array([re.findall("..", row) for row in data[name]], dtype=float) - 50) / scale
        for name, scale in (("noise", 16), ("maps", 32))
    )
    x = [noise[0]]
    for fresh in noise[1:]:
        x.append(rho * x[-1] + (1 - rho**2) ** 0.5 * fresh)
    return [torch.tensor(np.array(x) @ part)[None, None] for part in np.split(maps, 3)]


def expected(m, way, rho):
    """Return the numbers, and the weights of the last token."""
    q, k, v = heads(rho)
    everything = torch.cat([v, torch.eye(32, dtype=v.dtype)[None, None]], dim=-1)
    exact = window_attention(q, k, everything, window=16, m=1)[0, 0, -1]
    if way == "none":
        q, k, everything = (part[:, :, 16:] for part in (q, k, everything))
        m = 1
    found = window_attention(q, k, everything, window=16, m=m, votes=way == "votes")[0, 0, -1]
    error = float((found - exact)[:8].norm() / exact[:8].norm())
    seen = 16 if way == "none" else 16 // m + 16 % m + 16
    numbers = {"error": error, "old": float(found[8:24].sum()), "exact_old": float(exact[8:24].sum()), "seen": seen}
    return numbers, found[8:].numpy(), exact[8:].numpy()


def test_random_states_match_window_attention(hand):
    rng = np.random.default_rng(0)
    ways = ("one", "votes", "none")
    states = [
        {"m": int(rng.integers(1, 17)), "way": ways[i % 3], "rho": float(rng.choice([0, 0.9, 0.95, 0.99]))}
        for i in range(20)
    ]

    def check(seen):
        state = {name: seen.call("state")[name] for name in ("m", "way", "rho")}
        numbers, shared, exact = expected(**state)
        assert seen.shown() == pytest.approx(numbers, abs=1e-9), state
        assert votes(**state).numbers == pytest.approx(numbers, abs=1e-9), state
        assert seen.call("table")["exact"] == pytest.approx(exact)
        groups = 16 // state["m"]
        sizes = [state["m"]] * groups + [1] * (32 - groups * state["m"])
        each = np.repeat(np.array(seen.call("table")["grouped"]) / sizes, sizes)
        assert each == pytest.approx(shared, abs=1e-9)

    hand.tour(states, check)


def test_border_and_choices_move(hand):
    hand.set(**votes().state)
    hand.drag("first border", -60, 0)
    assert 3 <= hand.call("state")["m"] <= 6
    hand.handle("first border").press("Home")
    hand.said("the token itself")
    hand.figure.get_by_label("0", exact=True).check()
    hand.said("nothing in common")
