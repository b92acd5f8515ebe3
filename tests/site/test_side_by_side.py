"""Chapters run side by side, once each, on one core each."""

import os
import subprocess
import sys

import pytest
from chapters import ROOT

CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "site")!r})
extensions = ["myst_nb", "side_by_side"]
exclude_patterns = ["out"]
nb_execution_mode = "cache"
nb_execution_cache_path = "out/cache"
nb_execution_timeout = 300
"""

# Each waits for the other: one after the other they would never end.
PAGE = """---
file_format: mystnb
kernelspec: {{name: python3, display_name: Python 3}}
---
# A page

```{{code-cell}}
import os, time
from pathlib import Path

with Path("{own}").open("a") as runs:
    runs.write("x")
end = time.monotonic() + 300
while not Path("{other}").exists():
    assert time.monotonic() < end
    time.sleep(0.05)
print("threads:", os.environ["OMP_NUM_THREADS"])
```
"""


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core runs one chapter at a time")
def test_pages_run_in_parallel(tmp_path):
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text("# Two\n\n```{toctree}\na\nb\n```\n")
    for own, other in ("ab", "ba"):
        (tmp_path / f"{own}.md").write_text(PAGE.format(own=f"ran-{own}", other=f"ran-{other}"))
    half = tmp_path / "out/cache/executed/half"  # of a chapter whose run was interrupted
    half.mkdir(parents=True)
    (tmp_path / "out/cache/chapters-run").touch()
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", ".", "out"], cwd=tmp_path, env=env, check=True
    )
    for name in "ab":
        assert (tmp_path / f"ran-{name}").read_text() == "x"
        assert "threads: 1" in (tmp_path / "out" / f"{name}.html").read_text()
    assert not half.exists()
    assert not (tmp_path / "out/cache/chapters-run").exists()
