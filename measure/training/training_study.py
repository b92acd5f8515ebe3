"""Train small masked language models that differ only in their attention, and record their losses step by step.

``python -m measure.training.training_study`` trains every model of ``KINDS`` from every seed on the
bytes of Python's own help texts (``pydoc_data.topics``, whose wording changes with the Python
version, so the data name it), two at a time, each on one thread. Then it times blocks of training
steps, all kinds in turn, so that a slow minute meets all of them, and writes
``lowrank_tutor/data/training_study.json``. It takes about an hour on two cores; with ``--resume
runs.jsonl`` each run is written to that file when it ends, and a run that the file holds is not
repeated. ``--short`` takes a minute and writes nothing.
"""

import math
import platform
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.attention import (
    linear_attention,
    orthogonal_features,
    performer_attention,
    softmax_attention,
)
from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection
from measure.harness import add_device, provenance, say_if_busy, write
from measure.training import loop
from measure.training.loop import Block, Runs, groups
from measure.training.rivals import Attention, Nothing, local, local_and_averages

WIDTH, HEADS, LAYERS, FEATURES = 128, 4, 2, 128
REDRAW_EVERY = 100  # training steps between two draws of a Performer's features
SLOW = 0.05  # rate of E where it learns slowly, as a share of the rate of all else
MASK, SYMBOLS = 256, 257  # 256 bytes, and the sign that hides one
HIDDEN_SHARE = 0.15
VALIDATION_SEED = 10_000


class Sizes(NamedTuple):
    """How long a run is.

    Eight texts of 256 bytes a step, not four of 512: with those exact attention stayed on a plateau
    for 600 to more than 2,000 steps, depending on the seed and on a few spaces in the texts, and
    the study would have measured that.
    """

    n: int = 256
    batch: int = 8
    steps: int = 2000
    every: int = 100
    learning_rate: float = 2e-3
    warm_up: int = 100
    validation: int = 128


SHORT = Sizes(n=128, batch=4, steps=40, every=20, validation=8)


