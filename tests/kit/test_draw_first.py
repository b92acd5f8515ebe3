"""The truth is shown only after a guess, and the gap between the two is NumPy's."""

import numpy as np
import pytest
from visits import FINGER, violations

from lowrank_tutor.kit import charts
from lowrank_tutor.kit.questions import draw_first
from lowrank_tutor.kit.sliders import explore

X = [1, 2, 5, 9]
ASKED = {
    "mark": draw_first("Where is one half?", 0.5, limits=(-1, 1)),
    "log": draw_first(
        "How many layers?", 24, limits=(1, 512), log=True, titles=("layers", ""), unit="layers"
    ),
    "choice": draw_first(
        "Which is a fruit?",
        "apple, red",
        kind="choice",
        choices=("apple, red", "stone", "5", "1.0"),
        replies={"stone": "It is hard.", "5": "It counts.", "1.0": "It measures."},
    ),
    "curve": draw_first(
        "How fast does it fall?", [1, 0.5, 0.2, 0.1], kind="curve", x=X, limits=(0, 1), log=True
    ),
}
GUESSES = {
    "mark": lambda rng: float(rng.uniform(-1, 1)),
    "log": lambda rng: int(rng.integers(1, 513)),
    "choice": lambda rng: str(rng.choice(["apple, red", "stone", "5", "1.0"])),
    "curve": lambda rng: rng.uniform(0, 1, 4).tolist(),
}
NEAR = {"mark": (0.5, 0.65, 0.75), "log": (24, 44, 46)}
each_kind = pytest.mark.parametrize("name", ASKED)


@pytest.fixture(scope="module")
def hands(show):
    return {name: show(one) for name, one in ASKED.items()}


def check(name, hand):
    guess, truth = hand.call("state")["guess"], hand.call("table")["truth"]
    assert guess is not None
    gap = {
        "choice": lambda: float(guess != truth),
        "log": lambda: np.exp(np.abs(np.log(guess / np.asarray(truth)))),
    }.get(name, lambda: np.abs(np.subtract(guess, truth)).mean())()
    assert hand.call("numbers") == pytest.approx(
        {"gap": gap, "grade": grade(name, guess, truth)}, rel=1e-6, abs=1e-9
    )
    return guess


def grade(name, guess, truth):
    """1 for what reads the same, 1/2 within a tenth of the line or of the axis."""
    if name == "choice":
        return float(guess == truth)
    spec = ASKED[name].data["spec"]
    if name != "curve" and format(guess, spec) == format(truth, spec):
        return 1
    low, high = np.log(ASKED[name].data["limits"]) if name == "log" else ASKED[name].data["limits"]
    off = np.log(guess / truth) if name == "log" else np.subtract(guess, truth)
    return float(np.abs(off).mean() <= 0.1 * (high - low)) / 2


def press(hand, words):
    hand.button(words).click()
    hand.settle()


def begin(hand):
    """Take the guess away, by the button that is there once there is one."""
    again = hand.button("Start again")
    assert again.is_visible() == hand.call("state")["shown"]
    if again.is_visible():
        press(hand, "Start again")


@each_kind
def test_random_guesses(hands, name):
    rng = np.random.default_rng(0)
    states = [{"guess": GUESSES[name](rng), "shown": True} for _ in range(50)]
    states += [{"guess": one, "shown": True} for one in NEAR.get(name, ())]
    hands[name].tour(states, lambda seen: check(name, seen))


@each_kind
def test_truth_waits_for_guess(hands, name):
    hand = hands[name]
    hand.set(guess=None, shown=False)
    assert hand.call("numbers") == {}
    assert not hand.figure.locator("text=/answer/i >> visible=true").count()
    if name != "choice":
        press(hand, "That is my guess")
        assert hand.said("First").endswith("press Show me.")
        assert hand.call("state") == {"guess": None, "shown": False}
    press(hand, "Show me")
    assert hand.call("state") == {"guess": None, "shown": True}
    assert hand.call("numbers") == {}
    assert hand.said("The answer: ") in ASKED[name].alt
    press(hand, "Start again")
    assert hand.call("state") == {"guess": None, "shown": False}


def test_mark(hands):
    hand, seen = hands["log"], []
    for dx in (-60, 10, 900):
        begin(hand)
        hand.drag("your guess", dx, 0)
        assert hand.call("numbers") == {}
        press(hand, "That is my guess")
        seen.append(check("log", hand))
        assert not hand.handle("your guess").is_visible()
    assert seen == sorted(set(seen))
    assert seen[-1] == 512
    begin(hand)
    mark = hand.handle("your guess")
    for key, whole in (
        ("Home", 1),
        ("ArrowUp", 2),
        ("ArrowUp", 3),
        ("ArrowUp", 4),
        ("ArrowDown", 3),
    ):
        mark.press(key)
        assert mark.get_attribute("aria-valuenow") == str(whole)
    press(hand, "That is my guess")
    assert check("log", hand) == 3
    assert "the answer is 24 layers: a factor of 8 too low" in hand.said("You guessed 3 layers,")


