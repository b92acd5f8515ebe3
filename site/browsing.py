"""A browser that is on the machine, and the site as it comes over the network."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# The first has no window around the page, and so takes half the time.
BROWSERS = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
]
MAC_BROWSERS = [
    f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome")
]
GET_ONE = (
    "no Chromium or Chrome found: install one "
    "(Debian: apt-get install chromium-headless-shell; macOS: brew install --cask chromium)"
)

# All positions of an explorer's sliders, each a list of moves that lead there, and those that lead
# back.
PLACES = """
(figure) => {
  const change = (input, key, value) => {
    if (input[key] === value) return;
    input[key] = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const move = (control, value) => () => change(control, "value", value);
  const choose = (choice) => () => change(choice, "checked", true);
  const moves = (control) => {
    if (control.matches("fieldset")) return [...control.querySelectorAll("input")].map(choose);
    const { min, max, step } = control;
    return Array.from({ length: (max - min) / step + 1 }, (_, i) =>
      move(control, String(+min + i * step)));
  };
  const stay = (c) => (c.matches("fieldset") ?
    choose(c.querySelector(":checked")) : move(c, c.value));
  const controls = [...figure.querySelectorAll("[data-slider]")];
  let places = [[]];
  for (const control of controls) places =
    places.flatMap((place) => moves(control).map((one) => [...place, one]));
  return { places, back: controls.map(stay) };
}
"""


def find_browser() -> str | None:
    """Return the program of a Chromium or Chrome, or nothing."""
    return next(
        (
            path
            for path in (*map(shutil.which, BROWSERS), *MAC_BROWSERS)
            if path and Path(path).exists()
        ),
        None,
    )


class _Quiet(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, answered: list[tuple[str, int]], **words: Any) -> None:
        self.answered = answered
        super().__init__(*args, **words)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        self.answered.append((self.path, int(str(code))))

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path, answered: list[tuple[str, int]] | None = None) -> Iterator[str]:
    """Serve a folder from this machine, yield its address, and log requests and answers."""
    handler = partial(_Quiet, directory=folder, answered=[] if answered is None else answered)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
