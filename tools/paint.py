"""Measure how soon something is there to read, and how soon after a slider moves the new picture is ready.

``python tools/paint.py`` opens every page of the built site in headless Chromium, served from this machine, with
an empty cache, and prints the time to the first contentful paint beside its budget of one second. Then it steps every
explorer through its positions and prints the time from the ``input`` event to the decoded new frame: its median and
95th percentile, beside the budgets of 16 and 33 ms. It needs ``make book`` and a Chromium or Chrome on the machine.
"""

import re
import statistics
import sys
from pathlib import Path

from browsing import find_browser, serve
from playwright.sync_api import Browser, Page, sync_playwright

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
FIRST_PAINT = 1000  # milliseconds
MEDIAN, P95 = 16, 33
ROUNDS = 5

PAINTED = """
() => new Promise((done) => new PerformanceObserver((list) => {
  const entry = list.getEntriesByName("first-contentful-paint")[0];
  if (entry) done(entry.startTime);
}).observe({ type: "paint", buffered: true }))
"""

# The last slider moves fastest, each step is a new frame; a pause between steps, as a hand leaves one.
STEPS = """
async (figure) => {
  const inputs = [...figure.querySelectorAll("input")];
  const img = figure.querySelector("img");
  const positions = (i) => Array.from({ length: (i.max - i.min) / i.step + 1 }, (_, n) => +i.min + n * i.step);
  let places = [[]];
  for (const input of inputs) places = places.flatMap((p) => positions(input).map((v) => [...p, v]));
  const times = [];
  for (const place of places) {
    await new Promise((done) => setTimeout(done, 10 + 20 * Math.random()));
    const before = img.src;
    const start = performance.now();
    place.forEach((value, i) => {
      inputs[i].value = value;
      inputs[i].dispatchEvent(new Event("input", { bubbles: true }));
    });
    await img.decode();
    if (img.src !== before) times.push(performance.now() - start);
  }
  return times;
}
"""


def first_paints(browser: Browser) -> bool:
    """Print how soon each page shows its first words, and return whether all keep the budget."""
    kept = True
    print(f"{'page':34}{'median':>10}{'slowest':>10}   to the first contentful paint; budget {FIRST_PAINT} ms")
    with serve(SITE) as address:
        for path in sorted((SITE / "book").glob("*.html")):
            times = []
            for _ in range(ROUNDS):
                with browser.new_context() as context:  # with a cache of its own, empty
                    page = context.new_page()
                    page.goto(f"{address}/book/{path.name}")
                    times.append(page.evaluate(PAINTED))
            kept &= statistics.median(times) <= FIRST_PAINT
            print(f"{path.name:34}{statistics.median(times):7.0f} ms{max(times):7.0f} ms")
    return kept


def frames(page: Page) -> bool:
    """Print how soon each explorer shows its new frame, and return whether all keep the budgets."""
    kept = True
    print(
        f"{'explorer':24}{'steps':>7}{'median':>10}{'p95':>10}   from input to decoded frame; budget {MEDIAN}, {P95} ms"
    )
    for path in sorted((SITE / "book").glob("*.html")):
        for name in re.findall(r'<figure class="explorer" data-name="([^"]+)"', path.read_text(encoding="utf-8")):
            page.goto(path.as_uri())
            figure = page.locator(f'figure.explorer[data-name="{name}"]')
            figure.scroll_into_view_if_needed()
            figure.locator("input").first.focus()  # as a reader's hand or key does before the first step
            page.wait_for_timeout(500)
            times = [t for _ in range(ROUNDS) for t in figure.evaluate(STEPS)]
            median, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            kept &= median <= MEDIAN and p95 <= P95
            print(f"{name:24}{len(times):7}{median:7.1f} ms{p95:7.1f} ms")
    return kept


def main() -> int:
    """Measure, print, and say by the exit status whether every budget is kept."""
    program = find_browser()
    if program is None or not SITE.exists():
        print("needs make book, and a Chromium or Chrome on the machine", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        kept = [first_paints(browser), frames(browser.new_page())]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
