"""Train the storyteller from a seed, round its weights to 8 bits, grade them, and write them.

It takes about five minutes of one core. The file is
``lowrank_tutor/data/storyteller_weights.json``.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys

import numpy as np
import torch

from lowrank_tutor import storyteller
from measure.harness import DATA, provenance, say_if_busy

STEPS, SEED = 1800, 0
HELD_OUT = {"stories": 300, "seed": 1_000_000}


def rounded(model: torch.nn.Module) -> dict[str, object]:
    """Return the weights as integers from -127 to 127, and each row's scale, in base64."""
    shapes, scales, numbers = {}, [], []
    for name, weight in model.state_dict().items():
        shapes[name] = list(weight.shape)
        rows = np.atleast_2d(weight.numpy()).astype(np.float64)
        scale = (np.abs(rows).max(axis=1, keepdims=True) / 127).astype("<f4")
        scales.append(scale.ravel())
        numbers.append(np.rint(rows / scale).astype(np.int8).ravel())
    packed = {"scales": np.concatenate(scales), "numbers": np.concatenate(numbers)}
    return {
        "shapes": shapes,
        **{name: base64.b64encode(array.tobytes()).decode() for name, array in packed.items()},
    }


def main() -> int:
    """Train, print the grades on the way, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="ten steps, and nothing is written")
    short = parser.parse_args().short
    torch.set_num_threads(1)
    meta = provenance("python -m measure.training.storyteller", ["numpy", "torch"])
    say_if_busy(meta["machine"])
    told = storyteller.stories(3 if short else HELD_OUT["stories"], rng=HELD_OUT["seed"])

    def report(step: int, model: torch.nn.Module) -> None:
        if step % 300 == 0:
            print(f"step {step}: {storyteller.grade(model, told[:100])}", flush=True)

    model = storyteller.train(10 if short else STEPS, rng=SEED, report=report)
    record = {"meta": meta | {"steps": STEPS, "seed": SEED, "held_out": HELD_OUT}} | rounded(model)
    if short:
        return 0
    path = DATA / "storyteller_weights.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    record["meta"]["right"] = storyteller.grade(storyteller.load(), told)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(
        f"written: {path.name}, {path.stat().st_size:,} bytes, in 8 bits {record['meta']['right']}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
