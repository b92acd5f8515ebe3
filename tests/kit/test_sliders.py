"""The slider widget: what it stores, hands on its pictures, its limits, and its live face."""

import base64
import io
import json
import re
import zlib

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from visits import FINGER, swipe

from lowrank_tutor.kit import charts
from lowrank_tutor.kit import sliders as explore
from lowrank_tutor.kit.environment import PAGE_VARIABLE
from lowrank_tutor.kit.images import pixels
from lowrank_tutor.kit.sliders import Explorer

HOSTILE = """</script><script>alert(1)</script><!-- <script> "double" 'single' &amp; <b>"""


def bar(**values):
    """A small picture that differs at every position: a bar as long as the sum of the sliders."""
    figure = Figure(figsize=(1, 0.5))
    figure.add_axes((0, 0, 1, 1)).barh(0, sum(values.values()))
    figure.axes[0].set_xlim(0, 100)
    return figure


def double(**values):
    return {"twice": 2 * sum(values.values())}


def make(draw=bar, readout=double, *, alt="A bar of length {k}.", **more):
    return explore.explore(draw, readout, alt=alt, **{"name": "bar", "k": range(1, 5), **more})


def stored(source):
    """The data of a block."""
    data = json.loads(re.search('<script type="application/json"[^>]*>(.*?)</script>', source)[1])
    pictures = json.loads(zlib.decompress(base64.b64decode(data["pictures"])))
    return data | {"pictures": pictures}


def test_readouts_are_exact():
    numbers = [1 / 3, 5e-324, 2**60 + 1, np.float64(1) / 3, np.float32(0.5)]
    source = make(readout=lambda k: {"a": numbers[k]}, k=range(len(numbers))).to_html()
    plain = [x.item() if isinstance(x, np.generic) else x for x in numbers]
    shown = [each[0][0] for each in stored(source)["numbers"]]
    assert [type(x)(text) for x, text in zip(plain, shown, strict=True)] == plain


def test_hostile_words(browser):
    name = '"><script>'
    explorer = explore.explore(
        bar, lambda **_: {HOSTILE: 1.0}, alt=HOSTILE, caption=HOSTILE, name="x",
        labels={HOSTILE: HOSTILE},
        formats={name: "<<9"}, **{name: range(5)},
    )  # fmt: skip
    with browser.new_page() as page:
        page.set_content(explorer.to_html())
        page.locator(".drags").wait_for()
        for value in "01":
            assert page.locator(".explorer-panels").get_attribute("aria-label") == HOSTILE
            for tag in ("figcaption", "dt"):
                assert page.locator(tag).text_content() == HOSTILE
            assert page.locator(f"output[name='{name}']").inner_text() == f"{value}<<<<<<<<"
            page.locator("input").press("ArrowRight")
        assert page.locator("figure b").count() == 0


# Panels


def pair(k, e):
    """Two panels: the first one does not move with e; the second is a photograph."""
    wide, photo = bar(k=k), bar(k=k, e=e)
    photo.set_size_inches(2, 0.5)
    return [wide, charts.photograph(photo)]


def test_panels():
    source = make(draw=pair, alt="x", k=[1, 2, 3], e=[5, 70]).to_html()
    assert [len(strip) for strip in stored(source)["pictures"]] == [3, 6]  # equal ones once
    assert stored(source)["frames"] == [[0, 0], [0, 1], [1, 2], [1, 3], [2, 4], [2, 5]]


# Motion


def notes(k):
    """A bar that is marked in words, more of them from 2 on, with its length on its end."""
    figure = bar(k=20 * k)
    figure.text(k / 5, 0, f"{k}.25")
    if k > 1:
        figure.axes[0].text(k, 0, "more", rotation=90)
    return figure


# A key, milliseconds, and the share of the way that the bar's end has gone from 1 to 3
MOVES = [("End", 100, 0.5), ("Home", 0, 0.5), ("Home", 220, 0), ("End", 220, 1)]
SAME = """
(texts) => texts.map((text) => {
  const parsed = document.createElement("template");
  parsed.innerHTML = text;
  return document.querySelector("svg").isEqualNode(parsed.content.firstChild);
})
"""


