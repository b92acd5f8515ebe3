"""The layer of reduced-rank scores against its formula and PyTorch's own attention."""

import math

import numpy as np
import pytest
import torch
from matrices import fresh
from torch.nn.functional import multi_head_attention_forward, softmax

from lowrank_tutor.bilinear import ReducedRankAttention, factorize


def layer_of(d2=6, d1=5, k=3, **options):
    options = {"dtype": torch.float64} | options
    return ReducedRankAttention(d2, d1, k, generator=torch.Generator().manual_seed(0), **options)


def tokens(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize(("masked", "value_dim"), [(False, None), (True, 7)])
def test_formula_agrees(masked, value_dim):
    layer, query, keys = layer_of(), tokens(3, 4, 6), tokens(3, 8, 5, seed=1)
    values = None if value_dim is None else tokens(3, 8, value_dim, seed=2)
    mask = tokens(3, 8, seed=3) > 0 if masked else None
    if masked:
        mask[2] = False
    out = layer(query, keys, values, token_mask=mask)
    assert out.shape == (3, 4, value_dim or 5)
    scores = query @ layer.u.T @ (layer.v @ keys.mT) / math.sqrt(3)
    seen = torch.ones(3, 8, dtype=torch.bool) if mask is None else mask
    weights = softmax(scores.masked_fill(~seen[:, None], -math.inf), dim=2).nan_to_num()
    judge = weights @ (keys if values is None else values)
    np.testing.assert_allclose(out.detach(), judge.detach(), atol=1e-13)


def test_pytorch_attention_head():
    """A head of width k with W_Q = U^T and W_K = V^T; values and output as they are."""
    d, k, n = 4, 4, 6
    layer, x = layer_of(d, d, k), tokens(1, n, d)
    judge, _ = multi_head_attention_forward(
        x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), d, 1, None, None, None, None,
        False, 0.0, torch.eye(d, dtype=torch.float64), None, use_separate_proj_weight=True,
        q_proj_weight=layer.u, k_proj_weight=layer.v,
        v_proj_weight=torch.eye(d, dtype=torch.float64), need_weights=True,
    )  # fmt: skip
    np.testing.assert_allclose(layer(x, x).detach(), judge.transpose(0, 1).detach(), atol=1e-13)


def test_scores_of_loaded_factors():
    w = fresh().standard_normal((6, 5))
    u, v = factorize(w, 5)
    layer = layer_of(k=5)
    layer.load_state_dict({"u": torch.tensor(math.sqrt(5) * u), "v": torch.tensor(v)})
    query, keys = tokens(1, 3, 6), tokens(1, 4, 5)
    scores = layer.scores(query, keys)
    np.testing.assert_allclose(
        scores.detach()[0], query.numpy()[0] @ w @ keys.numpy()[0].T, atol=1e-13
    )
    np.testing.assert_allclose(
        (softmax(scores, dim=-1) @ keys).detach(), layer(query, keys).detach(), atol=1e-14
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_hidden_sequence_gives_zeros(dtype):
    layer = layer_of(dtype=dtype)
    query, keys = tokens(2, 4, 6, dtype=dtype), tokens(2, 8, 5, seed=1, dtype=dtype)
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1] = False
    keys[1] = math.nan
    keys.requires_grad_()
    out = layer(query, keys, token_mask=mask)
    assert out.dtype == dtype
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    out.sum().backward()
    assert torch.equal(keys.grad[1], torch.zeros_like(keys.grad[1]))
    assert all(torch.isfinite(x.grad).all() for x in (layer.u, layer.v, keys))
    with torch.autocast("cpu", torch.bfloat16):
        narrow = layer(query, keys, token_mask=mask)
    np.testing.assert_allclose(narrow.float().detach(), out.float().detach(), atol=0.05)


def test_start_has_unit_variance():
    for d2, d1, k in ((64, 64, 8), (200, 50, 50), (30, 300, 1)):
        layer = layer_of(d2, d1, k)
        scores = layer.scores(tokens(1, 400, d2, seed=1), tokens(1, 400, d1, seed=2))
        assert scores.std().item() == pytest.approx(1, abs=0.5 if k == 1 else 0.25)
    one, two = ReducedRankAttention(64, 64, 8), ReducedRankAttention(64, 64, 8)
    assert one.u.dtype == torch.float32
    assert not torch.equal(one.u, two.u)
    assert not torch.equal(one.u, one.v)
    assert torch.equal(layer_of(64, 64, 8).u, layer_of(64, 64, 8).u)


def test_names_and_meta():
    layer, query, keys = layer_of(), tokens(2, 4, 6), tokens(2, 8, 5, seed=1)
    assert {name: tuple(x.shape) for name, x in layer.state_dict().items()} == {
        "u": (3, 6),
        "v": (3, 5),
    }
    assert repr(layer) == "ReducedRankAttention(query_dim=6, key_dim=5, k=3)"
    assert layer.to("meta")(query.to("meta"), keys.to("meta")).shape == (2, 4, 5)


QUERY, KEYS = tokens(2, 4, 6), tokens(2, 8, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((QUERY, KEYS[:1]), r"keys must have shape \(2, n_keys, 5\), got"),
        ((QUERY.float(), KEYS), "query must be of the type of the layer, torch.float64, got"),
        ((QUERY, KEYS[:, :0]), "keys must hold at least one token, got"),
        ((QUERY, KEYS, KEYS[:, :7]), r"values must have shape \(2, 8, value_dim\), got"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        layer_of()(*arguments)
