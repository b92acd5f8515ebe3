"""What all instruments share: their markup, their address, their manners on a page, in print and in a notebook."""

import re
from functools import partial
from importlib.resources import files

import numpy as np
import pytest
from sklearn.datasets import load_digits
from visits import SWIPE, swipe, violations
from walks import OVERLAPS, READY, lost_handles

from lowrank_tutor.figures import (
    album,
    arrows,
    attend,
    card,
    cloud,
    dice,
    score,
    shadow,
    sheets,
    spectrum,
    tilt,
    votes,
    windows,
)
from lowrank_tutor.kit.questions import draw_first

TOKENS = np.random.default_rng(0).standard_normal((2, 2, 5, 32, 8))
INSTRUMENTS = {
    "tilt": tilt,
    "arrows": arrows,
    "spectrum": spectrum,
    "shadow": shadow,
    "cloud": cloud,
    "score": score,
    "windows": windows,
    "sheets": sheets,
    "attend": attend,
    "dice": dice,
    "album": lambda: album(load_digits().images[:64]),
    "votes": votes,
    "card": lambda: card({"all heads": (163_840, 0), "one head": (2_560, 1_000)}),
    "draw_first": lambda: draw_first("How many keys has a piano?", 88, kind="mark", limits=(1, 1000), log=True),
}
each_instrument = pytest.mark.parametrize("name", INSTRUMENTS)
WITHOUT_HANDLES = ("album", "card")  # native controls alone
KILOBYTES = 85  # a block without its pictures
LIGHT = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "reduced_motion": "reduce"}
TOUCH = {"viewport": {"width": 360, "height": 500}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def hands(show):
    """Each instrument on a page of its own, opened once."""
    return {name: show(make()) for name, make in INSTRUMENTS.items()}


@each_instrument
def test_markup(markup, name):
    one = INSTRUMENTS[name]()
    html = markup(one)
    assert html.startswith(f'<figure class="instrument" data-name="{name}">')
    own = re.sub(r"data:image/[a-z]+;base64,[\w+/=]+", "", html)
    assert len(own.encode()) <= KILOBYTES * 1000
    assert set(re.findall(r"https?://[\w./]+", own)) <= {"http://www.w3.org/2000/svg"}  # a name, never an address
    bundle = one._repr_mimebundle_()
    assert bundle["text/plain"] == repr(one) == f"<Instrument {name}: {one.alt}>"
    assert bundle["text/html"] == one._repr_html_() == html


def test_no_dollars_in_scripts():
    """Notebooks read a dollar sign, or a backslash before a bracket, as the beginning of a formula."""
    room = files("lowrank_tutor")
    scripts = [
        *room.joinpath("instruments").iterdir(),
        room / "touch.js",
        room / "page.css",
        room / "exercises/numbers.js",
    ]
    for path in scripts:
        assert not path.name.endswith((".js", ".css")) or not re.search(r"\$|\\\(", path.read_text("utf-8")), path.name


@each_instrument
def test_no_javascript(show, name):
    one = INSTRUMENTS[name]()
    hand = show(one, java_script_enabled=False)
    picture = hand.figure.locator("img.instrument-still")
    assert picture.bounding_box()["height"] > 50
    assert picture.get_attribute("alt") == one.alt
    read = {d.get_attribute("data-name"): float(d.get_attribute("value")) for d in hand.figure.locator("data").all()}
    assert read == pytest.approx(one.numbers)
    assert "JavaScript" in hand.figure.locator("noscript").inner_text()


@each_instrument
def test_start(hands, show, name):
    """NumPy's numbers and words; in print the picture; no name left behind but one, and no request."""
    one, hand = INSTRUMENTS[name](), hands[name]
    assert hand.call("state") == one.state
    assert hand.shown() == pytest.approx(one.numbers, rel=1e-6, abs=1e-6)
    texts = hand.figure.evaluate("(f) => [...f.querySelectorAll('data')].map((d) => [d.dataset.name, d.textContent])")
    assert dict(texts) == {number: one.words.text(number, value) for number, value in one.numbers.items()}
    picture, live = hand.figure.locator("img.instrument-still"), hand.figure.locator(".instrument-live")
    for media, drawn in (("print", picture), ("screen", live)):
        hand.page.emulate_media(media=media)
        assert [part.is_visible() for part in (picture, live)] == [part is drawn for part in (picture, live)]
    names = [set(on.page.evaluate("Object.getOwnPropertyNames(window)")) for on in (hand, show())]
    assert names[0] - names[1] == {"lowrankTutor"}
    assert [url for url in hand.requests if not url.startswith(("file:", "data:", "blob:"))] == []


ASK = partial(draw_first, "How high?")
OWN_DATA = {  # of the smallest and of the largest size, or of an unusual one
    "2 bars": lambda: spectrum([1, 2]),
    "40 bars": lambda: spectrum(0.9 ** np.arange(40), 30),
    "equal bars": lambda: spectrum([1] * 12),
    "bars of 1,000 and 0": lambda: spectrum([1000] + [0] * 11),
    "picture of one gray": lambda: tilt([[7.0]], 0),
    "small picture": lambda: tilt(np.arange(42.0).reshape(6, 7), 9),
    "large picture": lambda: tilt(np.add.outer(np.arange(300), np.arange(200) ** 2), 0, 160),
    "zero column": lambda: arrows([[0, 1], [0, 0]]),
    "large matrix": lambda: arrows([[100, -100], [99, 100]], form="rank"),
    "3 points": lambda: cloud(points=[[1, 2], [2, 4.5], [-1, 0]]),
    "own throw": lambda: dice(8, points=TOKENS[0, 0, 0]),
    "least throw": lambda: dice(k=1, d=1, n=2, eps=0.01),
    "no score": lambda: score(s=(0, 0)),
    "point at the origin": lambda: shadow((0, 0)),
    "1 word to ask": lambda: attend("the", sentence="the"),
    "1 word in a window": lambda: windows(sentence="the", borders=[0]),
    "12 words in windows": lambda: windows(sentence="the cat slept it was tired " * 2, borders=range(12)),
    "own words in windows": lambda: windows(sentence="My dog", keys=TWO, values=TWO),
    "1 word in a sheet": lambda: sheets(1, "the", sentence="the"),
    "8 words in sheets": lambda: sheets(8, sentence="the cat slept it was tired the cat"),
    "own words in sheets": lambda: sheets(1, sentence="My dog", x=TWO),
    "one design": lambda: card({"one": (1, 0)}),
    "4 cards, full": lambda: card({"all": (163_840, 0), "few": (1, 0)}, n=2**20),
    "curve of 2 places": lambda: ASK([0, 1], kind="curve", x=[1, 2], limits=(0, 1)),
    "curve of 20 places": lambda: ASK([0.5] * 20, kind="curve", x=range(1, 21), limits=(0, 1), format=".0%"),
    "2 answers": lambda: ASK("a", kind="choice", choices=("a", "b")),
    "20 answers": lambda: ASK("0", kind="choice", choices=[str(i) for i in range(20)]),
    "small number": lambda: ASK(1e-6, format="g"),
    "large number": lambda: ASK(10**14),
    "zero": lambda: ASK(0),
    "number below zero": lambda: ASK(-12.5),
}


@pytest.mark.parametrize("name", OWN_DATA)
def test_own_data(show, name):
    one = OWN_DATA[name]()
    hand = show(one)
    assert hand.call("state") == one.state
    assert hand.shown() == pytest.approx(one.numbers, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("screen", ["wide", "phone"])
def test_own_data_fits(show, screen):
    """Handles stay in reach and words apart, whatever the size."""
    page = show(*(make() for make in OWN_DATA.values()), **(PHONE if screen == "phone" else LIGHT)).page
    page.evaluate(READY)
    if screen == "wide":
        assert lost_handles(page) == []
    assert page.evaluate(OVERLAPS) == {}


TWO = [[1, 0.5], [-2, 0]]
NO_POINT = [[11, 0], [1], [1, 2, 3], [np.nan, 0], [1j, 0], None, "a"]
NO_ARGUMENTS = {
    arrows: {
        "a": [[[1, 2]], [[1, 2], [3, np.nan]], "a", 1j * np.eye(2)],
        "theta": [101, None],
        "form": ["x", ["rank"]],
    },
    cloud: {"center": [it for it in NO_POINT if it is not None], "points": [[[1, 1]] * 2, [[0, 11], [1, 1]]]},
    dice: {
        "points": [np.ones((2, 3))],
        "k": [0, 401, 2.0],
        "d": [0, 1001, True],
        "n": [1, 33],
        "eps": [0, 1, "wide"],
        "seed": [0, 1_000_001],
    },
    score: {
        "s": [[6, 0], *NO_POINT],
        "h": [[1], [np.nan, 0]],
        "u": [None, [0, 0], [0.05, 0.05]],
        "v": [[[1, 2], [3, 4]], [11, 0]],
    },
    shadow: {"x": [[6, 0], *NO_POINT], "f": [[0, 0], [np.inf, 1], [1j, 1]]},
    spectrum: {"s": [[1], [1] * 41, [np.nan] * 12, [-1] * 12, [1001] * 12, "a", [1j] * 12], "k": [0, 13, True]},
    tilt: {"picture": ["cat", None, [[0, -1]]], "degrees": [-1, 46, [2], None], "k": [0, 161, 2.0, True]},
    windows: {
        "borders": [[], [1, 2], [0, 4, 4], [0, 12], [0, 1.5], "a"],
        "sharpness": [-0.1, 4.1, np.nan, None],
        "query": [[2.7, 0], *NO_POINT],
        "sentence": ["", "the dog slept", "the " * 13, None],
    },
    partial(windows, keys=TWO, values=TWO): {"sentence": ["so So", "- so", "so " + "o" * 25]},
    partial(sheets, sentence="a dog", x=TWO): {"x": [[[3, 0], [0, 0]]]},
}


@pytest.mark.parametrize("make", NO_ARGUMENTS, ids=lambda make: getattr(make, "__name__", "own data"))
def test_bad_arguments(make):
    for name, values in NO_ARGUMENTS[make].items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"^{name} must be .*, got "):
                make(**{name: value})


NO_STATES = {
    "arrows": {"a": [[[1, 2]], "a"], "theta": ["far"]},
    "score": {"s": [[6, 0], [None, 1]], "h": [[1], "far", [1, "2"]]},
    "windows": {
        "borders": [[], [1, 2], [0, 4, 4], [0, 12], [0, 1.5], "0"],
        "sharpness": [-0.1, 4.1, None],
        "query": [[2.7, 0], [1]],
    },
}


@each_instrument
def test_bad_states(hands, name):
    hand = hands[name]
    before = hand.call("state")
    wishes = [{which: wish} for which, all_ in NO_STATES.get(name, {}).items() for wish in all_]
    for wish in ({"size": 3}, {next(iter(before)): "nonsense"}, *wishes):
        with pytest.raises(Exception, match=r"must be|many words|not a word|is too long"):
            hand.call("set", wish)
        assert hand.call("state") == before


SENTENCES = {
    "": "no word yet",
    " \t ": "no word yet",
    "a": "",
    "the " * 8: "",
    "the " * 13: "shorten the sentence",
    "a" * 24: "",
    "a" * 25: "too long",
    "so ?!": "not a word",
}


@pytest.mark.parametrize("name", ["attend", "sheets", "windows"])
def test_typed_sentences(hands, name):
    """From none to one too many: each is taken, or it is said what is wrong with it."""
    hand = hands[name]
    hand.figure.evaluate("(figure) => figure.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    for typed, wrong in SENTENCES.items():
        hand.call("set", INSTRUMENTS[name]().state)
        before = hand.call("state")["words"]
        hand.figure.locator("p[role=status]").evaluate("(p) => (p.textContent = '')")
        hand.figure.get_by_label("Your sentence").fill(typed)
        hand.figure.get_by_label("Your sentence").press("Enter")
        hand.said(wrong)
        assert hand.call("state")["words"] == (before if wrong else typed.strip()), typed


@pytest.mark.parametrize("where", ["light", "dark", "phone"])
@each_instrument
def test_accessibility(show, name, where):
    root = {
        "dark": ' data-theme="dark" style="--pst-color-background:#14181e;--pst-color-text-base:#ced6dd;'
        '--pst-color-text-muted:#9ca4af;--pst-color-border:#48566b;background:#14181e;color:#ced6dd"'
    }.get(where, "")
    hand = show(INSTRUMENTS[name](), root=root, **(PHONE if where == "phone" else LIGHT))
    assert violations(hand.page) == []
    assert hand.page.evaluate("document.scrollingElement.scrollWidth") <= (360 if where == "phone" else 1280)
    for handle in hand.figure.locator("[role=slider]").all():
        box = handle.bounding_box()
        assert min(box["width"], box["height"]) >= 24
        assert handle.get_attribute("aria-label")
        assert handle.get_attribute("aria-valuetext")
    controls = "button, .file, label:has(input[type=radio]), .switch, input[type=range], input[type=text]"
    for control in hand.figure.locator(controls).all():
        assert not control.is_visible() or control.bounding_box()["height"] >= 24
    if where == "phone":
        for grip in hand.figure.locator(f"{controls}, .knob").all():
            box = grip.bounding_box()
            assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= 360)  # within reach of a thumb


@pytest.mark.parametrize("name", ["tilt", "spectrum", "shadow", "cloud", "windows"])
def test_unchanged_parts_are_not_written(hands, name):
    hand = hands[name]
    hand.call("set", {})
    count = """async (figure) => {
      const seen = new MutationObserver(() => {});
      seen.observe(figure.querySelector(".instrument-live"), { attributes: true, childList: true, subtree: true });
      seen.observe(figure.querySelector("dl"), { attributes: true, childList: true, subtree: true });
      await figure.instrument.set({});
      return seen.takeRecords().map(({ target, attributeName }) => target.outerHTML.slice(0, 60) + attributeName);
    }"""
    assert hand.figure.evaluate(count) == []


# At one stroke, however slow the machine is.
THREE_STEPS = """(grip) => ["ArrowUp", "ArrowRight", "ArrowUp"].forEach((key, i) => {
  if (grip.type === "radio") grip.closest("figure").querySelectorAll(`[name="${grip.name}"]`)[(i + 1) % 2].click();
  else if (grip.type === "range") {
    grip.stepUp();
    grip.dispatchEvent(new Event("input", { bubbles: true }));
  } else grip.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
})"""


def test_one_sentence(show):
    hands = {name: show(make()) for name, make in INSTRUMENTS.items()}
    watch = """(status) => {
      window.sentences = [];
      new MutationObserver(() => status.textContent && sentences.push(status.textContent))
        .observe(status, { childList: true, characterData: true, subtree: true });
    }"""
    for name, hand in hands.items():
        status = hand.figure.locator("[role=status]")
        assert status.count() == 1
        assert status.inner_text() == "", f"{name} speaks before it is asked"
        status.evaluate(watch)
        # The first handle of dice only turns to another pair, and says itself which.
        grips = hand.figure.locator("input:visible" if name in WITHOUT_HANDLES else "[role=slider]:visible")
        grip = grips.nth(1 if name == "dice" else 0)
        grip.evaluate(THREE_STEPS)
        if name == "draw_first":  # it says nothing of a draft
            hand.button("That is my guess").click()
    for hand in hands.values():
        hand.said()
    hand.page.wait_for_timeout(600)  # for all of them, and longer than any waits before it speaks
    for name, hand in hands.items():
        sentences = hand.page.evaluate("sentences")
        assert len(sentences) == 1, (name, sentences)
        assert sentences[0].endswith(".")


@pytest.mark.parametrize("width", [1280, 360])
def test_room_for_the_sentence(show, width):
    """Nothing moves at the first touch: what the sentence needs is there before it."""
    for name in sorted({*INSTRUMENTS} - {*WITHOUT_HANDLES}):
        hand = show(INSTRUMENTS[name](), viewport={"width": width, "height": 900})
        before, line = hand.figure.bounding_box()["height"], hand.figure.locator(".instrument-said p")
        words = line.inner_text()
        grip = hand.figure.locator("[role=slider]:visible").nth(1 if name == "dice" else 0)
        grip.press("ArrowLeft")
        grip.press("ArrowDown")
        hand.settle()
        assert hand.figure.bounding_box()["height"] == before, name
        assert name == "draw_first" or "" != line.inner_text() != words  # at once, and not said yet


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_presets_morph(show, motion):
    hand = show(spectrum(), reduced_motion=motion)
    end = spectrum(0.5 ** np.arange(12)).state["s"]
    way = """async (figure) => {
      const seen = [], from = figure.instrument.state().s[1];
      [...figure.querySelectorAll("button")].find((button) => button.textContent === "halving").click();
      while (figure.getAttribute("aria-busy") === "true") {
        await new Promise(requestAnimationFrame);
        seen.push(figure.instrument.state().s[1]);
      }
      return [from, seen, figure.instrument.state().s];
    }"""
    start, seen, reached = hand.figure.evaluate(way)
    assert reached == pytest.approx(end, abs=1e-4)
    assert any(start < value < 0.499 for value in seen) == (motion == "no-preference")
    # A press on the way there begins at its end.
    hand.button("all the same").click()
    hand.handle("singular value 12").press("ArrowDown")
    assert hand.call("state")["s"] == pytest.approx([*[1] * 11, 0.99])


CHOICES = {"votes": "0.9", "sheets": "was", "card": "one head"}
CHOOSE = """
async (figure, words) => {
  const labels = [...figure.querySelectorAll("label:has([type=radio])")];
  const radio = labels.find((label) => label.textContent.startsWith(words)).querySelector("input");
  radio.click();
  await new Promise(requestAnimationFrame);
  const glides = figure.getAnimations({ subtree: true });
  const times = new Set(glides.map((one) => one.effect.getTiming().duration));
  radio.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
  figure.getBoundingClientRect();
  return [glides.length, [...times], figure.classList.contains("glides")];
}
"""


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_glide(show, name, motion):
    """What is drawn goes to its place at another choice in 300 ms, and keeps up with the hand that follows."""
    hand = show(INSTRUMENTS[name](), reduced_motion=motion)
    count, times, after = hand.figure.evaluate(CHOOSE, CHOICES[name])
    assert (count > 0) == (motion == "no-preference")
    assert times == ([300] if count else [])
    assert not after


@each_instrument
def test_fingers(show, name):
    """On a phone what is pressed is 44 pixels high, and so is what takes hold of a handle."""
    hand = show(INSTRUMENTS[name](), **PHONE)
    for control in hand.figure.locator("button, input[type=range], label:has(input[type=radio])").all():
        assert not control.is_visible() or control.bounding_box()["height"] >= 44
    reach = """(handle) => {
      handle.scrollIntoView({ block: "center" });
      const { x, y, width, height } = handle.querySelector(".knob").getBoundingClientRect();
      const at = (dx, dy) => document.elementFromPoint(x + width / 2 + dx, y + height / 2 + dy)?.closest(".handle");
      return [at(0, -20), at(0, 20)].filter(Boolean).length;
    }"""
    handles = hand.figure.locator("[role=slider]:visible").all()[:3]
    assert not handles or max(handle.evaluate(reach) for handle in handles) == 2


def test_slider_stays_in_view(show):
    hand = show(windows(), **PHONE)
    hand.figure.locator("svg").first.evaluate("(svg) => svg.scrollIntoView({ block: 'start' })")
    for slider in hand.figure.locator("input[type=range]").all():
        box = slider.bounding_box()
        assert box["y"] + box["height"] <= PHONE["viewport"]["height"]


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_reduced_motion(show, motion):
    hand = show(*(make() for make in INSTRUMENTS.values()), reduced_motion=motion)
    moving = """async () => {
      const figures = [...document.querySelectorAll("figure")];
      await Promise.all(figures.map((f) => f.instrument.set("shown" in f.instrument.state() ? { guess: 50 } : {})));
      return document.getAnimations().length;
    }"""
    assert (hand.page.evaluate(moving) > 0) == (motion == "no-preference")


def test_two_of_a_kind(show):
    hand = show(tilt(), tilt(), address="#tilt=picture:disc;tilt:7.5;k:3&tilt-2=k:9")
    assert hand.call("state") == {"picture": "disc", "tilt": 7.5, "k": 3}
    second = hand.page.locator("figure.instrument").nth(1)
    hand.page.wait_for_function("() => document.querySelectorAll('figure')[1].instrument.state().k === 9")
    second.get_by_role("button", name="Copy a link").click()
    assert "#tilt=picture:disc;tilt:7.5;k:3&tilt-2=picture:window;tilt:12;k:9" in hand.page.url


@pytest.mark.parametrize(
    "address", [f"#tilt={it}" for it in ("k:999", "tilt:steep", "%E0%A4%A;k:%", "picture:own", "toString:1", "tilt:")]
)
def test_bad_addresses(show, address):
    hand = show(tilt(), address=address)
    assert "does not understand" in hand.said()
    assert hand.call("state") == tilt().state


def test_copy_and_start_again(show):
    hand = show(tilt(), permissions=["clipboard-read", "clipboard-write"])
    hand.set(tilt=5, k=6)
    hand.button("Copy a link").click()
    assert hand.said().startswith(("The link is copied", "The address of this page"))
    assert hand.page.url.endswith("#tilt=picture:window;tilt:5;k:6")
    hand.button("Start again").click()
    hand.settle()
    assert hand.call("state") == tilt().state


def test_start_again_clears_the_rest(show):
    checked = "(f) => f.querySelector('input[type=checkbox]').checked"
    typed = "(f) => f.querySelector('input[type=text]').value"
    said = "(f) => f.querySelector('[role=slider]').getAttribute('aria-valuetext')"

    def guess(figure):
        figure.locator("[role=slider]").press("End")
        figure.get_by_role("button", name="That is my guess").click()

    ways = {
        "tilt": (checked, lambda figure: figure.get_by_label("show what is left out").check()),
        "arrows": (checked, lambda figure: figure.locator("input[type=checkbox]").check()),
        "dice": (said, lambda figure: figure.locator("[role=slider]").first.press("Home")),
        "windows": (typed, lambda figure: figure.get_by_label("Your sentence").fill("a cat sat")),
        "draw_first": (said, guess),
    }
    for name, (read, change) in ways.items():
        hand = show(INSTRUMENTS[name]())
        before = hand.figure.evaluate(read)
        change(hand.figure)
        assert hand.figure.evaluate(read) != before
        hand.button("Start again").click()
        hand.settle()
        assert hand.figure.evaluate(read) == before, name


@pytest.mark.parametrize("way", SWIPE)
def test_finger_on_a_picture(show, way):
    hand = show(tilt(), **TOUCH)
    hand.figure.locator("svg.grab").scroll_into_view_if_needed()
    box, before = hand.figure.locator("svg.grab").bounding_box(), hand.page.evaluate("scrollY")
    swipe(hand.page, box["x"] + 0.5 * box["width"], box["y"] + 0.7 * box["height"], way)
    hand.settle()
    assert (hand.call("state") == tilt().state) == (way == "up")
    assert (hand.page.evaluate("scrollY") > before) == (way == "up")


SAID = "(all) => all.map((handle) => handle.getAttribute('aria-valuetext'))"
DRAWN = {
    **INSTRUMENTS,
    "curve": lambda: draw_first("How fast?", [4, 3, 2, 1], kind="curve", x=[1, 2, 3, 4], limits=(0, 5)),
}
AT_REST = """async () => {
  for (let at = null; at !== scrollY; await new Promise((done) => setTimeout(done, 100))) at = scrollY;
}"""
# Where on a panel a finger comes down beside every handle: of those places the one nearest to the middle.
BESIDE = """
(panel) => {
  panel.scrollIntoView({ block: "center" });
  const { left, top, width, height } = panel.getBoundingClientRect(), places = [];
  const steps = Array.from({ length: 19 }, (_, i) => (i + 1) / 20 - 0.5), off = [-12, -9, -6, -3, 0, 3, 6, 9, 12];
  for (const a of steps) for (const b of steps) places.push([a * width, b * height]);
  places.sort((p, q) => Math.hypot(...p) - Math.hypot(...q));
  const at = (x, y) => document.elementFromPoint(left + width / 2 + x, top + height / 2 + y);
  const free = ([x, y]) => panel.contains(at(x, y))
    && !off.some((a) => off.some((b) => at(x + a, y + b)?.closest(".handle")));
  const [x, y] = places.find(free);
  return [left + width / 2 + x, top + height / 2 + y];
}
"""


@pytest.mark.parametrize("name", ["spectrum", "tilt", "windows", "curve"])  # each way to take hold
def test_page_scrolls_beside_handles(show, name):
    hand = show(DRAWN[name](), **TOUCH)
    hand.page.add_style_tag(content="body { padding-bottom: 2000px }")
    before = hand.call("state"), hand.figure.locator("[role=slider]").evaluate_all(SAID)
    panels = hand.figure.locator(":is(svg:has(.grips), canvas, input[type=range]):visible")
    assert panels.count() >= 1
    for panel in panels.all():
        x, y = panel.evaluate(BESIDE)
        at = hand.page.evaluate("scrollY")
        swipe(hand.page, x, y, "up")
        hand.page.wait_for_function("(at) => scrollY > at + 20", arg=at)
        hand.page.evaluate(AT_REST)
        assert (hand.call("state"), hand.figure.locator("[role=slider]").evaluate_all(SAID)) == before


@each_instrument
def test_finger_drags_a_handle(show, name):
    hand = show(INSTRUMENTS[name](), **TOUCH)
    hand.page.add_style_tag(content="body { padding-bottom: 2000px }")
    before = hand.figure.locator("[role=slider]").evaluate_all(SAID)
    for handle in hand.figure.locator("[role=slider]:visible").all()[:3]:  # the first may be at its end already
        handle.evaluate("(handle) => handle.scrollIntoView({ block: 'center', behavior: 'instant' })")
        box, at = handle.locator(".knob").bounding_box(), hand.page.evaluate("scrollY")
        swipe(hand.page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, "up")
        hand.page.evaluate(AT_REST)
        assert hand.page.evaluate("scrollY") == at
    moved = hand.figure.locator("[role=slider]").evaluate_all(SAID) != before
    assert moved or name in ("tilt", "sheets", *WITHOUT_HANDLES)  # whose cuts go sideways alone


# As JupyterLab 4 puts HTML into an output (rendermime's renderHTML): the text first, then each script made anew in its
# place, and the whole attached to the page before that or after. Its style of dt and dd stands in the page.
AS_JUPYTERLAB = """
([html, late]) => {
  const style = document.createElement("style");
  style.textContent = ".jp-OutputArea-output dt { float: left; width: 50%; } .jp-OutputArea-output dd { float: left }";
  const host = document.createElement("div");
  host.className = "jp-RenderedHTMLCommon jp-OutputArea-output";
  if (!late) document.body.append(style, host);
  host.innerHTML = html;
  for (const old of host.querySelectorAll("script")) {
    const script = document.createElement("script");
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
  if (late) document.body.append(style, host);
}
"""


@pytest.mark.parametrize("late", [False, True])
@each_instrument
def test_jupyterlab(browser, markup, name, late):
    one = INSTRUMENTS[name]()
    html = markup(one)
    page = browser.new_page()
    thrown = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.goto("about:blank")
    for _ in range(2):  # the same cell run twice
        page.evaluate(AS_JUPYTERLAB, [html, late])
    for at in (0, 1):
        figure = page.locator("figure.instrument").nth(at)
        numbers = figure.evaluate("async (f) => (await f.instrument.set({}), f.instrument.numbers())")
        assert numbers == pytest.approx(one.numbers, rel=1e-6, abs=1e-6)
        assert figure.locator("[role=slider], input").count() >= 1
        tops = figure.evaluate(
            "(f) => [...f.querySelectorAll('dl dd, dl dt')].map((e) => e.getBoundingClientRect().top)"
        )
        assert all(number > name for name, number in zip(tops[::2], tops[1::2], strict=True))  # below its name
    assert thrown == []
    page.close()


def test_removed_output_is_forgotten(browser, markup):
    page = browser.new_page()
    page.clock.install()
    page.goto("about:blank")
    page.evaluate(AS_JUPYTERLAB, [markup(tilt()), False])
    page.evaluate("() => document.querySelector('figure').instrument.set({})")
    assert len(page.workers) == 1
    page.evaluate(
        "() => { window.gone = new WeakRef(document.querySelector('figure')); document.body.replaceChildren(); }"
    )
    page.clock.fast_forward(60_000)  # a worker waits a while for more to do
    session = page.context.new_cdp_session(page)
    for _ in range(100):
        session.send("HeapProfiler.collectGarbage")
        if page.evaluate("gone.deref() === undefined") and page.workers == []:
            break
        page.wait_for_timeout(100)
    assert page.evaluate("gone.deref() === undefined")
    assert page.workers == []
    page.close()


def test_frame_as_in_colab(browser, tmp_path, markup):
    (tmp_path / "frame.html").write_text(f"<body>{markup(arrows())}</body>", encoding="utf-8")
    (tmp_path / "page.html").write_text('<iframe sandbox="allow-scripts" src="frame.html"></iframe>', encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    figure = page.frame_locator("iframe").locator("figure.instrument")
    assert figure.evaluate("(f) => f.instrument.numbers().rank") == 2
    assert figure.get_by_role("button", name="Copy a link").count() == 0  # nobody sees a frame's address
    page.close()
