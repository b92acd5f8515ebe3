"""What all figures share: their numbers, their address, and their manners on a page, in print and
in a notebook.
"""

import re
from functools import partial
from inspect import signature

import numpy as np
import pytest
from sklearn.datasets import load_digits
from visits import FINGER, swipe, violations
from walks import OVERLAPS, READY, lost_handles

from lowrank_tutor import figures
from lowrank_tutor.kit import draw_first

ARGUMENTS = {"album": {"pictures": load_digits().images[:64]}}  # that have no default
INSTRUMENTS = {
    name.replace("_", "-"): partial(getattr(figures, name), **ARGUMENTS.get(name, {}))
    for name in figures.__all__
}
INSTRUMENTS["draw_first"] = partial(
    draw_first, "How many keys has a piano?", 88, kind="mark", limits=(1, 1000), log=True
)
OTHER_STATES = {
    "tilt": {"picture": "disc", "tilt": 7.5, "k": 3},
    "arrows": {"a": [[1, -2.5], [0.5, 4]], "theta": -1.25},
    "spectrum": {"s": [0.5**i for i in range(12)], "k": 7},
    "shadow": {"x": [-1.5, 2], "theta": 2.5},
    "cloud": {"center": [-3, 0.5]},
    "moving": {"t": 1.24},
    "downhill": {"start": [-1.5, 0.7], "size": 0.06, "step": 4},
    "error-against-loss": {"cut": "sheets", "setting": 32, "text": "prose"},
    "score": {"s": [-4, 0.1], "h": [2, -3.5]},
    "windows": {"borders": [0, 2, 9]},
    "budget": {
        "first": 8,
        "second": 0,
        "rank": 8,
        "bits": 3,
        "latents": 0,
        "heads": [1, 1, 0, 1, 1, 1, 1, 0],
    },
    "storyteller": {
        "story": "Ben has tea . Mia has rice . who has tea ?",
        "cut": "window",
        "k": 4,
        "head": 2,
    },
    "two-cuts": {
        "story": "Ben has tea . Mia has rice . who has tea ?",
        "left": "bits",
        "right": "latents",
        "damage": 20,
    },
    "attend": {"row": 2, "query": [-1.5, 3], "sharpness": 0.5},
    "dice": {"k": 24, "d": 50, "n": 5, "eps": 0.25, "seed": 77},
    "album": {"written": 20, "d": 16, "method": "best"},
    "card": {
        "model": "pasted",
        "billions": 7,
        "gpu": "T4",
        "cards": 3,
        "split": "tokens",
        "n": 2**19,
        "weight_bits": 4.25,
        "cache_bits": 8,
        "share": 75,
        "other": 2.5,
        "own": [48, 864, 362],
        "pasted": '{"model_type":"by hand","layers":2,"groups":2,"width":4}',
    },
    "draw_first": {"guess": 50, "shown": True},
}
each_instrument = pytest.mark.parametrize("name", INSTRUMENTS)
WITHOUT_HANDLES = ("album", "budget", "card", "moving")  # native controls alone
KILOBYTES = dict.fromkeys(
    ("storyteller", "budget", "windows", "two-cuts"), 265
)  # a block without its pictures: with a model
LIGHT = {"viewport": {"width": 1280, "height": 900}}
PHONE = FINGER | {"reduced_motion": "reduce"}
TOUCH = FINGER | {"viewport": {"width": 360, "height": 500}}


@pytest.fixture(scope="module")
def hands(show):
    """Each instrument on a page of its own, opened once."""
    return {name: show(make()) for name, make in INSTRUMENTS.items()}


NAMES = "Object.getOwnPropertyNames(window)"


@pytest.fixture(scope="module")
def own_names(show):
    """The names that a window without a figure has."""
    return set(show().page.evaluate(NAMES))


