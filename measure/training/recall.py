"""Train small causal models, all alike, to recall pairs, and count what each design keeps.

A pair is a key and a value. A text tells 2 to 128 pairs of 128 keys and 128 values, paired anew in
every text, and then asks for all of them in a new order. One model of each design serves all loads:
each batch draws its load, and has 768 tokens, so that small loads have more texts. A model has two
layers, each with two heads of 16 numbers; queries, keys, and values pass through a convolution over
three tokens, and nothing else tells the order. All designs train for the same steps on the same
schedule. Each of two rates is tried on a whole run of seed 0, and the one with more right answers
on texts for validation trains further seeds: 1 and 2, or 1 alone where more than 99% of the answers
of every load were right. At last, both kinds of states, which learn late, train for three times as
many steps from seeds 0 and 1. The file is ``lowrank_tutor/data/recall.json``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lowrank_tutor.caches import kv_cache_numbers
from lowrank_tutor.states import delta_attention, window_attention
from lowrank_tutor.storyteller.model import causal_attention
from measure.harness import provenance, write
from measure.training.loop import Block, Runs, Training, parser_of
from measure.training.storyteller_designs import NEWEST, linear, window

NAME = "recall"
SYMBOLS, LOADS, TOKENS = 128, (2, 4, 8, 16, 32, 64, 128), 768
DIM, HEADS, WIDTH = 64, 2, 16
LATENT, MEAN_OF = 16, 8
STEPS, WARM_UP, RATES = 600, 100, (0.003, 0.01)
VALIDATION, TEST, HELD_OUT = 2, 3, 1_000_000  # the last: where seeds of held-out texts begin
ASKED = {VALIDATION: 1024, TEST: 2048}  # questions of each load


def delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, keep: Tensor) -> Tensor:
    """Keep a state that the gated delta rule writes, with queries and keys of length 1."""
    q, k = F.normalize(q, dim=3), F.normalize(k, dim=3)
    log_decay = F.logsigmoid(keep + 4)  # begins by forgetting little
    return F.rms_norm(
        delta_attention(q, k, v, beta.sigmoid(), log_decay=log_decay, chunk=128), (WIDTH,)
    )


def means(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to the newest 16 tokens, and to means of 8 of the older ones."""
    return window_attention(q, k, v, window=NEWEST, m=MEAN_OF)


KINDS: dict[str, Callable[..., Tensor]] = {
    "attention": causal_attention, "window": window, "means": means, "linear": linear,
    "delta": delta, "latents": causal_attention,
}  # fmt: skip
HYBRIDS = (
    "window, then attention",
    "attention, then window",
    "delta, then attention",
    "attention, then delta",
)
DESIGNS = (*KINDS, *HYBRIDS)


def layers(design: str) -> tuple[str, str]:
    """Return the kinds of both layers."""
    first, _, last = design.partition(", then ")
    return first, last or first


def kept(kind: str, n: int) -> int:
    """Count the numbers a layer keeps after n tokens, besides its convolution's two tokens."""
    if kind in ("linear", "delta"):
        return HEADS * WIDTH * (WIDTH + (kind == "linear"))  # the sum of the keys, too
    if kind == "latents":
        return n * kv_cache_numbers(1, latent=LATENT)
    averaged = max(0, n - NEWEST) // MEAN_OF
    tokens = {"window": min(n, NEWEST), "means": n - averaged * (MEAN_OF - 1)}.get(kind, n)
    return tokens * kv_cache_numbers(1, heads=HEADS, width=WIDTH)


class Attention(nn.Module):
    """Projections, a convolution over three tokens, and attention of one kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        inner = HEADS * WIDTH
        self.kind = kind
        self.gates = nn.Linear(DIM, 2 * HEADS) if kind == "delta" else nn.Identity()
        self.sizes = [inner, LATENT] if kind == "latents" else [inner] * 3
        self.into, self.out = (
            nn.Linear(DIM, sum(self.sizes), bias=False),
            nn.Linear(inner, DIM, bias=False),
        )
        self.taps = nn.Parameter(torch.empty(3, sum(self.sizes)).uniform_(-1, 1) / math.sqrt(3))
        self.up = nn.Linear(LATENT, 2 * inner, bias=False) if kind == "latents" else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Mix the tokens, x (batch, n, 64)."""
        y = F.pad(self.into(x), (0, 0, 2, 0))
        y = sum(tap * y[:, i : i + x.shape[1]] for i, tap in enumerate(self.taps))
        q, *rest = y.split(self.sizes, dim=2)
        if self.kind == "latents":
            rest = list(self.up(rest[0]).chunk(2, dim=2))
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (q, *rest))
        further = self.gates(x).transpose(1, 2).chunk(2, dim=1) if self.kind == "delta" else ()
        mixed: Tensor = self.out(KINDS[self.kind](q, k, v, *further).transpose(1, 2).flatten(2))
        return mixed


