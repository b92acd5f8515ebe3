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
from playwright.sync_api import Page
from visits import READ, READERS, address_of, block

from lowrank_tutor.explore import Explorer
from lowrank_tutor.explore.sliders import MAX_POSITIONS

MAX_BYTES = 750_000  # an explorer's block on a page
SMALL = 4  # pictures are compared at a quarter of their size

each_explorer = pytest.mark.parametrize("name", explorers())
each_page = pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def page_of(name: str) -> str:
    """The page of an explorer."""
    return address_of(explorers()[name])


def written(explorer: Explorer, name: str, value: float) -> str:
    how = explorer.formats.get(name, "," if isinstance(value, int) else ".4g")
    if callable(how):
        return how(value)
    return how.format(value) if "{" in how else format(value, how)


def check(shown: dict[str, Any], explorer: Explorer, position: Position) -> None:
    """Compare what stands on the page at one position with what NumPy says there."""
    values, expected, own = position
    numbers = {name: float(value) for name, value, _ in shown["numbers"]}
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6), values
    texts = {name: text for name, _, text in shown["numbers"]}
    assert texts == {name: written(explorer, name, value) for name, value in own.items()}
    numeric = {name: value for name, value in values.items() if not isinstance(value, str)}
    assert dict(shown["outputs"]) == {name: written(explorer, name, value) for name, value in numeric.items()}
    for name, value, words in shown["controls"]:
        if isinstance(values[name], str):
            assert value == values[name]
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


@pytest.mark.parametrize("who", [who for who, kind in READERS.items() if kind.drags])
@each_explorer
def test_every_position_shows_its_own_picture_and_numpys_numbers(readers, name, who):
    _, explorer, positions = judged(name)
    shown = readers[who].see(page_of(name)).dragged[name]["shown"]
    last = len(positions) - 1
    assert [at for at, _ in shown] == sorted({*range(0, last, READERS[who].drags), last})
    for at, one in shown:
        check(one, explorer, positions[at])
    pictures = {tuple(panel["src"] for panel in one["panels"]) for _, one in shown}
    assert len(pictures) == len(shown), "two positions show the same pictures"


@each_explorer
def test_the_pictures_stand_in_the_order_of_the_sliders(readers, name):
    _, explorer, positions = judged(name)
    shown = [one for _, one in readers["light"].see(page_of(name)).dragged[name]["shown"]]
    decoded = functools.cache(picture)
    smaller = [np.concatenate([small(decoded(panel["src"])) for panel in one["panels"]]) for one in shown]
    for at in (0, len(positions) // 3, len(positions) - 1):
        wanted = []
        for panel, one in zip(explorer.frame(**positions[at].values).panels, shown[at]["panels"], strict=True):
            seen = decoded(one["src"])
            drawn = Image.fromarray(panel.picture).resize(seen.size)
            assert np.abs(np.asarray(seen, dtype=float) - np.asarray(drawn)).mean() < 4  # of 255
            wanted.append(small(drawn))
        assert np.argmin([np.abs(frame - np.concatenate(wanted)).mean() for frame in smaller]) == at


def picture(source: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(source.split(",")[1]))).convert("RGB")


