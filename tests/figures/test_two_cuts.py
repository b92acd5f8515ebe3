"""Two cuts, one error: errors, words, and dots are those of NumPy and of plain loops."""

import numpy as np
import pytest

from lowrank_tutor import storyteller as st
from lowrank_tutor.figures import two_cuts
from lowrank_tutor.figures.storyteller import tables
from lowrank_tutor.figures.two_cuts import CUTS, JOBS, TALES, counted
from measure.training.storyteller_matched import questions, right

FIGURE = two_cuts
OWN = "Leo has milk . Zoe has jam . fa la re mi so ti . again : fa la re mi so ti . who has milk ?"


def norm_off(words, cut, amount):
    """How far all tables are off, one number after the other."""
    exact, used = (st.tables([st.encode(words)], **o) for o in ({}, st.between(cut, amount)))
    return np.sqrt(sum(x**2 for x in (used - exact).flat) / sum(x**2 for x in exact.flat))


@pytest.mark.parametrize("cut", CUTS)
def test_matched(cut):
    """Amounts fall as errors rise, and what is kept there is off by as much."""
    words, errors = f"<s> {TALES[0]}", [0.07, 0.2, 0.41]
    amounts = st.matched(words, cut, errors)
    assert amounts == sorted(amounts, reverse=True)
    assert [norm_off(words, cut, k) for k in amounts] == pytest.approx(errors, abs=0.01)


@pytest.mark.parametrize(
    ("cut", "whole"),
    [("sheets", st.sheets(5)), ("window", st.window(5)), ("bits", st.bits(5))],
)
def test_between_whole_settings(cut, whole):
    """At a whole number it is that setting's cut, and halfway it is halfway to the next."""
    rng = np.random.default_rng(0)
    qkv = rng.standard_normal((3, 4, 9, 16))
    low, middle, high = (st.between(cut, k)["attend"] for k in (5, 5.5, 6))
    assert low(*qkv) == pytest.approx(whole(*qkv))
    tables = [each.table(*qkv[:2]) for each in (low, middle, high)]
    assert tables[1] == pytest.approx((tables[0] + tables[2]) / 2)
    assert np.abs(tables[0] - tables[2]).max() > 1e-3


def test_every_place_of_the_lever(hand):
    """Both errors are the lever's, within a point, and words and dots are the package's."""

    def check(seen):
        state, shown = seen.call("state"), seen.shown()
        sides = [counted()[state[side]][state["damage"]] for side in ("left", "right")]
        dots = [
            [job, *map(bool, row)]
            for job, row in zip(np.repeat(list(JOBS), 25), np.transpose(sides), strict=True)
        ]
        assert seen.call("table")["dots"] == dots
        for side, answers in zip(("left", "right"), sides, strict=True):
            assert shown[f"error_{side}"] == pytest.approx(state["damage"] / 100, abs=0.01)
            assert shown[f"answered_{side}"] == answers.mean()
            assert str(answers.sum()) in seen.said["words"]

    hand.tour([{"damage": damage} for damage in range(51)], check)
    hand.tour([{"right": cut, "damage": 25} for cut in CUTS], check)
    hand.tour([{"story": OWN, "right": "window", "damage": 30}], check)


@pytest.mark.parametrize("story", [TALES[0], OWN])
def test_each_forgets_the_other(hand, story):
    """Sheets forget the tune and keep the fact; a window keeps the tune and forgets the fact."""
    hand.set(story=story, left="sheets", right="window", damage=30)
    lost = hand.figure.locator(".says").evaluate_all(
        "(all) => all.map((e) => [...e.children].map((p) => p.className))"
    )
    assert lost == [["lost", ""], ["", "lost"]]


def test_dots_are_graded():
    """Of each job one story, graded anew at three errors; uncut, all are right."""
    rows = [(i, *one) for i, one in enumerate(questions()) if i % 25 == 7]
    assert all(counted()[cut][0].all() for cut in CUTS)
    for i, words, answer, job in rows:
        for cut, error in (("sheets", 30), ("window", 30), ("window", 45)):
            (amount,) = st.matched(words, cut, [error / 100])
            stored = counted()[cut][error][i]
            assert right(words, answer, cut, amount) == stored, (job, cut, error)


def test_words_are_asked(hand):
    """A chosen word shows what a head hears in its row, and both tables outline it."""
    hand.set(**two_cuts().state)
    hand.figure.get_by_role("radio").nth(11).click()
    shown = hand.figure.locator(".told [role=radio]").evaluate_all(
        "(all) => all.map((word) => Number(word.style.getPropertyValue('--weight')))"
    )
    exact = tables(f"<s> {TALES[0]}")[0]
    assert min(np.abs(table[12, 1:] - shown).max() for table in exact) < 1e-6
    row = "(all) => all.map((e) => parseFloat(getComputedStyle(e, '::after').top) / e.clientHeight)"
    outlined = hand.figure.locator(".frame").evaluate_all(row)
    assert outlined == pytest.approx([12 / 27] * 2, abs=0.01)


def test_hands(hand):
    """Keys and the pointer pull the lever, a menu swaps the right cut, a link restores it all."""
    hand.set(**two_cuts().state)
    lever = hand.handle("Damage")
    for key, damage in {"ArrowDown": 31, "PageUp": 26, "Home": 0, "End": 50}.items():
        lever.press(key)
        assert hand.call("state")["damage"] == damage
    hand.drag("Damage", 0, -60)
    assert 30 < hand.call("state")["damage"] < 45
    hand.figure.locator("select").select_option("bits")
    assert hand.call("state")["right"] == "bits"
    hand.button("another story").click()
    hand.settle()
    assert hand.call("state")["story"] == TALES[1]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"story": "Ada wears plum"}, "story must be of the words"),
        ({"left": "means"}, "left must be one of"),
        ({"damage": 51}, "damage must be between 0 and 50"),
    ],
)
def test_bad_states_are_refused(hand, state, words):
    with pytest.raises(Exception, match=words):
        hand.call("set", state)


PLAY = """
window.seen = [];
const look = () => {
  const now = document.querySelector("figure")?.instrument?.state().damage;
  if (now !== undefined) seen.push(now);
};
// Faster, and seen however seldom a slow machine paints
window.setTimeout = ((real) => (act, wait) => real(() => (act(), look()), wait / 20))(setTimeout);
setInterval(look, 50);
"""


@pytest.mark.parametrize(("motion", "first"), [("no-preference", 0), ("reduce", 30)])
def test_plays_once(show, motion, first):
    """The lever goes from 0 to the telling place, or stands there where motion isn't wanted."""
    wide = {"width": 1200, "height": 1000}
    hand = show(two_cuts(demo=True), script=PLAY, reduced_motion=motion, viewport=wide)
    hand.page.wait_for_function("(n) => seen.includes(n) && seen.at(-1) === 30", arg=first)
    assert min(hand.page.evaluate("seen")) == first


def test_one_screen(show):
    """On a phone what matters is within a screen: from the story to the claim."""
    hand = show(two_cuts(), viewport={"width": 360, "height": 740}, is_mobile=True)
    boxes = [hand.figure.locator(part).bounding_box() for part in (".told", ".claim")]
    assert boxes[1]["y"] + boxes[1]["height"] - boxes[0]["y"] < 600
