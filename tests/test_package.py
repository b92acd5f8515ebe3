"""The package as a whole: which module may import what, what its docstrings hold, what its wheel carries."""

import ast
import fnmatch
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import lowrank_tutor

ROOT = Path(__file__).parents[1]
PACKAGE = Path(lowrank_tutor.__file__).parent


def name_of(path):
    """The dotted name of a file of the package: ``bilinear`` for ``bilinear/__init__.py``, ``bilinear.layer``."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"}
MODULES = list(FILES)
ROOMS = sorted({name.partition(".")[0] for name in MODULES})
PUBLIC = [room for room in ROOMS if not room.startswith("_")]

# Each room, a file or a folder, is of one kind, and a new one must be declared here. Imports run one way: a room may
# use rooms of its own kind and of the kinds named before it ("numpy", then "torch"; the page may use the figures, and
# both ask the "setting" whether a page is being built). Where a package is missing, all say so by the same one.
KINDS = {
    "asked": ["_on_demand"],
    "numpy": ["_checks", "rank", "svd", "pca", "jl", "bilinear", "family", "today"],
    "torch": ["_tensors", "attention", "linformer", "state"],
    "exact": ["byhand"],
    "setting": ["sphinxext"],
    "figures": ["plotting", "tables"],
    "page": ["explore", "exercises", "instruments"],
}
# Modules that need PyTorch, in rooms that otherwise do without it: fetched when they are asked for.
ON_DEMAND = dict.fromkeys(
    ("bilinear.layer", "family.autoencoder", "today.latent", "today.lora", "today.windows"), "torch"
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


def test_every_room_is_declared():
    assert sorted(KIND_OF_ROOM) == ROOMS


def test_only_what_several_rooms_share_is_private():
    private = [name for name in MODULES if name.rpartition(".")[2].startswith("_")]
    assert private == ["_checks", "_on_demand", "_tensors"]
    for name in private:
        users = {user.partition(".")[0] for user in MODULES if f"lowrank_tutor.{name}" in imports_of(user)}
        assert len(users) > 1, f"{name} belongs to {users}"


def test_the_face_of_a_folder_defines_nothing_itself():
    for path in FILES.values():
        if path.stem == "__init__":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            assert defined == [], path.parent.name


def test_the_package_alone_imports_nothing_heavy():
    assert not loaded_by("import lowrank_tutor") & {"numpy", *HEAVY}


@pytest.mark.parametrize("kind", KINDS)
def test_modules_bring_along_only_what_their_kind_needs(kind):
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


def test_no_import_runs_back_up():
    """Taken away one by one, those that use nothing of what is left: a circle would stay."""
    left = {name: own_imports(name) - {name} for name in MODULES}
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    assert not left, "these import each other in a circle"


def public_objects():
    """Yield what a room offers: public functions, classes, and public methods of these."""
    for room in PUBLIC:
        module = importlib.import_module(f"lowrank_tutor.{room}")
        own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]
        for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
            thing = getattr(module, name)
            if inspect.isclass(thing):
                yield f"{room}.{name}", thing
                for method_name, method in vars(thing).items():
                    if inspect.isfunction(method) and not method_name.startswith("_"):
                        yield f"{room}.{name}.{method_name}", method
            elif inspect.isfunction(thing):
                yield f"{room}.{name}", thing


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_name_says_what_it_takes_and_gives(name):
    thing = OBJECTS[name]
    doc = inspect.getdoc(thing)
    assert doc, "no docstring"
    kind = KIND_OF[name.partition(".")[0]]
    if kind in ("page", "setting") or (inspect.isclass(thing) and kind == "exact"):  # made by the book, not by readers
        return
    parameters = set(inspect.signature(thing).parameters) - {"self"}
    sections = {part for part in ("Parameters", "Returns") if re.search(rf"^{part}\n-+$", doc, re.MULTILINE)}
    if inspect.isfunction(thing):
        assert sections == ({"Parameters", "Returns"} if parameters else {"Returns"}) or ">>> " in doc
    if inspect.isclass(thing) or "Parameters" in sections:
        described = {
            name
            for line in re.findall(r"^([\w, *]+) : ", doc, re.MULTILINE)
            for name in line.replace("*", "").split(", ")
        }
        assert parameters <= described, "a parameter is not described"


@pytest.mark.parametrize("module", [name for name in PUBLIC if KIND_OF[name] in ("numpy", "torch", "exact")])
def test_a_concept_opens_with_a_question_and_names_its_chapter(module):
    doc = importlib.import_module(f"lowrank_tutor.{module}").__doc__
    assert "?" in doc.splitlines()[0]
    assert re.search(r"``book/\d\d-[\w-]+(\.md)?``|[Cc]hapter", doc)


def test_the_package_never_validates_by_assert():
    for path in FILES.values():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], path.name


@pytest.fixture(scope="module")
def settings():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_requirements_have_lower_bounds_only(settings):
    """The package must install beside whatever a notebook service already has."""
    project = settings["project"]
    extras = dict(project["optional-dependencies"])
    assert extras.pop("all") == [f"{project['name']}[{','.join(extras)}]"]
    for requirement in [*project["dependencies"], *(item for extra in extras.values() for item in extra)]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+", requirement)
    assert re.fullmatch(r">=[\d.]+", project["requires-python"])


def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    """Built from a copy, so that no build folder is left behind and none that lay there helps."""
    clean = tmp_path / "source"
    clean.mkdir()
    shutil.copytree(PACKAGE, clean / "lowrank_tutor", ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in {".toml", ".md", ""} and not path.name.startswith("."):
            shutil.copy(path, clean)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, clean], check=True)
    (wheel,) = tmp_path.glob(f"lowrank_tutor-{lowrank_tutor.__version__}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("lowrank_tutor/")}
        unpacked = {name: archive.read(name) for name in inside}
    source = clean / "lowrank_tutor"
    there = {f"lowrank_tutor/{path.relative_to(source)}": path for path in source.rglob("*") if path.is_file()}
    assert inside == set(there)
    assert all(unpacked[name] == path.read_bytes() for name, path in there.items())
    assert {"lowrank_tutor/py.typed", "lowrank_tutor/data/svd_bench.json"} <= inside


@pytest.mark.parametrize(
    ("page", "entry"), [("README.md", r"^\| `(\w+)` \|"), ("book/api.md", r"^\.\. automodule:: lowrank_tutor\.(\w+)")]
)
def test_every_public_room_is_listed_where_a_reader_looks(page, entry):
    named = re.findall(entry, (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted({*named, "sphinxext"}) == PUBLIC  # the README names that one in a sentence of its own


def test_every_concept_is_mutated_and_every_path_of_the_mutants_is_there(settings):
    mutants = settings["tool"]["mutmut"]
    paths = [path.relative_to(ROOT).as_posix() for path in FILES.values()]
    mutated = {path for path in paths if any(fnmatch.fnmatch(path, glob) for glob in mutants["only_mutate"])}
    concepts = [room for room in PUBLIC if KIND_OF_ROOM[room] in ("numpy", "torch")]
    assert [room for room in concepts if not any(path.startswith(f"lowrank_tutor/{room}") for path in mutated)] == []
    assert [glob for glob in mutants["only_mutate"] if not any(fnmatch.fnmatch(path, glob) for path in paths)] == []
    tests = mutants["pytest_add_cli_args_test_selection"]
    assert [path for path in tests if not (ROOT / path).exists()] == []


def test_no_script_changes_where_python_looks_for_modules():
    scripts = [
        path for folder in ("lowrank_tutor", "benchmarks", "tools", "_ext") for path in (ROOT / folder).rglob("*.py")
    ]
    assert [path.name for path in scripts if "sys.path" in path.read_text(encoding="utf-8")] == []
