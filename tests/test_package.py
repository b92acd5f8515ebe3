"""The package as a whole: which module may import what, what its docstrings hold, what its wheel carries."""

import ast
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
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
PUBLIC = [name for name in MODULES if not name.startswith("_")]

# Each module is of one kind, and a new one must be declared here. Imports run one way: a module may use modules of its
# own kind and of the kinds named before it ("numpy", then "torch"; the page may use the figures; and so on).
KINDS = {
    "numpy": ["_checks", "_on_demand", "rank", "svd", "pca", "jl", "bilinear", "family"],
    "torch": [
        "_tensors",
        "_sequence_parallel",
        "_reduced_rank",
        "_autoencoder",
        "_kernel_attention",
        "attention",
        "linformer",
    ],
    "exact": ["_exact", "_attention_byhand", "_family_byhand", "byhand"],
    "figures": ["plotting"],
    "page": ["explore", "_page", "exercises", "_questions", "sphinxext"],
}
KIND_OF = {module: kind for kind, modules in KINDS.items() for module in modules}
MAY_USE = {
    "numpy": {"numpy"},
    "torch": {"numpy", "torch"},
    "exact": {"numpy", "torch", "exact"},
    "figures": {"numpy", "torch", "figures"},
    "page": {"figures", "page"},
}
# What importing a module of a kind must not bring along. Heavy things that one function needs are imported inside it.
HEAVY = ["torch", "matplotlib", "ipywidgets", "IPython", "sympy", "scipy", "sklearn", "PIL"]
NEEDS = {
    "numpy": [],
    "torch": ["torch", "sympy", "scipy"],  # torch itself may bring the other two
    "exact": ["sympy"],
    "figures": ["matplotlib", "PIL"],
    "page": ["matplotlib", "PIL"],
}


def loaded_by(statement):
    """Run a statement in a fresh interpreter and return the top-level modules that are loaded afterwards."""
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_every_module_is_declared():
    assert sorted(KIND_OF) == MODULES


def test_the_package_alone_imports_nothing_heavy():
    assert not loaded_by("import lowrank_tutor") & {"numpy", *HEAVY}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_brings_along_only_what_its_kind_needs(module):
    unwanted = set(HEAVY) - set(NEEDS[KIND_OF[module]])
    assert not loaded_by(f"import lowrank_tutor.{module}") & unwanted


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    names = []
    for node in ast.walk(tree):  # what only a type checker reads is imported by nobody
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):  # also those inside functions
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
    used = {name.split(".")[1] for name in names if name.startswith("lowrank_tutor.")} & set(MODULES)
    kinds = {KIND_OF[name] for name in used}
    assert kinds <= MAY_USE[KIND_OF[module]], f"{module} uses {sorted(used)}"


def public_objects():
    """Yield what a reader may call: public functions, classes, and public methods of these, where they are defined."""
    for module_name in PUBLIC:
        module = importlib.import_module(f"lowrank_tutor.{module_name}")
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(thing):
                yield f"{module_name}.{name}", thing
                for method_name, method in vars(thing).items():
                    if inspect.isfunction(method) and not method_name.startswith("_"):
                        yield f"{module_name}.{name}.{method_name}", method
            elif inspect.isfunction(thing):
                yield f"{module_name}.{name}", thing


OBJECTS = dict(public_objects())


@pytest.mark.parametrize("name", OBJECTS)
def test_every_public_name_says_what_it_takes_and_gives(name):
    thing = OBJECTS[name]
    doc = inspect.getdoc(thing)
    assert doc, "no docstring"
    if not inspect.isfunction(thing) or KIND_OF[name.partition(".")[0]] == "page":  # called by the book, not by readers
        return
    parameters = set(inspect.signature(thing).parameters) - {"self"}
    sections = {part for part in ("Parameters", "Returns") if re.search(rf"^{part}\n-+$", doc, re.MULTILINE)}
    assert sections == ({"Parameters", "Returns"} if parameters else {"Returns"}) or ">>> " in doc
    if "Parameters" in sections:
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
    for path in PACKAGE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], path.name


@pytest.fixture(scope="module")
def settings():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_requirements_have_lower_bounds_only(settings):
    """The package must install beside whatever a notebook service already has."""
    project = settings["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    for requirement in wanted:
        assert re.fullmatch(r"[\w-]+>=[\d.]+", requirement)
    assert re.fullmatch(r">=[\d.]+", project["requires-python"])


def test_the_version_stands_the_same_in_both_places(settings):
    assert settings["project"]["version"] == lowrank_tutor.__version__


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
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("lowrank_tutor/")}
        unpacked = {name: archive.read(name) for name in inside}
    source = clean / "lowrank_tutor"
    there = {f"lowrank_tutor/{path.relative_to(source)}": path for path in source.rglob("*") if path.is_file()}
    assert inside == set(there)
    assert all(unpacked[name] == path.read_bytes() for name, path in there.items())
    assert {"lowrank_tutor/py.typed", "lowrank_tutor/data/svd_bench.json"} <= inside