@each_instrument
def test_walk(hands, own_names, show, name):
    """NumPy's numbers and words, no message, no request, and one name left behind; then another
    state, by a link.
    """
    one, hand = INSTRUMENTS[name](), hands[name]
    assert hand.call("state") == one.state
    assert hand.shown() == pytest.approx(one.numbers, rel=1e-6, abs=1e-6)
    texts = hand.figure.evaluate(
        "(f) => [...f.querySelectorAll('data')].map((d) => [d.dataset.name, d.textContent])"
    )
    assert dict(texts) == {
        number: one.words.text(number, value) for number, value in one.numbers.items()
    }
    assert hand.figure.locator("p[role=status]").inner_text() == ""
    assert name == "draw_first" or hand.figure.locator(
        ".instrument-said p"
    ).text_content().startswith(one.alt)
    assert set(hand.page.evaluate(NAMES)) - own_names == {"lowrankTutor"}
    assert [url for url in hand.requests if not url.startswith(("file:", "data:", "blob:"))] == []

    hand.call("set", OTHER_STATES[name])
    hand.button("Copy a link").click()
    assert hand.said("The ").startswith(("The link is copied", "The address of this page"))
    linked = show(INSTRUMENTS[name](), address="#" + hand.page.url.split("#", 1)[1])
    assert linked.call("state") == OTHER_STATES[name]
    assert linked.call("numbers") == hand.call("numbers")
    assert linked.call("table") == hand.call("table")
    assert "None" not in str(linked.call("table"))  # JSON has null for a number that is not finite
    hand.button("Start again").click()
    hand.settle()
    assert hand.call("state") == one.state


@each_instrument
def test_markup(markup, name):
    one = INSTRUMENTS[name]()
    html = markup(one)
    own = re.sub(r"data:image/[a-z]+;base64,[\w+/=]+", "", html)
    assert len(own.encode()) <= KILOBYTES.get(name, 88) * 1000
    assert not re.search(r"\$|\\\(", own)  # to notebooks these are the beginning of a formula
    assert set(re.findall(r"https?://[\w./]+", own)) <= {
        "http://www.w3.org/2000/svg"
    }  # a name, never an address
    assert repr(one) == f"<Instrument {name}: {one.alt}>"


STILL = """(all) => all.map((figure) => ({
  height: figure.querySelector(".instrument-still").getBoundingClientRect().height,
  numbers: Object.fromEntries([...figure.querySelectorAll("data")]
    .map((d) => [d.dataset.name, Number(d.value)])),
  excuse: figure.querySelector("noscript").textContent,
}))"""


def test_without_scripts_and_in_print(show, hands):
    page = show(*(make() for make in INSTRUMENTS.values()), java_script_enabled=False).page
    shown = page.locator("figure.instrument").evaluate_all(STILL)
    for still, (name, make) in zip(shown, INSTRUMENTS.items(), strict=True):
        assert still["height"] > 20
        assert still["numbers"] == pytest.approx(make().numbers)
        assert "JavaScript" in still["excuse"]
        for media in ("print", "screen"):
            hands[name].page.emulate_media(media=media)
            guessed = media == "print" and name == "draw_first"  # on paper, the answer stands there
            assert hands[name].figure.locator(".instrument-still").is_visible() == guessed
            assert hands[name].figure.locator(".instrument-live").is_visible() != guessed
            touch = ":is(button:not(.heads *), input, .handle):visible"
            assert media == "screen" or hands[name].figure.locator(touch).count() == 0


OWN_DATA = {  # of the smallest and of the largest size, or of an unusual one
    "2 bars": lambda: figures.spectrum([1, 2]),
    "40 bars": lambda: figures.spectrum(0.9 ** np.arange(40), 30),
    "large matrix": lambda: figures.arrows([[100, -100], [99, 100]], form="rank"),
    "most points": lambda: figures.dice(8, n=32),
    "least throw": lambda: figures.dice(k=1, d=1, n=2, eps=0.01),
    "no score": lambda: figures.score(s=(0, 0)),
    "point at the origin": lambda: figures.shadow((0, 0)),
    "most cards": lambda: figures.card("DeepSeek-V3.2", "B200", 16, weight_bits=4.25),
}


