"""The built site in a real browser: every slider at every position, every page in light and dark, wide and narrow.

It needs ``make book`` first, and a Chromium or Chrome on the machine. ``LOWRANK_REQUIRE_BROWSER=1`` turns a missing
browser into a failure.
"""

import base64
import functools
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from chapters import CHAPTERS, ROOT, Position, judged, judges
from PIL import Image
from playwright.sync_api import BrowserContext, Page

from lowrank_tutor import exercises
from lowrank_tutor._questions import QUESTIONS, numbers_of
from lowrank_tutor.explore import MAX_POSITIONS, Explorer

SITE = ROOT / "_build" / "html"

FIRST_VISIT = 1_000_000  # bytes of theme and maths, text gzipped
EXPLORER = 800_000  # bytes of an explorer's block
WHOLE = 24_000_000  # bytes of the site
TEXT = {".html", ".css", ".js", ".json", ".svg"}

PAGES = sorted(p.relative_to(SITE).as_posix() for p in [*SITE.glob("*.html"), *SITE.glob("book/**/*.html")])
PAGES = [page for page in PAGES if page != "index.html"]  # which only leads to book/index.html
NAMES = sorted(judges())
WHERE = ["http", "cut off", "file"]
each_page = pytest.mark.parametrize("page", PAGES)
each_chapter = pytest.mark.parametrize("chapter", [path.stem for path in CHAPTERS])
each_explorer = pytest.mark.parametrize("name", NAMES)


# The site, and a window to read it in


def settle(page: Page) -> None:
    """Wait for the maths and the fonts, and for what they may have set off."""
    page.evaluate(
        """async () => {
          await window.MathJax?.startup?.promise;
          await document.fonts.ready;
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
        }"""
    )


