"""The budget: bytes by hand, answers as the twin in NumPy gives them, and the best result, which
stays.
"""

import numpy as np
import pytest
from chapters import ROOT

from lowrank_tutor.figures import budget
from lowrank_tutor.figures.budget import SETTINGS, UNCUT, cache_bytes, counted_stories, shares

FIGURE = budget
STATES = [
    {"bits": 3},
    {"rank": 4, "second": 16},
    {"first": 8, "bits": 4, "rank": 8},
    {"heads": [0, 1, 1, 1, 1, 1, 0, 1], "bits": 2},
    {"latents": 24, "first": 12},
    {"latents": 16, "heads": [1, 1, 1, 1, 0, 0, 0, 0]},
]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 48 * 2 * 4 * 32 * 2),
        ({"bits": 4}, 48 * 2 * 4 * (32 * 4 + 4 * 16) / 8),
        ({"first": 8, "heads": [1, 0, 0, 0, 1, 1, 0, 0]}, (8 * 1 + 48 * 2) * 32 * 2),
        ({"latents": 12, "heads": [1, 1, 1, 1, 0, 0, 0, 0]}, 48 * 12 * 2),
    ],
)
def test_bytes_by_hand(change, expected):
    assert cache_bytes(UNCUT | change) == expected


def test_answers_are_numpys(hand):
    """A number on the border of two answers may fall the other way: one question in a hundred, at
    most.
    """
    assert len(counted_stories()) == 60

    def check(seen):
        numbers, expected = seen.shown(), shares(seen.call("state"))
        assert numbers.pop("bytes") == cache_bytes(seen.call("state"))
        assert numbers["answered"] == pytest.approx(expected["answered"], abs=0.01)
        assert (
            np.mean([numbers[name] == pytest.approx(expected[name]) for name in expected]) >= 0.75
        )

    hand.tour([UNCUT | state for state in STATES], check)


def test_sliders_heads_and_the_best(show):
    hand = show(budget())
    hand.figure.evaluate(
        "(f) => { window.bests = []; f.addEventListener('best', (e) => bests.push(e.detail)); }"
    )
    slider = hand.figure.get_by_label("bits for each number")
    slider.fill(str(SETTINGS["bits"].index(4)))
    hand.said("your best so far")
    assert hand.call("state")["bits"] == 4
    hand.button("layer 2, head 1").click()
    hand.page.wait_for_function(
        "(f) => f.instrument.state().heads[4] === 0", arg=hand.figure.element_handle()
    )
    hand.settle()
    assert hand.figure.get_by_label("numbers in a key").is_enabled()
    hand.figure.get_by_label("latent numbers").fill("0")
    hand.settle()
    assert not hand.figure.get_by_label("numbers in a key").is_enabled(), (
        "latents have no keys of their own"
    )
    record = hand.figure.locator(".record").inner_text()
    strange = {"bytes": -1, "answered": 1.0, "state": {}}
    hand.figure.evaluate("(f, kept) => f.instrument.recall(kept)", strange)
    assert hand.figure.locator(".record").inner_text() == record
    kept = hand.page.evaluate("bests")
    assert [one["bytes"] for one in kept] == sorted((one["bytes"] for one in kept), reverse=True)
    hand.button("Show it").click()
    hand.page.wait_for_function(
        "([f, bits]) => f.instrument.state().bits === bits", arg=[hand.figure.element_handle(), 4]
    )
    hand.settle()
    assert all(one["answered"] >= 0.95 for one in kept)


@pytest.mark.parametrize(
    ("change", "size", "answered"),
    [
        ({"first": 16, "rank": 10, "bits": 3, "heads": [1, 0, 1, 1, 0, 1, 1, 0]}, "2,556", "95.5%"),
        ({"first": 8, "latents": 24}, "2,688", "95.2%"),
    ],
)
def test_settings_of_the_page(change, size, answered):
    page = (ROOT / "book" / "budget.md").read_text(encoding="utf-8")
    assert f"{cache_bytes(UNCUT | change):,}" == size
    assert f"{shares(UNCUT | change)['answered']:.1%}" == answered
    assert size in page
    assert answered in page
