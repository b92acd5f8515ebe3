"""The printed edition: every statement numbered, every solution unfolded, every explorer's first
frame. And the EPUB.

All of the book must fit onto the paper; then one chapter stays, which is printed and bound, because
with all of them each photograph of a figure takes seconds. It needs `make book` first, and a
browser, as the tests of the site do.
"""

import html
import posixpath
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZIP_STORED, ZipFile

import make_epub
import print_book
import publish
import pytest
from chapters import CHAPTERS, ROOT, explorers
from fontTools.ttLib import TTFont
from pypdfium2 import PdfDocument
from visits import address_of, block, title_of

PATH = CHAPTERS[1]
MARK = f'[id="document-book/{PATH.stem}"]'
SVG = "{http://www.w3.org/2000/svg}"
MATH, XHTML = "{http://www.w3.org/1998/Math/MathML}", "{http://www.w3.org/1999/xhtml}"
pytestmark = pytest.mark.xdist_group("test_print")  # which prints once


def bare(text):
    """Letters and digits alone: paper breaks lines where it likes, and joins f and i."""
    return re.sub(r"[^0-9A-Za-z]", "", unicodedata.normalize("NFKC", text))


@pytest.fixture(scope="module")
def made(site, browser, tmp_path_factory):
    """The printed chapter, the bound one, and how many formulas the browser shows in it."""
    build = "build", ROOT, "--builder", "custom", "--custom-builder", "singlehtml"
    subprocess.run(
        [Path(sys.executable).with_name("jupyter-book"), *build], check=True, capture_output=True
    )
    pdf = tmp_path_factory.mktemp("paper") / "book.pdf"
    page = browser.new_page(viewport=print_book.TEXT)
    print_book.prepare(page)
    assert page.evaluate("printing.fit()") == []
    page.locator(f".toctree-wrapper > section:not(:has(> {MARK}))").evaluate_all(
        "(all) => all.forEach((page) => page.remove())"
    )
    make_epub.make_epub(page, epub := pdf.with_suffix(".epub"))
    print_book.print_book(page, pdf)
    formulas = page.locator(f"section:has(> {MARK}) mjx-container").count()
    page.close()
    return pdf, epub, formulas


@pytest.fixture(scope="module")
def pages(made):
    """The words of each printed page."""
    with PdfDocument(made[0]) as document:
        assert any(title_of(PATH) in mark.get_title() for mark in document.get_toc()), (
            "the bookmarks name the chapter"
        )
        return [page.get_textpage().get_text_range() for page in document]


def test_text_is_complete(site, pages):
    """Numbered items, solutions with their code, and explorers with the words and numbers of their
    page.
    """
    text, built = bare("".join(pages)), (site / address_of(PATH)).read_text(encoding="utf-8")
    titles = [
        re.sub("<[^>]+>", "", title)
        for title in re.findall(r'<p class="admonition-title".*?</p>', built, re.S)
    ]
    numbered = [
        name[0]
        for title in titles
        if (name := re.match(r"(Solution to )?[A-Z][a-z]+ \d+\.\d+", title))
    ]
    assert len(numbered) >= 10
    source = PATH.read_text(encoding="utf-8")
    solutions = re.findall(
        r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.MULTILINE | re.DOTALL
    )
    cells = [
        re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)[-1]
        for part in solutions
    ]
    wanted = numbered + [cell.strip().splitlines()[-1] for cell in cells]
    for name in [name for name, of in explorers().items() if of == PATH]:
        shown = html.unescape(block(site / address_of(PATH), name))
        words = re.findall(
            r"<figcaption>(.+)</figcaption>|<div><dt>(.+?)</dt><dd><data[^>]*>(.+?)</data>", shown
        )
        assert words, name
        wanted += sum(words, ())
    assert [word for word in wanted if bare(word) not in text] == []


def test_no_screen_words(pages):
    assert not re.search("Show the code|Click to|Put your answer", "".join(pages))
    assert min(len(bare(page)) for page in pages) >= 20


