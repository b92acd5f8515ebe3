"""The Makefile and the workflows: which steps run again, what a broken build leaves behind, and who may write.

The commands run in a folder with an awkward name, on stand-ins for Python, pip and Jupyter Book.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import yaml
from chapters import ROOT

FILES = ["requirements.txt", "requirements-dev.txt"]


# ------------------------------------------------------------------------------------------------ pins and workflows


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


def test_site_of_oldest_and_newest_python():
    """Both build all pages and run every test, with those that need a browser."""
    job = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ends = re.search(r"\((\d+), (\d+)\) <= sys.version_info\[:2\] <= \((\d+), (\d+)\)", makefile)
    assert {f"{ends[1]}.{ends[2]}", f"{ends[3]}.{ends[4]}"} <= {
        entry["python"] for entry in job["strategy"]["matrix"]["include"]
    }
    assert "make test" in [step.get("run") for step in job["steps"]]
    assert re.search(r"^test: .*\bbook\b", makefile, re.MULTILINE), "make test builds the site"
    assert job["env"] == {"LOWRANK_REQUIRE_BROWSER": "1"}


# ---------------------------------------------------------------------------------------------------------- commands

# Stand-ins for Python, for the environment's own (which is asked only to install) and for Jupyter Book. Each writes
# down how it was called.
PYTHON = """#!/bin/sh
case $1 in
-c) exec '{real}' "$@";;
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
TESTS = "python -m pytest -n auto --dist loadgroup --no-loadscope-reorder --durations 10"
WELL = "mkdir -p _build/html"
KILLED = "kill -9 $$"
RUNS = "echo Chapters run. > _build/unfinished"  # as _ext/side_by_side.py writes it
INTERRUPTED = "trap 'exit 1' INT; touch started; sleep 60"  # Jupyter Book makes a failure of it


class Checkout:
    """A folder with an awkward name, in which nothing real is installed or built."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("Makefile", "pyproject.toml", *FILES):
            shutil.copy(ROOT / name, folder)
        self.give("my python", PYTHON.format(real=sys.executable))
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


def test_steps_and_changed_pins(checkout):
    for words, steps in (
        ("book", [MAKES, *INSTALLS, BUILDS]),
        ("book", [BUILDS]),
        ("test", [INSTALLS_DEV, BUILDS, TESTS]),
        ("test", [BUILDS, TESTS]),
    ):
        assert checkout.make(words)[2] == steps
    assert not (checkout.folder / "told").exists(), "the name of the folder ran as a command"
    (checkout.folder / "requirements.txt").touch()
    assert checkout.make("test")[2] == [*INSTALLS, INSTALLS_DEV, BUILDS, TESTS]


@pytest.mark.parametrize("file", FILES)
def test_killed_installation(checkout, file):
    checkout.give("installs", CALLED.format(then=f'case "$*" in *{file}) {KILLED};; esac'))
    assert checkout.make("test")[0] != 0
    checkout.give("installs", CALLED.format(then=""))
    assert checkout.make("book")[2] == [MAKES, *INSTALLS, BUILDS]


@pytest.mark.parametrize(
    ("ends", "kept"),
    [
        (f"{RUNS}; {KILLED}", False),
        (f"{RUNS}; {INTERRUPTED}", False),
        (f"{RUNS}; exit 1", False),
        (KILLED, True),
        (INTERRUPTED, True),
        ("exit 1", True),
    ],
    ids=["chapters killed", "chapters interrupted", "chapters failed", "killed", "interrupted", "failed"],
)
def test_broken_build(checkout, ends, kept):
    checkout.make("book")
    checkout.give(".venv/bin/jupyter-book", CALLED.format(then=f"mkdir -p _build/half _build/html; {ends}"))
    run = checkout.start("book")
    if INTERRUPTED in ends:
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
