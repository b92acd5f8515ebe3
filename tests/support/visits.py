"""The built site as its readers meet it: a page is opened once in each way, and says all that the
tests ask.

To load a page costs more than any question to it. So a :class:`Window` reads the whole site and
remembers what a page said to each of its readers when it was new; then it may be used for what a
hand does, keys and clicks.
"""

import re
import time
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from axe_playwright_python.sync_playwright import Axe
from browsing import PLACES
from chapters import ROOT

SITE = ROOT / "_build" / "html"
PAGES = sorted(
    p.relative_to(SITE).as_posix() for p in [*SITE.glob("*.html"), *SITE.glob("book/**/*.html")]
)
PAGES = [
    page
    for page in PAGES
    if 'http-equiv="refresh"' not in (SITE / page).read_text(encoding="utf-8")[:1000]
]

WIDE = {"width": 1280, "height": 900, "mobile": False}
PHONE = {"width": 360, "height": 740, "mobile": True}
# The same phone, for a context of its own.
FINGER = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


class Kind(NamedTuple):
    """A kind of reader: how a page comes, what it is read on, and what is asked of it."""

    where: str  # "http" or "file"
    theme: str  # "light" or "dark"
    screen: dict[str, Any]
    calm: bool = False  # asks that nothing moves by itself
    axe: bool = False
    drags: int = (
        0  # sees one position of the sliders in so many, without a network, which a file never had
    )


# Both colors, both widths, and both ways to open a page. One reader sees every third position of
# every slider, whose numbers Python's tests compare at all of them; what another color, width, or
# way could spoil is no matter of the position, so the others see one in fifteen. The first reader
# of a way opens the page, and the second turns the same window, which stays so for what a hand
# does: mostly by day.
READERS = {
    "dark phone": Kind("http", "dark", PHONE, axe=True, drags=15),
    "light": Kind("http", "light", WIDE, axe=True, drags=3),
    "light phone, from a file": Kind("file", "light", PHONE, calm=True, drags=15),
}

# What a page loses without a server, or what dark colors hide, it loses on any page. Those who open
# files read these, with and without sliders, and axe reads them in the dark.
SAMPLES = {
    f"book/{name}.html" for name in ("index", "01-rank", "05-bilinear-scoring", "cheat-sheet")
}
VISITS = [
    (page, who)
    for page in PAGES
    for who, kind in READERS.items()
    if kind.where == "http" or page in SAMPLES
]

BLANK = "about:blank"
REST = 0.4  # seconds: a third of one after a change of size the theme lets keys reach what scrolls

# MathJax keeps what a reader chose in its menu for all pages of a site. These choices would take
# the formulas' words away, and make each formula a stop of the Tab key.
STORED = (
    "localStorage['MathJax-Menu-Settings'] = "
    "JSON.stringify({ explorer: true, assistiveMml: false })"
)

# Where a window turns narrow, the theme slides its columns away, and lays the whole page out anew
# for every frame.
NO_SLIDING = """
document.addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = ".bd-sidebar-primary, .bd-sidebar-secondary { transition: none !important }";
  document.head.append(style);
});
"""


class Seen(NamedTuple):
    """What one reader's browser had to say about one page."""

    messages: list[str]
    foreign: list[str]
    missing: list[str]
    local: list[str]
    facts: dict[str, Any]
    axe: list[str]
    dragged: dict[str, dict[str, Any]]


