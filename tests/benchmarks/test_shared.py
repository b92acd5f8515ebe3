"""What readers measured on their own cards: each file must say where it comes from, and be possible."""

import json

import pytest

from benchmarks import harness, shared
from lowrank_tutor.roofline import gpu_floor

FILES = sorted((harness.DATA / "gpu").glob("*.json"))
CARD = {"name": "Tesla T4", "memory_bytes": 15_800_000_000, "capability": "7.5", "driver": None, "cuda": "12.8"}
FLOOR = gpu_floor(4096, 64, 8, "T4", k=256).seconds


@pytest.fixture
def record():
    """What a T4 might have measured: twice its floor."""
    times = {"time_min": 2 * FLOOR, "time_q1": 2.1 * FLOOR, "time_median": 2.2 * FLOOR, "time_q3": 3 * FLOOR}
    row = {"series": "core", "mode": "forward", "dtype": "float16", "batch": 1, "n": 4096, "k": 256, "runs": 20}
    row |= {"method": "linformer_attention", "peak_bytes": 50_000_000, **times}
    meta = {"command": "python -m benchmarks.linformer --device cuda --share", "date": "2026-11-22", "dim": 512}
    return {"meta": {**meta, "heads": 8, "gpu": {**CARD}, "versions": {"torch": "2.13.0"}}, "rows": [row]}


def test_files_are_possible():
    for path in FILES:
        shared.check(json.loads(path.read_text(encoding="utf-8")))


REFUSED = [
    *((lambda one, name=name: one["meta"].pop(name), name) for name in shared.PROVENANCE),
    *((lambda one, name=name: one["meta"]["gpu"].pop(name), f"gpu.{name}") for name in shared.CARD),
    (lambda one: one["rows"].clear(), "rows must hold at least one measurement, got none"),
    (lambda one: one["rows"][0].pop("runs"), "linformer_attention at n = 4096 must say runs"),
    (lambda one: one["rows"][0].update(time_min=0.9 * FLOOR), "time_min must be at least the floor of T4"),
    (lambda one: one["rows"][0].update(time_min=-1.0), "times must be positive and in order"),
    (lambda one: one["rows"][0].update(time_q3=float("nan")), "times must be positive and in order"),
    (lambda one: one["rows"][0].update(time_median=1e9), "times must be positive and in order"),
    (lambda one: one["rows"][0].update(peak_bytes=16_000_000_000), "peak_bytes must fit into the card"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_bad_record_is_refused(change, message, record):
    shared.check(record)
    change(record)
    with pytest.raises(ValueError, match=message):
        shared.check(record)
