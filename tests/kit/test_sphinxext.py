"""Another book: plain Sphinx with MyST-NB and the extension, built in an empty folder."""

import os
import re
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import SimpleNamespace

import pytest

from lowrank_tutor.kit import sphinxext
from lowrank_tutor.kit.environment import PAGE_VARIABLE, page_is_built, somebody_is_there
from lowrank_tutor.kit.sphinxext import CACHES, FORMULAS_VARIABLE, KEPT_CACHES, MARK, package_fingerprint

CONF = """
extensions = ["myst_nb", "lowrank_tutor.kit.sphinxext"]
exclude_patterns = ["jupyter_execute"]  # MyST-NB's own output, which would be taken for a source
nb_execution_mode = "{mode}"
nb_execution_raise_on_error = True
myst_enable_extensions = ["dollarmath"]
"""

PAGE = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---
# A page

```{code-cell}
import os
from pathlib import Path
from matplotlib.figure import Figure
from lowrank_tutor.kit.sliders import explore

with open(Path.home() / "runs", "a") as runs:
    runs.write("x")

explore(lambda k: Figure(figsize=(1, 1)), lambda k: {"third": k / 3}, alt="White {k}.", name="white", k=range(2))
```
"""

# In a process of its own: Sphinx changes the interpreter's state, and the variable must be gone at the end of it.
BUILD = """
import os, sys
from pathlib import Path
from sphinx.application import Sphinx
from lowrank_tutor.kit import sphinxext

source, out, fingerprint = sys.argv[1:]
if fingerprint:
    sphinxext.package_fingerprint = lambda *more: fingerprint
