"""The training study: its texts, its record, and that it runs and resumes."""

import json
import re
import sys

import pytest
import torch
from chapters import ROOT

from measure.harness import DATA
from measure.training import training_study as study


def as_tensor(text):
    return torch.tensor(list(text.encode()))


def test_repeated_by_hand():
    share = study.repeated(as_tensor("abcdefgh"), as_tensor("xxabcdyyzabc"), 3)
    assert share == 7 / 12, "abcd, which holds two passages of three, and abc"
    assert study.repeated(as_tensor("abcdefgh"), as_tensor("xxabcdyyzabc"), 4) == 4 / 12
    assert study.repeated(as_tensor("abc"), as_tensor("abc"), 4) == 0


def test_record_is_complete():
    meta, rows = json.loads((DATA / "training_study.json").read_text(encoding="utf-8")).values()
    assert {(row["kind"], row["seed"]) for row in rows} == {
        (kind, seed) for kind in study.KINDS for seed in range(3)
    }
    assert set(meta["seconds_of_a_step"]) == set(study.KINDS)
    assert all([step for step, _ in row["curve"]] == list(range(100, 2001, 100)) for row in rows)
    page = (ROOT / "book" / "06-attention.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"held-out text \((\d+)% of it repeats the training text\)", page)
    assert round(100 * meta["held_out_repeats"]) == int(told)


def test_short_run(monkeypatch, tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(
        study, "KINDS", {kind: study.KINDS[kind] for kind in ("none", "performer m=128 redrawn")}
    )
    monkeypatch.setattr(study, "SHORT", study.SHORT._replace(steps=4, every=2))
    monkeypatch.setattr(sys, "argv", ["training_study", "--short", "--resume", str(path)])
    assert study.main() == study.main() == 0
    assert len(path.read_text().splitlines()) == 2, "the second time nothing is repeated"
    assert "ms a step" in capsys.readouterr().out


@pytest.mark.parametrize("kind", study.KINDS)
def test_each_kind_learns(kind):
    """One batch, shown again and again, is learned by heart."""
    training = study.Training(kind, 0, study.SHORT._replace(warm_up=1), "cpu")
    losses = []
    for _ in range(40):
        training.generator.manual_seed(0)
        losses += training.go_on()
    assert losses[-1] < losses[0] / 2