def test_page_from_browser(site, browser, tmp_path):
    """Who prints a page of the site gets its title, dark ink, and nothing of the theme's."""
    with browser.new_page(color_scheme="dark") as page:
        page.goto((site / address_of(PATH)).as_uri())
        page.pdf(path=tmp_path / "page.pdf")
        page.emulate_media(media="print")
        ink = page.locator("article").evaluate("(e) => getComputedStyle(e).color")
    assert ink == "rgb(28, 36, 48)"
    with PdfDocument(tmp_path / "page.pdf") as document:
        text = "".join(sheet.get_textpage().get_text_range() for sheet in document)
    assert bare(text).startswith(bare(f"{int(PATH.stem[:2])}. {title_of(PATH)}"))
    assert not re.search("Contents|Click to|Show the code|Code of this", text)


@pytest.fixture(scope="module")
def bound(made):
    """The files of the EPUB that are XML."""
    with ZipFile(made[1]) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", ZIP_STORED)
        assert archive.read(first) == b"application/epub+zip"
        names = {name for name in archive.namelist() if name.endswith((".xhtml", ".opf", ".xml"))}
        files = {name: ElementTree.fromstring(archive.read(name)) for name in names}
        items = {
            item.get("href"): item
            for item in files["content.opf"].iter("{http://www.idpf.org/2007/opf}item")
        }
        assert {*items} == {*archive.namelist()} - {
            "mimetype",
            "content.opf",
            "META-INF/container.xml",
        }
    for kind, tag in {"mathml": f"{MATH}math", "svg": f"{SVG}svg"}.items():
        assert {name for name, item in items.items() if kind in item.get("properties", "")} == {
            name for name, file in files.items() if file.find(f".//{tag}") is not None
        }
    spine = [
        item.get("idref")
        for item in files["content.opf"].iter("{http://www.idpf.org/2007/opf}itemref")
    ]
    assert {items[name].get("id") for name in names & {*items}} == {*spine}
    return files


def test_epub_links(made, bound):
    """Each link and picture leads to a place in the archive, and each place has one name."""
    names = {
        name: [e.get("id") for e in file.iter() if e.get("id")] for name, file in bound.items()
    }
    assert [name for name, ids in names.items() if len(ids) != len({*ids})] == []
    targets = {f"{name}#{one}" for name, ids in names.items() for one in ids} | set(
        ZipFile(made[1]).namelist()
    )
    links = {
        posixpath.normpath(link if link[0] != "#" else name + link)
        for name, file in bound.items()
        for element in file.iter()
        if name.endswith(".xhtml") and (link := element.get("href") or element.get("src"))
    }
    assert {link for link in links if not link.startswith("http")} - targets == set()
    assert any(link.startswith(f"{PATH.stem}.xhtml#") for link in links)


def test_epub_chapter(made, bound):
    """A chapter keeps its words and formulas, and nothing that needs a script."""
    chapter = bound[f"{PATH.stem}.xhtml"]
    tags = [element.tag.removeprefix(XHTML) for element in chapter.iter()]
    assert tags.count(f"{MATH}math") == made[2] > 100
    letters = {
        *"".join("".join(formula.itertext()) for formula in chapter.iter(f"{MATH}math")).split()
    } | {"√"}
    font = TTFont(make_epub.HERE / make_epub.FONT).getBestCmap()
    assert {letter for letter in "".join(letters) if ord(letter) not in font} == set(), (
        "take more of STIX Two Math"
    )
    screen = "script style noscript button form input canvas mjx-container"
    assert not {*tags} & {*screen.split()}
    assert [e.get("src") for e in chapter.iter(f"{XHTML}img") if e.get("alt") is None] == []


def test_published_files(site, tmp_path):
    """The front page links what `make publish` makes, and without it says how to."""
    home = tmp_path / "site/book/index.html"
    home.parent.mkdir(parents=True)
    home.write_text(
        text := (site / "book/index.html").read_text(encoding="utf-8"), encoding="utf-8"
    )
    assert print_book.PDF.name not in text
    files = [tmp_path / f"{print_book.PDF.stem}.{kind}" for kind in publish.FILES]
    for size, file in enumerate(files, start=1):
        file.write_bytes(bytes(100_000 * size))
    publish.publish(tmp_path, tmp_path / "site")
    links = re.findall(
        r'<li><a href="../([^"]+)">.*</a> \((.*) MB\)', home.read_text(encoding="utf-8")
    )
    assert links == [(file.name, f"0.{size}") for size, file in enumerate(files, start=1)]
    assert all((tmp_path / "site" / name).exists() for name, _ in links)
    assert "make pdf" not in re.sub("<[^>]+>", "", home.read_text(encoding="utf-8"))
