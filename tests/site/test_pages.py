"""Every page of the built site, as four readers meet it: light and dark, wide and narrow, over http and from a file."""

import gzip
import re
from html import escape
from pathlib import Path

import booksite
import cards
import pytest
import yaml
from chapters import CHAPTERS, ROOT
from nbformat import NotebookNode
from PIL import Image
from visits import PAGES, READERS, VISITS, address_of, settle, violations

HOME = "book/index.html"
WIDE_SCREEN = {"width": 1280, "height": 900}
DESCRIPTION = r'<meta name="description" content="([^"]*)"'

FIRST_VISIT = 1_000_000  # bytes of theme and maths, text gzipped
WHOLE = 24_000_000  # bytes of the site
TEXT = {".html", ".css", ".js", ".json", ".svg"}

each_page = pytest.mark.parametrize("page", PAGES)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_visit = pytest.mark.parametrize(("page", "who"), VISITS)


@each_visit
def test_no_messages_or_requests(readers, page, who):
    """Nor does a page scroll sideways, or look otherwise than its reader has asked for."""
    seen = readers[who].see(page)
    assert seen.messages == seen.foreign == seen.missing == []
    assert seen.facts["overflow"] == []
    assert seen.facts["theme"] == READERS[who].theme
    brightness = sum(map(int, re.findall(r"\d+", seen.facts["paper"])[:3])) / 3
    assert brightness > 200 if READERS[who].theme == "light" else brightness < 60


def test_policy_rules_each_page(readers, site):
    """It stands before all that it rules; what it forbids would be one of the messages above."""
    for path in [*PAGES, "index.html"]:
        begin, ruled, _ = (site / path).read_text(encoding="utf-8").partition(f'content="{booksite.POLICY}">')
        assert ruled, path
        assert not re.search("<(script|style|link)", begin), path
    forbidden = """() => new Promise((done) => {
      addEventListener("securitypolicyviolation", ({ effectiveDirective }) => done(effectiveDirective));
      new Image().src = "https://example.org/";
    })"""
    assert readers["light"].open("book/glossary.html").evaluate(forbidden) == "img-src"


def test_blocked_storage(browser, address):
    with browser.new_context() as context:
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        frame = f'<iframe sandbox="allow-scripts" src="{address}/book/times.html" width="1280" height="900"></iframe>'
        page.set_content(frame)  # to which a browser gives no storage
        inside = page.frame_locator("iframe")
        inside.locator(".theme-switch-button:visible").first.click()
        inside.locator("html[data-mode=dark], html[data-mode=light]").wait_for()
        inside.locator(".search-button__button:visible").first.click()
        inside.locator("#pst-search-dialog[open]").wait_for()
    assert errors == []


def test_full_storage(browser, address):
    with browser.new_context() as context:
        context.add_init_script(
            "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }"
        )
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/book/times.html")
        page.locator(".theme-switch-button:visible").first.click()
        page.locator("html[data-mode=dark], html[data-mode=light]").wait_for()
        page.goto(f"{address}/search.html?q=rank")
        page.locator("#search-results a").first.click()
        page.wait_for_url("**/book/**")
    assert errors == []


KEYS = "() => [localStorage, sessionStorage].flatMap((storage) => Object.keys(storage))"


def test_stored_keys(browser, address):
    """A visit that uses all of the site leaves what SECURITY.md names, and nothing else."""
    kept = set()
    with browser.new_context(viewport=WIDE_SCREEN) as context:
        page = context.new_page()
        page.goto(f"{address}/book/01-rank.html")
        page.locator(".theme-switch-button:visible").first.click()
        page.locator(".predict").first.get_by_role("button", name="Show me").click()
        form = page.locator("form.check").first
        form.locator("input").first.fill("2")
        form.get_by_role("button").click()
        for way in (f"{address}/search.html?q=rank", f"{address}/book/index.html"):
            page.goto(way)
            page.locator("#search-results a, article h1").first.wait_for()
            kept |= set(page.evaluate(KEYS))
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert kept == set(re.findall(r"`([\w-]+)`", re.search("own storage holds.*", text)[0].partition(". Browsers")[0]))


@each_page
@pytest.mark.parametrize("who", [who for who, kind in READERS.items() if kind.axe])
def test_a_page_is_accessible(readers, page, who):
    assert readers[who].see(page).axe == []


@each_visit
def test_images_have_text(readers, page, who):
    for image in readers[who].see(page).facts["images"]:
        assert image["shown"], image
        assert image["alt"], image
        assert "_images" not in image["alt"], "a file's name is no alternative text"
        if image["inside"] and "/_static/" not in image["src"]:
            assert len(image["alt"].split()) >= 6, image