def test_own_data(show):
    """Python's state and numbers, and handles in reach and words apart, whatever the size."""
    made = {name: make() for name, make in OWN_DATA.items()}
    page = show(*made.values(), **LIGHT).page
    page.evaluate(READY)
    figures_of = "[...document.querySelectorAll('figure')]"
    states = page.evaluate(f"() => {figures_of}.map((f) => f.instrument.state())")
    numbers = page.evaluate(f"() => {figures_of}.map((f) => f.instrument.numbers())")
    for (name, one), state, computed in zip(made.items(), states, numbers, strict=True):
        assert state == one.state, name
        assert computed == pytest.approx(one.numbers, rel=1e-5, abs=1e-5), name
    assert lost_handles(show(OWN_DATA["large matrix"](), **LIGHT).page) == []
    curve = draw_first(
        "How high?", [0.5] * 20, kind="curve", x=range(1, 21), limits=(0, 1), format=".0%"
    )
    narrow = show(figures.windows(), curve, **PHONE).page
    narrow.evaluate(READY)
    every = {"borders": list(range(23))}
    narrow.evaluate("(state) => document.querySelector('figure').instrument.set(state)", every)
    assert narrow.evaluate(OVERLAPS) == []


NO_ARGUMENTS = {  # what Python alone is asked
    "arrows": {"a": [[[1, 2], [3, np.nan]], 1j * np.eye(2)], "form": ["x", ["rank"]]},
    "score": {"s": [None], "u": [None, [0, 0]], "v": [[[1, 2], [3, 4]]]},
    "shadow": {"x": [[np.nan, 0], [1, 2, 3]], "f": [[0, 0], [np.inf, 1], [1j, 1]]},
    "spectrum": {"s": [[1], [1] * 41, [np.nan] * 12, [-1] * 12, [1001] * 12, "a"], "k": [True]},
    "tilt": {"picture": [None], "degrees": [-1, 46, [2]]},
    "attend": {"word": ["dog"]},
    "album": {"pictures": [np.ones((9, 8, 8)), np.full((64, 8, 8), np.nan)]},
    "card": {"model": ["pasted"], "weight_bits": [5]},
}
NO_STATES = {  # what the browser refuses, and Python where it is asked for the start
    "tilt": {"picture": ["cat"], "k": [0, 161]},
    "arrows": {"a": [[[1, 2]]], "theta": ["far"]},
    "error-against-loss": {"cut": ["cat"], "setting": [3], "text": ["verse"]},
    "two-cuts": {"left": ["means"], "right": [3], "damage": [51]},
    "score": {"s": [[4.1, 0], [1]], "h": ["far"]},
    "shadow": {"x": [[6, 0]]},
    "cloud": {"center": [[9, 0]]},
    "moving": {"t": [-0.1, 3.5]},
    "downhill": {"start": [[3, 0]], "size": [0, 0.5], "step": [-1, 21, 0.5]},
    "dice": {"k": [0, 401], "d": [0, 1001], "n": [1, 33], "eps": [0, 1], "seed": [0]},
    "windows": {"borders": [[], [1, 2], [0, 4, 4], [0, 23], [0, 1.5]]},
    "attend": {"query": [[5, 0]], "sharpness": [-1, 4.1]},
    "album": {"written": [0, 65], "d": [8], "method": ["mean"]},
    "card": {
        "n": [0, 10_000], "model": ["12", "pasted"], "gpu": ["H300"], "cards": [0, 17],
        "share": [49], "other": [41], "own": [[80, 2039]], "split": ["words"],
        "weight_bits": [5], "cache_bits": [2], "pasted": [3],
    },
    "spectrum": {"k": [0, 13]},
}  # fmt: skip
ALIKE = ("k", "d", "n", "m", "written", "way", "rho", "method", "eps")  # refused in the same words


def refused(name, part, value):
    """Return the rule by which Python refuses an argument."""
    with pytest.raises(
        (TypeError, ValueError), match=f"^{part}.* must (be|have) .*, got "
    ) as raised:
        INSTRUMENTS[name](**{part: value})
    return str(raised.value).split(", got ")[0]


def test_bad_arguments():
    for name, parts in NO_ARGUMENTS.items():
        for part, values in parts.items():
            for value in values:
                refused(name, part, value)


@pytest.mark.parametrize("name", NO_STATES)
def test_bad_states(hands, name):
    hand = hands[name]
    hand.call("set", INSTRUMENTS[name]().state)
    before, asked = hand.call("state"), signature(INSTRUMENTS[name]).parameters
    for part, values in NO_STATES[name].items():
        for value in values:
            rule = refused(name, part, value) if part in asked else f"{part} must be"
            with pytest.raises(Exception, match=re.escape(rule if part in ALIKE else "must be")):
                hand.call("set", {part: value})
            assert hand.call("state") == before
    with pytest.raises(Exception, match="state must be made of"):
        hand.call("set", {"shade": 3})


