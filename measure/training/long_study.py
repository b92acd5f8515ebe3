"""Train small encoders on long inputs for the same time, one with each kind of attention, and record how good they get.

Two tasks, both made from the source files of Python packages that the book's own requirements install:

- *package*: which of 16 packages do these 2,048 bytes come from? A summary of the text can tell.
- *passage*: somewhere in such a text 16 bytes are replaced by 16 equal signs, of 16 kinds of sign, and 16 other bytes
  by one that asks which kind it was. Only the passage can tell: a *near* one begins at most 32 bytes away, a *far* one
  more than 256. (Marks and values in pairs, and signs that stand alone, were tried first: exact attention did not learn
  to find them in 500 steps.)

``python -m measure.training.long_study`` first times training steps of every kind in turn, on one thread, and so finds
how many steps each can make in ``BUDGET`` seconds. Then each kind is tuned: of ``RATES`` it takes the learning rate
with the best score on the validation texts after a quarter of the steps, from one seed that is used for nothing else.
(Where no score is two standard errors above guessing, it takes the larger rate.) Then each trains from three seeds, two
runs at a time, with the rate warmed up over 50 steps and lowered linearly to a twentieth at the end. Scores are shares
of right answers on the test texts, whose files no training text comes from; until the last, on every fourth of them.
With ``--resume runs.jsonl`` every run is kept in that file when it ends, and is not repeated. It writes
``lowrank_tutor/data/long_study.json``. ``--short`` takes about a minute and writes nothing.
"""

import random
import statistics
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.attention import linear_attention
from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection
from measure.harness import add_device, provenance, say_if_busy, write
from measure.memory import peak_bytes
from measure.training import loop
from measure.training.loop import Block, Runs, groups
from measure.training.rivals import Attention, GatedDelta, Nothing, local, local_and_averages

PACKAGES = (
    "numpy scipy sklearn torch sympy matplotlib sphinx docutils IPython networkx sqlalchemy jedi pygments nbconvert "
    "hypothesis mypy"
).split()
WIDTH, HEADS, LAYERS, K, BLOCK = 64, 4, 2, 64, 32
BUDGET = 150  # seconds of training, on one thread
RATES = (1e-3, 3e-3)
TASKS = ("package", "passage")
SLOW = 0.05  # rate of E where it learns slowly, as a share of the rate of all else
NEAR, FAR = 32, 256  # bytes between a question and the passage that answers it
SIGNS, RUN, ASKED = 16, 16, 16  # kinds of signs, signs in a passage, questions in a text
QUESTION = 256 + SIGNS  # the sign that asks; kinds follow the 256 bytes
TUNING_SEED = 100
CHECKS = 4  # how often a run is scored


class Sizes(NamedTuple):
    """How long the texts are, and how many."""

    n: int = 2048
    batch: int = 4
    texts: int = 400  # of a package, to train on
    held_out: int = 20  # of a package, to validate, and as many to test


SHORT = Sizes(n=256, batch=2, texts=8, held_out=2)