@pytest.mark.parametrize(("page", "who"), [visit for visit in VISITS if visit[0] in map(address_of, CHAPTERS)])
def test_maths(readers, page, who):
    """Typeset, spoken, and no stop of the Tab key, whatever another page has stored: see ``visits.STORED``."""
    facts = readers[who].see(page).facts
    assert facts["maths"] > 10
    assert facts["mathErrors"] == []
    assert facts["spoken"] == facts["maths"]
    assert facts["mathStops"] == 0


@each_chapter
def test_first_visit_weight(readers, site, path):
    own = address_of(path)
    files = [site / file for file in set(readers["light"].see(own).local) - {own}]
    weights = {f: len(gzip.compress(f.read_bytes()) if f.suffix in TEXT else f.read_bytes()) for f in files}
    print(f"{path.stem}: {sum(weights.values()):,} bytes")
    assert sum(weights.values()) > FIRST_VISIT / 10, "what the window had kept from other pages counts, too"
    heaviest = sorted(((size, f.name) for f, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= FIRST_VISIT, heaviest


@pytest.mark.parametrize("page", PAGES)
def test_head_scripts_wait(site, page):
    head = (site / page).read_text(encoding="utf-8").partition("</head>")[0]
    blocking = re.findall(r'<script (?![^>]*defer)[^>]*src="([^"?]*)', head)
    assert [Path(file).name for file in blocking] == ["documentation_options.js"]


# What stands on a page, and how


SIZES = """
() => {
  const size = (e) => parseFloat(getComputedStyle(e).fontSize);
  const text = document.querySelector("article section > p:not([class])");
  const formulas = [...document.querySelectorAll("article .math > mjx-container")];
  return {
    serif: [...document.fonts].some((font) => font.family.includes("Source Serif") && font.status === "loaded"),
    text: size(text), width: text.getBoundingClientRect().width,
    formulas: formulas.filter((e) => e.checkVisibility() && !e.closest("table")).map(size),
  };
}
"""


@pytest.mark.parametrize("who", ["light", "dark phone"])
@each_chapter
def test_type(readers, path, who):
    found = readers[who].open(address_of(path)).evaluate(SIZES)
    assert found["serif"]
    assert found["text"] >= 17
    assert found["width"] <= 36 * 16
    assert min(found["formulas"]) >= 15
    assert max(found["formulas"]) <= 1.1 * found["text"]


def test_fonts_are_free_and_small(site):
    fonts = sorted((site / "_static/fonts").glob("*.woff2"))
    assert len(fonts) == 2
    assert all(font.stat().st_size < 70_000 for font in fonts)
    assert "SIL OPEN FONT LICENSE" in (site / "_static/fonts/OFL.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["book/02-svd-pca.html"])
def test_links_name_topics(readers, page):
    page = readers["light"].open(page)
    assert page.locator(".prev-next-title").all_inner_texts() == ["1. Matrix rank", "3. LDA, NMF and autoencoders"]
    assert not [name for name in page.locator(".bd-docs-nav a").all_inner_texts() if ":" in name]
    assert page.locator("h1 .subtitle").inner_text().startswith("cut the spectrum")


DEFINITIONS = {"equation-eq-attention", "equation-eq-linformer", "equation-eq-tail", "equation-eq-jl"}


@pytest.mark.parametrize(("page", "who"), [visit for visit in VISITS if "phone" in visit[1]])
def test_phone_overflow_is_marked(readers, page, who):
    wide = readers[who].see(page).facts["wide"]
    assert [name for name, fades in wide if not fades] == []
    assert "TABLE" not in [name for name, _ in wide], "a table too wide for a phone is stacked"
    assert DEFINITIONS.isdisjoint(name for name, _ in wide), "a definition is read without scrolling"


def test_definitions_exist(site):
    built = "".join((site / address_of(path)).read_text(encoding="utf-8") for path in CHAPTERS)
    assert DEFINITIONS <= set(re.findall(r'<div class="math[^"]*" id="([^"]+)"', built))


@each_chapter
def test_laptop_width(readers, path):
    page = readers["light"].open(address_of(path))
    assert [name for name, _ in readers["light"].see(address_of(path)).facts["wide"] if name != "PRE"] == []
    code = page.locator(".cell:not(:has(details)) .cell_input pre").first
    assert code.evaluate(
        """(pre) => {
          const { innerHTML } = pre;
          pre.textContent = "x".repeat(76);
          const fits = pre.scrollWidth <= pre.clientWidth;
          pre.innerHTML = innerHTML;
          return fits;
        }"""
    )


@each_chapter
def test_folds_and_statements_are_quiet(readers, path):
    page = readers["light"].open(address_of(path))
    look = "(all) => all.map((e) => [getComputedStyle(e).fontWeight, getComputedStyle(e).boxShadow])"
    folds = page.locator("details.hide > summary p").evaluate_all(look)
    assert folds
    assert {weight for weight, _ in folds} == {"400"}
    boxes = page.locator("details.hide, div.proof, div.exercise, div.solution, div.admonition").evaluate_all(look)
    assert {shadow for _, shadow in boxes} == {"none"}
    grounds = page.locator(".admonition section").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).backgroundColor)"
    )
    assert {*grounds} == {"rgba(0, 0, 0, 0)"}, "what a box says stands on the box's own ground"
    widths = page.locator("details.hide:not([open]) > summary").evaluate_all("(all) => all.map((e) => e.offsetWidth)")
    assert max(widths) < 300, "no bar across the page"