def small(image: Image.Image) -> np.ndarray:
    size = (image.width // SMALL, image.height // SMALL)
    return np.asarray(image.resize(size, Image.Resampling.BOX), dtype=float).ravel()


@each_explorer
def test_nothing_on_the_page_moves_when_the_frame_changes(readers, name):
    dragged = readers["light"].see(page_of(name)).dragged[name]
    assert dragged["after"] == dragged["before"]
    assert dragged["shifts"] == []


@each_explorer
def test_every_slider_can_be_worked_with_the_keyboard_alone_and_the_network_cut_off(readers, name):
    _, explorer, positions = judged(name)
    figure = readers["light"].explorer(page_of(name), name)
    keyboard = figure.page.keyboard
    at = {tuple(position.values.items()): position for position in positions}
    for slider, steps in explorer.sliders.items():

        def look(value, slider=slider):
            values = {**explorer.start, slider: value}
            check(figure.evaluate(READ), explorer, at[tuple(values.items())])

        with readers["light"].window.cut_off():
            ring = tab_to(figure.page, name, slider)
            assert ring["style"] != "none"
            assert ring["width"] >= 2
            if isinstance(steps[0], str):  # the arrow leads through all choices, and from the last to the first
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


def tab_to(page: Page, explorer: str, slider: str) -> dict[str, Any]:
    """Press Tab until the slider has the focus, and say how its focus ring looks."""
    for _ in range(400):
        page.keyboard.press("Tab")
        ring = page.evaluate(
            """([explorer, slider]) => {
              const at = document.activeElement;
              if (at.closest("[data-slider]")?.dataset.slider !== slider) return null;
              if (at.closest("figure.explorer")?.dataset.name !== explorer) return null;
              const { outlineStyle, outlineWidth } = getComputedStyle(at);
              return { style: outlineStyle, width: parseFloat(outlineWidth) };
            }""",
            [explorer, slider],
        )
        if ring:
            return ring
    pytest.fail(f"Tab never reaches the slider {slider} of {explorer}")


@each_explorer
def test_a_slider_that_rests_is_announced_in_one_sentence(readers, name):
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
def test_nothing_is_announced_before_a_slider_moves(readers, path):
    for reader in readers.values():
        assert reader.see(address_of(path)).facts["said"] == [""] * len(judges(path))


@each_explorer
def test_an_explorer_keeps_to_its_budget_and_to_itself(site, name):
    _, explorer, _ = judged(name)
    html = block(site / page_of(name), name)
    assert len(html.encode()) <= MAX_BYTES
    assert all(len(values) <= MAX_POSITIONS for values in explorer.sliders.values())
    assert "http:" not in html
    assert "https:" not in html
    assert {src[:11] for src in re.findall(r'src="([^"]*)', html)} == {"data:image/"}


@pytest.fixture(scope="session")
def without_javascript(browser, address):
    """What stands on a page whose scripts do not run, by the explorers' names."""
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()

        @functools.cache
        def look(path: str) -> dict[str, dict[str, Any]]:
            page.goto(f"{address}/{path}")
            return {
                figure.get_attribute("data-name"): {
                    "numbers": {
                        d.get_attribute("data-name"): d.get_attribute("value") for d in figure.locator("data").all()
                    },
                    "picture": figure.locator("img").first.bounding_box(),
                    "excuse": figure.locator("noscript").inner_text(),
                }
                for figure in page.locator("figure.explorer").all()
            }

        yield look


@each_explorer
def test_without_javascript_the_first_frame_and_its_numbers_stand_there(without_javascript, name):
    _, explorer, positions = judged(name)
    (expected,) = [position.expected for position in positions if position.values == explorer.start]
    shown = without_javascript(page_of(name))[name]
    numbers = {name: float(value) for name, value in shown["numbers"].items()}
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert shown["picture"]["height"] > 50
    assert "The sliders need JavaScript" in shown["excuse"]


@each_page
def test_every_explorer_of_a_page_has_a_judge(site, path):
    page = (site / address_of(path)).read_text(encoding="utf-8")
    named = re.findall(r'<figure class="explorer" data-name="([^"]+)"', page)
    assert named
    assert sorted(named) == sorted(judges(path))


@each_chapter
def test_nothing_moves_by_itself_for_those_who_ask_for_that(readers, path):
    calm = [reader for reader in readers.values() if reader.kind.calm]
    assert calm
    for reader in calm:
        facts = reader.see(address_of(path)).facts
        assert facts["moving"] == []
        assert facts["scrolling"] == "auto"


# How figures look


def looks(readers, who: str, name: str) -> list[dict[str, Any]]:
    """How a reader sees the panels of an explorer."""
    return [p for p in readers[who].see(page_of(name)).facts["pictures"] if p["of"] == name]


@each_explorer
def test_on_a_wide_page_its_panels_stand_in_one_row(readers, name):
    panels = looks(readers, "light", name)
    assert max(p["top"] for p in panels) - min(p["top"] for p in panels) < 1
    assert all(72 <= p["inch"] <= 112.1 for p in panels)


@each_page
def test_on_a_phone_nine_points_are_nine_pixels_in_every_figure(readers, path):
    """An inch has 72 points."""
    for picture in readers["dark phone"].see(address_of(path)).facts["pictures"]:
        assert picture["inch"] >= 71.9, picture


@each_chapter
def test_in_the_dark_photographs_alone_stay_as_they_are(readers, path):
    for who, kind in READERS.items():
        for picture in readers[who].see(address_of(path)).facts["pictures"]:
            stays = kind.theme == "light" or picture["photograph"]
            assert (picture["filter"] == "none") == stays, (who, picture)


def test_in_the_dark_the_page_shows_through_the_paper_of_a_figure(readers):
    figure = readers["dark, from a file"].open("book/09-states.html").locator(".cell_output > img").first
    ground = figure.evaluate("() => getComputedStyle(document.body).backgroundColor")
    seen = Image.open(io.BytesIO(figure.screenshot())).convert("RGB")
    assert seen.getpixel((8, seen.height - 8)) == tuple(map(int, re.findall(r"\d+", ground)))


@pytest.mark.parametrize(("page", "many"), [("01-rank", 2), ("02-svd-pca", 1)])
def test_a_photograph_that_no_slider_moves_is_known_as_one(readers, page, many):
    pictures = readers["light"].see(f"book/{page}.html").facts["pictures"]
    assert [picture["photograph"] for picture in pictures if not picture["of"]].count(True) == many


# On the page about sliders of one's own the code is what readers came for, and stands open.
@pytest.mark.parametrize("name", [name for name, path in explorers().items() if path.stem != "use-sliders"])
def test_its_code_stands_below_it_behind_a_small_link(readers, name):
    for who in READERS:
        (code,) = [code for code in readers[who].see(page_of(name)).facts["codes"] if code["of"] == name]
        assert code["words"] == "Code of this figure"
        assert 0 <= code["gap"] < 40
        assert code["share"] < 0.6
        assert code["look"] == ["rgba(0, 0, 0, 0)", "none"] * 2
