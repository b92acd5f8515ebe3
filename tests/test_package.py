"""The package as a whole: which module may import what, and what its wheel carries."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from live import build_wheel

import lowrank_tutor

PACKAGE = Path(lowrank_tutor.__file__).parent


def name_of(path):
    """The dotted name of a file of the package: ``bilinear`` for ``bilinear/__init__.py``, ``bilinear.layer``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"}
MODULES = list(FILES)
ROOMS = sorted({name.partition(".")[0] for name in MODULES})

# Each room, a file or a folder, is of one kind, and a new one must be declared here. Imports run one way: a room may
# use rooms of its own kind and of the kinds named before it ("numpy", then "torch"; the page may use the figures, and
# both ask the "setting" whether a page is being built). Where a package is missing, all say so by the same one.
KINDS = {
    "asked": ["_on_demand"],
    "numpy": ["_checks", "rank", "svd", "pca", "jl", "bilinear", "family", "caches"],
    "torch": ["_tensors", "attention", "linformer", "roofline", "shards", "states"],
    "exact": ["byhand"],
    "setting": ["palette", "sphinxext"],
    "figures": ["plotting", "tables"],
    "page": ["explore", "exercises", "instruments", "page"],
}
# Modules that need PyTorch, in rooms that otherwise do without it: fetched when they are asked for.
ON_DEMAND = dict.fromkeys(
    ("bilinear.layer", "family.autoencoder", "caches.latent", "caches.lora", "caches.steps"), "torch"
)
KIND_OF_ROOM = {room: kind for kind, rooms in KINDS.items() for room in rooms}
KIND_OF = {name: ON_DEMAND.get(name, KIND_OF_ROOM.get(name.partition(".")[0])) for name in MODULES}
MAY_USE = {
    "asked": set(),
    "numpy": {"asked", "numpy"},
    "torch": {"asked", "numpy", "torch"},
    "exact": {"asked", "numpy", "torch", "setting", "exact"},  # a page may not show formulas
    "setting": set(),
    "figures": {"asked", "numpy", "torch", "setting", "figures"},
    "page": {"asked", "numpy", "setting", "figures", "page"},
}
# What importing a module of a kind must not bring along. Heavy things that one function needs are imported inside it.
HEAVY = ["torch", "matplotlib", "ipywidgets", "IPython", "sympy", "scipy", "sklearn", "PIL"]
NEEDS = {
    "asked": [],
    "numpy": [],
    "torch": ["torch", "sympy", "scipy"],  # torch itself may bring the other two
    "exact": ["sympy"],
    "setting": [],
    "figures": ["matplotlib", "PIL"],
    "page": ["matplotlib", "PIL"],
}


def loaded_by(statement):
    """Run a statement in a fresh interpreter and return the top-level modules that are loaded afterwards."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_rooms_are_declared():
    assert sorted(KIND_OF_ROOM) == ROOMS


def test_package_imports_nothing_heavy():
    assert not loaded_by("import lowrank_tutor") & {"numpy", *HEAVY}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_import_what_they_need(kind):
    """All modules of a kind in one interpreter: an unwanted guest is seen whoever brings it."""
    modules = [f"lowrank_tutor.{name}" for name in MODULES if KIND_OF[name] == kind]
    assert not loaded_by(f"import {', '.join(modules)}") & (set(HEAVY) - set(NEEDS[kind]))


def imports_of(name):
    """Every module or name that a module imports, inside functions too; what only a type checker reads is left out."""
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def own_imports(name):
    """The modules of the package that a module imports, under the names of ``MODULES``."""
    return {used.removeprefix("lowrank_tutor.") for used in imports_of(name)} & set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    used = own_imports(module)
    assert {KIND_OF[name] for name in used} <= MAY_USE[KIND_OF[module]], f"{module} uses {sorted(used)}"


def test_no_import_circles():
    """Taken away one by one, those that use nothing of what is left: a circle would stay."""
    left = {name: own_imports(name) - {name} for name in MODULES}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    assert not left, "these import each other in a circle"


def test_wheel_is_complete(tmp_path):
    with zipfile.ZipFile(tmp_path / build_wheel(tmp_path)) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert inside == {path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes() for path in files}
    assert {"lowrank_tutor/py.typed", "lowrank_tutor/data/svd_bench.json"} <= set(inside)
