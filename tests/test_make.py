"""Does the first command work on a fresh machine? Which Pythons it takes, what it installs, and how it starts again.

The commands run in a folder with an awkward name, on stand-ins for Python, pip and Jupyter Book.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from importlib.metadata import distribution

import pytest
import yaml
from chapters import ROOT

FILES = ["requirements.txt", "requirements-dev.txt"]


# ------------------------------------------------------------------------------------------------ pins and workflows


def test_torch_metadata():
    """uv takes from pyproject.toml what torch needs, so it cannot notice when a new version needs something else."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (told,) = tomllib.loads(text)["tool"]["uv"]["dependency-metadata"]
    needed = {re.match(r"[\w-]+", line)[0] for line in distribution("torch").requires if "extra ==" not in line}
    assert set(told["requires-dist"]) == {name for name in needed if not re.match("nvidia|cuda|triton", name)}


def test_hooks_are_make_check():
    (source,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    assert [hook["entry"] for hook in source["hooks"]] == commands


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_rights(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action)] == []
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        runs = any("run" in step for step in job["steps"])
        assert not (runs and "permissions" in job), f"{name} runs code of the repository, and may write"
        checkouts = [step["with"] for step in job["steps"] if "actions/checkout" in step.get("uses", "")]
        assert all(words["persist-credentials"] is False for words in checkouts), name


# ---------------------------------------------------------------------------------------------------------- commands

# Stand-ins for Python, for the environment's own (which is asked only to install) and for Jupyter Book. Each writes
# down how it was called.
PYTHON = """#!/bin/sh
case $1 in
-c) exec '{real}' -c 'import sys; {change}; sys.argv[:] = sys.argv[2:]; exec(sys.argv[0])' "$@";;
esac
echo "$*" >> calls.txt
rm -rf "$4"; mkdir -p "$4/bin" && cp installs "$4/bin/python" && cp builds "$4/bin/jupyter-book"
"""
CALLED = """#!/bin/sh
echo "${{0##*/}} $*" >> calls.txt
{then}
"""
MAKES = "-m venv --clear .venv"
PIP = "python -m pip install --quiet --disable-pip-version-check --no-compile"
INSTALLS = [f"{PIP} --requirement requirements.txt", f"{PIP} --no-deps --no-build-isolation --editable ."]
INSTALLS_DEV = f"{PIP} --requirement requirements-dev.txt"
BUILDS = "jupyter-book build . -W -n --keep-going"
TESTS = "python -m pytest -n logical --maxprocesses 4 --dist loadgroup --no-loadscope-reorder --durations 10"
WELL = "mkdir -p _build/html"
KILLED = "kill -9 $$"
INTERRUPTED = "trap 'exit 1' INT; touch started; sleep 60"  # Jupyter Book makes a failure of it


