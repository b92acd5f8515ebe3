"""Run the cells of pages in the browser, and compare with the numbers that the page shows.

The files of Pyodide are large, and only `make live` fetches them: where they are not, these tests are skipped.
"""

import json
import os
import re
import shutil
from pathlib import Path

import live
import live_files
import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import find_browser, serve
from chapters import ROOT
from live_needs import needs
from playwright.sync_api import expect

WAIT = 300_000  # milliseconds, for a slow machine that is busy
WHOLE = {"01-rank", "02-svd-pca", "04-johnson-lindenstrauss", "use-sliders"}
NONE = {"use-linformer"}  # a page on which every cell needs PyTorch
THEME = ("[PST]", "[togglebutton]")  # what the theme notes on every page
WITH_CELLS = {path.stem for path in (ROOT / "book").glob("*.md") if "{code-cell}" in path.read_text(encoding="utf-8")}
PAGES = sorted(WITH_CELLS - NONE)


@pytest.fixture(scope="session")
def live_site(site, tmp_path_factory) -> Path:
    """A copy of the built site, with everything that `make live` adds."""
    folder = Path(os.environ.get("PYODIDE") or live_files.CACHE)
    if not (folder / live_files.LOCK).exists():
        pytest.skip(f"no Pyodide in {folder}: make live fetches it")
    copy = tmp_path_factory.mktemp("live") / "html"
    shutil.copytree(site, copy)
    live.make_live(copy, folder)
    return copy


