"""The table of ratios: what is written says who won, by how much, and how exact both were; losses included."""

import json

import pytest
import torch

from benchmarks import harness, helpers
from lowrank_tutor.attention import linear_attention


def test_a_loss_is_written_like_a_win(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    spend = {"win": (2_000, 200_000, 1.0), "loss": (200_000, 2_000, 1.0), "told": (200_000, 2_000, None)}

    def task(name):
        ours, theirs, bar = spend[name]
        return helpers.Task(name, "peer", lambda: sum(range(ours)), lambda: sum(range(theirs)), lambda _: 0.5, bar)

    monkeypatch.setattr(helpers, "tasks", lambda: [lambda name=name: task(name) for name in spend])
    monkeypatch.setattr(helpers, "growth", lambda: {"bar": "growth", "measured": "2x", "holds": True})
    assert helpers.main() == 1
    record = json.loads((tmp_path / "helpers.json").read_text(encoding="utf-8"))
    win, loss, told = record["rows"]
    assert told["bar"] is None
    assert told["ratio"] > 1
    assert win["ratio"] < 1 < loss["ratio"]
    assert win["error_ours"] == win["error_theirs"] == 0.5
    assert loss["time_ours"] / loss["time_theirs"] == pytest.approx(loss["ratio"], rel=0.5)
    assert [bar["holds"] for bar in record["meta"]["bars"]] == [True, False, True]
    assert {"cpu", "cores"} <= set(record["meta"]["machine"])
    assert {"numpy", "torch"} <= set(record["meta"]["versions"])
    assert "FAILS: loss <= 1.0x peer" in capsys.readouterr().out


def test_the_formula_in_plain_pytorch_is_linear_attention_until_all_features_vanish():
    q, k, v = torch.randn(3, 1, 2, 10, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(helpers.written_out(q, k, v), linear_attention(q, k, v))
    low = torch.full_like(q, -800.0)
    assert helpers.written_out(low, low, v).isnan().all()
    assert linear_attention(low, low, v).isfinite().all()
