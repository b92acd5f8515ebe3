"""The command lines that several measurements share."""

import importlib
import sys

import pytest
import torch

SCRIPTS = [
    "speed.linformer",
    "training.long_study",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_device_without_gpu(script, monkeypatch, capsys):
    """``--device cuda`` ends with one line, not with an assertion inside PyTorch."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", [script, "--device", "cuda"])
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module(f"measure.{script}").main()
    assert stopped.value.code == 2
    assert (
        "--device: must be cpu where PyTorch finds no GPU, got cuda"
        in capsys.readouterr().err.splitlines()[-1]
    )
