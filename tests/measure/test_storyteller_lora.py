"""The storyteller's new rule: its lesson, and its record."""

import json

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
    ends = {study.Run(*(row[name] for name in study.Run._fields)): row["curve"][-1] for row in rows}
    assert {*study.strengths()} == {run for run in ends if run.method in study.STRENGTHS}
    assert meta["steps"] == study.STEPS
    first = [
        ends[run] for run in ends if run[:2] == ("with old jobs", 1) and run.method == "alpha = 1"
    ]
    assert min(end["rule"] for end in first) > 0.8
    assert min(end["others"] for end in first) > 0.9

    def mean(method, rank, rate=study.RATE):
        runs = [study.Run("rule alone", rank, seed, method, rate) for seed in range(study.SEEDS)]
        return np.mean([ends[run]["jobs"] for run in runs])

    steps = [1 - mean("alpha = 1", rank) for rank in study.RANKS]
    assert [round(min(steps), 2), round(max(steps), 2)] == [0.41, 0.47]
    assert round(1 - mean("alpha = r", 4), 2) == 0.89
    assert round(1 - mean("alpha = 1", 1, rate=3 * study.RATE), 2) == 0.91


def test_relatives():
    """Each relative has all rates with seed 0, and the good ones with all seeds."""
    rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["rows"]
    for method in ("LoRA", "rsLoRA", "PiSSA", "DoRA"):
        for rank in study.COMPARED[method == "rsLoRA" :]:
            runs = {
                (row["rate"], row["seed"]): row
                for row in rows
                if (row["method"], row["rank"]) == (method, rank)
            }
            least = min(runs[rate, 0]["loss"] for rate in study.RATES)
            assert {*runs} == {(rate, 0) for rate in study.RATES} | {
                (rate, seed)
                for rate in study.RATES
                if runs[rate, 0]["loss"] < 4 / 3 * least
                for seed in range(study.SEEDS_COMPARED)
            }