@pytest.fixture(scope="session")
def reader(browser) -> Iterator[BrowserContext]:
    """A browser window with nothing special about it."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context


@pytest.fixture
def open_page(reader, address, site):
    """Open a page over http, over http with the network cut off after loading, or from a file."""
    pages = []

    def open_one(path: str, where: str = "http") -> Page:
        page = reader.new_page()
        pages.append(page)
        page.goto(f"{site.as_uri()}/{path}" if where == "file" else f"{address}/{path}")
        settle(page)
        reader.set_offline(where == "cut off")
        return page

    yield open_one
    reader.set_offline(False)
    for page in pages:
        page.close()


# Every explorer at every position


READ = """
(figure) => {
  const img = figure.querySelector("img");
  return {
    src: img.src, alt: img.alt, width: img.naturalWidth, height: img.naturalHeight, decoded: img.complete,
    inputs: [...figure.querySelectorAll("input")].map((i) => [i.name, i.value, i.getAttribute("aria-valuetext")]),
    outputs: [...figure.querySelectorAll("output")].map((o) => [o.getAttribute("name"), o.textContent]),
    numbers: [...figure.querySelectorAll("data")].map((d) => [d.dataset.name, d.value, d.textContent]),
  };
}
"""

STEP_THROUGH = f"""
async (figure) => {{
  const read = {READ};
  const inputs = [...figure.querySelectorAll("input")];
  const seen = [];
  const step = async (i) => {{
    if (i === inputs.length) {{
      await figure.querySelector("img").decode();
      seen.push(read(figure));
      return;
    }}
    const {{ min, max, step: by }} = inputs[i];
    for (let value = +min; value <= +max; value += +by) {{
      inputs[i].value = value;
      inputs[i].dispatchEvent(new Event("input", {{ bubbles: true }}));
      await step(i + 1);
    }}
  }};
  await step(0);
  return seen;
}}
"""


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


@pytest.mark.parametrize("where", WHERE)
@each_explorer
def test_every_position_shows_its_own_picture_and_numpys_numbers(open_page, name, where):
    path, explorer, positions = judged(name)
    figure = open_page(f"book/{path.stem}.html", where).locator(f'figure.explorer[data-name="{name}"]')
    shown = figure.evaluate(STEP_THROUGH)
    assert len(shown) == len(positions)
    for one, position in zip(shown, positions, strict=True):
        check(one, explorer, position)
    assert len({one["src"] for one in shown}) == len(shown), "two positions show the same picture"


def picture(shown: dict[str, Any], size: tuple[int, int] | None = None) -> np.ndarray:
    image = Image.open(io.BytesIO(base64.b64decode(shown["src"].split(",")[1]))).convert("RGB")
    return np.asarray(image.resize(size or image.size), dtype=float)


@each_explorer
def test_the_pictures_stand_in_the_order_of_the_sliders(open_page, name):
    path, explorer, positions = judged(name)
    figure = open_page(f"book/{path.stem}.html").locator(f'figure.explorer[data-name="{name}"]')
    frames = [picture(one) for one in figure.evaluate(STEP_THROUGH)]
    height, width, _ = frames[0].shape
    for at in (0, len(positions) // 3, len(positions) - 1):
        drawn = Image.fromarray(explorer.frame(**positions[at].values).picture).resize((width, height))
        distances = [np.abs(frame - np.asarray(drawn, dtype=float)).mean() for frame in frames]
        assert np.argmin(distances) == at
        assert distances[at] < 4  # of 255


@each_explorer
def test_every_slider_can_be_worked_with_the_keyboard_alone_and_the_network_cut_off(open_page, name):
    path, explorer, positions = judged(name)
    page = open_page(f"book/{path.stem}.html", "cut off")
    figure = page.locator(f'figure.explorer[data-name="{name}"]')
    at = {tuple(position.values.items()): position for position in positions}
    for slider, steps in explorer.sliders.items():
        ring = tab_to(page, name, slider)
        assert ring["style"] != "none"
        assert ring["width"] >= 2

        def look(value, slider=slider):
            values = {**explorer.start, slider: value}
            check(figure.evaluate(READ), explorer, at[tuple(values.items())])

        page.keyboard.press("Home")
        look(steps[0])
        for value in steps[1:]:
            page.keyboard.press("ArrowRight")
            look(value)
        page.keyboard.press("Home")
        page.keyboard.press("End")
        look(steps[-1])
        page.keyboard.press("ArrowLeft")
        look(steps[-2])
        for _ in range(len(steps) - 2 - steps.index(explorer.start[slider])):
            page.keyboard.press("ArrowLeft")
        if steps[-1] == explorer.start[slider]:
            page.keyboard.press("End")
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
def test_a_slider_that_rests_is_announced_in_one_sentence(open_page, name):
    path, explorer, _ = judged(name)
    figure = open_page(f"book/{path.stem}.html").locator(f'figure.explorer[data-name="{name}"]')
    said, slider = figure.locator("p[role=status]"), figure.locator("input").first
    assert said.text_content() == ""
    steps = next(iter(explorer.sliders.values()))
    slider.press("End" if explorer.start[next(iter(explorer.sliders))] != steps[-1] else "Home")
    slider.press("ArrowLeft")
    figure.page.wait_for_function("(said) => said.textContent", arg=said.element_handle())
    assert said.text_content() == figure.locator("img").get_attribute("alt")


@each_explorer
def test_an_explorer_keeps_to_its_budget_and_to_itself(site, name):
    path, explorer, _ = judged(name)
    page = (site / f"book/{path.stem}.html").read_text(encoding="utf-8")
    block = re.search(rf'<figure class="explorer" data-name="{name}".*?</figure>', page, re.DOTALL)[0]
    assert len(block.encode()) <= EXPLORER
    assert all(len(values) <= MAX_POSITIONS for values in explorer.sliders.values())
    assert "http:" not in block
    assert "https:" not in block
    assert [src[:11] for src in re.findall(r'src="([^"]*)', block)] == ["data:image/"]


@each_explorer
def test_without_javascript_the_first_frame_and_its_numbers_stand_there(browser, address, name):
    path, explorer, positions = judged(name)
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/book/{path.stem}.html")
        figure = page.locator(f'figure.explorer[data-name="{name}"]')
        (expected,) = [position.expected for position in positions if position.values == explorer.start]
        numbers = {d.get_attribute("data-name"): float(d.get_attribute("value")) for d in figure.locator("data").all()}
        assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert figure.locator("img").is_visible()
        assert figure.locator("img").bounding_box()["height"] > 50
        assert "The sliders need JavaScript" in figure.locator("noscript").inner_text()


@each_explorer
def test_nothing_on_the_page_moves_when_the_frame_changes(open_page, name):
    path, _, _ = judged(name)
    page = open_page(f"book/{path.stem}.html")
    figure = page.locator(f'figure.explorer[data-name="{name}"]')
    figure.scroll_into_view_if_needed()
    page.evaluate(
        """() => {
          window.shifts = [];
          new PerformanceObserver((list) => list.getEntries().forEach((entry) => shifts.push(
            ...entry.sources.map((source) => source.node?.parentElement?.outerHTML.slice(0, 120)))))
            .observe({ type: "layout-shift" });
        }"""
    )
    size = figure.bounding_box()
    figure.evaluate(STEP_THROUGH)
    settle(page)
    assert figure.bounding_box() == size
    assert page.evaluate("shifts") == []


@each_chapter
def test_every_explorer_of_a_page_has_a_judge(site, chapter):
    page = (site / f"book/{chapter}.html").read_text(encoding="utf-8")
    named = re.findall(r'<figure class="explorer" data-name="([^"]+)"', page)
    assert named
    assert sorted(set(named)) == sorted(named)
    assert sorted(named) == sorted(name for name in NAMES if judged(name).path.stem == chapter)


@each_chapter
def test_nothing_moves_by_itself_for_those_who_ask_for_that(browser, address, chapter):
    with browser.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(f"{address}/book/{chapter}.html")
        moving = page.evaluate(
            """() => [...document.querySelectorAll("figure.explorer, figure.explorer *")].filter((e) => {
              const style = getComputedStyle(e);
              return /[1-9]/.test(style.transitionDuration) || style.animationName !== "none";
            }).map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert moving == []
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


