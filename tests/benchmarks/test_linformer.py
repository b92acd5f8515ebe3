"""The benchmark of Linformer: what it counts, what it records, and what it concludes. Nothing here is timed."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import harness, linformer, linformer_methods
from benchmarks.adapters_linformer import Ours, Size
from benchmarks.linformer import Bench, Plan
from benchmarks.linformer_findings import K, cpu_bars, crossover, crossovers, cuda_bars, flops_crossover
from benchmarks.linformer_methods import (
    CORE,
    DIM,
    FUSED,
    OURS,
    OURS_APART,
    OWN_PRODUCT,
    SQUARE_PRODUCT,
    Group,
    methods,
)
from benchmarks.memory import peak_bytes
from benchmarks.promises_linformer import draw_weights, judge, tokens
from lowrank_tutor.linformer import linformer_cost

CPU = torch.device("cpu")
RECORDS = sorted((Path(__file__).parents[2] / "lowrank_tutor" / "data").glob("linformer_c[pu]*.json"))
KEYS = {"series", "mode", "dtype", "batch", "n", "k", "method", "runs"}
KEYS |= {"time_min", "time_q1", "time_median", "time_q3", "flops", "held_bytes", "peak_bytes", "floor", "share"}
TINY = {"dim": 16, "heads": 2}


@pytest.fixture(autouse=True, scope="module")
def small_product():
    """A small product where the benchmark takes a large one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linformer_methods, "SQUARE", 32)
        yield


def built(series, mode="forward", **more):
    return {one.name: one for one in methods(Group(series, mode, "float32", 2, 32, (8,))._replace(**more), CPU, **TINY)}


# ---------------------------------------------------------------------------------------------- what is run, and costs


@pytest.mark.parametrize("series", ["module", "core", "crossover"])
def test_formulas_count_as_pytorch(series):
    for mode, times in (("forward", 1), ("forward+backward", 3)):
        for name, one in built(series, mode, peer_ks=(8,)).items():
            if times == 3 and name in (OWN_PRODUCT, SQUARE_PRODUCT):
                continue
            with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
                one.run(0)
            assert counter.get_total_flops() == one.flops, (name, mode)
            assert one.flops == times * built(series, peer_ks=(8,))[name].flops, (name, mode)


def test_bytes_by_hand():
    module, core = built("module", n=16), built("core", n=16, dtype="bfloat16")
    x, parameters = 4 * 2 * 16 * 16, 4 * (4 * 16**2 + 16)
    assert module[FUSED].held_bytes == x + parameters
    assert module[OURS].held_bytes == x + parameters + 4 * 8 * 16
    assert module[OURS_APART].held_bytes == x + parameters + 2 * 4 * 8 * 16
    assert module[OURS].moved_bytes == module[OURS].held_bytes + x
    n, d, k = 2 * 16, 16, 8  # 8nd + 2nk + 8kd for the attention alone, the middle one not for each sequence
    assert core[CORE].moved_bytes == 8 * n * d + 2 * 16 * k + 2 * 8 * k * d
    assert core[FUSED].moved_bytes == 8 * n * d


def test_peak_by_hand():
    x, w = torch.zeros(1000), torch.zeros(1000, requires_grad=True)
    for function, peak in (
        (lambda: (torch.zeros(1000), torch.zeros(600)), 6400),
        (lambda: torch.zeros(1000, dtype=torch.bfloat16), 2000),
        (lambda: x.add_(1), 0),
        (lambda: x.view(10, 100)[2:].T, 0),
        (lambda: (x + 1) * 2 + 3, 8000),
        (lambda: (x + 1) @ (x + 2), 8004),
        (lambda: w.exp().sin().cos(), 12000),  # autograd keeps what each was given
    ):
        assert peak_bytes(function, CPU) == peak


