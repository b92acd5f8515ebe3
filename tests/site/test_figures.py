"""Two walks over all figures of the site: each handle stays in reach, and no words are printed over others.

Pages come without MathJax, for which much of their time would go.
"""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page
from visits import PAGES, PHONE, SITE, WIDE

FIGURES = ('<figure class="instrument"', '<figure class="explorer"')
WITH_FIGURES = [page for page in PAGES if any(words in (SITE / page).read_text(encoding="utf-8") for words in FIGURES)]
each_page = pytest.mark.parametrize("path", WITH_FIGURES)

READY = """
async () => {
  const figures = [...document.querySelectorAll("figure.instrument")];
  while (figures.some((figure) => !figure.instrument || figure.getAttribute("aria-busy") === "true"))
    await new Promise((done) => setTimeout(done, 20));
  document.documentElement.classList.remove("guessing"); // which folds answers
  document.querySelectorAll(".toggle-hidden").forEach((fold) => fold.classList.remove("toggle-hidden"));
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const style = document.createElement("style"); // a phone's sliders lie over what they belong to
  style.textContent = ".instrument-live > * { position: static !important }";
  document.head.append(style);
  await document.fonts.ready;
}
"""


@pytest.fixture(scope="module")
def visit(browser, address) -> Iterator[Callable[..., Page]]:
    """Open a page of the site on a screen, or return it as another test has left it."""
    windows = {}

    def open_page(path: str, screen: dict) -> Page:
        width, height, mobile = screen.values()
        if width not in windows:
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, is_mobile=mobile, reduced_motion="reduce")
            context.set_default_timeout(300_000)  # a slow machine may take its time
            context.route("**/mathjax/**", lambda route: route.abort())
            windows[width] = context.new_page()
        if windows[width].url != f"{address}/{path}":
            windows[width].goto(f"{address}/{path}")
            windows[width].evaluate(READY)
        return windows[width]

    yield open_page
    for page in windows.values():
        page.context.close()


# Every handle that is shown, by the number of its figure and its own.
HANDLES = """
() => [...document.querySelectorAll("figure.instrument")].flatMap((figure, i) => [...figure.querySelectorAll(".handle")]
  .map((handle, j) => [i, j, handle]).filter(([, , handle]) => handle.checkVisibility()).map(([i, j]) => [i, j]))
"""
# The corners of a handle's panel, as far beyond them as a hand may go by mistake; and the middle of its ring.
BEGIN = """
([i, j]) => {
  const figure = document.querySelectorAll("figure.instrument")[i], handle = figure.querySelectorAll(".handle")[j];
  const svg = handle.closest("svg"), BEYOND = 40;
  svg.scrollIntoView({ block: "center", behavior: "instant" });
  window.walk = { figure, handle, before: figure.instrument.state(), ring: () => {
    const { left, top, width, height } = handle.querySelector(".knob").getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  } };
  document.activeElement.blur();
  const { left, top, right, bottom } = svg.getBoundingClientRect();
  const [xs, ys] = [[left - BEYOND, right + BEYOND], [top - BEYOND, bottom + BEYOND]];
  return [xs.flatMap((x) => ys.map((y) => [x, y])), walk.ring()];
}
"""
# What was pressed instead of this handle, if anything; and where its ring is now.
AFTER = """
() => {
  const { handle, figure, ring } = walk, pressed = document.activeElement;
  pressed.blur();
  const names = [figure.dataset.name, handle.ariaLabel, handle.ariaValueText, pressed.ariaLabel ?? pressed.tagName];
  return [pressed === handle ? "" : names.join(", "), ring()];
}
"""


@each_page
def test_handles_stay_in_reach(visit, path):
    """A real pointer drags each handle beyond all four corners of its panel, and picks it up again each time."""
    page, lost = visit(path, WIDE), []
    for which in page.evaluate(HANDLES):
        corners, ring = page.evaluate(BEGIN, which)
        for corner in [*corners, None]:
            page.mouse.move(*ring)
            page.mouse.down()
            if corner:
                page.mouse.move(*corner)
            page.mouse.up()
            words, ring = page.evaluate(AFTER)
            lost.append(words)
        page.evaluate("() => walk.figure.instrument.set(walk.before)")
    assert [words for words in lost if words] == []


