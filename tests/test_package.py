"""The package as a whole: which module may import what, what it needs to be installed, and what its
wheel holds.
"""

import ast
import inspect
import json
import operator
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from chapters import ROOT

import lowrank_tutor

pytestmark = pytest.mark.repository

PACKAGE = Path(lowrank_tutor.__file__).parent


def name_of(path):
    """The dotted name of a file of the package: ``bilinear`` for ``bilinear/__init__.py``,
    ``bilinear.layer``.
    """
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
ROOMS = sorted({name.partition(".")[0] for name in FILES})

# Imports run one way: from a folder to those that are named here, and within it. All may use the
# ground.
GROUND = {"_checks", "_on_demand"}
MAY_USE = {
    # Every module at the top of the package, and its folders that are not named here.
    "mathematics": set(),
    "byhand": {"mathematics"},
    "kit": set(),
    "course": {"kit"},
    "figures": {"kit", "mathematics"},
}
# What importing a module must not load, unless its folder needs it. Heavy things that one function
# needs are imported inside it.
HEAVY = ["torch", "matplotlib", "ipywidgets", "IPython", "sympy", "scipy", "sklearn", "PIL"]
NEEDS = {
    "torch": ["torch", "sympy", "scipy"],  # torch itself may load the other two
    "byhand": ["sympy"],
    "kit": ["matplotlib", "PIL"],
    "figures": ["matplotlib", "PIL"],
}


def imported_at_once(body):
    """Top-level modules that a file imports, also inside ``with needed(...)``."""
    for node in body:
        if isinstance(node, ast.With):
            yield from imported_at_once(node.body)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield (
                node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            ).partition(".")[0]


def room_of(name):
    first = name.partition(".")[0]
    return "ground" if first in GROUND else first if first in MAY_USE else "mathematics"


def needs_of(name):
    room = room_of(name)
    return (
        "torch" if room == "mathematics" and "torch" in imported_at_once(TREES[name].body) else room
    )