class Performer(nn.Module):
    """Performer attention; in training its features are drawn anew every so many steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.register_buffer("features", orthogonal_features(FEATURES, WIDTH // HEADS))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Mix values v (batch, heads, n, d) by the features of q and k."""
        if self.training:
            if self.steps and self.steps % REDRAW_EVERY == 0:
                self.features.copy_(orthogonal_features(FEATURES, WIDTH // HEADS))
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


def attention(attend: Callable[[], Callable[..., torch.Tensor]]) -> Callable[[int], nn.Module]:
    """Make multi-head attention around a function of queries, keys and values."""
    return lambda n: Attention(WIDTH, HEADS, attend())


def linformer(k: int, start: str) -> Callable[[int], nn.Module]:
    """Make the package's layer; its E starts at random, or as averages of windows, and is learned, or fixed."""

    def layer(n: int) -> nn.Module:
        e = {"random": None, "averages": pooling_projection(k, n)}[start.removesuffix(", fixed")]
        if e is not None and "fixed" not in start:
            e = nn.Parameter(e)
        return LinformerSelfAttention(WIDTH, HEADS, n, k, projection=e)

    return layer


KINDS: dict[str, Callable[[int], nn.Module]] = {  # the attention of one layer, for n tokens
    "none": lambda n: Nothing(),
    "exact": attention(lambda: softmax_attention),
    "linformer k=8": linformer(8, "random"),
    "linformer k=32": linformer(32, "random"),
    "linformer k=128": linformer(128, "random"),
    "linformer k=8 averages, not learned": linformer(8, "averages, fixed"),
    "linformer k=32 averages, not learned": linformer(32, "averages, fixed"),
    "linformer k=128 averages, not learned": linformer(128, "averages, fixed"),
    "local window of 33": attention(lambda: local(16, reach=16)),
    "local window and averages": attention(lambda: local_and_averages(8)),
    "linformer k=32 from averages, E slow": linformer(32, "averages"),
    "linear": attention(lambda: linear_attention),
    "performer m=128 redrawn": attention(Performer),
    "performer-ReLU m=128 redrawn": attention(PerformerReLU),
}


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
        attentions = [KINDS[kind](n) for _ in range(LAYERS)]
        self.blocks = nn.Sequential(*(Block(each, WIDTH, 2 * WIDTH) for each in attentions))
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


def draw(
    data: torch.Tensor, n: int, batch: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut out sequences and hide some bytes; return the bytes and which are hidden, both (batch, n)."""
    starts = torch.randint(len(data) - n, (batch,), generator=generator)
    x = torch.stack([data[start : start + n] for start in starts])
    return x, torch.rand(batch, n, generator=generator) < HIDDEN_SHARE


class Training(loop.Training):
    """A model in training."""

    def __init__(self, kind: str, seed: int, sizes: Sizes, device: str) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.sizes, self.device = sizes, device
        self.generator = torch.Generator().manual_seed(seed)
        self.data, held_out = texts()
        self.checks = draw(
            held_out, sizes.n, sizes.validation, torch.Generator().manual_seed(VALIDATION_SEED)
        )
        self.model = Model(kind, sizes.n).to(device)
        rate = sizes.learning_rate
        rate_of_e = rate * SLOW if "E slow" in kind else rate
        super().__init__(torch.optim.Adam(groups(self.model, rate, rate_of_e)), sizes.warm_up, None)

    def loss_on(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy of the hidden bytes, in nats."""
        x, hidden = x.to(self.device), hidden.to(self.device)
        return functional.cross_entropy(self.model(x, hidden), x[hidden])

    def loss(self) -> torch.Tensor:
        """Draw a batch, and return its loss."""
        return self.loss_on(*draw(self.data, self.sizes.n, self.sizes.batch, self.generator))

    @torch.no_grad()
    def validate(self) -> float:
        """Return the mean loss over the held-out sequences, each of the same weight, in nats a byte."""
        self.model.eval()
        losses = [
            self.loss_on(x[None], hidden[None]) for x, hidden in zip(*self.checks, strict=True)
        ]
        self.model.train()
        return float(torch.stack(losses).mean())


class Job(NamedTuple):
    """One run."""

    kind: str
    seed: int

    def run(self, sizes: Sizes, device: str) -> dict[str, Any]:
        """Train one model; return its losses on the held-out texts and after how many steps."""
        training, curve = Training(*self, sizes, device), []
        for step in range(sizes.every, sizes.steps + 1, sizes.every):
            training.go_on(sizes.every)
            curve.append((step, round(training.validate(), 4)))
        return {**self._asdict(), "curve": curve}


def main() -> int:
    """Train all, print a line for each run, and write the data."""
    parser = loop.parser_of(__doc__, "one seed, few steps")
    add_device(parser)
    options = parser.parse_args()
    sizes, seeds = (SHORT, 1) if options.short else (Sizes(), options.seeds)
    rows = Runs(options.resume, Job).carry_out(
        [Job(kind, seed) for seed in range(seeds) for kind in KINDS], sizes, options.device,
        say=lambda line: "{kind:38} seed {seed}: {0:.3f} nats".format(line["curve"][-1][1], **line),
        processes=2 if options.device == "cpu" else 1,
    )  # fmt: skip
    meta = provenance("python -m measure.training.training_study", ["torch"])
    say_if_busy(meta["machine"])
    trainings = {kind: Training(kind, 0, sizes, options.device) for kind in KINDS}
    seconds = loop.seconds_of_a_step(
        trainings, steps=2 if options.short else 20, blocks=1 if options.short else 9
    )
    for kind, each in seconds.items():
        print(f"{kind:38} {1000 * min(each):.0f} to {1000 * max(each):.0f} ms a step")
    if not options.short:
        meta |= {
            "text": f"pydoc_data.topics of Python {platform.python_version()}",
            "sizes": sizes._asdict(),
        }
        meta |= {
            "seconds_of_a_step": seconds,
            "held_out_repeats": round(repeated(*texts(), sizes.n), 4),
        }
        print(f"written: {write('training_study', meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
