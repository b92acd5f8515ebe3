"""The record of the Linformer measurement, its short form, and what a file of a reader's card must
hold.
"""

import itertools
import json
import math

import pytest

from lowrank_tutor.roofline import gpu_floor
from measure import harness
from measure.harness import DATA
from measure.speed import gpu_file, linformer
from measure.speed.linformer_methods import FUSED, MODES

OURS = "lowrank_tutor E = F"


def test_record_is_complete():
    """With every length of ours comes its rival, of the same run."""
    meta, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
    for each in (meta, meta["encoders"]):
        assert each["command"].startswith("python -m measure.speed.linformer")
        assert all(each[name] for name in ("date", "machine", "versions"))
    places = {}
    for row in rows:
        assert 0 < row["time_min"] <= row["time_q1"] <= row["time_median"] <= row["time_q3"], row
        assert row["peak_bytes"] > 0
        places.setdefault((row["series"], row["mode"], row["n"]), set()).add(row["method"])
    assert all({FUSED, OURS} <= names for names in places.values())
    assert {place[:2] for place in places} == set(
        itertools.product(("module", "encoder layer"), MODES)
    )
    assert {n for series, mode, n in places if mode == "forward"} == set(linformer.CPU_LENGTHS)


@pytest.mark.parametrize("series", ["core", "module", "encoder layer"])
@pytest.mark.parametrize("mode", MODES)
def test_measures_everything(series, mode):
    group = linformer.Group(series, mode, "float32", 2, 64, (32,))
    plan = linformer.Plan([group], repeats=2, limit=1, seconds=60)
    rows = linformer.carry_out("", plan, linformer.torch.device("cpu"), linformer.wall_clock, {})[1]
    assert len(rows) == 2
    assert all(row["runs"] == 2 and row["time_min"] > 0 for row in rows)


def test_memory_in_record():
    """Ours stays within a fifth of its tokens, parameters, result, and three buffers of k."""
    _, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
    for row in rows:
        if (row["series"], row["mode"], row["method"]) == ("module", "forward", OURS):
            n, k = row["n"], row["k"]
            needed = 4 * (2 * n * 512 + 4 * 512**2 + 512 + k * n + 3 * k * 512)
            assert needed <= row["peak_bytes"] <= 1.2 * needed, row


FLOOR = gpu_floor(4096, 64, 8, "T4", k=256).seconds
CARD = {
    "name": "Tesla T4",
    "memory_bytes": 15_800_000_000,
    "capability": "7.5",
    "driver": None,
    "cuda": "12.8",
}
META = {
    "command": "python -m measure.speed.linformer",
    "date": "2026-11-22",
    "dim": 512,
    "heads": 8,
    "gpu": CARD,
}
ROW = {"series": "core", "mode": "forward", "dtype": "float16", "batch": 1, "n": 4096, "k": 256}
ROW |= {"method": "linformer_attention", "time_min": 2 * FLOOR, "time_q1": 2.1 * FLOOR}
ROW |= {"time_median": 2.2 * FLOOR, "time_q3": 3 * FLOOR}


@pytest.mark.parametrize(
    ("meta", "row", "message"),
    [
        ({}, {}, None),
        ({"date": None}, {}, "meta must say date"),
        (
            {"gpu": {"name": "Tesla T4"}},
            {},
            "meta must say gpu.memory_bytes, gpu.capability, gpu.driver, gpu.cuda",
        ),
        ({}, None, "rows must hold a measurement, got none"),
        ({}, {"time_min": 0.9 * FLOOR}, "time_min must be at least the floor"),
        ({}, {"time_min": -1.0}, "times must be positive and in order"),
        ({}, {"time_q3": math.nan}, "times must be positive and in order"),
        ({}, {"time_median": 1e9}, "times must be positive and in order"),
    ],
)
def test_shared_record_is_possible(meta, row, message):
    record = {
        "meta": {**META, "versions": {"torch": "2.13.0"}, **meta},
        "rows": [] if row is None else [ROW | row],
    }
    if message is None:
        gpu_file.check(record)
    else:
        with pytest.raises(ValueError, match=message):
            gpu_file.check(record)


def test_share_writes_file(monkeypatch, tmp_path):
    """A stand-in for a card: what is measured becomes a file that passes the check above."""
    plan = linformer.cuda_plan(["float32"], lengths=(64,), ks=(32,), many=128)
    plan = plan._replace(groups=[group._replace(ks=(32,)) for group in plan.groups], repeats=2)
    monkeypatch.setattr(harness, "DATA", tmp_path)
    monkeypatch.setattr(linformer, "cuda_plan", lambda dtypes: plan)
    monkeypatch.setattr(linformer, "card", lambda device: CARD)
    monkeypatch.setattr(linformer, "CudaClock", lambda device: harness.wall_clock)
    linformer.on_gpu(linformer.torch.device("cpu"), share=True)
    record = json.loads((tmp_path / "gpu" / "tesla-t4.json").read_text(encoding="utf-8"))
    gpu_file.check(record)
    assert {(row["series"], row["batch"]) for row in record["rows"]} == set(
        itertools.product(("core", "module", "encoder layer"), (1, 2))
    )


def test_shared_files():
    for path in (DATA / "gpu").glob("*.json"):
        gpu_file.check(json.loads(path.read_text(encoding="utf-8")))
