"""Run every cut of SmolLM2-135M on three sets of texts, and write what it costs.

One core, under two hours; what the file of ``--resume`` holds is not run again. Nothing is trained.
A row is the loss, in nats a token after the first 64, of four pieces of 256 or 1,024 tokens. Its
``error`` is the norm of the errors of all tables over that of the tables, all layers and heads
together, inside the cut model: against exact tables for the inputs that the cut model has.
``drift`` is the same against the tables of the whole model on the same texts, which is what the
storyteller's figure shows. Both are null where no table was computed. The file is
``lowrank_tutor/data/real_model.json``.
"""

import argparse
import ctypes
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from measure.harness import provenance, write
from measure.real_model import study as of
from measure.real_model.texts import SETS

PINNED = Path(__file__).parents[2] / "requirements-smollm.txt"
ROUNDED = (
    "The file has the matrices of layers in 4 bits, with a scale and a least value for each 32 "
    "numbers, 5 bits a number in all, and the embedding in 8 bits. Every cut is of these rounded "
    "weights, computed with in float32, and each loss is compared with theirs. A cut at 31.25% of "
    "the numbers of a weight would take as much memory in 16 bits as these 5 bits do."
)


class Found:
    """What was found so far, by name, and a file that keeps it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path and path.exists() else ""
        self.by_name = {name: value for name, value in map(json.loads, text.splitlines())}

    def once(self, name: str, find: Callable[[], Any]) -> Any:
        """Return what was found under a name, or find it and keep it."""
        if name not in self.by_name:
            start = time.process_time()
            self.by_name[name] = find()
            print(f"{time.process_time() - start:6.1f} s  {name}", flush=True)
            if self.path:
                with self.path.open("a", encoding="utf-8") as file:
                    print(json.dumps([name, self.by_name[name]]), file=file)
        return self.by_name[name]


def keep_memory() -> None:
    """Let glibc keep freed tables for the next ones: half the time of texts of 1,024 tokens."""
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block gets pages of its own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: none go back


def package() -> dict[str, Any]:
    """Return which package has the weights, and checksums of it and of its file."""
    name, _, rest = PINNED.read_text(encoding="utf-8").strip().partition("==")
    version, _, digest = rest.partition(" --hash=sha256:")
    spec: Any = find_spec(name.replace("-", "_"))
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    file = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "package": name,
        "version": version,
        "sha256": digest,
        "file": path.name,
        "file_sha256": file,
    }


def run(study: of.Study, found: Found, short: bool) -> dict[str, list[Any]]:
    """Run all cases, or a few, and return what was found, by kind."""
    ways = {name: getattr(study, name) for name in ("rows", "jobs", "continuations", "uncut")}
    parts: dict[str, list[Any]] = {kind: [] for kind in ways}
    for kind, case in of.work(study, short):
        name = f"{kind}: {case.cut} {case.setting} {case.length} {' '.join(case.texts)}"
        parts[kind] += found.once(name, lambda way=ways[kind], case=case: list(way(case)))
    return parts


def with_uncut(rows: list[Any], uncut: list[Any]) -> list[Any]:
    """Add to each row the loss of the whole model on the same pieces."""
    known = {(one["text"], one["length"], one["seed"]): one["losses"] for one in uncut}
    return [
        row | {"uncut": round(statistics.mean(known[key][: row["pieces"]]), 4)}
        for row in rows
        for key in [(row["text"], row["length"], row["seed"])]
    ]


def main() -> int:
    """Run what is missing, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="a few cuts of a few tokens, nothing written"
    )
    parser.add_argument("--resume", type=Path, default=Path("_build/real_model.jsonl"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    command = "python -m measure.real_model"
    meta = provenance(command, ["torch", "numpy", "gguf", "tokenizers"]) | package()
    study = of.Study(short=args.short)
    parts = run(study, Found(None if args.short else args.resume), args.short)
    if not args.short:
        meta |= {"weights": ROUNDED, "licenses": study.texts["licenses"]} | of.ABOUT
        pieces = [study.model.decode(study.pieces(text, 0, 256)[0]) for text in SETS]
        meta |= {"start": of.START, "pieces": dict(zip(SETS, pieces, strict=True))}
        parts["rows"] = with_uncut(parts["rows"], parts.pop("uncut"))
        write("real_model", meta, **parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