@each_chapter
def test_step_formula_spacing(readers, path):
    page = readers["light"].open(address_of(path))
    gaps = page.evaluate(
        """() => [...document.querySelectorAll(
            ".cell:not(.tag_side-by-side) > .cell_output > p + div.math")].map((formula) => {
          const drawn = formula.querySelector("mjx-math").getBoundingClientRect();
          const before = formula.previousElementSibling.getBoundingClientRect();
          const after = formula.nextElementSibling?.getBoundingClientRect();
          return [drawn.top - before.bottom, after ? after.top - drawn.bottom : Infinity];
        })"""
    )
    for above, below in gaps:
        assert 0 <= above <= 16
        assert below >= 2 * above
        assert below >= 24


def test_card_again(tmp_path):
    for name in ("once.svg", "twice.svg"):
        cards.thumbnail("spectrum", tmp_path / name)
    assert (tmp_path / "once.svg").read_bytes() == (tmp_path / "twice.svg").read_bytes()


def test_line_in_pieces():
    pieces = [("proof ", "stdout"), ("careful\n", "stderr"), ("from\n", "stdout"), ("here\n", "stdout")]
    outputs = [NotebookNode(output_type="stream", name=name, text=text) for text, name in pieces]
    joined = {output.name: output.text for output in booksite.join_streams(outputs)}
    assert joined == {"stdout": "proof from\nhere\n", "stderr": "careful\n"}


LIGHTER = {
    "<p>\n\n   a <em>b</em>\n  c</p><!-- a\n note -->": "<p>\na <em>b</em>\nc</p>",
    '<pre><span></span><span class="k">if</span> <span class="n">a</span>\n\n  <span class="mi">1</span></pre>\n <p>': (
        '<pre><span class="k">if</span> a\n\n  1</pre>\n<p>'
    ),
    "<script>\n  `a\n  b` <!-- c -->\n</script>": "<script>\n  `a\n  b` <!-- c -->\n</script>",
    '<a class="reference internal" href="a.html"><span class="std std-doc">A</span></a>': '<a href="a.html">A</a>',
    '<a class="reference internal" href="#t" title="t"><span class="xref std std-term">t</span></a>': (
        '<a href="#t" title="t"><span class="std-term">t</span></a>'
    ),
    '<span class="label"><span class="fn-bracket">[</span>1<span class="fn-bracket">]</span></span>\n<p>a': "<p>a",
}


@pytest.mark.parametrize("page", LIGHTER)
def test_lighter_page(page):
    assert booksite._lighter(page) == LIGHTER[page]
    assert booksite._lighter(LIGHTER[page]) == LIGHTER[page]


# From outside


@pytest.fixture(scope="module")
def descriptions(site):
    """Read from the files: a test opens only its own page."""
    return {page: re.search(DESCRIPTION, (site / page).read_text(encoding="utf-8")) for page in PAGES}


@each_page
def test_page_metadata(readers, site, descriptions, page):
    facts = readers["light"].see(page).facts
    meta, repository = facts["meta"], yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    owner, name = repository["url"].split("/")[-2:]
    own = page not in ("search.html", "py-modindex.html")  # which Sphinx makes by itself
    home = f"https://{owner}.github.io/{name}/"
    assert 40 <= len(meta["description"]) <= 170
    assert meta["description"] == meta["og:description"]
    assert meta["og:title"] in facts["title"] or not own
    assert meta["og:url"] == home + page
    assert meta["og:image"].startswith(home + "_static/cards/")
    with Image.open(site / meta["og:image"].removeprefix(home)) as picture:
        assert picture.size == (1200, 630)
    if own and page != HOME:
        said = escape(meta["description"])
        assert [other for other, found in descriptions.items() if found and found[1] == said] == [page]


