"""Gather what each term and each function means, for ``_static/meanings.js`` to show."""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup


def first_paragraph(entry):
    """Return what stands first under a name, without links, citations and where to read on."""
    told = entry.find_next_sibling("dd")
    paragraph = told and told.find("p", recursive=False)
    if paragraph is None:
        return ""
    for link in paragraph.find_all("a"):
        link.unwrap()
    for part in paragraph.find_all("span", class_="bibtex-citation"):
        part.decompose()
    text = " ".join(paragraph.decode_contents().split())
    text = re.sub(r"\s+\((<[^>]*>)*(chapter|the guide|Measured)[^)]*\)", "", text)
    text = re.sub(r"\s+(See|Compare) [^.]*\.(?=\s|$)", "", text)
    return re.sub(r"\s+(?=[.,;)]+(?:\s|$))", "", text)  # left where the number of a work was


def write_meanings(app, problem):
    """Write the meanings beside the scripts, in a file that a page loads on first use."""
    if problem is not None or app.builder.name != "html":
        return
    out, found = Path(app.outdir), {}
    for page in ("glossary", "cheat-sheet"):
        soup = BeautifulSoup(
            (out / "book" / f"{page}.html").read_text(encoding="utf-8"), "html.parser"
        )
        found |= {entry["id"]: first_paragraph(entry) for entry in soup.select("dt[id]")}
    meanings = json.dumps(
        {name: meaning for name, meaning in found.items() if meaning}, ensure_ascii=False
    )
    (out / "_static" / "meanings-data.js").write_text(
        f"window.meanings = {meanings};\n", encoding="utf-8"
    )


def setup(app):
    app.connect("build-finished", write_meanings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
