"""Derive the notebooks that Colab opens from the chapters: ``python tools/export_notebooks.py [--check]``.

A notebook says what its chapter says, in plain Markdown (``plain_markdown.py``), after one cell that sets up. Numbers
are not counted here: a Sphinx build without execution writes them down (``_ext/bookrefs.py``). The repository and the
site's address come from ``_config.yml`` alone.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import nbformat
import yaml
from jupyter_book.sphinx import build_sphinx
from nbformat import NotebookNode
from plain_inline import Book, UnsupportedError
from plain_markdown import Chapter, Code, Fold, Text, details, join

ROOT = Path(__file__).resolve().parent.parent

SETUP = """# @title Set up: run this cell first
import importlib.util

if importlib.util.find_spec("lowrank_tutor") is None:
    %pip install -q --no-deps "git+{repository}@{branch}"

import platform

import numpy
{torch}import lowrank_tutor

print(
    f"lowrank_tutor {{lowrank_tutor.__version__}}, Python {{platform.python_version()}}, NumPy {{numpy.__version__}},",
    {device},
)"""
# Importing PyTorch takes seconds: a chapter that does without it must not wait for it.
WITHOUT_TORCH = {"torch": "", "device": '"device: cpu (all that this chapter needs)"'}
WITH_TORCH = {
    "torch": "import torch\n",
    "device": "f\"PyTorch {torch.__version__}, device: {'cuda' if torch.cuda.is_available() else 'cpu'}\"",
}


def main(arguments: list[str] | None = None) -> int:
    """Write the notebooks, or with ``--check`` name those that are stale."""
    parser = argparse.ArgumentParser(description="Derive the notebooks from the chapters.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a notebook is stale")
    check = parser.parse_args(arguments).check
    try:
        fresh = derive(ROOT, read_book(ROOT))
    except UnsupportedError as error:
        print(error, file=sys.stderr)
        return 1
    wrong = stale(ROOT, fresh)
    for path in wrong:
        if check or path not in fresh:
            why = "is stale: run `make notebooks`" if path in fresh else "has no chapter: remove it"
            print(f"{path.relative_to(ROOT)} {why}", file=sys.stderr)
        else:
            path.write_text(fresh[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return int(any(check or path not in fresh for path in wrong))


def stale(root: Path, fresh: dict[Path, str]) -> list[Path]:
    """Return the notebooks that differ from what the chapters say now, or have lost their chapter."""
    kept = {path: path.read_text(encoding="utf-8") for path in (root / "book").glob("*.ipynb")}
    return sorted(path for path in fresh.keys() | kept.keys() if fresh.get(path) != kept.get(path))


def derive(root: Path, book: Book) -> dict[Path, str]:
    """Return the notebook of each page that runs code, by where it belongs."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((root / "book").glob("*.md"))}
    return {
        path.with_suffix(".ipynb"): nbformat.writes(notebook(text, path.relative_to(root).as_posix(), book)) + "\n"
        for path, text in sources.items()
        if re.search(r"^`{3,}\{code-cell\}", text, re.MULTILINE)
    }


def read_book(root: Path) -> Book:
    """Read the settings, and let Sphinx count, which takes seconds when nothing is executed or written."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = config["repository"]["url"].rstrip("/")
    macros = config.get("sphinx", {}).get("config", {}).get("mathjax3_config", {}).get("tex", {}).get("macros", {})
    refs = count(root)
    return Book(repository, config["repository"]["branch"], refs["site"], macros, refs)


def count(root: Path) -> dict[str, dict]:
    """Return what ``_ext/bookrefs.py`` writes down about the book as its sources stand now."""
    overrides = {"nb_execution_mode": "off", "latex_individualpages": False}
    with tempfile.TemporaryDirectory() as folder:
        result = build_sphinx(
            str(root), f"{folder}/out", path_config=str(root / "_config.yml"), noconfig=True, confoverrides=overrides,
            builder="dummy", really_quiet=True,
        )  # fmt: skip
        if result != 0:
            raise UnsupportedError(f"Sphinx cannot read the book: {result}")
        return json.loads(Path(folder, "refs.json").read_text(encoding="utf-8"))


def notebook(text: str, name: str, book: Book) -> NotebookNode:
    """Return one chapter as a notebook without outputs; ``name`` is its path in the repository."""
    chapter = Chapter(text, name, book)
    cells = gather(list(chapter.parts()))
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    torch = re.search(r"^\s*(import|from) (torch|lowrank_tutor\.(attention|linformer))\b", code, re.MULTILINE)
    setup = SETUP.format(repository=book.repository, branch=book.branch, **(WITH_TORCH if torch else WITHOUT_TORCH))
    cells = [code_cell(Code(setup, "Set up")), *cells]
    for number, cell in enumerate(cells):  # the same text keeps its id, so that a change shows as what it is
        twins = sum(other.source == cell.source for other in cells[:number])
        cell["id"] = hashlib.sha256(f"{cell.source}{twins or ''}".encode()).hexdigest()[:8]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    if "accelerator" in chapter.front:
        metadata["accelerator"] = chapter.front["accelerator"]
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})


def gather(parts: list[Text | Code | Fold]) -> list[NotebookNode]:
    """Put text into cells, a new one at each heading, and fold what is to be folded."""
    cells: list[NotebookNode] = []
    open_text: list[str] = []  # finished blocks of the cell at hand
    inside: list[str] = []  # blocks under the fold at hand, which cannot reach across a code cell
    title = ""

    def close_fold() -> None:
        if body := join(inside):
            open_text.append(details(title, body))
        inside.clear()

    def close_cell() -> None:
        if text := join(open_text):
            cells.append(nbformat.from_dict({"cell_type": "markdown", "metadata": {}, "source": text}))
        open_text.clear()

    for part in [*parts, Fold("")]:
        if isinstance(part, Text):
            if part.opens:
                close_cell()
            (inside if title else open_text).append(part.text)
            continue
        close_fold()
        if isinstance(part, Fold):
            title = part.title
        else:
            close_cell()
            cells.append(code_cell(Code(part.source, title or part.title)))
    close_cell()
    return cells


def code_cell(code: Code) -> NotebookNode:
    """Return a code cell; Colab folds by ``# @title`` and ``cellView``, JupyterLab by ``source_hidden``."""
    source, metadata = code.source, {}
    if code.title:
        metadata = {"cellView": "form", "jupyter": {"source_hidden": True}}
        if not source.startswith("# @title"):
            source = f"# @title {code.title}\n{source}"
    cell = {"cell_type": "code", "metadata": metadata, "source": source, "outputs": [], "execution_count": None}
    return nbformat.from_dict(cell)


if __name__ == "__main__":
    sys.exit(main())
