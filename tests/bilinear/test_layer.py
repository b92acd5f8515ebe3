"""The layer of reduced-rank scores against loops in NumPy and PyTorch's own attention."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
import torch
from matrices import fresh
from torch.nn.functional import multi_head_attention_forward, softmax

from lowrank_tutor import bilinear, caches
from lowrank_tutor.bilinear import ReducedRankAttention, factorize, reduced_rank_score


def layer_of(d2=6, d1=5, k=3, **options):
    options = {"dtype": torch.float64} | options
    return ReducedRankAttention(d2, d1, k, generator=torch.Generator().manual_seed(0), **options)


def tokens(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def by_loops(layer, query, keys, values=None, token_mask=None):
    """Average by the softmax of the scores, pair by pair, in NumPy."""
    u, v = layer.u.detach().numpy(), layer.v.detach().numpy()
    query, keys = query.detach().numpy(), keys.detach().numpy()
    values = keys if values is None else values.detach().numpy()
    out = np.zeros((*query.shape[:2], values.shape[2]))
    for b, i in np.ndindex(query.shape[:2]):
        real = [j for j in range(keys.shape[1]) if token_mask is None or token_mask[b, j]]
        if real:
            e = np.array([reduced_rank_score(query[b, i], u, v, keys[b, j]) / math.sqrt(len(u)) for j in real])
            weights = np.exp(e - e.max()) / np.exp(e - e.max()).sum()
            out[b, i] = weights @ values[b, real]
    return out


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("value_dim", [None, 1, 7])
def test_loops_agree(masked, value_dim):
    layer, query, keys = layer_of(), tokens(3, 4, 6), tokens(3, 8, 5, seed=1)
    values = None if value_dim is None else tokens(3, 8, value_dim, seed=2)
    mask = None
    if masked:
        mask = tokens(3, 8, seed=3) > 0
        mask[2] = False
        assert 0 < mask[:2].sum() < 16
    out = layer(query, keys, values, token_mask=mask)
    assert out.shape == (3, 4, value_dim or 5)
    np.testing.assert_allclose(out.detach(), by_loops(layer, query, keys, values, mask), atol=1e-13)


def test_pytorch_attention_head():
    """A head of width k with W_Q = U^T and W_K = V^T; values and output as they are."""
    d, k, n = 4, 4, 6
    layer, x = layer_of(d, d, k), tokens(1, n, d)
    judge, _ = multi_head_attention_forward(
        x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), d, 1, None, None, None, None, False, 0.0,
        torch.eye(d, dtype=torch.float64), None, use_separate_proj_weight=True, q_proj_weight=layer.u,
        k_proj_weight=layer.v, v_proj_weight=torch.eye(d, dtype=torch.float64), need_weights=True,
    )  # fmt: skip
    np.testing.assert_allclose(layer(x, x).detach(), judge.transpose(0, 1).detach(), atol=1e-13)


def test_scores_of_loaded_factors():
    w = fresh().standard_normal((6, 5))
    u, v = factorize(w, 5)
    layer = layer_of(k=5)
    layer.load_state_dict({"u": torch.tensor(math.sqrt(5) * u), "v": torch.tensor(v)})
    query, keys = tokens(1, 3, 6), tokens(1, 4, 5)
    scores = layer.scores(query, keys)
    np.testing.assert_allclose(scores.detach()[0], query.numpy()[0] @ w @ keys.numpy()[0].T, atol=1e-13)
    np.testing.assert_allclose((softmax(scores, dim=-1) @ keys).detach(), layer(query, keys).detach(), atol=1e-14)


def test_gradients_by_differences():
    layer = layer_of(4, 3, 2)
    query, keys, values = (tokens(2, n, d, seed=n).requires_grad_() for n, d in ((2, 4), (5, 3), (5, 2)))
    mask = torch.tensor([[True, False, True, True, False], [False] * 5])

    def call(u, v, *arguments):
        return torch.func.functional_call(layer, {"u": u, "v": v}, (*arguments, mask))

    u, v = (x.detach().clone().requires_grad_() for x in (layer.u, layer.v))
    assert torch.autograd.gradcheck(call, (u, v, query, keys, values))
    assert torch.autograd.gradcheck(layer, (query, keys))


@pytest.mark.parametrize("poison", [1e3, float("nan"), float("inf")])
def test_hidden_tokens_change_nothing(poison):
    layer, query, keys, values = layer_of(), tokens(2, 4, 6), tokens(2, 8, 5, seed=1), tokens(2, 8, 3, seed=2)
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[0, 5:] = mask[1, 0] = False
    clean = layer(query, keys, values, mask)
    clean.sum().backward()
    gradients = [layer.u.grad.clone(), layer.v.grad.clone()]
    layer.zero_grad()
    hidden = ~mask.unsqueeze(2)
    dirty = layer(query, keys.masked_fill(hidden, poison), values.masked_fill(hidden, poison), mask)
    dirty.sum().backward()
    assert torch.equal(clean, dirty)
    assert torch.equal(gradients[0], layer.u.grad)
    assert torch.equal(gradients[1], layer.v.grad)
    unmasked = layer(query, keys, values)
    assert not torch.allclose(unmasked, clean)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_hidden_sequence_gives_zeros(dtype):
    layer = layer_of(dtype=dtype)
    query, keys = tokens(2, 4, 6, dtype=dtype), tokens(2, 8, 5, seed=1, dtype=dtype).requires_grad_()
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1] = False
    out = layer(query, keys, token_mask=mask)
    assert out.dtype == dtype
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    out.sum().backward()
    assert torch.equal(keys.grad[1], torch.zeros_like(keys.grad[1]))
    assert all(torch.isfinite(x.grad).all() for x in (layer.u, layer.v, keys))
    assert keys.grad[0].abs().sum() > 0


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


def test_state_copy_and_pickle():
    layer, query, keys = layer_of(), tokens(2, 4, 6), tokens(2, 8, 5, seed=1)
    assert sorted(layer.state_dict()) == ["u", "v"]
    assert [tuple(x.shape) for x in layer.state_dict().values()] == [(3, 6), (3, 5)]
    other = ReducedRankAttention(6, 5, 3, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(query, keys), layer(query, keys))
        assert type(same) is ReducedRankAttention
    assert repr(layer) == "ReducedRankAttention(query_dim=6, key_dim=5, k=3)"
    assert (layer.query_dim, layer.key_dim, layer.k) == (6, 5, 3)


def test_mixed_precision():
    layer, query, keys = layer_of(dtype=torch.float32), tokens(2, 4, 6).float(), tokens(2, 8, 5, seed=1).float()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(query, keys.bfloat16(), keys)
        with pytest.raises(
            TypeError, match=r"^keys must be of the type of the layer, torch\.float32, got torch\.int64$"
        ):
            layer(query, keys.long())
    np.testing.assert_allclose(out.float().detach(), layer(query, keys).detach(), atol=0.05)


def test_meta_device():
    layer = ReducedRankAttention(6, 5, 3, device="meta")
    out = layer(torch.empty(2, 4, 6, device="meta"), torch.empty(2, 8, 5, device="meta"))
    assert out.shape == (2, 4, 5)
    assert layer_of()(tokens(2, 0, 6), tokens(2, 8, 5)).shape == (2, 0, 5)  # no query
    with pytest.raises(ValueError, match=r"^query must be on the device of the layer, meta, got cpu$"):
        layer(torch.empty(2, 4, 6), torch.empty(2, 8, 5))
    query, keys = torch.empty(2, 4, 6, device="meta"), torch.empty(2, 8, 5, device="meta")
    with pytest.raises(ValueError, match=r"^token_mask must be on the device of the keys, meta, got cpu$"):
        layer(query, keys, token_mask=torch.ones(2, 8, dtype=torch.bool))


QUERY, KEYS = tokens(2, 4, 6), tokens(2, 8, 5)
MASK, BOOLS = torch.ones(2, 8, dtype=torch.bool), "token_mask must be a bool tensor (True marks a real token), got "
TYPE = "must be of the type of the layer, torch.float64, got"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda layer, method=method, pair=pair: getattr(layer, method)(*pair), error, message)
          for method in ("forward", "scores")
          for pair, error, message in (
            ((QUERY[0], KEYS), ValueError, "query must have shape (batch, tokens, 6), got shape (4, 6)"),
            ((KEYS, KEYS), ValueError, "query must have shape (batch, tokens, 6), got shape (2, 8, 5)"),
            ((QUERY, QUERY), ValueError, "keys must have shape (batch, tokens, 5), got shape (2, 4, 6)"),
            ((QUERY, KEYS[:1]), ValueError,
             "keys must have the batch size of query, got shapes (1, 8, 5) and (2, 4, 6)"),
            ((QUERY.numpy(), KEYS), TypeError, "query must be a tensor, got ndarray"),
            ((QUERY.float(), KEYS), TypeError, f"query {TYPE} torch.float32"),
            ((QUERY, KEYS.long()), TypeError, f"keys {TYPE} torch.int64"))),
        (lambda layer: layer(QUERY, KEYS[:, :0]), ValueError,
         "keys must hold at least one token, got shape (2, 0, 5)"),
        (lambda layer: layer(QUERY, KEYS, KEYS[0]), ValueError,
         "values must have shape (batch, tokens, value_dim), got shape (8, 5)"),
        (lambda layer: layer(QUERY, KEYS, KEYS[:1]), ValueError,
         "values must have the batch size of keys, got shapes (1, 8, 5) and (2, 8, 5)"),
        (lambda layer: layer(QUERY, KEYS, KEYS[:, :7]), ValueError,
         "values must be as many as keys, got shapes (2, 7, 5) and (2, 8, 5)"),
        (lambda layer: layer(QUERY, KEYS, KEYS.bool()), TypeError, f"values {TYPE} torch.bool"),
        (lambda layer: layer(QUERY, KEYS, None, MASK.float()), TypeError, BOOLS + "torch.float32"),
        (lambda layer: layer(QUERY, KEYS, None, MASK[:, :4]), ValueError,
         "token_mask must have shape (batch, n_keys) = (2, 8), got shape (2, 4)"),
        (lambda _: ReducedRankAttention(0, 5, 1), ValueError, "query_dim must be at least 1, got 0"),
        (lambda _: ReducedRankAttention(2**31, 5, 1), ValueError, "query_dim must be below 2**31, got 2147483648"),
        (lambda _: ReducedRankAttention(5, 0, 1), ValueError, "key_dim must be at least 1, got 0"),
        (lambda _: ReducedRankAttention(6, 5, 0), ValueError,
         "k must be between 1 and min(query_dim, key_dim) = 5, got 0"),
        (lambda _: ReducedRankAttention(5, 6, 6), ValueError,
         "k must be between 1 and min(query_dim, key_dim) = 5, got 6"),
        (lambda _: ReducedRankAttention(2, 2, 1, dtype=torch.int64), TypeError,
         "dtype must be a floating-point type, got torch.int64"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, error, message):
    assert ReducedRankAttention(1, 1, 1).k == 1
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call(layer_of())


@pytest.mark.parametrize("room", [bilinear, caches])
def test_unknown_names(room):
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match=rf"^module '{room.__name__}' has no attribute 'Nothing'$"):
        _ = room.Nothing
