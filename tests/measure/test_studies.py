"""All studies: what their records hold, and that each program runs in short and writes nothing."""

import importlib
import json
import sys
from importlib.util import find_spec

import pytest

from lowrank_tutor import smollm
from measure.harness import DATA
from measure.training import converted_encoder, long_study, recall, storyteller_designs

PARTS = {f"job_{job}" for job in "agreement reference reason copy far_fact who most".split()}
# Of each record: what tells runs apart, the runs that must be there, and the other fields.
RECORDS = {
    "long_study": (
        ("task", "kind"),
        {(task, kind) for task in long_study.TASKS for kind in long_study.KINDS},
        {"seed", "rate", "validation", "test", "right"},
    ),
    "converted_encoder": (
        ("kind", "n"),
        {(kind, n) for kind in converted_encoder.KINDS for n in (256, 512)},
        {"seed", "steps", "recall_at_1"},
    ),
    "recall": (
        ("design",),
        {(design,) for design in recall.DESIGNS},
        {"rate", "seed", "steps", "validation", "test"},
    ),
    "storyteller_designs": (
        ("design", "step"),
        {
            (design, step)
            for design in storyteller_designs.DESIGNS
            for step in range(300, 1801, 300)
        },
        {"seed", "facts", "answered"},
    ),
}
PROGRAMS = {
    "real_model.__main__": 3,
    "training.converted_encoder": 23,
    "training.long_study": 28,
    "training.recall": 10,
    "training.storyteller_designs": 1,
    "training.storyteller_lora": 6,
}  # and the lines that each prints


@pytest.mark.parametrize("name", RECORDS)
def test_record(name):
    meta, rows = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8")).values()
    by, wanted, fields = RECORDS[name]
    assert {"command", "date", "machine", "versions"} <= set(meta)
    assert {tuple(row[part] for part in by) for row in rows} == wanted
    for row in rows:
        assert set(row) - PARTS == {*by, *fields}, row
    runs = [tuple(row.get(part) for part in (*by, "seed", "rate", "steps")) for row in rows]
    assert len(set(runs)) == len(runs)


@pytest.mark.parametrize("name", ["long_study", "recall"])
def test_rates_are_the_better(name):
    """Of both rates of seed 0 the better one, on the validation texts, trained further seeds."""
    _, rows = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8")).values()
    ended, further = {}, set()
    for row in rows:
        run = row.get("task"), row.get("kind", row.get("design"))
        if row["seed"]:
            further.add((*run, row["rate"]))
        else:
            score = row["validation"] if name == "long_study" else sum(row["validation"])
            ended.setdefault(run, []).append((score, row["rate"]))
    assert further == {(*run, max(rates)[1]) for run, rates in ended.items()}
    assert {len(rates) for rates in ended.values()} == {2}


@pytest.mark.parametrize("name", PROGRAMS)
def test_short_run(name, monkeypatch, tmp_path, capsys):
    if name.startswith("real") and find_spec(smollm.PACKAGE) is None:
        pytest.skip("the real model is not installed: make model")
    program = importlib.import_module(f"measure.{name}")
    monkeypatch.setattr(program, "write", lambda *_, **__: pytest.fail("it writes"))
    monkeypatch.setattr(sys, "argv", [name, "--short"])
    resumed = name in ("training.long_study", "training.recall")
    sys.argv += ["--resume", str(tmp_path / "runs.jsonl")] * resumed
    for _ in range(1 + resumed):  # what the file holds is not run again
        assert program.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == PROGRAMS[name]
