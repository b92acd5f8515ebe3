"""A reader's own JupyterLab: a notebook is opened in a browser, all its cells are run, and what they show is dragged.

One server, one notebook, one page for all tests. Each instrument stands in a cell of its own, and so does an explorer
whose pictures take longer to draw than a hand takes to the next position.
"""

import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from chapters import ROOT
from playwright.sync_api import Browser, Locator, Page

from lowrank_tutor import instruments
from lowrank_tutor.sphinxext import PAGE_VARIABLE

CALLS = {name: f"{name}()" for name in instruments.__all__ if name != "Instrument"}
CALLS["draw_first"] = 'draw_first("How many keys has a piano?", 88, kind="mark", limits=(1, 1000), log=True)'
each_instrument = pytest.mark.parametrize("name", CALLS)

SLOW = """
import time
from matplotlib.figure import Figure
from lowrank_tutor.explore import explore

drawn = []

def draw(k):
    drawn.append(k)
    time.sleep(0.2)
    figure = Figure(figsize=(3, 1))
    figure.add_subplot().axvline(k)
    return figure

explore(draw, lambda k: {"position": k, "pictures": len(drawn), "relative_error": 1 / k}, alt="A line.", k=range(1, 41))
"""
CELLS = [SLOW, *(f"from lowrank_tutor.instruments import {name}\n\n{call}" for name, call in CALLS.items())]
OUTPUT = {"explorer": ".jp-OutputArea figure.explorer"} | {
    name: f'.jp-OutputArea figure.instrument[data-name="{name}"]' for name in CALLS
}
START = 300  # seconds after which a silent server counts as dead
# A cell that has run has a number; one that waits, a star.
NUMBERED = """
() => [...document.querySelectorAll(".jp-Notebook .jp-Cell .jp-InputPrompt")]
  .every((prompt) => /[0-9]/.test(prompt.textContent))
"""
READY = '.jp-NotebookPanel-toolbar .jp-Notebook-ExecutionIndicator[data-status="idle"]'


class Lab(NamedTuple):
    """The notebook in the browser, after all its cells were run."""

    page: Page
    address: str
    complaints: list[str]
    requests: list[str]

    def find(self, name: str) -> Locator:
        """Scroll to what a cell shows, as a reader does; Lab may leave away what is far from the screen."""
        figure = self.page.locator(OUTPUT[name])
        pane = self.page.locator(".jp-NotebookPanel:visible .jp-WindowedPanel-outer").bounding_box()
        self.page.mouse.move(pane["x"] + 20, pane["y"] + pane["height"] / 2)
        for way in (1, -1):
            for _ in range(0 if figure.count() else 40):
                self.page.mouse.wheel(0, way * pane["height"] / 2)
                self.page.wait_for_timeout(50)
                if figure.count():
                    break
        figure.wait_for(state="visible")
        figure.scroll_into_view_if_needed()
        return figure

    def cells(self) -> list[str]:
        """Return the sources of the notebook's cells, as Lab would save them."""
        self.page.keyboard.press("Control+s")
        self.page.wait_for_timeout(300)
        answer = self.page.request.get(f"{self.address}/api/contents/small.ipynb?content=1")
        return [cell["source"] for cell in answer.json()["content"]["cells"]]


