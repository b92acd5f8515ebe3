"""Links and numbers of the built site: each leads somewhere, each is the one that is meant, none is
given twice.
"""

import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import urlopen

import pytest
import yaml
from chapters import CHAPTERS, ROOT, each_chapter
from PIL import Image
from theme.finished import MOVED
from visits import PAGES, address_of

each_page = pytest.mark.parametrize("page", PAGES)


class Read(HTMLParser):
    """A page's anchors and links, without a browser."""

    def __init__(self, path):
        super().__init__()
        self.ids = []
        self.links = []
        self.figures = []  # an address may name one with a state, such as #tilt=k:7
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id" and value:
                self.ids.append(value)
            if key == "data-name" and tag == "figure":
                self.figures.append(value)
            if (
                key in ("href", "src")
                and value
                and tag != "base"
                and ("rel", "canonical") not in attrs
            ):
                self.links.append(value)

    def has(self, anchor):
        figure, state, _ = anchor.partition("=")
        return figure in self.figures if state else anchor in self.ids


@pytest.fixture(scope="session")
def pages(site):
    return {page: Read(site / page) for page in PAGES}


# Places


OLD = {  # an old address, and where it leads
    "gpu.html#try-your-own-card": "measured.html#try-your-own-card",
    "packages.html#other-tools": "measured.html#other-tools",
    "notation.html#notation": "glossary.html#notation",
    "api.html#lowrank_tutor.svd.tail_error": "cheat-sheet.html#lowrank_tutor.svd.tail_error",
    "09-states.html#past": "10-states.html#past",
    "09-states.html#album=written:8": "10-states.html#album=written:8",
}


def test_old_addresses(site, visit, address):
    page = visit("book/teach.html")
    page.wait_for_url(f"{address}/book/index.html")
    # Each page is empty, but for those that only lead on.
    page.route(
        re.compile(rf"/book/(?!{'|'.join(page.removeprefix('book/') for page in MOVED)})"),
        lambda route: route.fulfill(body="", content_type="text/html"),
    )
    for old, new in OLD.items():
        page.goto(f"{address}/book/{old}")
        page.wait_for_url(f"{address}/book/{new}")
    for settings in ({}, {"java_script_enabled": False}):
        still = visit("book/09-states.html", base=site.as_uri(), **settings)
        still.wait_for_url("file:**/book/10-states.html")


@each_page
def test_inside_links(site, pages, page):
    dead = []
    for link in pages[page].links:
        there, anchor = urldefrag(urljoin(f"http://site/{page}", link))
        parts = urlsplit(there)
        if parts.scheme != "http" or parts.netloc != "site":
            continue
        if re.match(r"#[\w-]+=\w+:", link):  # it sets a figure: test_links_set_figures
            continue
        target = unquote(parts.path).lstrip("/") or "index.html"
        if not (site / target).is_file() or (
            anchor and target in pages and not pages[target].has(unquote(anchor))
        ):
            dead.append(link)
    assert dead == []


@each_page
def test_links_set_figures(readers, pages, page):
    """Each link of the text that sets a figure finds one of its page, which understands the state
    and goes there.
    """
    links = [link for link in pages[page].links if re.match(r"#[\w-]+=\w+:", link)]
    if not links:
        return
    at = readers["light"].open(page)
    for link in links:
        name = link[1:].partition("=")[0]
        at.locator(f'a[href="{link}"]').first.evaluate(
            "(a) => a.closest('.answer, details') || a.click()"
        )
        shown = at.evaluate(
            """([name, wished]) => new Promise((done) => setTimeout(() => {
              const { instrument } =
                document.querySelector(`figure.instrument[data-name="${name}"]`);
              const state = instrument.state();
              done(wished.split(";")
                .every((part) => String(state[part.split(":")[0]]) === part.split(":")[1]));
            }, 300))""",
            [name, link.partition("=")[2]],
        )
        assert shown, link


@each_page
def test_unique_identifiers(pages, page):
    assert [name for name, times in Counter(pages[page].ids).items() if times > 1] == []


