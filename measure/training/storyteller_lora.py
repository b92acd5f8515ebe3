"""Teach the storyteller a new rule by LoRA, at several ranks, and watch what becomes of its old jobs.

The rule: asked what she wears, Ada names the other color of a pair, blue for red and red for blue. It takes some
minutes of one core. The file is ``lowrank_tutor/data/storyteller_lora.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from lowrank_tutor import storyteller
from lowrank_tutor.caches import inject_lora
from lowrank_tutor.storyteller import KINDS, Story
from measure.harness import provenance, write

COLORS = KINDS["color"]
OTHER = {color: COLORS[i ^ 1] for i, color in enumerate(COLORS)}
NAMES = ("q", "k", "v", "out", "up", "down")  # of the weights that get an update, in both layers
# Whether the other answers of the same stories are trained too.
WAYS = {"with old jobs": True, "rule alone": False}
RANKS, SEEDS, STEPS, EVERY, BATCH, RATE = (1, 2, 4, 8), 3, 150, 30, 10, 1e-2
TESTED, TEST_SEED = 100, 4_000_000
RULE, COLOR_JOBS = "Ada fibs", ("far fact", "new fact")


def fib(story: Story, rng: Any) -> Story:
    """Name one who is asked about a color Ada, and let her name the other color of the pair; without one, no change."""
    places = [i for i, job in enumerate(story.jobs) if job in COLOR_JOBS and story.words[i - 1] == "wears"]
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
    """Return the shares of right answers: of the rule, of the colors of others, and of the other jobs."""
    ids, _ = batch(told, bool)
    with torch.no_grad():
        best = model(ids).argmax(dim=-1).tolist()
    right: dict[str, list[bool]] = {"rule": [], "others": [], "jobs": []}
    for story, words in zip(told, best, strict=True):
        for i, job in enumerate(story.jobs):
            if job:
                kind = "rule" if job == RULE else "others" if story.words[i - 1] == "wears" else "jobs"
                right[kind].append(is_right(storyteller.WORDS[words[i - 1]], story.words[i], job))
    return {kind: round(sum(each) / len(each), 4) for kind, each in right.items()}


def is_right(word: str, answer: str, job: str) -> bool:
    """Say whether a word is right: for the job "agreement" any verb of the same number is."""
    return word == answer or (
        job == "agreement" and any(word in KINDS[kind] and answer in KINDS[kind] for kind in ("do", "does"))
    )


def learn(
    way: str, rank: int, seed: int, steps: int = STEPS, every: int = EVERY, tested: int = TESTED
) -> dict[str, Any]:
    """Train updates of one rank, and return the shares of right answers on the way."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(1000 + seed)
    model = inject_lora(storyteller.load(), NAMES, rank)
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=RATE)
    told, curve, start = stories(tested, np.random.default_rng(TEST_SEED)), [], time.process_time()
    for step in range(steps + 1):
        if step % every == 0:
            curve.append({"step": step} | graded(model, told))
        ids, counts = batch(stories(BATCH, rng), lambda job: 3 * (job == RULE) or (WAYS[way] and job != ""))
        losses = F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
        optimizer.zero_grad()
        torch.autograd.backward((losses * counts[:, 1:]).sum() / counts[:, 1:].sum())
        optimizer.step()
    numbers = sum(weight.numel() for weight in learned)
    return {
        "way": way,
        "rank": rank,
        "seed": seed,
        "numbers": numbers,
        "curve": curve,
        "seconds": round(time.process_time() - start, 1),
    }


def main() -> int:
    """Train at each rank, print, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="two steps each, and nothing is written")
    parser.add_argument("--way", choices=WAYS, help="one way alone, and nothing is written but what can be resumed")
    parser.add_argument("--resume", type=Path, help="a file of finished runs, one a line; new ones are added")
    options = parser.parse_args()
    torch.set_num_threads(1)
    meta = provenance("python -m measure.training.storyteller_lora", ["numpy", "torch"])
    lines = options.resume.read_text("utf-8").splitlines() if options.resume and options.resume.exists() else []
    done = {(row["way"], row["rank"], row["seed"]): row for row in map(json.loads, lines)}
    rows = []
    for way, rank, seed in product([options.way] if options.way else WAYS, RANKS, range(SEEDS)):
        length = {"steps": 2, "every": 2, "tested": 3} if options.short else {}
        row = done.get((way, rank, seed)) or learn(way, rank, seed, **length)
        rows.append(row)
        print(row["way"], row["rank"], row["seed"], row["curve"][-1], flush=True)
        if options.resume and (way, rank, seed) not in done:
            with options.resume.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    if not (options.short or options.way):
        settings = {"steps": STEPS, "batch": BATCH, "rate": RATE, "tested": TESTED}
        write("storyteller_lora", meta | settings, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
