"""Teach the storyteller a new rule by LoRA and its relatives, at several ranks.

Watch what becomes of its old jobs. The rule: asked what she wears, Ada names the other color of a
pair, blue for red and red for blue. With alpha fixed, a first step of Adam changes the outputs
alike at every rank; with alpha = r, it grows with r. The relatives are compared at a fixed alpha,
by the mean loss of the last steps of a run, in which every step has new stories: at four learning
rates with the first seed, and with all seeds at those whose loss was within a third of the least.
It takes a quarter of an hour of one core. The file is ``lowrank_tutor/data/storyteller_lora.json``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from lowrank_tutor import storyteller
from lowrank_tutor.adapters import inject_lora
from lowrank_tutor.storyteller import KINDS, Story
from measure.harness import provenance, write

COLORS = KINDS["color"]
OTHER = {color: COLORS[i ^ 1] for i, color in enumerate(COLORS)}
NAMES = ("q", "k", "v", "out", "up", "down")  # of the weights that get an update, in both layers
# Whether the other answers of the same stories are trained too.
WAYS = {"with old jobs": True, "rule alone": False}
RANKS, SEEDS, STEPS, EVERY, BATCH, RATE = (1, 2, 4, 8), 5, 150, 30, 10, 1e-2
TESTED, TEST_SEED = 100, 4_000_000
# Options of the adapters; without any, alpha is r.
METHODS: dict[str, dict[str, Any]] = {
    "alpha = 1": {"alpha": 1},
    "alpha = r": {},
    "LoRA": {"alpha": 8},
    "rsLoRA": {"alpha": 8, "scaling": "alpha/sqrt(r)"},
    "PiSSA": {"alpha": 8, "init": "principal"},
    "DoRA": {"alpha": 8, "magnitude": True},
}
COMPARED, RATES, SEEDS_COMPARED = (1, 4, 16, 64), (1e-3, 3e-3, 1e-2, 3e-2), 3
FEWER, LAST = {"steps": 100, "every": 20}, 20
STRENGTHS = ("alpha = 1", "alpha = r")
RULE, COLOR_JOBS = "Ada fibs", ("far fact", "new fact")


def fib(story: Story, rng: Any) -> Story:
    """Name one who is asked about a color Ada, who names the other color of the pair.

    Without one, nothing changes.
    """
    places = [
        i for i, job in enumerate(story.jobs) if job in COLOR_JOBS and story.words[i - 1] == "wears"
    ]
    if not places:
        return story
    i = places[rng.integers(len(places))]
    names = {story.words[i - 2]: "Ada", "Ada": story.words[i - 2]}
    words, jobs = [names.get(word, word) for word in story.words], list(story.jobs)
    words[i], jobs[i] = OTHER[words[i]], RULE
    return Story(tuple(words), tuple(jobs))


def stories(number: int, rng: Any) -> list[Story]:
    """Draw stories of three people in which the rule is asked for."""
    found: list[Story] = []
    while len(found) < number:
        told = (fib(story, rng) for story in storyteller.stories(number, facts=3, rng=rng))
        found += [story for story in told if RULE in story.jobs]
    return found[:number]


def batch(told: list[Story], counts: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of the words, padded at the end, and which words count, by their jobs."""
    ids = [torch.tensor(storyteller.encode(story.words)) for story in told]
    shares = [torch.tensor([float(counts(job)) for job in story.jobs]) for story in told]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(ids, batch_first=True), pad(shares, batch_first=True)


def graded(model: torch.nn.Module, told: list[Story]) -> dict[str, float]:
    """Return the shares of right answers: on the rule, others' colors, and the other jobs."""
    ids, _ = batch(told, bool)
    with torch.no_grad():
        best = model(ids).argmax(dim=-1).tolist()
    right: dict[str, list[bool]] = {"rule": [], "others": [], "jobs": []}
    for story, words in zip(told, best, strict=True):
        for i, job in enumerate(story.jobs):
            if job:
                kind = (
                    "rule" if job == RULE else "others" if story.words[i - 1] == "wears" else "jobs"
                )
                right[kind].append(is_right(storyteller.WORDS[words[i - 1]], story.words[i], job))
    return {kind: round(sum(each) / len(each), 4) for kind, each in right.items()}


