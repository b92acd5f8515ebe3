"""Cut a trained model's attention on the page: what it says is PyTorch's, for every cut, and for
many stories.
"""

import numpy as np
import pytest
from hands import Seen

from lowrank_tutor import storyteller as st
from lowrank_tutor.figures import storyteller
from lowrank_tutor.figures.storyteller import (
    CUTS,
    DIRECTIONS,
    MODEL,
    TALES,
    as_options,
    counted,
    measured,
    settings,
)

FIGURE = storyteller
STORIES = [story for story in st.stories(60, facts=3, rng=4711) if len(story.words) <= 40]

RUN = """
async ([place, runs]) => {
  const { storytellerModel, storyteller_weights } = eval(place),
    model = storytellerModel(storyteller_weights, Float64Array.from(runs.directions));
  return runs.all.map(({ ids, cut, k }) => {
    const found = model.cut(ids, cut, k, true);
    return [...found.logits].map((value) => Number(value.toPrecision(9)));
  });
}
"""


def said(words, cut, k):
    """What PyTorch says: the logits after each word."""
    options = as_options(cut, k)
    model = st.load(
        options.get("weights")
    ).double()  # a number on the border of two levels must not fall the other way
    return model(model.encode(words), attend=options.get("attend"))[0].detach().numpy()


@pytest.mark.parametrize("cut", CUTS)
def test_page_is_pytorch(hand, cut):
    steps = CUTS[cut].settings
    runs = [
        (story.words, steps[i % len(steps)])
        for i, story in enumerate((STORIES * 2)[: max(24, len(steps))])
    ]
    asked = {"directions": DIRECTIONS.ravel().tolist()}
    asked["all"] = [{"ids": st.encode(words), "cut": cut, "k": k} for words, k in runs]
    for (words, k), logits in zip(
        runs, hand.page.evaluate(RUN, [f"window.{MODEL.place}", asked]), strict=True
    ):
        assert np.reshape(logits, (len(words), -1)) == pytest.approx(
            said(words, cut, k), abs=1e-4
        ), (cut, k)


def check(seen):
    """Compute what the figure shows by the twin, and take the shares from the record."""
    state, numbers = seen.call("state"), seen.shown()
    expected = measured(state["story"], state["cut"], state["k"])
    assert numbers["right"] == pytest.approx(expected["right"], abs=1e-6)
    assert numbers["table_error"] == pytest.approx(expected["table_error"], abs=1e-6)
    assert {
        name: numbers[name] for name in numbers if name not in ("right", "table_error")
    } == counted()[state["cut"]][state["k"]]
    ids, attend = [st.encode("<s> " + state["story"])], as_options(state["cut"], state["k"])
    assert np.reshape(seen.call("table")["tables"], (2, 4, len(ids[0]), -1)) == pytest.approx(
        st.tables(ids, **attend)[0], abs=1e-6
    )
    assert f"“{expected['says']}”" in (
        seen.said["words"] if isinstance(seen, Seen) else seen.figure.inner_text()
    )


def test_every_setting_of_every_story(hand):
    cuts = hand.figure.evaluate(
        "(figure) => JSON.parse(figure.querySelector('script').textContent).data.cuts"
    )
    states = [
        {"story": words, "cut": cut, "k": k}
        for i, words in enumerate(TALES.values())
        for cut in cuts
        for k in settings(cut, words)[i % 3 :: 3]
    ]
    hand.tour(states, check)


def test_other_cuts_show_their_numbers(show):
    others = tuple(cut for cut in CUTS if cut not in ("sheets", "window", "means", "features"))
    hand = show(storyteller(cut=others[0], cuts=others))
    states = [
        {"story": TALES["who"], "cut": cut, "k": k}
        for cut in others
        for k in (*CUTS[cut].settings[::2], 0)
    ]
    hand.tour(states, check)


def test_own_story(show):
    """A story is typed at the desk; its head is the one that listens to the answer."""
    hand = show(storyteller(desk=True))
    field = hand.figure.get_by_label("a story of your own")
    field.fill("Ada wears gold. Ben has tea. Ada wears")
    field.press("Enter")
    hand.said("“gold” and is right")
    assert hand.call("state")["story"] == "Ada wears gold . Ben has tea . Ada wears"
    check(hand)
    hand.figure.get_by_label("layer 1, head 2").click()
    assert hand.call("state")["head"] == 1
    spoken = hand.figure.get_by_role("radio", name="Ada", exact=True)
    spoken.nth(1).press("ArrowLeft")  # asked, a word shows whom it listens to
    assert hand.figure.locator(".story [aria-checked=true]").inner_text() == "."
    field.fill("Ada we")
    assert hand.figure.get_by_role("option").all_inner_texts() == ["wears", "were"]
    for key in ("ArrowDown", "Enter", "j", "Escape", "a", "ArrowDown", "Enter"):
        field.press(key)
    assert field.input_value() == "Ada wears jam "
    hand.figure.get_by_role("option", name="now", exact=True).click()
    assert field.input_value() == "Ada wears jam now "
    field.fill("Zoe wears plum")
    field.press("Enter")
    hand.said('got "plum"')
    hand.button("another story").click()
    hand.said("is right")
    assert hand.call("state")["story"] in TALES.values()


