"""The site gets only files with Pyodide's own checksums, and offers the cells that run in a browser."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile

import live
import live_cells
import live_files
import pytest
from booksite import POLICY


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}-1.0.dist-info/licenses/LICENSE", f"Anyone may use {name}.")
    return packed.getvalue()


@pytest.fixture
def pyodide(tmp_path, monkeypatch):
    """A folder like Pyodide's: a core, three packages, of which one needs another, and their lock file."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    core = {name: f"the file {name}".encode() for name in live_files.CORE}
    wheels = {name: wheel(name) for name in ("numpy", "scipy", "pandas")}
    lock = {
        "info": {"python": "3.14.0"},
        "packages": {
            name: {
                "name": name,
                "file_name": f"{name}-1.0-py3-none-any.whl",
                "sha256": digest(content),
                "depends": ["numpy"] if name != "numpy" else [],
                "imports": [name],
            }
            for name, content in wheels.items()
        },
    }
    files = {
        **core,
        **{f"{n}-1.0-py3-none-any.whl": c for n, c in wheels.items()},
        live_files.LOCK: json.dumps(lock).encode(),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    monkeypatch.setattr(live_files, "CORE", {name: digest(content) for name, content in core.items()})
    monkeypatch.setattr(live_files, "LOCKS", {digest(files[live_files.LOCK])})
    return folder


def copy(folder, target, *packages):
    lock = live_files.read_lock(folder)
    live_files.copy_pyodide(folder, target, lock, set(live_cells.closure(lock, set(packages))))


def test_site_gets_what_it_needs(pyodide, tmp_path):
    site = tmp_path / "site"
    copy(pyodide, site, "scipy")
    wheels = {"numpy-1.0-py3-none-any.whl", "scipy-1.0-py3-none-any.whl"}
    wanted = {*live_files.CORE, live_files.PACKED, live_files.LOCK, *wheels} - {live_files.WASM}
    assert {path.name for path in site.iterdir() if path.is_file()} == wanted
    assert gzip.decompress((site / live_files.PACKED).read_bytes()) == (pyodide / live_files.WASM).read_bytes()
    assert set(json.loads((site / live_files.LOCK).read_text())["packages"]) == {"numpy", "scipy"}
    assert (site / "licenses/scipy/LICENSE").read_text() == "Anyone may use scipy."
    assert (site / "licenses/pyodide/NOTICE.txt").read_text() == live_files.NOTICE


@pytest.mark.parametrize("name", [*live_files.CORE, live_files.LOCK, "numpy-1.0-py3-none-any.whl"])
def test_bad_file_is_refused(pyodide, tmp_path, name):
    content = bytearray((pyodide / name).read_bytes())
    content[-1] ^= 1
    (pyodide / name).write_bytes(content)
    with pytest.raises(live_files.Refused, match=re.escape(name) + ".*not the file that was promised.*delete"):
        copy(pyodide, tmp_path / "site", "numpy")
    (pyodide / name).unlink()
    with pytest.raises(live_files.Refused, match=re.escape(f"{name} is missing in {pyodide}")):
        copy(pyodide, tmp_path / "again", "numpy")


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "a/b.whl", "a\\b.whl", "..", ""])
def test_path_is_refused(pyodide, tmp_path, name):
    with pytest.raises(live_files.Refused, match="without a folder"):
        live_files.verified(pyodide, name, digest(b"secret"))
    lock = live_files.read_lock(pyodide)
    lock["packages"]["numpy"]["name"] = name  # of the folder with its licenses
    with pytest.raises(live_files.Refused, match="without a folder"):
        live_files.copy_pyodide(pyodide, tmp_path / "site", lock, {"numpy"})


KEPT = {*live_files.CORE, live_files.LOCK, "numpy-1.0-py3-none-any.whl"}


@pytest.mark.parametrize("release", ["whole", "cut off", "missing"])
def test_release_before_carrier(tmp_path, monkeypatch, release):
    """Whichever it comes from, a file lands in the cache under its bare name, and nowhere else."""
    packed, carrier = io.BytesIO(), tmp_path / "carrier.whl"
    with tarfile.open(fileobj=packed, mode="w:bz2") as tar, zipfile.ZipFile(carrier, "w") as archive:
        for name in (*KEPT, "console.html", "../../../outside.whl"):
            archive.writestr(live_files.INSIDE + name, "carrier")
            entry = tarfile.TarInfo(f"pyodide/{name}")
            entry.size = len("release")
            tar.addfile(entry, io.BytesIO(b"release"))

    def answer(*_address, timeout):
        if release == "missing":
            raise OSError("no network")
        return io.BytesIO(packed.getvalue()[: None if release == "whole" else 100])

    monkeypatch.setattr(live_files.urllib.request, "urlopen", answer)
    monkeypatch.setattr(live_files, "_fetch_carrier", lambda cache: live_files._unpack_carrier(carrier, cache))
    cache = live_files.fetch(tmp_path / "deep" / "cache")
    found = {path.name: path.read_text() for path in cache.iterdir()}
    assert found == dict.fromkeys({*KEPT, "outside.whl"}, "release" if release == "whole" else "carrier")
    assert not list(tmp_path.glob("outside.whl"))
    monkeypatch.setattr(live_files.urllib.request, "urlopen", None)
    assert live_files.fetch(cache) == cache, "what is there is not asked for again"