def test_exact_ways_match_judge():
    size = Size(32, 4, 24, 8)
    weights, x = draw_weights(size), tokens(size)
    for attend in (
        scaled_dot_product_attention,
        linformer_methods.written_out,
        linformer_methods.by_backend(SDPBackend.MATH),
    ):
        layer = linformer_methods.Exact(attend, size.dim, size.heads)
        Ours().put(layer, weights)
        torch.testing.assert_close(layer(x).double(), judge(x, weights, size.heads), rtol=1e-5, atol=1e-5)
    core = built("core")
    torch.testing.assert_close(core[CORE].run(0), core["linformer, written out"].run(0))


# -------------------------------------------------------------------------------------------------------- the command


def test_command_writes_record(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    monkeypatch.setattr(linformer, "set_up", lambda device: (Bench(device, **TINY), ["float32"], {"threads": 1}))
    groups = [Group("module", "forward", "float32", 1, n, (8, 16), (8,)) for n in (16, 32)]
    groups.append(Group("core", "forward+backward", "float32", 1, 16, (8,)))
    plan = Plan(groups, repeats=2, limit=1, seconds=3600)
    monkeypatch.setattr(linformer, "cpu_plan", lambda: plan)
    monkeypatch.setattr(linformer, "short_plan", lambda *_: plan._replace(groups=groups[:1]))
    assert linformer.main(["--short"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert linformer.main([]) == 1, "bars fail: nothing was measured at their lengths"
    meta, rows = json.loads((tmp_path / "linformer_cpu.json").read_text(encoding="utf-8")).values()
    assert {"command", "date", "machine", "versions", "definitions", "bars", "crossovers"} < set(meta)
    assert meta["failures"] == []
    for row in rows:
        assert set(row) == KEYS
        assert row["runs"] == 2
        assert 0 < row["time_min"] <= row["time_q1"] <= row["time_median"] <= row["time_q3"]
        assert row["peak_bytes"] > row["held_bytes"] > 0
        assert (row["share"] is None) == (row["series"] == "core")
    (own,) = [row for row in rows if (row["method"], row["n"]) == (OWN_PRODUCT, 32)]
    for row in rows:
        if row["n"] == 32:
            share = row["flops"] / row["time_min"] / (own["flops"] / own["time_min"])
            assert row["share"] == pytest.approx(share, rel=0.01)


# --------------------------------------------------------------------------------------------- what follows from rows


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
        ({256: 1.0, 1024: 2.0}, 256),
        ({256: 0.5, 1024: 0.9}, None),
        ({256: 2.0, 1024: 1.0}, None),
        ({}, None),
    ],
)
def test_crossover(points, wanted):
    assert crossover(crossing(points), OURS, K) == (wanted and pytest.approx(wanted))


def test_crossover_by_operations():
    for k, method, sharing, wanted in (
        (128, OURS, "key-value", 142),
        (128, OURS_APART, "headwise", 159),
        (256, OURS, "key-value", 304),
        (256, OURS_APART, "headwise", 363),
    ):
        n = math.floor(flops_crossover(k, method)) + 1
        before, at = (linformer_cost(i, DIM, 8, k, sharing=sharing).flops for i in (n - 1, n))
        assert n == wanted
        assert before >= 8 * (n - 1) * DIM**2 + 4 * (n - 1) ** 2 * DIM
        assert at <= 8 * n * DIM**2 + 4 * n**2 * DIM


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_record_concludes(path):
    meta, rows = json.loads(path.read_text(encoding="utf-8")).values()
    bars = cpu_bars if path.stem == "linformer_cpu" else cuda_bars
    assert meta["bars"] == bars(rows)
    assert meta["crossovers"] == crossovers(rows)
    assert all(set(row) == KEYS for row in rows)
    slow = {"time_min": 1e9, "share": 0.0, "peak_bytes": 2**50}
    worse = [row | slow if row["method"] in (OURS, OURS_APART, CORE) else row for row in rows]
    assert not any(bar["holds"] for bar in bars(worse))
