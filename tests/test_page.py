"""What goes onto a page: shared scripts once, data that stay data, one palette, and dark pages of every kind."""

import os
import re
import subprocess
import sys

import pytest
from chapters import ROOT
from matplotlib.figure import Figure

from lowrank_tutor import sphinxext
from lowrank_tutor.exercises.answers import page_form
from lowrank_tutor.exercises.questions import QUESTIONS
from lowrank_tutor.explore import explore
from lowrank_tutor.instruments import draw_first, score, spectrum
from lowrank_tutor.page import literal
from lowrank_tutor.palette import COLORS, css

BLOCKS = {
    "explorer": explore(lambda k: Figure((1, 1)), alt="White {k}.", name="white", k=range(3)).to_html,
    "instrument": score().to_html,
    "form": lambda: page_form("ex-rank-hand", QUESTIONS["ex-rank-hand"]),
}


def kept(*blocks):
    """The body of a page of these blocks, as the extension leaves it."""
    context = {"body": "<p>a page</p>".join(blocks)}
    sphinxext._keep_first(None, "page", "page.html", context, None)
    return context["body"]


def test_shared_parts_once(browser):
    one, other, two = (
        draw_first("How many?", 3).to_html(),
        draw_first("Which?", "a", kind="choice", choices=["a", "b"]),
        score(),
    )
    whole = [one, other.to_html(), two.to_html(), *(make() for make in BLOCKS.values())] * 2
    body = kept(*whole)
    keys = re.findall(r'data-once="(\w+)"', body)
    assert len(keys) == len(set(keys)) == 9  # colors; three sheets; explorer, form, core, two instruments
    assert len(body) < 0.4 * len("".join(whole))
    assert kept(body) == body
    with browser.new_page() as page:
        thrown = []
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.set_content(body)
        alive = "() => [...document.querySelectorAll('figure.instrument')].filter((one) => one.instrument).length"
        assert page.evaluate(alive) == 8
        page.locator("figure.explorer").last.get_by_role("slider").press("End")
        assert page.locator("figure.explorer img").last.get_attribute("alt") == "White 2."
        page.locator("form").last.locator("input").fill("2")
        page.locator("form").last.get_by_role("button").click()
        assert page.locator("form").last.locator("output").inner_text() == "✓ Right."
        assert thrown == []


def test_data_cannot_end_a_script():
    written = literal({"words": "</script><!--"})
    assert "<" not in written
    with pytest.raises(ValueError, match="not JSON compliant"):
        literal(float("nan"))


# Colors

GENERATE = """
import io
from lowrank_tutor import palette
for i, name in enumerate(palette.COLORS):
    palette.COLORS[name] = palette.Color(*(f"#{i}{j}fe{i}{j}" for j in range(3)))
import cards
from test_page import BLOCKS
from lowrank_tutor.plotting import style
print(palette.css(), cards.logo(), style.CYCLE, style.LINES, style.HIDDEN, style.GRAY)
print(*(make() for make in BLOCKS.values()))
for picture in cards.SHOWN:
    file = io.StringIO()
    cards.thumbnail(picture, file)
    print(file.getvalue())
"""


def test_change_of_colors():
    """The palette changes them in all that is made from it, and no file has them a second time."""
    path = {**os.environ, "PYTHONPATH": ":".join(str(ROOT / room) for room in ("", "_ext", "tests", "tools"))}
    run = subprocess.run([sys.executable, "-c", GENERATE], capture_output=True, text=True, env=path, check=False)
    made = run.stdout.lower()
    assert {f"#{i}{j}fe{i}{j}" for i in range(len(COLORS)) for j in (0, 1)} <= set(re.findall("#[0-9a-f]{6}", made))
    rooms = [ROOT / room for room in ("lowrank_tutor", "_static", "_ext", "tools")]
    sources = [path for room in rooms for kind in ("py", "css", "js", "mplstyle") for path in room.rglob(f"*.{kind}")]
    written = "".join(path.read_text("utf-8") for path in sources if path.name != "palette.py")
    for old in {shade for color in COLORS.values() for shade in color}:
        assert old not in made
        assert old.lstrip("#") not in written.lower()


def test_logo_is_fresh():
    import cards

    assert (ROOT / "_static/logo.svg").read_text("utf-8") == cards.logo()


DARK = [
    '<html data-theme="dark">',
    '<html class="dark">',
    '<html theme="dark">',
    '<html><body data-jp-theme-light="false">',
]
LOOK = """
([light, dark]) => {
  const block = document.querySelector("figure, form"), art = document.querySelector(".explorer-panels img, canvas");
  const color = getComputedStyle(block).getPropertyValue("--teal").trim();
  return [color === dark ? "dark" : color === light ? "light" : color, art ? getComputedStyle(art).filter : null];
}
"""


@pytest.mark.parametrize("root", ["<html>", '<html data-theme="light">', *DARK])
@pytest.mark.parametrize("name", [*BLOCKS, "layers"])
def test_blocks_follow_the_page(browser, name, root):
    make = BLOCKS.get(name, spectrum().to_html)
    with browser.new_page() as page:
        page.set_content(root + make())
        mode, art = page.evaluate(LOOK, list(COLORS["teal"][:2]))
    assert mode == ("dark" if root in DARK else "light")
    if name == "explorer":
        assert art == ("invert(1) hue-rotate(180deg)" if root in DARK else "none")


def test_photographs_stay(browser):
    from lowrank_tutor import plotting

    photo = explore(lambda k: plotting.photograph(Figure((1, 1))), alt="Photo {k}.", name="photo", k=range(2))
    with browser.new_page() as page:
        page.set_content(DARK[0] + photo.to_html())
        assert page.evaluate(LOOK, ["", ""])[1] == "none"


def test_rules_for_the_whole_page():
    assert css().startswith(":root{--teal:")
    assert "html.dark" in css()
