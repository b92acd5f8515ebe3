"""The storyteller: a causal language model of two layers that fits on a screen, in PyTorch.

It has no positions: each word's vector carries those of the two words before it, so that the score
of two words is exactly the bilinear form of chapter 5. Its attention may be any function of
queries, keys, and values.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lowrank_tutor._checks import check_integer
from lowrank_tutor.storyteller.cuts import check_weights
from lowrank_tutor.storyteller.in_numpy import (
    HEADS,
    LAYERS,
    check_ids,
    heard,
    one_a_layer,
    tables,
    trained_weights,
)
from lowrank_tutor.storyteller.language import WORDS, Story, encode, stories

DIM = 64
RATE, WARM_UP = 4e-3, 60
BATCH = 32
Attend = Callable[[Tensor, Tensor, Tensor], Any]


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to every earlier word and to oneself."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Layer(nn.Module):
    """Attention, then a feedforward network; each adds to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(DIM, eps=1e-6), nn.RMSNorm(DIM, eps=1e-6)
        self.q, self.k, self.v, self.out = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))
        self.up = nn.Linear(DIM, 3 * DIM, bias=False)
        self.down = nn.Linear(3 * DIM, DIM, bias=False)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Return the layer's output for ``x``, (batch, n, 64)."""
        y = self.norm_1(x)
        made = (part(y) for part in (self.q, self.k, self.v))
        q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in made)
        read = torch.as_tensor(heard(attend, q, k, v), dtype=x.dtype, device=x.device)
        x = x + self.out(read.transpose(1, 2).flatten(2))
        out: Tensor = x + self.down(F.relu(self.up(self.norm_2(x))))
        return out


class Storyteller(nn.Module):
    """The model; :func:`load` gives the trained one."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), DIM)
        self.one_back = nn.Linear(DIM, DIM, bias=False)
        self.two_back = nn.Linear(DIM, DIM, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM, eps=1e-6)
        nn.init.normal_(self.embed.weight, std=0.15)

    def forward(self, ids: Any, *, attend: Attend | Sequence[Attend] | None = None) -> Tensor:
        """Return the logits of each next word (batch, n, words) for numbers of words (batch, n).

        ``attend`` takes queries, keys, and values, (batch, 4, n, 16) each, and returns what the
        heads read, of the same shape; a sequence has one for each layer.
        """
        check_ids(ids.cpu() if isinstance(ids, Tensor) else ids)
        words = self.embed(torch.as_tensor(ids))
        n = words.shape[1]
        x = words + F.pad(self.one_back(words), (0, 0, 1, 0))[:, :n]
        x = x + F.pad(self.two_back(words), (0, 0, 2, 0))[:, :n]
        for layer, one in zip(self.layers, one_a_layer(attend, causal_attention), strict=True):
            x = layer(x, one)
        logits: Tensor = self.norm(x) @ self.embed.weight.T
        return logits

    def tables(self, ids: Any) -> Tensor:
        """Return every head's weights, (batch, 2, 4, n, n), a row for each word that listens."""
        parts = self.state_dict().items()
        weights = {name: weight.detach().double().numpy() for name, weight in parts}
        return torch.from_numpy(tables(np.asarray(ids), weights=weights))

    @staticmethod
    def encode(words: str | Sequence[str]) -> Tensor:
        """Return the numbers of words, shape (1, n), for :meth:`forward`."""
        return torch.tensor([encode(words)])


def load(weights: dict[str, Any] | None = None) -> Storyteller:
    """Return the trained model, or one with other ``weights``, such as those of :func:`cut_scores`.

    >>> model = load()
    >>> sum(parameter.numel() for parameter in model.parameters())
    95616
    """
    model = Storyteller()
    chosen = trained_weights() if weights is None else check_weights(weights)
    model.load_state_dict({name: torch.tensor(weight) for name, weight in chosen.items()})
    return model.eval()


@torch.random.fork_rng(devices=[])
def train(
    steps: int = 1800,
    *,
    rng: Any = 0,
    attend: Attend | Sequence[Attend] | None = None,
    report: Callable[[int, Storyteller], None] | None = None,
) -> Storyteller:
    """Train a model on 32 new stories a step, with Adam; it takes minutes of one core.

    Words that test a job count three times. ``report(step, model)`` is called after every hundredth
    step. Torch's own generator of random numbers stays as it was.
    """
    check_integer(steps, "steps")
    if report is not None and not callable(report):
        raise TypeError(f"report must be a function, got {type(report).__name__}")
    rng = np.random.default_rng(rng)
    torch.default_generator.manual_seed(int(rng.integers(2**31)))
    model = Storyteller()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(1, steps + 1):
        rate = RATE * min(1, step / WARM_UP) * max(0.03, 1 - step / steps)
        optimizer.param_groups[0]["lr"] = rate
        ids, counts = _batch(stories(BATCH, rng=rng))
        logits = model(ids, attend=attend)[:, :-1].transpose(1, 2)
        losses = F.cross_entropy(logits, ids[:, 1:], reduction="none")
        optimizer.zero_grad()
        torch.autograd.backward((losses * counts[:, 1:]).sum() / counts[:, 1:].sum())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if report and step % 100 == 0:
            report(step, model)
    return model.eval()


def _batch(told: list[Story]) -> tuple[Tensor, Tensor]:
    """Return the numbers of the words, padded at the end, and how much each word counts."""
    longest = max(len(story.words) for story in told)
    ids, counts = torch.zeros(len(told), longest, dtype=torch.long), torch.zeros(len(told), longest)
    for i, (words, jobs) in enumerate(told):
        ids[i, : len(words)] = torch.tensor(encode(words))
        counts[i, : len(words)] = torch.tensor([3.0 if job else 1.0 for job in jobs])
    return ids, counts