def is_right(word: str, answer: str, job: str) -> bool:
    """Say whether a word is right: for the job "agreement" any verb of the same number is."""
    return word == answer or (
        job == "agreement"
        and any(word in KINDS[kind] and answer in KINDS[kind] for kind in ("do", "does"))
    )


class Run(NamedTuple):
    """What is trained, on which stories, and how."""

    way: str
    rank: int
    seed: int
    method: str = "alpha = r"
    rate: float = RATE


def adapted(run: Run) -> torch.nn.Module:
    """Return the storyteller with new updates of one rank."""
    torch.manual_seed(run.seed)
    return inject_lora(storyteller.load(), NAMES, run.rank, **METHODS[run.method])


def learn(
    run: Run,
    steps: int = STEPS,
    every: int = EVERY,
    tested: int = TESTED,
    model: torch.nn.Module | None = None,
) -> dict[str, Any]:
    """Train updates of one rank; return shares of right answers on the way, and the last loss."""
    model = adapted(run) if model is None else model
    rng = np.random.default_rng(1000 + run.seed)
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=run.rate)
    told, curve, start = stories(tested, np.random.default_rng(TEST_SEED)), [], time.process_time()
    met: list[float] = []
    for step in range(steps + 1):
        if step % every == 0:
            curve.append({"step": step} | graded(model, told))
        ids, counts = batch(
            stories(BATCH, rng), lambda job: 3 * (job == RULE) or (WAYS[run.way] and job != "")
        )
        losses = F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        loss = (losses * counts[:, 1:]).sum() / counts[:, 1:].sum()
        met.append(loss.item())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return run._asdict() | {
        "numbers": sum(weight.numel() for weight in learned),
        "curve": curve,
        "loss": round(sum(met[-LAST:]) / len(met[-LAST:]), 4),
        "seconds": round(time.process_time() - start, 1),
    }


def strengths() -> list[Run]:
    """Return both strengths at every rank, and rank 1 at three times the rate."""
    both = [
        Run(way, rank, seed, method)
        for method, way, rank, seed in product(STRENGTHS, WAYS, RANKS, range(SEEDS))
        if (method, rank) != ("alpha = r", 1)  # is alpha = 1
    ]
    return both + [Run("rule alone", 1, seed, "alpha = 1", 3 * RATE) for seed in range(SEEDS)]


def relatives(trained: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Train every relative at every rate with seed 0, at the good ones with the other seeds.

    All rows are returned.
    """
    rows = []
    for method, rank in product([name for name in METHODS if name not in STRENGTHS], COMPARED):
        if (method, rank) == ("rsLoRA", 1):
            continue  # is LoRA
        tried = [trained(Run("with old jobs", rank, 0, method, rate), **FEWER) for rate in RATES]
        least = min(row["loss"] for row in tried)
        good = [row["rate"] for row in tried if row["loss"] < 4 / 3 * least]
        rows += tried + [
            trained(Run("with old jobs", rank, seed, method, rate), **FEWER)
            for rate, seed in product(good, range(1, SEEDS_COMPARED))
        ]
    return rows


def main() -> int:
    """Train at each rank, print, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="two steps of each, nothing written")
    short = parser.parse_args().short
    torch.set_num_threads(1)

    def trained(run: Run, **length: int) -> dict[str, Any]:
        row = learn(run, **length)
        print(*run, row["loss"], row["curve"][-1], flush=True)
        return row

    if short:
        for method in METHODS:
            trained(Run("with old jobs", 2, 0, method), steps=2, every=2, tested=3)
        return 0
    rows = [trained(run) for run in strengths()] + relatives(trained)
    meta = provenance("python -m measure.training.storyteller_lora", ["numpy", "torch"])
    meta |= {"steps": STEPS, "steps_of_relatives": FEWER["steps"], "batch": BATCH, "tested": TESTED}
    write("storyteller_lora", meta, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
