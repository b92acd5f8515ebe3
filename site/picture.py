"""Photograph the landing page, and its figure for the README.

Run ``python site/picture.py`` after ``make book``.
"""

from pathlib import Path

from browsing import find_browser
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Keep six sheets, and write the two pictures.

    They are ``.github/storyteller.png`` and, for links from elsewhere, ``site/static/preview.png``.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport={"width": 1100, "height": 900}, reduced_motion="reduce")
        page.goto((ROOT / "_build/html/book/index.html").as_uri())
        figure = page.locator('figure.instrument[data-name="storyteller"]')
        figure.evaluate("(figure) => figure.instrument.set({ k: 6 })")
        figure.screenshot(path=ROOT / ".github/storyteller.png")
        page.set_viewport_size({"width": 1200, "height": 630})
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=ROOT / "site/static/preview.png")
        browser.close()


if __name__ == "__main__":
    main()
