"""Walks over all figures of a page: each handle is dragged about and picked up again, and words are
measured.
"""

# Wait until all figures are drawn, and open whatever is folded.
READY = """
async () => {
  const figures = [...document.querySelectorAll("figure.instrument")];
  while (figures.some((figure) =>
    !figure.instrument || figure.getAttribute("aria-busy") === "true"))
    await new Promise((done) => setTimeout(done, 20));
  document.documentElement.classList.remove("guessing"); // which folds answers
  document.querySelectorAll(".toggle-hidden")
    .forEach((fold) => fold.classList.remove("toggle-hidden"));
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const style = document.createElement("style"); // a phone's sliders lie over what they belong to
  style.textContent = ".instrument-live > *, .explorer-sliders { position: static !important }";
  document.head.append(style);
  await document.fonts.ready;
}
"""
# Every handle that is shown, by the number of its figure and its own.
HANDLES = """
() => [...document.querySelectorAll("figure.instrument")]
  .flatMap((figure, i) => [...figure.querySelectorAll(".handle")]
  .map((handle, j) => [i, j, handle]).filter(([, , handle]) => handle.checkVisibility())
    .map(([i, j]) => [i, j]))
"""
# The corners of a handle's panel, as far beyond them as a hand may go by mistake; and the middle of
# its ring.
BEGIN = """
([i, j]) => {
  const figure = document.querySelectorAll("figure.instrument")[i],
    handle = figure.querySelectorAll(".handle")[j];
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
  const names = [figure.dataset.name, handle.ariaLabel, handle.ariaValueText,
    pressed.ariaLabel ?? pressed.tagName];
  return [pressed === handle ? "" : names.join(", "), ring()];
}
"""


def lost_handles(page):
    """Drag each handle beyond all corners of its panel, and say which was not there to be picked up
    again.
    """
    lost = []
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
    return [words for words in lost if words]


# Words of a figure over which others stand; of a line of text counts what has ink.
OVERLAPS = """
() => {
  const FREE = 0.24; // of a line's height, above and below, at least
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const clips = new Map(); // what is there to be heard alone
  const clipped = (e, figure) => {
    const look = () => getComputedStyle(e).clipPath !== "none" ||
      (e !== figure && clipped(e.parentElement, figure));
    if (!clips.has(e)) clips.set(e, look());
    return clips.get(e);
  };
  const inSvg = (text) => {
    const { x, y, width, height } = text.getBBox(), matrix = text.getScreenCTM();
    const ends = [[x, y + FREE * height], [x + width, y + (1 - FREE) * height]];
    const [one, other] = ends.map(([a, b]) => new DOMPoint(a, b).matrixTransform(matrix));
    return [Math.min(one.x, other.x), Math.min(one.y, other.y), Math.max(one.x, other.x),
      Math.max(one.y, other.y)];
  };
  const inHtml = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].map(({ left, top, right, bottom, height }) =>
      [left, top + FREE * height, right, bottom - FREE * height]);
  };
  const boxes = (figure) => {
    const nodes = document.createTreeWalker(figure, NodeFilter.SHOW_TEXT), found = [];
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      const around = node.parentElement, words = node.data.trim(), text = around.closest("text");
      if (!words || around.closest("script, style, noscript") || !seen(around) ||
        clipped(around, figure)) continue;
      (text ? [inSvg(text)] : inHtml(node))
        .forEach((box) => found.push([words.slice(0, 40), ...box]));
    }
    return found;
  };
  const over = (figure) => boxes(figure)
    .flatMap(([one, a, b, c, d], i, all) => all.slice(i + 1).flatMap(
    ([other, e, f, g, h]) => Math.min(c, g) - Math.max(a, e) > 1 &&
      Math.min(d, h) - Math.max(b, f) > 1
      ? [figure.dataset.name + ": " + one + " | " + other] : []));
  return [...document.querySelectorAll("figure:is(.instrument, .explorer)")].flatMap(over);
}
"""