def test_choice(hands):
    hand = hands["choice"]
    for word in ("apple, red", "stone", "5"):
        begin(hand)
        press(hand, word)
        assert check("choice", hand) == word
        assert hand.figure.locator(".right").inner_text() == "✓ apple, red"
        assert hand.figure.locator(".chosen").all_inner_texts() == [word] * (word != "apple, red")
        why = {"stone": "It is hard.", "5": "It counts."}.get(word)
        assert hand.said() == (
            f"Not quite. {why} The answer: apple, red." if why else "Right: apple, red."
        )


def test_curve(hands):
    hand = hands["curve"]
    begin(hand)
    hand.drag("your guess at 2", 0, 30)
    press(hand, "That is my guess")
    assert [value != 0.5 for value in check("curve", hand)] == [False, True, False, False]
    begin(hand)
    for place, key in ((1, "End"), (2, "ArrowUp"), (5, "Shift+ArrowDown"), (9, "Home")):
        hand.handle(f"your guess at {place}").press(key)
    press(hand, "That is my guess")
    assert check("curve", hand) == [1, 0.51, 0.4, 0]


def test_focus(hands):
    hand = hands["mark"]
    begin(hand)
    hand.handle("your guess").press("End")
    focused = "(f) => f.contains(document.activeElement) && document.activeElement.textContent"
    hand.figure.get_by_role("button", name="That is my guess").press("Enter")
    for words, gone in ((None, "That is my guess"), ("Start again", "Start again")):
        if words:
            hand.page.keyboard.press("Tab")
            assert hand.figure.evaluate(focused) == words
            hand.page.keyboard.press("Enter")
        hand.settle()
        assert hand.figure.evaluate(focused) == ASKED["mark"].data["question"]
        assert not hand.figure.get_by_role("button", name=gone).is_visible()
    hand.page.keyboard.press("Tab")
    assert hand.page.evaluate("document.activeElement.getAttribute('role')") == "slider"


@pytest.mark.parametrize(
    ("name", "guess"),
    [("mark", -0.5), ("choice", "1.0"), ("curve", [0.25, 1, 0, 0.5])],
)
def test_address(show, hands, name, guess):
    hands[name].call("set", {"guess": guess})
    press(hands[name], "Copy a link")
    again = show(ASKED[name], address="#" + hands[name].page.url.split("#", 1)[1])
    assert again.call("state") == {"guess": guess, "shown": True}


def test_accessibility(show):
    hand = show(*ASKED.values(), **FINGER)
    assert violations(hand.page) == []
    hand.page.evaluate(
        "() => Promise.all([...document.querySelectorAll('figure')].map(f => "
        "f.instrument.set({shown:true})))"
    )
    assert violations(hand.page) == []
    assert hand.page.evaluate("document.scrollingElement.scrollWidth") <= 360


CARRIED = """async () => {
  const next = [...document.querySelectorAll("figure")].at(-1);
  next.scrollIntoView();
  await new Promise((done) => setTimeout(done, 1500));
  return [...next.querySelectorAll("[data-slider]")].map((one) => one.value);
}"""


def test_next_explorer_shows_the_answer(show):
    follows = explore(
        lambda k: charts.curves([1, 2], {"a": [1, k]}),
        k=[1, 2, 4, 9, 12],
        alt="A line to {k}.",
        name="line",
    )
    asked = draw_first("How many?", 7, limits=(1, 9), then={"k": 4})
    hand = show(asked, draw_first("And now?", 0.5), follows)
    start = hand.page.evaluate(CARRIED)
    hand.call("set", {"shown": True})  # as an address, or a page that remembers: nothing moves
    assert hand.page.evaluate(CARRIED) == start
    press(hand, "Start again")
    press(hand, "Show me")
    assert hand.page.evaluate(CARRIED) == ["2"]


WORD = {"kind": "choice", "truth": "a", "choices": ("a", "b")}
LINE = {"kind": "curve", "truth": [1, 2], "x": [1, 2], "limits": (0, 3)}
WRONG = {
    "kind": [{"kind": "guess"}],
    "format": [{"format": ".2e"}],
    "truth": [
        *({"truth": truth} for truth in (None, "many", np.nan, 5, [1, 2])),
        *({**LINE, "truth": truth} for truth in ([1, np.nan], [1, 4], [1, 2, 3])),
        {**WORD, "truth": "c"},
    ],
    "limits": [{"limits": None}, {"limits": (3, 1)}, {"limits": (0, 9), "log": True}],
    "choices": [{**WORD, "choices": ("a", "a")}, {"choices": ("a", "b")}],
    "replies": [{**WORD, "replies": {"a": "No."}}, {"replies": {"a": "No."}}],
    "x": [{**LINE, "x": [0, 1], "log": True}, {**LINE, "x": [2, 1]}, {"x": [1, 2]}],
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_arguments(name):
    for wrong in WRONG[name]:
        with pytest.raises((TypeError, ValueError), match=f"^{name} must (be|have) .*, got "):
            draw_first(**{"question": "How many?", "truth": 2, "limits": (1, 3), **wrong})
