"""Pages that hold nothing but instruments, and hands that press keys and drag."""

import json
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page

PAGE = """<!doctype html><html lang="en"{root}><head><meta charset="utf-8">
<title>An instrument</title><meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:"></head><body style="max-width:688px;margin:1rem auto">
<main><h1>An instrument</h1>{blocks}</main></body></html>"""


@pytest.fixture(scope="session")
def markup():
    """Return an instrument's HTML, drawn once for all tests that start it in the same way."""
    markups = {}

    def drawn_once(one):
        start = repr(vars(one) | {"picture": None})  # a function, made anew each time
        return markups.get(start) or markups.setdefault(start, one.to_html())

    return drawn_once


class Seen(NamedTuple):
    """What an instrument said in one state of a tour; answers as a :class:`Hand` does."""

    said: dict[str, Any]

    def call(self, name):
        return self.said[name]

    def shown(self):
        assert self.said["shown"] == self.said["numbers"]
        return self.said["shown"]


# As text: a picture has too many numbers to be handed over one by one.
TOUR = """
async (figure, states) => {
  const { instrument } = figure, seen = [];
  for (const state of states) {
    await instrument.set(state);
    const data = [...figure.querySelectorAll("data")].map((d) => [d.dataset.name, Number(d.value)]);
    seen.push(JSON.stringify({
      state: instrument.state(), table: instrument.table(), numbers: instrument.numbers(),
      shown: Object.fromEntries(data), words: figure.innerText,
      drawn: figure.querySelector(".instrument-live").innerHTML,
    }));
  }
  return `[${seen.join()}]`;
}
"""


class Hand(NamedTuple):
    """An instrument on a page, and what a reader does with it."""

    page: Page
    figure: Locator
    requests: list[str]

    def call(self, code, *arguments):
        """Call a method of ``figure.instrument``, such as ``set``."""
        text = self.figure.evaluate(
            f"""async (figure, all) => {{
              // computing, or on its way to a preset
              const busy = () => figure.getAttribute("aria-busy") === "true";
              while (busy()) await new Promise(requestAnimationFrame);
              return JSON.stringify((await figure.instrument.{code}(...all)) ?? null);
            }}""",
            list(arguments),
        )
        return json.loads(text)

    def set(self, **state):
        """Put it into a state, and return what it shows then."""
        self.call("set", state)
        return self.shown()

    def shown(self):
        """Return the numbers that stand on the page, which must be those of ``numbers()``."""
        read = (
            "(figure) => [...figure.querySelectorAll('data')]"
            ".map((d) => [d.dataset.name, Number(d.value)])"
        )
        numbers = self.call("numbers")
        shown = dict(self.figure.evaluate(read))
        assert shown == numbers
        return shown

    def tour(self, states, check=lambda seen: seen):
        """Put it into one state after the other, all in one go, and check what it said in each."""
        tour = list(zip(states, json.loads(self.figure.evaluate(TOUR, states)), strict=True))
        for state, said in tour:
            assert said["state"].items() >= state.items()
            assert "NaN" not in said["words"] + said["drawn"], state
        return [check(Seen(said)) for _, said in tour]

    def handle(self, name):
        """Find a handle by the beginning of its words."""
        return self.figure.locator(f'[role=slider][aria-label^="{name}"]')

    def button(self, name):
        return self.figure.get_by_role("button", name=name)

    def drag(self, name, dx, dy):
        """Take a handle by the pointer, and let it go so many pixels from there."""
        self.handle(name).scroll_into_view_if_needed()
        box = self.handle(name).locator(".knob").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + dx / 2, y + dy / 2)
        self.page.mouse.move(x + dx, y + dy)
        self.page.mouse.up()

    def settle(self):
        """Wait until nothing is being computed."""
        self.page.wait_for_timeout(50)
        still = "(figure) => figure.getAttribute('aria-busy') !== 'true'"
        self.page.wait_for_function(still, arg=self.figure.element_handle())

    def said(self, words=""):
        """Wait for the sentence that follows a change, or for one that has these words, and return
        it.
        """
        status = self.figure.locator("p[role=status]")
        there = "([p, words]) => p.textContent && p.textContent.includes(words)"
        self.page.wait_for_function(there, arg=[status.element_handle(), words])
        return status.inner_text()


@pytest.fixture(scope="session")
def contexts():
    """Those that are open; the last one was opened last."""
    return []


def close_later_ones(contexts):
    before = len(contexts)
    yield
    while len(contexts) > before:
        contexts.pop().close()


# A page that a fixture of the whole file opened stays until the file has ended. Without these a
# hundred pages would be open at the end, each with processes of its own.
@pytest.fixture(scope="module", autouse=True)
def a_file_closes_its_pages(contexts):
    yield from close_later_ones(contexts)


@pytest.fixture(autouse=True)
def a_test_closes_its_pages(contexts):
    yield from close_later_ones(contexts)


@pytest.fixture(scope="session")
def show(
    browser,
    contexts,
    markup,
    tmp_path_factory,
):
    """Put blocks on a page of their own, opened from a file; what the browser complains of fails
    the test.
    """
    folder = tmp_path_factory.mktemp("instruments")
    messages = []

    def open_page(
        *instruments,
        address="",
        root="",
        script="",
        **settings,
    ):
        path = folder / f"{len(contexts)}.html"
        text = PAGE.replace("{root}", root).replace("{blocks}", "".join(map(markup, instruments)))
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(**settings)
        context.set_default_timeout(300_000)  # a slow machine may take its time
        context.add_init_script(script)
        contexts.append(context)
        page = context.new_page()
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "console", lambda m: messages.append(m.text) if m.type in ("error", "warning") else None
        )
        page.goto(path.as_uri() + address)
        hand = Hand(page, page.locator("figure.instrument").first, requests)
        if instruments and settings.get("java_script_enabled", True):
            hand.settle()
        return hand

    yield open_page
    assert messages == [], json.dumps(messages)


@pytest.fixture(scope="module")
def hand(request, show):
    """Return a test file's figure, ``FIGURE``, on a page that the whole file uses."""
    return show(request.module.FIGURE())