def notebook() -> dict[str, Any]:
    """All that a reader would type."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for i, source in enumerate(CELLS)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A JupyterLab that has only the notebook, and settings of nobody; its address and its key."""
    folder, settings = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("settings")
    (folder / "small.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    (settings / "config" / "labconfig").mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}  # else it asks for news
    (settings / "config" / "labconfig" / "page_config.json").write_text(json.dumps(quiet))
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "lab",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    environment = {k: v for k, v in os.environ.items() if k not in {PAGE_VARIABLE, "MPLBACKEND"}}
    environment |= {name: str(settings / place) for name, place in own.items()}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = secrets.token_hex()
    options = [f"--ServerApp.port={port}", f"--IdentityProvider.token={key}", "--ServerApp.ip=127.0.0.1"]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *options]
    with (settings / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield wait_for(process, settings), key
    finally:
        process.terminate()
        process.wait(timeout=START)


def wait_for(process: subprocess.Popen[bytes], settings: Path) -> str:
    """Return the address of a server once it has one; the port may be another than was asked for."""
    told = settings / "runtime" / f"jpserver-{process.pid}.json"
    for _ in range(10 * START):
        if told.exists() and (text := told.read_text()):
            return str(json.loads(text)["url"]).rstrip("/")
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail("JupyterLab did not start:\n" + (settings / "log").read_text())


@pytest.fixture(scope="module")
def lab(browser: Browser, server: tuple[str, str]) -> Iterator[Lab]:
    """The notebook, opened, and run from its menu."""
    address, key = server
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(START * 1000)
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"thrown: {error}"))
    page.on("console", lambda m: complaints.append(f"{m.text} ({m.location['url']})") if m.type == "error" else None)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}/lab/tree/small.ipynb?token={key}")
    page.locator(READY).wait_for()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.locator('.lm-Menu-item[data-command="runmenu:run-all"]').click()
    page.wait_for_function(NUMBERED)
    yield Lab(page, address, complaints, requests)
    context.close()


def test_the_cells_ran_without_a_word_of_warning(lab):
    page = lab.page
    lab.cells()
    answer = page.request.get(f"{lab.address}/api/contents/small.ipynb?content=1").json()
    outputs = [cell["outputs"] for cell in answer["content"]["cells"]]
    assert [[output["output_type"] for output in some] for some in outputs] == [["execute_result"]] * len(CELLS)


SHOWN = """
(figure) => ({
  live: figure.classList.contains("live"),
  still: figure.querySelector("img.instrument-still").checkVisibility(),
  numbers: figure.instrument.numbers(),
  box: figure.getBoundingClientRect().toJSON(),
  reach: figure.scrollWidth - figure.clientWidth,
})
"""


@each_instrument
def test_an_instrument_shows_itself(lab, name):
    figure = lab.find(name)
    wait_until_computed(lab.page, figure)
    shown = figure.evaluate(SHOWN)
    assert shown["live"]
    assert not shown["still"]
    assert shown["numbers"] == pytest.approx(make(name).numbers, rel=1e-5, abs=1e-5)
    assert shown["box"]["width"] > 300
    assert shown["reach"] <= 1  # nothing sticks out
    assert figure.locator("[role=slider]:visible").count() >= 1


def make(name: str) -> instruments.Instrument:
    """Call the same as the notebook."""
    made: instruments.Instrument = eval(CALLS[name], vars(instruments))
    return made


def wait_until_computed(page: Page, figure: Locator) -> None:
    page.wait_for_function("(f) => f.getAttribute('aria-busy') !== 'true'", arg=figure.element_handle())


def state(figure: Locator) -> dict[str, Any]:
    said: dict[str, Any] = figure.evaluate("(f) => ({ ...f.instrument.state(), read: f.innerText })")
    return said


def handle(figure: Locator, name: str) -> Locator:
    """One that is free to move: the largest bar of a spectrum stays where it is."""
    return figure.locator("[role=slider]:visible").nth(4 if name == "spectrum" else 0)


@each_instrument
def test_an_instrument_answers_to_the_pointer(lab, name):
    figure = lab.find(name)
    knob = handle(figure, name).locator(".knob")
    knob.scroll_into_view_if_needed()
    before, box = state(figure), knob.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    right, down = (0, 30) if name == "spectrum" else (50, 15)  # bars are painted, each where the pointer is
    for share in (0.3, 0.6, 1):
        lab.page.mouse.move(x + right * share, y + down * share)
    lab.page.mouse.up()
    wait_until_computed(lab.page, figure)
    moved = knob.bounding_box()
    assert abs(moved["x"] - box["x"]) + abs(moved["y"] - box["y"]) > 5
    assert state(figure) != before
    assert lab.page.evaluate("getSelection().toString()") == ""  # a drag selects no text


