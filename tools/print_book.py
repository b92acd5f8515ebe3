"""Print the whole book as one PDF: ``make pdf`` builds the book as one page and then runs this.

The browser prints twice: once to learn on which page each heading falls, and once with those numbers in the contents.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader

ROOT = Path(__file__).resolve().parents[1]
ONE_PAGE = ROOT / "_build" / "singlehtml"
PDF = ROOT / "dist" / "low-rank-attention.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TEXT = {"width": 643, "height": 985}  # A4 within its margins, in the browser's pixels of 1/96 inch
PAPER: dict[str, Any] = {
    "format": "A4",
    "margin": {"top": "18mm", "bottom": "18mm", "left": "20mm", "right": "20mm"},
    "tagged": True,
    "outline": True,
    "print_background": True,
    "display_header_footer": True,
    "header_template": "<span></span>",
    "footer_template": '<div style="width:100%;font:8pt sans-serif;text-align:center"><span class="pageNumber"></span></div>',
}

# What folds on a screen is open on paper. Folded code stays away: it draws figures and loads data. So do pages that
# are about the site, and the words around the book come before its contents.
PREPARE = """
(author) => {
  document.querySelectorAll(".toggle-hidden").forEach((e) => e.classList.remove("toggle-hidden"));
  document.querySelectorAll("details.hide, .toctree-wrapper > .caption").forEach((e) => e.remove());
  for (const page of ["book/times", "genindex"]) {
    const mark = document.getElementById("document-" + page);
    mark.nextElementSibling.remove();
    mark.remove();
  }
  document.querySelectorAll("#keep-it, #jb-print-docs-body").forEach((e) => e.remove());
  document.querySelector(".toctree-wrapper").before(...document.querySelectorAll("#how-to-read-it, #cite-this-book"));
  const note = document.createElement("p");
  note.className = "edition";
  note.textContent = `Printed edition. ${author}. Sliders stand where they start, solutions are unfolded, and the code `
    + "that draws the figures is left out; the site and the notebooks have it. Text CC BY 4.0, code MIT.";
  document.querySelector("article h1").after(note);
}
"""
# Paper does not scroll: what is wider than the page is set smaller.
FIT = """
() => {
  for (const wide of document.querySelectorAll("article :is(div.math, table)")) {
    const room = wide.parentElement.clientWidth;
    const width = Math.max(wide.scrollWidth, ...[...wide.children].map((e) => e.scrollWidth));
    if (width > room) wide.style.zoom = room / width;
  }
}
"""
# The contents: a line for each chapter and section, as wide as it will be. Answers with the words of the headings.
LIST = """
() => {
  const list = document.createElement("ol");
  list.className = "contents";
  const headings = document.querySelectorAll(
    ".toctree-wrapper > section > h2, .toctree-wrapper > section > section > h3");
  headings.forEach((heading, i) => {
    heading.querySelectorAll(".headerlink").forEach((e) => e.remove());
    heading.id = "heading-" + i; // the names of sections repeat from page to page
    const line = list.appendChild(document.createElement("li"));
    line.className = heading.localName === "h2" ? "of-chapter" : "of-section";
    const link = line.appendChild(document.createElement("a"));
    link.href = "#" + heading.id;
    link.textContent = heading.textContent.replace(/\\s+/g, " ").trim();
    line.appendChild(document.createElement("span")).textContent = "000";
  });
  document.querySelector(".toctree-wrapper").before(list);
  return [...list.querySelectorAll("a")].map((a) => a.textContent);
}
"""
FILL = "(numbers) => document.querySelectorAll('.contents span').forEach((e, i) => (e.textContent = numbers[i]))"


def one_file(folder: Path) -> Path:
    """Put the page where its links are right, and turn links between pages into links within it."""
    text = (folder / "book" / "index.html").read_text(encoding="utf-8")
    path = folder / "print.html"
    path.write_text(re.sub(r'href="[^":]*index\.html#', 'href="#', text), encoding="utf-8")
    return path


def outline(pdf: Path) -> Iterator[tuple[str, int]]:
    """Yield the words of each bookmark and its page, counted from 1, in reading order."""
    reader = PdfReader(pdf)

    def walk(entries: list[Any]) -> Iterator[tuple[str, int]]:
        for entry in entries:
            if isinstance(entry, list):
                yield from walk(entry)
            else:
                yield " ".join(entry.title.split()), reader.get_destination_page_number(entry) + 1

    return walk(reader.outline)


def pages_of(headings: list[str], pdf: Path) -> list[int]:
    """Return the page of each heading; bookmarks stand in the same order, with smaller headings between."""
    bookmarks = outline(pdf)
    return [next(page for words, page in bookmarks if heading in words) for heading in headings]


def print_book(page: Page, pdf: Path) -> None:
    """Print an opened one-page book."""
    book = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    page.emulate_media(media="print", color_scheme="light")
    page.add_style_tag(path=ROOT / "tools" / "print.css")
    page.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready; }")
    page.evaluate(PREPARE, f"{book['author']}, {book['copyright']}")
    page.evaluate(FIT)
    headings = page.evaluate(LIST)
    pdf.parent.mkdir(exist_ok=True)
    page.pdf(path=pdf, **PAPER)
    numbers = pages_of(headings, pdf)
    page.evaluate(FILL, numbers)
    page.pdf(path=pdf, **PAPER)
    if pages_of(headings, pdf) != numbers:
        raise RuntimeError("the page numbers moved when they were filled in")


def main() -> int:
    """Print, and say where the file lies."""
    with sync_playwright() as playwright:
        program = next(found for name in BROWSERS if (found := shutil.which(name)))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=TEXT)
        page.goto(one_file(ONE_PAGE).as_uri())
        print_book(page, PDF)
    print(f"{PDF}: {len(PdfReader(PDF).pages)} pages, {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