DEGREE = np.pi / 180
# A state, a handle, and what each key, one after the other, makes of a part of the state or a
# number.
KEYS = [
    ("arrows", {"theta": 0}, "input x", "theta",
     {"ArrowUp": DEGREE, "Shift+ArrowRight": 16 * DEGREE, "End": 90 * DEGREE, "Home": 0}),
    ("downhill", {"start": [2, 0], "step": 0}, "the ball", "start",
     {"ArrowUp": [2, 0.1], "Shift+ArrowLeft": [1, 0.1], "PageDown": [1, -0.9]}),
    ("error-against-loss", {"cut": "window", "setting": 32}, "how much", "setting",
     {"ArrowRight": 16, "Home": 192, "End": 8}),
    ("cloud", {"center": [1, 1]}, "mean of the cloud", "center", {"ArrowRight": [1.1, 1]}),
    ("dice", {"eps": 0.5}, "upper", "eps", {"ArrowUp": 0.51, "End": 0.99}),
    ("dice", {"eps": 0.5}, "lower", "eps", {"ArrowUp": 0.49, "End": 0.01}),
    ("shadow", {"x": [1, 2], "theta": 0}, "direction of the line", "theta", {"ArrowUp": DEGREE}),
    ("shadow", {"x": [-3, -4], "theta": 0}, "angle between", "angle",  # 53 degrees
     {"ArrowRight": 54, "Shift+ArrowUp": 69, "End": 90, "ArrowLeft": 89}),
    ("spectrum", {"s": [1] + [0.5] * 11}, "singular value 2", "s",
     {"Shift+ArrowUp": [1, 0.6] + [0.5] * 10, "Home": [1] + [0] * 11}),
    ("spectrum", {"k": 4}, "cut", "k", {"ArrowRight": 5, "Shift+ArrowRight": 8, "End": 12}),
    ("tilt", {"k": 8}, "cut", "k", {"ArrowRight": 9, "Shift+ArrowRight": 19, "End": 160}),
    ("windows", {"borders": [0, 3, 6, 9]}, "border 2,", "borders",
     {"ArrowUp": [0, 3, 5, 9], "Shift+ArrowDown": [0, 3, 8, 9], "Home": [0, 3, 4, 9]}),
    ("attend", {"query": [2.5, 0]}, "tip of the query", "query", {"Shift+ArrowLeft": [1.5, 0]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "start", "handle", "part", "keys"), KEYS)
def test_keys(hands, name, start, handle, part, keys):
    hand = hands[name]
    hand.set(**INSTRUMENTS[name]().state | start)
    for key, value in keys.items():
        hand.handle(handle).press(key)
        assert (hand.call("state") | hand.shown())[part] == pytest.approx(value), key


LOW = """(all, least) => all.filter((control) => {
  const { width, height } = control.getBoundingClientRect();
  return width && height && height < least && control.checkVisibility({ visibilityProperty: true });
}).map((control) => control.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize(("screen", "least"), [(LIGHT, 24), (PHONE, 44)], ids=["mouse", "finger"])
def test_controls(show, screen, least):
    """What a hand takes hold of has a name and is `least` pixels high, and nothing is wider than
    the screen. Words of a story stand in a sentence, where WCAG 2.5.8 asks for no size.
    """
    page = show(*(make() for make in INSTRUMENTS.values()), **screen).page
    page.evaluate(READY)
    if screen is PHONE:  # axe sees the same elements on both
        assert violations(page) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= screen["viewport"]["width"]
    assert page.locator("[role=slider]").evaluate_all(
        "(all) => all.every((handle) => handle.ariaLabel && handle.ariaValueText)"
    )
    controls = page.locator("button, input[type=range], .choice label")
    assert controls.evaluate_all(LOW, least) == []


# At one stroke, however slow the machine is.
THREE_STEPS = """(grip) => ["ArrowUp", "ArrowRight", "ArrowUp"].forEach((key, i) => {
  if (grip.type === "radio") grip.closest("figure")
    .querySelectorAll(`[name="${grip.name}"]`)[(i + 1) % 2].click();
  else if (grip.type === "range") {
    grip.stepUp();
    grip.dispatchEvent(new Event("input", { bubbles: true }));
  } else grip.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
})"""


def test_one_sentence(show):
    """Each figure says one sentence for three quick steps, and shows it where there was room for
    it.
    """
    page = show(*(make() for make in INSTRUMENTS.values())).page
    page.evaluate(READY)
    on_page = dict(zip(INSTRUMENTS, page.locator("figure.instrument").all(), strict=True))
    watch = """(status) => {
      status.sentences = [];
      new MutationObserver(() => status.textContent && status.sentences.push(status.textContent))
        .observe(status, { childList: true, characterData: true, subtree: true });
    }"""
    for name, figure in on_page.items():
        figure.locator("[role=status]").evaluate(watch)
        # The first handle of dice only turns to another pair, and says itself which.
        grips = figure.locator(
            "input:visible" if name in WITHOUT_HANDLES else "[role=slider]:visible"
        )
        height = figure.bounding_box()["height"]
        grips.nth(1 if name == "dice" else 0).evaluate(THREE_STEPS)
        assert figure.bounding_box()["height"] == height, name
        if name == "draw_first":  # it says nothing of a draft
            figure.get_by_role("button", name="That is my guess").click()
    page.wait_for_timeout(1000)  # longer than any waits before it speaks
    for name, figure in on_page.items():
        sentences = figure.locator("[role=status]").evaluate("(status) => status.sentences")
        assert len(sentences) == 1, (name, sentences)
        assert sentences[0].endswith(".")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_presets_morph(show, motion):
    hand = show(figures.spectrum(), reduced_motion=motion)
    end = figures.spectrum(0.5 ** np.arange(12)).state["s"]
    way = """async (figure) => {
      const seen = [], from = figure.instrument.state().s[1];
      [...figure.querySelectorAll("button")].find((button) => button.textContent === "halving")
        .click();
      while (figure.getAttribute("aria-busy") === "true") {
        await new Promise(requestAnimationFrame);
        seen.push(figure.instrument.state().s[1]);
      }
      return [from, seen, figure.instrument.state().s];
    }"""
    start, seen, reached = hand.figure.evaluate(way)
    assert reached == pytest.approx(end, abs=1e-4)
    assert any(start < value < 0.499 for value in seen) == (motion == "no-preference")
    hand.button("all the same").click()  # a press on the way there begins at its end
    hand.handle("singular value 12").press("ArrowDown")
    assert hand.call("state")["s"] == pytest.approx([*[1] * 11, 0.99])


def test_two_of_a_kind(show):
    hand = show(
        figures.tilt(), figures.tilt(), address="#tilt=picture:disc;tilt:7.5;k:3&tilt-2=k:9"
    )
    assert hand.call("state") == {"picture": "disc", "tilt": 7.5, "k": 3}
    second = hand.page.locator("figure.instrument").nth(1)
    hand.page.wait_for_function(
        "() => document.querySelectorAll('figure')[1].instrument.state().k === 9"
    )
    second.get_by_role("button", name="Copy a link").click()
    assert "#tilt=picture:disc;tilt:7.5;k:3&tilt-2=picture:window;tilt:12;k:9" in hand.page.url


@pytest.mark.parametrize(
    "address",
    [f"#tilt={it}" for it in ("k:999", "%E0%A4%A;k:%", "picture:own", "toString:1")],
)
def test_bad_addresses(show, address):
    hand = show(figures.tilt(), address=address)
    assert "does not understand" in hand.said()
    assert hand.call("state") == figures.tilt().state


def test_finger_on_a_picture(show):
    hand = show(figures.tilt(), **TOUCH)
    spectrum = hand.figure.locator("svg.grab")
    spectrum.scroll_into_view_if_needed()
    box = spectrum.bounding_box()
    swipe(hand.page, box["x"] + box["width"] / 2, box["y"] + 0.7 * box["height"], "sideways")
    hand.settle()
    assert hand.call("state") != figures.tilt().state


SAID = "(all) => all.map((handle) => handle.getAttribute('aria-valuetext'))"
WAYS_TO_HOLD = {
    "bars": figures.spectrum,
    "a cut, and a picture that turns": figures.tilt,
    "borders": figures.windows,
    "a curve": lambda: draw_first(
        "How fast?", [4, 3, 2, 1], kind="curve", x=[1, 2, 3, 4], limits=(0, 5)
    ),
}
AT_REST = """async () => {
  for (let at = null; at !== scrollY; await new Promise((done) => setTimeout(done, 100))) at =
    scrollY;
}"""
# Where on a panel a finger comes down beside every handle: of those places the one nearest to the
# middle.
BESIDE = """
(panel) => {
  panel.scrollIntoView({ block: "center" });
  const { left, top, width, height } = panel.getBoundingClientRect(), places = [];
  const steps = Array.from({ length: 19 }, (_, i) => (i + 1) / 20 - 0.5),
    off = [-12, -9, -6, -3, 0, 3, 6, 9, 12];
  for (const a of steps) for (const b of steps) places.push([a * width, b * height]);
  places.sort((p, q) => Math.hypot(...p) - Math.hypot(...q));
  const at = (x, y) => document.elementFromPoint(left + width / 2 + x, top + height / 2 + y);
  const free = ([x, y]) => panel.contains(at(x, y))
    && !off.some((a) => off.some((b) => at(x + a, y + b)?.closest(".handle")));
  const [x, y] = places.find(free);
  return [left + width / 2 + x, top + height / 2 + y];
}
"""


@pytest.mark.parametrize("name", WAYS_TO_HOLD)
def test_fingers(show, name):
    """Beside handles a finger scrolls the page, and on one it drags the handle alone."""
    hand = show(WAYS_TO_HOLD[name](), **TOUCH)
    hand.page.add_style_tag(content="body { padding-bottom: 2000px }")
    handles = hand.figure.locator("[role=slider]")
    before = hand.call("state"), handles.evaluate_all(SAID)
    for panel in hand.figure.locator(
        ":is(svg:has(.grips), canvas, input[type=range]):visible"
    ).all():
        x, y = panel.evaluate(BESIDE)
        at = hand.page.evaluate("scrollY")
        swipe(hand.page, x, y, "up")
        hand.page.wait_for_function("(at) => scrollY > at + 20", arg=at)
        hand.page.evaluate(AT_REST)
        assert (hand.call("state"), handles.evaluate_all(SAID)) == before
    for handle in hand.figure.locator("[role=slider]:visible").all()[
        :3
    ]:  # the first may be at its end already
        handle.evaluate(
            "(handle) => handle.scrollIntoView({ block: 'center', behavior: 'instant' })"
        )
        hand.page.evaluate(AT_REST)
        box, at = handle.locator(".knob").bounding_box(), hand.page.evaluate("scrollY")
        swipe(hand.page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, "up")
        hand.page.evaluate(AT_REST)
        assert hand.page.evaluate("scrollY") == at
    assert "cut" in name or handles.evaluate_all(SAID) != before[1]  # a cut goes sideways alone


# As JupyterLab 4 puts HTML into an output (rendermime's renderHTML): the text first, then each
# script made anew in its place, and the whole attached to the page before that or after.
AS_JUPYTERLAB = """
([html, late]) => {
  const host = document.createElement("div");
  host.className = "jp-RenderedHTMLCommon jp-OutputArea-output";
  if (!late) document.body.append(host);
  host.innerHTML = html;
  for (const old of host.querySelectorAll("script")) {
    const script = document.createElement("script");
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
  if (late) document.body.append(host);
}
"""


def test_removed_output_is_forgotten(browser, markup):
    page = browser.new_page()
    page.clock.install()
    page.goto("about:blank")
    for late in (True, False):  # the same cell run twice
        page.evaluate("() => document.body.replaceChildren()")
        page.evaluate(AS_JUPYTERLAB, [markup(figures.tilt()), late])
    page.evaluate("() => document.querySelector('figure').instrument.set({})")
    assert page.workers
    page.evaluate(
        "() => { window.gone = new WeakRef(document.querySelector('figure')); "
        "document.body.replaceChildren(); }"
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
    (tmp_path / "frame.html").write_text(
        f"<body>{markup(figures.arrows())}</body>", encoding="utf-8"
    )
    (tmp_path / "page.html").write_text(
        '<iframe sandbox="allow-scripts" src="frame.html"></iframe>', encoding="utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    figure = page.frame_locator("iframe").locator("figure.instrument")
    assert figure.evaluate("(f) => f.instrument.numbers().rank") == 2
    assert (
        figure.get_by_role("button", name="Copy a link").count() == 0
    )  # nobody sees a frame's address
    page.close()