@pytest.mark.parametrize(
    "attend", [st.window(8), lambda q, k, v: st.window(8)(q, k, v), [st.window(8)] * 2]
)
def test_own_function_is_a_tab(show, attend):
    """It shows what a built-in window does, and goes with the story that it was computed for."""
    hand = show(storyteller(attend={"mine": attend}))
    hand.figure.get_by_label("mine", exact=True).check()
    expected, shown = measured(TALES["far fact"], "window", 8), hand.call("numbers")
    assert [shown["right"], shown["table_error"]] == pytest.approx(
        [expected["right"], expected["table_error"]], abs=1e-4
    )
    hand.button("another story").click()
    assert hand.call("state")["cut"] == "sheets"
    assert not hand.figure.get_by_label("mine", exact=True).is_visible()
    for name, refused in {"Window": attend, "short": lambda q, k, v: v[:, :1]}.items():
        with pytest.raises(ValueError, match="attend must"):
            storyteller(attend={name: refused})


def test_ring_follows_the_curve(hand):
    """The ring is the second stop, after the cuts."""
    hand.set(**storyteller().state)
    stops = """(f) => [...f.querySelectorAll('input, button, [tabindex]')]
      .filter((e) => e.tabIndex >= 0 && (e.type !== 'radio' || e.checked)).map((e) => e.role)"""
    assert hand.figure.evaluate(stops).index("slider") < 5
    ring = hand.handle("How much is kept")
    for key, k in {
        "Home": 1,
        "ArrowRight": 2,
        "Shift+ArrowUp": 6,
        "End": 0,
        "ArrowLeft": 20,
    }.items():
        ring.press(key)
        assert hand.call("state")["k"] == k
    assert ring.get_attribute("aria-valuetext") == "With 20 sheets of each table"
    hand.figure.get_by_label("Window", exact=True).check()
    assert hand.call("state")["cut"] == "window"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"story": "Ada wears plum"}, "story must be of the words that the model knows"),
        ({"story": " ".join(["."] * 41)}, "story must be at most 40 words"),
        ({"cut": "knife"}, "cut must be one of"),
        ({"k": 5}, "k must be one of"),
        ({"head": 8}, "head must be between 0 and 7"),
    ],
)
def test_bad_states_are_refused(hand, state, words):
    with pytest.raises(Exception, match=words):
        hand.call("set", state)


# The demonstration takes five seconds: with a clock ten times as fast, half of one.
FAST = (
    "window.setTimeout = ((real) => (act, wait, ...rest) => real(act, wait / 10, "
    "...rest))(window.setTimeout);"
)
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
DEMO = {"script": FAST + WATCH, "viewport": {"width": 1000, "height": 1200}}


@pytest.mark.parametrize(
    ("motion", "address", "ks"),
    [
        ("no-preference", "", [6, 0, 20, 16, 12, 10, 8, 6, 4, 3, 2, 6]),
        ("reduce", "", [6]),
        ("no-preference", "#storyteller=k:3", [3]),
    ],
)
def test_demonstration(show, motion, address, ks):
    hand = show(storyteller(k=6, demo=True), address=address, reduced_motion=motion, **DEMO)
    hand.page.wait_for_function("(count) => seen.length >= count", arg=len(ks))
    hand.page.wait_for_timeout(200)
    hand.page.wait_for_function(
        "(f) => !f.classList.contains('demo')", arg=hand.figure.element_handle()
    )
    assert hand.page.evaluate("seen") == ks


def test_input_ends_demonstration(show):
    press_elsewhere = """
      addEventListener("DOMContentLoaded", () => {
        const figure = document.querySelector("figure"),
          press = new Event("keydown", { bubbles: true });
        const wait = () => {
          if (figure.instrument?.state().k === 0) document.body.dispatchEvent(press);
          else requestAnimationFrame(wait);
        };
        wait();
      });"""
    hand = show(storyteller(k=6, demo=True), **DEMO | {"script": FAST + WATCH + press_elsewhere})
    hand.page.wait_for_function("() => seen.includes(0)")
    hand.page.wait_for_timeout(400)
    assert hand.call("state")["k"] == 6