PAGE = """
# A page

```{code-cell} ipython3
import numpy as np
import torch
x = np.arange(3)
torch.manual_seed(0)
def net(y):
    hidden = torch.ones(3) * y
    return hidden
```

```{code-cell} ipython3
hidden = x.sum()
hidden
```

```{code-cell} ipython3
net(x)
```

```{code-cell} ipython3
from lowrank_tutor.bilinear import factorize
from lowrank_tutor.figures import dice
```

```{code-cell} ipython3
from lowrank_tutor.bilinear import ReducedRankAttention
```

```{code-cell} ipython3
:tags: [remove-input]
def net(y):
    return 2 * y
```

```{code-cell} ipython3
net(x)
```
"""


NAMES = {"pillow": "PIL", "scikit-learn": "sklearn"}
PACKAGES = {
    "packages": {
        name: {"imports": [NAMES.get(name, name)], "depends": []}
        for name in ("matplotlib", "numpy", "pillow", "scikit-learn", "scipy", "sympy")
    }
}


def read(folder, text):
    (folder / "page.md").write_text(text, encoding="utf-8")
    return live_cells.read_page(folder / "page.md", PACKAGES)


def test_cells_of_pytorch(tmp_path):
    page = read(tmp_path, PAGE)
    assert [cell.needs_torch for cell in page.cells] == [True, False, True, False, True, False, False]
    assert page.cells[0].rest == "import numpy as np\nx = np.arange(3)"
    assert page.packages == ["matplotlib", "numpy", "pillow", "scipy"]  # dice needs scipy, and only when it is called


@pytest.mark.parametrize(
    ("loop", "runs"),
    [
        ("for v in (1, 2):\n    w = v\n    print(w)", True),
        ("for v in (1, 2):\n    print(w)\n    w = v", False),
        ("for v in (v, 2):\n    print(v)", False),
        ("for w in (1, 2):\n    if w > 1:\n        v = w\n    print(v)", False),
        ("w += 1", False),
    ],
)
def test_tainted_names(tmp_path, loop, runs):
    sources = ("import torch\nv = w = torch.ones(1)", loop)
    page = read(tmp_path, "".join(f"```{{code-cell}} ipython3\n{code}\n```\n\n" for code in sources))
    assert page.cells[1].needs_torch != runs


@pytest.mark.parametrize("name", ["01-rank", "02-svd-pca", "04-johnson-lindenstrauss"])
def test_matrix_chapters_run_whole(name):
    cells = live_cells.read_page(live.ROOT / "book" / f"{name}.md", PACKAGES).cells
    assert not any(cell.needs_torch for cell in cells)


BUILT = f"""<html><head><meta http-equiv="Content-Security-Policy" content="{POLICY}"></head>
<body><div class="onlyprint"><h1>A page</h1></div><article><h1>A page</h1>
<div class="cell docutils container">
<div class="cell_input docutils container">
<div class="highlight-ipython3 notranslate"><div class="highlight"><pre>1 + 1</pre></div>
</div>
</div>
</div>
<div class="cell tag_remove-input docutils container"></div></article></body></html>"""


def test_buttons_are_added_once(tmp_path):
    (tmp_path / "01-rank.html").write_text(BUILT, encoding="utf-8")
    cells = [live_cells.Cell("1 + 1", False, ""), live_cells.Cell("check()", False, "")]
    for _ in range(2):
        live.add_buttons(tmp_path / "01-rank.html", cells, 20_900_000)
    live_page = (tmp_path / "01-rank.html").read_text(encoding="utf-8")
    assert live_page.count("<button") == 2
    assert "Run here and change the code (21 MB)" in live_page
    assert live_page.count("<script") == 1
    assert "script-src 'self' 'wasm-unsafe-eval' 'unsafe-inline'" in live_page
    assert "worker-src blob: 'self'; connect-src 'self';" in live_page
    assert live.ADDED.sub("", live_page) == BUILT
    with pytest.raises(live_files.Refused, match="2 cells, and its source 1: run make book"):
        live.add_buttons(tmp_path / "01-rank.html", cells[:1], 1)
