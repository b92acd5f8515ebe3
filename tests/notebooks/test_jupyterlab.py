"""A reader's own JupyterLab: a notebook is opened in a browser, all its cells are run, and what
they show is dragged.

One server, one notebook, one page for all tests, and each instrument in a cell of its own. The
notebook is opened and run through Lab's own object, which knows when that has ended: its indicator
says "idle" before there is a kernel, and "Run all" is then lost without a word.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from chapters import ROOT
from playwright.sync_api import Page

from lowrank_tutor.kit.environment import PAGE_VARIABLE

# A turned frame, painted bars and a drafted guess: one for each way to take hold. Tests of figures
# try them all.
CELLS = {
    "tilt": "from lowrank_tutor.figures import tilt\n\ntilt()",
    "spectrum": "from lowrank_tutor.figures import spectrum\n\nspectrum()",
    "draw_first": "from lowrank_tutor.kit import draw_first\n\n"
    'draw_first("How many keys has a piano?", 88, kind="mark", limits=(1, 1000), log=True)',
}
each_figure = pytest.mark.parametrize("name", CELLS)
HANG = 600  # seconds after which what is silent counts as dead

RUN = """
async (path) => {
  const { restored, commands } = window.jupyterapp;
  await restored;
  const panel = window.panel = await commands.execute("docmanager:open",
    { path, factory: "Notebook" });
  await panel.context.ready;
  await panel.sessionContext.ready;
  await commands.execute("notebook:run-all-cells");
  return panel.content.model.sharedModel.cells.map((cell) =>
    cell.getOutputs().map((output) => output.output_type));
}
"""


class Lab(NamedTuple):
    """The notebook in the browser, after all its cells were run."""

    page: Page
    outputs: list[list[str]]
    complaints: list[str]
    asked: set[str]

    def find(self, name):
        """Scroll to what a cell shows: Lab leaves away what is far from the screen."""
        self.page.evaluate(
            "(at) => panel.content.scrollToItem(at, 'start')", list(CELLS).index(name)
        )
        figure = self.page.locator(f'.jp-OutputArea figure.instrument[data-name="{name}"]')
        figure.wait_for()
        return figure

    def cells(self):
        """Return the sources of the notebook's cells."""
        sources = self.page.evaluate(
            "() => panel.content.model.sharedModel.cells.map((cell) => cell.getSource())"
        )
        return sources


def notebook():
    """All that a reader would type."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [{**code, "id": name, "source": source} for name, source in CELLS.items()]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """A JupyterLab that has only the notebook, and settings of nobody; its address and its key."""
    folder, settings = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("settings")
    (folder / "small.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    (settings / "config" / "labconfig").mkdir(parents=True)
    quiet = {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    }  # else it asks for news
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
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), environment.get("PYTHONPATH")])
    )
    key = secrets.token_hex()
    options = [f"--IdentityProvider.token={key}", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--expose-app-in-browser",
        "--allow-root",
        *options,
    ]
    with (settings / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield wait_for(process, settings), key
    finally:
        process.terminate()
        process.wait(timeout=HANG)


def wait_for(process, settings):
    """Return the address of a server once it has one."""
    told = settings / "runtime" / f"jpserver-{process.pid}.json"
    for _ in range(10 * HANG):
        if told.exists() and (text := told.read_text()):
            return str(json.loads(text)["url"]).rstrip("/")
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail("JupyterLab did not start:\n" + (settings / "log").read_text())


@pytest.fixture(scope="module")
def lab(browser, server):
    """The notebook, opened, and run."""
    address, key = server
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(HANG * 1000)
    page = context.new_page()
    complaints = []
    asked = set()
    page.on("pageerror", lambda error: complaints.append(f"thrown: {error}"))
    page.on(
        "console",
        lambda m: (
            complaints.append(f"{m.text} ({m.location['url']})") if m.type == "error" else None
        ),
    )
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page.goto(f"{address}/lab?token={key}")
    page.wait_for_function("() => window.jupyterapp")
    yield Lab(page, page.evaluate(RUN, "small.ipynb"), complaints, asked)
    context.close()


def test_cells_run(lab):
    assert lab.outputs == [["execute_result"]] * len(CELLS)


SHOWN = """
(figure) => ({
  live: figure.classList.contains("live"),
  still: figure.querySelector(".instrument-still").checkVisibility(),
  width: figure.clientWidth,
  reach: figure.scrollWidth - figure.clientWidth,
})
"""


@each_figure
def test_figure_shows_itself(lab, name):
    figure = lab.find(name)
    lab.page.wait_for_function(
        "(f) => f.getAttribute('aria-busy') !== 'true'", arg=figure.element_handle()
    )
    shown = figure.evaluate(SHOWN)
    assert shown["live"]
    assert not shown["still"]
    assert shown["width"] > 300
    assert shown["reach"] <= 1  # nothing sticks out
    assert figure.locator(":is([role=slider], input, button):visible").count() >= 1
    assert (
        figure.get_by_role("button", name="Copy a link").count() == 0
    )  # nobody else can open the address of this Lab


def handle(figure, name):
    """One that is free to move: the largest bar of a spectrum stays where it is."""
    return figure.locator("[role=slider]:visible").nth(4 if name == "spectrum" else 0)


@each_figure
def test_keys_stay_inside(lab, name):
    """Lab's own keys would leave the cell, copy it, move it, or delete it."""
    page, figure = lab.page, lab.find(name)
    grip, status = handle(figure, name), figure.locator("p[role=status]")
    cells, before = lab.cells(), grip.get_attribute("transform")
    status.evaluate("(status) => (status.textContent = '')")
    grip.focus()
    for key in ("ArrowUp", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert grip.get_attribute("transform") != before
    if name != "draw_first":  # a draft is said by the handle itself
        page.wait_for_function(
            "(status) => status.textContent.endsWith('.')", arg=status.element_handle()
        )
    for key in ("b", "d", "d", "x", "m"):
        page.keyboard.press(key)
    assert grip.evaluate("(grip) => grip === document.activeElement")
    assert lab.cells() == cells


def test_no_complaints(lab):
    """What Lab says of its own files is Lab's; what our blocks say has the notebook's address, or
    throws.
    """
    here = urlsplit(lab.page.url)
    own = f"{here.scheme}://{here.netloc}/static/"
    assert [words for words in lab.complaints if own not in words] == []
    assert lab.asked <= {here.netloc, ""}  # data: and blob: have no host
