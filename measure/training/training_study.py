"""Train small masked language models that differ only in their attention, and record their losses step by step.

``python -m measure.training.training_study`` trains every model of ``KINDS`` from every seed on the bytes of Python's
own help texts (``pydoc_data.topics``, whose wording changes with the Python version, so the data name it), two at a time,
each on one thread. Then it times blocks of training steps, all kinds in turn, so that a slow minute meets all of them,
and writes ``lowrank_tutor/data/training_study.json``. It takes an hour and a half on two cores; with
``--resume runs.jsonl`` each run is written to that file when it ends, and a run that the file holds is not repeated.
``--short`` takes a minute and writes nothing.
"""

import argparse
import math
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.attention import linear_attention, orthogonal_features, performer_attention, softmax_attention
from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection
from measure.harness import add_device, interleaved, provenance, runs_of, say_if_busy, write
from measure.training.rivals import Attention, Nothing, local, local_and_averages

WIDTH, HEADS, LAYERS, K, FEATURES = 128, 4, 2, 32, 128
REDRAW_EVERY = 100  # training steps between two draws of a Performer's features
SLOW = 0.05  # rate of E where it learns slowly, as a share of the rate of all else
MASK, SYMBOLS = 256, 257  # 256 bytes, and the sign that hides one
HIDDEN_SHARE = 0.15
VALIDATION_SEED = 10_000
BLOCK, BLOCKS = 20, 9  # training steps that are timed together, and how often


class Sizes(NamedTuple):
    """How long a run is.

    Eight texts of 256 bytes a step, not four of 512: with those exact attention stayed on a plateau for 600 to more
    than 2,000 steps, depending on the seed and on a few spaces in the texts, and the study would have measured that.
    """

    n: int = 256
    batch: int = 8
    steps: int = 2000
    every: int = 100
    learning_rate: float = 2e-3
    warm_up: int = 100
    validation: int = 128


SHORT = Sizes(n=128, batch=4, steps=40, every=20, validation=8)


def attention(attend: Callable[..., torch.Tensor]) -> nn.Module:
    """Make multi-head attention around a function of queries, keys and values."""
    return Attention(WIDTH, HEADS, attend)


def linformer(n: int, k: int = K, **options: Any) -> nn.Module:
    """Make the package's layer."""
    return LinformerSelfAttention(WIDTH, HEADS, n, k, **options)


def layerwise(n: int) -> list[nn.Module]:
    """Make layers that share one learned projection."""
    shared = nn.Parameter(torch.randn(K, n) / math.sqrt(n))
    return [linformer(n, projection=shared) for _ in range(LAYERS)]


class Performer(nn.Module):
    """Performer attention, its features as drawn at first or, in training, drawn anew every so many steps."""

    def __init__(self, redraw_every: int | None = None) -> None:
        super().__init__()
        self.redraw_every, self.steps = redraw_every, 0
        self.register_buffer("features", self.draw())

    @staticmethod
    def draw() -> torch.Tensor:
        """Draw directions, (FEATURES, d)."""
        return orthogonal_features(FEATURES, WIDTH // HEADS)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Mix values v (batch, heads, n, d) by the features of q and k."""
        if self.training and self.redraw_every:
            if self.steps and self.steps % self.redraw_every == 0:
                self.features.copy_(self.draw())
            self.steps += 1
        return self.mix(q, k, v)

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Estimate softmax attention."""
        return performer_attention(q, k, v, features=self.features)


class PerformerReLU(Performer):
    """The attention that the Performer paper calls generalized: features max(0, W x) + 0.001, no softmax meant."""

    def mix(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Average with weights that are products of the features."""
        q, k = (functional.relu(x @ self.features.T / math.sqrt(FEATURES)) + 1e-3 for x in (q, k))
        return q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2)[..., None])


class Kind(NamedTuple):
    """What a model has for its attention, and how fast E learns beside all else."""

    make: Callable[[int], Sequence[nn.Module]]  # the attention of all layers, for n tokens
    rate_of_e: float = 1.0


def averages(n: int) -> list[nn.Module]:
    """Make layers whose projections begin as averages of windows, and are learned."""
    return [linformer(n, projection=nn.Parameter(pooling_projection(K, n))) for _ in range(LAYERS)]


def alike(make: Callable[[int], nn.Module]) -> Callable[[int], Sequence[nn.Module]]:
    """Give every layer an attention made in the same way."""
    return lambda n: [make(n) for _ in range(LAYERS)]


