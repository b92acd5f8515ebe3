"""Updates of low rank, against their formula, the weight as it was, and finite differences."""

import copy
import io
import math

import numpy as np
import pytest
import torch
from attentions import linear_of, moved, tensors
from torch import nn

from lowrank_tutor.adapters import (
    LoraLinear,
    inject_lora,
    load_lora,
    lora_state,
    merge_lora,
    without_lora,
)

LORAS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "alpha/sqrt(r)"},
        {"init": "principal"},
        {"init": "principal", "magnitude": True},
    ],
    ids=str,
)


def lora_of(bias=True, dtype=torch.float64, **options):
    """An adapted layer whose factors have moved."""
    generator = torch.Generator().manual_seed(0)
    return moved(LoraLinear(linear_of(5, 7, bias, dtype), 2, generator=generator, **options))


@LORAS
@pytest.mark.parametrize("bias", [True, False])
def test_output_by_formula(options, bias):
    layer, (x,) = lora_of(alpha=3, bias=bias, **options), tensors((4, 6, 7), seed=9)
    factor = 3 / (math.sqrt(2) if options.get("scaling") else 2)
    w, b, a = (part.detach().numpy() for part in (layer.linear.weight, layer.b, layer.a))
    v = w + factor * b @ a
    if options.get("init") == "principal":
        u, s, vt = np.linalg.svd(w)
        v = v - (u[:, :2] * s[:2]) @ vt[:2]
    if options.get("magnitude"):
        v = layer.lengths.detach().numpy()[:, None] * v / np.linalg.norm(v, axis=1, keepdims=True)
    expected = x.numpy() @ v.T + (layer.linear.bias.numpy() if bias else 0)
    np.testing.assert_allclose(layer(x).detach(), expected, atol=1e-12)
    np.testing.assert_allclose(layer.weight.detach(), v, atol=1e-12)
    assert (layer.bias, layer.in_features, layer.out_features) == (layer.linear.bias, 7, 5)


def test_start_of_a():
    layer = LoraLinear(nn.Linear(400, 3), 3, generator=torch.Generator().manual_seed(0))
    assert layer.a.abs().max() <= 1 / 20
    assert layer.a.abs().max() > 0.99 / 20
    assert float(layer.a.detach().var()) == pytest.approx(1 / 1200, rel=0.1)
    assert not layer.b.any()
    options = {"init": "principal", "magnitude": True}
    assert (
        lora_of(**options).extra_repr()
        == "r=2, alpha=2, scaling='alpha/r', init='principal', magnitude=True"
    )
    again = LoraLinear(nn.Linear(400, 3), 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(layer.a, again.a)


def test_first_step_and_scaling():
    """The theorem of the chapter: from B = 0, the first step is - eta s^2 G A^T A, and A^T A has
    the mean (r/3n) I.
    """
    (x,) = tensors((64,), seed=3)

    def response(r, scaling, draws=20):
        moved = torch.zeros(512, dtype=torch.float64)
        for seed in range(draws):
            layer = LoraLinear(nn.Linear(64, 512, bias=False, dtype=torch.float64), r, alpha=8,
                               scaling=scaling,
                               generator=torch.Generator().manual_seed(seed))  # fmt: skip
            before = layer(x).detach()
            layer(x).sum().backward()
            with torch.no_grad():
                layer.b -= layer.b.grad
                moved += (layer(x) - before) / draws
        return float(moved.norm())

    with_root, without = (
        [response(r, scaling) for r in (4, 64)] for scaling in ("alpha/sqrt(r)", "alpha/r")
    )
    expected = (
        64 / (3 * 64) * float(x @ x) * math.sqrt(512)
    )  # s^2 (r/3n) |x|^2, with G = 1 x^T and s^2 r = 64
    assert with_root == pytest.approx([expected, expected], rel=0.2)
    assert without == pytest.approx([expected / 4, expected / 64], rel=0.2)


def test_lora_compiles(compiler):
    layer, (x,) = (
        lora_of(dtype=torch.float32, init="principal", magnitude=True),
        tensors((4, 7), dtype=torch.float32),
    )
    torch.testing.assert_close(compiler(layer, backend="eager")(x), layer(x))


@pytest.mark.parametrize("training", [True, False])
def test_inside_multihead_attention(training):
    """PyTorch reads weight and bias of ``out_proj``, in its fused program too."""
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, dtype=torch.float64)
    (x,) = tensors((2, 5, 8))
    layer.train(training)
    inject_lora(layer, ["out_proj", "linear1"], r=2, generator=torch.Generator().manual_seed(0))
    layer.self_attn.out_proj.b.data.normal_(generator=torch.Generator().manual_seed(1))
    found = layer(x)
    start = layer.self_attn.out_proj.b.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda b: torch.func.functional_call(layer, {"self_attn.out_proj.b": b}, (x,)), start
    )
    with torch.no_grad():
        torch.testing.assert_close(layer(x), found, rtol=0, atol=1e-12)


