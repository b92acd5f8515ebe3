"""The benchmark of Linformer: what it counts, what it records, and what it concludes. Nothing here is timed."""

import itertools
import json
import math
import types
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import harness, linformer, linformer_findings, linformer_methods
from benchmarks.adapters_linformer import Ours, Size, split
from benchmarks.linformer import Bench, Plan
from benchmarks.linformer_findings import (
    CPU_LENGTHS,
    CUDA_LENGTHS,
    K,
    at_least,
    cpu_bars,
    crossover,
    crossovers,
    cuda_bars,
    fastest_exact,
    flops_crossover,
    largest_batches,
    memory_bar,
    pairs,
    ratios,
    shares,
    speedups,
    table,
)
from benchmarks.linformer_methods import (
    CORE,
    DIM,
    FUSED,
    LUCIDRAINS,
    NAIVE,
    OURS,
    OURS_APART,
    OWN_PRODUCT,
    SQUARE_PRODUCT,
    TATP22,
    Group,
    methods,
)
from benchmarks.memory import LiveBytes, peak_bytes
from benchmarks.promises_linformer import draw_weights, judge, tokens
from lowrank_tutor.attention import attention_bytes
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


# What is run, and what it costs


@pytest.mark.parametrize("series", ["module", "core", "crossover"])
def test_the_formulas_count_what_pytorch_counts(series):
    group = Group(series, "forward", "float32", 2, 32, (8, 16), (8, 16))
    built = methods(group, CPU, **TINY)
    for one in built:
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            one.run(0)
        assert counter.get_total_flops() == one.flops, one.name
    names = [one.name for one in built]
    assert len(set(zip(names, [one.k for one in built], strict=True))) == len(names)


@pytest.mark.parametrize("series", ["module", "core"])
def test_with_gradients_they_count_three_times_that(series):
    plain = Group(series, "forward", "float32", 1, 32, (8,), (8,))
    both = methods(plain._replace(mode="forward+backward"), CPU, **TINY)
    for one, with_gradients in zip(methods(plain, CPU, **TINY), both, strict=True):
        if one.name not in ("x @ W", "square product"):
            with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
                with_gradients.run(0)
            assert counter.get_total_flops() == with_gradients.flops == 3 * one.flops, one.name


def test_the_ratio_of_operations_at_1024_tokens_is_one_and_a_half_and_four_thirds():
    theirs = 8 * 1024 * DIM**2 + 8 * 1024 * K * DIM
    assert theirs / linformer_cost(1024, DIM, 8, K).flops == 3 / 2
    assert theirs / linformer_cost(1024, DIM, 8, K, sharing="headwise").flops == 4 / 3


def test_a_run_with_gradients_leaves_none_behind():
    group = Group("module", "forward+backward", "float32", 1, 16, (8,), (8,))
    ours = next(one for one in methods(group, CPU, **TINY) if one.name == OURS)
    first, second = peak_bytes(lambda: ours.run(0), CPU), peak_bytes(lambda: ours.run(1), CPU)
    assert first == second > 0


def test_held_and_moved_bytes_by_hand():
    group = Group("module", "forward", "float32", 2, 16, (8,))
    built = {one.name: one for one in methods(group, CPU, **TINY)}
    x, parameters = 4 * 2 * 16 * 16, 4 * (4 * 16**2 + 16)
    assert built[FUSED].held_bytes == x + parameters
    assert built[OURS].held_bytes == x + parameters + 4 * 8 * 16
    assert built[OURS_APART].held_bytes == x + parameters + 2 * 4 * 8 * 16
    assert built[OURS].moved_bytes == built[OURS].held_bytes + x
    core = {one.name: one for one in methods(group._replace(series="core", dtype="bfloat16"), CPU, **TINY)}
    n, d, k = (
        2 * 16,
        16,
        8,
    )  # the formula for the attention alone: 8nD + 2nk + 8kD, the middle one not for each sequence
    assert core[CORE].moved_bytes == 8 * n * d + 2 * 16 * k + 2 * 8 * k * d
    assert core[FUSED].moved_bytes == 8 * n * d


