"""``make chapter`` writes a chapter that lacks only its text, or writes nothing."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from chapter import changes, main
from chapters import CHAPTERS, ROOT

NEXT = len(CHAPTERS) + 1


@pytest.fixture
def copy(tmp_path):
    kept = shutil.ignore_patterns("__pycache__", "*.ipynb")
    for name in ("lowrank_tutor", "tests", "book", "tools", "_ext", "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=kept)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_only_text_is_missing(copy):
    outer = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}

    def run(*words):
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, cwd=copy, env={**outer, "PYTHONPATH": str(copy)}, capture_output=True, text=True)

    main(copy, str(NEXT), "zebra")
    for command in ("check", "format --check"):
        checked = run("ruff", *command.split(), ".")
        assert checked.returncode == 0, checked.stdout
    tests = "lowrank_tutor/zebra.py tests/test_zebra.py tests/test_package.py tests/exercises tests/book"
    chosen = "zebra or match_exercises or extras or public_names or names_are_unique or test_a_letter"
    said = run("pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests.split(), "-k", chosen).stdout
    failed = re.findall("^(?:FAILED|ERROR) (.*) - ", said, re.MULTILINE)
    assert failed == [f"tests/book/test_chapters.py::test_length[{NEXT:02}-zebra]"], said
    assert re.search(r"zebra.md has \d+ words, a chapter 1500 to 3199; \d+ TODOs", said)


@pytest.mark.parametrize(
    ("n", "name", "words"),
    [
        (NEXT - 1, "zebra", f"N must be {NEXT}, the number after the last chapter, got '{NEXT - 1}'"),
        ("", "zebra", f"N must be {NEXT}, the number after the last chapter, got ''"),
        (NEXT, "Zebra", "NAME must be one lower-case word, such as nuclear, got 'Zebra'"),
        (NEXT, "class", "NAME must be one lower-case word, such as nuclear, got 'class'"),
        (NEXT, "svd", "NAME must be new, got 'svd', but lowrank_tutor/svd.py exists"),
        (NEXT, "caches", "NAME must be new, got 'caches', but lowrank_tutor/caches exists"),
    ],
)
def test_refusals(n, name, words):
    with pytest.raises(SystemExit, match=f"^{re.escape(words)}$"):
        changes(ROOT, str(n), name)
