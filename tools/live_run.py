"""Run one cell as a notebook does, and hand on what it shows. This runs inside Pyodide, in the reader's browser."""

import base64
import html
import io
import linecache
import os
import sys
import traceback
import types

import live_needs
from pyodide.code import eval_code

os.environ |= {"LOWRANK_TUTOR_PAGE": "1", "MPLBACKEND": "agg"}  # cells come out as on the page
INCH = 104  # pixels of a page that an inch of a figure takes, see _ext/booksite.py
MOST = 50_000  # letters that one cell may print

names = {"__name__": "__main__"}
explorers = []
runs = live_needs.Runs()


class Printed(io.TextIOBase):
    """What a cell prints, handed on line by line until it is too much."""

    def __init__(self, tell):
        self.tell, self.line, self.left = tell, "", MOST

    def write(self, text):
        """Take a piece of text."""
        self.line += text
        if "\n" in text or len(self.line) > 1000:
            self.flush()
        return len(text)

    def flush(self):
        """Hand on what has gathered."""
        if self.line and self.left > 0:
            self.tell("text", self.line[: self.left])
            self.left -= len(self.line)
            if self.left <= 0:
                self.tell("text", "\n(The rest is not shown.)\n")
        self.line = ""


def run(number, source, tell):
    """Run a cell; True if it came to its end."""
    where = f"<cell {number}>"
    runs.note(number - 1, source)
    linecache.cache[where] = (len(source), None, source.splitlines(True), where)
    out = sys.stdout = sys.stderr = Printed(tell)
    display = sys.modules["IPython.display"]
    display.display = lambda *values, **_options: [(out.flush(), show(value, tell)) for value in values]
    try:
        value = eval_code(source, names, filename=where)
        out.flush()
        show(value, tell)
        show_open_figures(tell)
        return True
    except BaseException as error:  # noqa: BLE001, an exit, too, ends the cell and not the page
        out.flush()
        tell("error", words(error))
        close_figures()  # else the next cell would show what this one had begun
        return False
    finally:
        out.flush()


def show(value, tell):
    """Choose the face of a value that the page can show."""
    if value is None:
        return
    if type(value).__module__ == "lowrank_tutor.kit.sliders.explorer":
        tell("html", explorer_html(value))
    elif hasattr(value, "_ipython_display_") and not isinstance(value, type):
        value._ipython_display_()
    elif "matplotlib.figure" in sys.modules and isinstance(value, sys.modules["matplotlib.figure"].Figure):
        show_figure(value, tell)
    elif written := face(value, "_repr_html_"):
        tell("html", written)
    elif written := face(value, "_repr_markdown_"):
        tell("markdown", written)
    else:
        tell("text", repr(value) + "\n")


def face(value, name):
    """Ask a value for one of the faces that notebooks know."""
    method = None if isinstance(value, type) else getattr(value, name, None)
    return method() if callable(method) else None


def show_figure(figure, tell):
    """Hand on a figure as wide as the page shows it."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight", dpi=figure.dpi)
    width = int.from_bytes(picture.getvalue()[16:20]) / figure.dpi * INCH
    tell("image", f"{width:.0f} data:image/png;base64,{base64.b64encode(picture.getvalue()).decode()}")


def show_open_figures(tell):
    """Show what was drawn with pyplot and not returned, as notebooks do."""
    if plt := sys.modules.get("matplotlib.pyplot"):
        for number in plt.get_fignums():
            show_figure(plt.figure(number), tell)
    close_figures()


def close_figures():
    """Forget what was drawn with pyplot."""
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


def words(error):
    """Say where in the page's own cells it went wrong, and why; no path of any machine."""
    told = traceback.TracebackException.from_exception(error)
    lines = [
        f"{frame.filename.strip('<>').capitalize()}, line {frame.lineno}: {frame.line}"
        for frame in told.stack
        if frame.filename.startswith("<cell")
    ]
    said = "".join(told.format_exception_only()).replace('File "<', "").replace('>", line', ", line")
    if isinstance(error, ModuleNotFoundError) and error.name:
        said = f"ModuleNotFoundError: {error.name} is not among the packages that this page brings into the browser."
    elif isinstance(error, MemoryError):
        said = f"MemoryError: this takes more memory than a browser gives. {error}"
    return "\n".join([*lines, said])


# Explorers: one picture at a time, drawn when it is asked for


def explorer_html(explorer):
    """Write an explorer's block with its first frame; live.js asks for the others."""
    from lowrank_tutor.kit.block import caption_html, style
    from lowrank_tutor.kit.sliders.film import SHEET, Film, control_html

    explorers.append(explorer)
    film = Film(explorer.name, explorer.caption, explorer.words, explorer.sliders, explorer.start, [])
    return (
        f'<figure class="explorer" data-name="{explorer.name}" data-live="{len(explorers) - 1}">'
        f"{style(SHEET)}"
        f'<div class="explorer-sliders">{"".join(control_html(film, name) for name in film.sliders)}</div>'
        f'<div class="live-frame">{frame_html(explorer, explorer.start)}</div>'
        f'<p role="status" class="explorer-said"></p>{caption_html(explorer.caption)}</figure>'
    )


def frame_html(explorer, values):
    """Draw one position."""
    from lowrank_tutor.kit.sliders.film import panels_html

    frame = explorer.frame(**values)
    panels = panels_html(frame, [png(panel.picture) for panel in frame.panels])
    return f"{panels}<dl>{explorer.words.numbers_html(frame.numbers)}</dl>"


def png(pixels):
    """Write a picture as an address."""
    from PIL import Image

    picture = io.BytesIO()
    Image.fromarray(pixels).save(picture, "png", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode()


def move(key, positions, tell):
    """Draw the frame at some positions of the sliders, and say how each is written."""
    explorer = explorers[key]
    values = {name: steps[at] for (name, steps), at in zip(explorer.sliders.items(), positions, strict=True)}
    texts = "\n".join(explorer.words.text(name, value) for name, value in values.items())
    try:
        tell("frame", texts + "\n\n" + frame_html(explorer, values))
    except Exception as error:  # noqa: BLE001, whatever a reader's own function does
        tell("frame", texts + "\n\n<pre>" + html.escape(words(error)) + "</pre>")


# What cells, the package and matplotlib use of IPython

ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")


class HTML:
    """A value that is shown as HTML."""

    def __init__(self, data):
        self.data = data

    def _repr_html_(self):
        return self.data


display.HTML, ipython.display = HTML, display
ipython.version_info, ipython.get_ipython = (9, 0, 0), lambda: None  # matplotlib asks
sys.modules |= {"IPython": ipython, "IPython.display": display}