# A few positions of all that a reader may move in a figure, and for a question a few guesses.
MOVES = """
(figure) => {
  const all = (css) => [...figure.querySelectorAll(css)].filter((e) => e.checkVisibility());
  let seed = 1;
  const random = (below) => Math.floor(below * (seed = seed * 16807 % 2147483647) / 2147483647);
  const some = (list) => [...new Set([0, Math.floor(list.length / 2), list.length - 1])].flatMap((i) => list[i] ?? []);
  const press = (handle, key, times = 1, shiftKey = false) => [[handle.ariaLabel, key, times, shiftKey].join(), () => {
    const event = () => new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true });
    for (let i = 0; i < times; i++) handle.dispatchEvent(event());
  }];
  const slide = (input, value) => [input.max + ": " + value, () => {
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }];
  const answer = (guess, shown = true) => ["guess " + guess, () => figure.instrument.set({ guess, shown })];
  if (figure.dataset.name === "draw_first") {
    const { truth } = figure.instrument.table(), { ariaValueMin, ariaValueMax } = figure.querySelector(".handle") ?? {};
    const [low, high] = ariaValueMin ? [Number(ariaValueMin), Number(ariaValueMax)] : [truth / 2, 2 * truth];
    const near = [0.5, 0.97, 1, 1.03, 2].map((times) => Math.min(high, Math.max(low, times * truth)));
    const guesses = Array.isArray(truth) ? [truth, truth.map(() => low), truth.map(() => high)]
      : typeof truth === "number" ? [low, high, ...near] : all(".answers button").map((button) => button.textContent);
    return [answer(null), ...guesses.map((guess) => answer(guess)), answer(null, false)];
  }
  const handles = some(all(".handle")), arrows = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
  return [
    ...handles.flatMap((handle) => [press(handle, "Home"), press(handle, "End")]),
    ...Array.from({ length: 8 * handles.length }, () =>
      press(handles[random(handles.length)], arrows[random(4)], 1 + random(12), random(2) === 0)),
    ...all("input[type=range]").flatMap((input) => [input.min, input.max, (+input.min + +input.max) / 2]
      .map((value) => slide(input, value))),
    ...all("input[type=radio]").map((input) => [input.parentNode.textContent, () => input.click()]),
  ];
}
"""
# Words of a figure over which others stand, and after which move; of a line of text counts what has ink.
OVERLAPS = f"""
async () => {{
  const moves = {MOVES};
  const FREE = 0.24; // of a line's height, above and below, at least
  const seen = (e) => e.checkVisibility({{ visibilityProperty: true, opacityProperty: true }});
  const clips = new Map(); // what is there to be heard alone
  const clipped = (e, figure) => {{
    const look = () => getComputedStyle(e).clipPath !== "none" || (e !== figure && clipped(e.parentElement, figure));
    if (!clips.has(e)) clips.set(e, look());
    return clips.get(e);
  }};
  const inSvg = (text) => {{
    const {{ x, y, width, height }} = text.getBBox(), matrix = text.getScreenCTM();
    const ends = [[x, y + FREE * height], [x + width, y + (1 - FREE) * height]];
    const [one, other] = ends.map(([a, b]) => new DOMPoint(a, b).matrixTransform(matrix));
    return [Math.min(one.x, other.x), Math.min(one.y, other.y), Math.max(one.x, other.x), Math.max(one.y, other.y)];
  }};
  const inHtml = (node) => {{
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].map(({{ left, top, right, bottom, height }}) =>
      [left, top + FREE * height, right, bottom - FREE * height]);
  }};
  const boxes = (figure) => {{
    const nodes = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), found = [];
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {{
      const around = node.parentElement, words = node.data.trim(), text = around.closest("text");
      if (!words || around.closest("script, style, noscript") || !seen(around) || clipped(around, figure)) continue;
      (text ? [inSvg(text)] : inHtml(node)).forEach((box) => found.push([words.slice(0, 40), ...box]));
    }}
    return found;
  }};
  const over = (figure) => boxes(figure).flatMap(([one, a, b, c, d], i, all) => all.slice(i + 1).flatMap(
    ([other, e, f, g, h]) => Math.min(c, g) - Math.max(a, e) > 1 && Math.min(d, h) - Math.max(b, f) > 1
      ? [figure.dataset.name + ": " + one + " | " + other] : []));
  const found = {{}};
  for (const figure of document.querySelectorAll("figure:is(.instrument, .explorer)")) {{
    for (const [words, move] of [["start", () => {{}}], ...moves(figure)]) {{
      await move();
      while (figure.getAttribute("aria-busy") === "true") await new Promise((done) => setTimeout(done, 20));
      over(figure).forEach((pair) => (found[pair] ??= words));
    }}
  }}
  return found;
}}
"""


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["wide", "phone"])
@each_page
def test_words_stand_apart(visit, path, screen):
    found = visit(path, screen).evaluate(OVERLAPS)
    assert found == {}, json.dumps(found, indent=1, ensure_ascii=False)