@pytest.mark.parametrize("calm", [False, True])
def test_points_travel(browser, calm):
    """On straight lines, from what is seen, to just what was drawn; at once without motion."""
    source = make(draw=notes, k=[1, 2, 3], play=True).to_html()
    (pictures,) = stored(source)["pictures"]
    with browser.new_page(reduced_motion="reduce" if calm else "no-preference") as page:
        page.clock.install(time=0)
        page.set_content(source)
        page.locator(".drags").wait_for()
        page.clock.pause_at(60_000)
        for key, time, share in MOVES:
            page.locator("input").press(key)
            page.clock.run_for(time)
            share = key == "End" if calm else share
            end = page.locator("[clip-path]").first.get_attribute("d").split()[4]
            number = page.locator("text").last.get_attribute("x")
            assert float(number) == pytest.approx(float(end), abs=0.1)
            assert float(end) == pytest.approx(14.4 + 28.8 * share, abs=3)
            assert page.evaluate(SAME, pictures) == [share == 0, False, share == 1]
        page.emulate_media(media="print")
        assert page.locator(":is(input, button):visible").count() == 0


# Hands


@pytest.mark.parametrize(("touched", "tapped"), [("input[type=range]", 5), ("svg", 1)])
def test_touch(browser, touched, tapped):
    block = make(k=range(1, 10)).to_html()
    seen = {}
    for way in (
        "up",
        "tap",
        "sideways",
    ):  # each on a page of its own, so that no scroll is still under way
        with browser.new_page(**FINGER) as page:
            page.set_content(
                '<meta name="viewport" content="width=device-width"><div style="padding:300px 0 '
                f'2000px">{block}'
            )
            page.locator(".drags").wait_for()
            slider, taken = page.locator("input[type=range]"), page.locator(touched)
            taken.evaluate("(taken) => taken.scrollIntoView({ block: 'center' })")
            box, at = taken.bounding_box(), page.evaluate("scrollY")
            swipe(page, box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2, way)
            if way == "up":
                page.wait_for_function("(at) => scrollY > at", arg=at)
            page.wait_for_timeout(200)
            assert (page.evaluate("scrollY") > at) == (way == "up")
            seen[way] = int(slider.input_value())
            assert page.locator("output").inner_text() == str(seen[way])
    assert seen["up"] == 1
    assert seen["tap"] == tapped
    assert seen["sideways"] > tapped


DRAGGED = [  # the sliders, where they stand, and where after half the picture's width
    ({"k": range(9), "e": range(5), "play": "e"}, [0, 0], [0, 2]),
    ({"k": [1, 2, 4, 5, 9], "start": {"k": 2}}, [1], [3]),
]


@pytest.mark.parametrize(("sliders", "start", "end"), DRAGGED)
def test_drag_on_picture(browser, sliders, start, end):
    """From where the slider stands, a picture's width is its whole range; a click is none."""
    with browser.new_page(viewport={"width": 900, "height": 500}) as page:
        page.set_content(make(alt="x", **sliders).to_html())
        page.locator(".drags").wait_for()
        image = page.locator("svg")
        values = "(all) => all.map((slider) => Number(slider.value))"
        box, first = image.bounding_box(), image.inner_html()
        x, y = box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2
        page.mouse.click(x, y)
        assert page.locator("input[type=range]").evaluate_all(values) == start
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + box["width"] / 4, y)
        page.mouse.move(x + box["width"] / 2, y + 300)  # beyond the picture, too
        page.mouse.up()
        page.mouse.move(x, y)
        assert page.locator("input[type=range]").evaluate_all(values) == end
        assert image.inner_html() != first
        assert page.evaluate("getSelection().isCollapsed")


# Limits


REFUSED = [
    ({"limit": 10_000}, "'bar' must weigh at most 10,000 bytes, got "),
    ({"k": range(12), "e": range(48)}, "sliders must give at most 240 frames, got 576"),
    ({"k": [1, np.inf]}, "k must hold finite numbers, got inf"),
    ({"k": [2, 1]}, "k must increase, got [2, 1]"),
    ({"k": [*"abcdefghi"]}, "k must have 2 to 8 positions, got more"),
    (
        {"k": ["a", "b", "a"]},
        "k must have words that differ and are not empty, got ['a', 'b', 'a']",
    ),
    ({"k": "12"}, "k must be a sequence of numbers or of words, such as range(1, 21), got '12'"),
    ({"k": ["1", 2]}, "k must hold numbers alone or words alone, got '1'"),
    (
        {"alt": "  "},
        "alt must be words that describe the picture, such as alt=\"Rank {k}.\", got '  '",
    ),
    ({"alt": "{j}"}, "alt must use only ['k', 'twice'], got '{j}'"),
    ({"start": {"k": 9}}, "start must be a position of a slider, got k=9"),
    ({"formats": {"k": "d Hz"}}, "Invalid format specifier"),
    (
        {"play": "j"},
        "play must be True or False or name one of the sliders of numbers ['k'], got 'j'",
    ),
    ({"name": "a-\n"}, "name must be lower-case words joined by hyphens, got 'a-\\n'"),
    ({"readout": lambda k: {"k": k}}, "readout must not name a number like a slider, got ['k']"),
    ({"labels": {"j": "x"}}, "labels must name one of ['k', 'twice'], got ['j']"),
]


