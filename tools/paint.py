"""Measure how soon something is there to read, and how soon after a slider moves the new picture is ready.

``python tools/paint.py`` opens every page of the built site in headless Chromium, served from this machine, with
an empty cache, and prints the time to the first contentful paint beside its budget of one second. Then it steps every
explorer through its positions and prints the time from the ``input`` event to the decoded new frame: its median and
95th percentile, beside the budgets of 16 and 33 ms. Last it takes each instrument by the mouse, and prints the time
from a step of the drag to the end of the frame that shows it, with the same budgets; beside it the work of a step, the
time that the page's own thread was busy, which is the same on a machine that does other things too; and how long a
picture that is turned waits for its decomposition. It needs ``make book`` and a Chromium or Chrome on the machine;
another folder with a site can be named instead: ``python tools/paint.py folder``.
"""

import math
import re
import statistics
import sys
from pathlib import Path

from browsing import PLACES, find_browser, serve
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

SITE = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).resolve().parent.parent / "_build" / "html").resolve()
FIRST_PAINT = 1000  # milliseconds
MEDIAN, P95 = 16, 33
DECOMPOSED = 400
ROUNDS = 5

PAINTED = """
() => new Promise((done) => new PerformanceObserver((list) => {
  const entry = list.getEntriesByName("first-contentful-paint")[0];
  if (entry) done(entry.startTime);
}).observe({ type: "paint", buffered: true }))
"""

# The last slider moves fastest, each step is a new frame; a pause between steps, as a hand leaves one.
STEPS = f"""
async (figure) => {{
  const img = figure.querySelector("img");
  const {{ places }} = ({PLACES})(figure);
  const times = [];
  for (const place of places) {{
    await new Promise((done) => setTimeout(done, 10 + 20 * Math.random()));
    const before = img.src;
    const start = performance.now();
    place.forEach((move) => move());
    await img.decode();
    if (img.src !== before) times.push(performance.now() - start);
  }}
  return times;
}}
"""


# The browser hands a move of the mouse over just before it draws the next frame; after that frame a message arrives.
WATCH = """
(figure) => {
  window.steps = [];
  figure.addEventListener("pointermove", () => {
    const start = performance.now();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => steps.push(performance.now() - start);
      port2.postMessage(0);
    });
  }, true);
}
"""

MIDDLE = """
(knob) => {
  const { x, y, width, height } = knob.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}
"""

TURNS = """
async (figure) => {
  const times = [];
  for (const tilt of [3, 11, 24, 37, 8, 19]) {
    const start = performance.now();
    await figure.instrument.set({ picture: "portrait", tilt, k: 9 });
    times.push(performance.now() - start);
  }
  return times.slice(1);  // the first reads the picture and hires the worker
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


def busy_for(session: CDPSession) -> float:
    """Say for how many seconds the page's thread has worked so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def drags(page: Page) -> bool:
    """Print how soon a step of a drag is seen, for one instrument of each name, and return whether all keep to it."""
    kept = True
    head = "".join(f"{name:>10}" for name in ("median", "p95", "work"))
    print(f"{'instrument':24}{'steps':>7}{head}   from a move to its frame; budget {MEDIAN}, {P95} ms")
    seen = set()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    for path in sorted((SITE / "book").glob("*.html")):
        for name in re.findall(r'<figure class="instrument" data-name="([^"]+)"', path.read_text(encoding="utf-8")):
            if name in seen:
                continue
            page.goto(path.as_uri())
            figure = page.locator(f'figure.instrument[data-name="{name}"]:has(.handle)').first
            if not figure.count():  # a guess that is typed or chosen: another page may have one that is drawn
                continue
            seen.add(name)
            knob = figure.locator(".handle:not([hidden]) .knob").first
            knob.scroll_into_view_if_needed()
            page.wait_for_timeout(1000)
            x, y = knob.evaluate(MIDDLE)
            figure.evaluate(WATCH)
            page.mouse.move(x, y)
            page.mouse.down()
            busy = -busy_for(session)
            for i in range(40 * ROUNDS):  # to and fro, two pixels and more a step
                page.mouse.move(x + 40 * math.sin(i / 8), y + 40 * math.sin(i / 11))
                page.wait_for_timeout(10)
            busy += busy_for(session)
            page.mouse.up()
            times = page.evaluate("steps")
            median, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            kept &= median <= MEDIAN and p95 <= P95
            print(f"{name:24}{len(times):7}{median:7.1f} ms{p95:7.1f} ms{1000 * busy / len(times):7.1f} ms")
            if name == "tilt":
                waits = figure.evaluate(TURNS)
                kept &= statistics.median(waits) <= DECOMPOSED
                print(f"  turned and decomposed {statistics.median(waits):.0f} ms; budget {DECOMPOSED} ms")
    return kept


def main() -> int:
    """Measure, print, and say by the exit status whether every budget is kept."""
    program = find_browser()
    if program is None or not SITE.exists():
        print("needs make book, and a Chromium or Chrome on the machine", file=sys.stderr)
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        kept = [first_paints(browser), frames(browser.new_page()), drags(browser.new_page())]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
