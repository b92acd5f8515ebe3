"""Let readers run the cells on the page itself: add Python for the browser to a built site (``make live``).

Pyodide is CPython for WebAssembly, with NumPy and its kin; ``live_files.py`` fetches and verifies it, and
``live_cells.py`` decides what each page needs of it. In the browser ``live.js`` is the page's side, ``live_show.js``
shows what cells have shown, and ``live_worker.js`` runs Python, which runs the cells with ``live_run.py``, each after
those that it needs (``live_needs.py``).

A page gets buttons and one short script; everything else lies in ``_static/live`` and is asked for after a click.
"""

from __future__ import annotations

import _pydecimal
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from live_cells import Cell, read_page
from live_files import CACHE, CORE, LOCK, PACKED, Refused, copy_pyodide, fetch, read_lock

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"

OURS = ("live.js", "live_show.js", "live.css", "live_worker.js")
MODULES = ("live_needs.py", "live_run.py")  # the last one imports the other
# Modules of the standard library that Pyodide leaves out: a chapter reads one, and formats of Decimal need the other.
DECIMAL = "pydecimal.zip"

BUTTON = '<button class="run-here" type="button" title="Starts Python on this page, {0:.0f} MB">Run here{1}</button>'
SCRIPT = (
    '<script class="run-here">addEventListener("click",(e)=>{const b=e.target.closest("button.run-here");if(!b)return;'
    """const say=(why)=>b.outerHTML='<p role="status">'+why+"</p>";"""
    'if(location.protocol!="file:")import("../_static/live/live.js").then((m)=>m.open(b),'
    '()=>say("Python could not be loaded. Reload the page, and see whether this device is online."));'
    'else say("Cells run only on a page that comes from a server: type '
    '<code>make serve</code>, and open the address that it prints.")})</script>'
    "<style>.run-here{padding:.1rem .7rem;border:1px solid;border-radius:.3rem;background:var(--pst-color-background);"
    "color:var(--pst-color-primary);font-size:.85rem}h1+.run-here{margin-bottom:1rem}"
    "div.cell>div.cell_input:has(.run-here){background:var(--pst-color-surface)}"
    ".cell_input .run-here{display:block;width:fit-content;align-self:start;margin:0 .8rem .7rem}"
    "@media print{.run-here{display:none}}</style>"
    "<noscript><style>.run-here{display:none}</style></noscript>"
)
CODE = re.compile(r'(<div class="cell_input.*?</pre></div>\n</div>)', re.S)
# What the page's policy (_ext/booksite.py) must allow for that, and the words behind which it stands there.
ALLOWED = {"script-src 'self'": " 'wasm-unsafe-eval'", "worker-src blob:": " 'self'; connect-src 'self'"}
PARTS = [r'<button class="run-here".*?</button>', r'<script class="run-here">.*?</noscript>']
ADDED = re.compile("|".join([*PARTS, *(f"(?<={before}){allowed}" for before, allowed in ALLOWED.items())]), re.S)


def build_wheel(target: Path) -> str:
    """Build the package's wheel from this tree, elsewhere, and return its name."""
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary, "tree")
        tree.mkdir()
        for name in ("pyproject.toml", "README.md"):
            shutil.copyfile(ROOT / name, tree / name)
        shutil.copytree(ROOT / "lowrank_tutor", tree / "lowrank_tutor", ignore=shutil.ignore_patterns("__pycache__"))
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        built = subprocess.run(
            [*pip, "--no-build-isolation", "--wheel-dir", str(target), str(tree)], capture_output=True, text=True
        )
        if built.returncode:
            raise SystemExit(built.stderr)
    (wheel,) = target.glob("lowrank_tutor-*.whl")
    return wheel.name


def write_left_out(target: Path) -> None:
    """Pack what Pyodide leaves out, from the Python that built the book, so that the numbers are the same."""
    with zipfile.ZipFile(target / DECIMAL, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(_pydecimal.__file__, "_pydecimal.py")
    terms = Path(os.__file__).with_name("LICENSE.txt")
    if terms.is_file():
        (target / "pyodide" / "licenses" / "python").mkdir()
        shutil.copyfile(terms, target / "pyodide" / "licenses" / "python" / terms.name)


def add_buttons(page: Path, cells: list[Cell], size: int) -> None:
    """Give a built page its buttons, with what a click will load."""
    megabytes = size / 1e6
    below = BUTTON.format(megabytes, "")
    html = ADDED.sub("", page.read_text(encoding="utf-8"))
    before, article, text = html.partition("<article")
    text = text.replace("</h1>", "</h1>" + BUTTON.format(megabytes, f" and change the code ({megabytes:.0f} MB)"), 1)
    top, *parts = re.split(r'(?=<div class="cell[ "])', text)
    if len(parts) != len(cells):
        raise Refused(f"{page.name} has {len(parts)} cells, and its source {len(cells)}: run make book")
    for i, cell in enumerate(cells):
        if not cell.needs_torch:  # below the code, where there is some
            parts[i] = CODE.sub(rf"\1{below}", parts[i], count=1)
    for words, allowed in ALLOWED.items():
        before = before.replace(words, words + allowed, 1)
    html = before + article + top + "".join(parts)
    page.write_text(html.replace("</body>", SCRIPT + "</body>", 1), encoding="utf-8")


def make_live(site: Path, source: Path) -> None:
    """Add everything to a site."""
    lock = read_lock(source)
    live = site / "_static" / "live"
    shutil.rmtree(live, ignore_errors=True)
    pages = {path.stem: read_page(path, lock) for path in sorted((ROOT / "book").glob("*.md"))}
    pages = {name: page for name, page in pages.items() if any(not cell.needs_torch for cell in page.cells)}
    copy_pyodide(source, live / "pyodide", lock, set().union(*(page.packages for page in pages.values())))
    wheel = build_wheel(live)
    write_left_out(live)
    for name in (*OURS, *MODULES):
        shutil.copyfile(ROOT / "tools" / name, live / name)
    for name, page in pages.items():
        files = [wheel, *[DECIMAL] * ("sympy" in page.packages)]
        wheels = [lock["packages"][package]["file_name"] for package in page.packages]
        scripts = sum((live / "pyodide" / one).stat().st_size for one in CORE if one.endswith(".mjs"))
        loaded = [live / one for one in (*MODULES, *files)]
        loaded += [live / "pyodide" / one for one in (PACKED, "python_stdlib.zip", LOCK, *wheels)]
        size = scripts + sum(path.stat().st_size for path in loaded)
        content = {
            "packages": page.packages,
            "modules": MODULES,
            "files": files,
            "scripts": scripts,
            "bytes": size,
            "cells": [{"source": c.source, "needsTorch": c.needs_torch, "rest": c.rest} for c in page.cells],
        }
        (live / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        add_buttons(site / "book" / f"{name}.html", page.cells, size)
        offered = sum(not cell.needs_torch for cell in page.cells)
        print(f"{name}: {offered} of {len(page.cells)} cells, {size / 1e6:.1f} MB ({', '.join(page.packages)})")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pyodide", type=Path, help="a folder with Pyodide's files; without it they are fetched")
    parser.add_argument("--site", type=Path, default=SITE, help="the built site")
    arguments = parser.parse_args()
    make_live(arguments.site, arguments.pyodide or fetch(CACHE))


if __name__ == "__main__":
    main()
