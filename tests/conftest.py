"""Settings of all tests, and what several of them need: the built site, and a browser to read it in.

Drawn examples are the same in every run, and a slow machine may take its time over them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import GET_ONE, find_browser, serve
from chapters import ROOT
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

SITE = ROOT / "_build" / "html"
SOURCES = ["_config.yml", "_toc.yml", "requirements.txt", "_ext", "_static", "_templates", "book", "lowrank_tutor"]
DERIVED = {".ipynb", ".pyc"}


@pytest.fixture(scope="session")
def site() -> Path:
    stamp = SITE.parent / "refs.json"  # written at the end of every build
    if not stamp.exists() or not (SITE / "index.html").exists():
        pytest.fail("the site is not built: run make book")
    sources = [p for name in SOURCES for p in (ROOT / name, *(ROOT / name).rglob("*")) if p.is_file()]
    newer = [p for p in sources if p.suffix not in DERIVED and p.stat().st_mtime > stamp.stat().st_mtime]
    if newer:
        pytest.fail(f"the site is older than {', '.join(p.name for p in newer)}: run make book")
    return SITE


@pytest.fixture(scope="session")
def address(site) -> Iterator[str]:
    """Where the site is served, as a visitor from the network meets it."""
    with serve(site) as where:
        yield where


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        (pytest.fail if os.environ.get("LOWRANK_REQUIRE_BROWSER") == "1" else pytest.skip)(GET_ONE)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program)
