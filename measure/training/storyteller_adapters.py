"""Keep two adapters as samples for the page *A microscope*.

They taught the storyteller that Ada fibs, and have rank 8 each. They are trained as in
``storyteller_lora``, with two seeds, in half a minute of one core, and rounded to bfloat16. The
file is ``site/adapters.json``: outside the package, because only the site needs it.
"""

import base64
import json
import sys

import torch

from lowrank_tutor.adapters import lora_state
from measure.harness import DATA, provenance
from measure.training.storyteller_lora import Run, adapted, learn

FILE = DATA.parents[1] / "site" / "adapters.json"
RANK, SEEDS = 8, (0, 2)


def main() -> int:
    """Train, print, and write the file."""
    torch.set_num_threads(1)
    stored, rows = [], []
    for seed in SEEDS:
        run = Run("with old jobs", RANK, seed)
        model = adapted(run)
        rows.append(learn(run, model=model)["curve"][-1])
        print(run, rows[-1], flush=True)
        factors = {name: part for name, part in lora_state(model).items() if part.ndim == 2}
        flat = torch.cat([part.bfloat16().flatten() for part in factors.values()]).view(torch.uint8)
        shapes = {name: list(part.shape) for name, part in factors.items()}
        stored.append(
            {"shapes": shapes, "numbers": base64.b64encode(flat.numpy().tobytes()).decode()}
        )
    meta = provenance("python -m measure.training.storyteller_adapters", ["numpy", "torch"])
    FILE.write_text(
        json.dumps({"meta": meta, "right": rows, "adapters": stored}) + "\n", encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