# The landing page


@pytest.mark.parametrize("who", ["light", "dark phone"])
def test_landing_figure(readers, who):
    page = readers[who].open(HOME)
    kinds = page.locator("article section > *").evaluate_all("(all) => all.slice(0, 3).map((e) => e.tagName)")
    assert kinds == ["H1", "P", "FIGURE"]
    assert not page.locator(".bd-sidebar-primary, .bd-sidebar-secondary").locator("visible=true").count()
    figure = page.locator('figure.instrument[data-name="sheets"]')
    ring = figure.get_by_role("slider", name="sheets that are kept")
    page.evaluate("scrollTo(0, 0)")
    box = ring.locator(".hit").bounding_box()
    assert box["y"] + box["height"] < page.viewport_size["height"], "the handle is on the first screen"
    for key, shown in (("Home", ["56%", "31%"]), ("ArrowRight", ["19%", "6%"]), ("ArrowRight", ["8%", "2%"])):
        ring.press(key)
        page.wait_for_function(
            "([all, shown]) => [...all.querySelectorAll('data')].map((d) => d.textContent).join() === shown.join()",
            arg=[figure.element_handle(), shown],
        )
    doors = page.locator("article section > figure + p a")
    assert doors.evaluate_all("(all) => all.map((a) => a.getAttribute('href'))") == [
        f"{CHAPTERS[i].stem}.html" for i in (0, 5)
    ]


def test_landing_cards(readers):
    cards = readers["light"].open(HOME).locator("ol.chapters > li")
    assert cards.count() == len(CHAPTERS)
    pictures = set()
    for number, (card, path) in enumerate(zip(cards.all(), CHAPTERS, strict=True), start=1):
        title = re.search("^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]
        topic, verb = title.split(": ")
        assert card.locator("a").inner_text().split("\n") == [f"{number}. {topic}", verb]
        assert card.locator("a").get_attribute("href") == f"{path.stem}.html"
        assert len(card.locator("p").last.inner_text().split()) >= 10
        pictures.add(card.locator("img").get_attribute("src"))
        assert card.locator("img").bounding_box()["width"] >= 150
    assert len(pictures) == len(CHAPTERS)


def test_landing_page_weight(browser, address, site):
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/{HOME}")
        settle(page)
        moved = page.evaluate(
            """() => new Promise((done) => {
              const words = (e) => (e.node?.outerHTML ?? "").slice(0, 80);
              new PerformanceObserver((list) => done(list.getEntries().map((e) => [e.value, e.sources.map(words)])))
                .observe({ type: "layout-shift", buffered: true });
              setTimeout(() => done([]), 500);
            })"""
        )
    files = {site / url.removeprefix(f"{address}/").partition("?")[0] for url in asked if url.startswith(address)}
    weights = {f.name: len(gzip.compress(f.read_bytes()) if f.suffix in TEXT else f.read_bytes()) for f in files}
    print(f"the landing page: {sum(weights.values()):,} bytes")
    assert sum(weights.values()) <= FIRST_VISIT, sorted(weights.items(), key=lambda w: -w[1])[:5]
    assert not any("mathjax" in url for url in asked), "it has no formula"
    assert sum(share for share, _ in moved) < 0.05, moved  # a slow machine paints earlier; 0.1 is called good


def test_site_weight(site):
    weights = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    print(f"the site: {sum(weights.values()):,} bytes")
    heaviest = sorted(((size, path.name) for path, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= WHOLE, heaviest


SPOILED = {
    "color-contrast": '<p style="color: #999; background: #fff">Words too pale to read.</p>',
    "link-in-text-block": (
        '<p style="color: #000">More words stand here, before <a href="#x" style="color: #333; text-decoration: none">'
        "a link</a>, than in it.</p>"
    ),
    "image-alt": '<img src="data:,">',
    "button-name": "<button></button>",
    "label": "<input>",
}


@pytest.mark.parametrize(("rule", "html"), SPOILED.items(), ids=SPOILED)
def test_axe_finds_defects(readers, rule, html):
    """Pale words and their kin among all the others of a page, of whose looks only samples are taken."""
    page = readers["light"].open("book/glossary.html")
    page.evaluate("html => document.querySelector('article section').insertAdjacentHTML('beforeend', html)", html)
    found = [violation.split()[0] for violation in violations(page)]
    page.evaluate("document.querySelector('article section').lastElementChild.remove()")
    assert rule in found
