"""Print the whole book as one PDF: ``make pdf`` builds it as one page and then runs this."""

import re
import sys
from pathlib import Path
from typing import Any

import yaml
from browsing import find_browser
from playwright.sync_api import Page, sync_playwright

from lowrank_tutor import __version__

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ONE_PAGE = ROOT / "_build" / "singlehtml"
PDF = ROOT / "dist" / "low-rank-attention.pdf"
PATIENCE = 600_000  # milliseconds: hundreds of formulas are typeset at once
SCRIPT = re.compile("<script.*?</script>", re.S)
# Formulas and the room that they take, and figures, but for those whose pictures stand there.
NEEDED = re.compile(
    "<script[^>]*>window.MathJax|<script[^>]*(?:mathjax/|book.js|/json)|"
    "<script[^>]*lowrank-kit/(?!explorer|answer-form|draw-first)"
)
TEXT = {"width": 643, "height": 985}  # A4 within its margins, in the browser's pixels of 1/96 inch
FOOTER = (
    '<div style="width:100%;font:8pt sans-serif;text-align:center">'
    '<span class="pageNumber"></span></div>'
)
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


def one_file(folder: Path) -> Path:
    """Copy the page to where its links are right, and turn links between pages inward."""
    text = (folder / "book" / "index.html").read_text(encoding="utf-8")
    text = SCRIPT.sub(lambda script: script[0] if NEEDED.match(script[0]) else "", text)
    text = text.replace(
        "order.splice(0, 10)", "order.splice(0)", 1
    )  # all formulas at once: nobody waits to touch it
    text = text.replace("<html ", '<html data-theme="light" ', 1)
    text = re.sub(r'href="[^":]*index\.html#', 'href="#', text)
    style = (HERE / "print.css").read_text(encoding="utf-8")
    path = folder / "print.html"
    path.write_text(text.replace("</head>", f"<style>{style}</style></head>", 1), encoding="utf-8")
    return path


def settings() -> dict[str, Any]:
    """Return the settings of the book."""
    book: dict[str, Any] = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return book


def edition(kind: str) -> list[str]:
    """Return the lines below the title."""
    book = settings()
    return [
        f"an interactive book, {kind}",
        f"{book['author']}, {book['copyright']}. Version {__version__}. "
        f"{book['repository']['url']}",
        "Figures with sliders stand where they start: where the text says drag, imagine the rest, "
        "or open the site. Solutions follow the exercises of their chapter. Left out are the code "
        "that loads data and draws figures, and of the package the errors and examples: they are "
        "on the site and in the notebooks.",
        "Text CC BY 4.0, code MIT.",
    ]


def prepare(page: Page, kind: str = "printed") -> None:
    """Make the one-page book ready for paper in a window."""
    page.set_default_timeout(PATIENCE)
    page.emulate_media(media="print", color_scheme="light")
    page.goto(one_file(ONE_PAGE).as_uri())
    page.wait_for_function("window.MathJax?.startup?.promise")
    page.add_script_tag(path=HERE / "print.js")
    page.evaluate("async () => { await MathJax.startup.promise; await document.fonts.ready; }")
    page.evaluate("printing.prepare", edition(kind))


def print_book(page: Page, pdf: Path) -> None:
    """Print what is ready for paper."""
    if too_wide := page.evaluate("printing.fit()"):
        raise RuntimeError(f"every part of the book must fit the paper, got {too_wide}")
    page.evaluate("printing.list()")
    pdf.parent.mkdir(exist_ok=True)
    page.pdf(path=pdf, **PAPER)


def main() -> int:
    """Print, and say where the file lies."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport=TEXT)
        prepare(page)
        print_book(page, PDF)
    print(f"{PDF}: {PDF.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
