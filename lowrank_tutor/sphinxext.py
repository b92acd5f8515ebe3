"""Does a cell run for a page or for a person? This Sphinx extension lets :mod:`lowrank_tutor.explore` know.

Any MyST-NB or Jupyter Book project can load it: ``extensions = ["myst_nb", "lowrank_tutor.sphinxext"]``. While a page
is being built, explorers then come out as self-contained HTML. It also ties the execution cache to the package: MyST-NB
looks only at a page's own cells, so without this a changed helper would leave stale figures behind.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from lowrank_tutor import __version__

PAGE_VARIABLE = "LOWRANK_TUTOR_PAGE"  # read by lowrank_tutor.explore in the kernels, which inherit it
KEPT_CACHES = 3


def package_fingerprint(*more: Path) -> str:
    """Hash every file of the package, and any ``more`` files that exist, into twelve hexadecimal digits."""
    package = Path(__file__).parent
    kept = sorted(p for p in package.rglob("*") if p.is_file() and p.suffix != ".pyc")
    digest = hashlib.sha256()
    for path in [*kept, *(p for p in more if p.is_file())]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _terminal() -> str:
    """Where a progress bar can be seen by whoever builds the page."""
    try:
        return os.ttyname(2) if sys.stderr.isatty() else os.devnull
    except OSError:  # a container's terminal may have no name
        return os.devnull


def _tell_kernels(app: Any, config: Any) -> None:
    os.environ[PAGE_VARIABLE] = _terminal()
    if config.nb_execution_mode != "cache":
        return
    caches = Path(app.outdir).parent
    fresh = caches / f"cache-{package_fingerprint(Path(app.confdir) / 'requirements.txt')}"
    config.nb_execution_cache_path = str(fresh)
    older = sorted((p for p in caches.glob("cache-*") if p != fresh), key=lambda p: p.stat().st_mtime)
    for path in older[: len(older) - KEPT_CACHES + 1]:
        shutil.rmtree(path)


def _forget(_app: Any, _exception: Exception | None) -> None:
    os.environ.pop(PAGE_VARIABLE, None)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("config-inited", _tell_kernels, priority=100)  # before MyST-NB reads its settings
    app.connect("build-finished", _forget)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
