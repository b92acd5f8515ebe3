"""Time Linformer and its rivals against the length of the sequence, and take their memory.

``python -m measure.speed.linformer`` prints rows and bars, and writes ``lowrank_tutor/data/linformer_cpu.json`` for
chapter 7: one row for each method, length, k, type, batch and mode. ``--encoders`` measures only encoder layers and
encoders of six layers, and leaves the other rows as they are. ``--device cuda`` runs the grid of `linformer_gpu`, whose
record ``--out`` names; with ``--share`` it writes a small file named after the GPU, for the book to draw beside the
others. ``--short`` measures a part in under two minutes and writes nothing.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lowrank_tutor.roofline import half_type
from measure.harness import (
    DATA,
    Timing,
    add_device,
    all_hold,
    interleaved,
    provenance,
    say_if_busy,
    wall_clock,
    write,
)
from measure.memory import peak_bytes
from measure.speed import linformer_gpu
from measure.speed.gpu_file import write_shared
from measure.speed.linformer_findings import CPU_LENGTHS, K, Row, cpu_bars, crossovers
from measure.speed.linformer_methods import (
    DIM,
    ENCODERS,
    FEEDFORWARD,
    HEADS,
    MODES,
    OWN_PRODUCT,
    Group,
    Method,
    methods,
)

PACKAGES = ["torch", "lowrank-tutor", "linformer", "linformer-pytorch"]
CPU_THREADS = 2
CUDA_LENGTHS, MANY = tuple(2**i for i in range(9, 17)), 65536  # and the tokens that make a batch large
CUDA_KS = (128, 256, 512, 1024, 2048)
DEFINITIONS = {
    "time_min, time_q1, time_median, time_q3": "seconds: the fastest of the interleaved runs, after two that do not"
    " count, and their quartiles; on a GPU by events, each run after its cache is flushed",
    "mode": "forward: no gradients; forward+backward: gradients of the tokens and of all parameters",
    "series": "module: attention with its four linear maps; core: queries, keys and values given; crossover: a module"
    " on short sequences; product: one matrix product, timed in the same rounds; encoder layer: a module, two norms and"
    f" a feed-forward network {FEEDFORWARD} times as wide as the tokens; encoder: {ENCODERS['encoder']} such layers;"
    " these two in seconds of one core, as the process counts them",
    "batch, n, k": "sequences, tokens in each, tokens that each is compressed to (null: exact attention)",
    "method": "exact, fused: as PyTorch chooses",
    "flops": "two for each multiplication in the products of the method as written down; three times that with"
    " gradients",
    "held_bytes": "tokens and parameters, and with gradients what comes from upstream",
    "peak_bytes": "these, and the most that was allocated beyond; on a CPU all tensors count, but not what a kernel"
    " keeps inside while it runs (the fused one: less than 1 MB)",
    "floor": "seconds below which the method cannot come on a CPU: flops by the rate of x @ W (tokens and one weight"
    " matrix of the layer) in the same rounds",
    "share": "floor / time_min",
}


class Plan(NamedTuple):
    """What to measure, and how long."""

    groups: list[Group]
    repeats: int
    limit: float  # seconds for one method in one group
    seconds: float  # for all; groups that come later are left out


class Bench(NamedTuple):
    """Where to measure."""

    device: torch.device
    clock: Callable[[Callable[[int], Any], int], tuple[float, Any]] = wall_clock
    dim: int = DIM
    heads: int = HEADS


# What is measured


def cpu_plan() -> Plan:
    """Lay out the measurement on a CPU."""
    groups = [Group("module", "forward", "float32", 1, n, (128, K), (128, K)) for n in CPU_LENGTHS]
    groups += [Group("module", "forward+backward", "float32", 1, n, (K,), (K,)) for n in CPU_LENGTHS if n <= 4096]
    groups += [Group("crossover", "forward", "float32", 1, n, (128, K)) for n in (128, 192, 256, 320, 384, 448)]
    groups += [Group("core", "forward", "float32", 1, n, (K,)) for n in CPU_LENGTHS if 1024 <= n <= 8192]
    return Plan(groups, repeats=40, limit=8, seconds=3600)


def encoder_plan() -> Plan:
    """Lay out the measurement of encoder layers, and of six of them, on a CPU: about eight minutes of one core."""
    lengths = {
        ("encoder layer", "forward"): CPU_LENGTHS,
        ("encoder layer", "forward+backward"): CPU_LENGTHS[:5],
        ("encoder", "forward"): CPU_LENGTHS[1:4:2],
        ("encoder", "forward+backward"): CPU_LENGTHS[1:4:2],
    }
    groups = [Group(*which, "float32", 1, n, (K,)) for which, sizes in lengths.items() for n in sizes]
    return Plan(sorted(groups, key=lambda group: group.n), repeats=11, limit=12, seconds=3600)


def cuda_plan(
    dtypes: Sequence[str], lengths: Sequence[int] = CUDA_LENGTHS, ks: Sequence[int] = CUDA_KS, many: int = MANY
) -> Plan:
    """Lay out the measurement on a GPU: batches of at least ``many`` tokens, and single sequences; peers at one k."""
    groups = [
        Group(series, mode, dtype, batch, n, tuple(k for k in ((K,) if series in ENCODERS else ks) if k < n), (K,))
        for series, mode in (
            *(("module", MODES[0]), ("core", MODES[0]), ("module", MODES[1])),
            *(("encoder layer", mode) for mode in MODES),
        )
        for dtype in dtypes
        for n in lengths
        for batch in sorted({max(1, many // n), 1}, reverse=True)
    ]
    return Plan(groups, repeats=20, limit=0.25, seconds=480)


def short_plan(device: torch.device, dtypes: Sequence[str]) -> Plan:
    """Lay out a measurement of less than two minutes."""
    if device.type == "cpu":
        groups = [Group("module", "forward", "float32", 1, n, (K,), (K,)) for n in CPU_LENGTHS if n <= 4096]
        return Plan(groups, repeats=3, limit=2, seconds=90)
    plan = cuda_plan(dtypes[:1], CUDA_LENGTHS[:6], CUDA_KS[:2], many=16384)
    return plan._replace(repeats=10, limit=0.1, seconds=90)


# How it is measured


def processor_clock(function: Callable[[int], Any], run: int) -> tuple[float, Any]:
    """Run a function, and return the seconds that this process computed, which others on the machine do not stretch."""
    start = time.process_time()
    result = function(run)
    return time.process_time() - start, result


class CudaClock:
    """Time by events on the GPU, with its cache flushed before each run."""

    def __init__(self, device: torch.device, flushed: int = 256 * 2**20) -> None:
        self.flush = torch.empty(flushed, dtype=torch.int8, device=device)  # larger than any second-level cache

    def __call__(self, function: Callable[[int], Any], run: int) -> tuple[float, Any]:
        """Run a function, and return the seconds it took and its result."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        start.record()
        result = function(run)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3, result


