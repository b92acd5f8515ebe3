"""What every benchmark needs: fair timing, and a record of where and how it was measured."""

import datetime
import json
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


def interleaved(
    methods: Mapping[str, Callable[[int], Any]], repeats: int, judge: Callable[[Any], Any], seed: int = 0
) -> dict[str, Timing]:
    """Run all methods in turn, ``repeats`` times, in a new order each round and after one round that does not count.

    So a slow minute of the machine meets all of them. ``judge`` looks at each result outside the timed part. A method
    that raises is not run again.
    """
    order = list(methods)
    shuffle = random.Random(seed).shuffle
    timings = {name: Timing([], [], None) for name in methods}
    for run in range(-1, repeats):
        shuffle(order)
        for name in order:
            if timings[name].error is not None:
                continue
            start = time.perf_counter()
            try:
                result = methods[name](run)
            except Exception as problem:  # noqa: BLE001  a peer may fail in any way, and that is a finding
                timings[name] = timings[name]._replace(error=f"{type(problem).__name__}: {problem}")
                continue
            seconds = time.perf_counter() - start
            if run >= 0:
                timings[name].seconds.append(seconds)
                timings[name].notes.append(judge(result))
    return timings


def _cpu() -> str:
    """Name the processor, as the system does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def provenance(command: str, packages: Sequence[str]) -> dict[str, Any]:
    """Describe machine, software and day, without any name that tells whose machine it is."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "load_average": [round(load, 2) for load in os.getloadavg()],  # at the start, over 1, 5 and 15 minutes
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def write(name: str, meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write ``lowrank_tutor/data/<name>.json``, one row a line, and return its path."""
    DATA.mkdir(exist_ok=True)
    path = DATA / f"{name}.json"
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    end = {"load_average_at_end": [round(load, 2) for load in os.getloadavg()]}
    if "machine" in meta:  # what does not depend on the machine leaves it out
        meta = {**meta, "machine": {**meta["machine"], **end}}
    head = json.dumps(meta, indent=2).replace("\n", "\n  ")
    path.write_text(f'{{\n  "meta": {head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    return path
