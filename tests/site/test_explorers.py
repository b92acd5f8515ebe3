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
from chapters import CHAPTERS, Position, explorers, judged, judges
from PIL import Image
from playwright.sync_api import Page
from visits import READ, READERS, address_of, block

from lowrank_tutor.explore import MAX_POSITIONS, Explorer

MAX_BYTES = 800_000  # an explorer's block on a page
SMALL = 4  # pictures are compared at a quarter of their size

each_explorer = pytest.mark.parametrize("name", explorers())
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def page_of(name: str) -> str:
    """The page of an explorer."""
    return address_of(explorers()[name])


def written(explorer: Explorer, name: str, value: float) -> str:
    return format(value, explorer.formats.get(name, "," if isinstance(value, int) else ".4g"))


def check(shown: dict[str, Any], explorer: Explorer, position: Position) -> None:
    """Compare what stands on the page at one position with what NumPy says there."""
    values, expected, own = position
    numbers = {name: float(value) for name, value, _ in shown["numbers"]}
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6), values
    texts = {name: text for name, _, text in shown["numbers"]}
    assert texts == {name: written(explorer, name, value) for name, value in own.items()}
    assert dict(shown["outputs"]) == {name: written(explorer, name, value) for name, value in values.items()}
    for name, value, words in shown["inputs"]:
        if words is None:
            assert float(value) == values[name]
        else:
            assert float(value) == explorer.sliders[name].index(values[name])
            assert words == written(explorer, name, values[name])
    assert shown["alt"] == explorer.alt.format(**values, **own)
    assert shown["decoded"]
    assert shown["width"] > 0
    assert shown["src"].startswith("data:image/webp;base64,")


@pytest.mark.parametrize("who", [who for who, kind in READERS.items() if kind.drags])
@each_explorer
def test_every_position_shows_its_own_picture_and_numpys_numbers(readers, name, who):
    _, explorer, positions = judged(name)
    shown = readers[who].see(page_of(name)).dragged[name]["shown"]
    assert len(shown) == len(positions)
    for one, position in zip(shown, positions, strict=True):
        check(one, explorer, position)
    assert len({one["src"] for one in shown}) == len(shown), "two positions show the same picture"


@each_explorer
def test_the_pictures_stand_in_the_order_of_the_sliders(readers, name):
    _, explorer, positions = judged(name)
    frames = [picture(one) for one in readers["light"].see(page_of(name)).dragged[name]["shown"]]
    size = frames[0].size
    small = (size[0] // SMALL, size[1] // SMALL)
    smaller = [np.asarray(frame.resize(small, Image.Resampling.BOX), dtype=float) for frame in frames]
    for at in (0, len(positions) // 3, len(positions) - 1):
        drawn = Image.fromarray(explorer.frame(**positions[at].values).picture).resize(size)
        assert np.abs(np.asarray(frames[at], dtype=float) - np.asarray(drawn)).mean() < 4  # of 255
        wanted = np.asarray(drawn.resize(small, Image.Resampling.BOX), dtype=float)
        assert np.argmin([np.abs(frame - wanted).mean() for frame in smaller]) == at


def picture(shown: dict[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(shown["src"].split(",")[1]))).convert("RGB")


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

        with readers["light"].cut_off():
            ring = tab_to(figure.page, name, slider)
            assert ring["style"] != "none"
            assert ring["width"] >= 2
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
              if (at.name !== slider || at.closest("figure.explorer")?.dataset.name !== explorer) return null;
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
    start = explorer.start[slider]
    figure.locator("input").first.press("ArrowRight" if start != steps[-1] else "ArrowLeft")
    moved = explorer.start | {slider: steps[steps.index(start) + (1 if start != steps[-1] else -1)]}
    sentence = explorer.alt.format(**moved, **explorer.numbers(**moved))
    said = figure.locator("p[role=status]").element_handle()
    figure.page.wait_for_function("([said, sentence]) => said.textContent === sentence", arg=[said, sentence])
    figure.locator("input").first.press("ArrowLeft" if start != steps[-1] else "ArrowRight")


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
    assert [src[:11] for src in re.findall(r'src="([^"]*)', html)] == ["data:image/"]


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
                    "picture": figure.locator("img").bounding_box(),
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


@each_chapter
def test_every_explorer_of_a_page_has_a_judge(site, path):
    page = (site / address_of(path)).read_text(encoding="utf-8")
    named = re.findall(r'<figure class="explorer" data-name="([^"]+)"', page)
    assert named
    assert sorted(named) == sorted(judges(path))


@each_chapter
def test_nothing_moves_by_itself_for_those_who_ask_for_that(readers, path):
    calm = [reader for reader in readers.values() if reader.kind.settings.get("reduced_motion") == "reduce"]
    assert calm
    for reader in calm:
        facts = reader.see(address_of(path)).facts
        assert facts["moving"] == []
        assert facts["scrolling"] == "auto"