# Every page, as four readers meet it


class Visit(NamedTuple):
    """What one reader's browser had to say about one page."""

    messages: list[str]
    foreign: list[str]
    missing: list[str]
    local: list[str]
    overflow: list[str]
    axe: list[str]
    facts: dict[str, Any]


READERS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "light phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 740}, "is_mobile": True},
    "dark phone": {"color_scheme": "dark", "viewport": {"width": 360, "height": 740}, "is_mobile": True},
}
# Two over http and two from a file: together every color, width and way to open a page.
VISITS = [("http", "light"), ("http", "dark phone"), ("file", "dark"), ("file", "light phone")]
each_visit = pytest.mark.parametrize(("where", "who"), VISITS)

FACTS = """
() => ({
  theme: document.documentElement.dataset.theme,
  maths: document.querySelectorAll("mjx-container").length,
  mathErrors: [...document.querySelectorAll("mjx-merror")].map((e) => e.textContent),
  images: [...document.images].map((i) => ({ src: i.src.slice(0, 100), alt: i.getAttribute("alt"),
    shown: i.complete && i.naturalWidth > 0, inside: Boolean(i.closest("article")) })),
  paper: getComputedStyle(document.body).backgroundColor,
})
"""

# A phone zooms out of a page that is too wide, and its innerWidth grows with it: compare with the width it has.
WIDER = """
(width) => document.scrollingElement.scrollWidth <= width ? [] : [`${document.scrollingElement.scrollWidth} pixels`,
  ...[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1)
    .map((e) => e.outerHTML.slice(0, 120)).slice(-3)]
"""

# Without "preload" axe asks for no style sheet of its own, which a page from a file may not read.
AXE_CONTEXT = {"exclude": [["mjx-container"]]}  # MathJax answers for its own thousands of elements
AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "preload": False}


