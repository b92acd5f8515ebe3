"""The printed edition: every statement numbered, every solution unfolded, every explorer's first frame.

All of the book must fit onto the paper; one chapter is printed, because printing takes minutes. It needs `make book`
first, and a browser, as the tests of the site do.
"""

import html
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import print_book
import pytest
from chapters import CHAPTERS, ROOT, explorers
from pypdfium2 import PdfDocument
from visits import address_of, block, title_of

PATH = CHAPTERS[1]
pytestmark = pytest.mark.xdist_group("test_print")  # which prints once


def bare(text: str) -> str:
    """Letters and digits alone: paper breaks lines where it likes, and joins f and i."""
    return re.sub(r"[^0-9A-Za-z]", "", unicodedata.normalize("NFKC", text))


@pytest.fixture(scope="module")
def pages(site, browser, tmp_path_factory) -> list[str]:
    """The words of each printed page."""
    build = [Path(sys.executable).with_name("jupyter-book"), "build", ROOT, "--builder", "custom"]
    subprocess.run([*build, "--custom-builder", "singlehtml"], check=True, capture_output=True)
    path = tmp_path_factory.mktemp("paper") / "book.pdf"
    page = browser.new_page(viewport=print_book.TEXT)
    print_book.print_book(page, path, only=f'[id="document-book/{PATH.stem}"]')
    page.close()
    with PdfDocument(path) as document:
        assert any(title_of(PATH) in mark.get_title() for mark in document.get_toc()), "the bookmarks name the chapter"
        return [page.get_textpage().get_text_range() for page in document]


def test_text_is_complete(site, pages):
    """Numbered items, solutions with their code, and explorers with the words and numbers of their page."""
    text, built = bare("".join(pages)), (site / address_of(PATH)).read_text(encoding="utf-8")
    titles = [re.sub("<[^>]+>", "", title) for title in re.findall(r'<p class="admonition-title".*?</p>', built, re.S)]
    numbered = [name[0] for title in titles if (name := re.match(r"(Solution to )?[A-Z][a-z]+ \d+\.\d+", title))]
    assert len(numbered) >= 10
    source = PATH.read_text(encoding="utf-8")
    solutions = re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", source, re.MULTILINE | re.DOTALL)
    cells = [
        re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)[-1] for part in solutions
    ]
    wanted = numbered + [cell.strip().splitlines()[-1] for cell in cells]
    for name in [name for name, of in explorers().items() if of == PATH]:
        shown = html.unescape(block(site / address_of(PATH), name))
        words = re.findall(r"<figcaption>(.+)</figcaption>|<dt>(.+?)</dt>|<data[^>]*>(.+?)</data>", shown)
        assert len(words) >= 3, name
        wanted += map("".join, words)
    assert [word for word in wanted if bare(word) not in text] == []


def test_no_screen_words(pages):
    text = "".join(pages)
    assert [words for words in ("Show the code", "Click to", "Put your answer") if words in text] == []
    assert [number for number, page in enumerate(pages, start=1) if len(bare(page)) < 20] == []
