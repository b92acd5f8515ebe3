"""Do the cells of the page run in the reader's browser, with the numbers that the page shows?

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
from browsing import serve
from playwright.sync_api import expect

WAIT = 300_000  # milliseconds, for a slow machine that is busy
WHOLE = {"01-rank", "02-svd-pca", "04-johnson-lindenstrauss"}
MIXED = {"03-family", "05-bilinear-scoring", "06-attention", "07-linformer", "08-today", "corrections"}
PAGES = sorted(WHOLE | MIXED)


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

    def __init__(self, browser, where, path, **options):
        self.where = where
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.context.set_default_timeout(WAIT)
        self.page = self.context.new_page()
        self.messages, self.asked = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(f"{where}/book/{path}.html", wait_until="load")
        self.status = self.page.locator(".live-bar [role=status]")
        self.cells = self.page.locator("div.cell")

    def start(self, button=0):
        """Press a button "Run here": that of the page, or one of a cell."""
        self.page.locator("article button.run-here").nth(button).dispatch_event("click")

    def run(self, i, code=None, says="Cell {} has run."):
        """Run a cell, changed or not, and return what it says."""
        if code is not None:
            self.cells.nth(i).locator("textarea").evaluate(
                "(area, code) => { area.value = code; area.dispatchEvent(new Event('input')) }", code
            )
        self.cells.nth(i).locator(".live-tools button").first.dispatch_event("click")
        expect(self.status).to_have_text(re.compile(says.format(i + 1)), timeout=WAIT)
        return self.cells.nth(i).evaluate(READ)


@pytest.fixture
def visit(live_site, browser):
    """Open pages, each as somebody new would."""
    visitors = []
    with serve(live_site) as where:

        def go(path, **options):
            visitors.append(Visitor(browser, where, path, **options))
            return visitors[-1]

        yield go
        for visitor in visitors:
            assert [url for url in visitor.asked if not url.startswith((where, "data:", "blob:"))] == []
            visitor.context.close()


# What a cell shows: its words, its figures by their width, its numbers, and how many formulas, fields and errors.
READ = """
(cell) => {
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


@pytest.mark.parametrize("path", PAGES)
def test_every_offered_cell_says_what_the_page_says_with_the_network_cut_off(visit, live_site, path):
    plan = json.loads((live_site / f"_static/live/{path}.json").read_text(encoding="utf-8"))
    offered = [i for i, cell in enumerate(plan["cells"]) if not cell["needsTorch"]]
    assert len(offered) == len(plan["cells"]) or path in MIXED
    reader = visit(path)
    built = [cell.evaluate(READ) for cell in reader.cells.all()]
    assert not reader.messages
    assert not any("_static/live" in url for url in reader.asked)
    reader.start()
    expect(reader.status).to_have_text(re.compile("ready"), timeout=WAIT)
    reader.context.set_offline(True)
    for i in offered:
        shown = reader.run(i)
        for key in ("words", "figures", "counts"):
            assert shown[key] == built[i][key], (i, key)
        timed = re.search(r"\btime\.", plan["cells"][i]["source"])
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
    assert not reader.messages
    for i in set(range(len(plan["cells"]))) - set(offered):
        note = reader.cells.nth(i).locator(".live-note")
        expect(note).to_contain_text("This cell needs PyTorch")
        assert note.locator("a").get_attribute("href").startswith("https://colab.research.google.com")


def test_a_reader_changes_k_and_sees_another_figure_and_other_numbers_below(visit, live_site):
    plan = json.loads((live_site / "_static/live/02-svd-pca.json").read_text(encoding="utf-8"))
    sources = [cell["source"] for cell in plan["cells"]]
    reader = visit("02-svd-pca")
    made = next(i for i, source in enumerate(sources) if "truncated_svd(A, k=2)" in source)
    cut = next(i for i, source in enumerate(sources) if "best_rank_k(A, 1)" in source)
    picture = reader.cells.nth(cut).locator(".cell_output > img")
    visible = [i for i in range(len(sources)) if reader.cells.nth(i).locator("button.run-here").count()]
    reader.start(1 + visible.index(cut))  # the button of that cell: those above run first
    expect(reader.status).to_have_text(f"Cell {cut + 1} has run.", timeout=WAIT)
    seen = [picture.get_attribute("src")]
    reader.run(cut, sources[cut].replace("best_rank_k(A, 1)", "best_rank_k(A, 2)"))
    seen.append(picture.get_attribute("src"))
    reader.run(made, sources[made].replace("[4, 5]", "[0, 1]"))
    reader.run(cut)
    seen.append(picture.get_attribute("src"))
    assert len(set(seen)) == 3


def test_what_goes_wrong_leaves_a_page_that_can_be_used(visit):
    reader = visit("01-rank")
    reader.start()
    expect(reader.status).to_have_text(re.compile("ready"), timeout=WAIT)
    cell = reader.cells.nth(2)
    for code, said in {
        "x = = 1": "SyntaxError",
        "unknown_name": "Cell 3, line 1: unknown_name\nNameError: name 'unknown_name' is not defined",
        "import numpy as np\nnp.ones((40_000, 40_000))": "Error",
        "import torch": "torch is not among the packages",
        "raise SystemExit": "SystemExit",
    }.items():
        reader.run(2, code, says="Cell {} ended with an error.")
        expect(cell.locator(".live-error")).to_contain_text(said)
        assert not re.search(r"/lib/|/home/|site-packages|\.py", cell.locator(".live-error").inner_text())
    cell.locator("textarea").fill("while True:\n    pass")
    cell.locator(".live-tools button").first.dispatch_event("click")
    expect(reader.status).to_have_text("Running cell 3.", timeout=WAIT)
    reader.page.locator(".live-bar button", has_text="Stop").click()
    expect(reader.status).to_have_text(re.compile("Stopped. .* every name .* is gone"), timeout=WAIT)
    reader.run(2, "print(6 * 7)")  # the cells above run again first
    expect(cell.locator(".cell_output")).to_have_text("42\n")
    cell.get_by_role("button", name="Reset").dispatch_event("click")
    expect(cell.locator("textarea")).to_have_value(re.compile("byhand.row_reduce"))
    expect(cell.locator(".cell_output")).to_contain_text("The matrix is reduced")
    reader.page.close()  # a closed tab
    again = visit("01-rank")
    again.start(1)
    expect(again.status).to_have_text(re.compile(r"Cell \d+ has run"), timeout=WAIT)


def test_a_slider_draws_on_demand_and_an_answer_is_checked(visit, live_site):
    plan = json.loads((live_site / "_static/live/01-rank.json").read_text(encoding="utf-8"))
    sources = [cell["source"] for cell in plan["cells"]]
    reader = visit("01-rank")
    reader.start()
    expect(reader.status).to_have_text(re.compile("ready"), timeout=WAIT)
    i = next(i for i, source in enumerate(sources) if "explore(" in source and "rank_tolerance" in source)
    reader.run(i)
    figure = reader.cells.nth(i).locator("figure.explorer")
    at = figure.locator("input[type=range]")
    before = figure.locator("img").first.get_attribute("src")
    at.evaluate("(range) => { range.value = -5; range.dispatchEvent(new Event('input', { bubbles: true })) }")
    expect(figure.locator("data[data-name=five_layers_and_noise]")).to_have_text("5", timeout=WAIT)
    assert figure.locator("img").first.get_attribute("src") != before
    i = next(i for i, source in enumerate(sources) if source.startswith('check("ex-rank-hand"'))
    reader.run(i, 'check("ex-rank-hand", 2)')
    expect(reader.cells.nth(i).locator(".cell_output")).to_have_text("✓ Right.\n")


@pytest.mark.parametrize("dark_phone", [False, True])
def test_the_page_is_accessible_before_and_after_the_start(visit, dark_phone):
    options = {"color_scheme": "dark", "reduced_motion": "reduce"} if dark_phone else {}
    reader = visit("05-bilinear-scoring", **options)
    if dark_phone:
        reader.page.set_viewport_size({"width": 360, "height": 740})
    for started in (False, True):
        if started:
            reader.start()
            expect(reader.status).to_have_text(re.compile("ready"), timeout=WAIT)
        found = Axe().run(reader.page, context="article, .live-bar" if started else "article")
        assert [v["id"] for v in found.response["violations"]] == []
        assert reader.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_who_saves_data_is_asked_first_and_who_opens_a_file_gets_a_sentence(visit, live_site, browser):
    reader = visit("01-rank")
    reader.page.evaluate("Object.defineProperty(navigator, 'connection', { value: { saveData: true } })")
    reader.start()
    expect(reader.status).to_have_text(re.compile(r"\d+\.\d MB, and your device asks to save data"), timeout=WAIT)
    assert not any("pyodide" in url for url in reader.asked)
    reader.page.get_by_role("button", name="Not now").click()
    assert reader.page.locator(".live-bar").count() == 0
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((live_site / "book" / "01-rank.html").as_uri())
        page.locator("article button.run-here").first.dispatch_event("click")
        expect(page.locator("article p[role=status]").first).to_contain_text("make serve")


def test_what_a_first_visit_costs_without_a_click_is_the_buttons_alone(site, live_site):
    for path in PAGES:
        with_buttons = (live_site / "book" / f"{path}.html").read_text(encoding="utf-8")
        assert live.ADDED.sub("", with_buttons) == (site / "book" / f"{path}.html").read_text(encoding="utf-8")
        assert len(with_buttons) - len(live.ADDED.sub("", with_buttons)) < 5000
