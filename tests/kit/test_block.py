"""What goes onto a page: shared scripts once, data that stay data, one palette, and dark pages of
every kind.
"""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from chapters import ROOT
from matplotlib.figure import Figure

from lowrank_tutor.course.answers import QUESTIONS, check
from lowrank_tutor.figures import score, spectrum
from lowrank_tutor.kit import sphinxext
from lowrank_tutor.kit.block import literal
from lowrank_tutor.kit.palette import COLORS, SURFACES
from lowrank_tutor.kit.questions import draw_first
from lowrank_tutor.kit.questions.exercises import answer_form
from lowrank_tutor.kit.sliders import explore

BLOCKS = {
    "explorer": explore(
        lambda k: Figure((1, 1)), alt="White {k}.", name="white", k=range(5)
    ).to_html,
    "instrument": score().to_html,
    "form": lambda: answer_form("ex-rank-tenth", QUESTIONS["ex-rank-tenth"]).to_html(linked=False),
}


class Site:
    """What the extension does to a page: its body stays, and files are written and linked."""

    def __init__(self, folder):
        self.outdir, self.linked = folder, []

    def add_css_file(self, path):
        self.linked.append(f'<link rel="stylesheet" href="_static/{path}">')

    def add_js_file(self, path, loading_method):
        self.linked.append(f'<script {loading_method} src="_static/{path}"></script>')

    def page(self, *blocks):
        self.linked.clear()
        sphinxext._link(self, "page", "page.html", {"body": "".join(blocks)}, None)
        return (
            f"<!doctype html><meta charset=utf-8><title>x</title>{''.join(self.linked)}"
            f"{'<p>a page</p>'.join(blocks)}"
        )


STRANGERS = (  # other tools' elements, and names that no file of the package has
    '<div data-styles="kit/charts/x.css" data-scripts="explorer kit/sliders/explorer.js"></div>',
    '<div class="check" data-styles="theme-a ../../../../etc/passwd" '
    'data-scripts="analytics.js"></div>',
    '<div class="check" data-scripts="; alert() kit/touch.js"></div>',
)


@pytest.mark.parametrize("linked", [False, True])
def test_two_faces(browser, monkeypatch, tmp_path, linked):
    """Both work with several blocks of a kind; the linked one holds no style and no script that
    runs.
    """
    monkeypatch.setenv("LOWRANK_TUTOR_PAGE", "1")
    monkeypatch.setenv("LOWRANK_TUTOR_LINKED", "1" if linked else "0")
    ask = (
        draw_first("How many?", 0.5),
        draw_first("Which?", "a", kind="choice", choices=["a", "b"]),
    )
    films = [
        explore(lambda k: Figure((1, 1)), alt="White {k}.", name=name, k=range(5))
        for name in ("one", "two")
    ]
    forms = [check(name, ...) for name in ("ex-rank-tenth", "ex-rank-build")]
    shown = [*ask, score(), spectrum(), *forms]
    blocks = [block._repr_html_() for block in shown]
    blocks += [film._repr_mimebundle_()["text/html"] for film in films]
    blocks += STRANGERS
    site = Site(tmp_path)
    page_text = site.page(*blocks)
    names = sorted(path.name for path in (tmp_path / "_static/lowrank-kit").glob("*"))
    expected = (
        "answer-form.js draw-first.js explorer.js figures.css kit.css kit.js score.js spectrum.js"
    )
    assert names == (expected.split() if linked else [])
    assert len(re.findall(r"<style|<script>", "".join(blocks))) == (
        0 if linked else 8 + 4 * 3 + 4 * 2
    )
    (tmp_path / "page.html").write_text(page_text, encoding="utf-8")
    with browser.new_page() as page:
        thrown = []
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        alive = (
            "() => [...document.querySelectorAll('figure.instrument')].filter((one) => "
            "one.instrument).length"
        )
        assert page.evaluate(alive) == 4
        page.locator(".drags").last.wait_for()
        page.locator("figure.explorer").last.get_by_role("slider").press("End")
        assert page.locator(".explorer-panels").last.get_attribute("aria-label") == "White 4."
        page.locator("figure.explorer p[role=status]", has_text="White 4.").wait_for()
        page.locator("form").first.locator("input").fill("204")
        page.locator("form").first.get_by_role("button").click()
        assert page.locator("form").first.locator("output").inner_text() == "✓ Right."
        assert page.locator("figure.explorer").first.evaluate(
            "(f) => getComputedStyle(f).getPropertyValue('--teal')"
        )
        assert thrown == []


