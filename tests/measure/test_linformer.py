"""The records of the Linformer measurement: what is concluded from their rows, and what a reader's own must hold."""

import itertools
import json
import math

import pytest

from lowrank_tutor.linformer import linformer_cost
from lowrank_tutor.roofline import gpu_floor
from measure.harness import DATA
from measure.speed import gpu_file
from measure.speed.linformer_findings import (
    FUSED,
    OURS,
    OURS_APART,
    K,
    cpu_bars,
    crossover,
    crossovers,
    flops_crossover,
)
from measure.speed.linformer_methods import DIM, ENCODERS, MODES


def crossing(points):
    """Rows in which exact attention takes the given multiple of our time at each length."""
    same = {"mode": "forward", "dtype": "float32", "batch": 1}
    series = {n: "crossover" if n < 512 else "module" for n in points}
    ours = [{**same, "series": series[n], "n": n, "k": K, "method": OURS, "time_min": 1.0} for n in points]
    return ours + [{**row, "k": None, "method": FUSED, "time_min": points[row["n"]]} for row in ours]


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        ({256: 0.5, 1024: 2.0}, 512),
        ({128: 1.1, 256: 0.5, 1024: 2.0, 2048: 3.0}, 512),
        ({256: 1.5, 1024: 2.0}, 256),
        ({256: 0.5, 1024: 0.9}, None),
        ({256: 2.0, 1024: 1.0}, None),
        ({}, None),
    ],
)
def test_crossover(points, wanted):
    assert crossover(crossing(points), OURS, K) == (wanted and pytest.approx(wanted))


@pytest.mark.parametrize(
    ("k", "method", "sharing", "wanted"),
    [
        (128, OURS, "key-value", 142),
        (128, OURS_APART, "headwise", 159),
        (256, OURS, "key-value", 304),
        (256, OURS_APART, "headwise", 363),
    ],
)
def test_crossover_by_operations(k, method, sharing, wanted):
    n = math.floor(flops_crossover(k, method)) + 1
    before, at = (linformer_cost(i, DIM, 8, k, sharing=sharing).flops for i in (n - 1, n))
    assert n == wanted
    assert before >= 8 * (n - 1) * DIM**2 + 4 * (n - 1) ** 2 * DIM
    assert at <= 8 * n * DIM**2 + 4 * n**2 * DIM


def test_record_concludes():
    meta, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
    assert meta["bars"] == cpu_bars(rows)
    assert meta["crossovers"] == crossovers(rows)
    slow = {"time_min": 1e9, "share": 0.0, "peak_bytes": 2**50}
    worse = [row | slow if row["method"] in (OURS, OURS_APART) else row for row in rows]
    assert not any(bar["holds"] for bar in cpu_bars(worse))


def test_encoders_in_record():
    """Both halves of each layer are counted, and with every length comes the rival."""
    meta, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
    assert meta["encoders"]["failures"] == []
    found = {}
    for row in (row for row in rows if row["series"] in ENCODERS):
        n, k, times = row["n"], row["k"], ENCODERS[row["series"]] * (3 if row["mode"] == "forward+backward" else 1)
        alone = 8 * n * DIM**2 + 4 * n**2 * DIM if k is None else 4 * n * DIM**2 + 6 * n * k * DIM + 4 * k * DIM**2
        assert row["flops"] == times * (alone + 16 * n * DIM**2)
        found.setdefault((row["series"], row["mode"], n), []).append(row["method"])
    assert {(series, mode) for series, mode, _ in found} == set(itertools.product(ENCODERS, MODES))
    assert all(sorted(methods) == sorted((FUSED, OURS)) for methods in found.values())


FLOOR = gpu_floor(4096, 64, 8, "T4", k=256).seconds
CARD = {"name": "Tesla T4", "memory_bytes": 15_800_000_000, "capability": "7.5", "driver": None, "cuda": "12.8"}
META = {"command": "python -m measure.speed.linformer", "date": "2026-11-22", "dim": 512, "heads": 8, "gpu": CARD}
ROW = {"series": "core", "mode": "forward", "dtype": "float16", "batch": 1, "n": 4096, "k": 256}
ROW |= {"method": "linformer_attention", "time_min": 2 * FLOOR, "time_q1": 2.1 * FLOOR}
ROW |= {"time_median": 2.2 * FLOOR, "time_q3": 3 * FLOOR}


@pytest.mark.parametrize(
    ("meta", "row", "message"),
    [
        ({}, {}, None),
        ({"date": None}, {}, "meta must say date"),
        ({"gpu": {"name": "Tesla T4"}}, {}, "meta must say gpu.memory_bytes, gpu.capability, gpu.driver, gpu.cuda"),
        ({}, None, "rows must hold a measurement, got none"),
        ({}, {"time_min": 0.9 * FLOOR}, "time_min must be at least the floor"),
        ({}, {"time_min": -1.0}, "times must be positive and in order"),
        ({}, {"time_q3": math.nan}, "times must be positive and in order"),
        ({}, {"time_median": 1e9}, "times must be positive and in order"),
    ],
)
def test_shared_record_is_possible(meta, row, message):
    record = {"meta": {**META, "versions": {"torch": "2.13.0"}, **meta}, "rows": [] if row is None else [ROW | row]}
    if message is None:
        gpu_file.check(record)
    else:
        with pytest.raises(ValueError, match=message):
            gpu_file.check(record)


def test_shared_files():
    for path in (DATA / "gpu").glob("*.json"):
        gpu_file.check(json.loads(path.read_text(encoding="utf-8")))