def test_functions_link_back(site):
    page = (site / "book/cheat-sheet.html").read_text(encoding="utf-8")
    entries = re.split(r'<dt class="sig sig-object py" id="(lowrank_tutor\.\w+\.\w+)"', page)[1:]
    used = {
        name: re.findall(r'<p class="in-the-book">.*?</p>', text, re.S)
        for name, text in zip(entries[::2], entries[1::2], strict=True)
    }
    functions = [
        name for name in used if name.rpartition(".")[2].islower() and "sphinxext" not in name
    ]
    tools = {f"lowrank_tutor.kit.charts.{name}" for name in ("styled", "panel", "photograph")}
    tools |= {"lowrank_tutor.sentence.attention"}
    assert {name for name in functions if not used[name]} <= tools  # for figures of one's own
    assert 'href="02-svd-pca.html">' in used["lowrank_tutor.svd.tail_error"][0]


def test_outside_links_are_listed(pages):
    hosts = {
        urlsplit(link).netloc
        for read in pages.values()
        for link in read.links
        if link.startswith("http")
    }
    text = (ROOT / "book/bibliography.md").read_text(encoding="utf-8")
    listed = re.search(r"^## Links that leave.*", text, re.M | re.S)
    assert hosts == set(re.findall(r"^\| `([\w.-]+)` \| [^|]{20,} \|$", listed[0], re.M))
    assert not [link for read in pages.values() for link in read.links if link.startswith("http:")]


def test_root_redirects(readers, address):
    page = readers["light"].window.page
    page.goto(f"{address}/")
    page.wait_for_url(f"{address}/book/index.html")


def test_lost_address(site):
    """Its links begin at the root of the host, since a server shows it at any depth."""
    links = Read(site / "404.html").links
    assert links
    assert all((site / link.removeprefix("/lowrank-tutor/")).is_file() for link in links)


def test_canonical_address(site):
    text = (site / "book/budget.html").read_text(encoding="utf-8")
    (found,) = re.findall(r'<link rel="canonical" href="([^"]*)"', text)
    assert found.startswith("https://")
    assert found.endswith("/book/budget.html")


def test_favicon(address):
    with urlopen(f"{address}/favicon.ico") as answer:
        assert answer.status == 200
        assert Image.open(io.BytesIO(answer.read())).format == "ICO"


# What a chapter's page says of itself, to the reader who comes by day


@pytest.fixture
def facts(readers, path):
    return readers["light"].see(address_of(path)).facts


@each_chapter
def test_numbers_and_references(facts, path):
    number = 1 + CHAPTERS.index(path)  # numbers follow the table of contents
    equations = facts["equations"]
    assert equations
    assert list(equations.values()) == [f"({number}.{i})" for i in range(1, len(equations) + 1)]
    kinds = {}
    for _, title in facts["statements"]:
        found = re.match(r"(Theorem|Definition|Example|Exercise|Lemma|Corollary) ([\d.]+)", title)
        assert found, title
        kinds.setdefault(found[1], []).append(found[2])
    assert {"Theorem", "Exercise"} <= kinds.keys()
    for numbers in kinds.values():
        assert numbers == [f"{number}.{i}" for i in range(1, len(numbers) + 1)]
    titles = dict(facts["statements"])
    referred = 0
    for target, text in facts["references"]:
        if target in equations:
            referred += 1
            assert text == equations[target]
        elif target in titles:
            referred += 1
            assert titles[target].startswith(text)
            assert re.search(r"\d", text), text
    assert referred


@each_chapter
def test_colab_button(facts, path):
    repository = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    where = repository["url"].removeprefix("https://github.com/") + f"/blob/{repository['branch']}"
    assert (
        facts["colab"][0]
        == f"https://colab.research.google.com/github/{where}/book/{path.stem}.ipynb"
    )


@each_chapter
def test_download(facts, address, path):
    with urlopen(urljoin(f"{address}/{address_of(path)}", facts["download"][0])) as answer:
        served = answer.read()
    assert served == path.with_suffix(".ipynb").read_bytes(), "run make notebooks, then make book"
    assert json.loads(served)["cells"]
