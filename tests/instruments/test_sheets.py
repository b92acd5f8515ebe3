"""Lift sheets off a table of attention: errors, arcs and words are NumPy's."""

import re

import numpy as np
import pytest

from lowrank_tutor.figures import sheets
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X


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
    assert not re.search('[ "(,]NaN', seen.html())  # letters of a picture may be those, too


def test_random_states_match_numpy(hand):
    rng, states = np.random.default_rng(0), []
    for i in range(24):
        n = int(rng.integers(1, 9))
        words = [f"word{i}{j}" for j in range(n)] if i % 4 == 0 else rng.choice(WORDS, n).tolist()
        states.append({"words": " ".join(words), "k": int(rng.integers(1, n + 1)), "row": int(rng.integers(n))})
    hand.tour(states, check)


def test_one_sheet_listens_alike(hand):
    hand.set(**sheets(1).state)
    kept = np.array(hand.call("table")["kept"])
    assert kept.argmax(axis=1).tolist() == [WORDS.index("cat")] * 6
    hand.set(k=2)
    two, exact = (np.array(hand.call("table")[name]) for name in ("kept", "exact"))
    assert (two.argmax(axis=1) == exact.argmax(axis=1))[1:].all()
    assert np.ptp(exact[0]) == pytest.approx(0)


def test_ring_words_and_sheets_move(hand):
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
    hand.figure.locator(".sheet").nth(3).dispatch_event("click")  # a lifted one is put back, with those below it
    assert hand.call("state")["k"] == 4
    hand.figure.locator(".sheet").nth(2).dispatch_event("click")
    assert hand.call("state")["k"] == 2
    hand.figure.locator(".cell").nth(6).click()
    assert hand.call("state")["row"] == 1
    check(hand)


def test_arcs_are_weights(hand):
    hand.set(**sheets(1).state)
    table = hand.call("table")
    drawn = hand.figure.locator("path.weight").evaluate_all(
        "(all) => all.map((path) => path.hasAttribute('hidden') ? 0 : Number(path.getAttribute('stroke-width')))"
    )
    full = drawn[1] / table["kept"][1][1]
    assert drawn == pytest.approx([full * weight for weight in table["kept"][1]], abs=0.006 * full)
    assert hand.figure.locator("circle.right").count() == 5  # "the" listens to all alike


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


SEEN = """async (figure) => {
  const seen = [];
  for (const end = Date.now() + 5000; Date.now() < end; await new Promise((done) => setTimeout(done, 30))) {
    seen.push(figure.instrument.state().k);
  }
  return seen.filter((k, i) => k !== seen[i - 1]);
}"""


@pytest.mark.parametrize(
    ("motion", "address", "ks"),
    [("no-preference", "", [6, 5, 4, 3, 2, 1, 2]), ("reduce", "", [2]), ("no-preference", "#sheets=k:3", [3])],
)
def test_demonstration(show, motion, address, ks):
    hand = show(sheets(demo=True), address=address, reduced_motion=motion, viewport={"width": 800, "height": 1000})
    seen = hand.figure.evaluate(SEEN)
    assert [k for i, k in enumerate(seen) if i or k != 2 or len(ks) == 1] == ks
    assert not hand.figure.evaluate("(figure) => figure.classList.contains('demo')")


def test_input_ends_demonstration(show):
    view = {"viewport": {"width": 800, "height": 1000}}
    all_sheets = "(figure) => figure.instrument.state().k === 6"
    for act, k in {
        "(figure) => figure.querySelector('.sentence').dispatchEvent(new Event('pointerdown', { bubbles: true }))": 6,
        "(figure) => document.body.dispatchEvent(new Event('keydown', { bubbles: true }))": 2,
        "(figure) => figure.instrument.set({ k: 3 })": 3,
    }.items():
        hand = show(sheets(demo=True), **view)
        hand.page.wait_for_function(all_sheets, arg=hand.figure.element_handle())
        hand.figure.evaluate(act)
        hand.page.wait_for_timeout(2500)
        assert hand.call("state")["k"] == k, act


def test_demonstration_waits_until_seen(show):
    hand = show(sheets(), sheets(demo=True), viewport={"width": 800, "height": 600})
    second = hand.page.locator("figure.instrument").nth(1)
    hand.page.wait_for_timeout(500)
    assert second.evaluate("(figure) => figure.instrument.state().k") == 2
    second.locator("svg").last.scroll_into_view_if_needed()
    hand.page.wait_for_function("(figure) => figure.instrument.state().k === 6", arg=second.element_handle())


def test_fits_a_finger(show):
    hand = show(sheets(), viewport={"width": 360, "height": 740})
    targets = [hand.handle("sheets that").locator(".hit"), *hand.figure.locator(".sentence label").all()]
    for box in (target.bounding_box() for target in targets):
        assert min(box["width"], box["height"]) >= 44


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
