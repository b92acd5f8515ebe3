"""Keep of a GPU measurement what the book draws: ``python -m measure.speed.linformer --device cuda --share``.

It becomes one file of ``lowrank_tutor/data/gpu/``, named after the card; ``book/gpu.md`` draws each file that is there.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lowrank_tutor.roofline import gpu_floor, gpu_named
from measure.harness import DATA

PROVENANCE = ("command", "date", "gpu", "versions", "dim", "heads")
CARD = ("name", "memory_bytes", "capability", "driver", "cuda")
KEPT = ("series", "mode", "dtype", "batch", "n", "k", "method", "runs", "time_min", "time_q1", "time_median", "time_q3")
KEPT += ("peak_bytes",)


def small(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Keep of a measurement what a picture needs: where it comes from, and the time and memory of each method."""
    found = {**meta, "gpu": meta["machine"]["gpu"]}
    return {
        "meta": {name: found[name] for name in PROVENANCE},
        "rows": [
            {name: row[name] for name in KEPT} for row in rows if row["series"] in ("core", "module", "encoder layer")
        ],
    }


def check(record: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` where a record lacks its provenance, or holds what no card can have measured."""
    meta, rows = record.get("meta", {}), record.get("rows", [])
    missing = [name for name in PROVENANCE if not meta.get(name)]
    missing += [f"gpu.{name}" for name in CARD if name not in (meta.get("gpu") or {})]
    if missing or not rows:
        raise ValueError(f"meta must say {', '.join(missing)}" if missing else "rows must hold a measurement, got none")
    name = gpu_named(meta["gpu"]["name"], meta["gpu"]["memory_bytes"])
    for row in rows:
        where, times = f"{row['method']} at n = {row['n']}", [row[key] for key in KEPT if key.startswith("time")]
        if not all(math.isfinite(time) and time > 0 for time in times) or times != sorted(times):
            raise ValueError(f"{where}: times must be positive and in order, got {times}")
        if name is None or row["series"] != "core" or row["dtype"] == "float32":
            continue  # a card without peaks here, or what `gpu_floor` does not describe
        d = meta["dim"] // meta["heads"]
        floor = gpu_floor(row["n"], d, meta["heads"], name, k=row["k"], batch=row["batch"]).seconds
        if row["time_min"] < floor:
            raise ValueError(f"{where}: time_min must be at least the floor {floor:.2g} s, got {row['time_min']:.2g}")


def write_gpu_file(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Check a measurement and write it to ``lowrank_tutor/data/gpu/``, under the name of the card; return its path."""
    record = small(meta, rows)
    check(record)
    folder = DATA / "gpu"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub('[^a-z0-9]+', '-', record['meta']['gpu']['name'].lower()).strip('-')}.json"
    lines = ",\n".join("    " + json.dumps(row) for row in record["rows"])
    path.write_text(f'{{\n  "meta": {json.dumps(record["meta"])},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    return path
