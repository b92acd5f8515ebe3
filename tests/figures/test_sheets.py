"""Lift sheets off a table of attention: errors, arcs and words are NumPy's."""

import numpy as np
import pytest

from lowrank_tutor.figures import sheets
from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X

FIGURE = sheets


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
    hand.figure.get_by_label("tired", exact=True).check()
    assert "“tired” listens most to “cat”" in hand.said("tired")
    for sheet, k in ((1, 1), (3, 4)):  # one that is kept is lifted; a lifted one is put back, with those below it
        hand.figure.locator(".sheet").nth(sheet).dispatch_event("click")
        assert hand.call("state")["k"] == k


def test_own_sentence(hand):
    hand.set(**sheets().state)
    field = hand.figure.get_by_label("Your sentence")
    field.fill("my cat sleeps")
    hand.figure.get_by_role("button", name="Use it").click()
    assert hand.call("state") == {"k": 2, "row": 0, "words": "my cat sleeps"}
    assert hand.figure.get_by_role("radio").count() == 3
    hand.said("made up")
    check(hand)
    hand.figure.get_by_role("button", name="Start again").click()
    hand.page.wait_for_function("(f) => f.value.startsWith('the cat')", arg=field.element_handle())
    assert hand.call("state") == sheets().state


# The demonstration takes four seconds: with a clock ten times as fast, less than half of one.
FAST = "window.setTimeout = ((real) => (act, wait, ...rest) => real(act, wait / 10, ...rest))(window.setTimeout);"
WATCH = """
addEventListener("DOMContentLoaded", () => {
  const figure = document.querySelector("figure");
  const note = () => {
    const { k } = figure.instrument.state();
    if (k !== seen.at(-1)) seen.push(k);
  };
  window.seen = [];
  note();
  new MutationObserver(note).observe(figure, { attributes: true, childList: true, subtree: true });
});
"""
DEMO = {"script": FAST + WATCH, "viewport": {"width": 800, "height": 1000}}
OVER = "(figure) => seen.length && !figure.classList.contains('demo')"


@pytest.mark.parametrize(
    ("motion", "address", "ks"),
    [("no-preference", "", [2, 6, 5, 4, 3, 2, 1, 2]), ("reduce", "", [2]), ("no-preference", "#sheets=k:3", [3])],
)
def test_demonstration(show, motion, address, ks):
    hand = show(sheets(demo=True), address=address, reduced_motion=motion, **DEMO)
    hand.page.wait_for_function("(count) => seen.length >= count", arg=len(ks))
    hand.page.wait_for_timeout(200)
    hand.page.wait_for_function(OVER, arg=hand.figure.element_handle())
    assert hand.page.evaluate("seen") == ks


def test_input_ends_demonstration(show):
    press_elsewhere = """
      addEventListener("DOMContentLoaded", () => {
        const figure = document.querySelector("figure"), press = new Event("keydown", { bubbles: true });
        const wait = () => {
          if (figure.instrument?.state().k === 6) document.body.dispatchEvent(press);
          else requestAnimationFrame(wait);
        };
        wait();
      });"""
    hand = show(sheets(demo=True), **DEMO | {"script": FAST + WATCH + press_elsewhere})
    hand.page.wait_for_function("() => seen.includes(6)")
    hand.page.wait_for_timeout(400)
    assert hand.call("state")["k"] == 2