# whole models


class TwoLayers(nn.Module):
    """Names as models have them, a layer in two places, and one without a linear layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    name: nn.Linear(6, 6, dtype=torch.float64)
                    for name in ("q_proj", "k_proj", "xq_proj")
                }
            )
            for _ in range(2)
        )
        self.head, self.norm = (
            nn.Sequential(nn.Linear(6, 3, dtype=torch.float64)),
            nn.LayerNorm(6, dtype=torch.float64),
        )
        self.again = self.layers[0]["q_proj"]

    def forward(self, x):
        for layer in self.layers:
            x = self.norm(
                x + torch.tanh(layer["q_proj"](x)) * layer["k_proj"](x) + layer["xq_proj"](x)
            )
        return self.head(self.again(x))


ADAPTED = {  # what names select, and how many numbers learn there with rank 2
    "q_proj": ("q_proj", ["layers.0.q_proj", "layers.1.q_proj", "again"], 2 * 2 * 12),
    "one of a layer": (["1.q_proj"], ["layers.1.q_proj"], 2 * 12),
    "several": (("k_proj", "0", "again"),
                ["layers.0.k_proj", "layers.1.k_proj", "head.0", "layers.0.q_proj", "again"],
                3 * 2 * 12 + 2 * 9),
}  # fmt: skip


@pytest.mark.parametrize("case", ADAPTED)
@LORAS
def test_model_and_back(case, options):
    names, expected, learned = ADAPTED[case]
    plain, (x,) = TwoLayers(), tensors((4, 6))
    before, keys = plain(x).detach(), plain.state_dict().keys()
    model = inject_lora(copy.deepcopy(plain).eval(), names, 2, **options)
    adapters = {
        name: part
        for name, part in model.named_modules(remove_duplicate=False)
        if type(part) is LoraLinear
    }
    assert sorted(adapters) == sorted(expected)
    assert not any(part.training for part in model.modules() if part.children())
    learning = [name for name, part in model.named_parameters() if part.requires_grad]
    wanted = {"a", "b", "lengths"} if options.get("magnitude") else {"a", "b"}
    assert {name.rpartition(".")[2] for name in learning} == wanted
    lengths = (
        sum(part.out_features for part in set(adapters.values())) if options.get("magnitude") else 0
    )
    assert (
        sum(part.numel() for part in model.parameters() if part.requires_grad) == learned + lengths
    )
    torch.testing.assert_close(model(x), before)
    out = moved(model)(x).detach()
    assert (out - before).abs().max() > 0.01
    again = inject_lora(TwoLayers(), names, 2, **options)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x), out)
    assert merge_lora(model) is model
    assert model.state_dict().keys() == keys
    assert {type(part) for part in model.modules()} == {type(part) for part in plain.modules()}
    plain.load_state_dict(model.state_dict())
    for merged in (model, plain):
        torch.testing.assert_close(merged(x), out, rtol=0, atol=1e-10)
    assert not any(part.requires_grad for part in model.parameters())


@LORAS
def test_adapters_alone(options):
    """Saved, they make the same model of the same weights, with their strength; switched off, they
    are not there.
    """
    plain, (x,) = TwoLayers(), tensors((4, 6))
    model = moved(inject_lora(copy.deepcopy(plain), ("q_proj", "head.0"), 2, alpha=5, **options))
    before, out, keys = plain(x), model(x), model.state_dict().keys()
    file = io.BytesIO()
    torch.save(lora_state(model), file)
    file.seek(0)
    again = inject_lora(copy.deepcopy(plain), ("q_proj", "head.0"), 2, **options)
    assert load_lora(again, torch.load(file, weights_only=True)) is again
    assert torch.equal(again(x), out)
    assert again.layers[1]["q_proj"].alpha == 5
    with without_lora(model) as off:
        bare = copy.deepcopy(off)
        assert torch.equal(off(x), before)
    assert bare.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(bare(x), before)
    assert model.state_dict().keys() == keys
    assert torch.equal(model(x), out)
