"""Train the storyteller with other kinds of attention, and count right answers.

All are trained alike, and counts are by how many people there are. Left to right, states or a
window take the place of attention in one layer or in both (``task`` "write"). To fill in blanked
words (``task`` "fill"), the model has no mask, but waves that tell each word's place. A run takes
three to six minutes of one core; ``--only NAME ...`` trains some designs, and keeps the rows of the
others. The file is ``lowrank_tutor/data/storyteller_designs.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn import functional as F

from lowrank_tutor import storyteller
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.linformer import linformer_attention, pooling_projection
from lowrank_tutor.states import delta_attention, window_attention
from lowrank_tutor.storyteller.language import LONGEST, Story
from lowrank_tutor.storyteller.model import causal_attention
from measure.harness import DATA, provenance, write

NAME, STEPS, FILL_STEPS, EVERY = "storyteller_designs", 1800, 1200, 300
FACTS, STORIES, ON_THE_WAY = (
    (2, 4, 6, 8),
    200,
    40,
)  # stories of each number of people, at the end and before
SEED, NEWEST, MEAN_OF = 3_000_000, 16, 8
# Of rates, 0.004 and 0.008 gave the same after 200 steps, within 3 points. A Linformer's E learns
# at a tenth of it: at the whole rate it then answered 4 points less.
GROUPS, BATCH, WARM_UP, RATE = 16, 32, 60, 4e-3


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to the newest 16 words, oneself among them."""
    seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen.tril().triu(1 - NEWEST))


