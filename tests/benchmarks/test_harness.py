"""The command lines that all benchmarks share."""

import importlib
import sys

import pytest
import torch


@pytest.mark.parametrize("script", ["linformer", "long_study", "training_study"])
def test_device_without_gpu(script, monkeypatch, capsys):
    """``--device cuda`` ends with one line, not with an assertion inside PyTorch."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", [script, "--device", "cuda"])
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module(f"benchmarks.{script}").main()
    assert stopped.value.code == 2
    assert "--device: must be cpu where PyTorch finds no GPU, got cuda" in capsys.readouterr().err.splitlines()[-1]
