"""How soon after a slider moves is the new picture ready? From the event to the decoded frame, for every explorer.

``python -m benchmarks.paint`` steps every explorer of the built site through its positions in headless Chromium and
prints, for each, the time from the ``input`` event to the decoded new frame: its median and 95th percentile, beside the
budgets of 16 and 33 ms. It needs ``make book`` and a Chromium or Chrome on the machine.
"""

import re
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MAC_BROWSERS = [f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome")]
MEDIAN, P95 = 16, 33  # milliseconds
ROUNDS = 5

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


def main() -> int:
    """Measure, print, and say by the exit status whether every budget is kept."""
    browser = next((p for p in (*map(shutil.which, BROWSERS), *MAC_BROWSERS) if p and Path(p).exists()), None)
    if browser is None or not SITE.exists():
        print("needs make book, and a Chromium or Chrome on the machine", file=sys.stderr)
        return 2
    kept = True
    print(
        f"{'explorer':24}{'steps':>7}{'median':>10}{'p95':>10}   from input to decoded frame; budget {MEDIAN}, {P95} ms"
    )
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser).new_page()
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
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
