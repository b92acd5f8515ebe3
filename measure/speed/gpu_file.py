"""Keep of a GPU measurement what the book draws.

The command is ``python -m measure.speed.linformer --device cuda --share``. It becomes one file of
``lowrank_tutor/data/gpu/``, named after the card; ``book/measured.md`` draws each file there.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lowrank_tutor.roofline import gpu_floor, gpu_named
from measure.harness import write

PROVENANCE = ("command", "date", "gpu", "versions", "dim", "heads")
CARD = ("name", "memory_bytes", "capability", "driver", "cuda")
TIMES = ("time_min", "time_q1", "time_median", "time_q3")


def check(record: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` where a record lacks its provenance, or no card can have made it."""
    meta, rows = record.get("meta", {}), record.get("rows", [])
    missing = [name for name in PROVENANCE if not meta.get(name)]
    missing += [f"gpu.{name}" for name in CARD if name not in (meta.get("gpu") or {})]
    if missing or not rows:
        raise ValueError(
            f"meta must say {', '.join(missing)}"
            if missing
            else "rows must hold a measurement, got none"
        )
    name = gpu_named(meta["gpu"]["name"], meta["gpu"]["memory_bytes"])
    for row in rows:
        where, times = f"{row['method']} at n = {row['n']}", [row[key] for key in TIMES]
        if not all(math.isfinite(time) and time > 0 for time in times) or times != sorted(times):
            raise ValueError(f"{where}: times must be positive and in order, got {times}")
        if name is None or row["series"] != "core" or row["dtype"] == "float32":
            continue  # a card without peaks here, or what `gpu_floor` does not describe
        d = meta["dim"] // meta["heads"]
        floor = gpu_floor(row["n"], d, meta["heads"], name, k=row["k"], batch=row["batch"]).seconds
        if row["time_min"] < floor:
            raise ValueError(
                f"{where}: time_min must be at least the floor {floor:.2g} s, "
                f"got {row['time_min']:.2g}"
            )


def write_gpu_file(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Check a measurement, write it under the name of the card, and return its path.

    The folder is ``lowrank_tutor/data/gpu/``.
    """
    meta = {**meta, "gpu": meta["machine"]["gpu"]}
    meta = {name: meta[name] for name in PROVENANCE}
    check({"meta": meta, "rows": rows})
    return write(
        f"gpu/{re.sub('[^a-z0-9]+', '-', meta['gpu']['name'].lower()).strip('-')}", meta, rows
    )
