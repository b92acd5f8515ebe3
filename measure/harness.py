"""Time methods fairly, and record where and how they were measured."""

import datetime
import json
import math
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parents[1] / "lowrank_tutor" / "data"


class Timing(NamedTuple):
    """Times of one method, and what was found out about each of its results."""

    seconds: list[float]
    notes: list[Any]
    error: str | None

    @property
    def best(self) -> float:
        """The fastest run: what is added to it is other work of the machine."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The bounds of the middle half of the runs."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return low, high


def wall_clock(function: Callable[[int], Any], run: int) -> tuple[float, Any]:
    """Run a function, and return the seconds it took and its result."""
    start = time.perf_counter()
    result = function(run)
    return time.perf_counter() - start, result


def processor_clock(function: Callable[[int], Any], run: int) -> tuple[float, Any]:
    """Run a function, and return the seconds that this process computed.

    Others on the machine do not stretch them.
    """
    start = time.process_time()
    result = function(run)
    return time.process_time() - start, result


def interleaved(
    methods: Mapping[str, Callable[[int], Any]],
    repeats: int,
    judge: Callable[[Any], Any],
    seed: int = 0,
    *,
    clock: Callable[[Callable[[int], Any], int], tuple[float, Any]] = wall_clock,
    limit: float = math.inf,
    least: int = 3,
) -> dict[str, Timing]:
    """Run all methods in turn, ``repeats`` times, in a new order each round.

    So a slow minute of the machine meets all of them. One round that does not count comes first.
    ``judge`` looks at each result outside the timed part. A method that raises is not run again.
    One that would spend more than ``limit`` seconds, by its time in the first round, gets fewer
    runs, but not fewer than ``least``; they are spread over the rounds.
    """
    order = list(methods)
    shuffle = random.Random(seed).shuffle
    timings = {name: Timing([], [], None) for name in methods}
    runs = dict.fromkeys(methods, repeats)
    for run in range(-1, repeats):
        shuffle(order)
        for name in order:
            if timings[name].error is not None or not due(run, runs[name], repeats):
                continue
            try:
                seconds, result = clock(methods[name], run)
            except Exception as problem:  # noqa: BLE001  a peer may fail in any way, and that is a finding
                timings[name] = timings[name]._replace(error=f"{type(problem).__name__}: {problem}")
                continue
            if run >= 0:
                timings[name].seconds.append(seconds)
                timings[name].notes.append(judge(result))
            elif seconds * repeats > limit:
                runs[name] = min(repeats, max(least, int(limit / seconds)))
            del result  # before the next method asks for memory
    return timings


def due(run: int, runs: int, repeats: int) -> bool:
    """Say whether a method that gets ``runs`` of ``repeats`` rounds runs in this one.

    In round -1 every method does.
    """
    return run < 0 or run * runs // repeats > (run - 1) * runs // repeats


def say_if_busy(machine: Mapping[str, Any]) -> None:
    """Print a warning where others use the machine too."""
    if machine["load_average"][0] > machine["cores"] / 4:
        print(
            f"The machine is busy (load average {machine['load_average'][0]}): "
            "the times below will show it."
        )


def _cpu() -> str:
    """Name the processor, as the system does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def load_now(name: str) -> dict[str, list[float]]:
    """Return how busy the machine is, over 1, 5 and 15 minutes."""
    return {name: [round(load, 2) for load in os.getloadavg()]}


def provenance(command: str, packages: Sequence[str]) -> dict[str, Any]:
    """Describe machine, software and day, without any name that tells whose machine it is."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            **load_now("load_average"),  # at the start
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }


def write(name: str, meta: Mapping[str, Any], rows: Sequence[Any], **more: Sequence[Any]) -> Path:
    """Write ``lowrank_tutor/data/<name>.json``, one entry or row a line, and return its path.

    ``more`` are further lists beside the rows, by name.
    """
    # What does not depend on the machine leaves it out; rows that were taken over keep the load of
    # their own day.
    if "load_average_at_end" not in meta.get("machine", {"load_average_at_end": None}):
        meta = {**meta, "machine": meta["machine"] | load_now("load_average_at_end")}
    path = DATA / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = ",\n".join(
        f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in meta.items()
    )
    parts = [f'  "meta": {{\n{entries}\n  }}']
    for key, listed in {"rows": rows, **more}.items():
        lines = ",\n".join("    " + json.dumps(row) for row in listed)
        parts.append(f'  "{key}": [\n{lines}\n  ]')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return path