KINDS: dict[str, Kind] = {
    "none": Kind(alike(lambda n: Nothing())),
    "exact": Kind(alike(lambda n: attention(softmax_attention))),
    "linformer k=8": Kind(alike(lambda n: linformer(n, 8))),
    "linformer k=32": Kind(alike(linformer)),
    "linformer k=32, E slow": Kind(alike(linformer), SLOW),
    "linformer k=128": Kind(alike(lambda n: linformer(n, 128))),
    "linformer k=32 headwise": Kind(alike(lambda n: linformer(n, sharing="headwise"))),
    "linformer k=32 layerwise": Kind(layerwise),
    "linformer k=32 random, not learned": Kind(
        alike(lambda n: linformer(n, projection=torch.randn(K, n) / math.sqrt(n)))
    ),
    "linformer k=8 averages, not learned": Kind(alike(lambda n: linformer(n, 8, projection=pooling_projection(8, n)))),
    "linformer k=32 averages, not learned": Kind(alike(lambda n: linformer(n, projection=pooling_projection(K, n)))),
    "linformer k=128 averages, not learned": Kind(
        alike(lambda n: linformer(n, 128, projection=pooling_projection(128, n)))
    ),
    "local window of 33": Kind(alike(lambda n: attention(local(16, reach=16)))),
    "local window and averages": Kind(alike(lambda n: attention(local_and_averages(8)))),
    "linformer k=32 from averages": Kind(averages),
    "linformer k=32 from averages, E slow": Kind(averages, SLOW),
    "linear": Kind(alike(lambda n: attention(linear_attention))),
    "performer m=128": Kind(alike(lambda n: attention(Performer()))),
    "performer m=128 redrawn": Kind(alike(lambda n: attention(Performer(REDRAW_EVERY)))),
    "performer-ReLU m=128 redrawn": Kind(alike(lambda n: attention(PerformerReLU(REDRAW_EVERY)))),
}


class Block(nn.Module):
    """Attention and two linear layers, each added to what came in."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), attention
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pass tokens through, (batch, n, WIDTH)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def waves(n: int) -> torch.Tensor:
    """Return sines and cosines of each place, (n, WIDTH), with wavelengths from 2 pi to 2 pi n."""
    rates = n ** -torch.linspace(0, 1, WIDTH // 2)
    angles = torch.arange(n)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Model(nn.Module):
    """Bytes in, guesses of the hidden bytes out."""

    def __init__(self, kind: str, n: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH)
        self.register_buffer("places", waves(n))
        self.blocks = nn.Sequential(*(Block(attention) for attention in KINDS[kind].make(n)))
        self.norm, self.guess = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits (hidden bytes, 256) of the bytes that are hidden in x (batch, n)."""
        tokens = self.symbols(x.masked_fill(hidden, MASK)) + self.places
        return self.guess(self.norm(self.blocks(tokens)[hidden]))


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bytes to train on and the last tenth, to validate."""
    from pydoc_data.topics import topics

    data = torch.tensor(list("\n".join(topics[name] for name in sorted(topics)).encode()))
    cut = len(data) * 9 // 10
    return data[:cut], data[cut:]


def repeated(trained: torch.Tensor, held_out: torch.Tensor, length: int) -> float:
    """Return the share of the held-out bytes that lie in a passage of this length that was trained on, too."""
    before, after = bytes(trained.tolist()), bytes(held_out.tolist())
    known = {before[at : at + length] for at in range(len(before) - length + 1)}
    inside, end = 0, 0  # bytes counted so far, and where the last passage ended
    for at in range(len(after) - length + 1):
        if after[at : at + length] in known:
            inside += at + length - max(at, end)
            end = at + length
    return inside / len(after)


def draw(data: torch.Tensor, n: int, batch: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut out sequences and hide some bytes; return the bytes and which are hidden, both (batch, n)."""
    starts = torch.randint(len(data) - n, (batch,), generator=generator)
    x = torch.stack([data[start : start + n] for start in starts])
    return x, torch.rand(batch, n, generator=generator) < HIDDEN_SHARE