class Visitor:
    """Someone who opens a page of the live site, and what the page has asked for and complained of."""

    def __init__(self, context, where, path):
        self.context = context
        self.context.set_default_timeout(WAIT)
        self.messages, self.told, self.asked = [], [], []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.address = f"{where}/book/{path}.html"
        self.visit()

    def visit(self):
        """Open the page."""
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.messages.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("console", lambda m: None if m.text.startswith(THEME) else self.told.append(m.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(self.address, wait_until="load")
        self.cells = self.page.locator("div.cell")

    def says(self, words):
        """Wait until the bar at the bottom says this."""
        self.page.wait_for_function(
            "(words) => new RegExp(words, 's').test(document.querySelector('.live-bar [role=status]')?.textContent)",
            arg=words,
        )

    def press(self, name, i=None):
        """Press a button of the bar or of a cell."""
        (self.page.locator(".live-bar") if i is None else self.cells.nth(i)).get_by_text(
            name, exact=True
        ).dispatch_event("click")

    def start(self, button=0):
        """Press a button "Run here": that of the page, or one of a cell. Wait until Python can run."""
        self.page.locator("article button.run-here").nth(button).dispatch_event("click")
        self.says("ready|Running|has run")

    def write(self, i, code):
        """Write a cell anew."""
        self.cells.nth(i).locator("textarea").evaluate(
            "(area, code) => { area.value = code; area.dispatchEvent(new Event('input')) }", code
        )

    def run(self, i, code=None, says="Cell {} has run", how="Run"):
        """Run a cell, changed or not, and return what it shows."""
        if code is not None:
            self.write(i, code)
        self.page.evaluate("document.querySelector('.live-bar [role=status]').textContent = ''")
        self.press(how, i)
        self.says(says.format(i + 1))
        return self.cells.nth(i).evaluate(READ)


@pytest.fixture
def visit(live_site, browser):
    """Open pages, each as somebody new would."""
    visitors = []
    with serve(live_site) as where:

        def go(path, **options):
            context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
            visitors.append(Visitor(context, where, path))
            return visitors[-1]

        yield go
        for visitor in visitors:
            assert [url for url in visitor.asked if not url.startswith((where, "data:", "blob:"))] == []
            visitor.context.close()


# What a cell shows: its words, its figures by their width, its numbers, and how many formulas, fields and errors.
READ = """
async (cell) => {
  for (const image of cell.querySelectorAll(".live-output img")) await image.decode().catch(() => 0);
  const out = cell.querySelector(".cell_output");
  const all = (css, of) => (out ? [...out.querySelectorAll(css)].map(of) : []);
  return {
    text: all(":scope > .output:not(.text_html) pre", (e) => e.textContent).join(""),
    words: all(":scope > p strong", (e) => e.textContent.trim()),
    rows: all("tr", (row) => [...row.cells].map((e) => e.textContent.trim()).join(" | ")),
    figures: all("figure", (e) => `${e.className} ${e.dataset.name}`),
    numbers: all("figure data", (e) => [e.dataset.name, Number(e.value)]),
    images: all(":scope > img", (e) => [parseFloat(e.style.width), e.naturalWidth > 0]),
    counts: ["div.math", "mjx-merror", "form.check", ".live-error"].map((css) => all(css, (e) => e).length),
  };
}
"""
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def apart(text):
    """The words of a text, and its numbers."""
    return NUMBER.sub("#", text).split(), [float(n.replace(",", "")) for n in NUMBER.findall(text)]


def plan_of(live_site, path):
    """What the page is told about its cells, with those that it offers."""
    plan = json.loads((live_site / f"_static/live/{path}.json").read_text(encoding="utf-8"))
    return plan, [cell["source"] for cell in plan["cells"]]


@pytest.mark.parametrize("path", PAGES)
def test_cells_match_page_offline(visit, live_site, path):
    plan, sources = plan_of(live_site, path)
    offered = [i for i, cell in enumerate(plan["cells"]) if not cell["needsTorch"]]
    assert len(offered) == len(sources) or path not in WHOLE
    reader = visit(path)
    built = [cell.evaluate(READ) for cell in reader.cells.all()]
    assert reader.messages == reader.told == [], "a page that nobody has clicked on says nothing at all"
    assert not any("_static/live" in url for url in reader.asked)
    reader.start()
    assert any("pyodide/numpy" in url for url in reader.asked), "else no request of the worker has been watched"
    reader.context.set_offline(True)
    for i in offered:
        shown = reader.run(i)
        for key in ("words", "figures", "counts"):
            assert shown[key] == built[i][key], (i, key)
        timed = re.search(r"\btime\.", sources[i])
        for mine, theirs in (
            (shown["text"], built[i]["text"]),
            ("\n".join(shown["rows"]), "\n".join(built[i]["rows"])),
        ):
            words, numbers = apart(mine)
            expected_words, expected_numbers = apart(theirs)
            assert words == expected_words, i
            # What is left of a zero after rounding depends on the linear algebra library.
            assert timed or numbers == pytest.approx(expected_numbers, rel=1e-6, abs=1e-9), i
        assert [name for name, _ in shown["numbers"]] == [name for name, _ in built[i]["numbers"]]
        numbers, expected_numbers = ([value for _, value in each["numbers"]] for each in (shown, built[i]))
        # An instrument computes from pixels and rounded data, as soon as it is seen.
        near = 1e-3 if any("instrument" in one for one in shown["figures"]) else 1e-6
        assert numbers == pytest.approx(expected_numbers, rel=near, abs=1e-6), i
        assert [width for width, _ in shown["images"]] == pytest.approx([w for w, _ in built[i]["images"]], rel=0.03)
        assert all(drawn for _, drawn in shown["images"])
    assert reader.messages == []
    for i in set(range(len(sources))) - set(offered):
        note = reader.cells.nth(i).locator(".live-note")
        expect(note).to_contain_text("This cell needs PyTorch")
        assert note.locator("a").get_attribute("href").startswith("https://colab.research.google.com")


def test_changed_cell_changes_figure(visit, live_site):
    _, sources = plan_of(live_site, "02-svd-pca")
    reader = visit("02-svd-pca")
    made = next(i for i, source in enumerate(sources) if "truncated_svd(A, k=2)" in source)
    cut = next(i for i, source in enumerate(sources) if "best_rank_k(A, 1)" in source)
    picture = reader.cells.nth(cut).locator(".cell_output > img")
    visible = [i for i in range(len(sources)) if reader.cells.nth(i).locator("button.run-here").count()]
    reader.start(1 + visible.index(cut))  # the button of that cell: those that it needs run first, and no others
    reader.says(f"Cell {cut + 1} has run")
    needed = needs(sources, [], cut)
    assert made in needed
    assert len(needed) < cut
    assert [i for i in range(len(sources)) if reader.cells.nth(i).locator(".live-output").count()] == [*needed, cut]
    seen = [picture.get_attribute("src")]
    reader.run(cut, sources[cut].replace("best_rank_k(A, 1)", "best_rank_k(A, 2)"))
    seen.append(picture.get_attribute("src"))
    reader.run(made, sources[made].replace("[4, 5]", "[0, 1]"))
    reader.run(cut)
    seen.append(picture.get_attribute("src"))
    assert len(set(seen)) == 3


def test_live_keys_and_buttons(visit):
    reader = visit("01-rank")
    reader.start()
    first, second, third = 2, 3, 4
    for i, code in {first: "k = 1", second: "print(k)", third: "print(k + 1)"}.items():
        reader.write(i, code)
    area = reader.cells.nth(third).locator("textarea")
    area.press("Shift+Enter")  # the two above with the same name have not run yet, and go first
    reader.says(f"Cell {third + 1} has run")
    assert reader.cells.nth(third).evaluate(READ)["text"] == "2\n"
    assert area.input_value() == "print(k + 1)"
    reader.run(first, "k = 5")
    assert reader.run(third)["text"] == "6\n"
    reader.write(first, "k = 6")
    assert reader.run(third)["text"] == "7\n", "a cell that has changed runs again before those that need it"
    reader.write(first, "k = 7")
    above = reader.run(third, says="The cells above cell {} have run", how="Run all above")
    assert above["text"] == "7\n"
    assert reader.cells.nth(second).evaluate(READ)["text"] == "7\n"
    reader.press("Reset", first)
    expect(reader.cells.nth(first).locator("textarea")).to_have_value(re.compile("byhand.row_reduce"))
    expect(reader.cells.nth(first).locator(".cell_output")).to_contain_text("The matrix is reduced")
    assert reader.run(third, "print(byhand.__name__)")["text"] == "lowrank_tutor.byhand\n", "it ran again, as it stands"


def test_errors_leave_page_usable(visit):
    reader = visit("01-rank")
    reader.start()
    cell = reader.cells.nth(2)
    for code, said in {
        "x = = 1": "SyntaxError",
        "unknown_name": "Cell 3, line 1: unknown_name\nNameError: name 'unknown_name' is not defined",
        "import numpy as np\nnp.ones((40_000, 40_000))": "array is too big",
        "[np.empty((15_000, 15_000)) for _ in range(9)]": "MemoryError: this takes more memory than a browser gives",
        "import torch": "torch is not among the packages",
        "raise SystemExit": "SystemExit",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title(1 / 0)": "ZeroDivisionError",
    }.items():
        assert reader.run(2, code, says="Cell {} ended with an error")["images"] == []
        error = cell.locator(".live-error").inner_text()
        assert said in error, error
        assert not re.search(r"/lib/|/home/|site-packages|\.py", error)
    assert reader.run(2, "print(6 * 7)")["images"] == [], "what an error has interrupted is not drawn later"
    cell.locator("textarea").fill("while True:\n    pass")
    reader.press("Run", 2)
    reader.says("Running cell 3")
    reader.page.locator(".live-bar button", has_text="Stop").click()
    reader.says("Stopped. .* every name .* is gone")
    assert reader.run(2, "print(6 * np.int_(7))")["text"] == "42\n"  # the cell that imports NumPy runs again first
    reader.run(2, "import os\nos.abort()", says="Python has stopped: .* Every name .* is gone")
    reader.press("Start again")
    reader.says("ready")
    assert reader.run(2, "print(6 * 7)")["text"] == "42\n"
    reader.page.close()  # a closed tab
    reader.visit()
    reader.start(1)
    reader.says(r"Cell \d+ has run")


def test_live_slider_and_answer(visit, live_site):
    _, sources = plan_of(live_site, "01-rank")
    reader = visit("01-rank")
    reader.start()
    i = next(i for i, source in enumerate(sources) if "explore(" in source and "rank_tolerance" in source)
    reader.run(i)
    figure = reader.cells.nth(i).locator("figure.explorer")
    at = figure.locator("input[type=range]")
    before = figure.locator("img").first.get_attribute("src")
    at.evaluate("(range) => { range.value = -5; range.dispatchEvent(new Event('input', { bubbles: true })) }")
    expect(figure.locator("data[data-name=sheets_and_noise]")).to_have_text("5", timeout=WAIT)
    assert figure.locator("img").first.get_attribute("src") != before
    i = next(i for i, source in enumerate(sources) if source.startswith('check("ex-rank-hand"'))
    assert reader.run(i, 'check("ex-rank-hand", 2)')["text"] == "✓ Right.\n"


def test_live_page_is_accessible(visit, live_site):
    plan, sources = plan_of(live_site, "05-bilinear-scoring")
    reader = visit("05-bilinear-scoring", reduced_motion="reduce")

    def run_some_cells():
        slider = next(i for i, source in enumerate(sources) if "explore(" in source)
        reader.run(slider)
        below = next(i for i, cell in enumerate(plan["cells"]) if i > slider and not cell["needsTorch"])
        reader.run(below, "1 / 0", says="ended with an error")

    for step in (None, reader.start, run_some_cells):
        if step:
            step()
        for scheme, width, height in (("light", 1280, 900), ("dark", 360, 740)):
            reader.page.emulate_media(color_scheme=scheme)
            reader.page.set_viewport_size({"width": width, "height": height})
            reader.page.wait_for_function("(scheme) => document.documentElement.dataset.theme === scheme", arg=scheme)
            found = Axe().run(reader.page, context="article, .live-bar" if step else "article")
            assert [v["id"] for v in found.response["violations"]] == [], (scheme, step)
            assert reader.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_saving_data_asks_first(visit):
    reader = visit("01-rank")
    reader.page.evaluate("Object.defineProperty(navigator, 'connection', { value: { saveData: true } })")
    button = reader.page.locator("article button.run-here").first
    button.dispatch_event("click")
    reader.says(r"MB, and your device asks to save data")
    said = float(re.search(r"[\d.]+(?= MB)", reader.page.locator(".live-bar [role=status]").inner_text())[0])
    assert f"({said:.0f} MB)" in button.inner_text()
    reader.press("Not now")
    assert reader.page.locator(".live-bar").count() == 0
    button.dispatch_event("click")
    reader.says("asks to save data")
    assert not any("pyodide" in url for url in reader.asked)
    reader.press("Load it")
    reader.says("ready")


def test_live_without_server(visit, live_site, browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((live_site / "book" / "01-rank.html").as_uri())
        page.locator("article button.run-here").first.dispatch_event("click")
        expect(page.locator("article p[role=status]").first).to_contain_text("make serve")
    for lost, said in (("live.js", "article p[role=status]"), ("01-rank.json", ".live-bar [role=status]")):
        reader = visit("01-rank")
        reader.page.route(f"**/{lost}", lambda route: route.abort())
        reader.page.locator("article button.run-here").first.dispatch_event("click")
        expect(reader.page.locator(said).first).to_have_text(re.compile("Python could not be loaded"))
    reader.page.unroute_all()
    reader.press("Try again")
    reader.says("ready")


def test_second_visit_is_cached(live_site, browser, tmp_path):
    """The server says only when a file was changed. A browser keeps large files unless it is incognito."""
    answered = []
    with serve(live_site, answered) as where:
        context = browser.browser_type.launch_persistent_context(tmp_path, executable_path=find_browser())
        reader = Visitor(context, where, "01-rank")
        reader.start()
        first = {path for path, code in answered if "/_static/live/" in path and code == 200}
        answered.clear()
        reader.page.close()
        reader.visit()
        reader.start()
        context.close()
    assert any("numpy" in path for path in first)
    assert [path for path, code in answered if "/_static/live/" in path and code == 200] == []


def test_live_buttons_weight(site, live_site):
    for path in WITH_CELLS:
        with_buttons = (live_site / "book" / f"{path}.html").read_text(encoding="utf-8")
        without = live.ADDED.sub("", (site / "book" / f"{path}.html").read_text(encoding="utf-8"))
        assert live.ADDED.sub("", with_buttons) == without
        assert (with_buttons == without) == (path in NONE)
        assert len(with_buttons) - len(without) < 6000
