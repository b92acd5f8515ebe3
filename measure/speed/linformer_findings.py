"""Conclude from the rows of ``measure.speed.linformer``: from which length on our layers pay, and which bars hold.

A row is a dictionary as the JSON has it; nothing is measured here.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from measure.speed.linformer_methods import (
    BACKENDS,
    DIM,
    FUSED,
    LUCIDRAINS,
    OURS,
    OURS_APART,
    OWN_PRODUCT,
    TATP22,
)

K = 256  # of the bars
CPU_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def select(rows: Rows, method: str, k: int | None, **where: Any) -> dict[int, Mapping[str, Any]]:
    """Find the rows of a method by length; unless said otherwise, of the module, forward, one sequence, any type."""
    where = {"series": "module", "mode": "forward", "batch": 1, **where, "method": method, "k": k}
    return {row["n"]: row for row in rows if all(row[name] == value for name, value in where.items())}


def ratios(rows: Rows, slow: str, fast: str, k: int, quantity: str = "time_min", **where: Any) -> dict[int, float]:
    """Divide what one method takes by what another does, at each length that both have."""
    others = select(rows, slow, k, **where) or select(rows, slow, None, **where)  # exact attention has no k
    ours = select(rows, fast, k, **where)
    return {n: others[n][quantity] / ours[n][quantity] for n in sorted(others.keys() & ours.keys())}


def fastest_exact(rows: Rows) -> Rows:
    """Keep for each place the fastest exact attention that writes no scores, under the name of the fused one."""
    fused = {FUSED, *BACKENDS}
    best: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("series", "mode", "dtype", "batch", "n"))
        if row["method"] in fused and (key not in best or row["time_min"] < best[key]["time_min"]):
            best[key] = {**row, "method": FUSED}
    return [*(row for row in rows if row["method"] not in fused), *best.values()]


def crossover(rows: Rows, method: str, k: int, **where: Any) -> float | None:
    """Interpolate the length from which a method is faster than exact attention for good; None if there is none.

    Straight lines in the logarithms of length and ratio. If it is faster at every length measured, the least of these.
    """
    found: dict[int, float] = {}
    for series in ("module", "crossover"):
        found |= ratios(rows, FUSED, method, k, series=series, **where)
    points = sorted((math.log(n), math.log(ratio)) for n, ratio in found.items())
    if not points or points[-1][1] <= 0:
        return None
    last = max((i for i, (_, gain) in enumerate(points) if gain <= 0), default=None)
    if last is None:
        return math.exp(points[0][0])
    (x0, y0), (x1, y1) = points[last : last + 2]
    return math.exp(x0 - y0 * (x1 - x0) / (y1 - y0))


def flops_crossover(k: int, method: str = OURS, dim: int = DIM) -> float:
    """Solve for the length at which a module and exact attention take as many operations: n^2 + n (D - c k) = k D."""
    half = (dim - (1.5 if method == OURS else 2.0) * k) / 2
    return math.sqrt(half**2 + k * dim) - half


def crossovers(rows: Rows) -> list[Row]:
    """Say for each k, type and mode from which length on our layers are faster than the fastest exact attention.

    Single sequences. ``measured`` is ``least_n`` where they are at every length, and None where not at the longest.
    """
    rows = fastest_exact(rows)
    shown = sorted({(row["mode"], row["dtype"], row["k"]) for row in rows if row["method"] == OURS})
    return [
        {
            "method": method,
            "k": k,
            "mode": mode,
            "dtype": dtype,
            "measured": None if (n := crossover(rows, method, k, mode=mode, dtype=dtype)) is None else round(n),
            "least_n": min(select_all(rows, method, k, mode, dtype), default=None),
            "by_operations": math.floor(flops_crossover(k, method)) + 1,
        }
        for mode, dtype, k in shown
        for method in (OURS, OURS_APART)
    ]


def select_all(rows: Rows, method: str, k: int, mode: str, dtype: str) -> set[int]:
    """Find the lengths at which a method was measured on single sequences, whole layers."""
    series = ("module", "crossover")
    return {n for name in series for n in select(rows, method, k, series=name, mode=mode, dtype=dtype)}


def at_least(text: str, least: float, found: Mapping[int, float], lengths: Sequence[int], beside: str = "") -> Row:
    """Judge a bar that must hold at each of some lengths; where a number is missing it does not."""
    missing = [n for n in lengths if n not in found]
    if missing:
        return {"bar": text, "measured": f"nothing at n = {missing[0]}", "holds": False}
    worst = min(lengths, key=lambda n: found[n])
    return {"bar": text, "measured": f"{found[worst]:.2f}, at n = {worst}{beside}", "holds": found[worst] >= least}


def speed_bar(rows: Rows, least: float, slow: str, fast: str, lengths: Sequence[int], **where: Any) -> Row:
    """Judge how many times faster one method is than another, and name the ratio of operations beside it."""
    found, work = ratios(rows, slow, fast, K, **where), ratios(rows, slow, fast, K, "flops", **where)
    where_text = f"n = {lengths[0]}" + (f" ... {lengths[-1]}" if len(lengths) > 1 else "")
    text = f">= {least:g}x as fast as {slow}: {fast}, {where_text}, k = {K}"
    worst = min((n for n in lengths if n in found), key=lambda n: found[n], default=None)
    beside = "" if worst is None else f" (operations {work[worst]:.2f})"
    return at_least(text, least, found, lengths, beside)


def memory_bar(rows: Rows) -> Row:
    """Judge the peak of memory of our layers against tokens, parameters, result, and what has length k."""
    worst, place_of = 0.0, "nowhere"
    for row in rows:
        if row["method"] in (OURS, OURS_APART) and row["mode"] == "forward" and row["series"] == "module":
            width = row["batch"] * DIM * getattr(torch, row["dtype"]).itemsize
            parts = 3 if row["method"] == OURS else 4  # E x, and F x; keys; values
            needed = row["held_bytes"] + row["n"] * width + parts * row["k"] * width
            if row["peak_bytes"] / needed > worst:
                worst, place_of = row["peak_bytes"] / needed, f"{row['method']}, n = {row['n']}, k = {row['k']}"
    text = "peak memory <= 1.2x tokens, parameters, result and buffers of length k"
    return {"bar": text, "measured": f"{worst:.3f}, {place_of}", "holds": 0 < worst <= 1.2}


def cpu_bars(rows: Rows) -> list[Row]:
    """Say which promises hold on a CPU."""
    long = CPU_LENGTHS[1:]
    share = {n: row["share"] for n, row in select(rows, OURS, K).items()}
    return [
        speed_bar(rows, 1.25, LUCIDRAINS, OURS_APART, long),
        speed_bar(rows, 1.4, LUCIDRAINS, OURS, long[:1]),
        speed_bar(rows, 1.6, LUCIDRAINS, OURS, long[1:]),
        speed_bar(rows, 1.6, TATP22, OURS, long),
        at_least(f">= 0.8 of the rate of {OWN_PRODUCT}, n = 1024 ... 8192, k = {K}", 0.8, share, long[:-1]),
        speed_bar(rows, 15, FUSED, OURS, long[-1:]),
        memory_bar(rows),
    ]
