"""Every explorer of the built site in a real browser: every slider, every position, every way to work it.

It needs ``make book`` first, and a Chromium or Chrome on the machine. ``LOWRANK_REQUIRE_BROWSER=1`` turns a missing
browser into a failure.
"""

import base64
import functools
import io
import re
from typing import Any

import numpy as np
import pytest
from chapters import CHAPTERS, WITH_EXPLORERS, Position, explorers, judged, judges
from PIL import Image
from playwright.sync_api import Locator
from visits import READ, READERS, VISITS, address_of, block

from lowrank_tutor.kit.sliders import Explorer
from lowrank_tutor.kit.sliders.sliders import MAX_POSITIONS

MAX_BYTES = 750_000  # an explorer's block on a page
SMALL = 4  # pictures are compared at a quarter of their size

each_explorer = pytest.mark.parametrize("name", explorers())
some_explorers = pytest.mark.parametrize("name", list(explorers())[::4])  # for what one script does for all
each_page = pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def page_of(name: str) -> str:
    """The page of an explorer."""
    return address_of(explorers()[name])


def who_reads(page: str) -> list[str]:
    """Return those who read a page."""
    return [who for other, who in VISITS if other == page]


def written(explorer: Explorer, name: str, value: float) -> str:
    how = explorer.formats.get(name, "," if isinstance(value, int) else ".4g")
    if callable(how):
        return how(value)
    return how.format(value) if "{" in how else format(value, how)


def chosen(explorer: Explorer, name: str) -> bool:
    """Whether a row of choices stands for a slider: words, or few numbers."""
    return (isinstance(explorer.start[name], str) or len(explorer.sliders[name]) <= 4) and name != explorer.plays


def check(shown: dict[str, Any], explorer: Explorer, position: Position) -> None:
    """Compare what stands on the page at one position with what NumPy says there."""
    values, expected, own = position
    numbers = {name: float(value) for name, value, _ in shown["numbers"]}
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6), values
    texts = {name: text for name, _, text in shown["numbers"]}
    assert texts == {name: written(explorer, name, value) for name, value in own.items()}
    numeric = {name: value for name, value in values.items() if not chosen(explorer, name)}
    assert dict(shown["outputs"]) == {name: written(explorer, name, value) for name, value in numeric.items()}
    for name, value, words in shown["controls"]:
        if chosen(explorer, name):
            assert value == str(values[name])
        elif words is None:
            assert float(value) == values[name]
        else:
            assert float(value) == explorer.sliders[name].index(values[name])
            assert words == written(explorer, name, values[name])
    assert shown["alt"] == explorer.words.sentence(explorer.alt, values | own)
    for panel in shown["panels"]:
        assert panel["decoded"]
        assert panel["width"] > 0
        assert panel["src"].startswith("data:image/webp;base64,")


@pytest.mark.parametrize(
    ("name", "who"), [(name, who) for name in explorers() for who in who_reads(page_of(name)) if READERS[who].drags]
)
def test_positions(readers, name, who):
    """Each shows a picture of its own, and NumPy's numbers."""
    _, explorer, positions = judged(name)
    shown = readers[who].see(page_of(name)).dragged[name]["shown"]
    last = len(positions) - 1
    assert [at for at, _ in shown] == sorted({*range(0, last, READERS[who].drags), last})
    for at, one in shown:
        check(one, explorer, positions[at])
    states = {(one["alt"], *(panel["src"] for panel in one["panels"])) for _, one in shown}
    assert len(states) == len(shown), "two positions show and say the same"


@each_explorer
def test_picture_order(readers, name):
    _, explorer, positions = judged(name)
    shown = [one for _, one in readers["light"].see(page_of(name)).dragged[name]["shown"]]
    decoded = functools.cache(picture)
    smaller = [np.concatenate([small(decoded(panel["src"])) for panel in one["panels"]]) for one in shown]
    for at in (0, len(positions) // 3, len(positions) - 1):
        wanted = []
        for panel, one in zip(explorer.frame(**positions[at].values).panels, shown[at]["panels"], strict=True):
            seen = decoded(one["src"])
            drawn = Image.fromarray(panel.picture).resize(seen.size, Image.Resampling.LANCZOS)
            assert np.abs(np.asarray(seen, dtype=float) - np.asarray(drawn)).mean() < 6  # of 255
            wanted.append(small(drawn))
        apart = [np.abs(frame - np.concatenate(wanted)).mean() for frame in smaller]
        assert apart[at] == min(apart)  # others may look alike, where nothing changes


def picture(source: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))).convert("RGB")