def linformer(sizes: Sizes, **options: Any) -> nn.Module:
    """Make the package's layer."""
    return LinformerSelfAttention(WIDTH, HEADS, sizes.n, min(K, sizes.n // 4), **options)


def averages(sizes: Sizes) -> torch.Tensor:
    """Return averages of equal windows."""
    return pooling_projection(min(K, sizes.n // 4), sizes.n)


KINDS: dict[str, Callable[[Sizes], nn.Module]] = {
    "none": lambda sizes: Nothing(),
    "exact": lambda sizes: Attention(WIDTH, HEADS, functional.scaled_dot_product_attention),
    "local window": lambda sizes: Attention(WIDTH, HEADS, local(BLOCK)),
    "averages": lambda sizes: linformer(sizes, projection=averages(sizes)),
    "averages, learned slowly": lambda sizes: linformer(sizes, projection=nn.Parameter(averages(sizes))),
    "random, learned": linformer,
    "window and averages": lambda sizes: Attention(WIDTH, HEADS, local_and_averages(BLOCK)),
    "linear": lambda sizes: Attention(WIDTH, HEADS, linear_attention),
    "gated delta rule": lambda sizes: GatedDelta(WIDTH, HEADS),
}


class Encoder(nn.Module):
    """Tokens and their neighbors in, a vector for each token out.

    A convolution over seven tokens comes first in every kind, so that what is compared is how they look farther.
    """

    def __init__(self, kind: str, task: str, sizes: Sizes) -> None:
        super().__init__()
        self.task = task
        self.symbols = nn.Embedding(QUESTION + 1, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(sizes.n, WIDTH))
        self.around = nn.Conv1d(WIDTH, WIDTH, 7, padding=3)
        self.blocks = nn.Sequential(*(Block(KINDS[kind](sizes), WIDTH, 4 * WIDTH) for _ in range(LAYERS)))
        self.norm, self.guess = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SIGNS)

    def forward(self, x: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """Return logits of the packages (batch, 16), or of the kinds of sign at the questions (questions, 16)."""
        tokens = self.symbols(x) + self.places
        tokens = tokens + self.around(tokens.transpose(1, 2)).transpose(1, 2)
        states = self.norm(self.blocks(tokens))
        return self.guess(states.mean(dim=1) if self.task == "package" else states[asked])


def files() -> Iterator[tuple[int, str, list[bytes]]]:
    """Yield for each package its source files, split by file: 8 of 10 to train, 1 to validate, 1 to test."""
    root = Path(sysconfig.get_paths()["purelib"])
    for label, name in enumerate(PACKAGES):
        paths = sorted((root / name).rglob("*.py"))
        random.Random(0).shuffle(paths)
        cuts = [0, len(paths) * 8 // 10, len(paths) * 9 // 10, len(paths)]
        for part, start, end in zip(("train", "validation", "test"), cuts, cuts[1:], strict=False):
            yield label, part, [path.read_bytes() for path in paths[start:end]]


def cut(source: bytes, n: int) -> list[list[int]]:
    """Cut a file into texts of n bytes."""
    return [list(source[start : start + n]) for start in range(0, len(source) - n + 1, n)]


@cache
def corpus(sizes: Sizes) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return for each part its texts (texts, n) and the packages they come from."""
    parts: dict[str, list[tuple[list[int], int]]] = {"train": [], "validation": [], "test": []}
    for label, part, sources in files():
        wanted, texts = (sizes.texts if part == "train" else sizes.held_out), []
        for source in sources:
            if len(texts) < 3 * wanted:  # more than are needed, so that no file gives most of them
                texts += cut(source, sizes.n)
        random.Random(1).shuffle(texts)
        parts[part] += [(text, label) for text in texts[:wanted]]
    return {
        part: (torch.tensor([text for text, _ in rows]), torch.tensor([label for _, label in rows]))
        for part, rows in parts.items()
    }


def plant(x: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Write a passage and the questions about it over each text.

    Returns the texts (batch, n), which places ask (batch, n), and of these the kind of sign and how many bytes away the
    passage begins, both (questions,).
    """
    shown, kind, distance = x.clone(), torch.zeros_like(x), torch.zeros_like(x)
    for row in range(len(x)):
        n, (start,) = x.shape[1], torch.randint(x.shape[1] - RUN + 1, (1,), generator=generator).tolist()
        places = torch.randperm(n, generator=generator)
        places = places[(places < start) | (places >= start + RUN)][:ASKED]
        sign = int(torch.randint(SIGNS, (1,), generator=generator))
        shown[row, start : start + RUN], shown[row, places] = 256 + sign, QUESTION
        kind[row, places], distance[row, places] = sign, (places - start).abs()
    asked = shown == QUESTION
    return shown, asked, kind[asked], distance[asked]


class Training(loop.Training):
    """A model in training."""

    def __init__(self, task: str, kind: str, seed: int, rate: float, steps: int, sizes: Sizes, device: str) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.task, self.sizes, self.device = task, sizes, device
        self.generator = torch.Generator().manual_seed(seed)
        self.model = Encoder(kind, task, sizes).to(device)
        parts = groups(self.model, rate, rate * SLOW if "slowly" in kind else rate)
        super().__init__(torch.optim.AdamW(parts, weight_decay=0.01), 50, steps)

    def loss(self) -> torch.Tensor:
        """Draw a batch, and return its loss."""
        texts, labels = corpus(self.sizes)["train"]
        rows = torch.randint(len(texts), (self.sizes.batch,), generator=self.generator)
        return functional.cross_entropy(*self.guesses(texts[rows], labels[rows], self.generator)[:2])

    def guesses(self, x: torch.Tensor, labels: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        """Return logits, what is right, and the distances of passages."""
        if self.task == "package":
            nowhere = torch.zeros_like(x, dtype=torch.bool)
            return self.model(x.to(self.device), nowhere.to(self.device)), labels.to(self.device), labels
        shown, asked, kinds, distance = plant(x, generator)
        return self.model(shown.to(self.device), asked.to(self.device)), kinds.to(self.device), distance

    @torch.no_grad()
    def score(self, part: str, every: int = 1) -> dict[str, float]:
        """Return the share of right answers on held-out texts, or on some; with passages also of near and far ones."""
        self.model.eval()
        texts, labels = (each[::every] for each in corpus(self.sizes)[part])
        generator, right, apart = torch.Generator().manual_seed(1), [], []
        for start in range(0, len(texts), 8):
            rows = slice(start, start + 8)
            logits, wanted, distance = self.guesses(texts[rows], labels[rows], generator)
            right.append((logits.argmax(dim=1) == wanted).cpu())
            apart.append(distance)
        self.model.train()
        hits, distance = torch.cat(right).double(), torch.cat(apart)
        scores = {"all": hits.mean()}
        if self.task == "passage":
            parts = {"near": hits[distance <= NEAR], "far": hits[distance > FAR]}
            scores |= {name: part.mean() for name, part in parts.items() if len(part)}  # short texts have no far ones
        return {name: round(float(value), 4) for name, value in scores.items()}


class Job(NamedTuple):
    """One run: what it trains, from which seed, at which rate, and for how many steps of all."""

    task: str
    kind: str
    seed: int
    rate: float
    steps: int

    def run(self, sizes: Sizes, device: str) -> dict[str, Any]:
        """Train, and return the scores after every quarter of the steps; to tune, only at the end."""
        training, curve = Training(*self, sizes, device), []
        part, n_checks = ("validation", 1) if self.seed == TUNING_SEED else ("test", CHECKS)
        checks = {self.steps * i // n_checks for i in range(1, n_checks + 1)}
        for step in range(1, self.steps + 1):
            training.go_on()
            if step in checks:
                curve.append([step, training.score(part, every=1 if step == self.steps else 4)])
        return {**self._asdict(), "curve": curve}


def peak_of_a_step(kind: str, sizes: Sizes, device: str) -> int:
    """Return the most bytes that a training step on packages holds beyond the weights and the optimizer's moments."""
    training = Training("package", kind, 0, RATES[0], 1000, sizes, device)
    training.go_on()  # makes the moments
    return peak_bytes(training.go_on, torch.device(device))


def seconds_of_a_step(sizes: Sizes, device: str, blocks: int) -> dict[str, dict[str, list[float]]]:
    """Time training steps of every kind on each task."""
    trainings = {
        task: {kind: Training(task, kind, 0, RATES[0], 1000, sizes, device) for kind in KINDS} for task in TASKS
    }
    return {task: loop.seconds_of_a_step(trainings[task], 3, blocks) for task in TASKS}


def best_rate(scores: dict[float, float], texts: int) -> float:
    """Return the rate with the best score; where none is two standard errors above guessing, the largest rate."""
    guessing = 1 / SIGNS
    noise = (guessing * (1 - guessing) / texts) ** 0.5
    return max(scores, key=scores.__getitem__) if max(scores.values()) > guessing + 2 * noise else max(scores)


def tuned(
    train: Callable[[list[Job]], list[dict[str, Any]]], steps: dict[tuple[str, str], int], texts: int
) -> tuple[dict[tuple[str, str], float], list[dict[str, Any]]]:
    """Return for each task and kind the better learning rate, found in a quarter of the steps, and all scores."""
    jobs = [Job(*pair, TUNING_SEED, rate, max(1, count // 4)) for pair, count in steps.items() for rate in RATES]
    scores = [line["curve"][-1][1]["all"] for line in train(jobs)]
    by_pair: dict[tuple[str, str], dict[float, float]] = {}
    for job, score in zip(jobs, scores, strict=True):
        by_pair.setdefault((job.task, job.kind), {})[job.rate] = score
    tuning = [{**job._asdict(), "score": score} for job, score in zip(jobs, scores, strict=True)]
    return {pair: best_rate(each, texts) for pair, each in by_pair.items()}, tuning


def described(line: dict[str, Any]) -> str:
    """Lay one run out for the eye."""
    where = f"{line['task']:10} {line['kind']:24} seed {line['seed']:3} rate {line['rate']:g}"
    return f"{where}: {line['curve'][-1][1]} after {line['steps']} steps"


def main() -> int:
    """Time, tune and train all kinds on both tasks, print a line for each run, and write the data."""
    parser = loop.parser_of(__doc__, "short texts, one seed, few steps")
    add_device(parser)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of training for each run")
    options = parser.parse_args()
    sizes, device, seeds = (SHORT, options.device, 1) if options.short else (Sizes(), options.device, options.seeds)
    packages = ["torch", *(name.replace("sklearn", "scikit-learn") for name in PACKAGES)]
    meta = provenance("python -m measure.training.long_study", packages)
    say_if_busy(meta["machine"])
    torch.set_num_threads(1)
    runs, texts = Runs(options.resume, Job), corpus(sizes)  # the texts here once, for all processes

    def train(jobs: list[Job]) -> list[dict[str, Any]]:
        processes = 2 if device == "cpu" else 1
        return runs.carry_out(jobs, sizes, device, say=described, processes=processes)

    seconds = runs.once("seconds_of_a_step", lambda: seconds_of_a_step(sizes, device, 1 if options.short else 7))
    steps = {
        (task, kind): 4 if options.short else round(options.budget / statistics.median(blocks))
        for task in TASKS
        for kind, blocks in seconds[task].items()
    }
    rates, tuning = tuned(train, steps, len(texts["validation"][1]))
    rows = train([Job(*pair, seed, rates[pair], steps[pair]) for seed in range(seeds) for pair in steps])
    memory = {kind: peak_of_a_step(kind, sizes, device) for kind in KINDS}
    if not options.short:
        meta |= {"sizes": sizes._asdict(), "budget_seconds": options.budget, "seconds_of_a_step": seconds}
        meta |= {"peak_bytes_of_a_step": memory, "tuning": tuning}
        print(f"written: {write('long_study', meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
