"""Borders between the words of a story are dragged: tables and the next word are those of the
package's model.
"""

import numpy as np
import pytest

from lowrank_tutor import storyteller
from lowrank_tutor.figures import windows

FIGURE = windows
STORY = windows().data["story"]
N = len(STORY)


def check(hand):
    """By a matrix E that averages what each word sees, and a logarithm of its sizes."""
    state, table = hand.call("state"), np.array(hand.call("table")["tables"])
    ends = [*state["borders"][1:], N]

    def attend(q, k, v):
        read = np.zeros_like(v)
        for i in range(N):
            spans = [
                (start, min(end, i + 1))
                for start, end in zip(state["borders"], ends, strict=True)
                if start <= i
            ]
            e = np.array(
                [[(start <= j < end) / (end - start) for j in range(N)] for start, end in spans]
            )
            logits = q[..., i, None, :] @ (e @ k).swapaxes(-1, -2) / 4 + np.log(
                [end - start for start, end in spans]
            )
            powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
            read[..., i, :] = (powers / powers.sum(axis=-1, keepdims=True) @ (e @ v))[..., 0, :]
        return read

    shown = hand.shown()
    assert shown["right"] == pytest.approx(
        storyteller.next_words(STORY, attend=attend)["red"], abs=1e-5
    )
    exact = storyteller.tables([storyteller.encode(STORY)])[0].reshape(8, N, N)
    assert shown["table_error"] == pytest.approx(
        np.linalg.norm(table - exact) / np.linalg.norm(exact), abs=1e-5
    )
    assert shown["windows"] == len(state["borders"])
    return shown


def test_random_states(hand):
    rng, states = np.random.default_rng(0), []
    for _ in range(20):
        k = int(rng.integers(1, N + 1))
        states.append({"borders": [0, *sorted((rng.permutation(N - 1)[: k - 1] + 1).tolist())]})
    hand.tour(states, check)


def test_red_alone(hand):
    """A window of its own for the wanted word is enough, and no border beside it may go."""
    assert hand.set(borders=[0, 3, 4])["right"] > 0.99
    assert hand.set(borders=[0, 8, 15])["right"] < 0.2
    for border in (2, 3, 4, 5):
        found = hand.set(borders=[at for at in range(N) if at != border])["right"]
        assert (found < 0.3) == (border in (3, 4)), border


def test_hands(hand):
    hand.set(**windows().state)
    hand.drag("border 1,", 0, -20)
    assert hand.call("state")["borders"] == [0, 3, 8, 12, 16, 20]
    check(hand)
    border = hand.handle("border 2,")
    for key, at in {"ArrowUp": 7, "ArrowRight": 8, "Home": 4, "End": 11}.items():
        border.press(key)
        assert hand.call("state")["borders"][2] == at
        check(hand)
    assert border.get_attribute("aria-valuetext") == "between has and jam"


def test_count(hand):
    count = hand.figure.get_by_label("equal windows")
    for number, words in ((str(N), "window of its own"), ("1", "single window"), ("5", "")):
        count.fill(number)
        assert check(hand)["windows"] == int(number)
        hand.said(words)
