"""The storyteller's other designs: their record, their blanks, and that each of them trains."""

import json
import sys

import numpy as np
import pytest
import torch

from lowrank_tutor import storyteller
from measure.harness import DATA
from measure.training import storyteller_designs as study


def test_record_is_complete():
    meta, rows = json.loads((DATA / f"{study.NAME}.json").read_text(encoding="utf-8")).values()
    assert {"command", "date", "machine", "versions", "steps", "fill_steps", "held_out"} <= set(
        meta
    )
    last = {"write": study.STEPS, "fill": study.FILL_STEPS}
    runs = {}
    for row in rows:
        if row["task"] in last and row["facts"] == 8:
            runs.setdefault((row["task"], row["design"], row["seed"]), []).append(row["step"])
    assert {run[1] for run in runs if run[::2] == ("write", 0)} == set(study.DESIGNS)
    assert {run[1] for run in runs if run[::2] == ("fill", 0)} == set(study.FILLS)
    for run, steps in runs.items():
        assert steps == list(range(study.EVERY, last[run[0]] + 1, study.EVERY)), run
    tales = sum(run[0] == "write" for run in runs) * len(study.TALE)
    assert sum(row["task"] == "tale" for row in rows) == tales
    assert sum(row["task"] == "groups" for row in rows) == len(study.GROUPED)


def test_blanks():
    """Every tested word is blank but, of a tune, one; the rest stands as it was."""
    told = storyteller.stories(20, rng=1)
    ids, real, answers = study.blanked(told, np.random.default_rng(0))
    for i, (words, jobs) in enumerate(told):
        numbers, blank = storyteller.encode(words), (answers[i] >= 0).nonzero().flatten().tolist()
        assert {jobs[j] for j in blank} == set(jobs) - {""}
        assert sum(jobs[j] == "copy" for j in blank) == ("copy" in jobs)
        assert answers[i, blank].tolist() == [numbers[j] for j in blank]
        kept = [j for j in range(len(words)) if j not in blank]
        assert ids[i, kept].tolist() == [numbers[j] for j in kept]
        assert int(real[i].sum()) == len(words)


@pytest.mark.parametrize("design", ["attention", "window"])
def test_padding_hides(design):
    """What stands behind a story changes nothing."""
    torch.manual_seed(0)
    reader, (story,) = study.Reader(design).eval(), storyteller.stories(1, facts=2, rng=3)
    ids, real, _ = study.blanked([story], np.random.default_rng(0))
    longer = torch.cat([ids, torch.full((1, 9), 7)], dim=1)
    with torch.no_grad():
        alone, padded = reader(ids, real), reader(longer, torch.nn.functional.pad(real, (0, 9)))
    torch.testing.assert_close(padded[:, : ids.shape[1]], alone, atol=1e-4, rtol=1e-4)


def test_short_run(monkeypatch, capsys):
    monkeypatch.setattr(study, "STORIES", 2)
    monkeypatch.setattr(study, "write", lambda *_: pytest.fail("a short run writes nothing"))
    monkeypatch.setattr(
        sys, "argv", ["storyteller_designs", "--short", "--only", "delta", "averages"]
    )
    study.main()
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["write", "delta"],
        ["fill", "averages"],
    ]
