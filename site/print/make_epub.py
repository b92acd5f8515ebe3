"""Bind the book as an EPUB, its formulas as MathML.

``make epub`` builds it as one page and then runs this.
"""

import base64
import datetime
import html
import re
import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from browsing import find_browser
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from print_book import HERE, ONE_PAGE, PDF, TEXT, prepare, settings

from lowrank_tutor import __version__
from lowrank_tutor.kit import palette

EPUB = PDF.with_suffix(".epub")
COLORS = 64  # of a figure that computes
FONT = "stix-two-math.woff2"  # of letters and signs that formulas use; its license lies beside it
XHTML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" \
lang="en" xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="epub.css"/></head>
<body>{body}</body></html>"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles>\
</container>"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{address}#{version}</dc:identifier><dc:title>{title}</dc:title>\
<dc:creator>{author}</dc:creator>
<dc:language>en</dc:language><dc:date>{day}</dc:date><dc:rights>{rights}</dc:rights>
<dc:description>Version {version}</dc:description>\
<meta property="dcterms:modified">{day}T00:00:00Z</meta>
<meta property="schema:accessMode">textual</meta><meta property="schema:accessMode">visual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityHazard">none</meta>
</metadata>
<manifest>{manifest}</manifest><spine>{spine}</spine></package>"""
TYPES = {
    "xhtml": "application/xhtml+xml",
    "css": "text/css",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "woff2": "font/woff2",
}


def picture(source: str) -> tuple[str, bytes]:
    """Return a picture and its name.

    WebP, which many e-readers do not know, becomes what it was made from.
    """
    address = source.startswith("data:")
    data = (
        base64.b64decode(source.partition(",")[2]) if address else (ONE_PAGE / source).read_bytes()
    )
    image, kind = Image.open(BytesIO(data)), "png"
    if image.format == "WEBP":
        kind = "png" if b"VP8L" in data[:32] else "jpeg"
        image.convert("RGB").save(stream := BytesIO(), kind, quality=80, optimize=True)
        data = stream.getvalue()
    return f"{sha256(data).hexdigest()[:16]}.{kind}", data


def contents(pages: list[dict[str, Any]]) -> str:
    """Return the list of chapters and their sections."""

    def entry(address: str, title: str, below: str = "") -> str:
        return (
            f'<li><a href="{address}">{html.escape(title)}</a>{below and f"<ol>{below}</ol>"}</li>'
        )

    lines = ""
    for page in pages:
        file = page["name"] + ".xhtml"
        lines += entry(
            file,
            page["title"],
            "".join(entry(f"{file}#{name}", words) for name, words in page["sections"]),
        )
    return f'<nav epub:type="toc"><h2>Contents</h2><ol>{lines}</ol></nav>'


def bind(pages: list[dict[str, Any]], path: Path) -> None:
    """Write the pages of epub.js, their pictures, and a list of contents into an archive.

    It holds what EPUB asks for, too.
    """
    colors = palette.COLORS | palette.SURFACES  # few e-readers know variables
    style = re.sub(
        r"var\(--(\w+)\)",
        lambda name: colors[name[1]].light,
        (HERE / "epub.css").read_text("utf-8"),
    )
    files: dict[str, bytes | str] = {"epub.css": style, FONT: (HERE / FONT).read_bytes()}

    def place(image: re.Match[str]) -> str:
        name, data = picture(image[2])
        files[name] = data
        return image[1] + name

    for page in pages:
        body = re.sub(r'(<img [^>]*?src=")([^"]+)', place, page["body"])
        files[page["name"] + ".xhtml"] = XHTML.format(title=html.escape(page["title"]), body=body)
    files["nav.xhtml"] = XHTML.format(title="Contents", body=contents(pages))
    marks = {"mathml": "<math", "svg": "<svg"}
    properties = {
        page["name"] + ".xhtml": f' properties="{held}"'
        for page in pages
        if (held := " ".join(kind for kind, tag in marks.items() if tag in page["body"]))
    }
    properties["nav.xhtml"] = ' properties="nav"'
    kinds = {name: TYPES[name.rpartition(".")[2]] for name in files}
    book = settings()
    package = PACKAGE.format(
        title=html.escape(book["title"]),
        author=html.escape(book["author"]),
        address=book["repository"]["url"],
        version=__version__,
        rights=book["html"]["extra_footer"],
        day=datetime.datetime.now(datetime.UTC).date(),
        manifest="".join(
            f'<item id="_{name}" href="{name}" media-type="{kind}"{properties.get(name, "")}/>'
            for name, kind in kinds.items()
        ),
        spine="".join(
            f'<itemref idref="_{name}.xhtml"/>'
            for name in ("front", "nav", *(p["name"] for p in pages[1:]))
        ),
    )
    path.parent.mkdir(exist_ok=True)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", ZIP_STORED)
        for name, data in {
            "META-INF/container.xml": CONTAINER,
            "content.opf": package,
            **files,
        }.items():
            archive.writestr(name, data)


def make_epub(page: Page, path: Path) -> None:
    """Bind the book that is ready for paper in a window.

    Of a figure that computes, an e-reader gets a picture.
    """
    for figure in page.locator(".instrument.live").all():
        drawn = figure.locator(".instrument-live")
        image = Image.open(BytesIO(drawn.screenshot())).convert("RGB").quantize(COLORS)
        image.save(stream := BytesIO(), "png", optimize=True)
        words = figure.locator(".instrument-still").text_content()
        drawn.evaluate(
            "(e, [alt, data]) => e.replaceChildren(Object.assign(new Image(), { alt, src: data }))",
            [words, f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"],
        )
    page.add_script_tag(path=HERE / "epub.js")
    bind(page.evaluate("epub.pages()"), path)


def main() -> int:
    """Bind, and say where the file lies."""
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=find_browser()).new_page(viewport=TEXT)
        prepare(page, "for e-readers")
        make_epub(page, EPUB)
    print(f"{EPUB}: {EPUB.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
