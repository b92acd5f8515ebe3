"""What readers measured on their own cards: each file must say where it comes from, and be possible."""

import copy
import json

import pytest
import torch

from benchmarks import harness, linformer, shared
from benchmarks.linformer import Bench, Plan
from benchmarks.linformer_methods import Group
from lowrank_tutor.attention import gpu_floor

FILES = sorted((harness.DATA / "gpu").glob("*.json"))
CARD = {"name": "Tesla T4", "memory_bytes": 15_800_000_000, "capability": "7.5", "driver": None, "cuda": "12.8"}


@pytest.fixture
def record():
    """What a T4 might have measured: twice its floor."""
    floor = gpu_floor(4096, 64, 8, "T4", k=256).seconds
    times = {"time_min": 2 * floor, "time_q1": 2.1 * floor, "time_median": 2.2 * floor, "time_q3": 3 * floor}
    row = {"series": "core", "mode": "forward", "dtype": "float16", "batch": 1, "n": 4096, "k": 256, "runs": 20}
    row |= {"method": "linformer_attention", "peak_bytes": 50_000_000, **times}
    meta = {"command": "python -m benchmarks.linformer --device cuda --share", "date": "2026-11-22", "dim": 512}
    return {"meta": {**meta, "heads": 8, "gpu": CARD, "versions": {"torch": "2.13.0"}}, "rows": [row]}


def test_every_file_that_is_there_is_complete_and_possible():
    for path in FILES:
        shared.check(json.loads(path.read_text(encoding="utf-8")))


def test_a_complete_record_passes(record):
    shared.check(record)


@pytest.mark.parametrize("name", [*shared.PROVENANCE, *(f"gpu.{name}" for name in shared.CARD)])
def test_a_record_without_its_provenance_is_refused(name, record):
    record = copy.deepcopy(record)
    outer, _, inner = name.partition(".")
    del (record["meta"]["gpu"] if inner else record["meta"])[inner or outer]
    with pytest.raises(ValueError, match=name):
        shared.check(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_min": 0.9 * gpu_floor(4096, 64, 8, "T4", k=256).seconds}, "time_min must be at least the floor of T4"),
        ({"time_min": -1.0}, "times must be positive and in order"),
        ({"time_q3": float("nan")}, "times must be positive and in order"),
        ({"time_median": 1e9}, "times must be positive and in order"),
        ({"peak_bytes": 16_000_000_000}, "peak_bytes must fit into the card, got 16000000000"),
    ],
)
def test_numbers_that_cannot_be_are_refused(change, message, record):
    record["rows"][0] |= change
    with pytest.raises(ValueError, match=message):
        shared.check(record)


def test_only_what_the_floor_describes_is_held_against_it(record):
    (row,) = record["rows"]
    row |= {"time_min": 1e-9}
    for change in ({"series": "module"}, {"dtype": "float32"}):
        shared.check({**record, "rows": [row | change]})
    other = {**record["meta"], "gpu": CARD | {"name": "GeForce GT 1030"}}  # no peaks of it are published here
    shared.check({**record, "meta": other})


def test_no_rows_and_rows_with_holes_are_refused(record):
    with pytest.raises(ValueError, match="rows must hold at least one measurement, got none"):
        shared.check({**record, "rows": []})
    del record["rows"][0]["runs"]
    with pytest.raises(ValueError, match="linformer_attention at n = 4096 must say runs"):
        shared.check(record)


def test_the_command_writes_one_small_file_named_after_the_card(tmp_path, monkeypatch):
    tiny = Bench(torch.device("cpu"), dim=16, heads=2)  # the card is played
    plan = Plan([Group("core", "forward", "float32", 1, 16, (8,))], 2, limit=1, seconds=3600)
    monkeypatch.setattr(shared, "DATA", tmp_path)
    monkeypatch.setattr(linformer, "set_up", lambda _device: (tiny, ["float32"], {"gpu": CARD}))
    monkeypatch.setattr(linformer, "cuda_plan", lambda _dtypes: plan)
    monkeypatch.setattr(linformer, "report", lambda _rows: None)
    assert linformer.main(["--device", "cuda", "--share"]) == 0
    (path,) = tmp_path.rglob("*.json")
    assert path == tmp_path / "gpu" / "tesla-t4.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    shared.check(written)
    assert {row["method"] for row in written["rows"]} >= {"linformer_attention", "exact, fused"}
    assert written["meta"]["command"].endswith("--share")
    assert str(tmp_path) not in path.read_text(encoding="utf-8")


def test_only_a_gpu_is_shared(capsys):
    with pytest.raises(SystemExit):
        linformer.main(["--device", "cpu", "--share"])
    assert "add --device cuda" in capsys.readouterr().err