def test_data_cannot_end_a_script():
    written = literal({"words": "</script><!--"})
    assert "<" not in written
    with pytest.raises(ValueError, match="not JSON compliant"):
        literal(float("nan"))


# Colors

GENERATE = """
import io
from lowrank_tutor.kit import palette
for i, name in enumerate(palette.COLORS):
    palette.COLORS[name] = palette.Color(*(f"#{i}{j}fe{i}{j}" for j in range(3)))
import cards
from test_block import BLOCKS
from lowrank_tutor.kit.charts import style
print(palette.css(), *(cards.card(page) for page in cards.CARDS), style.LINES, style.HIDDEN)
print(*(make() for make in BLOCKS.values()))
"""


def test_change_of_colors():
    """The palette changes them in all that is made from it, and no file has them a second time."""
    rooms = ("", "site", "tests/support", "tests/kit")
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in rooms)}
    run = subprocess.run(
        [sys.executable, "-c", GENERATE], capture_output=True, text=True, env=path, check=True
    )
    made = run.stdout.lower()
    assert {f"#{i}{j}fe{i}{j}" for i in range(len(COLORS)) for j in (0, 1)} <= set(
        re.findall("#[0-9a-f]{6}", made)
    )
    rooms = [ROOT / room for room in ("lowrank_tutor", "site")]
    sources = [
        path
        for room in rooms
        for kind in ("py", "css", "js", "mplstyle")
        for path in room.rglob(f"*.{kind}")
    ]
    written = "".join(path.read_text("utf-8") for path in sources if path.name != "palette.py")
    for old in {shade for color in COLORS.values() for shade in color}:
        assert old not in made
        assert old.lstrip("#") not in written.lower()


def linear(color):
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return np.array([x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares])


def contrast(one, other):
    """WCAG 2.1, 1.4.3."""
    darker, lighter = sorted(
        linear(color) @ [0.2126, 0.7152, 0.0722] + 0.05 for color in (one, other)
    )
    return lighter / darker


# Linear light as people see it, by Machado, Oliveira and Fernandes (2009), at full severity.
SEEN = {
    "by most": np.eye(3),
    "without red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
}
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.072175],
    [0.0193339, 0.119192, 0.9503041],
]


def lab(light):
    """CIE 1976 L*a*b* of linear light, with the white of sRGB."""
    x, y, z = np.cbrt(
        XYZ @ light / [0.95047, 1, 1.08883]
    )  # the cube root serves: no color here is nearly black
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_colors_can_be_told_apart(shade):
    shades = {name: getattr(color, shade) for name, color in (COLORS | SURFACES).items()}
    papers = {shades["paper"], "#ffffff"} if shade == "light" else {shades["paper"]}
    for name in (*COLORS, "ink", "muted"):
        least = min(contrast(shades[name], paper) for paper in papers)
        assert least >= (3 if name == "gray" else 4.5), name
    for one, other in itertools.combinations(("ink", "teal", "orange", "violet", "gray"), 2):
        for eyes, matrix in SEEN.items():
            seen = [lab(np.clip(matrix @ linear(shades[name]), 0.001, 1)) for name in (one, other)]
            assert np.linalg.norm(seen[0] - seen[1]) >= 17, (one, other, eyes)


def test_logo_has_its_color():
    logo = (ROOT / "site/static/logo.svg").read_text("utf-8")
    assert set(re.findall("#[0-9a-f]{6}", logo)) == {COLORS["teal"].either}


DARK = [
    '<html data-theme="dark">',
    '<html class="dark">',
    '<html theme="dark">',
    '<html><body data-jp-theme-light="false">',
]
LOOK = """
([light, dark]) => {
  const block = document.querySelector("figure, form"),
    art = document.querySelector(".explorer-panels svg, canvas");
  const color = getComputedStyle(block).getPropertyValue("--teal").trim();
  return [color === dark ? "dark" : color === light ? "light" : color,
    art ? getComputedStyle(art).filter : null];
}
"""


@pytest.mark.parametrize("name", [*BLOCKS, "layers"])
def test_blocks_follow_the_page(browser, name):
    block = BLOCKS.get(name, spectrum().to_html)()
    with browser.new_page() as page:
        for root in ("<html>", '<html data-theme="light">', *DARK):
            page.set_content(root + block)
            mode, art = page.evaluate(LOOK, list(COLORS["teal"][:2]))
            assert mode == ("dark" if root in DARK else "light"), root
            if name == "explorer":
                assert art == ("invert(1) hue-rotate(180deg)" if root in DARK else "none"), root
