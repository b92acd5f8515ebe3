"""Train the storyteller with other kinds of attention, and count right answers.

States or a window take the place of attention in one layer or in both. All are trained alike, and
they are asked about eight people. A run takes three to six minutes of one core, and rows of other
runs stay as they are. The file is ``lowrank_tutor/data/storyteller_designs.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lowrank_tutor import storyteller
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.states import delta_attention
from lowrank_tutor.storyteller.model import causal_attention
from measure.harness import DATA, provenance, write

NAME, STEPS, EVERY, SEED = "storyteller_designs", 1800, 300, 3_000_000
FACTS, STORIES, ON_THE_WAY = 8, 200, 40  # people; stories at the end, and before
NEWEST = 16


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to the newest 16 words, oneself among them."""
    seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen.tril().triu(1 - NEWEST))


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keep the sums of linear attention."""
    return linear_attention(q, k, v, causal=True)


def delta(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keep a state that the delta rule writes, with keys of length 1 and beta 1."""
    return delta_attention(q / 4, F.normalize(k, dim=3), v, torch.ones(k.shape[:3]), chunk=128)


DESIGNS: dict[str, list[Callable[[Tensor, Tensor, Tensor], Tensor]]] = {
    "attention": [causal_attention, causal_attention],
    "linear": [linear, linear],
    "delta": [delta, delta],
    "window": [window, window],
    "window, then attention": [window, causal_attention],
    "linear, then attention": [linear, causal_attention],
    "attention, then window": [causal_attention, window],
}


def shares(model: nn.Module, design: str, number: int) -> dict[str, float]:
    """Return the shares of right answers about eight people, of all and by job."""
    told = storyteller.stories(number, facts=FACTS, rng=SEED + FACTS)
    with torch.no_grad():
        by_job = storyteller.grade(model, told, attend=DESIGNS[design])
    asked = {job: sum(story.jobs.count(job) for story in told) for job in by_job}
    right = sum(share * asked[job] for job, share in by_job.items())
    found = {f"job_{job.replace(' ', '_')}": share for job, share in by_job.items()}
    found = {"answered": right / sum(asked.values())} | found
    return {name: round(share, 4) for name, share in found.items()}


def trained(design: str, seed: int) -> list[dict[str, object]]:
    """Train a design, and return what it answers on the way, and by job at the end."""
    rows: list[dict[str, object]] = []

    def count(step: int, model: nn.Module) -> None:
        if step % EVERY == 0:
            found = shares(model, design, STORIES if step == STEPS else ON_THE_WAY)
            run = {"design": design, "seed": seed, "step": step, "facts": FACTS}
            rows.append(run | (found if step == STEPS else {"answered": found["answered"]}))
            print(rows[-1], flush=True)

    storyteller.train(STEPS, rng=seed, attend=DESIGNS[design], report=count)
    return rows


def main() -> int:
    """Train, print the shares, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="ten steps, nothing written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.short:
        print(shares(storyteller.train(10, attend=DESIGNS["delta"]), "delta", 2))
        return 0
    meta = provenance("python -m measure.training.storyteller_designs", ["numpy", "torch"])
    meta |= {"steps": STEPS, "stories": STORIES, "held_out": SEED + FACTS}
    path = DATA / f"{NAME}.json"
    for design in DESIGNS:
        rows = trained(design, options.seed)
        old = json.loads(path.read_text("utf-8"))["rows"]
        mine = [design, options.seed]
        write(NAME, meta, [*(r for r in old if [r["design"], r["seed"]] != mine), *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
