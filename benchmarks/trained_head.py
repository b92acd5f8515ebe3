"""Train a small masked encoder on words, and keep the weights of two of its heads for one sentence.

``python -m benchmarks.trained_head`` trains on the words of Python's own help texts (``pydoc_data.topics``, whose
wording changes with the Python version, so the data name it), with exact attention, on one thread, and writes
``lowrank_tutor/data/trained_head.json``. It takes some minutes; ``--short`` takes seconds and writes nothing.

Nothing is chosen for its looks. Every sentence of plain words that is short enough, in which no word comes twice, is
cut out of the texts wherever it stands. Shown is the first of them that holds a word which stands for another one
(`PRONOUNS`), and of each layer the head whose weights have the least entropy, on average over all these sentences.
"""

import argparse
import math
import platform
import re
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from benchmarks.harness import provenance, write
from lowrank_tutor.attention import attention_weights, softmax_attention

WIDTH, HEADS, LAYERS, WORDS = 64, 4, 3, 2000
UNKNOWN, MASK = WORDS, WORDS + 1  # any other word; the sign that hides one
CHOSEN, HIDDEN, CHANGED = 0.2, 0.8, 0.1  # of the words; of those chosen
LENGTHS = (8, 40)  # words in a sequence
SENTENCE = (9, 12)  # words in a sentence that may be shown
PRONOUNS = {"it", "one", "they"}
SEED = 0


class Sizes(NamedTuple):
    """How long a run is."""

    steps: int = 2500
    batch: int = 32
    learning_rate: float = 3e-3
    warm_up: int = 200
    dropout: float = 0.1
    validation: int = 256


SHORT = Sizes(steps=20, batch=8, validation=16)


class Texts(NamedTuple):
    """Words as numbers, to train on and to validate; the vocabulary; and the sentences that were cut out."""

    train: torch.Tensor
    held_out: torch.Tensor
    vocabulary: list[str]
    sentences: list[list[str]]


def words_of(text: str) -> list[str]:
    """Cut a text into its words, in lower case, and its full stops."""
    return re.findall(r"[a-z]+|[.]", text.lower())


def sentences_of(text: str) -> list[list[str]]:
    """Find the sentences that may be shown: plain words alone, none of them twice."""
    found = []
    for sentence in re.findall(r"(?<=[.]\s)\s*[A-Z][a-z]+(?:\s+[a-z]+)+(?=[.]\s)", text):
        words = sentence.lower().split()
        if SENTENCE[0] <= len(words) <= SENTENCE[1] and len(set(words)) == len(words) and words not in found:
            found.append(words)
    return found


def texts() -> Texts:
    """Read the help texts without the sentences that may be shown; the last tenth is held out to validate."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    sentences, joined = sentences_of(text), f" {' '.join(words_of(text))} "
    for sentence in sentences:
        joined = joined.replace(f" {' '.join(sentence)} ", " ")
    words = joined.split()
    cut = len(words) * 9 // 10
    vocabulary = [word for word, _ in Counter(words[:cut]).most_common(WORDS)]
    numbers = {word: i for i, word in enumerate(vocabulary)}
    train, held_out = (
        torch.tensor([numbers.get(word, UNKNOWN) for word in part]) for part in (words[:cut], words[cut:])
    )
    known = [sentence for sentence in sentences if numbers.keys() >= set(sentence)]
    return Texts(train, held_out, vocabulary, known)


class Block(nn.Module):
    """Attention and two linear layers, each added to what came in."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_qkv, self.to_out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(dropout)

    def parts(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return queries, keys and values, (batch, heads, n, WIDTH / HEADS) each."""
        return [y.unflatten(2, (HEADS, -1)).transpose(1, 2) for y in self.to_qkv(self.norm1(x)).chunk(3, dim=2)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pass tokens through, (batch, n, WIDTH)."""
        mixed = softmax_attention(*self.parts(x)).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.to_out(mixed))
        return x + self.dropout(self.mlp(self.norm2(x)))


