"""Weights of exact attention, biases, cross-attention, longer layers, and encoder layers."""

import copy

import numpy as np
import pytest
import torch
from attentions import said, tensors
from linformers import exact_attention, layer_by_loops, layer_of, lengths
from torch import nn
from torch.nn import functional

from lowrank_tutor.layers import (
    LinformerCrossAttention,
    LinformerEncoderLayer,
    from_layer,
    from_mha,
    resized,
)
from lowrank_tutor.linformer import pooling_projection


def test_takeover_copies_all_settings():
    mha = exact_attention(dropout=0.25).eval()
    layer = from_mha(mha, 8, 3, sharing="headwise")
    assert (layer.heads, layer.dropout, layer.training, layer.sharing) == (
        2,
        0.25,
        False,
        "headwise",
    )
    assert layer.to_q.weight.dtype == torch.float64
    drawn = [from_mha(mha, 8, 3, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(drawn[0].e, drawn[1].e)
    assert from_mha(copy.deepcopy(mha).to("meta"), 8, 3).to_out.weight.is_meta
    assert torch.equal(layer.to_v.bias, mha.in_proj_bias[12:])
    with torch.no_grad():
        layer.to_v.bias.add_(1)
        layer.to_out.weight.add_(1)
    assert not torch.equal(layer.to_v.bias, mha.in_proj_bias[12:])
    assert not torch.equal(layer.to_out.weight, mha.out_proj.weight)


@pytest.mark.parametrize(
    ("take", "module", "message"),
    [
        (from_mha, lambda: nn.MultiheadAttention(6, 2), "mha must have batch_first=True, got"),
        (from_mha, lambda: nn.MultiheadAttention(6, 2, kdim=4, batch_first=True),
         "mha must have keys and values as wide as its queries, 6, got 4 and 6"),
        (from_mha, lambda: nn.MultiheadAttention(6, 2, add_zero_attn=True, batch_first=True),
         "mha must attend to the tokens alone, got add_bias_kv or add_zero_attn"),
        (from_layer, lambda: LinformerEncoderLayer(6, 2, 8, 3, 12),
         "layer must be a torch.nn.TransformerEncoderLayer with exact attention, got Linf"),
        (from_layer, lambda: nn.TransformerEncoderLayer(6, 2, 12), "layer must have batch_first"),
    ],
)  # fmt: skip
def test_other_modules(take, module, message):
    assert said(lambda: take(module(), 8, 3)).partition(": ")[2].startswith(message)


def test_replaced_key_projection():
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    layer.to_k = nn.Linear(6, 6, dtype=torch.float64)
    nn.init.normal_(layer.to_k.bias)
    np.testing.assert_allclose(layer(x).detach(), layer_by_loops(layer, x), rtol=0, atol=1e-13)


def test_whole_encoder_takeover():
    """Settings go along, nothing is shared, and what an adapter has wrapped is taken as it is."""
    options = {
        "norm_first": True,
        "activation": nn.GELU(),
        "bias": False,
        "layer_norm_eps": 0.1,
        "dropout": 0.3,
    }
    old = nn.TransformerEncoderLayer(
        6, 2, 12, batch_first=True, dtype=torch.float64, **options
    ).eval()
    (x,), real = tensors((3, 6, 6)), lengths(6, 4, 1)
    with torch.no_grad():
        for seed, parameter in enumerate(old.parameters()):
            parameter.add_(0.3 * tensors(tuple(parameter.shape), seed=seed)[0])
        expected = old(x, src_key_padding_mask=~real)[real]
    old.linear1 = nn.Sequential(old.linear1)
    layer = from_layer(old, 8, 8, projection=torch.eye(8, dtype=torch.float64))
    assert not {id(p) for p in layer.parameters()} & {id(p) for p in old.parameters()}
    assert (layer.dropout.p, layer.self_attn.dropout, layer.training) == (0.3, 0.3, False)
    out = layer(x, src_key_padding_mask=~real)
    np.testing.assert_allclose(out.detach()[real], expected, rtol=0, atol=1e-12)


def test_biases_start_at_zero():
    layer, (x,) = layer_of(bias=True), tensors((3, 6, 6))
    np.testing.assert_array_equal(layer(x).detach(), layer_of()(x).detach())
    layer(x).square().sum().backward()
    assert all(part.bias.grad.abs().max() > 0 for part in (layer.to_q, layer.to_v))


(SRC, SHORT) = tensors((3, 6, 6), (3, 4, 6))


def test_sizes_of_cross_attention():
    cross = LinformerCrossAttention(6, 2, 8, 3, dtype=torch.float64)
    assert cross(SRC.repeat(1, 2, 1), SHORT).shape == (3, 12, 6), "queries may be more than max_len"
    message = "ValueError: x must have shape (3, n_queries, 6), got shape (2, 4, 6)"
    assert said(lambda: cross(SHORT[:2], SRC)) == message


def test_new_columns_learn():
    layer, (longer,) = layer_of(sharing="headwise"), tensors((3, 11, 6))
    grown = resized(layer, 11)
    assert (grown.max_len, grown.e.shape) == (11, (3, 11))
    grown(longer).square().sum().backward()
    assert grown.e.grad[:, 8:].any()
    assert grown.f.grad[:, 8:].any()
    assert layer.e.grad is None
    assert layer.max_len == 8


def test_longer_models():
    """Resized, a model gives the same, and layers share one E as before."""
    shared = nn.Parameter(tensors((3, 8))[0])
    model, (x,) = (
        nn.Sequential(*(layer_of(k=3, projection=shared) for _ in range(2))),
        tensors((3, 8, 6)),
    )
    grown = resized(model, 11)
    assert grown[0].e is grown[1].e is not shared
    assert grown[0].e.shape == (3, 11)
    torch.testing.assert_close(grown(x), model(x), rtol=0, atol=1e-13)


def test_resized_projection_stays_fixed():
    grown = resized(layer_of(k=4, projection=pooling_projection(4, 8).double()), 9)
    assert "e" not in dict(grown.named_parameters())
    assert grown.state_dict()["e"].shape == (4, 9)
    frozen = layer_of()
    frozen.e.requires_grad_(False)
    assert not resized(frozen, 8).e.requires_grad


def test_encoder_layers():
    layer = LinformerEncoderLayer(6, 2, 8, 4, 12, 0.25, activation="gelu", dtype=torch.float64)
    assert (layer.norm_first, layer.activation) == (True, functional.gelu)
    assert (layer.dropout.p, layer.self_attn.dropout, layer.self_attn.heads) == (0.25, 0.25, 2)
    padding = torch.full((3, 6), -0.5)
    for given, message in (
        (
            (SRC, None, padding),
            "src_key_padding_mask must hold 0 and -inf alone, or bools, got -0.5",
        ),
        ((SRC, None, None, True), "is_causal must be False, got True"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            layer(*given)


@pytest.mark.parametrize("norm_first", [False, True])
def test_float_padding_masks(norm_first, monkeypatch):
    """0 and -inf say what bools say. Where other numbers cannot be read, their sequences become
    NaN.
    """
    layer = LinformerEncoderLayer(6, 2, 8, 4, 12, 0.0, norm_first=norm_first, dtype=torch.float64)
    padding = ~lengths(6, 4, 1)
    numbers = torch.zeros(3, 6).masked_fill(padding, -torch.inf)
    expected = layer(SRC, src_key_padding_mask=padding)
    assert torch.equal(layer(SRC, src_key_padding_mask=numbers), expected)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.equal(layer(SRC, src_key_padding_mask=numbers), expected)
    for odd in (-0.1, 5.0, torch.nan):
        numbers[1, 5] = odd
        out = layer(SRC, src_key_padding_mask=numbers)
        assert out[1].isnan().all()
        assert torch.equal(out[[0, 2]], expected[[0, 2]])