# A phone zooms out of a page that is too wide, and its innerWidth grows with it: compare with the
# width it has.
FACTS = """
(width) => {
  const all = (css, of) => [...document.querySelectorAll(css)].map(of);
  const count = (css) => document.querySelectorAll(css).length;
  const words = (e) => e.textContent.trim().replace(/\\s+/g, " ");
  const wide = document.scrollingElement.scrollWidth;
  return {
    theme: document.documentElement.dataset.theme,
    paper: getComputedStyle(document.body).backgroundColor,
    // Of several panels the first one says what all of them show.
    images: all("img", (i) => ({ src: i.src.slice(0, 100), alt: i.getAttribute("alt") ||
      i.closest(".cell_output")?.querySelector("img").getAttribute("alt"),
      shown: i.complete && i.naturalWidth > 0, inside: Boolean(i.closest("article")) })),
    overflow: wide <= width ? [] : [`${wide} pixels`, ...[...document.querySelectorAll("body *")]
      .filter((e) => e.getBoundingClientRect().right > width + 1)
        .map((e) => e.outerHTML.slice(0, 120)).slice(-3)],
    moving: all("figure.explorer, figure.explorer *", (e) => e).filter((e) => {
      const style = getComputedStyle(e);
      return /[1-9]/.test(style.transitionDuration) || style.animationName !== "none";
    }).map((e) => e.outerHTML.slice(0, 80)),
    scrolling: getComputedStyle(document.documentElement).scrollBehavior,
    pictures: all(".explorer-panels svg, .cell_output > img", (i) => ({
      filter: getComputedStyle(i).filter, photograph: i.matches(".photograph") })),
    maths: count("mjx-container"),
    mathErrors: all("mjx-merror", words),
    spoken: count("mjx-container mjx-assistive-mml math"),
    mathStops: count("mjx-container[tabindex]"),
    said: all("figure.explorer p[role=status]", words),
    equations: Object.fromEntries(all("div.math[id], span.eqno", (e) => e.closest("div.math"))
      .filter(Boolean)
      .map((e) => [e.id, e.querySelector(".eqno")?.firstChild.textContent.trim()])),
    statements: all("div.proof:not(.dropdown), div.exercise", (e) =>
      [e.id, words(e.querySelector(".admonition-title"))]),
    references: all("article a[href^='#']:not(.headerlink)", (a) =>
      [a.getAttribute("href").slice(1), words(a)]),
    folds: all(".toggle-button", (b) => b.getAttribute("aria-label")),
    namedSummaries: count("summary[aria-label]"),
    colab: all('a[href^="https://colab"]', (a) => a.getAttribute("href")),
    download: all("a.btn-download-notebook-button", (a) => a.getAttribute("href")),
    wide: all(".bd-content :is(div.math, table, pre, .cell_output)", (e) => e)
      .filter((e) => e.scrollWidth > e.clientWidth + 2 && e.checkVisibility())
      .map((e) => [e.tagName === "PRE" ? "PRE" : e.id || e.tagName,
        getComputedStyle(e).maskImage.startsWith("linear-gradient")]),
    meta: Object.fromEntries(all("meta[name], meta[property]", (m) =>
      [m.getAttribute("name") ?? m.getAttribute("property"), m.content])),
    title: document.title,
  };
}
"""


# Accessibility


# MathJax answers for its own thousands of elements: while axe looks, a word of the same size stands
# for each formula.
HIDE_MATHS = """
() => {
  window.replaced = [...document.querySelectorAll("mjx-container")].map((formula) => {
    const { width, height } = (formula.querySelector("mjx-math") ??
      formula).getBoundingClientRect();
    const word = document.createElement("span");
    word.textContent = "x";
    word.style = `display: inline-block; width: ${width}px; height: ${height}px`;
    return [formula, word];
  });
  replaced.forEach(([formula, word]) => formula.replaceWith(word));
}
"""
# So do the colors of code and the slant of types, but for the samples: what says nothing else is as
# good as its words.
HIDE_COLORS = """
() => {
  const plain = (e) => !e.childElementCount &&
    e.getAttributeNames().every((name) => name === "class");
  for (let depth = 0; depth < 3; depth++) {
    const bare = [...document.querySelectorAll("pre span, code span, dt.sig :is(span, em), dd em")]
      .filter(plain)
      .map((span) => [span, document.createTextNode(span.textContent)]);
    bare.forEach(([span, words]) => span.replaceWith(words));
    replaced.push(...bare);
  }
}
"""
SHOW_ALL = "() => replaced.reverse().forEach(([original, word]) => word.replaceWith(original))"

# Contrast, of words with their ground and of links with the words around them, is most of axe's
# work, and the same for all words of one color, size and ground: three of each are looked at, among
# links three of each kind of place.
MARK_SAMPLES = """
() => {
  const grounds = new Map([[null, ""]]);
  const ground = (e) => {
    if (!grounds.has(e)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(e);
      const own = [backgroundColor, backgroundImage, opacity, filter].join(" ");
      grounds.set(e, ground(e.parentElement) + own.replace("rgba(0, 0, 0, 0) none 1 none", ""));
    }
    return grounds.get(e);
  };
  const seen = new Map();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const e = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || !e.checkVisibility()) continue;
    const { color, fontSize, fontWeight, textShadow } = getComputedStyle(e),
      link = e.closest("a[href]");
    const around = link?.parentElement;
    const place = link && [getComputedStyle(link).textDecorationLine,
      getComputedStyle(around).color, around.tagName];
    const look = [color, fontSize, fontWeight, textShadow, ground(e), place].join();
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) <= 3) (link ?? e).dataset.sample = "";
  }
  document.querySelectorAll("input, select, textarea").forEach((e) => (e.dataset.sample = ""));
}
"""
ONLY_SAMPLES = """
() => axe.configure({ rules: [
  { id: "color-contrast", selector: "[data-sample]" },
    { id: "link-in-text-block", selector: "a[href][data-sample]" },
] })
"""
# Without "preload" axe asks for no style sheet of its own, which a page from a file may not read.
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "resultTypes": ["violations"],
    "preload": False,
    "selectors": False,
}