def waves(n: int) -> torch.Tensor:
    """Return sines and cosines of each place, (n, WIDTH), with wavelengths from 2 pi to 2 pi n."""
    angles = torch.arange(n)[:, None] * n ** -torch.linspace(0, 1, WIDTH // 2)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Encoder(nn.Module):
    """Words in, guesses of the chosen words out."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS + 2, WIDTH)
        self.register_buffer("places", waves(LENGTHS[1]))
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(LAYERS))
        self.norm, self.guess = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS + 1)

    def states(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return what enters each block, and what leaves the last, (batch, n, WIDTH) each."""
        states = [self.words(x) + self.places[: x.shape[1]]]
        for block in self.blocks:
            states.append(block(states[-1]))
        return states

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the guesses are made from, (batch, n, WIDTH)."""
        return self.norm(self.states(x)[-1])

    def weights(self, x: torch.Tensor) -> torch.Tensor:
        """Return the weights of all heads, (layers, batch, heads, n, n)."""
        states = self.states(x)[:-1]
        parts = (block.parts(state) for block, state in zip(self.blocks, states, strict=True))
        return torch.stack([attention_weights(q, k) for q, k, _ in parts])


def draw(data: torch.Tensor, n: int, batch: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Cut out sequences; return the words, what the encoder reads, and which are to be guessed, (batch, n) each.

    Most of the words that are to be guessed are hidden, some changed, some left as they are.
    """
    starts = torch.randint(len(data) - n, (batch, 1), generator=generator)
    x = data[starts + torch.arange(n)]
    chosen = (torch.rand(x.shape, generator=generator) < CHOSEN) & (x != UNKNOWN)
    how = torch.rand(x.shape, generator=generator)
    other = torch.randint(WORDS, x.shape, generator=generator)
    changed = torch.where(how < HIDDEN, MASK, torch.where(how < HIDDEN + CHANGED, other, x))
    return x, torch.where(chosen, changed, x), chosen


def loss_of(model: Encoder, drawn: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the mean cross-entropy of the chosen words, in nats."""
    x, shown, chosen = drawn
    return functional.cross_entropy(model.guess(model(shown)[chosen]), x[chosen])


def train(found: Texts, sizes: Sizes) -> Encoder:
    """Train one encoder; what is returned no longer drops anything out."""
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    model = Encoder(sizes.dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=sizes.learning_rate, weight_decay=0.01)

    def rate(step: int) -> float:
        """Rise at first, then fall to zero along a cosine."""
        return min((step + 1) / sizes.warm_up, 0.5 + 0.5 * math.cos(math.pi * step / sizes.steps))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    start = time.process_time()
    for step in range(1, sizes.steps + 1):
        n = int(torch.randint(LENGTHS[0], LENGTHS[1] + 1, (1,), generator=generator))
        loss = loss_of(model, draw(found.train, n, sizes.batch, generator))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step(), schedule.step()
        if step % 250 == 0:
            said = f"{loss.item():.2f}, validation {validate(model, found, sizes)['loss']:.2f}"
            print(f"step {step}: {said} nats, {time.process_time() - start:.0f} s", flush=True)
    return model.eval()


@torch.no_grad()
def validate(model: Encoder, found: Texts, sizes: Sizes) -> dict[str, float]:
    """Return loss in nats a word and share of right first guesses, of the model and of guessing by frequency."""
    was = model.training
    model.eval()
    x, shown, _ = draw(found.held_out, 32, sizes.validation, torch.Generator().manual_seed(1))
    hidden = shown == MASK
    guesses = model.guess(model(shown)[hidden])
    counts = torch.bincount(found.train, minlength=WORDS + 1) + 1.0
    by_count = (counts / counts.sum()).log().expand_as(guesses)
    model.train(was)
    return {
        "loss": functional.cross_entropy(guesses, x[hidden]).item(),
        "right": (guesses.argmax(1) == x[hidden]).float().mean().item(),
        "loss_by_frequency": functional.nll_loss(by_count, x[hidden]).item(),
        "right_by_frequency": (by_count.argmax(1) == x[hidden]).float().mean().item(),
    }


@torch.no_grad()
def entropies(model: Encoder, found: Texts) -> torch.Tensor:
    """Return the mean entropy of each head's rows over all sentences, as a share of the largest, (layers, heads)."""
    shares = []
    for sentence in found.sentences:
        p = model.weights(read(found, sentence))[:, 0]  # (layers, heads, n, n)
        shares.append(-torch.special.xlogy(p, p).sum(3).mean(2) / math.log(len(sentence)))
    return torch.stack(shares).mean(0)


def read(found: Texts, sentence: list[str]) -> torch.Tensor:
    """Return the numbers of the words, (1, n)."""
    return torch.tensor([[found.vocabulary.index(word) for word in sentence]])


def describe(model: Encoder, found: Texts, sizes: Sizes, shares: torch.Tensor, sentence: list[str]) -> dict[str, Any]:
    """Say what was trained on what, how well it guesses, and by which rules sentence and heads were chosen."""
    return {
        "text": f"pydoc_data.topics of Python {platform.python_version()}",
        "words": {"trained on": len(found.train), "held out": len(found.held_out), "vocabulary": WORDS},
        "encoder": {"layers": LAYERS, "heads": HEADS, "width": WIDTH, "seed": SEED, **sizes._asdict()},
        "validation": {name: round(value, 4) for name, value in validate(model, found, sizes).items()},
        "sentence": sentence,
        "sentence_rule": f"the first with a word of {sorted(PRONOUNS)} among {len(found.sentences)} that were cut out "
        f"of the texts: {SENTENCE[0]} to {SENTENCE[1]} plain words, all known and none twice",
        "head_rule": "of each layer the head with the least mean entropy of its rows over all these sentences",
        "entropy": [[round(float(share), 3) for share in row] for row in shares],
        "definitions": {
            "weights": "a row for each word that looks, a column for each word looked at; no word was hidden",
            "entropy": "of each layer and head, as a share of the largest possible",
            "validation": "hidden words of the last tenth of the texts, parts of which also stand elsewhere: loss in "
            "nats a word, share of right first guesses; both also for guessing by how often a word occurs",
        },
    }


def main() -> int:
    """Train, choose by the rule, print what was found and write the data."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="few steps, nothing written")
    short = parser.parse_args().short
    sizes = SHORT if short else Sizes()
    torch.set_num_threads(1)
    meta = provenance("python -m benchmarks.trained_head", ["torch"])
    found = texts()
    model = train(found, sizes)
    shares = entropies(model, found)
    sentence = next(words for words in found.sentences if PRONOUNS & set(words))
    with torch.no_grad():
        weights = model.weights(read(found, sentence))[:, 0]  # (layers, heads, n, n)
    rows = []
    for layer in (0, LAYERS - 1):
        head = int(shares[layer].argmin())
        p = [[round(float(x), 4) for x in row] for row in weights[layer, head]]
        rows.append({"layer": layer + 1, "head": head + 1, "weights": p})
    meta |= describe(model, found, sizes, shares, sentence)
    print(meta["validation"], meta["sentence_rule"], meta["entropy"], " ".join(sentence), sep="\n")
    if not short:
        print(f"written: {write('trained_head', meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