def means(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to the newest 16 words, and to means of 8 of the older ones."""
    return window_attention(q, k, v, window=NEWEST, m=MEAN_OF)


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
FILLS = ("attention", "Linformer", "averages", "window")
GROUPED = (
    (1, True),
    (2, False),
    (2, True),
    (3, False),
    (3, True),
    (4, True),
    (8, True),
)  # words in a group, and votes
STORY = (
    "<s> Ada wears red . Ben wears blue . Mia has jam . the cat slept because it was tired . "
    "Ada wears"
)
TALE = (
    "Ada wears red .",
    "Ben wears blue .",
    "now Ada wears pink .",
    "Mia wears gold .",
    "now Ben wears green .",
)


def as_row(right: dict[str, list[bool]]) -> dict[str, float]:
    """Return the shares of right answers, of all and by job."""
    every = [one for answers in right.values() for one in answers]
    shares = {
        f"job_{job.replace(' ', '_')}": sum(answers) / len(answers)
        for job, answers in right.items()
        if answers
    }
    return {
        name: round(share, 4)
        for name, share in ({"answered": sum(every) / len(every)} | shares).items()
    }


def written(model: nn.Module, attend: object, told: Sequence[Story]) -> dict[str, float]:
    """Return the shares of right next words."""
    with torch.no_grad():
        by_job = storyteller.grade(model, told, attend=attend)
    asked = {job: sum(story.jobs.count(job) for story in told) for job in by_job}
    return as_row(
        {
            job: [i < round(share * asked[job]) for i in range(asked[job])]
            for job, share in by_job.items()
        }
    )


def retold(model: nn.Module, attend: object) -> list[dict[str, object]]:
    """Ask after each sentence of a tale what Ada wears.

    The result is the likeliest word, and the chances of two colors.
    """
    rows: list[dict[str, object]] = []
    for sentences in range(1, len(TALE) + 1):
        words = storyteller.encode(" ".join(["<s>", *TALE[:sentences], "Ada wears"]))
        with torch.no_grad():
            chances = model(torch.tensor([words]), attend=attend)[0, -1].softmax(dim=0)
        red, pink = (round(float(chances[word]), 4) for word in storyteller.encode("red pink"))
        says = storyteller.WORDS[int(chances.argmax())]
        rows.append(
            {"task": "tale", "sentences": sentences, "says": says, "red": red, "pink": pink}
        )
    return rows


def grouped() -> list[dict[str, object]]:
    """Let the model see the newest 8 words exactly, and older ones in groups.

    A group has one vote, or many.
    """
    model, told = storyteller.load(), storyteller.stories(STORIES, facts=3, rng=SEED)
    rows: list[dict[str, object]] = []
    exact = torch.empty(0)
    for m, votes in GROUPED:
        heard: list[Tensor] = []

        def attend(
            *heads: Tensor, m: int = m, votes: bool = votes, heard: list[Tensor] = heard
        ) -> Tensor:
            heard.append(window_attention(*heads, window=8, m=m, votes=votes))
            return heard[-1]

        with torch.no_grad():
            says = storyteller.WORDS[int(model(model.encode(STORY), attend=attend)[0, -1].argmax())]
            read = torch.stack(heard)[:, 0, :, -1]  # by all heads, for the last word
            right = storyteller.grade(model, told, attend=attend)["far fact"]
        exact = exact if len(exact) else read
        off = float((read - exact).norm() / exact.norm())
        rows.append(
            {
                "task": "groups",
                "m": m,
                "votes": m if votes else 1,
                "says": says,
                "error": round(off, 4),
            }
        )
        rows[-1] |= {"job_far_fact": round(right, 4), "stories": STORIES}
    return rows


class Placed(nn.Embedding):
    """Words' vectors plus waves of their places.

    Without a mask nothing else tells the order.
    """

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors of words, (batch, n, 64)."""
        turns = torch.arange(ids.shape[-1])[:, None] * 100 ** (-torch.arange(32) / 31)
        return super().forward(ids) + 0.15 * torch.cat([turns.sin(), turns.cos()], dim=1)


class Reader(nn.Module):
    """The storyteller without its mask; with one E = F for each layer where it reads mixtures."""

    def __init__(self, design: str) -> None:
        super().__init__()
        self.design, self.model = design, storyteller.Storyteller()
        placed = Placed(*self.model.embed.weight.shape)
        placed.weight = self.model.embed.weight
        self.model.embed = placed
        self.mixing = nn.ParameterList(pooling_projection(GROUPS, LONGEST) for _ in range(2))
        self.mixing.requires_grad_(design == "Linformer")

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """Return the logits of the word in each place; ``real`` is False for padding."""
        n = ids.shape[1]
        near = torch.ones(n, n, dtype=torch.bool)
        if self.design == "window":
            near = near.tril(NEWEST).triu(-NEWEST)
        seen = ((near & real[:, None]) | torch.eye(n, dtype=torch.bool))[:, None]
        rule = "norm" if self.design == "Linformer" else "sum"

        def whole(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

        # Where a batch is shorter than 96 words, its last window is cut, and counts as a whole one.
        def mixed(e: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
            return lambda q, k, v: linformer_attention(
                q, k, v, e[:n, :n], token_mask=real, rule=rule
            )

        mixes = self.design in ("Linformer", "averages")
        logits: Tensor = self.model(
            ids, attend=[mixed(e) for e in self.mixing] if mixes else [whole, whole]
        )
        return logits


def blanked(told: Sequence[Story], rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Blank every word that tests a job, but one note of a tune.

    The result is words, what is real, and answers or -1.
    """
    longest = max(len(story.words) for story in told)
    ids = torch.full((len(told), longest), storyteller.WORDS.index("."))
    real, answers = torch.zeros(ids.shape, dtype=torch.bool), torch.full(ids.shape, -1)
    for i, (words, jobs) in enumerate(told):
        numbers = torch.tensor(storyteller.encode(words))
        notes = [j for j, job in enumerate(jobs) if job == "copy"]
        asked = [j for j, job in enumerate(jobs) if job and job != "copy"] + rng.permutation(notes)[
            :1
        ].astype(int).tolist()
        answers[i, asked] = numbers[asked]
        numbers[asked] = storyteller.WORDS.index("<s>")
        ids[i, : len(words)], real[i, : len(words)] = numbers, True
    return ids, real, answers


def filled(reader: Reader, told: Sequence[Story]) -> dict[str, float]:
    """Return the shares of blanks that are filled rightly.

    For agreement every verb of the right number is right.
    """
    right: dict[str, list[bool]] = {job: [] for job in storyteller.JOBS}
    verbs = [
        {storyteller.WORDS.index(word) for word in storyteller.KINDS[kind]}
        for kind in ("does", "do")
    ]
    ids, real, answers = blanked(told, np.random.default_rng(SEED))
    with torch.no_grad():
        best = reader(ids, real).argmax(dim=2)
    for i, j in (answers >= 0).nonzero().tolist():
        pair, job = {int(best[i, j]), int(answers[i, j])}, told[i].jobs[j]
        right[job].append(
            len(pair) == 1 or (job == "agreement" and any(pair <= some for some in verbs))
        )
    return as_row(right)


def train_reader(
    design: str, seed: int, steps: int, report: Callable[[int, nn.Module], None]
) -> Reader:
    """Train with the schedule of ``storyteller.train``, on the blanks alone."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    reader = Reader(design)
    groups = [(list(reader.model.parameters()), RATE)]
    if design == "Linformer":
        groups.append((list(reader.mixing.parameters()), RATE / 10))
    optimizer = torch.optim.AdamW(
        [{"params": part} for part, _ in groups], betas=(0.9, 0.98), weight_decay=0.01
    )
    for step in range(1, steps + 1):
        for group, (_, rate) in zip(optimizer.param_groups, groups, strict=True):
            group["lr"] = rate * min(1, step / WARM_UP) * max(0.03, 1 - step / steps)
        ids, real, answers = blanked(storyteller.stories(BATCH, rng=rng), rng)
        loss = F.cross_entropy(reader(ids, real)[answers >= 0], answers[answers >= 0])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            report(step, reader)
    return reader


def trained(
    task: str, design: str, seed: int, steps: int, keep: Path | None
) -> list[dict[str, object]]:
    """Train a design, and return its rows: every 300 steps, and at the end."""
    rows: list[dict[str, object]] = []

    def count(step: int, model: nn.Module, number: int) -> None:
        for facts in FACTS:
            told = storyteller.stories(number, facts=facts, rng=SEED + facts)
            found = (
                filled(model, told)
                if isinstance(model, Reader)
                else written(model, DESIGNS[design], told)
            )
            rows.append(
                {
                    "task": task,
                    "design": design,
                    "seed": seed,
                    "step": step,
                    "facts": facts,
                    "stories": number,
                }
            )
            rows[-1] |= found if step == steps else {"answered": found["answered"]}
        print(
            task, design, seed, step, [row["answered"] for row in rows[-len(FACTS) :]], flush=True
        )

    def report(step: int, model: nn.Module) -> None:
        if step % EVERY == 0 and step < steps:
            count(step, model, ON_THE_WAY)

    if task == "fill":
        model = train_reader(design, seed, steps, report)
    else:
        model = storyteller.train(steps, rng=seed, attend=DESIGNS[design], report=report)
    count(steps, model, STORIES)
    if task == "write":
        rows += [row | {"design": design, "seed": seed} for row in retold(model, DESIGNS[design])]
    if keep:
        torch.save(model.state_dict(), keep / f"{task}_{design.replace(', then ', '_')}_{seed}.pt")
    return rows


def main() -> int:
    """Train, print the shares, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=("write", "fill"), nargs="*", default=["write", "fill"])
    parser.add_argument(
        "--only", nargs="*", choices=sorted({*DESIGNS, *FILLS}), help="some designs alone"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the weights")
    parser.add_argument("--short", action="store_true", help="ten steps, and nothing is written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    meta = provenance("python -m measure.training.storyteller_designs", ["numpy", "torch"])
    meta |= {"steps": STEPS, "fill_steps": FILL_STEPS, "held_out": SEED}
    if not (options.short or options.only):
        write(NAME, meta, [*others("groups"), *grouped()])
    for task, design in [
        *(("write", name) for name in DESIGNS),
        *(("fill", name) for name in FILLS),
    ]:
        if task not in options.task or design not in (options.only or [design]):
            continue
        steps = 10 if options.short else STEPS if task == "write" else FILL_STEPS
        rows = trained(task, design, options.seed, steps, options.keep)
        if not options.short:
            write(NAME, meta, [*others(task, design, options.seed), *rows])
    return 0


def others(task: str, *run: object) -> list[dict[str, object]]:
    """Return the stored rows of other runs; a run is a task, a design, and a seed."""
    path = DATA / f"{NAME}.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    mine = ("write", "tale") if task == "write" else (task,)
    return [
        row
        for row in rows
        if row["task"] not in mine
        or [row.get("design"), row.get("seed")] != (list(run) or [None] * 2)
    ]


if __name__ == "__main__":
    sys.exit(main())