def violations(page):
    """What axe finds on a page."""
    for step in (HIDE_MATHS, MARK_SAMPLES, HIDE_COLORS, Axe().axe_script, ONLY_SAMPLES):
        page.evaluate(step)
    found = page.evaluate(
        "(options) => axe.run(options).then((results) => results.violations)", AXE
    )
    page.evaluate(SHOW_ALL)
    return [f"{v['id']} ({v['impact']}): {n['html'][:150]}" for v in found for n in v["nodes"][:3]]


# Explorers


# What stands in an explorer; of its pictures' data only the beginning, if not all of it is asked
# for.
READ = """
(figure, most) => ({
  alt: figure.querySelector(".explorer-panels").getAttribute("aria-label"),
  panels: [...figure.querySelectorAll(".explorer-panels svg")]
    .map((svg) => svg.outerHTML.slice(0, most ?? 30)),
  controls: [...figure.querySelectorAll("[data-slider]")].map((c) => c.matches("fieldset")
    ? [c.dataset.slider, c.querySelector(":checked").value, null]
    : [c.dataset.slider, c.value, c.getAttribute("aria-valuetext")]),
  outputs: [...figure.querySelectorAll("output")]
    .map((o) => [o.getAttribute("name"), o.textContent]),
  numbers: [...figure.querySelectorAll("data")]
    .map((d) => [d.dataset.name, d.value, d.textContent]),
})
"""

# Every position of the sliders of one explorer, or one in so many and the last, and what else on
# the page moved meanwhile; then back to the start.
DRAG = f"""
async (figure, each) => {{
  const read = {READ};
  const shifts = [];
  const note = (entries) => entries.forEach((entry) => shifts.push(
    ...entry.sources.map((source) => source.node?.parentElement?.outerHTML.slice(0, 120))));
  const {{ places, back }} = ({PLACES})(figure);
  const size = () => {{
    const {{ x, y, width, height }} = figure.getBoundingClientRect();
    return [x, y, width, height];
  }};
  figure.scrollIntoView({{ behavior: "instant", block: "center" }});
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({{ type: "layout-shift" }});
  const before = size();
  const shown = [];
  for (const [at, place] of places.entries()) {{
    if (at % each && at < places.length - 1) continue;
    place.forEach((move) => move());
    shown.push([at, read(figure, Infinity)]);
  }}
  back.forEach((move) => move());
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
  note(observer.takeRecords());
  observer.disconnect();
  return {{ shown, shifts, before, after: size() }};
}}
"""


# Each says its sentence when its sliders rest; the next reader hears none of that.
SPOKEN = (
    "() => [...document.querySelectorAll('figure.explorer p[role=status]')].every((p) => "
    "p.textContent)"
)
HUSH = (
    "() => document.querySelectorAll('figure.explorer p[role=status]').forEach((p) => "
    "(p.textContent = ''))"
)

SWIPE = {"sideways": (80, 8), "up": (8, -80), "tap": (0, 0)}


def swipe(page, x, y, way):
    """Lay a finger down, move it in small steps, and lift it."""
    session = page.context.new_cdp_session(page)
    for part in range(6 if any(SWIPE[way]) else 1):
        point = {"x": x + part / 5 * SWIPE[way][0], "y": y + part / 5 * SWIPE[way][1]}
        session.send(
            "Input.dispatchTouchEvent",
            {"type": "touchMove" if part else "touchStart", "touchPoints": [point]},
        )
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def settle(page):
    """Wait for the maths and the fonts, and for what they may have set off."""
    page.evaluate(
        """async () => {
          await window.MathJax?.startup?.promise;
          await document.fonts.ready;
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
        }"""
    )


