"""The Makefile, the hooks, and the workflows: which steps run, what two runs at once do, and who may write."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest
import yaml
from chapters import ROOT

pytestmark = pytest.mark.repository
PUBLISHED = [
    "site/print/print_book.py",
    "site/print/make_epub.py",
    "-c import shutil",
    "site/print/publish.py",
]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_hooks_are_make_check():
    (source,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))[
        "repos"
    ]
    recipe = re.search(
        r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )[1]
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    assert [hook["entry"] for hook in source["hooks"]] == commands


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_rights(path):
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert [
        action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action)
    ] == []
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        runs = any("run" in step for step in job["steps"])
        assert not (runs and "permissions" in job), (
            f"{name} runs code of the repository, and may write"
        )
        checkouts = [
            step["with"] for step in job["steps"] if "actions/checkout" in step.get("uses", "")
        ]
        assert all(words["persist-credentials"] is False for words in checkouts), name


PYTHON = """#!/bin/sh
echo "$*" >> calls.txt
case "$*" in *jupyter_book*) mkdir -p _build/html; until test ! -e wait; do sleep 0.1; done; esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A folder with an awkward name and a ready environment, whose Python only says how it was called."""
    folder = tmp_path / "Größe`touch told`$(touch told) und 'Maß'"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / "site").mkdir()
    for name in (
        "Makefile",
        "pyproject.toml",
        "requirements.txt",
        "requirements-dev.txt",
        "site/alone.py",
    ):
        shutil.copy(ROOT / name, folder / name)
    program = folder / ".venv/bin/python"
    program.write_text(PYTHON, encoding="utf-8")
    program.chmod(0o755)
    (folder / ".venv/ready").touch()
    os.utime(folder / ".venv/ready", (0, 0))  # older than the pins
    return folder


def start(folder, *words):
    """Start make as a shell does, outside of the make that may run these tests."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", f"PYTHON={sys.executable}", *words]
    return subprocess.Popen(
        command, cwd=folder, env=outer, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_steps(checkout):
    pip, build = "-m pip install", "-c from jupyter_book.cli.main import main; main() build . -W -n"
    for words, steps in (
        (["book"], [pip, pip, build]),
        (["book"], [build]),
        (["test"], [pip, build, "-m pytest"]),
        (["publish"], [build, build, *PUBLISHED]),
    ):
        (checkout / "calls.txt").write_text("")
        run = start(checkout, *words)
        assert run.communicate()[1] == ""
        calls = (checkout / "calls.txt").read_text().splitlines()
        assert len(calls) == len(steps)
        assert all(call.startswith(step) for call, step in zip(calls, steps, strict=True)), calls
    assert not (checkout / "told").exists(), "the name of the folder ran as a command"


def test_second_make_is_refused(checkout):
    start(checkout, "book").communicate()
    shutil.rmtree(checkout / "_build")
    (checkout / "wait").touch()
    first = start(checkout, "book")
    while not (checkout / "_build/html").exists():
        time.sleep(0.01)
    for words in ("book", "clean"):
        second = start(checkout, words)
        assert second.communicate()[1].startswith(
            "Another make is at work in this folder: try again when it has ended.\n"
        )
        assert second.returncode == 2
    (checkout / "wait").unlink()
    assert "The book is ready" in first.communicate()[0]
    assert first.returncode == 0
    start(checkout, "clean").communicate()
    assert sorted(each.name for each in checkout.glob(".venv*")) == [".venv.lock"]
    (checkout / ".venv.lock").unlink()
    (checkout / ".venv.lock").mkdir()  # as little to be opened as one in a read-only folder
    assert start(checkout, "clean").communicate()[1].startswith("This folder must be writable: ")
