"""Every page of the built site, as four readers meet it: light and dark, wide and narrow, over http
and from a file.
"""

import gzip
import re
from html import escape
from pathlib import Path

import landing
import pytest
import yaml
from chapters import CHAPTERS, ROOT, each_chapter
from nbformat import NotebookNode
from PIL import Image
from theme.head import POLICY
from theme.trees import join_streams
from visits import PAGES, READERS, SAMPLES, VISITS, address_of, violations

HOME = "book/index.html"
WIDE_SCREEN = {"width": 1280, "height": 900}
DESCRIPTION = r'<meta name="description" content="([^"]*)"'

FIRST_VISIT = 1_050_000  # bytes of theme, maths, and the figures' scripts and styles, text gzipped
WHOLE = 24_000_000  # bytes of the site
TEXT = {".html", ".css", ".js", ".json", ".svg"}

each_page = pytest.mark.parametrize("page", PAGES)
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
        begin, ruled, _ = (
            (site / path).read_text(encoding="utf-8").partition(f'content="{POLICY}">')
        )
        assert ruled, path
        assert not re.search("<(script|style|link)", begin), path
    forbidden = """() => new Promise((done) => {
      addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
        done(effectiveDirective));
      new Image().src = "https://example.org/";
    })"""
    assert readers["light"].open("book/glossary.html").evaluate(forbidden) == "img-src"


def test_blocked_storage(browser, address):
    with browser.new_context() as context:
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        frame = (
            f'<iframe sandbox="allow-scripts" src="{address}/book/glossary.html" width="1280" '
            'height="900"></iframe>'
        )
        page.set_content(frame)  # to which a browser gives no storage
        inside = page.frame_locator("iframe")
        inside.locator(".theme-switch-button:visible").first.click()
        inside.locator("html[data-mode=dark], html[data-mode=light]").wait_for()
        inside.locator(".search-button__button:visible").first.click()
        inside.locator("#pst-search-dialog[open]").wait_for()
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
        form = page.locator("form.check:not([data-kind])").first
        form.locator("input").first.fill("2")
        form.get_by_role("button").click()
        page.locator("#practice-storage > summary").click()
        for wrong in "123":
            for field in page.locator("#practice-storage input").all():
                field.fill(wrong)
            field.press("Enter")
        for way in (f"{address}/search.html?q=rank", f"{address}/book/index.html"):
            page.goto(way)
            page.locator("#search-results a, article h1").first.wait_for()
            kept |= set(page.evaluate(KEYS))
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert kept == set(
        re.findall(
            r"`([\w-]+)`", re.search("own storage holds.*", text)[0].partition(". Browsers")[0]
        )
    )


@pytest.mark.parametrize(
    ("page", "who"),
    [*((page, "light") for page in PAGES), *((page, "dark phone") for page in SAMPLES)],
)
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


@pytest.mark.parametrize(
    ("page", "who"), [visit for visit in VISITS if visit[0] in map(address_of, CHAPTERS)]
)
def test_maths(readers, page, who):
    """Typeset, spoken, and no stop of the Tab key, whatever another page has stored: see
    ``visits.STORED``.
    """
    facts = readers[who].see(page).facts
    assert facts["maths"] > 10
    assert facts["mathErrors"] == []
    assert facts["spoken"] == facts["maths"]
    assert facts["mathStops"] == 0


