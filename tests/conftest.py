"""Settings of all tests, and what several of them need: the built site, and a browser to read it
in.

Drawn examples are the same in every run, and a slow machine may take its time over them.
"""

import functools
import gc
import os
import re
from pathlib import Path

if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # the workers share the cores: more threads would wait for one another
    os.environ |= dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
    )

import pytest
from browsing import GET_ONE, find_browser, serve
from chapters import CHAPTERS, ROOT, explorers
from hypothesis import settings
from playwright.sync_api import sync_playwright
from visits import READERS, SITE, Reader, Window

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

SOURCES = ["_config.yml", "_toc.yml", "requirements.txt", "site", "book", "lowrank_tutor"]
DERIVED = {".ipynb", ".pyc"}


# Rooms of tests and of the package that hold no mathematics; a module, a new one too, needs no
# entry.
AROUND = {"book", "course", "figures", "kit", "measure", "notebooks", "site"}
BOOK = {path.stem for path in (ROOT / "book").glob("*.md")}
OF_THE_BOOK = {ROOT / "tests" / room for room in ("book", "site", "notebooks")}


def subject(item):
    """What a test is about: a page of the book, or else what its file is about."""
    if item.path.parent in OF_THE_BOOK:
        for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
            page = explorers().get(value, value) if isinstance(value, str | Path) else ""
            if Path(page).stem in BOOK:
                return Path(page).stem
        if number := re.fullmatch(r"test_chapter_(\d\d)", item.path.stem):
            return next(path.stem for path in CHAPTERS if path.stem.startswith(number[1]))
    return item.path.stem


def pytest_xdist_auto_num_workers():
    """Use one worker more than there are cores, four at most: browser tests wait for almost half of
    their time.
    """
    return min(4, (os.cpu_count() or 1) + 1)


def mark(item):
    """Mark what tests mathematics, and what of it takes long, for ``make test FAST=1`` and ``make
    mutants``.
    """
    room = item.path.relative_to(ROOT).parts[1].removesuffix(".py")
    if room not in AROUND and not item.get_closest_marker("repository"):
        item.add_marker("mathematics")
    if room == "byhand" or "compiler" in getattr(item, "fixturenames", ()):
        item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, and pytest the markers
def pytest_collection_modifyitems(items):
    """Keep together what shares work: a chapter's cells run once, and a page is opened once, in one
    worker.
    """
    for item in items:
        mark(item)
    subjects = {item: subject(item) for item in items}
    # What takes longest begins first, so that at the end no worker waits for another.
    chapters = [path.stem for path in CHAPTERS]
    order = ["test_print", "test_instrument", *chapters, *dict.fromkeys(subjects.values())]
    items.sort(key=lambda item: order.index(subjects[item]))
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(subjects[item]))


# What is imported and collected, about a million objects, lives until the end: no collection need
# look through it.
@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    """Rest the garbage collector until the tests are collected."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Set it to work again, on what is new."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def site():
    stamp = SITE / "objects.inv"  # written at the end of every build
    if not stamp.exists():
        pytest.fail("the site is not built: run make book")
    sources = [
        p for name in SOURCES for p in (ROOT / name, *(ROOT / name).rglob("*")) if p.is_file()
    ]
    newer = [
        p for p in sources if p.suffix not in DERIVED and p.stat().st_mtime > stamp.stat().st_mtime
    ]
    if newer:
        pytest.fail(f"the site is older than {', '.join(p.name for p in newer)}: run make book")
    return SITE


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served, as a visitor from the network meets it."""
    with serve(site) as where:
        yield where


@pytest.fixture(scope="session")
def browser():
    program = find_browser()
    if program is None:
        (pytest.fail if os.environ.get("LOWRANK_REQUIRE_BROWSER") == "1" else pytest.skip)(GET_ONE)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program)


@pytest.fixture(scope="session")
def readers(browser, address):
    """Those who read the site: a page is opened once in each way, for all tests."""
    windows = {where: Window(browser, address, where) for where in ("http", "file")}
    yield {who: Reader(windows[kind.where], who) for who, kind in READERS.items()}
    for window in windows.values():
        window.context.close()


@pytest.fixture
def compiler():
    """PyTorch's, to make one graph of a function or of a layer; it forgets what other tests have
    compiled.
    """
    import torch  # only here: most tests of the book's pages need none

    torch.compiler.reset()
    yield functools.partial(torch.compile, fullgraph=True)
    torch.compiler.reset()
