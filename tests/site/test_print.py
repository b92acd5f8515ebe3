"""The printed edition: the whole book, every statement numbered, every solution unfolded, every explorer's first frame.

It needs ``make book`` first, and a browser, as the tests of the site do.
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
from visits import address_of, block


def bare(text: str) -> str:
    """Letters and digits alone: paper breaks lines where it likes, and joins f and i."""
    return re.sub(r"[^0-9A-Za-z]", "", unicodedata.normalize("NFKC", text))


@pytest.fixture(scope="module")
def pdf(site, browser) -> Iterator[pikepdf.Pdf]:
    build = [Path(sys.executable).with_name("jupyter-book"), "build", ROOT, "--builder", "custom"]
    subprocess.run([*build, "--custom-builder", "singlehtml"], check=True, capture_output=True)
    page = browser.new_page(viewport=print_book.TEXT)
    print_book.print_book(page, print_book.PDF)
    page.close()
    with pikepdf.open(print_book.PDF) as document:
        yield document


@pytest.fixture(scope="module")
def pages(pdf) -> list[str]:
    with PdfDocument(print_book.PDF) as document:  # in a fifteenth of the time that pypdf takes
        return [page.get_textpage().get_text_range() for page in document]


def test_bookmarks_and_metadata(pdf):
    titles = [re.search("^# (.*)$", path.read_text(encoding="utf-8"), re.M)[1] for path in CHAPTERS]
    bookmarks = " ".join(str(entry.Title) for entry in print_book.bookmarks(pdf.Root.Outlines))
    places = [bookmarks.index(f"{number}. {title}") for number, title in enumerate(titles, start=1)]
    assert places == sorted(places)
    assert bookmarks.count(titles[0]) == 1, "the browser writes it twice"
    assert (pdf.docinfo.Title, pdf.docinfo.Author) == ("Low-Rank Attention", print_book.edition()[1])
    assert pdf.Root.Lang == "en"
    assert pdf.Root.MarkInfo.Marked, "tagged for screen readers"


def test_contents_name_pages(pages):
    lines = [line for page in pages[:9] for line in page.splitlines()]
    listed = re.findall(r"(?:^| )(\d\.(?:\d+\.)?) (.+?) (\d+)(?= \d\.|$)", "\n".join(lines), re.M)  # two columns
    assert len(listed) > 60
    for number, words, page in listed:
        assert bare(number + words) in bare(pages[int(page) - 1]), f"{number} {words} is not on page {page}"


def test_numbered_items_are_there(site, pages):
    text = bare("".join(pages))
    built = "".join(page.read_text(encoding="utf-8") for page in sorted((site / "book").glob("*.html")))
    titles = [re.sub("<[^>]+>", "", title) for title in re.findall(r'<p class="admonition-title".*?</p>', built, re.S)]
    numbered = [name[0] for title in titles if (name := re.match(r"(Solution to )?[A-Z][a-z]+ \d+\.\d+", title))]
    assert len(numbered) > 60
    for name in numbered:
        assert bare(name) in text, name


def test_solutions_are_unfolded(pages):
    text = bare("".join(pages))
    for path in CHAPTERS:
        source = path.read_text(encoding="utf-8")
        for solution in re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.M | re.S):
            code = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", solution, re.M | re.S)[-1]
            assert bare(code.strip().splitlines()[-1]) in text


def test_explorers_show_first_frame(site, pages):
    """With the words and numbers of its page, which test_explorers compares with NumPy's."""
    text = bare("".join(pages))
    for name, path in explorers().items():
        page = html.unescape(block(site / address_of(path), name))
        words = re.findall(r"<figcaption>(.+)</figcaption>|<dt>(.+?)</dt>|<data[^>]*>(.+?)</data>", page)
        assert len(words) >= 3, name
        for word in map("".join, words):
            assert bare(word) in text, f"{name}: {word}"


def test_no_screen_words(pages):
    text = "".join(pages)
    for words in ("Show the code", "Click to", "Put your answer"):
        assert words not in text
    assert [number for number, page in enumerate(pages, start=1) if len(bare(page)) < 20] == []
