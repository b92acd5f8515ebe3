"""No script of the package uses a name that neither it, a browser, nor another script of the
package declares, and none declares a name of its own that it does not use.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from chapters import ROOT

DECLARED = re.compile(r"^(?:async )?(?:const|let|var|function|class) (\w+|\{[^}]*\})", re.MULTILINE)


def test_names_are_declared(tmp_path):
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "lowrank_tutor").rglob("*.js")]
    shared = {
        name
        for text in texts
        for names in DECLARED.findall(text)
        for name in re.findall(r"\w+", names)
    }
    unused = {"varsIgnorePattern": f"^({'|'.join(shared)})$", "caughtErrors": "none"}
    config = {
        "env": {"browser": True, "worker": True, "es2024": True},
        "globals": dict.fromkeys(
            shared | {"storyteller_weights"}, "readonly"
        ),  # and what becomes of a file of data
        "categories": {"correctness": "off"},
        "rules": {"no-undef": "error", "no-unused-vars": ["error", unused]},
    }
    (tmp_path / "rules.json").write_text(json.dumps(config), encoding="utf-8")
    oxlint = Path(sys.executable).with_name("oxlint")
    command = [oxlint, "--config", tmp_path / "rules.json", "lowrank_tutor"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