def small(image: Image.Image) -> np.ndarray:
    size = (image.width // SMALL, image.height // SMALL)
    return np.asarray(image.resize(size, Image.Resampling.BOX), dtype=float).ravel()


@each_explorer
def test_no_layout_shift(readers, name):
    dragged = readers["light"].see(page_of(name)).dragged[name]
    assert dragged["after"] == dragged["before"]
    assert dragged["shifts"] == []


@some_explorers
def test_keyboard_offline(readers, name):
    _, explorer, positions = judged(name)
    figure = readers["light"].explorer(page_of(name), name)
    keyboard = figure.page.keyboard
    at = {tuple(position.values.items()): position for position in positions}
    for slider, steps in explorer.sliders.items():

        def look(value, slider=slider):
            values = {**explorer.start, slider: value}
            check(figure.evaluate(READ), explorer, at[tuple(values.items())])

        with readers["light"].window.cut_off():
            ring = tab_to(figure, slider)
            assert ring["style"] != "none"
            assert ring["width"] >= 2
            if chosen(explorer, slider):  # the arrow leads through all choices, and from the last to the first
                at_first = steps.index(explorer.start[slider])
                for value in (*steps[at_first + 1 :], *steps[: at_first + 1]):
                    keyboard.press("ArrowRight")
                    look(value)
                continue
            keyboard.press("Home")
            look(steps[0])
            for value in steps[1:]:
                keyboard.press("ArrowRight")
                look(value)
            keyboard.press("Home")
            keyboard.press("End")
            look(steps[-1])
            keyboard.press("ArrowLeft")
            look(steps[-2])
            for _ in range(len(steps) - 2 - steps.index(explorer.start[slider])):
                keyboard.press("ArrowLeft")
            if steps[-1] == explorer.start[slider]:
                keyboard.press("End")
            look(explorer.start[slider])


# Before the figure stands, for a moment, a stop from which a hand goes on.
START = """
(figure) => {
  const start = document.createElement("span");
  start.tabIndex = 0;
  start.onblur = () => start.remove();
  figure.before(start);
  start.focus({ preventScroll: true });
}
"""


def tab_to(figure: Locator, slider: str) -> dict[str, Any]:
    """Press Tab from before the figure until the slider has the focus, and say how its focus ring looks."""
    figure.evaluate(START)
    for _ in range(20):
        figure.page.keyboard.press("Tab")
        ring = figure.evaluate(
            """(figure, slider) => {
              const at = document.activeElement;
              if (at.closest("[data-slider]")?.dataset.slider !== slider || !figure.contains(at)) return null;
              const { outlineStyle, outlineWidth } = getComputedStyle(at);
              return { style: outlineStyle, width: parseFloat(outlineWidth) };
            }""",
            slider,
        )
        if ring:
            return ring
    pytest.fail(f"Tab never reaches the slider {slider}")


@some_explorers
def test_announcement(readers, name):
    _, explorer, _ = judged(name)
    figure = readers["light"].explorer(page_of(name), name)
    slider, steps = next(iter(explorer.sliders.items()))
    at = steps.index(explorer.start[slider])
    there, back, to = (
        ("ArrowRight", "ArrowLeft", at + 1) if at + 1 < len(steps) else ("ArrowLeft", "ArrowRight", at - 1)
    )
    moved = explorer.start | {slider: steps[to]}
    sentence = explorer.sentence(**moved)
    stop = "input[data-slider], [data-slider] input:checked"
    figure.locator(stop).first.press(there)
    said = figure.locator("p[role=status]").element_handle()
    figure.page.wait_for_function("([said, sentence]) => said.textContent === sentence", arg=[said, sentence])
    figure.locator(stop).first.press(back)


@each_chapter
def test_silence_before_moves(readers, path):
    for who in who_reads(address_of(path)):
        assert readers[who].see(address_of(path)).facts["said"] == [""] * len(judges(path))


@each_explorer
def test_explorer_budget(site, name):
    _, explorer, _ = judged(name)
    html = block(site / page_of(name), name)
    assert len(html.encode()) <= MAX_BYTES
    assert all(len(values) <= MAX_POSITIONS for values in explorer.sliders.values())
    assert "http:" not in html
    assert "https:" not in html
    assert {src[:11] for src in re.findall(r'src="([^"]*)', html)} == {"data:image/"}


STILL = """
(all) => Object.fromEntries(all.map((figure) => [figure.dataset.name, {
  numbers: Object.fromEntries([...figure.querySelectorAll("data")].map((d) => [d.dataset.name, Number(d.value)])),
  height: figure.querySelector("img").getBoundingClientRect().height,
  excuse: figure.querySelector("noscript").textContent,
}]))
"""


@each_page
def test_without_javascript(browser, address, path):
    """The first frame and its numbers stand there, and a sentence says what is missing."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/{address_of(path)}")
        shown = page.locator("figure.explorer").evaluate_all(STILL)
    for name in judges(path):
        _, explorer, positions = judged(name)
        (expected,) = [position.expected for position in positions if position.values == explorer.start]
        assert shown[name]["numbers"] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert shown[name]["height"] > 50
        assert "The sliders need JavaScript" in shown[name]["excuse"]


@each_page
def test_judges_are_complete(site, path):
    page = (site / address_of(path)).read_text(encoding="utf-8")
    named = re.findall(r'<figure class="explorer" data-name="([^"]+)"', page)
    assert sorted(named) == sorted(judges(path))


@pytest.mark.parametrize(("page", "who"), [visit for visit in VISITS if READERS[visit[1]].calm])
def test_reduced_motion(readers, page, who):
    facts = readers[who].see(page).facts
    assert facts["moving"] == []
    assert facts["scrolling"] == "auto"


# How figures look


def looks(readers, who: str, name: str) -> list[dict[str, Any]]:
    """How a reader sees the panels of an explorer."""
    return [p for p in readers[who].see(page_of(name)).facts["pictures"] if p["of"] == name]


@each_explorer
def test_panels_in_one_row(readers, name):
    panels = looks(readers, "light", name)
    assert max(p["top"] for p in panels) - min(p["top"] for p in panels) < 1
    assert all(72 <= p["inch"] <= 112.1 for p in panels)


@each_page
def test_phone_font_size(readers, path):
    """An inch has 72 points."""
    for picture in readers["dark phone"].see(address_of(path)).facts["pictures"]:
        assert picture["inch"] >= 71.9, picture


@each_chapter
def test_dark_photographs(readers, path):
    for who in who_reads(address_of(path)):
        for picture in readers[who].see(address_of(path)).facts["pictures"]:
            stays = READERS[who].theme == "light" or picture["photograph"]
            assert (picture["filter"] == "none") == stays, (who, picture)


def test_dark_figure_background(readers):
    figure = (
        readers["dark, from a file"].open("book/05-bilinear-scoring.html").locator(".cell_output > img:visible").first
    )
    ground = figure.evaluate("() => getComputedStyle(document.body).backgroundColor")
    seen = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    assert seen.getpixel((8, seen.height - 8)) == tuple(map(int, re.findall(r"\d+", ground)))


def test_no_light_boxes(readers):
    """The theme puts HTML outputs on one: tables, figures and forms must not keep it."""
    for path in ("packages", "05-bilinear-scoring"):
        outputs = readers["dark phone"].open(f"book/{path}.html").locator(".cell_output .text_html")
        grounds = outputs.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
        assert set(grounds) == {"rgba(0, 0, 0, 0)"}


@pytest.mark.parametrize(("page", "many"), [("01-rank", 1), ("02-svd-pca", 1)])
def test_still_photographs(readers, page, many):
    pictures = readers["light"].see(f"book/{page}.html").facts["pictures"]
    assert [picture["photograph"] for picture in pictures if not picture["of"]].count(True) == many


# On the page about sliders of one's own the code is what readers came for, and stands open.
@pytest.mark.parametrize("name", [name for name, path in explorers().items() if path.stem != "use-sliders"])
def test_code_below_figure(readers, name):
    for who in who_reads(page_of(name)):
        (code,) = [code for code in readers[who].see(page_of(name)).facts["codes"] if code["of"] == name]
        assert code["words"] == "Code of this figure"
        assert -1 <= code["gap"] < 40
        assert code["share"] < 0.6
        assert code["look"] == ["rgba(0, 0, 0, 0)", "none"] * 2
