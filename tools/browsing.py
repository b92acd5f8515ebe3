"""A browser that is on the machine, and the site as it comes over the network, for tools, tests and timings."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MAC_BROWSERS = [f"/Applications/{name}.app/Contents/MacOS/{name}" for name in ("Chromium", "Google Chrome")]
GET_ONE = (
    "no Chromium or Chrome found: install one (Debian: apt-get install chromium; macOS: brew install --cask chromium)"
)


def find_browser() -> str | None:
    """Return the program of a Chromium or Chrome, or nothing."""
    return next((path for path in (*map(shutil.which, BROWSERS), *MAC_BROWSERS) if path and Path(path).exists()), None)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder from this machine, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
