"""The storyteller's new rule: its lesson, its record, and a short run."""

import json
import sys

import numpy as np

from lowrank_tutor import storyteller
from measure.harness import DATA
from measure.training import storyteller_lora as study


def test_fib_by_hand():
    words = "<s> Ada has jam . Ben wears red . Ben wears red . who has jam ? Ada .".split()
    jobs = [""] * len(words)
    jobs[11], jobs[17] = "far fact", "who"
    told = study.fib(storyteller.Story(tuple(words), tuple(jobs)), np.random.default_rng(0))
    assert (
        " ".join(told.words)
        == "<s> Ben has jam . Ada wears red . Ada wears blue . who has jam ? Ben ."
    )
    assert told.jobs[11] == study.RULE
    assert told.jobs[17] == "who"
    assert {study.OTHER[study.OTHER[color]] == color for color in study.COLORS} == {True}


def test_graded():
    told = study.stories(20, np.random.default_rng(1))
    shares = study.graded(storyteller.load(), told)
    assert shares["rule"] == 0
    assert shares["jobs"] == shares["others"] == 1


def test_record():
    meta, rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8")).values()
    plain = [row for row in rows if row["method"] == "alpha = r"]
    assert {(row["way"], row["rank"], row["seed"]) for row in plain} == {
        (way, rank, seed)
        for way in study.WAYS
        for rank in study.RANKS
        for seed in range(study.SEEDS)
    }
    assert meta["steps"] == study.STEPS
    ends = {
        way: [row["curve"][-1] for row in plain if row["way"] == way and row["rank"] == 1]
        for way in study.WAYS
    }
    assert min(end["rule"] for end in ends["with old jobs"]) > 0.8
    assert min(end["others"] for end in ends["with old jobs"]) > 0.9
    assert max(row["curve"][-1]["others"] for row in plain if row["way"] == "rule alone") < 0.5
    lost = [np.mean([row["curve"][-1]["jobs"] for row in plain if (row["way"], row["rank"]) == ("rule alone", rank)])
            for rank in study.RANKS]  # fmt: skip
    assert 0.6 < lost[0] < 0.7
    assert 0.05 < lost[2] < 0.15


def test_relatives():
    """Each relative has all rates with seed 0, and all seeds at the rate of the least loss."""
    rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["rows"]
    for method in ("LoRA", "rsLoRA", "PiSSA", "DoRA"):
        for rank in study.COMPARED[method == "rsLoRA" :]:
            runs = {
                (row["rate"], row["seed"]): row
                for row in rows
                if (row["method"], row["rank"]) == (method, rank)
            }
            best = min(study.RATES, key=lambda rate: runs[rate, 0]["loss"])
            assert {*runs} == {(rate, 0) for rate in study.RATES} | {
                (best, seed) for seed in range(study.SEEDS)
            }


def test_short_run(monkeypatch, capsys):
    monkeypatch.setattr(study, "RANKS", (2,))
    monkeypatch.setattr(study, "SEEDS", 1)
    monkeypatch.setattr(study, "COMPARED", (1, 2))
    monkeypatch.setattr(study, "RATES", (1e-2,))
    monkeypatch.setattr(sys, "argv", ["storyteller_lora", "--short"])
    assert study.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" 0.01 ")[0] for line in lines] == [
        "with old jobs 2 0 alpha = r", "rule alone 2 0 alpha = r", "with old jobs 1 0 LoRA", "with old jobs 2 0 LoRA",
        "with old jobs 2 0 rsLoRA", "with old jobs 1 0 PiSSA", "with old jobs 2 0 PiSSA", "with old jobs 1 0 DoRA",
        "with old jobs 2 0 DoRA",
    ]  # fmt: skip
