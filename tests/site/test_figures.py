"""Two walks over all figures of the site: each handle stays in reach, and no words are printed over
others.

Pages come without MathJax, for which much of their time would go.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page
from visits import PAGES, PHONE, SITE, WIDE
from walks import OVERLAPS, READY, lost_handles

FIGURES = ('<figure class="instrument"', '<figure class="explorer"')
WITH_FIGURES = [
    page
    for page in PAGES
    if any(words in (SITE / page).read_text(encoding="utf-8") for words in FIGURES)
]
each_page = pytest.mark.parametrize("path", WITH_FIGURES)


@pytest.fixture(scope="module")
def visit(browser, address) -> Iterator[Callable[..., Page]]:
    """Open a page of the site on a screen, or return it as another test has left it."""
    windows = {}

    def open_page(path: str, screen: dict) -> Page:
        width, height, mobile = screen.values()
        if width not in windows:
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, is_mobile=mobile, reduced_motion="reduce")
            context.set_default_timeout(300_000)  # a slow machine may take its time
            context.route("**/mathjax/**", lambda route: route.abort())
            windows[width] = context.new_page()
        if windows[width].url != f"{address}/{path}":
            windows[width].goto(f"{address}/{path}")
            windows[width].evaluate(READY)
        return windows[width]

    yield open_page
    for page in windows.values():
        page.context.close()


@each_page
def test_handles_stay_in_reach(visit, path):
    assert lost_handles(visit(path, WIDE)) == []


@pytest.mark.parametrize("screen", [WIDE, PHONE], ids=["wide", "phone"])
@each_page
def test_words_stand_apart(visit, path, screen):
    assert visit(path, screen).evaluate(OVERLAPS) == []
