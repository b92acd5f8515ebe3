"""Photograph the tilted window of chapter 1 for the README: ``python tools/picture.py`` after ``make book``."""

from pathlib import Path

from browsing import find_browser
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Tilt it by five degrees, keep 8 sheets, and write ``.github/tilt.png``."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto((ROOT / "_build/html/book/01-rank.html").as_uri())
        figure = page.locator('figure.instrument[data-name="tilt"]')
        figure.evaluate("(figure) => figure.instrument.set({ tilt: 5, k: 8 })")
        figure.screenshot(path=ROOT / ".github/tilt.png")
        browser.close()


if __name__ == "__main__":
    main()