@pytest.fixture(scope="session")
def visit(browser, address, site):
    """Visit a page as one of the readers; asked again, remember."""
    contexts = {who: browser.new_context(**READERS[who]) for _, who in VISITS}

    @functools.cache
    def go(path: str, where: str, who: str) -> Visit:
        page = contexts[who].new_page()
        messages, requests, missing = [], [], []
        page.on("console", lambda m: messages.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: messages.append(f"thrown: {error}"))
        page.on("request", lambda request: requests.append(request.url))
        page.on("requestfailed", lambda request: missing.append(request.url))
        page.on("response", lambda r: missing.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        page.goto(f"{site.as_uri()}/{path}" if where == "file" else f"{address}/{path}")
        settle(page)
        facts = page.evaluate(FACTS)
        overflow = page.evaluate(WIDER, READERS[who]["viewport"]["width"])
        requests, messages, missing = requests[:], messages[:], missing[:]  # the page's own, before axe looks at it
        found = Axe().run(page, AXE_CONTEXT, AXE).response["violations"] if where == "http" else []
        ours = (address + "/", site.as_uri() + "/", "data:", "blob:")
        foreign = [url for url in requests if not url.startswith(ours)]
        local = [unquote(urlsplit(url).path).lstrip("/") for url in requests if url.startswith(address)]
        page.close()
        axe = [f"{v['id']} ({v['impact']}): {n['html'][:150]}" for v in found for n in v["nodes"][:3]]
        return Visit(messages, foreign, missing, local, overflow, axe, facts)

    yield go
    for context in contexts.values():
        context.close()


@each_page
@each_visit
def test_a_page_loads_in_silence_and_asks_nobody_else(visit, page, where, who):
    seen = visit(page, where, who)
    assert seen.messages == []
    assert seen.foreign == []
    assert seen.missing == []


@each_page
@pytest.mark.parametrize("who", ["light", "dark phone"])
def test_a_page_is_accessible(visit, page, who):
    assert visit(page, "http", who).axe == []


@each_page
@each_visit
def test_a_page_never_scrolls_sideways(visit, page, where, who):
    assert visit(page, where, who).overflow == []


@each_page
@each_visit
def test_a_page_is_light_or_dark_as_the_reader_has_it(visit, page, where, who):
    facts = visit(page, where, who).facts
    assert facts["theme"] == who.split()[0]
    brightness = sum(map(int, re.findall(r"\d+", facts["paper"])[:3])) / 3
    assert brightness > 200 if facts["theme"] == "light" else brightness < 60


@each_page
@each_visit
def test_every_image_is_shown_and_says_what_it_shows(visit, page, where, who):
    for image in visit(page, where, who).facts["images"]:
        assert image["shown"], image
        assert image["alt"], image
        assert "_images" not in image["alt"], "a file's name is no alternative text"
        if image["inside"] and "/_static/" not in image["src"]:
            assert len(image["alt"].split()) >= 6, image


@each_chapter
@each_visit
def test_the_maths_is_typeset(visit, chapter, where, who):
    facts = visit(f"book/{chapter}.html", where, who).facts
    assert facts["maths"] > 10
    assert facts["mathErrors"] == []


@each_chapter
def test_theme_and_maths_weigh_little_on_a_first_visit(visit, site, chapter):
    own = f"book/{chapter}.html"
    files = [site / path for path in set(visit(own, "http", "light").local) - {own}]
    weights = {f: len(gzip.compress(f.read_bytes()) if f.suffix in TEXT else f.read_bytes()) for f in files}
    print(f"{chapter}: {sum(weights.values()):,} bytes")
    heaviest = sorted(((size, f.name) for f, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= FIRST_VISIT, heaviest


def test_the_whole_site_fits_into_an_attachment(site):
    weights = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    print(f"the site: {sum(weights.values()):,} bytes")
    assert sum(weights.values()) <= WHOLE, sorted(((size, path.name) for path, size in weights.items()), reverse=True)[
        :5
    ]


def test_a_browser_that_asks_for_the_icon_gets_one(address):
    with urlopen(f"{address}/favicon.ico") as answer:
        assert answer.status == 200
        assert Image.open(io.BytesIO(answer.read())).format == "ICO"


# Links, numbers, buttons


class Read(HTMLParser):
    """A page's anchors and links, without a browser."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id" and value:
                self.ids.append(value)
            if key in ("href", "src") and value and tag != "base":
                self.links.append(value)


def test_the_address_of_the_site_leads_to_the_book(open_page):
    page = open_page("book/index.html")
    start = page.url.removesuffix("book/index.html")
    page.goto(start)
    page.wait_for_url(f"{start}book/index.html")


@pytest.fixture(scope="session")
def pages(site) -> dict[str, Read]:
    return {page: Read(site / page) for page in PAGES}


@each_page
def test_every_link_inside_the_site_leads_somewhere(site, pages, page):
    dead = []
    for link in pages[page].links:
        there, anchor = urldefrag(urljoin(f"http://site/{page}", link))
        parts = urlsplit(there)
        if parts.scheme != "http" or parts.netloc != "site":
            continue
        target = unquote(parts.path).lstrip("/") or "index.html"
        if not (site / target).is_file() or (anchor and target in pages and unquote(anchor) not in pages[target].ids):
            dead.append(link)
    assert dead == []


def test_every_function_of_the_package_leads_back_to_the_pages_that_use_it(site):
    page = (site / "book/api.html").read_text(encoding="utf-8")
    entries = re.split(r'<dt class="sig sig-object py" id="(lowrank_tutor\.\w+\.\w+)"', page)[1:]
    used = {
        name: re.findall(r'<p class="in-the-book">.*?</p>', text, re.S)
        for name, text in zip(entries[::2], entries[1::2], strict=True)
    }
    functions = [name for name in used if name.rpartition(".")[2].islower() and "sphinxext" not in name]
    assert len(functions) > 40
    assert [name for name in functions if not used[name]] == ["lowrank_tutor.plotting.styled"]
    assert 'href="02-svd-pca.html">' in used["lowrank_tutor.svd.tail_error"][0]


def test_every_place_outside_that_the_site_links_to_is_listed_with_its_purpose(site, pages):
    hosts = {urlsplit(link).netloc for read in pages.values() for link in read.links if link.startswith("http")}
    listed = re.search(
        r"^## Links that leave.*", (ROOT / "book/bibliography.md").read_text(encoding="utf-8"), re.M | re.S
    )
    assert hosts == set(re.findall(r"^\| `([\w.]+)` \| [^|]{20,} \|$", listed[0], re.M))
    assert not [link for read in pages.values() for link in read.links if link.startswith("http:")]


@each_page
def test_no_two_elements_share_an_identifier(pages, page):
    assert [name for name, times in Counter(pages[page].ids).items() if times > 1] == []


@each_chapter
def test_equations_and_theorems_are_numbered_and_referred_to_by_number(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    number = 1 + [path.stem for path in CHAPTERS].index(chapter)  # numbers follow the table of contents
    equations = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("div.math[id], span.eqno")]
          .map((e) => e.closest("div.math")).filter(Boolean)
          .map((e) => [e.id, e.querySelector(".eqno")?.firstChild.textContent.trim()]))"""
    )
    assert equations
    assert list(equations.values()) == [f"({number}.{i})" for i in range(1, len(equations) + 1)]
    statements = page.evaluate(
        """() => [...document.querySelectorAll("div.proof:not(.dropdown), div.exercise")].map((e) => [e.id,
          e.querySelector(".admonition-title").textContent.trim().replace(/\\s+/g, " ")])"""
    )
    kinds: dict[str, list[str]] = {}
    for _, title in statements:
        found = re.match(r"(Theorem|Definition|Example|Exercise|Lemma|Corollary) ([\d.]+)", title)
        assert found, title
        kinds.setdefault(found[1], []).append(found[2])
    assert {"Theorem", "Exercise"} <= kinds.keys()
    for numbers in kinds.values():
        assert numbers == [f"{number}.{i}" for i in range(1, len(numbers) + 1)]
    titles = dict(statements)
    referred = 0
    for target, text in page.evaluate(
        """() => [...document.querySelectorAll("article a.internal[href^='#']")]
          .map((a) => [a.getAttribute("href").slice(1), a.textContent.trim()])"""
    ):
        if target in equations:
            referred += 1
            assert text == equations[target]
        elif target in titles:
            referred += 1
            assert titles[target].startswith(text)
            assert re.search(r"\d", text), text
    assert referred


@each_chapter
def test_proofs_and_solutions_are_folded_and_unfold_by_click_and_by_key(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    page.add_style_tag(content="*{animation:none!important;transition:none!important}")
    source = next(p for p in CHAPTERS if p.stem == chapter).read_text(encoding="utf-8")
    folds = page.locator("div.admonition.dropdown, div.proof.dropdown, div.solution.dropdown")
    assert folds.count() == source.count(":class: dropdown")
    for fold in folds.all():
        title, button = fold.locator(".admonition-title").first, fold.locator("button.toggle-button").first
        inside = fold.locator("p:not(.admonition-title)").first
        assert title.inner_text().strip()
        assert not inside.is_visible()
        title.click()
        assert inside.is_visible()
        button.focus()
        page.keyboard.press("Enter")
        assert not inside.is_visible()
        page.keyboard.press("Space")
        assert inside.is_visible()


@each_chapter
def test_formulas_speak_and_are_no_stops_whatever_another_page_has_stored(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    page.evaluate("localStorage['MathJax-Menu-Settings'] = JSON.stringify({ explorer: true, assistiveMml: false })")
    page.reload()
    settle(page)
    formulas = page.locator("mjx-container")
    assert formulas.count() > 10
    assert page.locator("mjx-container mjx-assistive-mml math").count() == formulas.count()
    assert page.locator("mjx-container[tabindex]").count() == 0
    page.evaluate("localStorage.clear()")


@each_chapter
def test_every_fold_is_called_by_what_it_folds(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    page.wait_for_load_state("load")
    names = page.evaluate("[...document.querySelectorAll('.toggle-button')].map((b) => b.getAttribute('aria-label'))")
    assert len(set(names)) == len(names), names
    assert not [name for name in names if "Toggle" in name or len(name) < 8]
    assert page.locator("summary[aria-label]").count() == 0


def test_the_skip_link_leads_past_the_buttons_to_the_text(open_page):
    page = open_page("book/01-rank.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('article.bd-article') !== null")


def test_a_pressed_button_keeps_the_focus(open_page):
    page = open_page("book/01-rank.html")
    for button in (".theme-switch-button", ".cell:not(:has(details)) button.copybtn"):
        page.locator(f"{button}:visible").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(100)
        assert page.evaluate("(css) => document.activeElement.matches(css)", button)
    assert page.locator(".theme-switch-button").first.get_attribute("aria-label").startswith("Color mode: ")
    page.evaluate("localStorage.clear()")


# The fields that check an answer


@each_chapter
def test_a_field_says_of_every_answer_what_the_package_says(open_page, chapter):
    page = open_page(f"book/{chapter}.html", "cut off")
    source = next(p for p in CHAPTERS if p.stem == chapter).read_text(encoding="utf-8")
    fields = page.locator("form.check")
    names = fields.evaluate_all("(forms) => forms.map((form) => form.dataset.name)")
    assert names == re.findall(r"^```\{exercise\}.*\n:label: (\S+)", source, re.M)
    for name, form in zip(names, fields.all(), strict=True):
        question = QUESTIONS[name]
        field, said = form.get_by_label(question.ask), form.locator("output")
        several = [0.123] * (len(question.numbers) + 1)
        answers = [question.right, *(wrong for wrong, _ in question.hints), -123.456, tuple(several)]
        answers.append(question.numbers[::-1])
        for answer in answers:
            given = numbers_of(answer) if answer != -123.456 else (answer,) * len(question.numbers)
            field.fill("  ".join(map(repr, given)))
            field.press("Enter")
            assert said.inner_text() == repr(exercises.check(name, given)), (name, given)
        for nothing in ("", "two", "1 + 1", "1/0", "1..2"):
            field.fill(nothing)
            form.get_by_role("button", name="Check").click()
            assert said.inner_text().startswith("Write numbers"), nothing
    assert page.url.endswith(f"{chapter}.html"), "nothing was sent"


@pytest.mark.parametrize(
    ("chapter", "name", "typed"),
    [
        (
            "01-rank",
            "ex-rank-projection",
            ["1/2", "0.5", "0,5", "50%", "50 %", " .5 ", "+0.5", "1 / 2", "5e-1", "(1/2)"],
        ),
        ("01-rank", "ex-rank-build", ["20, 16", "20,16", "(20; 16)", "[20 16]", "20\u00a016"]),
        ("02-svd-pca", "ex-svd-center", ["35,598", "35 598", "35598.0", "35598,0"]),
        ("02-svd-pca", "ex-svd-tail", ["0,302; 2; 3", "0.302; 2; 3", ".302, 2, 3"]),
        ("04-johnson-lindenstrauss", "ex-jl-hundred", ["1,593; 1,199", "1593, 1199"]),
        ("05-bilinear-scoring", "ex-bilinear-hand", ["-4 5 6", "\u22124, 5, 6"]),
        ("07-linformer", "ex-linformer-crossover", ["304,138", "304 138"]),
    ],
)
def test_a_field_reads_numbers_as_people_write_them(open_page, chapter, name, typed):
    form = open_page(f"book/{chapter}.html").locator(f'form.check[data-name="{name}"]')
    for text in typed:
        form.locator("input").fill(text)
        form.locator("input").press("Enter")
        assert form.locator("output").inner_text() == "Right.", text


def test_a_field_tells_whom_the_comma_misled(open_page):
    form = open_page("book/02-svd-pca.html").locator('form.check[data-name="ex-svd-tail"]')
    form.locator("input").fill("0,302 2 3")
    form.locator("input").press("Enter")
    said = form.locator("output").inner_text()
    assert said == "Not yet. Give 3 numbers, in the order asked for. Write 0.5, not 0,5."


@each_chapter
def test_a_page_says_how_to_cite_it(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    source = next(p for p in CHAPTERS if p.stem == chapter).read_text(encoding="utf-8")
    cite = page.locator("details.cite")
    cite.locator("summary").click()
    said = cite.locator("p").inner_text()
    assert said.startswith("The lowrank-tutor authors (2026). " + re.search("^# (.*)$", source, re.M)[1])
    assert "Low-Rank Attention" in said
    assert said.endswith(f"/book/{chapter}.html")


@each_chapter
def test_folded_code_unfolds(open_page, chapter):
    page = open_page(f"book/{chapter}.html")
    folds = page.locator("details.hide")
    assert folds.count() > 0
    for fold in folds.all():
        code = fold.locator("pre").first
        assert not code.is_visible()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert code.is_visible()


@pytest.mark.parametrize("where", ["http", "file"])
@each_chapter
def test_search_finds_the_chapter_by_a_word_of_its_title(open_page, chapter, where):
    source = next(p for p in CHAPTERS if p.stem == chapter).read_text(encoding="utf-8")
    title = re.search("^# (.*)$", source, re.MULTILINE)[1]
    page = open_page("book/index.html", where)
    page.locator(".search-button__button:visible").first.click()
    page.keyboard.type(max(title.split(), key=len))
    page.keyboard.press("Enter")
    hit = page.locator(f'#search-results a[href*="{chapter}.html"]').first
    hit.wait_for()
    assert title in hit.inner_text()


def test_the_button_changes_between_light_and_dark_and_the_choice_stays(open_page):
    page = open_page("book/index.html")
    seen = {}
    for _ in range(3):
        page.locator(".theme-switch-button:visible").first.click()
        seen[page.evaluate("document.documentElement.dataset.mode")] = page.evaluate(
            "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
        )
    assert seen.keys() == {"auto", "light", "dark"}
    assert seen["light"][0] == "light"
    assert seen["dark"][0] == "dark"
    assert seen["light"][1] != seen["dark"][1]
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".theme-switch-button:visible").first.click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.clear()")


@each_chapter
def test_the_colab_button_opens_the_derived_notebook(open_page, chapter):
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    repository = config["repository"]
    where = repository["url"].removeprefix("https://github.com/") + f"/blob/{repository['branch']}"
    link = open_page(f"book/{chapter}.html").locator('a[href^="https://colab"]').first
    assert link.get_attribute("href") == f"https://colab.research.google.com/github/{where}/book/{chapter}.ipynb"


@each_chapter
def test_the_download_is_the_derived_notebook(open_page, address, chapter):
    link = open_page(f"book/{chapter}.html").locator("a.btn-download-notebook-button").first
    with urlopen(urljoin(f"{address}/book/{chapter}.html", link.get_attribute("href"))) as answer:
        served = answer.read()
    derived = ROOT / "book" / f"{chapter}.ipynb"
    assert served == derived.read_bytes(), "run make notebooks, then make book"
    assert json.loads(served)["cells"]


@each_chapter
def test_a_chapter_links_to_the_package(open_page, chapter):
    links = open_page(f"book/{chapter}.html").locator('article a[href*="api.html#lowrank_tutor."]')
    assert links.count() > 0


def test_the_page_of_times_names_every_chapter(open_page):
    rows = open_page("book/times.html").locator("article table tbody tr").all_inner_texts()
    for path in CHAPTERS:
        assert any(re.search(rf"{path.stem}\b.*\d\.\d", row, re.DOTALL) for row in rows), rows