app = Sphinx(source, source, out, out + "/../doctrees", "html", warningiserror=True)
print("PAGE VARIABLE", os.environ.get("LOWRANK_TUTOR_PAGE"))
app.build()
print("CACHE", app.config.nb_execution_cache_path)
print("AFTERWARDS", os.environ.get("LOWRANK_TUTOR_PAGE"))
sys.exit(app.statuscode)
"""


# What an author may have beside the output.
NEIGHBORS = ["cache-notes.txt", *(f"cache-of-my-thesis-{n}/results" for n in range(KEPT_CACHES + 1))]


def write(folder, names):
    for path in (folder / name for name in names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("years of work")
        os.utime(path.parent, (0, 0))


class Book:
    """Built by ``sphinx-build . public``: the output, and what lies beside it, stand among the sources."""

    def __init__(self, folder, mode="cache"):
        self.folder = folder
        (folder / "conf.py").write_text(CONF.format(mode=mode))
        (folder / "index.md").write_text(PAGE)

    def build(self, fingerprint=""):
        args = [sys.executable, "-c", BUILD, self.folder, self.folder / "public", fingerprint]
        env = {**os.environ, "HOME": str(self.folder), "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(self.folder)}
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def page(self):
        return (self.folder / "public" / "index.html").read_text()

    def runs(self):
        return len((self.folder / "runs").read_text())

    def caches(self):
        return sorted(p.name for p in (self.folder / CACHES).glob("*") if p.is_dir())


def test_plain_book(tmp_path):
    book = Book(tmp_path)
    write(tmp_path, NEIGHBORS)
    said = book.build("one")
    page = book.page()
    assert '<figure class="explorer" data-name="white" data-frames="2"' in page
    assert "application/vnd.jupyter.widget" not in page
    assert "jupyter-widgets/" not in page  # the script that would wake widgets
    assert "&lt;Explorer" not in page  # text/html wins over text/plain
    # While the page is built the kernels know; afterwards nobody is told any more.
    assert re.search(r"^PAGE VARIABLE 1$", said, re.M)
    assert re.search(r"^AFTERWARDS None$", said, re.M)
    assert Path(re.search(r"^CACHE (.*)$", said, re.M)[1]) == tmp_path / CACHES / "one"

    book.build("one")
    assert book.runs() == 1  # unchanged: not executed again
    book.build("two")
    assert book.runs() == 2  # the package changed: executed again
    assert '<figure class="explorer" data-name="white"' in book.page()
    book.build("one")
    assert book.runs() == 2  # changed back: the old results are still there
    assert book.caches() == ["one", "two"]
    assert all((tmp_path / name).exists() for name in NEIGHBORS)


def test_forced_execution(tmp_path):
    book = Book(tmp_path, mode="force")
    book.build()
    assert 'data-name="white"' in book.page()
    assert book.caches() == []


def test_own_cache_path(tmp_path, monkeypatch):
    monkeypatch.setenv(PAGE_VARIABLE, "")  # so that it is taken away again
    monkeypatch.setenv(FORMULAS_VARIABLE, "")
    config = SimpleNamespace(
        nb_execution_mode="cache", nb_execution_cache_path="mine", exclude_patterns=[], nb_mime_priority_overrides=[],
        myst_enable_extensions=[], _raw_config={}, overrides={},
    )  # fmt: skip
    sphinxext._tell_kernels(SimpleNamespace(outdir=tmp_path / "html", confdir=tmp_path), config)
    assert config.nb_execution_cache_path == "mine"
    assert list(tmp_path.iterdir()) == []


# The switch


@pytest.mark.parametrize(("said", "built"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_switch(monkeypatch, said, built):
    monkeypatch.delenv(PAGE_VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(PAGE_VARIABLE, said)
    assert page_is_built() == built
    assert somebody_is_there() == (not said or said == "0")


@pytest.mark.parametrize("said", ["yes", "2", "thesis.txt"])
def test_bad_switch(monkeypatch, said):
    monkeypatch.setenv(PAGE_VARIABLE, said)
    message = f"LOWRANK_TUTOR_PAGE must be 1 (a page is being built), 0 or unset, got {said!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        page_is_built()


# The fingerprint


def test_fingerprint(tmp_path, monkeypatch):
    """Every change of the sources, data, or requirements changes it; styles, scripts, and compiled files do not."""
    assert re.fullmatch("[0-9a-f]{12}", package_fingerprint())
    folder, pins = tmp_path / "package", tmp_path / "requirements.txt"
    (folder / "data").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "kit").mkdir()
    for name in ("kit/sphinxext.py", "rank.py", "data/figures.json"):
        (folder / name).write_text(name)
    monkeypatch.setattr(sphinxext, "__file__", str(folder / "kit" / "sphinxext.py"))
    seen = [package_fingerprint(pins)]
    changes = [
        *((folder / name, "changed") for name in ("kit/sphinxext.py", "rank.py", "data/figures.json")),
        (folder / "new.py", ""),
        (folder / "rank.py", "xy"),
        (folder / "second.py", "z"),
        (pins, "numpy==2.0"),
        (pins, "numpy==2.1"),
    ]
    for path, text in changes:
        path.write_text(text)
        seen.append(package_fingerprint(pins))
    (folder / "new.py").rename(folder / "newer.py")
    seen.append(package_fingerprint(pins))
    (folder / "rank.py").write_text("x")  # a letter moves to the next file
    (folder / "second.py").write_text("yz")
    seen.append(package_fingerprint(pins))
    assert len(set(seen)) == len(seen)
    (folder / "__pycache__" / "rank.cpython-311.pyc").write_bytes(b"x")
    (folder / "kit" / "block.css").write_text("* {}")
    (folder / "kit" / "touch.js").write_text("1;")
    assert package_fingerprint(pins) == seen[-1] == package_fingerprint(pins)


# Old caches


def use(folder, fingerprint, when):
    """Use the cache of one state of the package, at a given time."""
    cache = sphinxext._cache(folder / CACHES, fingerprint)
    (cache / "results").touch()
    os.utime(cache / MARK, (when, when))
    return cache


@pytest.mark.parametrize("older", range(6))
def test_kept_caches(tmp_path, older):
    caches = [use(tmp_path, f"{age}", when=1000 - age) for age in reversed(range(older))]
    fresh = sphinxext._cache(tmp_path / CACHES, "fresh")
    left = caches[::-1][: KEPT_CACHES - 1]
    assert sorted(p for p in (tmp_path / CACHES).iterdir() if p.is_dir()) == sorted([*left, fresh])


def test_use_decides(tmp_path):
    used = [use(tmp_path, name, when) for name, when in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("d", 5)]]
    assert [cache.exists() for cache in used] == [True, False, True, True, True]
    for name in "abc":
        use(tmp_path, name, when=4_000_000_000)  # the clock of another machine
    assert sphinxext._cache(tmp_path / CACHES, "fresh").exists()


def test_recent_caches_stay(tmp_path):
    caches = [sphinxext._cache(tmp_path / CACHES, f"{n}") for n in range(KEPT_CACHES + 2)]
    assert all(cache.exists() for cache in caches), "another build may still need them"


def test_builds_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(sphinxext, "IN_USE", -1)  # each removes at once what the others make
    with ThreadPool(4) as pool:
        pool.map(lambda n: sphinxext._cache(tmp_path / CACHES, f"{n % 9}"), range(200))
    assert sphinxext._cache(tmp_path / CACHES, "fresh").exists()


def test_linked_home(tmp_path):
    write(tmp_path, ["mine/.gitignore", "mine/old/results"])
    (tmp_path / CACHES).symlink_to(tmp_path / "mine")
    cache = sphinxext._cache(tmp_path / CACHES, "fresh")
    assert (cache / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "mine/.gitignore").read_text() == "years of work"


def test_other_files_stay(tmp_path):
    theirs = [f"{CACHES}/thesis/results", f"{CACHES}/notes.txt"]
    write(tmp_path, theirs)
    for n in range(KEPT_CACHES + 2):
        use(tmp_path, f"{n}", when=n + 1)
    assert all((tmp_path / name).exists() for name in theirs)
