"""Derive Colab's notebooks from the chapters: ``python site/export_notebooks.py [--check]``.

Sphinx writes what each chapter says in plain Markdown (``notebooks.py``); one cell that sets up
comes before it. The repository's address comes from ``_config.yml`` alone.
"""

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
import yaml
from jupyter_book.sphinx import build_sphinx
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent

SETUP = """# @title Set up: run this cell first
import importlib.util

if importlib.util.find_spec("lowrank_tutor") is None:
    # Colab has what this needs; elsewhere write "lowrank-tutor[all] @ git+..." and leave out \
--no-deps.
    %pip install -q --no-deps "lowrank-tutor @ git+{repository}@{branch}"
    importlib.invalidate_caches()
    if importlib.util.find_spec("lowrank_tutor") is None:
        raise ModuleNotFoundError(
            "{repository} cannot be reached from here."
            " Get its folder in another way, such as a ZIP file that you upload and unpack,"
            " run %pip install --no-deps FOLDER in a new cell, and then this cell again."
        )

import platform

import numpy as np
{torch}import lowrank_tutor
from lowrank_tutor.course import check


def name_what_is_missing(shell, kind, error, trace, tb_offset=None):
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    print("{again}")


get_ipython().set_custom_exc((NameError,), name_what_is_missing)
print(
    f"lowrank_tutor {{lowrank_tutor.__version__}}, Python {{platform.python_version()}}, \
NumPy {{np.__version__}},",
    {device},
)"""
AGAIN = (
    "After a restart, run this cell and those above the one you want: "
    "in Colab by Runtime > Run before, in JupyterLab by Run > Run All Above Selected Cell."
)
# Importing PyTorch takes seconds: a chapter that does without it must not wait for it.
WITHOUT_TORCH = {"torch": "", "device": '"device: cpu (all that this chapter needs)"'}
WITH_TORCH = {
    "torch": "import torch\n",
    "device": 'f"PyTorch {torch.__version__}, device: '
    "{'cuda' if torch.cuda.is_available() else 'cpu'}\"",
}


def main(arguments: list[str] | None = None) -> int:
    """Write the notebooks, or with ``--check`` name those that are stale."""
    parser = argparse.ArgumentParser(description="Derive the notebooks from the chapters.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when a notebook is stale"
    )
    check = parser.parse_args(arguments).check
    fresh = derive(ROOT)
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
    """Return the notebooks that differ from what the chapters say, or have lost their chapter."""
    kept = {path: path.read_text(encoding="utf-8") for path in (root / "book").glob("*.ipynb")}
    return sorted(path for path in fresh.keys() | kept.keys() if fresh.get(path) != kept.get(path))


def derive(root: Path) -> dict[Path, str]:
    """Return the notebook of each page that runs code, by where it belongs."""
    repository = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    (root / "_build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / "_build") as folder:
        out = build(root, Path(folder))
        pages = {
            path.relative_to(out): nbformat.read(path, as_version=4)
            for path in out.rglob("*.ipynb")
        }
    return {
        root / name: nbformat.writes(set_up(page, **repository)) + "\n"
        for name, page in pages.items()
    }


def build(root: Path, folder: Path) -> Path:
    """Let Sphinx write the notebooks, all but their first cells, and return where."""
    out, doctrees, kept = folder / "out", folder / "doctrees", root / "_build" / ".notebooks"
    overrides = {
        "latex_individualpages": False,
        "nb_execution_mode": "off",
        "nitpicky": True,
        "smartquotes": False,
        "suppress_warnings": [
            "myst.domains",
            "myst-nb.lexer",
        ],  # without a kernel nothing names the language
    }
    if kept.exists():  # Sphinx reads again what has changed since
        kept.rename(doctrees)
    result = build_sphinx(
        str(root), str(out), path_config=str(root / "_config.yml"), noconfig=True,
        confoverrides=overrides, doctreedir=str(doctrees), builder="ipynb", quiet=True,
        warningiserror=True, keep_going=True,
    )  # fmt: skip
    if result != 0:  # nothing is kept: Sphinx would not warn again of a page that it has read
        sys.exit("No notebook was written.")
    shutil.rmtree(kept, ignore_errors=True)
    doctrees.rename(kept)
    return out


def set_up(page: NotebookNode, url: str, branch: str) -> NotebookNode:
    """Put the cell that installs what is missing first, and what to do after a restart below."""
    code = "\n".join(cell.source for cell in page.cells if cell.cell_type == "code")
    torch = re.search(
        r"^\s*(import|from) (torch|lowrank_tutor\.(attention|linformer|roofline))\b",
        code,
        re.MULTILINE,
    )
    words = {
        "repository": url.rstrip("/"),
        "branch": branch,
        "again": "A cell above has not run yet. " + AGAIN,
    }
    source = SETUP.format(**words, **(WITH_TORCH if torch else WITHOUT_TORCH))
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    name = hashlib.sha256(source.encode()).hexdigest()[:8]
    page.metadata["language_info"] = {"name": "python"}
    page.cells.insert(0, nbformat.v4.new_markdown_cell(AGAIN, id="again"))
    page.cells.insert(0, nbformat.v4.new_code_cell(source, metadata=folded, id=name))
    return page


if __name__ == "__main__":
    sys.exit(main())
