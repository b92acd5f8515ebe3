"""Print the whole book as one PDF: ``make pdf`` builds it as one page and then runs this.

The browser prints a draft to learn on which page each heading falls, and then with those numbers in the contents, until
none of them moves.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pikepdf
import yaml
from browsing import find_browser
from pikepdf import Dictionary
from playwright.sync_api import Page, sync_playwright

from lowrank_tutor import __version__

ROOT = Path(__file__).resolve().parents[1]
ONE_PAGE = ROOT / "_build" / "singlehtml"
PDF = ROOT / "dist" / "low-rank-attention.pdf"
PATIENCE = 600_000  # milliseconds: hundreds of formulas are typeset at once
SCRIPT = re.compile("<script.*?</script>", re.S)
NEEDED = re.compile("<script[^>]*>window.MathJax|<script[^>]*(?:mathjax/|book.js)")  # formulas, and the room they take
PRINTS = 4  # at most: a number that is filled in may move what follows it
TEXT = {"width": 643, "height": 985}  # A4 within its margins, in the browser's pixels of 1/96 inch
FOOTER = '<div style="width:100%;font:8pt sans-serif;text-align:center"><span class="pageNumber"></span></div>'
PAPER: dict[str, Any] = {
    "format": "A4",
    "margin": {"top": "18mm", "bottom": "18mm", "left": "20mm", "right": "20mm"},
    "tagged": True,
    "outline": True,
    "print_background": True,
    "display_header_footer": True,
    "header_template": "<span></span>",
    "footer_template": FOOTER,
}

# Only to learn where the headings fall: each footer is a page of its own to lay out.
DRAFT = PAPER | dict.fromkeys(("tagged", "outline", "print_background", "display_header_footer"), False)


def one_file(folder: Path) -> Path:
    """Copy the page to where its links are right, with links between pages turned into links within it."""
    text = (folder / "book" / "index.html").read_text(encoding="utf-8")
    text = SCRIPT.sub(lambda script: script[0] if NEEDED.match(script[0]) else "", text)
    text = text.replace("<html ", '<html data-theme="light" ', 1)
    text = re.sub(r'href="[^":]*index\.html#', 'href="#', text)
    style = (ROOT / "tools" / "print.css").read_text(encoding="utf-8")
    path = folder / "print.html"
    path.write_text(text.replace("</head>", f"<style>{style}</style></head>", 1), encoding="utf-8")
    return path


def bookmarks(above: Dictionary) -> Iterator[Dictionary]:
    """Yield the bookmarks below one, or below the root of them all, in reading order."""
    entry = above.get("/First")
    while entry is not None:
        yield entry
        yield from bookmarks(entry)
        entry = entry.get("/Next")


def heading_pages(pdf: Path, count: int) -> list[int]:
    """Return the page, counted from 1, of each heading that the contents link to."""
    with pikepdf.open(pdf) as document:
        places = [document.Root.Dests[f"/heading-{i}"] for i in range(count)]
        return [pikepdf.Page(place[0]).index + 1 for place in places]


def names(words: str, heading: str) -> bool:
    """Whether a bookmark is that of a heading; the browser drops spaces at line ends, and may say the words twice."""
    number, title = re.fullmatch(r"((?:\d+\.)*) ?(.*)", heading).groups()
    return words.startswith(number) and "".join(title.split()) in "".join(words.split())


def edition() -> list[str]:
    """Return the lines below the title."""
    book = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return [
        "an interactive book, printed",
        f"{book['author']}, {book['copyright']}. Version {__version__}. {book['repository']['url']}",
        "Figures with sliders stand where they start: where the text says drag, imagine the rest, or open the site. "
        "Solutions follow the exercises of their chapter. Left out are the code that loads data and draws figures, and "
        "of the package the errors and examples: they are on the site and in the notebooks.",
        "Text CC BY 4.0, code MIT.",
    ]


def open_book(page: Page) -> None:
    """Open the one-page book in a window and make it ready for paper; a slow machine may take minutes."""
    page.set_default_timeout(PATIENCE)
    page.emulate_media(media="print", color_scheme="light")
    page.goto(one_file(ONE_PAGE).as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.add_script_tag(path=ROOT / "tools" / "print.js")
    page.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready; }")
    page.evaluate("printing.prepare", edition())
    page.evaluate("printing.fit")
    if too_wide := page.evaluate("printing.tooWide"):
        raise RuntimeError(f"wider than the paper: {too_wide}")


def print_pages(page: Page, pdf: Path) -> None:
    """Print what is open until the numbers of its pages stand still."""
    headings = page.evaluate("printing.contents")
    pdf.parent.mkdir(exist_ok=True)
    page.evaluate("printing.draft", True)
    page.pdf(path=pdf, **DRAFT)
    page.evaluate("printing.draft", False)
    found = [heading_pages(pdf, len(headings))]
    for _ in range(PRINTS):
        # Chromium may break the same pages in two ways by turns: then the way before last comes next.
        by_turns = len(found) > 2 and found[-1] == found[-3]
        numbers = found[-2] if by_turns else found[-1]
        page.evaluate("printing.fill", numbers)
        page.pdf(path=pdf, **PAPER)
        found.append(heading_pages(pdf, len(headings)))
        if found[-1] == numbers:
            break
    else:
        raise RuntimeError(f"the page numbers still move after {PRINTS} prints")
    finish(pdf, headings)


def finish(pdf: Path, headings: list[str]) -> None:
    """Add the author, and correct bookmarks: the browser writes a heading after a page break twice."""
    with pikepdf.open(pdf, allow_overwriting_input=True) as document:
        title, author, *_ = edition()
        document.docinfo.Author = author
        document.docinfo.Subject = f"Low-rank attention: {title}"
        found = bookmarks(document.Root.Outlines)
        for heading in headings:
            next(entry for entry in found if names(" ".join(str(entry.Title).split()), heading)).Title = heading
        document.save()


def main() -> int:
    """Print, and say where the file lies."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport=TEXT)
        open_book(page)
        print_pages(page, PDF)
    with pikepdf.open(PDF) as document:
        print(f"{PDF}: {len(document.pages)} pages, {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
