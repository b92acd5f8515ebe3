"""The printed edition: every statement numbered, every solution unfolded, every explorer's first frame.

All of the book must fit onto the paper; two chapters are printed, because printing takes minutes. It needs `make book`
first, and a browser, as the tests of the site do.
"""

import html
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pikepdf
import print_book
import pytest
from chapters import CHAPTERS, ROOT, explorers
from pypdfium2 import PdfDocument
from visits import address_of, block, title_of

PRINTED = CHAPTERS[:2]
pytestmark = pytest.mark.xdist_group("test_print")  # which prints once
LEAVE = """
(kept) => document.querySelectorAll(".toctree-wrapper > section").forEach((section) => {
  if (!kept.includes(section.querySelector(':scope > span[id^="document-"]').id)) section.remove();
})
"""


def bare(text: str) -> str:
    """Letters and digits alone: paper breaks lines where it likes, and joins f and i."""
    return re.sub(r"[^0-9A-Za-z]", "", unicodedata.normalize("NFKC", text))


@pytest.fixture(scope="module")
def pdf(site, browser, tmp_path_factory) -> Iterator[pikepdf.Pdf]:
    build = [Path(sys.executable).with_name("jupyter-book"), "build", ROOT, "--builder", "custom"]
    subprocess.run([*build, "--custom-builder", "singlehtml"], check=True, capture_output=True)
    path = tmp_path_factory.mktemp("paper") / "book.pdf"
    page = browser.new_page(viewport=print_book.TEXT)
    print_book.open_book(page)
    page.evaluate(LEAVE, [f"document-book/{path.stem}" for path in PRINTED])
    print_book.print_pages(page, path)
    page.close()
    with pikepdf.open(path) as document:
        yield document


@pytest.fixture(scope="module")
def pages(pdf) -> list[str]:
    with PdfDocument(pdf.filename) as document:  # in a fifteenth of the time that pypdf takes
        return [page.get_textpage().get_text_range() for page in document]


def test_bookmarks_and_metadata(pdf):
    bookmarks = " ".join(str(entry.Title) for entry in print_book.bookmarks(pdf.Root.Outlines))
    places = [bookmarks.index(f"{number}. {title_of(path)}") for number, path in enumerate(PRINTED, start=1)]
    assert places == sorted(places)
    assert bookmarks.count(title_of(PRINTED[0])) == 1, "the browser writes it twice"
    assert (pdf.docinfo.Title, pdf.docinfo.Author) == ("Low-Rank Attention", print_book.edition()[1])
    assert pdf.Root.Lang == "en"
    assert pdf.Root.MarkInfo.Marked, "tagged for screen readers"


def test_contents_name_pages(pages):
    lines = "\n".join(line for page in pages[:9] for line in page.splitlines())
    listed = re.findall(r"(?:^| )(\d\.(?:\d+\.)?) (.+?) (\d+)(?= \d\.|$)", lines, re.MULTILINE)  # two columns
    assert len(listed) > 10
    for number, words, page in listed:
        assert bare(number + words) in bare(pages[int(page) - 1]), f"{number} {words} is not on page {page}"


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: path.stem)
def test_text_is_complete(site, pages, path):
    """Numbered items, solutions with their code, and explorers with the words and numbers of their page."""
    text, built = bare("".join(pages)), (site / address_of(path)).read_text(encoding="utf-8")
    titles = [re.sub("<[^>]+>", "", title) for title in re.findall(r'<p class="admonition-title".*?</p>', built, re.S)]
    numbered = [name[0] for title in titles if (name := re.match(r"(Solution to )?[A-Z][a-z]+ \d+\.\d+", title))]
    assert len(numbered) > 10
    source = path.read_text(encoding="utf-8")
    solutions = re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.MULTILINE | re.DOTALL)
    cells = [re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", one, re.MULTILINE | re.DOTALL)[-1] for one in solutions]
    wanted = numbered + [cell.strip().splitlines()[-1] for cell in cells]
    for name in [name for name, of in explorers().items() if of == path]:
        shown = html.unescape(block(site / address_of(path), name))
        words = re.findall(r"<figcaption>(.+)</figcaption>|<dt>(.+?)</dt>|<data[^>]*>(.+?)</data>", shown)
        assert len(words) >= 3, name
        wanted += map("".join, words)
    assert [word for word in wanted if bare(word) not in text] == []


def test_no_screen_words(pages):
    text = "".join(pages)
    assert [words for words in ("Show the code", "Click to", "Put your answer") if words in text] == []
    assert [number for number, page in enumerate(pages, start=1) if len(bare(page)) < 20] == []