def first_run(method: Method, device: torch.device) -> tuple[int, str | None]:
    """Run once and return the peak of memory, or why it cannot run (PyTorch gives the reasons as warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return peak_bytes(lambda: method.run(-1), device), None
        except Exception as problem:  # noqa: BLE001  a backend may refuse in any way, and that is a finding
            reasons = dict.fromkeys(str(warning.message).split("(Triggered")[0].strip() for warning in caught)
            return 0, "; ".join([f"{type(problem).__name__}: {str(problem).splitlines()[0]}", *reasons])[:600]


def measure(group: Group, bench: Bench, plan: Plan) -> tuple[list[Row], list[Row]]:
    """Measure one group; return its rows, and what failed."""
    built = {f"{one.name}, k = {one.k}": one for one in methods(group, bench.device, bench.dim, bench.heads)}
    first = {key: first_run(one, bench.device) for key, one in built.items()}
    errors = {key: error for key, (_, error) in first.items() if error is not None}
    running = {key: one.run for key, one in built.items() if key not in errors}
    timings = interleaved(running, plan.repeats, lambda _: None, clock=bench.clock, limit=plan.limit)
    errors |= {key: timing.error for key, timing in timings.items() if timing.error is not None}
    timings = {key: timing for key, timing in timings.items() if timing.error is None}
    floors = floors_of(built, timings)
    rows = [row_of(group, built[key], timing, first[key][0], floors.get(key)) for key, timing in timings.items()]
    failures = [{**place(group, built[key]), "error": error} for key, error in errors.items()]
    return rows, failures


def measure_what_fits(group: Group, bench: Bench, plan: Plan) -> tuple[list[Row], list[Row]]:
    """Measure one group without the largest k, which memory may be too short for: the layers of all k exist at once."""
    try:
        return measure(group, bench, plan)
    except torch.OutOfMemoryError:
        failure = {**group._asdict(), "error": f"left out, as memory is short: k in {group.ks[-1:]}"}
    if not group.ks:
        return [], [failure]
    rows, failures = measure_what_fits(group._replace(ks=group.ks[:-1]), bench, plan)
    return rows, [failure, *failures]


def floors_of(built: Mapping[str, Method], timings: Mapping[str, Timing]) -> dict[str, float]:
    """Return the seconds below which each method cannot come; none where no product was timed beside it."""
    own = next((key for key in timings if built[key].name == OWN_PRODUCT), None)
    return {} if own is None else {key: built[key].flops * timings[own].best / built[own].flops for key in timings}


def place(group: Group, method: Method) -> Row:
    """Say what was run."""
    series = "product" if method.name == OWN_PRODUCT else group.series
    return {
        "series": series,
        "mode": group.mode,
        "dtype": group.dtype,
        "batch": group.batch,
        "n": group.n,
        "k": method.k,
        "method": method.name,
    }


def row_of(group: Group, method: Method, timing: Timing, extra: int, floor: float | None) -> Row:
    """Turn what was found about one method into a row."""
    low, high = timing.quartiles
    times = {"time_min": timing.best, "time_q1": low, "time_median": timing.median, "time_q3": high}
    row = {**place(group, method), "runs": len(timing.seconds)}
    row |= {name: float(f"{seconds:.4g}") for name, seconds in times.items()}
    row |= {"flops": method.flops, "held_bytes": method.held_bytes, "peak_bytes": method.held_bytes + extra}
    row |= {"floor": None, "share": None} if floor is None else {"floor": float(f"{floor:.4g}")}
    return row if floor is None else row | {"share": float(f"{floor / timing.best:.3g}")}


def run(plan: Plan, bench: Bench) -> tuple[list[Row], list[Row]]:
    """Measure all groups, and print as it goes; what comes after the time is up is left out, and said to be."""
    rows: list[Row] = []
    failures: list[Row] = []
    start = time.perf_counter()
    for group in plan.groups:
        if time.perf_counter() - start > plan.seconds:
            failures.append({**group._asdict(), "error": f"left out: {plan.seconds:g} seconds were over"})
            continue
        fresh, failed = measure_what_fits(group, bench, plan)
        for row in fresh:
            print(describe(row), flush=True)
        for failure in failed:
            print(f"n = {failure['n']}, {failure.get('method', 'all')}: {failure['error']}", flush=True)
        rows, failures = rows + fresh, failures + failed
        gc.collect()
        if bench.device.type == "cuda":
            torch.cuda.empty_cache()
    return rows, failures


def describe(row: Mapping[str, Any]) -> str:
    """Lay one row out for the eye."""
    where = f"{row['series']:9} {row['mode']:16} {row['dtype']:8} {row['batch']:3} x {row['n']:5}"
    times = f"{1e3 * row['time_min']:9.2f} ms, median {1e3 * row['time_median']:9.2f} ({row['runs']:2} runs)"
    rate = f"{row['flops'] / row['time_min'] / 1e9:8.0f} GFLOP/s"
    share = "" if row["share"] is None else f" = {100 * row['share']:.0f}%"
    memory = f"{row['peak_bytes'] / 2**20:9.1f} MiB"
    return f"{where} k {row['k'] or '-':>4} {row['method']:30} {times} {memory} {rate}{share}"


def card(device: torch.device) -> Row:
    """Describe the GPU and the software that drives it."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = None
    properties = torch.cuda.get_device_properties(device)
    return {
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "capability": f"{properties.major}.{properties.minor}",
        "driver": driver,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def set_up(device: torch.device) -> tuple[Bench, list[str], Row]:
    """Make ready to measure; return where, the types to measure, and what to record of it."""
    if device.type == "cpu":
        torch.set_num_threads(CPU_THREADS)
        return Bench(device), ["float32"], {"threads": torch.get_num_threads()}
    torch.cuda.manual_seed(0)  # draws what is measured
    half = str(half_type(device)).removeprefix("torch.")
    flushed = min(256 * 2**20, int(torch.cuda.mem_get_info(device)[0] / 4))
    record = {"gpu": card(device), "float32_products": torch.get_float32_matmul_precision()}
    return Bench(device, CudaClock(device, flushed)), [half, "float32"], record


def measured(command: str, plan: Plan, bench: Bench, record: Row) -> tuple[Row, list[Row]]:
    """Carry a plan out; return where and how it was measured, and its rows."""
    meta = provenance(f"python -m measure.speed.linformer {command}", PACKAGES)
    say_if_busy(meta["machine"])
    rows, failures = run(plan, bench)
    meta["machine"] |= {**record, "load_average_at_end": [round(load, 2) for load in os.getloadavg()]}
    how = {"repeats": plan.repeats, "limit_seconds": plan.limit, "failures": failures}
    return meta | {"dim": bench.dim, "heads": bench.heads, **how}, rows


def gpu_grid(path: Path, bench: Bench, record: Row, dtype: torch.dtype) -> None:
    """Go on with the grid of a GPU, and say what is left."""
    meta = provenance("python -m measure.speed.linformer --device cuda", PACKAGES)
    try:
        meta["versions"]["flash-linear-attention"] = version("flash-linear-attention")
    except PackageNotFoundError:
        print("flash-linear-attention is not installed, so linear attention is left out")
    left = linformer_gpu.grid(path, bench, meta | {"gpu": record["gpu"]}, dtype, linformer_gpu.cases())
    print(f"{path}: {left} measurements are left{', run the same command again' if left else ''}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; the exit status tells whether all bars hold."""
    parser = argparse.ArgumentParser(prog="python -m measure.speed.linformer", description=__doc__)
    add_device(parser)
    parser.add_argument("--short", action="store_true", help="a part, in under two minutes; nothing is written")
    parser.add_argument("--share", action="store_true", help="write one small file named after the GPU")
    parser.add_argument("--out", type=Path, default=DATA / "gpu_grid.json", help="the record of the grid of a GPU")
    parser.add_argument("--encoders", action="store_true", help="only encoder layers, on a CPU; other rows stay")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and ((options.short and options.share) or options.encoders):
        parser.error("--device cuda takes --short or --share, not both, and not --encoders")
    device = torch.device(options.device)
    bench, dtypes, record = set_up(device)
    print(", ".join(f"{name}: {value}" for name, value in record.items()))
    if device.type == "cuda" and not (options.short or options.share):
        gpu_grid(options.out, bench, record, half_type(device))
        return 0
    command = f"--device {device.type}{' --share' if options.share else ''}"
    if options.short or options.share:
        plan = (
            short_plan(device, dtypes) if options.short else cpu_plan() if device.type == "cpu" else cuda_plan(dtypes)
        )
        meta, rows = measured(command, plan, bench, record)
        if options.share:
            print(f"written: {write_shared(meta, rows).name}")
        return 0
    if options.encoders:
        meta, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
        rows = [row for row in rows if row["series"] not in ENCODERS]
        command += " --encoders"
    else:
        meta, rows = measured(command, cpu_plan(), bench, record)
        meta |= {"bars": cpu_bars(rows), "crossovers": crossovers(rows)}
    torch.set_num_threads(1)
    alone = bench._replace(clock=processor_clock)
    meta["encoders"], more = measured(command, encoder_plan(), alone, {"threads": torch.get_num_threads()})
    meta["definitions"] = {**DEFINITIONS, **meta.get("definitions", {}), "series": DEFINITIONS["series"]}
    print(f"written: {write('linformer_cpu', meta, [*rows, *more]).name}")
    return 0 if all_hold(meta["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
