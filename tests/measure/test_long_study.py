"""The study of long inputs: its texts, its questions, and that it runs."""

import json
import statistics
import sys

import pytest
import torch

from measure.harness import DATA
from measure.training import long_study as study

RECORD = DATA / "long_study.json"


def test_questions_have_one_passage():
    x = torch.randint(256, (5, 128))
    shown, asked, kinds, distance = study.plant(x, torch.Generator().manual_seed(0))
    rest = iter(zip(kinds.tolist(), distance.tolist(), strict=True))
    for before, text, here in zip(x, shown, asked, strict=True):
        (passage,) = ((text >= 256) & (text < study.QUESTION)).nonzero().T
        assert passage.tolist() == list(range(passage[0], passage[0] + study.RUN))
        assert (text[passage] == text[passage[0]]).all()
        places = here.nonzero()[:, 0].tolist()
        assert len(places) == study.ASKED
        assert (text[places] == study.QUESTION).all()
        wanted = [(int(text[passage[0]]) - 256, abs(place - int(passage[0]))) for place in places]
        assert [next(rest) for _ in places] == wanted
        others = torch.ones(128, dtype=torch.bool)
        others[passage] = others[places] = False
        assert (text == before)[others].all()


def test_parts_share_no_text():
    parts = {part: {tuple(row) for row in texts.tolist()} for part, (texts, _) in study.corpus(study.SHORT).items()}
    assert not parts["train"] & parts["test"]
    assert not parts["validation"] & (parts["train"] | parts["test"])


@pytest.mark.parametrize("kind", study.KINDS)
@pytest.mark.parametrize("task", ["package", "passage"])
def test_each_kind_learns(kind, task):
    """One batch, shown again and again, is learned by heart."""
    training = study.Training(task, kind, 0, 3e-3, 1000, study.SHORT._replace(texts=1, batch=2), "cpu")
    losses = []
    for _ in range(60):
        training.generator.manual_seed(0)
        losses += training.go_on()
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize(
    ("scores", "rate"),
    [({0.001: 0.4, 0.003: 0.3}, 0.001), ({0.001: 0.2, 0.003: 0.3}, 0.003), ({0.001: 0.08, 0.003: 0.05}, 0.003)],
)
def test_best_rate(scores, rate):
    """Guessing is 1/16; with 320 texts, two standard errors above it are 0.0896."""
    assert study.best_rate(scores, 320) == rate


def test_short_run(monkeypatch, tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(study, "KINDS", {kind: study.KINDS[kind] for kind in ("none", "averages")})
    monkeypatch.setattr(sys, "argv", ["long_study", "--short", "--resume", str(path)])
    assert study.main() == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(lines[0]["seconds_of_a_step"]["passage"]) == {"none", "averages"}
    assert len(lines) == 1 + 2 * 2 * 3  # tasks, kinds, two runs to tune and one to score
    assert study.main() == 0  # nothing is repeated
    assert len(path.read_text().splitlines()) == len(lines)
    assert "after 4 steps" in capsys.readouterr().out


def test_record_is_complete():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    meta, rows = record["meta"], record["rows"]
    wanted = {(task, kind, seed) for task in ("package", "passage") for kind in study.KINDS for seed in range(3)}
    assert {(row["task"], row["kind"], row["seed"]) for row in rows} == wanted
    for row in rows:
        step = statistics.median(meta["seconds_of_a_step"][row["task"]][row["kind"]])
        assert row["steps"] == round(meta["budget_seconds"] / step) == row["curve"][-1][0], row
        assert (
            len({other["rate"] for other in rows if (other["task"], other["kind"]) == (row["task"], row["kind"])}) == 1
        )
    assert set(meta["peak_bytes_of_a_step"]) == set(study.KINDS)
    tuned = {}
    for run in meta["tuning"]:
        tuned.setdefault((run["task"], run["kind"]), {})[run["rate"]] = run["score"]
    for row in rows:
        assert row["rate"] == study.best_rate(tuned[row["task"], row["kind"]], 320), row
