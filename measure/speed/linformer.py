"""Time layers of Linformer and of exact attention by length, and take their memory.

``python -m measure.speed.linformer`` writes ``lowrank_tutor/data/linformer_cpu.json``: one row for
each method, length, k, type, batch and mode. ``--encoders`` measures its encoder layers alone and
leaves the other rows as they are. ``--device cuda --share`` measures a GPU, starts nothing new
after eight minutes, and writes a small file named after the card, for the book to draw beside the
others. ``--short`` measures a part in under two minutes and writes nothing.

In a row, ``time_min, time_q1, time_median, time_q3`` are seconds: the fastest of the interleaved
runs, after two that do not count, and their quartiles; on a GPU by events, each run after its cache
is flushed; of an encoder layer on a CPU, seconds of one core as the process counts them.
``forward`` has no gradients, ``forward+backward`` those of tokens and all parameters. ``k`` is null
for exact attention. ``peak_bytes`` are tokens, parameters, and the most that was allocated beyond;
on a CPU all tensors count, but not what a kernel keeps inside while it runs.
"""

import argparse
import gc
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from lowrank_tutor.roofline import half_type
from measure.harness import (
    DATA,
    Timing,
    interleaved,
    load_now,
    processor_clock,
    provenance,
    say_if_busy,
    wall_clock,
    write,
)
from measure.memory import peak_bytes
from measure.speed.gpu_file import write_gpu_file
from measure.speed.linformer_methods import DIM, HEADS, MODES, Group, Method, methods

Row = dict[str, Any]
Clock = Callable[[Callable[[int], Any], int], tuple[float, Any]]
PACKAGES = ["torch", "lowrank-tutor"]
K = 256
CPU_THREADS, CPU_LENGTHS = 2, tuple(2**i for i in range(9, 15))
CUDA_LENGTHS, MANY = (
    tuple(2**i for i in range(9, 17)),
    65536,
)  # and the tokens that make a batch large
CUDA_KS = (128, 256, 512, 1024, 2048)


class Plan(NamedTuple):
    """What to measure, and how long."""

    groups: list[Group]
    repeats: int
    limit: float  # seconds for one method in one group
    seconds: float  # for all; groups that come later are left out


# What is measured


def cpu_plan(lengths: Sequence[int] = CPU_LENGTHS) -> Plan:
    """Lay out the measurement of attention layers on a CPU."""
    groups = [Group("module", "forward", "float32", 1, n, (K,)) for n in lengths]
    groups += [
        Group("module", "forward+backward", "float32", 1, n, (K,)) for n in lengths if n <= 4096
    ]
    return Plan(groups, repeats=40, limit=8, seconds=3600)


def encoder_plan() -> Plan:
    """Lay out the measurement of encoder layers on a CPU: about eight minutes of one core."""
    groups = [Group("encoder layer", "forward", "float32", 1, n, (K,)) for n in CPU_LENGTHS]
    groups += [
        Group("encoder layer", "forward+backward", "float32", 1, n, (K,))
        for n in CPU_LENGTHS
        if n <= 8192
    ]
    return Plan(groups, repeats=11, limit=12, seconds=3600)