def loss_of(model: nn.Module, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the hidden bytes, in nats."""
    return functional.cross_entropy(model(x, hidden), x[hidden])


def validate(model: nn.Module, checks: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Return the mean loss over the held-out sequences, each of the same weight."""
    model.eval()
    with torch.no_grad():
        losses = [loss_of(model, x[None], hidden[None]) for x, hidden in zip(*checks, strict=True)]
    model.train()
    return float(torch.stack(losses).mean())


def groups(model: nn.Module, kind: str, rate: float) -> list[dict[str, Any]]:
    """Give the projections along the sequence a rate of their own."""
    ours = {name: p for name, p in model.named_parameters() if name.rpartition(".")[2] in ("e", "f")}
    others = [p for name, p in model.named_parameters() if name not in ours]
    return [{"params": others, "lr": rate}, {"params": list(ours.values()), "lr": rate * KINDS[kind].rate_of_e}]


class Training:
    """A model in training."""

    def __init__(self, kind: str, seed: int, sizes: Sizes, device: str) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.sizes, self.device = sizes, device
        self.generator = torch.Generator().manual_seed(seed)
        self.data, held_out = texts()
        checks = draw(held_out, sizes.n, sizes.validation, torch.Generator().manual_seed(VALIDATION_SEED))
        self.checks = tuple(part.to(device) for part in checks)
        self.model = Model(kind, sizes.n).to(device)
        self.optimizer = torch.optim.Adam(groups(self.model, kind, sizes.learning_rate))
        self.warm_up = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / sizes.warm_up)
        )

    def go_on(self, steps: int) -> None:
        """Train for some steps more."""
        for _ in range(steps):
            batch = draw(self.data, self.sizes.n, self.sizes.batch, self.generator)
            x, hidden = (part.to(self.device) for part in batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss_of(self.model, x, hidden).backward()
            self.optimizer.step(), self.warm_up.step()
        if self.device != "cpu":
            torch.cuda.synchronize()

    def loss(self) -> float:
        """Return the loss on the held-out texts, in nats a byte."""
        return validate(self.model, self.checks)


def train(kind: str, seed: int, sizes: Sizes, device: str = "cpu") -> dict[str, Any]:
    """Train one model; return its losses on the held-out texts and after how many steps."""
    training, curve = Training(kind, seed, sizes, device), []
    for step in range(sizes.every, sizes.steps + 1, sizes.every):
        training.go_on(sizes.every)
        curve.append((step, round(training.loss(), 4)))
    parameters = sum(p.numel() for p in training.model.parameters())
    return {"kind": kind, "seed": seed, "parameters": parameters, "curve": curve}


def seconds_of_a_step(sizes: Sizes, device: str = "cpu") -> dict[str, list[float]]:
    """Time blocks of training steps of every kind, in turn; return the seconds of a step in each block."""
    trainings = {kind: Training(kind, 0, sizes, device) for kind in KINDS}
    blocks = {kind: lambda _run, training=training: training.go_on(BLOCK) for kind, training in trainings.items()}
    timings = interleaved(blocks, BLOCKS, judge=lambda _: None)
    return {kind: [round(seconds / BLOCK, 5) for seconds in timings[kind].seconds] for kind in KINDS}


def main() -> int:
    """Train all, print a line for each run, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="one seed, few steps, nothing written")
    add_device(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--resume", type=Path, help="a file of runs, a line each: to go on with, and to add to")
    arguments = parser.parse_args()
    sizes, seeds = (SHORT, 1) if arguments.short else (Sizes(), arguments.seeds)
    lines, keep = runs_of(arguments.resume)
    done = {(row["kind"], row["seed"]): row for row in lines}
    jobs = [(kind, seed) for seed in range(seeds) for kind in KINDS]
    with ProcessPoolExecutor(2 if arguments.device == "cpu" else 1) as pool:
        runs = [pool.submit(train, *job, sizes, arguments.device) for job in jobs if job not in done]
        for run in as_completed(runs):
            row = run.result()
            done[row["kind"], row["seed"]] = row
            step, loss = row["curve"][-1]
            print(f"{row['kind']:38} seed {row['seed']}: {loss:.3f} nats after {step} steps", flush=True)
            keep(row)
    meta = provenance("python -m measure.training.training_study", ["torch"])
    say_if_busy(meta["machine"])
    seconds = seconds_of_a_step(sizes, arguments.device)
    for kind, each in seconds.items():
        print(f"{kind:38} {1000 * min(each):.0f} to {1000 * max(each):.0f} ms a step")
    if not arguments.short:
        meta |= {"text": f"pydoc_data.topics of Python {platform.python_version()}", "sizes": sizes._asdict()}
        meta |= {"width": WIDTH, "heads": HEADS, "layers": LAYERS, "hidden_share": HIDDEN_SHARE}
        meta |= {"slow_rate_of_e": SLOW, "redraw_every": REDRAW_EVERY}
        meta |= {"seconds_of_a_step": seconds, "held_out_repeats": round(repeated(*texts(), sizes.n), 4)}
        meta |= {
            "definitions": {
                "curve": "steps, loss on the held-out texts in nats a byte",
                "held_out_repeats": f"share of the held-out bytes in passages of {sizes.n} that were trained on, too",
                "seconds_of_a_step": f"of {BLOCKS} blocks of {BLOCK} steps, all kinds in turn, one thread",
            }
        }
        print(f"written: {write('training_study', meta, [done[job] for job in jobs]).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
