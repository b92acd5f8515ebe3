"""Keep an adapter as a sample for the page *A microscope*.

It taught the storyteller that Ada fibs, at rank 8, as in ``storyteller_lora``, in a quarter of a
minute of one core, and is rounded to bfloat16. The file is ``site/adapter.json``: outside the
package, because only the site needs it.
"""

import base64
import json
import sys

import torch

from lowrank_tutor.caches import lora_state
from measure.harness import DATA, provenance
from measure.training.storyteller_lora import Run, adapted, learn

RUN = Run("with old jobs", rank=8, seed=0)


def main() -> int:
    """Train, print, and write the file."""
    torch.set_num_threads(1)
    model = adapted(RUN)
    print(learn(RUN, model=model)["curve"][-1])
    factors = {name: part for name, part in lora_state(model).items() if part.ndim == 2}
    flat = torch.cat([part.bfloat16().flatten() for part in factors.values()]).view(torch.uint8)
    stored = {
        "meta": provenance("python -m measure.training.storyteller_adapter", ["numpy", "torch"]),
        "shapes": {name: list(part.shape) for name, part in factors.items()},
        "numbers": base64.b64encode(flat.numpy().tobytes()).decode(),
    }
    path = DATA.parents[1] / "site" / "adapter.json"
    path.write_text(json.dumps(stored) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
