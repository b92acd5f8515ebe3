"""A Sphinx extension that tells :mod:`lowrank_tutor.explore` whether a cell runs for a page or for a person.

Any MyST-NB or Jupyter Book 1 project can load it: ``extensions = ["myst_nb", "lowrank_tutor.sphinxext"]``. While a
page is being built, explorers then come out as self-contained HTML: kernels inherit the variable
``LOWRANK_TUTOR_PAGE``, which is 1 while a page is built and otherwise 0, empty or unset. (Set it to 1 yourself where a
tool runs the notebook as a person would.) Styles and scripts that the blocks of a page share are kept once.

Worked examples (:mod:`lowrank_tutor.byhand`) come out with their formulas: unless you have chosen a
``nb_render_markdown_format`` yourself, it becomes ``"myst"``. They need ``"dollarmath"`` among your
``myst_enable_extensions``, which Jupyter Book has, and say so where it is missing.

With ``nb_execution_mode = "cache"`` the execution cache depends on the package, too: MyST-NB alone would keep figures
when a helper has changed. Results lie in ``.lowrank-cache`` beside the output folder, in one folder for each state of
the package. A later build removes old ones: all but the three used last, and never one that was used within the last
hour, because another build may still need it. Nothing else is ever removed. A cache path that you set yourself
(``nb_execution_cache_path``, or ``cache:`` in Jupyter Book's ``_config.yml``) is used exactly as you set it and never
emptied.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from lowrank_tutor import __version__

__all__ = ["package_fingerprint", "setup"]
__dir__ = __all__.copy  # completion offers no more than that

PAGE_VARIABLE = "LOWRANK_TUTOR_PAGE"
FORMULAS_VARIABLE = "LOWRANK_TUTOR_FORMULAS"  # 0 where a page would show the dollars of a formula
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PAGES = ("html", "dirhtml", "singlehtml", "epub")  # builders that can show text/html
CACHES = ".lowrank-cache"
MARK = "made-by-lowrank-tutor"  # a folder without it is not ours to remove
KEPT_CACHES = 3
IN_USE = 3600  # seconds after its start in which a build may still need its cache
ONCE = re.compile(r'<(style|script) data-once="(\w+)">.*?</\1>\n', re.DOTALL)


def package_fingerprint(*more: Path) -> str:
    """Hash every file of the package, and any ``more`` files that exist, into twelve hexadecimal digits."""
    package = Path(__file__).parent
    kept = sorted(p for p in package.rglob("*") if p.is_file() and p.suffix != ".pyc")
    digest = hashlib.sha256()
    for path in [*kept, *(p for p in more if p.is_file())]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def page_is_built() -> bool:
    """Whether a cell runs for a page, not for a person."""
    said = os.environ.get(PAGE_VARIABLE) or "0"
    if said not in {"0", "1"}:
        raise ValueError(f"{PAGE_VARIABLE} must be 1 (a page is being built), 0 or unset, got {said!r}")
    return said == "1"


def somebody_is_there() -> bool:
    """Whether a person may be at the kernel, and move a slider after its cell has run.

    Not while a page is built; and not where nobody could answer a question of the program either. Tools that execute a
    notebook for later readers (nbconvert, papermill, MyST-NB) say so in every request: its ``allow_stdin`` is false.
    """
    if os.environ.get(PAGE_VARIABLE):
        return not page_is_built()
    ipython: Any = sys.modules.get("IPython")
    kernel: Any = getattr(ipython and ipython.get_ipython(), "kernel", None)
    request = (kernel.get_parent() if hasattr(kernel, "get_parent") else None) or {}
    return bool(request.get("content", {}).get("allow_stdin", True))


def formulas_are_read() -> bool:
    """Whether formulas between dollars may stand in what a cell shows: everywhere, but on some pages."""
    return os.environ.get(FORMULAS_VARIABLE) != "0"


def _choose_what_is_shown(config: Any) -> None:
    """Prefer HTML over widget output, and allow cell Markdown the same syntax as page Markdown."""
    # MyST-NB's number for text/html is 30. Choices of the author come later, and count.
    config.nb_mime_priority_overrides = [
        *((builder, WIDGET_VIEW, 35) for builder in PAGES),
        *config.nb_mime_priority_overrides,
    ]
    if "nb_render_markdown_format" not in {*config._raw_config, *config.overrides}:
        config.nb_render_markdown_format = "myst"
    rendered = config.nb_render_markdown_format == "myst" and "dollarmath" in config.myst_enable_extensions
    os.environ[FORMULAS_VARIABLE] = "1" if rendered else "0"


def _tell_kernels(app: Any, config: Any) -> None:
    os.environ[PAGE_VARIABLE] = "1"
    _choose_what_is_shown(config)
    config.exclude_patterns = [*config.exclude_patterns, f"**{CACHES}"]  # `sphinx-build . public` puts it among sources
    if config.nb_execution_mode == "cache" and not config.nb_execution_cache_path:
        pins = Path(app.confdir) / "requirements.txt"
        # What cells show depends on both.
        state = package_fingerprint(pins) + ("" if formulas_are_read() else "-text")
        config.nb_execution_cache_path = str(_cache(Path(app.outdir).parent / CACHES, state))


def _cache(home: Path, fingerprint: str) -> Path:
    """Make the cache of this state of the package, and remove those of ours that were last used longest ago.

    Another build may do the same at this moment, so what was here may be gone a line later.
    """
    fresh = home / fingerprint
    for _ in range(3):
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            fresh.mkdir(parents=True, exist_ok=True)
            (fresh / ".gitignore").write_text("*\n", encoding="utf-8")
            (fresh / MARK).write_text("A later build may remove this folder.\n", encoding="utf-8")
            break
    used = {}  # a mark is as old as the last use of its cache
    for mark in home.glob(f"*/{MARK}"):
        with contextlib.suppress(FileNotFoundError):
            if not mark.parent.is_symlink():
                used[mark.parent] = mark.stat().st_mtime
    others = sorted(used.keys() - {fresh}, key=used.__getitem__, reverse=True)
    for old in others[KEPT_CACHES - 1 :]:
        if used[old] < time.time() - IN_USE:
            with contextlib.suppress(OSError):  # whoever renames it removes it; what stays is for a later build
                shutil.rmtree(old.rename(f"{old}-{os.getpid()}"))
    return fresh


def _keep_first(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Keep a style or script that several blocks of a page share (:mod:`lowrank_tutor.page`) in the first of them."""
    seen = set()

    def first(found: re.Match[str]) -> str:
        kept = "" if found[2] in seen else found[0]
        seen.add(found[2])
        return kept

    context["body"] = ONCE.sub(first, context.get("body", ""))


def _forget(_app: Any, _exception: Exception | None) -> None:
    os.environ.pop(PAGE_VARIABLE, None)
    os.environ.pop(FORMULAS_VARIABLE, None)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("config-inited", _tell_kernels, priority=100)  # before MyST-NB reads its settings
    app.connect("html-page-context", _keep_first)
    app.connect("build-finished", _forget)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
