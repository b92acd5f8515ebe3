"""The table of ratios: what is written says who won, by how much, and how exact both were; losses included."""

import json

import pytest

from benchmarks import harness, helpers


def test_a_loss_is_written_like_a_win(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    spend = {"win": (2_000, 200_000), "loss": (200_000, 2_000)}

    def task(name):
        ours, theirs = spend[name]
        return helpers.Task(name, "peer", lambda: sum(range(ours)), lambda: sum(range(theirs)), lambda _: 0.5, 1.0)

    monkeypatch.setattr(helpers, "tasks", lambda: [lambda: task("win"), lambda: task("loss")])
    monkeypatch.setattr(helpers, "growth", lambda: {"bar": "growth", "measured": "2x", "holds": True})
    assert helpers.main() == 1
    record = json.loads((tmp_path / "helpers.json").read_text(encoding="utf-8"))
    win, loss = record["rows"]
    assert win["ratio"] < 1 < loss["ratio"]
    assert win["error_ours"] == win["error_theirs"] == 0.5
    assert loss["time_ours"] / loss["time_theirs"] == pytest.approx(loss["ratio"], rel=0.5)
    assert [bar["holds"] for bar in record["meta"]["bars"]] == [True, False, True]
    assert {"cpu", "cores"} <= set(record["meta"]["machine"])
    assert {"numpy", "torch"} <= set(record["meta"]["versions"])
    assert "FAILS: loss <= 1.0x peer" in capsys.readouterr().out
