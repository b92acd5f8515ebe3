"""Train small encoders on long inputs, one with each kind of attention.

All are trained for the same number of steps.

Two tasks, both made from the source files of Python packages that the book's own requirements
install. In a text of 512 bytes, 16 bytes in a row are replaced by 16 equal signs, of 8 kinds of
sign, and 16 other bytes by one that asks:

- *passage*: which kind of sign is it? Without the passage one can only guess: 1 in 8.
- *order*: there are two passages, of different kinds. Which kind comes first? The same signs in
  another order have another answer, so that to know both signs without their order gives half of
  the answers.

``python -m measure.training.long_study`` trains every kind from seed 0 at both ``RATES``, keeps the
rate with the more right answers on the validation texts, and trains from other seeds at that rate:
all for 240 steps on the passage, and for 360 on the order, which takes longer to learn. The rate
rises for 50 steps and falls linearly to a twentieth. No text that a run is scored on is from a file
that training texts are from. Places are learned, from a start in waves: from waves a tenth as high,
exact attention took longer to learn the order. With ``--resume runs.jsonl`` every run is kept in
that file when it ends, and is not repeated. It writes ``lowrank_tutor/data/long_study.json``.
``--short`` takes seconds and writes nothing.
"""

import math
import random
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.attention import linear_attention
from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection
from measure.harness import provenance, write
from measure.training import loop
from measure.training.loop import Block, Runs
from measure.training.rivals import Attention, Nothing, local, local_and_averages

PACKAGES = (
    "numpy scipy sklearn torch sympy matplotlib sphinx docutils IPython networkx sqlalchemy jedi "
    "pygments nbconvert hypothesis mypy"
).split()
WIDTH, HEADS, HIDDEN, LAYERS, K, BLOCK = 64, 2, 128, 2, 32, 16
RATES = (2e-3, 5e-3)
TASKS = {"passage": 1, "order": 2}  # passages in a text
SIGNS, RUN, ASKED = 8, 16, 16  # kinds of signs, signs in a passage, questions in a text
QUESTION = 256 + SIGNS  # the sign that asks; kinds follow the 256 bytes
COUNTS = "0123456789abcdefg"  # right answers in a text, a letter each


class Sizes(NamedTuple):
    """How long the texts are, how many, and how long a model trains on them."""

    n: int = 512
    batch: int = 4
    texts: int = 400  # of a package, to train on
    held_out: tuple[int, int] = (10, 20)  # of a package, to validate and to test
    steps: tuple[int, int] = (240, 360)  # on the passage and on the order

    def of(self, task: str) -> int:
        """Return for how many steps all kinds train on a task."""
        return self.steps[list(TASKS).index(task)]


SHORT = Sizes(n=128, batch=2, texts=8, held_out=(2, 2), steps=(4, 4))


KINDS: dict[str, Callable[[Sizes], nn.Module]] = {
    "none": lambda sizes: Nothing(),
    "exact": lambda sizes: Attention(WIDTH, HEADS, functional.scaled_dot_product_attention),
    "local window": lambda sizes: Attention(WIDTH, HEADS, local(BLOCK)),
    "averages": lambda sizes: LinformerSelfAttention(
        WIDTH, HEADS, sizes.n, K, projection=pooling_projection(K, sizes.n)
    ),
    "random, learned": lambda sizes: LinformerSelfAttention(WIDTH, HEADS, sizes.n, K),
    "window and averages": lambda sizes: Attention(WIDTH, HEADS, local_and_averages(BLOCK)),
    "linear": lambda sizes: Attention(WIDTH, HEADS, linear_attention),
}


