"""Borders between words, and a query among their keys, are dragged: the gap between the outputs is that of PyTorch."""

import numpy as np
import pytest
import torch

from lowrank_tutor.attention import attention_weights
from lowrank_tutor.figures import windows
from lowrank_tutor.sentence import W_K, W_V, WORDS, X

FIGURE = windows

OWN = "my own cat sleeps where your dog used to sleep"


def check(hand):
    """By the package's own attention, through a matrix E that averages."""
    state, table = hand.call("state"), hand.call("table")
    keys, values = (torch.tensor(table[name], dtype=torch.float64) for name in ("keys", "values"))
    n, borders = len(keys), state["borders"]
    assert keys.shape == values.shape == (len(state["words"].split()), 2)
    e = torch.zeros(len(borders), n, dtype=torch.float64)
    for row, start, end in zip(e, borders, [*borders[1:], n], strict=True):
        row[start:end] = 1 / (end - start)
    query = state["sharpness"] * torch.tensor(state["query"], dtype=torch.float64)[None, None, None]
    exact = (attention_weights(query, keys[None, None]) @ values)[0, 0, 0]
    mixed = (attention_weights(query, (e @ keys)[None, None]) @ (e @ values))[0, 0, 0]
    shown = hand.shown()
    if not exact.any():
        assert shown["gap"] == 0, "all values are zero"
        return shown
    expected = {
        "gap": ((exact - mixed).norm() / exact.norm()).item(),
        "weights_exact": n,
        "weights_mixed": len(borders),
    }
    assert shown == pytest.approx(expected, rel=1e-6, abs=1e-6)
    return shown


def start(hand, **state):
    return hand.set(**{**windows().state, **state})


def test_random_states(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(50):
        k = int(rng.integers(1, 13))
        state = {
            "borders": [0, *sorted((rng.permutation(11)[: k - 1] + 1).tolist())],
            "sharpness": float(rng.uniform(0, 4)),
            "query": rng.uniform(-2.6, 2.6, 2).tolist(),
        }
        own = {"words": " ".join(f"word{i}{j}" for j in range(12))}
        states.append(state | (own if i % 10 == 0 else {}))
    hand.tour(states, check)


def test_drag_of_a_border(hand):
    first = start(hand)["gap"]
    hand.drag("border 1,", 0, -20)
    assert hand.call("state")["borders"] == [0, 2, 6, 9]
    check(hand)
    assert start(hand, borders=[0, 2, 4, 5])["gap"] < first / 2


def test_sliders(hand):
    start(hand)
    count = hand.figure.get_by_label("windows", exact=True)
    for windows_kept, words in (("5", ""), ("12", "window of its own"), ("1", "single window")):
        count.fill(windows_kept)
        assert check(hand)["weights_mixed"] == int(windows_kept)
        hand.said(words)
    start(hand, borders=[0, 1, 2])
    hand.figure.get_by_label("sharpness").fill("0")
    assert check(hand)["gap"] > 0.1  # uneven windows have one vote each
    hand.said("one vote")


def test_own_sentence(hand):
    start(hand)
    field = hand.figure.get_by_label("Your sentence")
    field.fill(f"  {OWN} ")
    hand.button("Use it").click()
    assert hand.call("state")["words"] == OWN
    assert hand.call("state")["borders"] == [0, 2, 5, 7]
    check(hand)
    hand.said("made up")
    keys = dict(zip(OWN.split(), hand.call("table")["keys"], strict=True))
    assert keys["cat"] == [2, 0]  # a word that has numbers keeps them
    assert keys["sleep"] != keys["sleeps"]
    hand.set(words="Sleep, cat!", borders=[0])
    assert hand.call("table")["keys"] == [keys["sleep"], keys["cat"]]  # the same letters, the same numbers
    for words in ("the the", "кот спит 猫 ngủ café", "c++ costs 5€", "a b c d e f g h i j k l"):
        hand.set(words=words, borders=[0, 1])
        check(hand)
    hand.button("Start again").click()
    hand.page.wait_for_function("(f) => f.value.startsWith('the old')", arg=field.element_handle())
    assert hand.call("table")["keys"] == windows().data["keys"]


def test_words_of_the_book(hand):
    asked = {"borders": [0, 2, 4], "sharpness": 1.6, "query": [2.5, 0.0]}  # what "slept" asks
    start(hand, **asked, words=" ".join(WORDS))
    check(hand)
    table = hand.call("table")
    assert (np.array(table["keys"]) == np.array(X) @ W_K).all()
    assert (np.array(table["values"]) == np.array(X) @ W_V).all()
    hand.handle("border 1,").press("ArrowUp")
    hand.handle("border 1,").press("ArrowDown")
    assert "“cat”, with 89%" in hand.said("89%")
    assert "gets 34%" in hand.said()  # as chapter 7 says