def test_both_ways_to_attend_exactly_agree_with_the_judge():
    size = Size(32, 4, 24, 8)
    weights, x = draw_weights(size), tokens(size)
    for attend in (torch.nn.functional.scaled_dot_product_attention, linformer_methods.written_out):
        layer = linformer_methods.Exact(attend, size.dim, size.heads)
        Ours().put(layer, weights)
        torch.testing.assert_close(layer(x).double(), judge(x, weights, size.heads), rtol=1e-5, atol=1e-5)
    q, k, v = (split(x, size.heads) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(linformer_methods.by_backend(SDPBackend.MATH)(q, k, v), wanted)


def test_what_is_alike_gives_alike_results():
    """The fused and the written-out function of the core, on the same tokens."""
    built = {one.name: one for one in methods(Group("core", "forward", "float32", 1, 32, (8,)), CPU, **TINY)}
    torch.testing.assert_close(built[CORE].run(0), built["linformer, written out"].run(0))


def test_a_backend_that_refuses_is_recorded_with_its_reason():
    q = torch.zeros(1, 1, 4, 4)
    attend = linformer_methods.by_backend(SDPBackend.CUDNN_ATTENTION)
    refusing = linformer_methods.Method("exact, CUDNN_ATTENTION", None, lambda _run: attend(q, q, q), 1, 1, 1)
    extra, error = linformer.first_run(refusing, CPU)
    assert extra == 0
    assert error.startswith("RuntimeError: No")

    def warn(_run):
        import warnings

        warnings.warn("too old a card (Triggered internally at somewhere)", UserWarning, stacklevel=1)
        raise RuntimeError("No available kernel.\nAborting.")

    error = linformer.first_run(linformer_methods.Method("x", None, warn, 1, 1, 1), CPU)[1]
    assert error == "RuntimeError: No available kernel.; too old a card"


def test_long_scores_are_not_written_out_on_a_cpu():
    short = Group("module", "forward", "float32", 1, 4096, ())
    assert set(linformer_methods.exact_ways(short, CPU, 8)) == {FUSED, NAIVE}
    assert set(linformer_methods.exact_ways(short._replace(n=4097), CPU, 8)) == {FUSED}
    assert set(linformer_methods.exact_ways(short._replace(series="core"), CPU, 8)) == {FUSED}


def test_on_a_gpu_every_backend_is_tried_and_scores_are_written_out_where_they_fit(monkeypatch):
    gpu = torch.device("cuda")
    group = Group("module", "forward", "bfloat16", 1, 1024, ())
    room = math.ceil(attention_bytes(1024, DIM // 8, 8, fused=False) / 0.8)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (room, 2 * room))
    assert set(linformer_methods.exact_ways(group, gpu, 8)) == {FUSED, NAIVE, *linformer_methods.BACKENDS}
    for larger in (group._replace(n=1025), group._replace(batch=2), group._replace(mode="forward+backward")):
        assert set(linformer_methods.exact_ways(larger, gpu, 8)) == {FUSED, *linformer_methods.BACKENDS} - {
            "exact, MATH"
        }


@pytest.mark.parametrize("series", ["module", "core"])
@pytest.mark.parametrize("mode", ["forward", "forward+backward"])
def test_what_a_group_needs_is_not_less_than_what_it_takes(series, mode):
    group = Group(series, mode, "float32", 2, 512, (64, 128), (128,))
    with LiveBytes() as memory:
        for method in methods(group, CPU, 64, 4):
            if method.name not in (*linformer_methods.WRITES_SCORES, OWN_PRODUCT, SQUARE_PRODUCT):
                method.run(0)
    assert memory.peak <= linformer_methods.bytes_needed(group, 64, 4) <= 12 * memory.peak


@pytest.mark.parametrize("free", [300e6, 2e9, 15e9])
def test_nothing_that_a_gpu_is_given_asks_for_more_than_is_free(free, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (int(free), 80 * 10**9))
    kept = []
    for group in linformer.cuda_plan(["float16", "float32"]).groups:
        fits = linformer_methods.fitting(group, torch.device("cuda"))
        if fits is not None:
            kept.append(fits)
            assert linformer_methods.bytes_needed(fits) <= 0.8 * free
            assert fits._replace(ks=group.ks) == group
            assert fits.ks == group.ks[: len(fits.ks)]
    singles = {group.n for group in kept if (group.batch, group.series, group.mode) == (1, "core", "forward")}
    assert {512, 1024, 2048} <= singles
    assert (65536 in singles) == (free > 1e9)
    size, copied = linformer.rate_sizes(free)
    assert 3 * size**2 * (2 + 4) + 2 * copied <= 0.8 * free
    assert linformer.rate_sizes(80e9) == (8192, 2**31)


def test_what_does_not_fit_is_said_to_be_left_out(monkeypatch, capsys):
    group = Group("core", "forward", "float32", 1, 32, (8, 16))
    for fits, left, rows_there in ((group._replace(ks=(8,)), "(16,)", True), (None, "all", False)):
        monkeypatch.setattr(linformer, "fitting", lambda *_, fits=fits: fits)
        rows, failures = linformer.run(tiny_plan([group]), Bench(CPU, **TINY))
        assert [failure["error"] for failure in failures] == [f"left out, as memory is short: k in {left}"]
        assert f"n = 32, batch 1, left out, as memory is short: k in {left}" in capsys.readouterr().out
        assert bool(rows) == rows_there


# What is recorded


def tiny_plan(groups, repeats=2, seconds=3600):
    return Plan(groups, repeats, limit=1, seconds=seconds)


@pytest.fixture(scope="module")
def cpu_rows():
    groups = [Group("module", "forward", "float32", 1, n, (8, 16), (8,)) for n in (16, 32)]
    groups += [Group("module", "forward+backward", "float32", 1, 16, (8,), (8,))]
    groups += [
        Group("crossover", "forward", "float32", 1, 8, (8, 16)),
        Group("core", "forward", "float32", 1, 16, (8,)),
    ]
    rows, failures = linformer.run(tiny_plan(groups), Bench(CPU, **TINY))
    assert failures == []
    return rows


def test_each_row_says_what_was_run_how_often_and_what_came_out(cpu_rows):
    for row in cpu_rows:
        assert set(row) == KEYS
        assert row["runs"] == 2
        assert 0 < row["time_min"] <= row["time_q1"] <= row["time_median"] <= row["time_q3"]
        assert row["peak_bytes"] > row["held_bytes"] > 0
        assert (row["share"] is None) == (row["floor"] is None) == (row["series"] == "core")
    assert json.loads(json.dumps(cpu_rows)) == cpu_rows


def test_every_method_has_its_row_at_every_length_and_k(cpu_rows):
    places = [tuple(row[name] for name in ("series", "mode", "n", "k", "method")) for row in cpu_rows]
    assert len(set(places)) == len(places)
    compressed = {
        OURS,
        OURS_APART,
        LUCIDRAINS,
        linformer_methods.LUCIDRAINS_SHARED,
        TATP22,
        linformer_methods.TATP22_APART,
    }
    wanted = {("module", "forward", n, 8, name) for n in (16, 32) for name in compressed}
    wanted |= {("module", "forward", n, 16, name) for n in (16, 32) for name in (OURS, OURS_APART)}
    wanted |= {("module", "forward", n, None, name) for n in (16, 32) for name in (FUSED, NAIVE)}
    wanted |= {("product", "forward", n, None, name) for n in (16, 32) for name in ("x @ W", "square product")}
    wanted |= {("crossover", "forward", 8, 8, OURS), ("crossover", "forward", 8, None, FUSED)}
    wanted |= {("core", "forward", 16, 8, CORE), ("core", "forward", 16, None, FUSED)}
    assert wanted <= set(places)
    assert ("crossover", "forward", 8, 16, OURS) not in places  # k is more than n
    assert ("crossover", "forward", 8, 8, LUCIDRAINS) not in places


def test_the_share_on_a_cpu_is_of_the_product_beside_it(cpu_rows):
    rows = [row for row in cpu_rows if (row["mode"], row["n"]) == ("forward", 32)]
    own = next(row for row in rows if row["method"] == "x @ W")
    assert own["share"] == 1
    for row in rows:
        share = row["flops"] / row["time_min"] / (own["flops"] / own["time_min"])
        assert row["share"] == pytest.approx(share, rel=0.01)


def test_the_grid_of_a_gpu_runs_on_a_cpu_with_tiny_sizes():
    plan = linformer.cuda_plan(["bfloat16", "float32"], lengths=(16, 32), ks=(8, 16), many=32)
    plan = plan._replace(repeats=1, groups=[group._replace(peer_ks=(8,)) for group in plan.groups])
    assert [(g.batch, g.n) for g in plan.groups[:4]] == [(2, 16), (1, 16), (1, 32), (2, 16)]
    assert all(k < group.n for group in plan.groups for k in group.ks)
    rates = {"bfloat16": 2e9, "float32": 1e9, "copy": 1e9}
    rows, failures = linformer.run(plan, Bench(CPU, rates=rates, **TINY))
    assert failures == []
    assert {row["dtype"] for row in rows} == {"bfloat16", "float32"}
    for row in rows:
        assert set(row) == KEYS
        assert row["floor"] == pytest.approx(row["share"] * row["time_min"], rel=0.01)
        assert row["floor"] >= float(f"{row['flops'] / rates[row['dtype']]:.4g}")
    core = next(row for row in rows if row["series"] == "core" and row["method"] == FUSED and row["n"] == 16)
    moved = 4 * core["batch"] * 16 * 16 * 2
    assert core["floor"] == pytest.approx(max(core["flops"] / 2e9, moved / 1e9), rel=1e-3)


def test_the_full_grids_are_those_promised():
    cpu = linformer.cpu_plan().groups
    forward = [group for group in cpu if (group.series, group.mode) == ("module", "forward")]
    assert [group.n for group in forward] == [512, 1024, 2048, 4096, 8192, 16384]
    assert all(group.ks == group.peer_ks == (128, 256) and group.batch == 1 for group in forward)
    cuda = linformer.cuda_plan(["bfloat16", "float32"]).groups
    assert {(group.n, k) for group in cuda for k in group.ks} == {
        (n, k) for n in CUDA_LENGTHS for k in (128, 256, 512, 1024, 2048) if k < n
    }
    modes = {(group.mode, group.dtype, group.n) for group in cuda if group.batch * group.n >= 65536}
    assert modes == set(itertools.product(linformer_methods.MODES, ("bfloat16", "float32"), CUDA_LENGTHS))
    assert {group.n for group in cuda if group.batch == 1} == set(CUDA_LENGTHS)
    for device in ("cpu", "cuda"):
        short = linformer.short_plan(torch.device(device), ["float16", "float32"])
        assert short.seconds < 120
        assert len(short.groups) < len(cpu if device == "cpu" else cuda)


def test_what_comes_after_the_time_is_left_out_and_recorded():
    group = Group("core", "forward", "float32", 1, 16, (8,))
    rows, failures = linformer.run(tiny_plan([group, group], seconds=-1), Bench(CPU, **TINY))
    assert rows == []
    assert [failure["error"] for failure in failures] == ["left out: -1 seconds were over"] * 2
    assert failures[0]["n"] == 16


def test_a_method_that_fails_is_recorded_and_the_others_go_on(monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(linformer_methods, "written_out", broken)
    rows, failures = linformer.run(tiny_plan([Group("module", "forward", "float32", 1, 16, (8,))]), Bench(CPU, **TINY))
    assert [(failure["method"], failure["error"]) for failure in failures] == [(NAIVE, "RuntimeError: out of luck")]
    assert {row["method"] for row in rows} == {OURS, OURS_APART, FUSED, "x @ W", "square product"}


def test_the_rates_of_a_card_are_measured_for_each_type():
    rates = linformer.card_rates(
        Bench(CPU, lambda function, run: (0.5, function(run))), ["float32", "bfloat16"], 8, 100
    )
    assert rates == {"float32": 2 * 8**3 / 0.5, "bfloat16": 2 * 8**3 / 0.5, "copy": 2 * 100 / 0.5}


def test_the_clock_of_a_gpu_counts_from_event_to_event(monkeypatch):
    log = []

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")

        def synchronize(self):
            log.append("wait")

        def elapsed_time(self, end):
            return 250.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    clock = linformer.CudaClock(CPU, flushed=8)
    assert clock(lambda run: log.append("run") or run, 7) == (0.25, 7)
    assert log == ["event", "run", "event", "wait"]


def test_a_card_is_described_without_a_driver_too(monkeypatch):
    properties = types.SimpleNamespace(name="card", total_memory=8, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setenv("PATH", "")
    found = linformer.card(torch.device("cuda"))
    assert (found["name"], found["capability"], found["driver"]) == ("card", "9.0", None)


def test_the_command_writes_what_it_found_and_says_by_its_status_that_bars_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    monkeypatch.setattr(linformer, "set_up", lambda device: (Bench(device, **TINY), ["float32"], {"threads": 1}))
    plan = tiny_plan([Group("module", "forward", "float32", 1, n, (8,), (8,)) for n in (16, 32)])
    monkeypatch.setattr(linformer, "cpu_plan", lambda: plan)
    assert linformer.main([]) == 1
    record = json.loads((tmp_path / "linformer_cpu.json").read_text(encoding="utf-8"))
    assert {set(row) == KEYS for row in record["rows"]} == {True}
    assert {"command", "date", "machine", "versions", "definitions", "failures", "bars", "crossovers"} < set(
        record["meta"]
    )
    assert record["meta"]["machine"]["threads"] == 1
    assert capsys.readouterr().out.count("FAILS") == len([bar for bar in record["meta"]["bars"] if not bar["holds"]])


def test_the_short_command_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    monkeypatch.setattr(linformer, "set_up", lambda device: (Bench(device, **TINY), ["float32"], {}))
    plan = tiny_plan([Group("module", "forward", "float32", 1, 16, (8,), (8,))])
    monkeypatch.setattr(linformer, "short_plan", lambda device, dtypes: plan)
    assert linformer.main(["--short"]) == 0
    assert list(tmp_path.iterdir()) == []


# What follows from the rows, on rows made up


def made_up(method, n, k=None, seconds=1.0, **more):
    row = {"series": "module", "mode": "forward", "dtype": "float32", "batch": 1, "n": n, "k": k, "method": method}
    row |= {"time_min": seconds, "flops": 1, "share": 0.85, "held_bytes": 0, "peak_bytes": 1, **more}
    return row


def needed_bytes(n, k, parts, itemsize=4):
    return (n + parts * k) * DIM * itemsize


def good_cpu_rows():
    """Rows that reach every bar exactly."""
    rows = []
    for n in CPU_LENGTHS[1:]:
        ours = 1.0
        rows += [
            made_up(OURS, n, K, ours, share=0.8, peak_bytes=needed_bytes(n, K, 3) * 6 // 5),
            made_up(OURS_APART, n, K, 1.28 if n > 1024 else 1.119, peak_bytes=needed_bytes(n, K, 4) * 6 // 5),
            made_up(LUCIDRAINS, n, K, 1.6 if n > 1024 else 1.4),
            made_up(TATP22, n, K, 1.6),
            made_up(FUSED, n, None, 15.0),
        ]
    return rows


def held(bars):
    return [bar["holds"] for bar in bars]


def test_every_bar_of_a_cpu_holds_where_it_is_just_reached():
    bars = cpu_bars(good_cpu_rows())
    assert held(bars) == [True] * 7
    assert [bar["bar"].split(":")[0] for bar in bars] == [
        ">= 1.25x as fast as linformer",
        ">= 1.4x as fast as linformer",
        ">= 1.6x as fast as linformer",
        ">= 1.6x as fast as linformer-pytorch kv",
        ">= 0.8 of the rate of x @ W, n = 1024 ... 8192, k = 256",
        ">= 15x as fast as exact, fused",
        "peak memory <= 1.2x tokens, parameters, result and buffers of length k",
    ]


@pytest.mark.parametrize(
    ("found", "holds", "measured"),
    [
        ({1024: 1.7, 2048: 1.6}, True, "1.60, at n = 2048"),
        ({1024: 1.5999, 2048: 1.7}, False, "1.60, at n = 1024"),
        ({1024: 1.7}, False, "nothing at n = 2048"),
        ({1024: 1.7, 2048: 1.7, 4096: 0.1}, True, "1.70, at n = 1024"),  # a length that nothing was promised for
    ],
)
def test_a_bar_is_judged_at_the_worst_of_its_lengths(found, holds, measured):
    bar = at_least("a promise", 1.6, found, (1024, 2048))
    assert bar == {"bar": "a promise", "measured": measured, "holds": holds}


def with_change(rows, change, **where):
    return [{**row, **change} if where.items() <= row.items() else row for row in rows]


def test_each_bar_of_a_cpu_fails_where_it_is_just_missed():
    bytes_at_1024 = math.ceil(needed_bytes(1024, K, 3) * 1.201)
    for where, change, failing in (
        ({"method": OURS_APART, "n": 1024}, {"time_min": 1.121}, [0]),
        ({"method": LUCIDRAINS, "n": 1024}, {"time_min": 1.399}, [1]),
        ({"method": LUCIDRAINS, "n": 16384}, {"time_min": 1.599}, [0, 2]),
        ({"method": TATP22, "n": 1024}, {"time_min": 1.599}, [3]),
        ({"method": OURS, "n": 8192}, {"share": 0.799}, [4]),
        ({"method": FUSED, "n": 16384}, {"time_min": 14.99}, [5]),
        ({"method": OURS, "n": 1024}, {"peak_bytes": bytes_at_1024}, [6]),
        ({"method": OURS, "n": 16384}, {"share": 0.1}, []),  # no share is promised there
        ({"method": FUSED, "n": 8192}, {"time_min": 1.0}, []),
    ):
        bars = held(cpu_bars(with_change(good_cpu_rows(), change, **where)))
        assert [i for i, holds in enumerate(bars) if not holds] == failing, where


def test_a_bar_names_the_worst_length_and_the_ratio_of_operations():
    rows = [{**row, "flops": 3 if row["method"] == LUCIDRAINS else 2} for row in good_cpu_rows()]
    assert cpu_bars(rows)[1]["measured"] == "1.40, at n = 1024 (operations 1.50)"


def test_a_bar_without_its_rows_does_not_hold():
    rows = [row for row in good_cpu_rows() if (row["method"], row["n"]) != (LUCIDRAINS, 4096)]
    bars = cpu_bars(rows)
    assert held(bars) == [False, True, False, True, True, True, True]
    assert bars[0]["measured"] == "nothing at n = 4096"
    assert held(cpu_bars([])) == [False] * 7


def good_cuda_rows():
    rows = []
    for n in CUDA_LENGTHS:
        for series, method in (("core", CORE), ("module", OURS)):
            batch = max(1, 65536 // n)
            half = {"series": series, "dtype": "bfloat16", "batch": batch}
            rows.append(made_up(method, n, K, share=0.6, peak_bytes=1, **half))
            rows.append(made_up(method, n, K, share=0.1, **{**half, "dtype": "float32"}))
            rows.append(made_up(FUSED, n, None, 60.0, **half))
            rows.append(made_up("exact, CUDNN_ATTENTION", n, None, 50.0, **half))
            rows.append(made_up("exact, MATH", n, None, 1.0, **half))
            if batch > 1:
                rows.append(made_up(method, n, K, share=0.1, **{**half, "batch": 1}))
    return rows


def test_the_bars_of_a_gpu_look_at_half_precision_large_batches_and_the_fastest_exact_attention():
    assert held(cuda_bars(good_cuda_rows())) == [True] * 5
    cudnn = "exact, CUDNN_ATTENTION"
    for failing, (where, change) in enumerate(
        [
            ({"method": CORE, "n": 512}, {"share": 0.599}),
            ({"method": cudnn, "series": "core", "n": 65536}, {"time_min": 49.9}),
            ({"method": OURS, "n": 65536}, {"share": 0.599}),
            ({"method": cudnn, "series": "module", "n": 65536}, {"time_min": 49.9}),
            ({"method": OURS, "n": 1024}, {"peak_bytes": 2**40}),
        ]
    ):
        bars = held(cuda_bars(with_change(good_cuda_rows(), change, dtype="bfloat16", **where)))
        assert [i for i, holds in enumerate(bars) if not holds] == [failing]


def test_memory_is_judged_in_the_bytes_of_its_type():
    row = made_up(OURS, 512, 128, dtype="bfloat16", peak_bytes=needed_bytes(512, 128, 3, itemsize=2))
    assert memory_bar([row])["measured"] == "1.000, lowrank_tutor E = F, n = 512, k = 128"
    assert not memory_bar([])["holds"]


def test_ratios_are_taken_at_lengths_that_both_have_and_like_with_like():
    rows = [made_up(OURS, 512, K, 2.0), made_up(OURS, 1024, K, 2.0), made_up(FUSED, 512, None, 6.0)]
    rows += [made_up(FUSED, 512, None, 99.0, mode="forward+backward"), made_up(LUCIDRAINS, 512, 128, 99.0)]
    assert ratios(rows, FUSED, OURS, K) == {512: 3.0}
    assert ratios(rows, LUCIDRAINS, OURS, K) == {}


def test_a_table_like_that_of_the_paper_has_lengths_down_and_k_across():
    rows = [made_up(OURS, n, k, n / 512 * k / 128) for n, k in ((512, 128), (1024, 128), (1024, 256))]
    rows += [made_up(NAIVE, n, None, (n / 256) ** 2) for n in (512, 1024)]
    found = speedups(rows)
    assert found == {512: {128: 4.0}, 1024: {128: 8.0, 256: 4.0}}
    assert list(table(found)) == [
        "      n   k = 128   k = 256",
        "    512       4.0         -",
        "   1024       8.0       4.0",
    ]


def test_the_largest_batches_pass_for_single_ones():
    rows = [made_up(OURS, 512, K, 9.0), made_up(OURS, 512, K, 2.0, batch=128), made_up(OURS, 1024, K, 3.0)]
    assert [(row["n"], row["batch"], row["time_min"]) for row in largest_batches(rows)] == [
        (512, 1, 2.0),
        (1024, 1, 3.0),
    ]


def test_the_fastest_exact_attention_is_found_in_each_place():
    rows = [made_up(FUSED, 512, None, 3.0), made_up("exact, FLASH_ATTENTION", 512, None, 2.0)]
    rows += [made_up("exact, MATH", 512, None, 1.0), made_up(NAIVE, 512, None, 0.5), made_up(OURS, 512, K, 0.1)]
    rows += [made_up(FUSED, 512, None, 1.5, mode="forward+backward")]
    found = [(row["mode"], row["time_min"]) for row in fastest_exact(rows) if row["method"] == FUSED]
    assert found == [("forward", 2.0), ("forward+backward", 1.5)]
    assert {"exact, MATH", NAIVE, OURS} <= {row["method"] for row in fastest_exact(rows)}


def crossing(points):
    """Rows in which exact attention takes the given multiple of our time at each length."""
    rows = [made_up(OURS, n, K, 1.0, series="crossover" if n < 512 else "module") for n in points]
    return rows + [
        made_up(FUSED, n, None, ratio, series="crossover" if n < 512 else "module") for n, ratio in points.items()
    ]


def test_a_crossover_is_interpolated_where_the_advantage_becomes_lasting():
    assert crossover(crossing({256: 0.5, 1024: 2.0}), OURS, K) == pytest.approx(512)
    assert crossover(crossing({128: 1.1, 256: 0.5, 1024: 2.0, 2048: 3.0}), OURS, K) == pytest.approx(512)
    assert crossover(crossing({256: 1.5, 1024: 2.0}), OURS, K) == pytest.approx(256)
    assert crossover(crossing({256: 1.0, 1024: 2.0}), OURS, K) == pytest.approx(256)
    assert crossover(crossing({256: 0.5, 1024: 0.9}), OURS, K) is None
    assert crossover(crossing({256: 2.0, 1024: 1.0}), OURS, K) is None
    assert crossover([], OURS, K) is None


def test_crossovers_stand_beside_those_by_operations():
    found = {
        (k, method): math.floor(flops_crossover(k, method)) + 1 for k in (128, 256) for method in (OURS, OURS_APART)
    }
    assert found == {(128, OURS): 142, (128, OURS_APART): 159, (256, OURS): 304, (256, OURS_APART): 363}
    for method, sharing in ((OURS, "key-value"), (OURS_APART, "headwise")):
        n = math.ceil(flops_crossover(K, method))
        costs = [linformer_cost(i, DIM, 8, K, sharing=sharing).flops for i in (n - 1, n)]
        assert costs[0] >= 8 * (n - 1) * DIM**2 + 4 * (n - 1) ** 2 * DIM
        assert costs[1] <= 8 * n * DIM**2 + 4 * n**2 * DIM
    found = crossovers([*crossing({256: 0.5, 1024: 2.0}), made_up(OURS_APART, 1024, K, 4.0)])
    place = {"k": K, "mode": "forward", "dtype": "float32"}
    assert found == [
        {"method": OURS, **place, "measured": 512, "least_n": 256, "by_operations": 304},
        {"method": OURS_APART, **place, "measured": None, "least_n": 1024, "by_operations": 363},
    ]


def test_pairs_name_both_ratios():
    rows = [made_up(OURS, 512, K, 2.0, flops=10), made_up(FUSED, 512, None, 3.0, flops=40)]
    assert "    512:  1.50 ( 4.00)" in "\n".join(pairs(rows))


def test_shares_are_named_of_both_products():
    rows = [made_up(OURS, 512, K, 2.0, flops=10, share=0.5), made_up(OURS, 512, 128, 2.0, flops=10, share=0.5)]
    rows += [made_up("square product", 512, None, 3.0, flops=60, series="product")]
    lines = list(shares(rows))
    assert [line.split(":")[0] for line in lines] == [
        f"{OURS}, k = {k}, share of the rate of x @ W (of a square product)" for k in (128, 256)
    ]
    assert lines[0].endswith("    512:  0.50 ( 0.25)")
    assert list(shares([made_up(FUSED, 512)])) == []


def test_the_report_prints_tables_for_large_batches_where_there_are_any(capsys):
    rows = [made_up(OURS, 512, K, 2.0), made_up(FUSED, 512, None, 3.0)]
    linformer_findings.report(rows)
    assert "large batches" not in capsys.readouterr().out
    linformer_findings.report(rows + [{**row, "batch": 8} for row in rows])
    assert "large batches" in capsys.readouterr().out


# The records


def test_a_record_concludes_what_its_rows_say():
    for path in RECORDS:  # none, as long as none is committed
        record = json.loads(path.read_text(encoding="utf-8"))
        bars = cpu_bars if path.stem == "linformer_cpu" else cuda_bars
        assert record["meta"]["bars"] == bars(record["rows"]), path.stem
        assert record["meta"]["crossovers"] == crossovers(record["rows"]), path.stem
        assert all(set(row) == KEYS for row in record["rows"]), path.stem