def waves(n: int) -> torch.Tensor:
    """Return sines and cosines of n places, (n, width).

    They go from a quarter of a wave over all to a wave in 16 places.
    """
    angles = (
        torch.arange(n)[:, None] / n * math.pi / 2 * (n / 4) ** torch.linspace(0, 1, WIDTH // 2)
    )
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Encoder(nn.Module):
    """Tokens and their neighbors in, a guess for each question out.

    A convolution over seven tokens comes first in every kind, so that what is compared is how they
    look farther.
    """

    def __init__(self, kind: str, sizes: Sizes) -> None:
        super().__init__()
        self.symbols = nn.Embedding(QUESTION + 1, WIDTH)
        self.places = nn.Parameter(waves(sizes.n))
        self.around = nn.Conv1d(WIDTH, WIDTH, 7, padding=3)
        self.blocks = nn.Sequential(
            *(Block(KINDS[kind](sizes), WIDTH, HIDDEN) for _ in range(LAYERS))
        )
        self.norm, self.guess = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SIGNS)

    def forward(self, x: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """Return logits of the kinds of sign, (batch, questions, 8).

        The places that ask are (batch, questions).
        """
        tokens = self.symbols(x) + self.places
        tokens = tokens + self.around(tokens.transpose(1, 2)).transpose(1, 2)
        states = self.norm(self.blocks(tokens))
        return self.guess(states.gather(1, asked[:, :, None].expand(-1, -1, WIDTH)))


@cache
def corpus(sizes: Sizes) -> dict[str, torch.Tensor]:
    """Return the texts of each part, (texts, n).

    Of 10 files of a package, 8 are to train, 1 to validate, and 1 to test.
    """
    parts: dict[str, list[list[int]]] = {"train": [], "validation": [], "test": []}
    for name in PACKAGES:
        paths = sorted((Path(sysconfig.get_paths()["purelib"]) / name).rglob("*.py"))
        random.Random(0).shuffle(paths)
        cuts = [len(paths) * tenths // 10 for tenths in (0, 8, 9, 10)]
        for part, wanted, start, end in zip(
            parts, (sizes.texts, *sizes.held_out), cuts, cuts[1:], strict=False
        ):
            texts: list[list[int]] = []
            for source in (path.read_bytes() for path in paths[start:end]):
                if (
                    len(texts) < 3 * wanted
                ):  # more than are needed, so that no file gives most of them
                    texts += [
                        list(source[i : i + sizes.n])
                        for i in range(0, len(source) - sizes.n + 1, sizes.n)
                    ]
            random.Random(1).shuffle(texts)
            parts[part] += texts[:wanted]
    return {part: torch.tensor(texts) for part, texts in parts.items()}


def plant(
    x: torch.Tensor, passages: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Write passages and the questions about them over each text.

    Returns the texts (batch, n), the places that ask (batch, questions), and the kind of the first
    passage (batch,).
    """
    shown, asked, first = x.clone(), [], []
    for row in shown:
        starts = (
            torch.randint(x.shape[1] - passages * RUN + 1, (passages,), generator=generator)
            .sort()
            .values
        )
        starts += RUN * torch.arange(passages)  # so that no two overlap
        signs = torch.randperm(SIGNS, generator=generator)[:passages]
        row[starts[:, None] + torch.arange(RUN)] = 256 + signs[:, None].expand(-1, RUN)
        free = (row < 256).nonzero()[:, 0]
        asked.append(free[torch.randperm(len(free), generator=generator)[:ASKED]])
        row[asked[-1]] = QUESTION
        first.append(signs[0])
    return shown, torch.stack(asked), torch.stack(first)


class Training(loop.Training):
    """A model in training."""

    def __init__(self, task: str, kind: str, seed: int, rate: float, sizes: Sizes) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.passages, self.sizes = TASKS[task], sizes
        self.generator = torch.Generator().manual_seed(seed)
        self.model = Encoder(kind, sizes)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate, weight_decay=0.01)
        super().__init__(optimizer, 50, sizes.of(task))

    def loss(self) -> torch.Tensor:
        """Draw a batch, and return its loss."""
        texts = corpus(self.sizes)["train"]
        rows = torch.randint(len(texts), (self.sizes.batch,), generator=self.generator)
        logits, wanted = self.guesses(texts[rows], self.generator)
        return functional.cross_entropy(logits.flatten(0, 1), wanted.repeat_interleave(ASKED))

    def guesses(
        self, x: torch.Tensor, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits (batch, questions, 8), and what is right (batch,)."""
        shown, asked, first = plant(x, self.passages, generator)
        return self.model(shown, asked), first

    @torch.no_grad()
    def right(self, part: str) -> list[int]:
        """Return how many questions are answered rightly in each held-out text."""
        self.model.eval()
        generator, counts = torch.Generator().manual_seed(1), []
        for texts in corpus(self.sizes)[part].split(8):
            logits, wanted = self.guesses(texts, generator)
            counts += (logits.argmax(dim=2) == wanted[:, None]).sum(dim=1).tolist()
        self.model.train()
        return counts


def share(counts: Sequence[int]) -> float:
    """Return the share of right answers."""
    return round(sum(counts) / len(counts) / ASKED, 4)


class Job(NamedTuple):
    """One run: what it trains, from which seed, and at which rate."""

    task: str
    kind: str
    seed: int
    rate: float

    def run(self, sizes: Sizes) -> dict[str, Any]:
        """Train, and return the validation score, and each test text's right answers."""
        training = Training(*self, sizes)
        training.go_on(sizes.of(self.task))
        right = training.right("test")
        scores = {"validation": share(training.right("validation")), "test": share(right)}
        return self._asdict() | scores | {"right": "".join(COUNTS[count] for count in right)}


def best_rates(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return for each task and kind the rate whose run ended best on the validation texts.

    Of two equals the larger is taken.
    """
    ended = sorted(
        (row["validation"], row["rate"], row["task"], row["kind"])
        for row in rows
        if row["seed"] == 0
    )
    return {(task, kind): rate for _, rate, task, kind in ended}  # the last one stays


def standard_error(right: np.ndarray) -> float:
    """Return the standard error of the mean share of right answers (seeds, texts).

    Questions of a text share its passages, so a text counts as one draw; and all seeds answer the
    same texts. With S seeds, T texts and the share y[s, t],

        SE² = var over t (mean over s of y) / T + var over s (mean over t of y) / S,

    both variances unbiased: the first half is chance in the texts, the second chance in training.
    (What chance does to one text in one run is in both, so this is a little too large rather than
    too small.)
    """
    shares = np.asarray(right) / ASKED
    return float(
        np.sqrt(sum(shares.mean(axis).var(ddof=1) / shares.shape[1 - axis] for axis in (0, 1)))
    )


def results(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each task and kind its rate, and the mean and standard error over seeds."""
    found = []
    for (task, kind), rate in best_rates(rows).items():
        runs = [
            row for row in rows if (row["task"], row["kind"], row["rate"]) == (task, kind, rate)
        ]
        right = np.array([[COUNTS.index(letter) for letter in row["right"]] for row in runs])
        error = standard_error(right) if len(runs) > 1 else None
        found.append(
            {
                "task": task,
                "kind": kind,
                "rate": rate,
                "seeds": len(runs),
                "mean": right.mean() / ASKED,
            }
        )
        found[-1]["standard_error"] = error
    return found


def described(line: dict[str, Any]) -> str:
    """Lay one run out for the eye."""
    where = f"{line['task']:8} {line['kind']:20} seed {line['seed']} rate {line['rate']:g}"
    return f"{where}: {line['test']:.1%} of test questions"


def main() -> int:
    """Train all kinds on both tasks, print each run, and write the data."""
    parser = loop.parser_of(__doc__, "short texts, one seed, few steps")
    options = parser.parse_args()
    sizes, seeds = (SHORT, 1) if options.short else (Sizes(), options.seeds)
    packages = ["torch", *(name.replace("sklearn", "scikit-learn") for name in PACKAGES)]
    meta = provenance("python -m measure.training.long_study", packages)
    runs = Runs(options.resume, Job)
    corpus(sizes)  # here once, for all processes

    def train(jobs: list[Job]) -> list[dict[str, Any]]:
        return runs.carry_out(jobs, sizes, say=described, processes=options.processes)

    rows = train([Job(task, kind, 0, rate) for task in TASKS for kind in KINDS for rate in RATES])
    rates = best_rates(rows)
    rows += train([Job(*pair, seed, rates[pair]) for seed in range(1, seeds) for pair in rates])
    if not options.short:
        meta |= {"sizes": sizes._asdict(), "results": results(rows)}
        print(f"written: {write('long_study', meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
