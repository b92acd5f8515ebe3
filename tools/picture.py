"""Photograph the first explorer of chapter 1 for the README: ``python tools/picture.py`` after ``make book``."""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

with sync_playwright() as playwright:
    program = next(found for name in BROWSERS if (found := shutil.which(name)))
    browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto((ROOT / "_build/html/book/01-rank.html").as_uri())
    figure = page.locator("figure.explorer").first
    slider = figure.locator("input")
    while figure.locator("output").inner_text() != "24":
        slider.press("ArrowRight")
    slider.blur()
    figure.screenshot(path=ROOT / ".github/explorer.png")
    browser.close()