@each_chapter
def test_first_visit_weight(readers, site, path):
    own = address_of(path)
    files = [site / file for file in set(readers["light"].see(own).local) - {own}]
    weights = {
        f: len(gzip.compress(f.read_bytes()) if f.suffix in TEXT else f.read_bytes()) for f in files
    }
    print(f"{path.stem}: {sum(weights.values()):,} bytes")
    assert sum(weights.values()) > FIRST_VISIT / 10, (
        "what the window had kept from other pages counts, too"
    )
    heaviest = sorted(((size, f.name) for f, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= FIRST_VISIT, heaviest


@pytest.mark.parametrize("page", PAGES)
def test_head_scripts_wait(site, page):
    head = (site / page).read_text(encoding="utf-8").partition("</head>")[0]
    blocking = re.findall(r'<script (?![^>]*defer)[^>]*src="([^"?]*)', head)
    assert [Path(file).name for file in blocking] == ["documentation_options.js"]


# What stands on a page, and how


DEFINITIONS = {
    "equation-eq-attention",
    "equation-eq-linformer",
    "equation-eq-tail",
    "equation-eq-jl",
}


@pytest.mark.parametrize(("page", "who"), [visit for visit in VISITS if "phone" in visit[1]])
def test_phone_overflow_is_marked(readers, page, who):
    wide = readers[who].see(page).facts["wide"]
    assert [name for name, fades in wide if not fades] == []
    assert "TABLE" not in [name for name, _ in wide], "a table too wide for a phone is stacked"
    assert DEFINITIONS.isdisjoint(name for name, _ in wide), (
        "a definition is read without scrolling"
    )


def test_line_in_pieces():
    pieces = [
        ("proof ", "stdout"),
        ("careful\n", "stderr"),
        ("from\n", "stdout"),
        ("here\n", "stdout"),
    ]
    outputs = [NotebookNode(output_type="stream", name=name, text=text) for text, name in pieces]
    joined = {output.name: output.text for output in join_streams(outputs)}
    assert joined == {"stdout": "proof from\nhere\n", "stderr": "careful\n"}


# From outside


@pytest.fixture(scope="module")
def descriptions(site):
    """Read from the files: a test opens only its own page."""
    return {
        page: re.search(DESCRIPTION, (site / page).read_text(encoding="utf-8")) for page in PAGES
    }


@each_page
def test_page_metadata(readers, site, descriptions, page):
    facts = readers["light"].see(page).facts
    meta, repository = (
        facts["meta"],
        yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"],
    )
    owner, name = repository["url"].split("/")[-2:]
    own = page not in ("search.html", "py-modindex.html")  # which Sphinx makes by itself
    home = f"https://{owner}.github.io/{name}/"
    assert 40 <= len(meta["description"]) <= 170
    assert meta["description"] == meta["og:description"]
    assert meta["og:title"] in facts["title"] or not own
    assert meta["og:url"] == home + page
    assert meta["og:image"] == home + landing.PREVIEW
    if own and page != HOME:
        said = escape(meta["description"])
        assert [other for other, found in descriptions.items() if found and found[1] == said] == [
            page
        ]


# The landing page


@pytest.mark.parametrize("who", ["light", "dark phone"])
def test_landing_figure(readers, who):
    page = readers[who].open(HOME)
    kinds = page.locator("article section > *").evaluate_all(
        "(all) => all.slice(0, 3).map((e) => e.tagName)"
    )
    assert kinds == ["H1", "P", "FIGURE"]
    assert (
        not page.locator(".bd-sidebar-primary, .bd-sidebar-secondary")
        .locator("visible=true")
        .count()
    )
    lever = page.get_by_role("slider", name="Damage to both tables")
    page.evaluate("scrollTo(0, 0)")
    box = lever.locator(".hit").bounding_box()
    assert box["y"] + box["height"] < page.viewport_size["height"], (
        "the handle is on the first screen"
    )
    figure = page.locator("figure.instrument").first
    controls = figure.locator(":is(input, select, button, [role=slider]):visible").count()
    assert controls <= 8
    lever.press("Home")
    lever.press("PageDown")
    figure.locator("output", has_text="5%").wait_for()
    doors = page.locator("article section > h1 + p a")
    assert doors.evaluate_all("(all) => all.map((a) => a.getAttribute('href'))") == [
        f"{CHAPTERS[i].stem}.html" for i in (0, 5)
    ]
    if who == "light":
        assert doors.first.bounding_box()["y"] < 400
    assert page.locator('figure[data-name="storyteller"] [role=slider]').count() == 1


def test_landing_cards(readers):
    cards = readers["light"].open(HOME).locator("ol.chapters > li")
    assert cards.locator("a").evaluate_all("(all) => all.map((a) => a.getAttribute('href'))") == [
        f"{path.stem}.html" for path in CHAPTERS
    ]
    assert len(
        set(cards.locator("svg").evaluate_all("(all) => all.map((e) => e.innerHTML)"))
    ) == len(CHAPTERS)


def test_axe_finds_defects(readers):
    """Among all others of a page, of whose looks only samples are taken."""
    page = readers["light"].open("book/glossary.html")
    pale = '<p style="color: #999; background: #fff">Words too pale to read.</p>'
    page.evaluate(
        "html => document.querySelector('article section').insertAdjacentHTML('beforeend', html)",
        pale,
    )
    found = [violation.split()[0] for violation in violations(page)]
    page.evaluate("document.querySelector('article section').lastElementChild.remove()")
    assert "color-contrast" in found


def test_preview(site):
    with Image.open(site / landing.PREVIEW) as picture:
        assert picture.size == (1200, 630)


def test_site_weight(site):
    weights = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    print(f"the site: {sum(weights.values()):,} bytes")
    heaviest = sorted(((size, path.name) for path, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= WHOLE, heaviest
