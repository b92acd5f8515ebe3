"""Turn what a word asks for: weights and output are those of the package's attention."""

import numpy as np
import pytest
import torch

from lowrank_tutor.attention import attention_weights, softmax_attention
from lowrank_tutor.figures import attend
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X

FIGURE = attend


def check(seen):
    state = seen.call("state")
    table = {
        name: torch.tensor(part, dtype=torch.float64) for name, part in seen.call("table").items()
    }
    assert table["keys"].numpy() == pytest.approx(np.array(X) @ W_K)
    assert table["values"].numpy() == pytest.approx(np.array(X) @ W_V)
    query = state["sharpness"] * torch.tensor(state["query"], dtype=torch.float64)[None, None, None]
    keys, values = table["keys"][None, None], table["values"][None, None]
    weights, output = (
        attention_weights(query, keys)[0, 0, 0],
        softmax_attention(query, keys, values)[0, 0, 0],
    )
    assert table["weights"].numpy() == pytest.approx(weights.numpy())
    expected = {
        "share": weights.max().item(),
        "creature": output[0].item(),
        "happens": output[1].item(),
    }
    assert seen.shown() == pytest.approx(expected, abs=1e-9)


def test_random_states(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(24):
        query = [0, 0] if i % 8 == 1 else rng.uniform(-4.4, 4.4, 2).tolist()
        sharpness = float(rng.uniform(0, 4)) if i % 2 else 1
        states.append({"row": int(rng.integers(6)), "query": query, "sharpness": sharpness})
    hand.tour(states, check)


@pytest.mark.parametrize("word", ["the", "cat", "tired"])
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


def test_more_is_folded(hand):
    hand.set(**attend().state)
    assert not hand.figure.get_by_label("sharpness").is_visible()
    hand.figure.get_by_text("More", exact=True).click()
    hand.figure.get_by_label("sharpness").fill("0")
    assert hand.shown() == pytest.approx({"share": 1 / 6, "creature": 4 / 3, "happens": 2 / 3})
    hand.said("plain mean")
