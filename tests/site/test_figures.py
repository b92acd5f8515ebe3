"""A walk over all figures of the site: each handle stays in reach, and no words are printed over
others.

Pages come without MathJax, for which much of their time would go.
"""

import pytest
from visits import PAGES, REST, SITE
from walks import OVERLAPS, READY, lost_handles

FIGURES = ('<figure class="instrument"', '<figure class="explorer"')
WITH_FIGURES = [
    page
    for page in PAGES
    if any(words in (SITE / page).read_text(encoding="utf-8") for words in FIGURES)
]


@pytest.fixture(scope="module")
def window(browser):
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(300_000)  # a slow machine may take its time
    context.route("**/mathjax/**", lambda route: route.abort())
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", WITH_FIGURES)
def test_figures_in_use(window, address, path):
    window.set_viewport_size({"width": 1280, "height": 900})
    window.goto(f"{address}/{path}")
    window.evaluate(READY)
    assert lost_handles(window) == []
    for width in (1280, 360):
        window.set_viewport_size({"width": width, "height": 740})
        window.wait_for_timeout(1000 * REST)
        assert window.evaluate(OVERLAPS) == [], width
