"""Another book: plain Sphinx with MyST-NB and the extension, built in an empty folder."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowrank_tutor.kit import sphinxext
from lowrank_tutor.kit.environment import PAGE_VARIABLE, page_is_built, somebody_is_there
from lowrank_tutor.kit.sphinxext import CACHES, MARK, UNUSED, package_fingerprint

CONF = """
extensions = ["myst_nb", "lowrank_tutor.kit.sphinxext"]
exclude_patterns = ["jupyter_execute"]  # MyST-NB's own output, which would be taken for a source
nb_execution_mode = "cache"
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

explore(lambda k: Figure(figsize=(1, 1)), lambda k: {"third": k / 3},
        alt="White {k}.", name="white", k=range(2))
```
"""

# In a process of its own: Sphinx changes the interpreter's state, and the variable must be gone at
# the end of it.
BUILD = """
import os, sys
from pathlib import Path
from sphinx.application import Sphinx
from lowrank_tutor.kit import sphinxext

source, out, fingerprint = sys.argv[1:]
sphinxext.package_fingerprint = lambda *more: fingerprint
app = Sphinx(source, source, out, out + "/../doctrees", "html", warningiserror=True)
print("PAGE VARIABLE", os.environ.get("LOWRANK_TUTOR_PAGE"))
app.build()
print("CACHE", app.config.nb_execution_cache_path)
print("AFTERWARDS", os.environ.get("LOWRANK_TUTOR_PAGE"))
sys.exit(app.statuscode)
"""


def build(folder, fingerprint):
    """Run ``sphinx-build . public``, with the output and its neighbors among the sources."""
    args = [sys.executable, "-c", BUILD, folder, folder / "public", fingerprint]
    env = {
        **os.environ,
        "HOME": str(folder),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(folder),
        PAGE_VARIABLE: "0",
    }
    done = subprocess.run(
        [str(a) for a in args], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (folder / "public" / "index.html").read_text()
    assert '<figure class="explorer" data-name="white" data-frames="2"' in page
    assert "jupyter-widgets/" not in page  # the script that would wake widgets
    return done.stdout


def test_plain_book(tmp_path):
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text(PAGE)
    said = build(tmp_path, "one")
    # While the page is built the kernels know; afterwards the host's own setting counts again.
    assert re.findall(r"^(?:PAGE VARIABLE|AFTERWARDS) (\w+)$", said, re.M) == ["1", "0"]
    assert Path(re.search(r"^CACHE (.*)$", said, re.M)[1]) == tmp_path / CACHES / "one"
    build(tmp_path, "two")  # when the package changes, the page is executed again
    assert (tmp_path / "runs").read_text() == "xx"


# The switch


def test_switch(monkeypatch):
    monkeypatch.delenv(PAGE_VARIABLE, raising=False)
    assert (page_is_built(), somebody_is_there()) == (False, True)
    for value, built in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv(PAGE_VARIABLE, value)
        assert (page_is_built(), somebody_is_there()) == (built, not built)
    monkeypatch.setenv(PAGE_VARIABLE, "thesis.txt")
    with pytest.raises(
        ValueError,
        match=r"^LOWRANK_TUTOR_PAGE must be 1 \(a page is being built\), 0 or unset, got",
    ):
        page_is_built()


# The fingerprint


def test_fingerprint(tmp_path, monkeypatch):
    """Every change of the sources, data, or requirements changes it; styles, scripts, and compiled
    files do not.
    """
    assert re.fullmatch("[0-9a-f]{12}", package_fingerprint())
    folder, pins = tmp_path / "package", tmp_path / "requirements.txt"
    for room in ("data", "__pycache__", "kit"):
        (folder / room).mkdir(parents=True)
    monkeypatch.setattr(sphinxext, "PACKAGE", folder)
    changes = [
        ("package/rank.py", "2"), ("package/data/figures.json", "3"), ("package/rank.py", "xy"),
        ("package/second.py", "z"), ("requirements.txt", "numpy==2.0"),
    ]  # fmt: skip
    seen = [package_fingerprint(pins)]
    for path, text in changes:
        (tmp_path / path).write_text(text)
        seen.append(package_fingerprint(pins))
    (folder / "rank.py").write_text("x")  # a letter moves to the next file
    (folder / "second.py").write_text("yz")
    seen.append(package_fingerprint(pins))
    assert len(set(seen)) == len(seen)
    for name in ("__pycache__/rank.cpython-311.pyc", "kit/block.css", "kit/touch.js"):
        (folder / name).write_text("x")
    assert package_fingerprint(pins) == seen[-1]


# Old caches


def test_unused_caches_go(tmp_path):
    (tmp_path / CACHES / "of my thesis").mkdir(parents=True)
    os.utime(tmp_path / CACHES / "of my thesis", (0, 0))
    used, unused = (sphinxext._cache(tmp_path / CACHES, name) for name in ("used", "unused"))
    (unused / "results").touch()
    for cache, age in ((used, UNUSED - 60), (unused, UNUSED + 60)):
        os.utime(cache / MARK, (time.time() - age,) * 2)
    fresh = sphinxext._cache(tmp_path / CACHES, "fresh")
    assert sorted(path.name for path in (tmp_path / CACHES).iterdir()) == [
        "fresh",
        "of my thesis",
        "used",
    ]
    assert (fresh / ".gitignore").read_text() == "*\n"
