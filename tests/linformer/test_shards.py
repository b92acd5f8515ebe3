"""One sequence over several processes against one: the scenarios of tests/shards_worker.py, in one start."""

import json
import os
import subprocess
import sys

import pytest
import shards_worker
import torch
from shards_worker import SCENARIOS, layer_of

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="needs torch.distributed with gloo, and processes that can be forked",
)


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What went wrong in each of three processes, which have one thread each."""
    folder = tmp_path_factory.mktemp("found")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, shards_worker.__file__, folder]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_three_processes(processes, name):
    assert [process.get(name, "") for process in processes] == ["", "", ""]


def test_builds_without_processes(monkeypatch):
    with pytest.raises(TypeError, match=r"^process_group must be a torch\.distributed\.ProcessGroup .*, got 'gloo'$"):
        layer_of(process_group="gloo")
    monkeypatch.delattr(torch.distributed, "ProcessGroup")
    assert layer_of()(torch.zeros(1, 8, 6, dtype=torch.float64)).shape == (1, 8, 6)
    with pytest.raises(TypeError, match="process_group must be"):
        layer_of(process_group="gloo")