@pytest.mark.parametrize(("argument", "message"), REFUSED)
def test_bad_arguments(argument, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        make(**argument).to_html()


def test_most_frames():
    assert len(make(alt="x", k=range(48), e=range(5)).positions()) == 240


@pytest.mark.parametrize("number", [float("nan"), -np.inf, " ", None, True, 1j, np.ones(1)])
def test_bad_readout(number):
    explorer = make(readout=lambda k: {"x": number if k == 3 else 1.0})
    with pytest.raises(
        ValueError, match=r"^readout 'x' must be a finite number or words, got .* at \{'k': 3\}$"
    ):
        explorer.to_html()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"draw": lambda k: Figure(figsize=(k, 1))},
            "draw must make the same panels at every position, got ",
        ),
        (
            {"draw": lambda k: ["figure"]},
            "draw must return a matplotlib figure or a list of them, got ",
        ),
        (
            {"readout": lambda k: {str(k): k}},
            "readout must name the same numbers everywhere, got [('1',), ('2',)]",
        ),
    ],
)
def test_unlike_frames(changed, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        make(**changed, k=[1, 2]).to_html()


# The caller's figures


def test_figure_drawn_again():
    """A figure that the caller keeps is left as it was, and one of pyplot is closed."""
    figure = Figure(figsize=(1, 1), dpi=72)
    line, canvas = figure.add_subplot().axhline(0), figure.canvas

    def draw(k):
        line.set_linewidth(k)
        return [figure, plt.figure(figsize=(1, 1))]

    source = make(draw=draw).to_html()
    assert (figure.dpi, figure.canvas) == (72, canvas)
    assert plt.get_fignums() == []
    assert len(set(stored(source)["pictures"][0])) == 4


@pytest.mark.parametrize("layout", [None, "none", "constrained", "tight"])
def test_labels_stay_inside(layout):
    """Without a layout, the labels of so small a figure would lie beyond its edge, and its border
    would have ink.
    """

    figure = Figure(figsize=(2, 1.4), layout=layout)
    figure.add_subplot().set(xlabel="time, s", ylabel="height, m")
    picture = pixels(figure, 100)
    assert picture.shape == (140, 200, 3)
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 255).all()


# The live face


def test_live_moves(monkeypatch):
    """A position, an error where a picture should be, and a position again."""

    def no_loop():  # as a browser of other tests has one in this process, which nobody turns
        raise RuntimeError("no running event loop")

    monkeypatch.setattr("asyncio.get_running_loop", no_loop)
    explorer = make(draw=lambda k: 1 / (3 - k) and bar(k=k), labels={"k": "width", "twice": ""})
    slider, view = explorer.to_widget().children
    assert slider.description == "width"
    with pytest.raises(ZeroDivisionError):
        slider.value = 3
    assert view.value.startswith("<pre>")
    assert "ZeroDivisionError" in view.value
    slider.value = 4
    assert 'alt="A bar of length 4."' in view.value
    assert '<div hidden><dt>twice</dt><dd><data data-name="twice" value="8"' in view.value


def test_mimebundle_in_a_kernel(monkeypatch):
    monkeypatch.delenv(PAGE_VARIABLE, raising=False)
    bundle = make()._repr_mimebundle_(include=None, exclude=None)
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    # What is left when the notebook is read without its kernel: a picture, and a sentence.
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert bundle["text/plain"] == "<Explorer bar (k: 4 positions)>"
    assert "<input" not in bundle["text/html"]
    assert "to wake them, run its cell again. Shown here: k = 1." in bundle["text/html"]
    assert (view["version_major"], view["version_minor"]) == (2, 0)
    assert re.fullmatch("[0-9a-f]{32}", view["model_id"])


def test_mimebundle_on_a_page(monkeypatch):
    monkeypatch.setenv(PAGE_VARIABLE, "1")
    monkeypatch.setattr(Explorer, "to_widget", None)
    bundle = make()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert bundle["text/html"] == make().to_html()
    assert bundle["text/plain"] == "A bar of length 1. (k = 1, twice = 2)"
    image = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    np.testing.assert_array_equal(np.asarray(image), make().frame(k=1).panels[0].picture)
