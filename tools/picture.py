"""Photograph the first explorer of chapter 1 for the README: ``python tools/picture.py`` after ``make book``."""

from pathlib import Path

from browsing import find_browser
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Move the slider to 24 and write ``.github/explorer.png``."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto((ROOT / "_build/html/book/01-rank.html").as_uri())
        figure = page.locator("figure.explorer").first
        slider = figure.locator("input")
        while figure.locator("output").inner_text() != "24":
            slider.press("ArrowRight")
        slider.blur()
        figure.screenshot(path=ROOT / ".github/explorer.png")
        browser.close()


if __name__ == "__main__":
    main()
