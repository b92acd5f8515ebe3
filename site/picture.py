"""Photograph the figure that opens the book: a card for links, and a loop for the README.

Run ``python site/picture.py`` after ``make book``.
"""

from io import BytesIO
from pathlib import Path

from browsing import find_browser
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
TELLING = 30  # percent of damage, where the two sides part
CARD = {"width": 1200, "height": 630}
# Of the card: the question, both tables, what they say, and the claim.
CARD_STYLE = """
.bd-header-article, .landing-links, .page-links, footer, h1 + p, .brief, .score, .sum, .kept,
  .instrument-buttons, .instrument-said, figcaption, section > figure ~ * {
  display: none !important;
}
html.landing .bd-article > section > h1 { padding: 0; text-align: center; font-size: 2.6rem; }
.instrument .frame { width: 21.5rem; }
.instrument .instrument-live > .claim { font-size: 2.1rem; }
"""


def loop(page: Page) -> list[Image.Image]:
    """Pull the lever from 0 to where the sides part, and rest there: six seconds."""
    figure, frames = page.locator('figure.instrument[data-name="two-cuts"]'), []
    for damage in range(0, TELLING + 1, 2):
        figure.evaluate("(figure, damage) => figure.instrument.set({ damage })", damage)
        picture = Image.open(BytesIO(figure.screenshot())).convert("RGB")
        frames.append(picture.quantize(48, dither=Image.Dither.NONE))
    return frames


def main() -> None:
    """Write ``.github/two-cuts.gif`` and ``site/static/preview.png``."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        page = browser.new_page(viewport={"width": 1000, "height": 900}, reduced_motion="reduce")
        page.goto((ROOT / "_build/html/book/index.html").as_uri())
        page.locator(".instrument.live").first.wait_for()
        page.add_style_tag(content="figcaption, .instrument-buttons { display: none !important; }")
        first, *others = loop(page)
        times = [900, *[120] * (len(others) - 1), 3400]
        first.save(
            ROOT / ".github/two-cuts.gif", save_all=True, append_images=others, duration=times,
            loop=0, optimize=True,
        )  # fmt: skip
        page.set_viewport_size(CARD)
        page.add_style_tag(content=CARD_STYLE)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=ROOT / "site/static/preview.png")
        browser.close()


if __name__ == "__main__":
    main()