def cuda_plan(
    dtypes: Sequence[str],
    lengths: Sequence[int] = CUDA_LENGTHS,
    ks: Sequence[int] = CUDA_KS,
    many: int = MANY,
) -> Plan:
    """Lay out the measurement on a GPU: batches of ``many`` tokens or more, and sequences."""
    order = [("module", "forward"), ("core", "forward"), ("module", "forward+backward")]
    order += [("encoder layer", mode) for mode in MODES]
    groups = []
    for (series, mode), dtype, n in itertools.product(order, dtypes, lengths):
        shown = tuple(k for k in ((K,) if series == "encoder layer" else ks) if k < n)
        batches = sorted({max(1, many // n), 1}, reverse=True)
        groups += [Group(series, mode, dtype, batch, n, shown) for batch in batches]
    return Plan(groups, repeats=20, limit=0.25, seconds=480)


def short_plan(device: torch.device, dtypes: Sequence[str]) -> Plan:
    """Lay out a measurement of less than two minutes."""
    if device.type == "cpu":
        groups = [group for group in cpu_plan(CPU_LENGTHS[:4]).groups if group.mode == "forward"]
        return Plan(groups, repeats=3, limit=2, seconds=90)
    plan = cuda_plan(dtypes[:1], CUDA_LENGTHS[:6], CUDA_KS[:2], many=16384)
    return plan._replace(repeats=10, limit=0.1, seconds=90)


# How it is measured


class CudaClock:
    """Time by events on the GPU, with its cache flushed before each run."""

    def __init__(self, device: torch.device) -> None:
        free = torch.cuda.mem_get_info(device)[0]
        self.flush = torch.empty(
            min(256 * 2**20, free // 4), dtype=torch.int8, device=device
        )  # larger than any cache

    def __call__(self, function: Callable[[int], Any], run: int) -> tuple[float, Any]:
        """Run a function, and return the seconds it took and its result."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        start.record()
        result = function(run)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3, result


def measure(group: Group, device: torch.device, clock: Clock, plan: Plan) -> list[Row]:
    """Measure one group; return its rows, and say what failed."""
    built = {f"{each.name}, k = {each.k}": each for each in methods(group, device)}
    peaks = {key: peak_bytes(lambda each=each: each.run(-1), device) for key, each in built.items()}
    runs = {key: each.run for key, each in built.items()}
    timings = interleaved(runs, plan.repeats, lambda _: None, clock=clock, limit=plan.limit)
    for key, timing in timings.items():
        if timing.error is not None:
            print(f"n = {group.n}, {key}: {timing.error}", flush=True)
    return [
        row_of(group, built[key], timing, peaks[key])
        for key, timing in timings.items()
        if timing.error is None
    ]


def measure_what_fits(group: Group, device: torch.device, clock: Clock, plan: Plan) -> list[Row]:
    """Measure one group without the largest k, which memory may be too short for.

    The layers of all k exist at once.
    """
    try:
        return measure(group, device, clock, plan)
    except torch.OutOfMemoryError:
        print(f"n = {group.n}: left out, as memory is short: k in {group.ks[-1:]}", flush=True)
    return (
        measure_what_fits(group._replace(ks=group.ks[:-1]), device, clock, plan) if group.ks else []
    )


def row_of(group: Group, method: Method, timing: Timing, extra: int) -> Row:
    """Turn what was found about one method into a row."""
    low, high = timing.quartiles
    times = {"time_min": timing.best, "time_q1": low, "time_median": timing.median, "time_q3": high}
    where = {name: getattr(group, name) for name in ("series", "mode", "dtype", "batch", "n")}
    row = {**where, "k": method.k, "method": method.name, "runs": len(timing.seconds)}
    row |= {name: float(f"{seconds:.4g}") for name, seconds in times.items()}
    return row | {"peak_bytes": method.held_bytes + extra}


def describe(row: Mapping[str, Any]) -> str:
    """Lay one row out for the eye."""
    where = f"{row['series']:13} {row['mode']:16} {row['dtype']:8} {row['batch']:3} x {row['n']:5}"
    times = (
        f"{1e3 * row['time_min']:9.3f} ms, "
        f"median {1e3 * row['time_median']:9.3f} ({row['runs']:2} runs)"
    )
    return (
        f"{where} k {row['k'] or '-':>4} {row['method']:27} {times} "
        f"{row['peak_bytes'] / 2**20:9.1f} MiB"
    )


def card(device: torch.device) -> Row:
    """Describe the GPU and the software that drives it."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = (
            subprocess.run(query, capture_output=True, text=True, check=True)
            .stdout.splitlines()[0]
            .strip()
        )
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


def carry_out(
    arguments: str, plan: Plan, device: torch.device, clock: Clock, record: Row
) -> tuple[Row, list[Row]]:
    """Measure all groups of a plan, and print as it goes.

    Where and how it was measured is returned with the rows.
    """
    meta, rows = provenance(f"python -m measure.speed.linformer {arguments}", PACKAGES), []
    say_if_busy(meta["machine"])
    start = time.perf_counter()
    for i, group in enumerate(plan.groups):
        if time.perf_counter() - start > plan.seconds:
            print(f"{len(plan.groups) - i} groups are left out: {plan.seconds:g} seconds are over")
            break
        fresh = measure_what_fits(group, device, clock, plan)
        print(*map(describe, fresh), sep="\n", flush=True)
        rows += fresh
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    meta["machine"] |= record | load_now("load_average_at_end")
    return meta | {"dim": DIM, "heads": HEADS}, rows


def on_gpu(device: torch.device, *, share: bool) -> None:
    """Measure the GPU for a shared file, or a part of that and write nothing."""
    torch.cuda.manual_seed(0)  # draws what is measured
    gpu, dtypes = card(device), [str(half_type(device)).removeprefix("torch."), "float32"]
    print(gpu)
    plan = cuda_plan(dtypes) if share else short_plan(device, dtypes)
    arguments = f"--device cuda {'--share' if share else '--short'}"
    meta, rows = carry_out(arguments, plan, device, CudaClock(device), {"gpu": gpu})
    if share:
        print(f"written: {write_gpu_file(meta, rows).name}")


def on_cpu(*, short: bool, encoders: bool) -> None:
    """Measure the processor: attention on two threads, encoder layers on one."""
    device = torch.device("cpu")
    if encoders:
        meta, rows = json.loads((DATA / "linformer_cpu.json").read_text(encoding="utf-8")).values()
        rows = [row for row in rows if row["series"] != "encoder layer"]
    else:
        torch.set_num_threads(CPU_THREADS)
        plan = short_plan(device, ["float32"]) if short else cpu_plan()
        meta, rows = carry_out("--device cpu", plan, device, wall_clock, {"threads": CPU_THREADS})
    if short:
        return
    torch.set_num_threads(1)
    arguments = "--device cpu --encoders"
    meta["encoders"], more = carry_out(
        arguments, encoder_plan(), device, processor_clock, {"threads": 1}
    )
    print(f"written: {write('linformer_cpu', meta, [*rows, *more]).name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        prog="python -m measure.speed.linformer", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--short", action="store_true", help="a part, in under two minutes; nothing is written"
    )
    chosen.add_argument(
        "--share", action="store_true", help="write one small file named after the GPU"
    )
    chosen.add_argument(
        "--encoders", action="store_true", help="only encoder layers, on a CPU; other rows stay"
    )
    options = parser.parse_args(arguments)
    if options.device == "cuda":
        if not (options.short or options.share):
            parser.error("--device cuda needs --short or --share")
        on_gpu(torch.device("cuda"), share=options.share)
    else:
        if options.share:
            parser.error("--share needs --device cuda")
        on_cpu(short=options.short, encoders=options.encoders)
    return 0


if __name__ == "__main__":
    sys.exit(main())
