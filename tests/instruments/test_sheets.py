"""Lift sheets off a table of attention: errors, arcs and words are NumPy's."""

import numpy as np
import pytest

from lowrank_tutor.byhand.sentence import W_K, W_Q, W_V, WORDS, X
from lowrank_tutor.instruments import sheets


@pytest.fixture(scope="module")
def hand(show):
    return show(sheets())


def check(seen):
    """Recompute the table from the words' numbers, and its best approximation by NumPy."""
    state, table = seen.call("state"), {name: np.array(part) for name, part in seen.call("table").items()}
    words = state["words"].split()
    if set(words) <= set(WORDS):
        x = np.array([X[WORDS.index(word)] for word in words], dtype=float)
        scores = x @ W_Q @ (x @ W_K).T / np.sqrt(2)
        assert table["values"] == pytest.approx(x @ W_V)
        assert table["exact"] == pytest.approx(np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    exact, values = table["exact"], table["values"]
    assert exact.sum(axis=1) == pytest.approx(1)
    u, s, vt = np.linalg.svd(exact)
    kept = (u * (s * (np.arange(len(s)) < state["k"]))) @ vt
    errors = [
        np.linalg.norm((exact - kept) @ part) / (np.linalg.norm(exact @ part) or 1) for part in (np.eye(len(s)), values)
    ]
    assert list(seen.shown().values()) == pytest.approx(errors, abs=1e-7)
    assert table["kept"] == pytest.approx(kept, abs=1e-7)
    assert "NaN" not in seen.html()


def test_random_states_match_numpy(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(24):
        n = int(rng.integers(1, 9))
        words = [f"word{i}{j}" for j in range(n)] if i % 4 == 0 else rng.choice(WORDS, n).tolist()
        states.append({"words": " ".join(words), "k": int(rng.integers(1, n + 1)), "row": int(rng.integers(n))})
    for state, seen in zip(states, hand.tour(states), strict=True):
        assert seen.call("state") == state
        check(seen)


def test_one_sheet_listens_alike(hand):
    hand.set(**sheets(1).state)
    kept = np.array(hand.call("table")["kept"])
    assert kept.argmax(axis=1).tolist() == [WORDS.index("cat")] * 6
    hand.set(k=2)
    two, exact = (np.array(hand.call("table")[name]) for name in ("kept", "exact"))
    assert (two.argmax(axis=1) == exact.argmax(axis=1))[1:].all()
    assert np.ptp(exact[0]) == pytest.approx(0)


def test_ring_and_words_move(hand):
    hand.set(**sheets().state)
    ring = hand.handle("sheets that")
    for key, k in {"ArrowRight": 3, "ArrowDown": 2, "Home": 1, "End": 6, "Shift+ArrowLeft": 4}.items():
        ring.press(key)
        assert hand.call("state")["k"] == k
    assert ring.get_attribute("aria-valuetext") == "keep 4 of 6"
    width = hand.figure.locator("svg").last.bounding_box()["width"]
    hand.drag("sheets that", -3 * width / 6, 0)
    assert hand.call("state")["k"] == 1
    hand.figure.get_by_label("tired", exact=True).check()
    assert hand.call("state")["row"] == WORDS.index("tired")
    assert "“tired” listens most to “cat”" in hand.said("tired")
    check(hand)


def test_own_sentence(hand):
    hand.set(**sheets().state)
    field = hand.figure.get_by_label("Your sentence")
    field.fill("my cat sleeps")
    hand.figure.get_by_role("button", name="Use it").click()
    assert hand.call("state") == {"k": 2, "row": 0, "words": "my cat sleeps"}
    assert hand.figure.get_by_role("radio").count() == 3
    hand.said("made up")
    check(hand)
    field.fill("so " * 9)
    field.press("Enter")
    hand.said("shorten the sentence to 8")
    hand.figure.get_by_role("button", name="Start again").click()
    hand.page.wait_for_function("(f) => f.value.startsWith('the cat')", arg=field.element_handle())
    assert hand.call("state") == sheets().state


@pytest.mark.parametrize(("motion", "ks"), [("no-preference", {1, 2, 6}), ("reduce", {2})])
def test_demonstration(show, motion, ks):
    hand = show(sheets(demo=True), reduced_motion=motion)
    seen = hand.figure.evaluate(
        """async (figure) => {
          const ks = [];
          for (let i = 0; i < 48; i++) {
            ks.push(figure.instrument.state().k);
            await new Promise((done) => setTimeout(done, 100));
          }
          return ks;
        }"""
    )
    assert ks <= set(seen)
    assert seen[-1] == 2
    assert hand.figure.locator("p[role=status]").inner_text() == ""  # nobody asked, so nothing is said


def test_any_input_stops_the_demonstration(show):
    hand = show(sheets(demo=True))
    hand.page.wait_for_function("(figure) => figure.instrument.state().k === 6", arg=hand.figure.element_handle())
    hand.handle("sheets that").press("ArrowRight")
    hand.page.wait_for_timeout(4500)
    assert hand.call("state")["k"] == 3


def test_own_words_fit_a_phone(show):
    hand = show(sheets(), viewport={"width": 360, "height": 740})
    hand.set(words="internationalization " * 7 + "x", k=1, row=0)
    assert hand.page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"k": 0}, "k must be between 1 and"),
        ({"k": 7}, "k must be between 1 and the number of words = 6, got 7"),
        ({"k": 1.5}, "k must be an integer"),
        ({"word": "dog"}, "word must be one of"),
        ({"sentence": ""}, "sentence must be 1 to 8 words"),
        ({"sentence": "a dog"}, "sentence must be"),
        ({"sentence": None}, "sentence must be"),
    ],
)
def test_bad_arguments(wrong, rule):
    with pytest.raises((TypeError, ValueError), match=rule):
        sheets(**wrong)


@pytest.mark.parametrize("wish", [{"k": 7}, {"k": 1.5}, {"row": 6}, {"row": -1}, {"words": ""}])
def test_bad_states(hand, wish):
    hand.set(**sheets().state)
    with pytest.raises(Exception, match=r"must be|no word"):
        hand.call("set", wish)
    assert hand.call("state") == sheets().state