class Model(nn.Module):
    """Two blocks of attention and a feedforward network; the logits are those of the 128 values."""

    def __init__(self, design: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(2 * SYMBOLS, DIM)
        self.blocks = nn.Sequential(
            *(Block(Attention(kind), DIM, 2 * DIM) for kind in layers(design))
        )
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, SYMBOLS, bias=False)

    def forward(self, ids: Tensor, asked: int) -> Tensor:
        """Return the logits of the values that the last ``asked`` tokens ask for."""
        logits: Tensor = self.head(self.norm(self.blocks(self.embed(ids))[:, -asked:]))
        return logits


def texts(number: int, load: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return texts (number, 3 load) of pairs and questions, and the answers (number, load)."""
    keys, values, order = (
        torch.rand(number, size, generator=generator).argsort(dim=1)[:, :load]
        for size in (SYMBOLS, SYMBOLS, load)
    )
    told = torch.stack([keys, values + SYMBOLS], dim=2).flatten(1)
    return torch.cat([told, keys.gather(1, order)], dim=1), values.gather(1, order)


def graded(model: Model, load: int, seed: int) -> float:
    """Return the share of right answers on held-out texts."""
    generator = torch.Generator().manual_seed(HELD_OUT + seed)
    ids, answers = texts(ASKED[seed % 10] // load, load, generator)
    with torch.no_grad():
        right = model(ids, load).argmax(dim=2) == answers
    return round(float(right.double().mean()), 4)


class PairsTraining(Training):
    """Training on texts of pairs; each batch has one load."""

    def __init__(self, design: str, rate: float, seed: int, steps: int) -> None:
        torch.manual_seed(seed)
        self.model, self.generator = Model(design), torch.Generator().manual_seed(seed)
        weights = self.model.parameters()
        super().__init__(
            torch.optim.AdamW(weights, rate, (0.9, 0.98), weight_decay=0.01), WARM_UP, steps
        )

    def loss(self) -> Tensor:
        """Draw a load and texts; return the loss of the answers."""
        load = LOADS[int(torch.randint(len(LOADS), (1,), generator=self.generator))]
        ids, answers = texts(TOKENS // (3 * load), load, self.generator)
        return F.cross_entropy(self.model(ids, load).flatten(0, 1), answers.flatten())


class Job(NamedTuple):
    """One run."""

    design: str
    rate: float
    seed: int
    steps: int

    def run(self) -> dict[str, Any]:
        """Train, and return the shares of right answers by load, for validation and of the test."""
        torch.set_num_threads(1)
        training = PairsTraining(*self)
        training.go_on(self.steps)
        seed = 10 * (self.seed + 1)
        parts = {"validation": VALIDATION, "test": TEST}
        return self._asdict() | {
            name: [graded(training.model, load, seed + part) for load in LOADS]
            for name, part in parts.items()
        }


def chosen(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return for each design the rate of seed 0 with the most right answers in validation.

    All loads count.
    """
    found = sorted(
        (sum(row["validation"]), row["rate"], row["design"]) for row in rows if row["seed"] == 0
    )
    best = {design: rate for _, rate, design in found}
    return {design: best[design] for design in DESIGNS}


def described(row: dict[str, Any]) -> str:
    """Lay one run out for the eye."""
    return f"{row['design']:18} rate {row['rate']:g} seed {row['seed']}: {row['test']}"


def main() -> int:
    """Train all designs at both rates, then further seeds at the better one, and write the data."""
    options = parser_of(__doc__, "few steps, one rate and seed").parse_args()
    steps, seeds, rates = (4, 1, RATES[:1]) if options.short else (STEPS, options.seeds, RATES)
    meta = provenance("python -m measure.training.recall", ["torch"])
    runs = Runs(options.resume, Job)

    def train(*jobs: tuple[str, float, int], longer: int = 1) -> list[dict[str, Any]]:
        every_job = [Job(*job, longer * steps) for job in jobs]
        return runs.carry_out(every_job, say=described, processes=options.processes)

    rows = train(*((design, rate, 0) for design in DESIGNS for rate in rates))
    best = chosen(rows)
    enough = {
        row["design"]
        for row in rows
        if row["rate"] == best[row["design"]] and min(row["validation"]) > 0.99
    }
    for seed in range(1, seeds):
        rows += train(
            *((name, best[name], seed) for name in DESIGNS if seed == 1 or name not in enough)
        )
    if not options.short:
        meta |= {"steps": STEPS, "tokens_of_a_batch": TOKENS, "loads": LOADS, "rates": best}
        meta["kept"] = {
            name: [sum(kept(kind, 2 * load) for kind in layers(name)) for load in LOADS]
            for name in DESIGNS
        }
        states = [
            (design, best[design], seed) for seed in range(2) for design in ("linear", "delta")
        ]
        meta["longer"] = train(*states, longer=3)
        print(f"written: {write(NAME, meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
