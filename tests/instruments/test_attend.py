"""Turn what a word asks for: weights and output are those of the package's attention."""

import re

import numpy as np
import pytest
import torch

from lowrank_tutor.attention import attention_weights, softmax_attention
from lowrank_tutor.figures import attend
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X


@pytest.fixture(scope="module")
def hand(show):
    return show(attend())


def check(seen):
    state = seen.call("state")
    table = {name: torch.tensor(part, dtype=torch.float64) for name, part in seen.call("table").items()}
    words = state["words"].split()
    if set(words) <= set(WORDS):
        x = np.array([X[WORDS.index(word)] for word in words], dtype=float)
        assert table["keys"].numpy() == pytest.approx(x @ W_K)
        assert table["values"].numpy() == pytest.approx(x @ W_V)
    query = state["sharpness"] * torch.tensor(state["query"], dtype=torch.float64)[None, None, None]
    keys, values = table["keys"][None, None], table["values"][None, None]
    weights, output = attention_weights(query, keys)[0, 0, 0], softmax_attention(query, keys, values)[0, 0, 0]
    assert table["weights"].numpy() == pytest.approx(weights.numpy())
    expected = {"share": weights.max().item(), "creature": output[0].item(), "happens": output[1].item()}
    assert seen.shown() == pytest.approx(expected, abs=1e-9)
    assert not re.search('[ "(,]NaN', seen.html())  # letters of a picture may be those, too


def test_random_states(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(24):
        n = int(rng.integers(1, 9))
        words = [f"word{i}{j}" for j in range(n)] if i % 4 == 0 else rng.choice(WORDS, n).tolist()
        query = [0, 0] if i % 8 == 1 else rng.uniform(-4.4, 4.4, 2).tolist()
        sharpness = float(rng.uniform(0, 4)) if i % 2 else 1
        states.append({"words": " ".join(words), "row": int(rng.integers(n)), "query": query, "sharpness": sharpness})
    hand.tour(states, check)


@pytest.mark.parametrize("word", WORDS)
def test_words_ask(hand, word):
    hand.set(**attend("was" if word == "cat" else "cat").state)
    hand.figure.get_by_label(word, exact=True).check()
    asked = (np.array(X[WORDS.index(word)]) @ W_Q).tolist()
    hand.page.wait_for_function(
        "([figure, query]) => String(figure.instrument.state().query) === String(query)",
        arg=[hand.figure.element_handle(), asked],
    )
    assert hand.call("state") == attend(word).state
    assert hand.shown() == pytest.approx(attend(word).numbers)
    assert attend(word).alt in hand.said(f"“{word}” gives")


def test_drag_and_keys(hand):
    hand.set(**attend().state)
    tip = hand.handle("tip of")
    for key, query in {"ArrowUp": [4.0, 0.1], "Shift+ArrowLeft": [3.0, 0.1], "ArrowRight": [3.1, 0.1]}.items():
        tip.press(key)
        assert hand.call("state")["query"] == pytest.approx(query)
        check(hand)
    assert tip.get_attribute("aria-valuetext") == "x 3.1, y 0.1"
    hand.drag("tip of", -80, -60)
    query = hand.call("state")["query"]
    assert query[0] < 2
    assert query[1] > 1
    check(hand)


def test_more_is_folded(hand):
    hand.set(**attend().state)
    field = hand.figure.get_by_label("Your sentence")
    assert not field.is_visible()
    hand.figure.get_by_text("More", exact=True).click()
    hand.figure.get_by_label("sharpness").fill("0")
    assert hand.shown() == pytest.approx({"share": 1 / 6, "creature": 4 / 3, "happens": 2 / 3})
    hand.said("plain mean")
    field.fill("my cat sleeps")
    field.press("Enter")
    assert hand.call("state")["words"] == "my cat sleeps"
    check(hand)
    hand.said("made up")
    field.fill("so " * 9)
    field.press("Enter")
    hand.said("shorten the sentence to 8")


def test_fits_a_phone(show):
    hand = show(attend(), viewport={"width": 360, "height": 740})
    hand.set(words="internationalization " * 7 + "x", row=0)
    assert hand.page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"word": "dog"}, "word must be one of"),
        ({"query": (5, 0)}, "query must be two numbers from -4.4 to 4.4"),
        ({"query": (1, 2, 3)}, "query must be"),
        ({"sharpness": 4.1}, "sharpness must be a number from 0 to 4"),
        ({"sharpness": float("nan")}, "sharpness must be"),
        ({"sentence": ""}, "sentence must be 1 to 8 words"),
        ({"sentence": None}, "sentence must be"),
    ],
)
def test_bad_arguments(wrong, rule):
    with pytest.raises(ValueError, match=rule):
        attend(**wrong)


@pytest.mark.parametrize("wish", [{"row": 6}, {"row": 0.5}, {"query": [5, 0]}, {"sharpness": -1}, {"words": ""}])
def test_bad_states(hand, wish):
    hand.set(**attend().state)
    with pytest.raises(Exception, match=r"must be|no word"):
        hand.call("set", wish)
    assert hand.call("state") == attend().state
