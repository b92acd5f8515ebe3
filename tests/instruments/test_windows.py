"""Borders between words, and a query among their keys, are dragged: the gap between the outputs is that of PyTorch."""

import re

import numpy as np
import pytest
import torch

from lowrank_tutor.attention import attention_weights
from lowrank_tutor.figures import windows
from lowrank_tutor.sentence import W_K, W_V, WORDS, X

OWN = "my own cat sleeps where your dog used to sleep"


@pytest.fixture(scope="module")
def hand(show):
    return show(windows())


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
    assert "NaN" not in hand.html()
    handles = re.findall(r"<g [^>]*handle[^>]*>", hand.html())
    grips = [handle for handle in handles if 'aria-label="border' in handle and " hidden" not in handle]
    assert len(grips) == len(borders) - 1
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


def test_drag(hand):
    first = start(hand)["gap"]
    hand.drag("border 1,", 0, -20)
    assert hand.call("state")["borders"] == [0, 2, 6, 9]
    check(hand)
    hand.drag("border 2,", 0, -40)
    assert hand.call("state")["borders"] == [0, 2, 4, 9]
    check(hand)
    hand.drag("border 3,", 0, -300)  # no farther than the border before it
    assert hand.call("state")["borders"] == [0, 2, 4, 5]
    assert check(hand)["gap"] < first / 2
    for dx, dy in ((-90, -60), (-60, 90)):
        before = hand.call("state")
        hand.drag("tip of the query", dx, dy)
        after = hand.call("state")
        assert {**before, "query": after["query"]} == after != before
        check(hand)


def test_keys(hand):
    start(hand)
    border = hand.handle("border 2,")
    for key, at in {"ArrowUp": 5, "ArrowRight": 6, "Shift+ArrowDown": 8, "Home": 4, "End": 8}.items():
        border.press(key)
        assert hand.call("state")["borders"] == [0, 3, at, 9]
        check(hand)
    assert border.get_attribute("aria-valuetext") == "between was and tired"
    for key, query in {"ArrowUp": [2.5, 0.1], "Shift+ArrowLeft": [1.5, 0.1], "ArrowRight": [1.6, 0.1]}.items():
        hand.handle("tip of the query").press(key)
        assert hand.call("state")["query"] == pytest.approx(query)
        check(hand)
    assert "looks most at" in hand.said("most at")


def test_sliders(hand):
    start(hand)
    hand.figure.get_by_label("windows", exact=True).fill("5")
    assert hand.call("state")["borders"] == [0, 2, 4, 7, 9]
    check(hand)
    hand.figure.get_by_label("windows", exact=True).fill("12")
    assert check(hand)["gap"] == pytest.approx(0, abs=1e-12)
    hand.said("window of its own")
    hand.figure.get_by_label("windows", exact=True).fill("1")
    check(hand)
    hand.said("single window")
    start(hand, borders=[0, 1, 2])
    hand.figure.get_by_label("sharpness").fill("0")
    assert hand.call("state")["sharpness"] == 0
    assert check(hand)["gap"] > 0.1  # uneven windows have one vote each
    hand.said("one vote")


def test_good_borders(hand):
    assert start(hand)["gap"] > 0.6
    assert start(hand, borders=[0, 2, 4, 6])["gap"] < 0.15
    hand.handle("tip of the query").press("ArrowUp")
    hand.said("alike here")
    assert start(hand, borders=[0, 2, 4, 6], query=[0, 2.5])["gap"] > 0.45


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
    field.fill("Sleep, cat!")
    field.press("Enter")
    check(hand)
    assert hand.call("table")["keys"] == [keys["sleep"], keys["cat"]]  # the same letters, the same numbers
    for words in ("dog", "the the", "кот спит 猫 ngủ café", "c++ costs 5€", "a b c d e f g h i j k l"):
        field.fill(words)
        field.press("Enter")
        assert hand.call("state")["words"] == words
        check(hand)
        count = hand.figure.get_by_label("windows", exact=True)
        assert count.get_attribute("max") == str(len(words.split()))
    hand.button("Start again").click()
    hand.page.wait_for_function("(f) => f.value.startsWith('the old')", arg=field.element_handle())
    assert hand.call("table")["keys"] == windows().data["keys"]


def test_words_of_the_book(hand):
    asked = {"borders": [0, 2, 4], "sharpness": 1.6, "query": [2.5, 0.0]}  # what "slept" asks
    six = windows(**asked, sentence=" ".join(WORDS))
    assert six.state == {**asked, "words": " ".join(WORDS)}
    assert start(hand, **six.state) == pytest.approx(six.numbers)
    table = hand.call("table")
    assert (np.array(table["keys"]) == np.array(X) @ W_K).all()
    assert (np.array(table["values"]) == np.array(X) @ W_V).all()
    check(hand)
    hand.handle("border 1,").press("ArrowUp")
    hand.handle("border 1,").press("ArrowDown")
    assert "“cat”, with 89%" in hand.said("89%")
    assert "gets 34%" in hand.said()  # as chapter 7 says


def test_names_do_not_overlap(hand):
    rng = np.random.default_rng(5)
    for i in range(12):
        state = {"query": rng.uniform(-2.6, 2.6, 2).tolist(), "borders": [0, int(rng.integers(1, 6)), 7]}
        words = " ".join(f"{'long' * (i % 3)}{rng.integers(999)}" for _ in range(12))
        start(hand, **state, **({"words": words} if i % 2 else {}))
        for panel in hand.figure.locator("svg:has(.dots)").all():
            boxes = panel.locator("text.word:visible").evaluate_all(
                "(all) => all.map((t) => t.getBBox()).map((b) => [b.x, b.y + 2, b.x + b.width, b.y + b.height - 2])"
            )
            assert len(boxes) >= 6
            for at, one in enumerate(boxes):
                for other in boxes[:at]:
                    assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_height_on_a_phone(show):
    hand = show(windows(), root=' style="padding:0 16px"', viewport={"width": 360, "height": 740})
    assert hand.figure.bounding_box()["height"] <= 1.9 * 740


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("", "There is no word yet"),
        (" \t ", "There is no word yet"),
        ("so " * 40, "These are 40 words: shorten"),
        ("so " * 13, "These are 13 words: shorten"),
        ("a cat 🐈 slept", "“🐈” is not a word"),
        ("cat👩‍👩‍👧 slept", "is not a word"),
        ("well - yes", "“-” is not a word"),
        ("<img> <script>alert(1)</script>", "too long"),
        ("x" * 25, "too long"),
    ],
)
def test_bad_sentences(hand, typed, answer):
    start(hand)
    before = hand.shown()
    field = hand.figure.get_by_label("Your sentence")
    field.fill(typed)
    field.press("Enter")
    hand.said(answer)
    assert hand.shown() == before
    assert hand.call("state") == windows().state
    check(hand)
    field.blur()


def test_link(hand, show):
    state = {"borders": [0, 2], "sharpness": 2, "query": [1, -1], "words": "so, what; now &then: 50% #1"}
    hand.set(**state)
    numbers = check(hand)
    hand.button("Copy a link").click()
    hand.said("link" if "link" in hand.said() else "address")
    fresh = show(windows(), address="#" + hand.page.url.split("#", 1)[1])
    assert fresh.call("state") == state
    assert check(fresh) == numbers