class Checkout:
    """A folder with an awkward name, in which nothing real is installed or built."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("Makefile", "pyproject.toml", *FILES):
            shutil.copy(ROOT / name, folder)
        self.give("my python", PYTHON.format(real=sys.executable, change="pass"))
        self.give("installs", CALLED.format(then=""))
        self.give("builds", CALLED.format(then=WELL))

    def give(self, name, script):
        path = self.folder / name
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)

    def start(self, *words):
        """Start make in a group of processes of its own, as a shell does."""
        outer = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        command = ["make", "PYTHON=./my python", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=outer, start_new_session=True, **pipes)

    def make(self, *words):
        """Return the exit status, what was said of errors, and what was called."""
        calls = self.folder / "calls.txt"
        calls.write_text("")
        run = self.start(*words)
        self.said, errors = run.communicate()
        return run.returncode, errors, calls.read_text().splitlines()

    def until(self, name):
        """Wait for a file."""
        while not (self.folder / name).exists():
            time.sleep(0.01)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "Größe`touch told`$(touch told) und 'Maß'")


OTHER = "Python 3.11 to 3.14 is needed, and ./my python is {}: name another one, as in make PYTHON=python3.12 book\n"
NO_VENV = "This Python cannot make an environment: on Debian and Ubuntu, apt install python{}.{}-venv\n"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("sys.version_info = (2, 7, 18)", OTHER.format("2.7")),
        ("sys.version_info = (3, 10, 13)", OTHER.format("3.10")),
        ("sys.version_info = (3, 15, 0)", OTHER.format("3.15")),
        ("sys.version_info = (3, 11, 2)", None),
        ("sys.version_info = (3, 14, 0)", None),
        ('sys.modules["ensurepip"] = None', NO_VENV.format(*sys.version_info)),
    ],
)
def test_pythons(checkout, change, sentence):
    checkout.give("my python", PYTHON.format(real=sys.executable, change=change))
    status, said, calls = checkout.make("book")
    assert (status, calls) == ((2, []) if sentence else (0, [MAKES, *INSTALLS, BUILDS]))
    assert said.startswith(sentence or "")
    assert (checkout.folder / ".venv").exists() == (sentence is None)


def test_steps_and_changed_pins(checkout):
    for words, steps in (
        ("book", [MAKES, *INSTALLS, BUILDS]),
        ("book", [BUILDS]),
        ("test", [INSTALLS_DEV, BUILDS, TESTS]),
        ("test", [BUILDS, TESTS]),
    ):
        assert checkout.make(words)[2] == steps
    (checkout.folder / "requirements.txt").touch()
    assert checkout.make("test")[2] == [*INSTALLS, INSTALLS_DEV, BUILDS, TESTS]


@pytest.mark.parametrize("file", FILES)
def test_killed_installation(checkout, file):
    checkout.give("installs", CALLED.format(then=f'case "$*" in *{file}) {KILLED};; esac'))
    assert checkout.make("test")[0] != 0
    checkout.give("installs", CALLED.format(then=""))
    assert checkout.make("book")[2] == [MAKES, *INSTALLS, BUILDS]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        (KILLED, False),
        (INTERRUPTED, False),
        ("echo Chapters run. > _build/unfinished; exit 1", False),
        ("exit 1", True),
    ],
    ids=["killed", "interrupted", "interrupted alone", "failed"],
)
def test_broken_build(checkout, ends, kept, shell):
    checkout.make("book")
    checkout.give(".venv/bin/jupyter-book", CALLED.format(then=f"mkdir -p _build/half _build/html; {ends}"))
    run = checkout.start("book", f"SHELL={shell}")
    if ends is INTERRUPTED:
        checkout.until("started")
        os.killpg(run.pid, signal.SIGINT)
    run.communicate()
    assert run.returncode != 0
    checkout.give(".venv/bin/jupyter-book", CALLED.format(then=f"test ! -e _build/html && {WELL}"))
    assert checkout.make("book")[0] == 0
    assert (checkout.folder / "_build/half").exists() == kept
    assert not (checkout.folder / "_build/unfinished").exists()


def test_second_make_is_refused(checkout):
    checkout.make("book")
    waits = f"{WELL}; touch started; until test -e go || test $((n += 1)) -gt 600; do sleep 0.1; done"
    checkout.give(".venv/bin/jupyter-book", CALLED.format(then=waits))
    first = checkout.start("book")
    checkout.until("started")
    status, said, calls = checkout.make("book")
    assert said.startswith("Another make is at work in this folder: try again when it has ended.\n")
    assert (status, calls) == (2, [])
    (checkout.folder / "go").touch()
    assert "The book is ready" in first.communicate()[0]
    assert checkout.make("book")[0] == 0


def test_folder_name_is_no_command(checkout):
    checkout.make("book")
    assert f"{checkout.folder}/_build/html/index.html" in checkout.said
    assert not (checkout.folder / "told").exists()


def test_lost_python(checkout):
    checkout.make("test")
    (checkout.folder / ".venv/bin/python").unlink()
    (checkout.folder / ".venv/bin/python").symlink_to("gone")
    assert checkout.make("test")[2] == [MAKES, *INSTALLS, INSTALLS_DEV, BUILDS, TESTS]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("reached", [True, False])
def test_no_network(checkout, file, reached):
    checkout.give("installs", CALLED.format(then=f'case "$*" in *{file}) exit 1;; *index*) exit {1 - reached};; esac'))
    status, said, _ = checkout.make("test")
    assert status == 2
    assert ("No network: pip cannot reach its package index.\nmake: ***" in said) == (not reached)