@pytest.mark.parametrize("needs", sorted({*map(needs_of, FILES)}))
def test_heavy_imports(needs):
    modules = ", ".join(
        ["lowrank_tutor", *(f"lowrank_tutor.{name}" for name in FILES if needs_of(name) == needs)]
    )
    code = (
        f"import {modules}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & (set(HEAVY) - set(NEEDS.get(needs, [])))


def own_imports(name):
    """Modules of the package that a module imports, inside functions and for a type checker too."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {used.removeprefix("lowrank_tutor.") for used in found} & set(FILES)


@pytest.mark.parametrize("module", FILES)
def test_imports_run_one_way(module):
    room, used = room_of(module), own_imports(module)
    allowed = {"ground", room, *MAY_USE.get(room, ())} if room != "ground" else {"ground"}
    assert {room_of(name) for name in used} <= allowed, f"{module} uses {sorted(used)}"


def test_no_import_circles():
    """Take away modules that use none of those left, until none is left: a circle would stay."""
    left = {name: own_imports(name) - {name} for name in FILES}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    assert not left, "these import each other in a circle"


README = dict(
    re.findall(r"^\| `(\w+)` \| (.*?) ?\| ", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
)
HIDDEN = """
import importlib, json, sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tqdm", *hidden}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

hidden, rooms = json.loads(sys.argv[1])
sys.meta_path.insert(0, Hide())
said = {}
for room in rooms:
    try:
        module = importlib.import_module(f"lowrank_tutor.{room}")
        said[room] = ""
        for name in getattr(module, "__all__", ()):
            getattr(module, name)
    except ModuleNotFoundError as error:
        said[room] = ("some " if room in said else "") + str(error)
print(json.dumps(said))
"""


def test_extras():
    """Every public module is in the README and in the reference, and needs the extra that the
    README's table says.
    """
    public = [room for room in ROOMS if not room.startswith("_")]
    assert sorted(README) == public, "the README's table has a row for each module"
    api = (ROOT / "book" / "cheat-sheet.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"automodule:: lowrank_tutor\.(\w+)", api))) == public
    command = [sys.executable, "-c", HIDDEN, json.dumps([HEAVY, public])]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for room, extra in README.items():
        name = re.search(r"\w+|$", extra)[0]
        remedy = rf'lowrank_tutor\.{room}(\.\w+)? needs \w+: pip install "lowrank-tutor\[{name}\]"'
        some = "some " if extra.endswith("for some") else ""
        assert re.fullmatch(f"{some}{remedy}" if extra else "", said[room]), (room, said[room])


def test_public_names():
    """``import lowrank_tutor as lr`` is enough, and completion shows what ``__all__`` names."""
    public = {room for room in ROOMS if not room.startswith("_")}
    assert set(lowrank_tutor.__all__) == public
    names = {name for room in public for name in getattr(lowrank_tutor, room).__all__}
    assert set(dir(lowrank_tutor)) == public | names
    for room in lowrank_tutor.__all__:
        module = getattr(lowrank_tutor, room)
        own = {
            node.name
            for node in TREES[room].body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert {name for name in own if not name.startswith("_")} <= set(module.__all__), room
        wordy = [
            name
            for name in module.__all__
            if re.search(r"Union\[|numpy\._typing", signature_of(getattr(module, name)))
        ]
        assert not wordy, f"{room}: {wordy}"
    with pytest.raises(
        AttributeError, match=r"^module 'lowrank_tutor' has no attribute 'nothing'$"
    ):
        _ = lowrank_tutor.nothing


def test_other_names_say_what_to_call():
    others = json.loads((PACKAGE / "data" / "other_names.json").read_text(encoding="utf-8"))
    for name, call in others.items():
        with pytest.raises(
            AttributeError, match=f"has no attribute '{name.upper()}': call {re.escape(call)}$"
        ):
            getattr(lowrank_tutor, name.upper())
        for own in re.findall(r"lr(?:\.\w+)+", call):
            assert callable(eval(own, {"lr": lowrank_tutor})), own


def test_names_find_their_module():
    """A public name is one of the package too; where a page's helper has the same, the mathematics
    comes first.
    """
    for name, module in {
        "PCA": "pca",
        "nmf.nmf": "nmf",
        "randomized_svd": "svd",
        "score": "bilinear.scores",
    }.items():
        found = operator.attrgetter(name)(lowrank_tutor)
        assert found.__module__ == f"lowrank_tutor.{module}"
    assert not hasattr(lowrank_tutor.svd, "__module__")  # Sphinx would look there for its functions
    code = (
        "from lowrank_tutor import PCA, randomized_svd; import sys; print('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "False\n"
    )


def signature_of(value):
    return (
        str(inspect.signature(value)) if inspect.isfunction(value) or inspect.isclass(value) else ""
    )


def test_one_address():
    """Where there is only the README, the wheel or its metadata, the book is found, and a fork sees
    what to change.
    """
    address = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"][
        "url"
    ]
    owner, name = address.split("/")[-2:]
    citation = ROOT / "CITATION.cff"
    assert f"version: {lowrank_tutor.__version__}\n" in citation.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "pyproject.toml", PACKAGE / "__init__.py", citation):
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            r"https://github\.com/[\w-]+/[\w-]+|https://[\w-]+\.github\.io/[\w-]+", text
        )
        assert address in found, path
        assert set(found) <= {address, f"https://{owner}.github.io/{name}"}, path


def build_wheel(folder):
    """Build the package's wheel from a copy of this tree, and return where it lies."""
    tree = folder / "tree"
    shutil.copytree(PACKAGE, tree / "lowrank_tutor", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(ROOT / name, tree / name)
    # As pip calls it.
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)
    (wheel,) = folder.glob("lowrank_tutor-*.whl")
    return wheel


def test_wheel_is_complete(tmp_path):
    with zipfile.ZipFile(build_wheel(tmp_path)) as archive:
        inside = {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert inside == {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes() for path in files
    }
    assert {"lowrank_tutor/py.typed", "lowrank_tutor/data/svd_bench.json"} <= set(inside)