class Window:
    """A window in which one page after the other is read, by all readers to whom pages come in its
    way.
    """

    def __init__(self, browser, address, where):
        self.kinds = {who: kind for who, kind in READERS.items() if kind.where == where}
        self.address = address
        self.start = SITE.as_uri() if where == "file" else address
        self.context = browser.new_context()
        self.context.set_default_timeout(300_000)  # a slow machine may take its time
        self.context.add_init_script(STORED + NO_SLIDING)
        self.page = self.context.new_page()
        self.screen = self.context.new_cdp_session(self.page)
        self.pages = {}
        self.turned = None
        self.resting = 0.0

    def see(self, path):
        """What a page said to each reader when it was opened; asked again, remember."""
        if path not in self.pages:
            self.pages[path] = self._visit(path)
        return self.pages[path]

    def open(self, path, kind):
        """Return the page as it was left, if it is the one that was read last, on a reader's
        screen.
        """
        self.see(path)
        self._turn(kind)
        if self.page.url.partition("#")[0] != f"{self.start}/{path}":
            self._go(path)
        self._rest()
        return self.page

    @contextmanager
    def cut_off(self):
        """Let there be no network for a while."""
        self.context.set_offline(True)
        try:
            yield
        finally:
            self.context.set_offline(False)

    def _turn(self, kind):
        if kind != self.turned:
            self.page.emulate_media(
                color_scheme=kind.theme, reduced_motion="reduce" if kind.calm else "no-preference"
            )
            self.screen.send(
                "Emulation.setDeviceMetricsOverride", {**kind.screen, "deviceScaleFactor": 1}
            )
            self.turned = kind
            if self.page.url != BLANK:
                self.resting = time.monotonic() + REST

    def _rest(self):
        """Wait for what the theme does when a window has stopped changing."""
        self.page.wait_for_timeout(max(0, 1000 * (self.resting - time.monotonic())))

    def _go(self, path):
        self.page.goto(f"{self.start}/{path}")
        settle(self.page)

    def _visit(self, path):
        messages = []
        requests = []
        missing = []
        listeners = {
            "console": lambda m: (
                messages.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None
            ),
            "pageerror": lambda error: messages.append(f"thrown: {error}"),
            "request": lambda request: requests.append(request.url),
            "requestfailed": lambda request: missing.append(request.url),
            "response": lambda r: (
                missing.append(f"{r.status} {r.url}") if r.status >= 400 else None
            ),
        }
        self.page.goto(BLANK)  # what the page before still says is its own
        for event, listener in listeners.items():
            self.page.on(event, listener)
        self._turn(next(iter(self.kinds.values())))
        self._go(path)
        seen = {
            who: (self._facts(kind), *self._try(path, kind)) for who, kind in self.kinds.items()
        }
        for event, listener in listeners.items():
            self.page.remove_listener(event, listener)
        ours = (self.address + "/", SITE.as_uri() + "/", "data:", "blob:")
        local = [
            unquote(urlsplit(url).path).lstrip("/")
            for url in requests
            if url.startswith(self.address)
        ]
        foreign = [url for url in requests if not url.startswith(ours)]
        return {who: Seen(messages, foreign, missing, local, *seen[who]) for who in self.kinds}

    def _facts(self, kind):
        """Say how the open page looks to a reader."""
        self._turn(kind)
        settle(self.page)
        return self.page.evaluate(FACTS, kind.screen["width"])

    def _try(self, path, kind):
        """Let a hand and axe try what the page lets a reader do, who has it open."""
        dragged = {}
        self.page.emulate_media(reduced_motion="reduce")  # pictures change at once
        with self.cut_off():
            for figure in self.page.locator("figure.explorer").all() if kind.drags else []:
                dragged[figure.get_attribute("data-name")] = figure.evaluate(DRAG, kind.drags)
        self.turned = None
        found = []
        if kind.axe and (kind.theme == "light" or path in SAMPLES):
            self._rest()
            found = violations(self.page)
        if dragged:
            self.page.wait_for_function(SPOKEN)
            self.page.evaluate(HUSH)
        return found, dragged


class Reader(NamedTuple):
    """Somebody who reads the site in a window."""

    window: Window
    who: str

    def see(self, path):
        """What a page said when it was opened."""
        return self.window.see(path)[self.who]

    def open(self, path):
        """Return the window's page with this one in it."""
        return self.window.open(path, READERS[self.who])


def address_of(chapter):
    """The page that is made of a chapter."""
    return f"book/{chapter.stem}.html"


def title_of(chapter):
    """Its first heading."""
    (title, *_) = re.findall("^# (.*)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)
    return str(title)


def block(path, name):
    """An explorer as it stands in a page's file."""
    page = path.read_text(encoding="utf-8")
    start = page.index(f'<figure class="explorer" data-name="{name}"')
    return page[start : page.index("</figure>", start)] + "</figure>"
