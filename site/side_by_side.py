"""Run the chapters side by side, before Sphinx finds each in the cache.

Each runs on one core. The numerical libraries would split even small products among all cores, and
on a busy machine wait for the slowest most of the time.
"""

import logging
import os
import shutil
from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from pathlib import Path
from threading import Lock
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.executors.basic import ExecutionWorkerLocalSerial, ProcessData
from myst_nb.core.read import is_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import getLogger

# What the executor answers if it could not run a chapter, or could not write it into the cache.
NOT_KEPT = 2
READER = {"type": "plugin", "name": "myst_nb_md"}  # the name that MyST-NB gives its own


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("env-before-read-docs", fill_the_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def in_turn(write: Callable[..., Any]) -> Callable[..., Any]:
    """Let one thread write at a time.

    Chapters that end together would lock each other out of the database.
    """
    turn = Lock()

    def write_alone(*bundle: Any, **settings: Any) -> Any:
        with turn:
            return write(*bundle, **settings)

    return write_alone


def fill_the_cache(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    if app.config.nb_execution_mode != "cache":
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = Path(app.config.nb_execution_cache_path)
    # While this file lies there, an interrupt or a full disk may have left half a chapter in the
    # cache.
    stamp = folder / "chapters-run"
    if stamp.exists():
        shutil.rmtree(folder / "executed", ignore_errors=True)
        (folder / "global.db").unlink(missing_ok=True)
    cache = get_cache(folder)
    cache.cache_notebook_bundle = in_turn(cache.cache_notebook_bundle)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [env.doc2path(doc) for doc in docnames]
    chapters = [
        source
        for source in sources
        if is_myst_markdown_notebook(Path(source).read_text(encoding="utf-8"))
    ]
    for chapter in chapters:
        cache.add_nb_to_project(chapter, read_data=READER)
    # A chapter that fails is not cached: MyST-NB runs it again, and says what is wrong in its own
    # way.
    execute = ExecutionWorkerLocalSerial(logging.Logger("side by side"))

    def run(number: int, path: str) -> int:
        status, _ = execute(
            ProcessData(number, path, cache, app.config.nb_execution_timeout, allow_errors=False)
        )
        getLogger(__name__).info("ran %s", Path(path).name)
        return status

    stamp.touch()
    # Threads, because each chapter has a process anyway: its kernel. They do not outlive an
    # interrupted build.
    with ThreadPool() as pool:
        waiting = cache.list_unexecuted(filter_uris=chapters)
        ended = pool.starmap(run, [(record.pk, record.uri) for record in waiting], chunksize=1)
    if NOT_KEPT not in ended:
        stamp.unlink()