@each_instrument
def test_an_instrument_answers_to_keys_and_lab_does_not(lab, name):
    """Lab's own keys would leave the cell, move it, or delete it."""
    figure = lab.find(name)
    grip = handle(figure, name)
    cells, before = lab.cells(), grip.get_attribute("transform")
    figure.scroll_into_view_if_needed()
    grip.focus()
    for key in ("ArrowUp", "ArrowRight", "Shift+ArrowRight"):
        lab.page.keyboard.press(key)
    assert grip.get_attribute("transform") != before
    for key in ("b", "d", "d", "x", "m"):
        lab.page.keyboard.press(key)
    assert grip.evaluate("(grip) => grip === document.activeElement")
    assert lab.cells() == cells


@pytest.mark.parametrize("name", OUTPUT)
def test_readouts_stand_below_their_labels_and_beside_each_other(lab, name):
    figure = lab.find(name)
    if name == "draw_first":  # it has a readout once there is a guess
        figure.get_by_role("button", name=instruments.guesses.WORDS["commit"]).click()
        figure.locator("dl data").wait_for()
    boxes = figure.locator("dl > div").evaluate_all(
        """(all) => all.map((one) => ["dt", "dd"].map((tag) => {
          const range = document.createRange();
          range.selectNodeContents(one.querySelector(tag));
          const { left, top, right, bottom } = range.getBoundingClientRect();
          return [left, top, right, bottom];
        }))"""
    )
    assert boxes
    for label, value in boxes:
        assert value[1] >= label[3] - 4, "a number lies on its label"  # of lines that leave room above and below
        assert abs(value[0] - label[0]) <= 2, "a number does not begin where its label does"
    for one, other in itertools.combinations(itertools.chain(*boxes), 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] - 4 <= other[1] or other[3] - 4 <= one[1]
        assert apart, f"{one} lies on {other}"


def test_the_slider_of_explore_redraws_while_it_is_dragged_and_drops_what_is_stale(lab):
    page, figure = lab.page, lab.find("explorer")
    cell = page.locator(".jp-OutputArea-output", has=page.locator("figure.explorer"))
    shown = figure.locator("dd data")
    read = "(all) => Object.fromEntries(all.map((d) => [d.dataset.name, Number(d.value)]))"
    pictures = {figure.locator("img").first.get_attribute("src")}
    knob, track = cell.locator(".noUi-handle").bounding_box(), cell.locator(".noUi-base").bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    before = shown.evaluate_all(read)
    assert before["position"] == 1
    page.mouse.move(x, y)
    page.mouse.down()
    passed = 30
    for i in range(1, passed + 1):
        page.mouse.move(x + i * track["width"] / 40, y)
        page.wait_for_timeout(40)
        pictures.add(figure.locator("img").first.get_attribute("src"))
    during = shown.evaluate_all(read)
    rests = page.locator(".widget-readout:visible").first.inner_text()
    # Still with the button down; what shows a position is a new figure each time.
    page.wait_for_function("(k) => document.querySelector('figure.explorer data').value === k", arg=rests)
    page.mouse.up()
    page.wait_for_timeout(500)
    after = shown.evaluate_all(read)
    assert during["position"] > 1, "nothing was drawn while the hand moved"
    assert len(pictures) >= 3
    assert after["position"] == int(rests) >= 25
    assert after["pictures"] - before["pictures"] <= passed / 2, "positions were drawn that the hand had left"


def test_what_was_dragged_is_still_so_when_the_reader_comes_back(lab):
    figure = lab.find("arrows")
    columns = figure.evaluate("(f) => f.instrument.state()")
    lab.find("draw_first" if list(CALLS).index("arrows") < len(CALLS) / 2 else "explorer")
    assert lab.find("arrows").evaluate("(f) => f.instrument.state()") == columns


def test_nothing_complains_and_no_other_host_is_asked(lab):
    """What Lab says of its own files is Lab's; what our blocks say has the notebook's address, or throws."""
    own = f"{lab.address}/static/"
    assert [words for words in lab.complaints if own not in words] == []
    here = urlsplit(lab.address).netloc
    asked = {urlsplit(url).netloc for url in lab.requests if not url.startswith(("data:", "blob:"))}
    assert asked <= {here}
