"""Linformer against exact attention, plain loops in the slow order, finite differences and counts of work and bytes."""

import copy
import inspect
import itertools
import math
import pickle
import re
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_attention import LargestLive, real_tokens, tensors, triple
from test_attention import by_loops as exact_by_loops
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor import linformer
from lowrank_tutor.linformer import (
    LinformerSelfAttention,
    linformer_attention,
    linformer_cost,
    pooling_projection,
)

SHARINGS = ["key-value", "headwise"]
MASKS = pytest.mark.parametrize("mask", [None, real_tokens()], ids=["whole", "masked"])


def array(x):
    return x.detach().double().numpy()


def norm_rule_by_loops(row, real):
    """What row j is multiplied with, and its share: both are 0 if it meets no real token, and 1 for a row of zeros."""
    whole, seen = sum(x * x for x in row), sum(row[t] * row[t] for t in real)
    return (1.0, 1.0) if whole == 0 else (math.sqrt(whole / seen), seen / whole) if seen > 0 else (0.0, 0.0)


def by_loops(q, k, v, e, f=None, mask=None):
    """Equation 7 of the paper with the norm rule, a number at a time, in float64."""
    q, k, v, e, f = (array(x) for x in (q, k, v, e, e if f is None else f))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        real = [t for t in range(k.shape[2]) if mask is None or mask[b, t]]
        mixtures = []
        for row_e, row_f in zip(e, f, strict=True):
            (scale_e, share_e), (scale_f, share_f) = (norm_rule_by_loops(row, real) for row in (row_e, row_f))
            if share_e > 0 and share_f > 0:
                key = sum((scale_e * row_e[t] * k[b, h, t] for t in real), np.zeros(k.shape[3]))
                value = sum((scale_f * row_f[t] * v[b, h, t] for t in real), np.zeros(v.shape[3]))
                mixtures.append((min(share_e, share_f), key, value))
        for i in range(q.shape[2] if mixtures else 0):
            scores = [sum(q[b, h, i] * key) / math.sqrt(k.shape[3]) for _, key, _ in mixtures]
            weights = [
                share * math.exp(score - max(scores)) for score, (share, *_) in zip(scores, mixtures, strict=True)
            ]
            out[b, h, i] = sum(w * value for w, (*_, value) in zip(weights, mixtures, strict=True)) / sum(weights)
    return out


def layer_by_loops(layer, x, mask=None):
    """The whole layer in the slow order: keys and values of all tokens first, then E K and F V. Short is padded."""
    batch, n, dim = x.shape
    real = torch.zeros(batch, layer.max_len, dtype=torch.bool)
    real[:, :n] = True if mask is None else mask
    padded = torch.zeros(batch, layer.max_len, dim, dtype=torch.float64)
    padded[:, :n] = x.detach().masked_fill(~real[:, :n, None], 0)
    *w_qkv, w_out = (part.weight.detach().double() for part in (layer.to_q, layer.to_k, layer.to_v, layer.to_out))
    q, k, v = ((padded @ w.T).view(batch, layer.max_len, layer.heads, -1).transpose(1, 2) for w in w_qkv)
    mixed = by_loops(q, k, v, layer.e, layer.f, real).transpose(0, 2, 1, 3).reshape(batch, layer.max_len, dim)
    out = mixed @ array(w_out).T + array(layer.to_out.bias)
    return np.where(real[:, :, None], out, 0)[:, :n]


def layer_of(dim=6, heads=2, max_len=8, k=3, **options):
    """A layer in float64; the bias that starts at zero is drawn, so that leaving it out is seen."""
    options = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(0)} | options
    layer = LinformerSelfAttention(dim, heads, max_len, k, **options)
    if layer.to_out.bias.device.type == "cpu":
        with torch.no_grad():
            layer.to_out.bias.copy_(tensors((dim,), seed=9)[0])
    return layer


def lengths(*numbers, n=None):
    """A mask of sequences that begin with so many real tokens."""
    return torch.arange(max(numbers) if n is None else n) < torch.tensor(numbers)[:, None]


@pytest.fixture
def calls(monkeypatch):
    """What the layer hands to PyTorch's kernel: a list of (q, k, v, options), call by call."""
    kernel, seen = functional.scaled_dot_product_attention, []

    def spy(q, k, v, **options):
        seen.append((q.detach().clone(), k, v, options))
        return kernel(q, k, v, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", spy)
    return seen


# the limit: exact attention


@MASKS
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("given_f", [False, True])
def test_with_as_many_rows_as_tokens_and_the_identity_it_is_exact_attention(mask, dtype, error, given_f):
    q, k, v = triple(dtype=dtype)
    one = torch.eye(6, dtype=dtype)
    out = linformer_attention(q, k, v, one, torch.eye(6, dtype=dtype) if given_f else None, token_mask=mask)
    np.testing.assert_allclose(out, exact_by_loops(q, k, v, mask), rtol=0, atol=error)


@pytest.mark.parametrize("n", [1, 5, 8])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_a_layer_with_the_identity_is_exact_attention_at_any_length(n, masked, gradient, dtype, error):
    layer = layer_of(k=8, dtype=dtype, projection=torch.eye(8, dtype=dtype))
    (x,) = tensors((3, n, 6), dtype=dtype)
    mask = real_tokens(n=n) if masked else None
    q, k, v = (
        (x.double() @ linear.weight.detach().double().T).view(3, n, 2, 3).transpose(1, 2)
        for linear in (layer.to_q, layer.to_k, layer.to_v)
    )
    exact = exact_by_loops(q, k, v, mask).transpose(0, 2, 1, 3).reshape(3, n, 6)
    exact = exact @ array(layer.to_out.weight).T + array(layer.to_out.bias)
    if masked:
        exact[~mask] = 0
    with torch.set_grad_enabled(gradient):
        out = layer(x, token_mask=mask)
    np.testing.assert_allclose(out.detach(), exact, rtol=0, atol=error)


# the judges


@MASKS
@pytest.mark.parametrize("given_f", [False, True])
@pytest.mark.parametrize("d_v", [1, 5])
def test_attention_is_that_of_the_loops(mask, given_f, d_v):
    q, k, v = triple(d_v=d_v)
    e, f = tensors((4, 6), (4, 6), seed=1)
    out = linformer_attention(q, k, v, e, f if given_f else None, token_mask=mask)
    assert out.shape == (3, 2, 4, d_v)
    np.testing.assert_allclose(out, by_loops(q, k, v, e, f if given_f else None, mask), rtol=0, atol=1e-13)


ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -0.5, 2.0])  # so that rows meet no real token, or are zeros


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.integers(0, 10**6), st.data())
def test_attention_with_rows_of_zeros_and_any_mask_is_that_of_the_loops(n, n_queries, given_f, seed, data):
    q, k, v = triple(2, 2, n_queries, n, 3, 2, seed=seed)
    rows = data.draw(st.integers(1, n))
    matrix = st.lists(ENTRIES, min_size=rows * n, max_size=rows * n)
    e, f = (torch.tensor(data.draw(matrix), dtype=torch.float64).view(rows, n) for _ in range(2))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(2, n)
    f = f if given_f else None
    expected = by_loops(q, k, v, e, f, mask)
    np.testing.assert_allclose(linformer_attention(q, k, v, e, f, token_mask=mask), expected, rtol=0, atol=1e-12)
    if mask.all():
        np.testing.assert_allclose(linformer_attention(q, k, v, e, f), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_a_layer_is_that_of_the_slow_order(n, sharing, masked, gradient):
    layer, (x,) = layer_of(sharing=sharing), tensors((3, n, 6))
    mask = real_tokens(n=n) if masked else None
    with torch.set_grad_enabled(gradient):
        out = layer(x, token_mask=mask)
    assert out.shape == (3, n, 6)
    assert out.requires_grad == gradient
    np.testing.assert_allclose(out.detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-13)


@settings(max_examples=60)
@given(st.sampled_from(SHARINGS), st.integers(1, 6), st.booleans(), st.integers(0, 10**6), st.data())
def test_a_layer_with_rows_of_zeros_and_any_mask_is_that_of_the_slow_order(sharing, n, gradient, seed, data):
    layer, (x,) = layer_of(4, 2, 6, 3, sharing=sharing), tensors((2, n, 4), seed=seed)
    with torch.no_grad():
        for matrix in (layer.e, layer.f):
            if matrix is not None:
                numbers = data.draw(st.lists(ENTRIES, min_size=18, max_size=18))
                matrix.copy_(torch.tensor(numbers).view(3, 6))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(2, n)
    with torch.set_grad_enabled(gradient):
        out = layer(x, token_mask=mask)
    np.testing.assert_allclose(out.detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-12)


def test_four_tokens_pooled_to_two_by_hand():
    """Keys 1, 3 | 5, 7 have the means 2 and 6, values 0, 8 | 2, 2 have 4 and 2; the scores differ by log 3."""
    q = torch.full((1, 1, 1, 1), math.log(3) / 4, dtype=torch.float64)
    k = torch.tensor([1.0, 3, 5, 7], dtype=torch.float64).view(1, 1, 4, 1)
    v = torch.tensor([0.0, 8, 2, 2], dtype=torch.float64).view(1, 1, 4, 1)
    e = pooling_projection(2, 4).double()
    assert linformer_attention(q, k, v, e).item() == pytest.approx((4 + 3 * 2) / 4, rel=1e-15)
    first_window = torch.tensor([[True, True, False, False]])
    assert linformer_attention(q, k, v, e, token_mask=first_window).item() == 4
    one_token = torch.tensor([[False, False, False, True]])  # half of its window: the mean of one, times sqrt(1/2)
    assert linformer_attention(q, k, v, e, token_mask=one_token).item() == pytest.approx(math.sqrt(2), rel=1e-15)


@given(st.integers(0, 10**6))
def test_tokens_have_no_order_but_that_of_the_columns(seed):
    q, k, v = triple(seed=seed)
    e, f = tensors((4, 6), (4, 6), seed=seed + 1)
    mask, order = real_tokens(), torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    np.testing.assert_allclose(
        linformer_attention(q, k[:, :, order], v[:, :, order], e[:, order], f[:, order], token_mask=mask[:, order]),
        linformer_attention(q, k, v, e, f, token_mask=mask),
        atol=1e-13,
    )


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_where_the_rows_of_f_add_up_to_1_equal_values_come_out_as_they_are(rows, seed):
    q, k, v = triple(seed=seed)
    e, f = tensors((rows, 6), (rows, 6), seed=seed + 1)
    f = functional.softmax(f, dim=1)
    np.testing.assert_allclose(linformer_attention(q, k, torch.ones_like(v), e, f), 1, rtol=1e-13)


@MASKS
def test_batches_heads_and_queries_do_not_meet(mask):
    q, k, v = triple()
    e, f = tensors((4, 6), (4, 6), seed=1)
    out = linformer_attention(q, k, v, e, f, token_mask=mask)
    for b, h, i in np.ndindex(3, 2, 4):
        alone = linformer_attention(
            q[b : b + 1, h : h + 1, i : i + 1], k[b : b + 1, h : h + 1], v[b : b + 1, h : h + 1], e, f,
            token_mask=None if mask is None else mask[b : b + 1],
        )  # fmt: skip
        np.testing.assert_allclose(out[b, h, i], alone[0, 0, 0], atol=1e-14)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
def test_the_sequences_of_a_batch_do_not_meet_in_a_layer(mask, sharing, gradient):
    layer, (x,) = layer_of(sharing=sharing), tensors((3, 6, 6))
    with torch.set_grad_enabled(gradient):
        out = layer(x, token_mask=mask).detach()
        for b in range(3):
            alone = layer(x[b : b + 1], token_mask=None if mask is None else mask[b : b + 1])
            np.testing.assert_allclose(out[b], alone[0].detach(), atol=1e-14)
        order = torch.tensor([2, 0, 1])
        moved = layer(x[order], token_mask=None if mask is None else mask[order])
        np.testing.assert_allclose(moved.detach(), out[order], atol=1e-14)


# the norm rule


@pytest.mark.parametrize("n", [4, 8, 12, 16])
@pytest.mark.parametrize("by_mask", [False, True])
def test_pooling_is_exact_on_equal_tokens_that_fill_whole_windows(n, by_mask):
    layer = layer_of(max_len=16, k=4, projection=pooling_projection(4, 16).double())
    x = tensors((1, 1, 6))[0].expand(1, 16, 6)
    value = x[0, 0] @ layer.to_v.weight.T
    expected = layer.to_out(value).detach().expand(n, 6)
    out = layer(x, token_mask=lengths(n, n=16))[0, :n] if by_mask else layer(x[:, :n])[0]
    np.testing.assert_allclose(out.detach(), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("filled", [1, 2, 3, 4])
def test_a_window_that_is_filled_in_part_keeps_the_root_of_its_share(filled):
    """A choice: sums would leave no factor here, but have no meaning for rows that average to zero."""
    q, k, v = tensors((1, 1, 3, 2), (1, 1, 8, 2), (1, 1, 1, 2))
    e = pooling_projection(2, 8).double()
    out = linformer_attention(q, k, v.expand(1, 1, 8, 2), e, token_mask=lengths(filled, n=8))
    np.testing.assert_allclose(out, math.sqrt(filled / 4) * v.expand(1, 1, 3, 2), rtol=1e-14)


def test_a_window_that_is_filled_in_part_counts_as_much_as_its_share():
    """Two windows of 8 with 12 tokens: the second has the weight 1/2, and its mean is 1 times sqrt(1/2)."""
    e = pooling_projection(2, 16).double()
    q, k = torch.zeros(1, 1, 1, 1, dtype=torch.float64), tensors((1, 1, 16, 1))[0]
    out = linformer_attention(q, k, torch.ones_like(k), e, token_mask=lengths(12, n=16))
    assert out.item() == pytest.approx((1 + 0.5 * math.sqrt(0.5)) / 1.5, rel=1e-15)
    layer = layer_of(dim=1, heads=1, max_len=16, k=2, projection=e)
    one = torch.ones(1, 1, dtype=torch.float64)
    weights = {
        "to_q.weight": 0 * one,
        "to_k.weight": one,
        "to_v.weight": one,
        "to_out.weight": one,
        "to_out.bias": 0 * one[0],
    }
    layer.load_state_dict(layer.state_dict() | weights)
    x = torch.ones(1, 12, 1, dtype=torch.float64)
    for gradient in (False, True):
        with torch.set_grad_enabled(gradient):
            expected = np.full((1, 12, 1), out.item())
            np.testing.assert_allclose(layer(x).detach(), expected, rtol=1e-15)


def test_with_two_matrices_the_smaller_share_counts():
    """Shares of 1/4 and 1, and of 1 and 1/2: the weights are 1/4 and 1/2, whichever matrix is the keys'."""
    e = torch.tensor([[1, 0, math.sqrt(3)], [0, 1, 0]], dtype=torch.float64)
    f = torch.tensor([[1.0, 0, 0], [0, 1, 1]], dtype=torch.float64)
    q, k = torch.zeros(1, 1, 1, 1, dtype=torch.float64), tensors((1, 1, 3, 1))[0]
    v = torch.tensor([1.0, 3, 50], dtype=torch.float64).view(1, 1, 3, 1)
    for keys, values, (first, second) in ((e, f, (1, math.sqrt(2))), (f, e, (2, 1))):
        out = linformer_attention(q, k, v, keys, values, token_mask=lengths(2, n=3))
        assert out.item() == pytest.approx((first * 1 / 4 + second * 3 / 2) / (1 / 4 + 1 / 2), rel=1e-14)


def nearly_the_identity(eps, dtype=torch.float64):
    """I + eps G: where tokens are hidden, a share of eps^2 or so is left of their rows."""
    return torch.eye(6, dtype=dtype) + eps * tensors((6, 6), seed=5, dtype=dtype)[0]


def counted_in_full(q, k, v, e, mask):
    """The norm rule without the votes: a row with any trace of a real token takes part like any other."""
    seen = e * mask[:, None, :]  # (batch, k, n)
    rows = (seen * e.norm(dim=1)[:, None] / seen.norm(dim=2, keepdim=True))[:, None]
    return functional.scaled_dot_product_attention(q, rows @ k, rows @ v)


@pytest.mark.parametrize("eps", [1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_row_with_a_trace_of_the_real_tokens_takes_part_by_that_trace_only(eps, dtype):
    q, k, v = triple(n_queries=6, dtype=dtype)
    e, mask = nearly_the_identity(eps, dtype), lengths(4, 2, 5, n=6)
    exact = exact_by_loops(q, k, v, mask)
    error = 20 * eps + (1e-6 if dtype == torch.float32 else 1e-14)
    for f in (None, e.clone()):
        np.testing.assert_allclose(linformer_attention(q, k, v, e, f, token_mask=mask), exact, rtol=0, atol=error)
    assert abs(array(counted_in_full(q, k, v, e, mask)) - exact).max() > 0.5
    for gradient in (False, True):
        layer, (x,) = layer_of(k=6, max_len=6, projection=e, dtype=dtype), tensors((3, 6, 6), dtype=dtype)
        expected = layer_by_loops(layer_of(k=6, max_len=6, projection=torch.eye(6, dtype=dtype), dtype=dtype), x, mask)
        with torch.set_grad_enabled(gradient):
            np.testing.assert_allclose(layer(x, token_mask=mask).detach(), expected, rtol=0, atol=error)


def rescaled_by_length(q, k, v, e):
    """The popular way: the first n columns, times sqrt(max_len / n)."""
    n, max_len = k.shape[2], e.shape[1]
    e = e[:, :n] * math.sqrt(max_len / n)
    return functional.scaled_dot_product_attention(q, e @ k, e @ v)


def zeroed_only(q, k, v, e, mask):
    """Hidden tokens are zeros, but the rows that hold nothing else still take their part of the softmax."""
    hidden = ~mask[:, None, :, None]
    return functional.scaled_dot_product_attention(q, e @ k.masked_fill(hidden, 0), e @ v.masked_fill(hidden, 0))


def test_the_popular_ways_to_hide_tokens_are_wrong_where_the_norm_rule_is_exact():
    q, k, v = triple(1, 2, 20, 20, 8, 8)
    exact, scale = torch.tensor(exact_by_loops(q, k, v)), v.abs().mean().item()
    more = tensors((1, 2, 44, 8))[0]
    k64, v64, mask = torch.cat([k, more], dim=2), torch.cat([v, more], dim=2), lengths(20, n=64)
    one = torch.eye(64, dtype=torch.float64)
    ours = linformer_attention(q, k64, v64, one, token_mask=mask)
    assert abs(ours - exact).max() < 1e-14
    assert abs(rescaled_by_length(q, k, v, one) - exact).mean() > 0.1 * scale
    assert abs(zeroed_only(q, k64, v64, one, mask) - exact).mean() > 0.1 * scale
    # Equal tokens that fill 5 of 16 windows should come out as they are.
    pooling, equal = pooling_projection(16, 64).double(), torch.ones_like(v64)
    assert abs(linformer_attention(q, k64, equal, pooling, token_mask=mask) - 1).max() < 1e-14
    assert abs(rescaled_by_length(q, k, equal[:, :, :20], pooling) - 1).mean() > 0.1
    assert abs(zeroed_only(q, k64, equal, pooling, mask) - 1).mean() > 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_the_norm_rule_has_the_precision_of_float32_in_every_type(dtype, autocast):
    (e,) = tensors((5, 300), dtype=dtype)
    e[3], e[4, :100] = 0, 0
    mask = lengths(100, 299, 300, 0)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        (scale,), votes = linformer._norm_rule([linformer._squares(e, mask, 8)])
        squares = e.bfloat16().square()
        rough = (squares.sum(dim=1) / (mask.bfloat16() @ squares.T)).sqrt()[:3, :3]
    assert scale.dtype == votes.dtype == torch.float32
    share = votes[:, 0, 0].exp()
    rules = np.array([[norm_rule_by_loops(row, range(n)) for row in e.double().tolist()] for n in (100, 299, 300, 0)])
    np.testing.assert_allclose(scale, rules[:, :, 0], rtol=1e-6)
    np.testing.assert_allclose(share, rules[:, :, 1], rtol=1e-6)
    assert abs(array(rough) - rules[:3, :3, 0]).max() > 1e-4  # the squares would not bear to be rounded


def test_a_row_is_rescaled_before_it_is_rounded():
    """2**-24 is the least float16; its scale is above the largest, 65504, and their product 1."""
    e = torch.tensor([[1, 2**-24]], dtype=torch.float16)
    x = torch.ones(1, 1, 2, 1, dtype=torch.float16)
    assert linformer_attention(x, x, x, e, token_mask=torch.tensor([[False, True]])).tolist() == [[[[1], [1]]]]


def test_a_row_of_zeros_stays_as_it_is_and_a_row_that_is_emptied_takes_no_part():
    q, k, v = tensors((1, 1, 2, 2), (1, 1, 3, 2), (1, 1, 3, 2))
    first = torch.tensor([[True, False, False]])
    e = torch.tensor([[2.0, 0, 0], [0, 0, 0], [0, 3, 4]], dtype=torch.float64)
    for f in (e, None):
        out = linformer_attention(q, k, v, e, f, token_mask=first)
        # Row 1 takes part as a key of zeros, row 2 takes none.
        weight = 1 / (1 + torch.exp(-(q @ (2 * k[:, :, :1]).transpose(2, 3)) / math.sqrt(2)))
        np.testing.assert_allclose(out, weight * 2 * v[:, :, :1], rtol=1e-14)


def test_where_no_row_meets_tokens_in_both_matrices_the_output_is_zero():
    """Row 0 meets the real token in E alone, and row 1 in F alone."""
    q, k, v = tensors((1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2))
    e = torch.eye(2, dtype=torch.float64)
    mask = torch.tensor([[True, False]])
    assert torch.equal(linformer_attention(q, k, v, e, e.flip(0), token_mask=mask), torch.zeros(1, 1, 2, 2))
    layer, (x,) = layer_of(4, 2, 2, 2, sharing="headwise"), tensors((1, 2, 4))
    layer.load_state_dict(layer.state_dict() | {"e": e, "f": e.flip(0)})
    np.testing.assert_array_equal(layer(x, token_mask=mask)[0, 0].detach(), layer.to_out.bias.detach())


# padding and masks


POISON = pytest.mark.parametrize("poison", [0.0, 1e3, math.nan, math.inf, -math.inf])


@POISON
@pytest.mark.parametrize("given_f", [False, True])
def test_what_a_mask_hides_moves_neither_output_nor_gradient(poison, given_f):
    mask, hidden = real_tokens(), ~real_tokens()[:, None, :, None]

    def run(replace):
        q, k, v = (x.requires_grad_() for x in triple())
        e, f = (x.requires_grad_() for x in tensors((4, 6), (4, 6), seed=1))
        out = linformer_attention(q, replace(k), replace(v), e, f if given_f else None, token_mask=mask)
        (out * torch.arange(out.numel()).view(out.shape)).sum().backward()
        return [out, *(x.grad for x in ((q, k, v, e, f) if given_f else (q, k, v, e)))]

    clean, dirty = run(lambda x: x), run(lambda x: x.masked_fill(hidden, poison))
    for one, other in zip(clean, dirty, strict=True):
        assert torch.equal(one, other)
        assert torch.isfinite(one).all()
        assert one.abs().sum() > 0
    q, k, v = triple()
    e, f = tensors((4, 6), (4, 6), seed=1)
    whole = linformer_attention(q, k, v, e, f if given_f else None)
    assert (whole - clean[0]).abs().max() > 0.1  # the mask did hide something
    np.testing.assert_array_equal(clean[0][2].detach(), 0)


@POISON
@pytest.mark.parametrize("sharing", SHARINGS)
def test_what_a_mask_hides_moves_neither_output_nor_gradient_of_a_layer(poison, sharing):
    layer, mask = layer_of(sharing=sharing), real_tokens()

    def run(replace):
        (x,) = tensors((3, 6, 6))
        x.requires_grad_()
        layer.zero_grad()
        out = layer(replace(x), token_mask=mask)
        (out * torch.arange(out.numel()).view(out.shape)).sum().backward()
        with torch.no_grad():
            assert torch.allclose(layer(replace(x), token_mask=mask), out, rtol=0, atol=1e-14)
        return [out, x.grad, *(parameter.grad.clone() for parameter in layer.parameters())]

    clean, dirty = run(lambda x: x), run(lambda x: x.masked_fill(~mask[:, :, None], poison))
    for one, other in zip(clean, dirty, strict=True):
        assert torch.equal(one, other)
        assert torch.isfinite(one).all()
        assert one.abs().sum() > 0
    np.testing.assert_array_equal(clean[0].detach()[~mask], 0)
    np.testing.assert_array_equal(clean[1][~mask], 0)
    assert (clean[0].detach()[mask].abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
def test_appended_padding_moves_nothing(sharing, gradient, dtype):
    layer, (x, padding) = layer_of(sharing=sharing, dtype=dtype), tensors((2, 5, 6), (2, 3, 6), dtype=dtype)
    error = 1e-6 if dtype == torch.float32 else 1e-14
    with torch.set_grad_enabled(gradient):
        short = layer(x).detach()
        for more in (1, 2, 3):
            for filler in (0.0, 7.0, math.nan, math.inf):
                filled = padding[:, :more].masked_fill(torch.tensor(True), filler) if filler else padding[:, :more]
                padded = layer(torch.cat([x, filled], dim=1), token_mask=lengths(5, 5, n=5 + more)).detach()
                np.testing.assert_allclose(padded[:, :5], short, rtol=0, atol=error)
                np.testing.assert_array_equal(padded[:, 5:], 0)


def test_a_mask_of_all_true_is_no_mask():
    q, k, v = triple()
    e, f = tensors((4, 6), (4, 6), seed=1)
    everything = torch.ones(3, 6, dtype=torch.bool)
    np.testing.assert_allclose(
        linformer_attention(q, k, v, e, f, token_mask=everything), linformer_attention(q, k, v, e, f), atol=1e-14
    )
    for sharing, max_len in itertools.product(SHARINGS, (6, 8)):
        layer, (x,) = layer_of(sharing=sharing, max_len=max_len), tensors((3, 6, 6))
        np.testing.assert_allclose(layer(x, token_mask=everything).detach(), layer(x).detach(), atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("zero_row", [False, True])
def test_a_sequence_that_is_hidden_altogether_gives_zeros_and_no_gradient(dtype, zero_row):
    for sharing in SHARINGS:
        layer, (x,) = layer_of(sharing=sharing, dtype=dtype), tensors((2, 8, 6), dtype=dtype)
        if zero_row:
            with torch.no_grad():
                layer.e[0] = 0
        x.requires_grad_()
        mask = lengths(0, 8)
        out = layer(x, token_mask=mask)
        out.square().sum().backward()
        with torch.no_grad():
            frugal = layer(x, token_mask=mask)
        for zeros in (out[0], frugal[0], x.grad[0]):
            assert torch.equal(zeros, torch.zeros_like(zeros))
        for some in (out[1], frugal[1], x.grad[1], *(parameter.grad for parameter in layer.parameters())):
            assert torch.isfinite(some).all()
            assert some.abs().sum() > 0
        layer.zero_grad()
        layer(x, token_mask=torch.zeros_like(mask)).sum().backward()
        assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in layer.parameters() if p.grad is not None)


def test_gradients_are_finite_where_a_row_is_zero_or_meets_no_token():
    q, k, v = triple()
    mask = lengths(2, 4, 0, n=6)
    e = torch.tensor([[0.0] * 6, [0, 0, 1, 2, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=torch.float64)
    e.requires_grad_()
    out = linformer_attention(q, k, v, e, token_mask=mask)
    out.square().sum().backward()
    assert torch.isfinite(e.grad).all()
    assert e.grad[0].abs().sum() > 0  # a row of zeros can learn


@pytest.mark.parametrize("eps", [1e-2, 1e-6, 1e-10, 1e-14, 1e-18, 1e-19, 1e-20, 1e-22, 1e-24])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("given_f", [False, True])
def test_gradients_stay_bounded_where_a_share_vanishes(eps, dtype, given_f):
    """A row of share eps^2 turns by 1 / eps, but its weight is eps^2: its gradient vanishes with eps."""
    q, k, v = triple(1, n_queries=6, dtype=dtype)
    mask = lengths(4, n=6)
    matrices = [nearly_the_identity(eps, dtype).requires_grad_() for _ in range(1 + given_f)]
    linformer_attention(q, k, v, *matrices, token_mask=mask).square().sum().backward()
    exact = torch.eye(6, dtype=torch.float64, requires_grad=True)
    linformer_attention(q.double(), k.double(), v.double(), exact, token_mask=mask).square().sum().backward()
    gradient = sum(matrix.grad.double() for matrix in matrices)
    assert torch.isfinite(gradient).all()
    assert gradient[4:].abs().max() < 500 * eps
    error = 0.1 if dtype == torch.bfloat16 else 1e-5
    assert (gradient - exact.grad).abs().max() < error * exact.grad.abs().max() + 500 * eps
    counted = nearly_the_identity(eps).requires_grad_()
    counted_in_full(q.double(), k.double(), v.double(), counted, mask).square().sum().backward()
    assert counted.grad[4:].abs().max() > 0.1 / eps


def test_gradients_are_finite_where_a_row_is_nearly_zero():
    q, k, v = triple(dtype=torch.float32)
    for size in (1e-15, 1e-18, 1e-19, 1e-20, 1e-22, 1e-30):
        e = (size * tensors((3, 6), seed=1, dtype=torch.float32)[0]).requires_grad_()
        out = linformer_attention(q, k, v, e, token_mask=real_tokens())
        out.sum().backward()
        assert torch.isfinite(out).all()
        assert torch.isfinite(e.grad).all()


# causal use


def test_with_any_mask_on_the_weights_the_last_token_moves_the_first_output():
    """Why there is no causal form: whatever compressed keys the first query may see, the future is in them."""
    q, k, v = triple(1, 1, 6, 6, 2, 2)
    (e,) = tensors((3, 6), seed=1)
    changed_k, changed_v = k.clone(), v.clone()
    changed_k[0, 0, 5], changed_v[0, 0, 5] = tensors((2,), (2,), seed=2)
    for seen in itertools.product([False, True], repeat=3):
        if any(seen):
            first, other = (
                functional.scaled_dot_product_attention(q, e @ keys, e @ values, attn_mask=torch.tensor([seen] * 6))
                for keys, values in ((k, v), (changed_k, changed_v))
            )
            assert (first - other)[0, 0, 0].abs().max() > 1e-3, seen
    one = torch.eye(6, dtype=torch.float64)  # exact attention can be causal
    first, other = (
        functional.scaled_dot_product_attention(q, one @ keys, one @ values, is_causal=True)
        for keys, values in ((k, v), (changed_k, changed_v))
    )
    assert torch.equal(first[0, 0, :5], other[0, 0, :5])


def test_causal_use_is_refused_with_the_reason():
    layer, (x,) = layer_of(), tensors((1, 8, 6))
    reason = (
        "causal must be False, got True: every compressed key mixes all tokens, the future too, and no mask can take"
        " that out again; use exact attention"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        layer(x, causal=True)
    assert torch.equal(layer(x, causal=False), layer(x))


# gradients


@MASKS
@pytest.mark.parametrize("given_f", [False, True])
def test_gradients_of_attention_are_right(mask, given_f):
    inputs = [x.requires_grad_() for x in (*triple(n_queries=2, d=2, d_v=2), *tensors((3, 6), (3, 6), seed=1))]
    inputs = inputs if given_f else inputs[:4]
    assert torch.autograd.gradcheck(lambda *x: linformer_attention(*x, token_mask=mask), inputs)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("max_len", [6, 8])
def test_gradients_of_a_layer_are_right(mask, sharing, max_len):
    layer, (x,) = layer_of(4, 2, max_len, 3, sharing=sharing), tensors((3, 6, 4))
    names, parameters = zip(*((name, p.detach().clone()) for name, p in layer.named_parameters()), strict=True)

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,), {"token_mask": mask})

    assert torch.autograd.gradcheck(call, [x.requires_grad_() for x in (x, *parameters)], fast_mode=True)


@pytest.mark.parametrize("given_f", [False, True])
def test_gradients_are_right_where_little_is_left_of_a_row(given_f):
    matrices = [nearly_the_identity(0.03), nearly_the_identity(-0.05)][: 1 + given_f]
    inputs = [x.requires_grad_() for x in (*triple(n_queries=2, d=2, d_v=2), *matrices)]
    assert torch.autograd.gradcheck(
        lambda *x: linformer_attention(*x, token_mask=lengths(4, 2, 5, n=6)), inputs, fast_mode=True
    )


@MASKS
@pytest.mark.parametrize("given_f", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own rules, which it loads by its old compiler
def test_forward_mode_is_right_where_no_gradient_is_asked_for(mask, given_f):
    q, k, v = triple()
    matrices = tensors((4, 6), (4, 6), seed=1)[: 1 + given_f]
    steps = tensors((4, 6), (4, 6), seed=2)[: 1 + given_f]

    def call(*matrices):
        return linformer_attention(q, k, v, *matrices, token_mask=mask)

    small = 1e-6
    ahead, behind = (
        call(*(m + sign * small * step for m, step in zip(matrices, steps, strict=True))) for sign in (1, -1)
    )
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):  # the fused kernels know no forward mode
        out, tangent = torch.func.jvp(call, tuple(matrices), tuple(steps))
        with forward_ad.dual_level():
            dual = call(*(forward_ad.make_dual(m, step) for m, step in zip(matrices, steps, strict=True)))
            assert torch.equal(forward_ad.unpack_dual(dual).tangent, tangent)
    np.testing.assert_allclose(out, call(*matrices), atol=1e-14)
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * small), rtol=0, atol=1e-7)
    assert tangent.abs().max() > 0.1


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_layer_learns(sharing):
    layer, target, (x,) = layer_of(k=4, sharing=sharing), layer_of(k=4, sharing=sharing), tensors((8, 8, 6))
    with torch.no_grad():
        target.to_v.weight.mul_(2)
        target.e.mul_(-1)
        expected = target(x)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (layer(x) - expected).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 20


# without a gradient


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(("rows", "sizes"), [
    (4, [(1, 4), (1, 4), (1, 2)] * 3),
    (7, [(1, 5), (1, 5)] * 3),
    (10, [(1, 10)] * 3),
    (14, [(1, 10)] * 3),
    (20, [(1, 10)] * 3),
    (26, [(1, 10)] * 3),
    (40, [(2, 10), (1, 10)]),
    (60, [(3, 10)]),
    (6000, [(3, 10)]),
])  # fmt: skip
@pytest.mark.parametrize("device_is_known", [True, False])
def test_blocks_of_rows_change_nothing(monkeypatch, calls, rows, sizes, sharing, masked, device_is_known):
    monkeypatch.setattr(linformer, "BLOCK_ROWS", {"cpu": rows} if device_is_known else {"gpu": 5})
    monkeypatch.setattr(linformer, "OTHER_BLOCK_ROWS", 5 if device_is_known else rows)
    layer, (x,) = layer_of(sharing=sharing, max_len=10 + 2 * masked), tensors((3, 10, 6))
    mask = real_tokens(n=10) if masked else None
    out = layer(x, token_mask=mask).detach()
    calls.clear()
    with torch.no_grad():
        frugal = layer(x, token_mask=mask)
    np.testing.assert_allclose(frugal, out, rtol=0, atol=1e-14)
    assert [(q.shape[0], q.shape[2]) for q, *_ in calls] == sizes
    with torch.inference_mode():
        np.testing.assert_array_equal(layer(x, token_mask=mask), frugal)


@pytest.mark.parametrize(
    ("batch", "n", "expected"),
    [(1, 3, 3), (1, 4, 4), (1, 5, 3), (1, 8, 4), (1, 9, 5), (1, 15, 8), (1, 17, 6), (1, 24, 8), (1, 400, 8),
     (2, 3, 3), (4, 4, 8), (4, 8, 8), (100, 2, 8)],
)  # fmt: skip
def test_blocks_hold_half_of_the_rows_within_bounds_and_are_equal(monkeypatch, calls, batch, n, expected):
    """At least half of BLOCK_ROWS, so that a block is worth its calls, and at most all of it."""
    monkeypatch.setattr(linformer, "BLOCK_ROWS", {"cpu": 8})
    with torch.no_grad():
        layer_of(max_len=400)(tensors((batch, n, 6))[0])
    sizes = [q.shape[0] * q.shape[2] for q, *_ in calls]
    assert sizes[0] == max(sizes) == expected
    assert n > 8 or len(set(sizes)) == 1 or sum(sizes) == batch * n
    assert all(size > expected / 2 for size in sizes)


def test_the_blocks_are_those_that_were_measured():
    assert linformer.BLOCK_ROWS == {"cpu": 2048}
    assert linformer.OTHER_BLOCK_ROWS == 16384


class Adapted(nn.Linear):
    """A linear layer with an adapter of rank 1 beside it, as LoRA has it."""

    def forward(self, x):
        return super().forward(x) + x.mean(dim=-1, keepdim=True)


class HalvedWeight(nn.Module):
    def forward(self, weight):
        return weight / 2


def by_subclass(linear):
    linear.__class__ = Adapted


def by_hook(linear):
    linear.register_forward_hook(lambda _module, _args, out: 2 * out + 1)


def by_pre_hook(linear):
    linear.register_forward_pre_hook(lambda _module, args: (args[0] + 1,))


def by_parametrization(linear):
    nn.utils.parametrize.register_parametrization(linear, "weight", HalvedWeight())


def by_forward_of_its_own(linear):
    plain_forward = linear.forward
    linear.forward = lambda x: 2 * plain_forward(x) + 1


CHANGES = [by_subclass, by_hook, by_pre_hook, by_parametrization, by_forward_of_its_own]


@pytest.fixture
def paths(monkeypatch):
    """The names of the methods by which layers attend, call by call."""
    seen = []

    def watch(name):
        method = getattr(LinformerSelfAttention, name)

        def spy(*args):
            seen.append(name)
            return method(*args)

        monkeypatch.setattr(LinformerSelfAttention, name, spy)

    watch("_attend")
    watch("_attend_frugally")
    return seen


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("part", ["to_q", "to_out"])
@MASKS
def test_what_is_added_to_a_linear_layer_acts_with_and_without_a_gradient(change, part, mask, paths):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    before = layer(x, token_mask=mask).detach()
    change(getattr(layer, part))
    out = layer(x, token_mask=mask).detach()
    assert (out - before).abs().max() > 0.01
    paths.clear()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            np.testing.assert_allclose(layer(x, token_mask=mask), out, rtol=0, atol=1e-14)
    assert paths == ["_attend", "_attend"]


@MASKS
def test_a_plain_layer_saves_memory_where_no_gradient_is_asked_for(mask, paths):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            layer(x, token_mask=mask)
    handle = layer.to_q.register_forward_hook(lambda *_: None)
    with torch.no_grad():
        layer(x, token_mask=mask)
        handle.remove()
        layer(x, token_mask=mask)
        with torch.autocast("cpu", torch.bfloat16):
            layer(x, token_mask=mask)
    frugal = "_attend_frugally"
    assert paths == ["_attend", frugal, frugal, "_attend", frugal, "_attend"]


def test_tokens_that_lie_scattered_in_memory_are_read_right():
    layer, (x,) = layer_of(), tensors((8, 6, 3))
    scattered = x.permute(2, 0, 1)
    assert not scattered.is_contiguous()
    out = layer(scattered.contiguous())
    np.testing.assert_allclose(layer(scattered).detach(), out.detach(), atol=1e-14)
    with torch.no_grad():
        frugal = layer(scattered, token_mask=lengths(8, 3, 0))
        assert frugal.is_contiguous()
        np.testing.assert_allclose(frugal, layer(scattered.contiguous(), token_mask=lengths(8, 3, 0)), atol=1e-14)
        np.testing.assert_allclose(layer(scattered), out, atol=1e-14)


def test_no_sequence_gives_no_output():
    layer = layer_of()
    for gradient, mask in itertools.product([False, True], [None, torch.ones(0, 8, dtype=torch.bool)]):
        with torch.set_grad_enabled(gradient):
            assert layer(torch.zeros(0, 8, 6, dtype=torch.float64), token_mask=mask).shape == (0, 8, 6)
    q, k, v = triple(0)
    assert linformer_attention(q, k, v, torch.eye(6, dtype=torch.float64)).shape == (0, 2, 4, 3)
    q, k, v = triple(n_queries=0)
    assert linformer_attention(q, k, v, torch.eye(6, dtype=torch.float64)).shape == (3, 2, 0, 3)


# dropout


@pytest.mark.parametrize("gradient", [False, True])
def test_dropout_is_on_in_training_only_and_keeps_the_mean(gradient, calls):
    layer, copies = layer_of(max_len=4, dropout=0.25), 4000
    x = tensors((1, 4, 6))[0].expand(copies, 4, 6)
    with torch.random.fork_rng(), torch.set_grad_enabled(gradient):
        torch.manual_seed(0)
        first, second = layer(x).detach(), layer(x).detach()
        assert {options["dropout_p"] for *_, options in calls} == {0.25}
        calls.clear()
        still = layer.eval()(x[:1]).detach()
        assert {options["dropout_p"] for *_, options in calls} == {0.0}
        assert torch.equal(layer(x[:1]), still)
    assert not torch.equal(first, second)
    spread = first.std(dim=0)
    assert (spread > 0.01).all()
    assert ((first.mean(dim=0) - still[0]).abs() < 5 * spread / math.sqrt(copies)).all()


def test_without_dropout_training_and_evaluation_are_the_same():
    layer, (x,) = layer_of(), tensors((1, 8, 6))
    assert layer.dropout == 0.0
    assert torch.equal(layer(x), layer.eval()(x))


# types


def roundings(dtype):
    return 2**-24 if dtype == torch.float32 else 2**-9


@MASKS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_other_types_the_error_of_attention_is_a_few_roundings(dtype, mask):
    q, k, v = triple(dtype=dtype)
    e, f = (x / 4 for x in tensors((4, 6), (4, 6), seed=1, dtype=dtype))
    out = linformer_attention(q, k, v, e, f, token_mask=mask)
    assert out.dtype == dtype
    expected = by_loops(q, k, v, e, f, mask)
    # Four results are rounded on the way: tokens mixed, rescaled, weights, averages; and a mask's votes, ln s, which
    # are about 1: what is rounded of them is that share of the weights.
    count = 4 if mask is None else 5
    assert np.linalg.norm(array(out) - expected) < count * roundings(dtype) * np.linalg.norm(expected)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_other_types_the_error_of_a_layer_is_a_few_roundings(dtype, gradient, sharing, mask):
    layer, (x,) = layer_of(sharing=sharing, dtype=dtype), tensors((3, 6, 6), dtype=dtype)
    with torch.set_grad_enabled(gradient):
        out = layer(x, token_mask=mask)
    assert out.dtype == dtype
    expected = layer_by_loops(layer, x, mask)
    # Eight results are rounded on the way: tokens mixed, rescaled, keys or values, queries, votes, weights, averages,
    # output.
    assert np.linalg.norm(array(out) - expected) < 8 * roundings(dtype) * np.linalg.norm(expected)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_layer_runs_under_autocast(mask, sharing, gradient):
    layer, (x,) = layer_of(sharing=sharing, dtype=torch.float32), tensors((3, 6, 6), dtype=torch.float32)
    expected = layer_by_loops(layer, x, mask)
    with torch.set_grad_enabled(gradient), torch.autocast("cpu", torch.bfloat16):
        out, from_half = layer(x, token_mask=mask), layer(x.bfloat16(), token_mask=mask)
        with pytest.raises(TypeError, match=r"^x must be of the type of the layer, torch\.float32, got torch\.int64$"):
            layer(x.long())
    assert out.dtype == from_half.dtype == torch.bfloat16
    for rounded in (out, from_half):
        # Five more are: the tokens, and four matrices.
        assert np.linalg.norm(array(rounded) - expected) < 13 * 2**-9 * np.linalg.norm(expected)


@MASKS
def test_attention_runs_under_autocast(mask):
    q, k, v = triple(dtype=torch.float32)
    (e,) = tensors((4, 6), seed=1, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        out = linformer_attention(q, k.bfloat16(), v, e, token_mask=mask)
    np.testing.assert_allclose(out.double(), by_loops(q, k, v, e, mask=mask), atol=0.1)


def test_meta_tensors_have_the_right_shapes():
    for sharing in SHARINGS:
        layer = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing, device="meta")
        assert {p.device.type for p in layer.parameters()} == {"meta"}
        x, mask = torch.empty(3, 6, 6, device="meta"), torch.empty(3, 6, dtype=torch.bool, device="meta")
        for gradient in (True, False):
            with torch.set_grad_enabled(gradient):
                assert layer(x).shape == layer(x, token_mask=mask).shape == (3, 6, 6)
    q, k, v = (x.to("meta") for x in triple())
    e = torch.empty(4, 6, device="meta", dtype=torch.float64)
    assert linformer_attention(q, k, v, e, token_mask=mask).shape == (3, 2, 4, 3)
    with torch.device("meta"):
        assert {p.device.type for p in LinformerSelfAttention(6, 2, 8, 3).parameters()} == {"meta"}
    assert LinformerSelfAttention(6, 2, 8, 3).e.device.type == "cpu"


# what a layer holds


def test_parameters_have_the_shapes_that_are_promised():
    for sharing, matrices in (("key-value", ["e"]), ("headwise", ["e", "f"])):
        layer = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing)
        shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
        assert shapes == {name: (3, 8) for name in matrices} | {
            **{f"to_{name}.weight": (6, 6) for name in ("q", "k", "v", "out")}, "to_out.bias": (6,)
        }  # fmt: skip
        assert set(layer.state_dict()) == set(shapes)
        assert all(p.dtype == torch.float32 and p.requires_grad for p in layer.parameters())
        assert (layer.f is None) == (sharing == "key-value")


def test_sharing_keys_and_values_saves_one_matrix():
    one, two = (sum(p.numel() for p in layer_of(sharing=sharing).parameters()) for sharing in SHARINGS)
    assert two - one == 3 * 8


def test_the_sizes_can_be_read_and_are_printed():
    layer = LinformerSelfAttention(np.int64(6), np.int32(2), np.int64(8), np.int64(3), sharing="headwise", dropout=0.5)
    assert (layer.dim, layer.heads, layer.max_len, layer.k) == (6, 2, 8, 3)
    assert (layer.sharing, layer.dropout) == ("headwise", 0.5)
    assert {type(size) for size in (layer.dim, layer.heads, layer.max_len, layer.k, layer.to_k.out_features)} == {int}
    printed = "dim=6, heads=2, max_len=8, k=3, sharing='headwise', dropout=0.5"
    assert layer.extra_repr() == printed
    assert repr(layer).startswith(f"LinformerSelfAttention(\n  {printed}\n  (to_q): Linear(")


def test_the_weights_start_within_the_bounds_of_pytorch_and_the_matrices_normal():
    layer = LinformerSelfAttention(64, 4, 400, 100, sharing="headwise", generator=torch.Generator().manual_seed(0))
    for linear in (layer.to_q, layer.to_k, layer.to_v, layer.to_out):
        assert linear.weight.abs().max() <= 1 / 8
        assert linear.weight.std().item() == pytest.approx(1 / 8 / math.sqrt(3), rel=0.03)
    assert torch.equal(layer.to_out.bias, torch.zeros(64))
    assert layer.to_q.bias is None
    assert layer.to_k.bias is None
    assert layer.to_v.bias is None
    for matrix in (layer.e, layer.f):
        assert matrix.std().item() == pytest.approx(1 / 20, rel=0.03)
        assert abs(matrix.mean().item()) < 5 / 20 / math.sqrt(matrix.numel())
        assert matrix.abs().max() > 3 / 20
    assert not torch.equal(layer.e, layer.f)


def spread_of_scores(n, max_len, start=None):
    """The standard deviation of the scores of a new layer on tokens of unit variance."""
    layer = LinformerSelfAttention(16, 2, max_len, 64, generator=torch.Generator().manual_seed(0))
    if start is not None:
        nn.init.uniform_(layer.e, -start, start, generator=torch.Generator().manual_seed(0))
    (x,) = tensors((1, n, 16), dtype=torch.float32)
    with torch.no_grad():
        keys, _, _ = layer._compress(x, None)
        q = layer.to_q(x).unflatten(2, (2, -1)).transpose(1, 2)
        return (q @ keys.transpose(2, 3) / math.sqrt(8)).std().item()


def test_the_spread_of_the_first_scores_does_not_depend_on_the_length():
    sizes = [256, 1024, 4096, 16384]
    ours = [spread_of_scores(n, n) for n in sizes]
    assert max(ours) < 1.5 * min(ours)
    sliced = [spread_of_scores(n, 16384) for n in sizes]
    assert max(ours + sliced) < 1.5 * min(ours + sliced)
    # Entries between -1 / sqrt(k) and 1 / sqrt(k), a common start, let it grow like sqrt(n).
    common = [spread_of_scores(n, n, start=1 / math.sqrt(64)) for n in sizes]
    assert common[-1] / common[0] == pytest.approx(math.sqrt(16384 / 256), rel=0.25)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_generator_draws_the_same_again_and_leaves_the_global_one_alone(sharing):
    before = torch.get_rng_state()
    one, two = (LinformerSelfAttention(6, 2, 8, 3, sharing=sharing, generator=torch.Generator().manual_seed(5))
                for _ in range(2))  # fmt: skip
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        three, four = (LinformerSelfAttention(6, 2, 8, 3, sharing=sharing) for _ in range(2))
        torch.manual_seed(0)
        five = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing)
    for name, value in three.state_dict().items():
        assert torch.equal(value, five.state_dict()[name])
        assert name == "to_out.bias" or not torch.equal(value, four.state_dict()[name])


@pytest.mark.parametrize("options", [{}, {"sharing": "headwise"}, {"projection": pooling_projection(4, 8).double()}])
def test_the_state_survives_a_round_trip_a_copy_and_a_pickle(options):
    layer, (x,) = layer_of(k=4, **options), tensors((2, 8, 6))
    other = layer_of(k=4, generator=torch.Generator().manual_seed(1), **options)
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(x), layer(x))
        assert type(same) is LinformerSelfAttention
        assert repr(same) == repr(layer)
        assert all(p is not q for p, q in zip(same.parameters(), layer.parameters(), strict=True))


def test_a_fixed_projection_is_kept_and_not_learned():
    given_matrix = pooling_projection(4, 8).double()
    kept = given_matrix.clone()
    layer, (x,) = layer_of(k=4, projection=given_matrix), tensors((2, 8, 6))
    before = layer(x).detach()
    given_matrix.fill_(7)  # the caller's own
    assert torch.equal(layer(x), before)
    assert "e" not in dict(layer.named_parameters())
    assert torch.equal(dict(layer.named_buffers())["e"], kept)
    assert torch.equal(layer.state_dict()["e"], kept)
    assert layer.float().e.dtype == torch.float32
    layer = layer_of(k=4, projection=kept)
    layer(x).sum().backward()
    assert not layer.e.requires_grad
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert torch.equal(layer.e, kept)


def test_a_projection_that_would_silently_not_be_learned_is_refused():
    source = nn.Parameter(tensors((4, 8))[0])
    reason = (
        "projection must be a Parameter or a tensor without gradient, got one that was computed and has a gradient: the"
        " layer would not learn it"
    )
    for projection in (2 * source, source.detach().clone().requires_grad_()):
        with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
            layer_of(k=4, projection=projection)
    assert torch.equal(layer_of(k=4, projection=(2 * source).detach()).e, 2 * source)
    assert layer_of(k=4, projection=source).e is source
    fixed = nn.Parameter(source.detach(), requires_grad=False)
    assert layer_of(k=4, projection=fixed).e is fixed


def test_layers_can_share_one_parameter():
    shared = nn.Parameter(tensors((3, 8))[0])
    layers = nn.ModuleList(layer_of(projection=shared, generator=torch.Generator().manual_seed(i)) for i in range(2))
    (x,) = tensors((2, 8, 6))
    assert all(layer.e is shared for layer in layers)
    assert sum(p is shared for p in layers.parameters()) == 1
    assert len(list(layers.parameters())) == 1 + 2 * 5
    gradients = []
    for layer in layers:
        layers.zero_grad()
        layer(x).square().sum().backward()
        gradients.append(shared.grad)
    layers.zero_grad()
    sum(layer(x).square().sum() for layer in layers).backward()
    np.testing.assert_allclose(shared.grad, gradients[0] + gradients[1], rtol=1e-12)
    other = copy.deepcopy(layers)
    assert other[0].e is other[1].e
    assert other[0].e is not shared
    other.to(torch.bfloat16)
    assert other[0].e is other[1].e
    assert other[0].e.dtype == torch.bfloat16
    assert shared.dtype == torch.float64
    torch.optim.SGD(layers.parameters(), lr=0.1).step()
    assert torch.equal(layers[0].e, layers[1].e)


@MASKS
def test_the_callers_tensors_are_never_changed(mask):
    inputs = [*triple(), *tensors((4, 6), (4, 6), (3, 6, 6), seed=1)]
    before, mask_before = [x.clone() for x in inputs], None if mask is None else mask.clone()
    layer = layer_of()
    state = copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        linformer_attention(*inputs[:5], token_mask=mask).fill_(7)
        linformer_attention(*inputs[:4], token_mask=mask).fill_(7)
        layer(inputs[5], token_mask=mask).fill_(7)
    layer(inputs[5], token_mask=mask).detach().fill_(7)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))
    assert mask is None or torch.equal(mask, mask_before)
    assert all(torch.equal(value, state[name]) for name, value in layer.state_dict().items())


# compilation


@pytest.fixture
def compiler():
    torch.compiler.reset()
    yield lambda function, **options: torch.compile(function, fullgraph=True, **options)
    torch.compiler.reset()


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_layer_compiles_to_one_graph_and_gives_the_same(compiler, sharing, gradient):
    layer = layer_of(sharing=sharing)
    compiled = compiler(layer, backend="eager")
    with torch.set_grad_enabled(gradient):
        for n, mask in ((8, None), (8, real_tokens(n=8)), (6, None), (6, real_tokens())):
            (x,) = tensors((3, n, 6))
            np.testing.assert_allclose(
                compiled(x, token_mask=mask).detach(), layer(x, token_mask=mask).detach(), atol=1e-14
            )


def test_a_layer_compiles_under_autocast(compiler):
    layer, (x,) = layer_of(dtype=torch.float32), tensors((3, 6, 6), dtype=torch.float32)
    compiled = compiler(layer, backend="eager")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(x, token_mask=real_tokens()), layer(x, token_mask=real_tokens()))


def test_a_layer_compiles_once_for_all_lengths(compiler):
    layer = layer_of(max_len=64)
    compiled = compiler(layer, backend="eager", dynamic=True)
    with torch.compiler.set_stance("default"), torch.no_grad():
        (x,) = tensors((2, 60, 6))
        np.testing.assert_allclose(compiled(x), layer(x), atol=1e-14)
    with torch.compiler.set_stance("fail_on_recompile"), torch.no_grad():
        for n in (5, 17, 63):
            (x,) = tensors((2, n, 6))
            np.testing.assert_allclose(compiled(x), layer(x), atol=1e-14)


@MASKS
def test_attention_compiles_to_one_graph_and_gives_the_same(compiler, mask):
    inputs = (*triple(), *tensors((4, 6), (4, 6), seed=1))
    compiled = compiler(linformer_attention, backend="eager")
    for count in (4, 5):
        np.testing.assert_allclose(
            compiled(*inputs[:count], token_mask=mask),
            linformer_attention(*inputs[:count], token_mask=mask),
            atol=1e-14,
        )


@MASKS
def test_a_layer_compiles_with_its_gradients(compiler, mask):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    gradients = []
    for function in (layer, compiler(layer, backend="aot_eager")):
        layer.zero_grad()
        function(x, token_mask=mask).square().sum().backward()
        gradients.append([p.grad.clone() for p in layer.parameters()])
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own code generator
def test_a_layer_compiles_to_machine_code_and_gives_the_same(compiler, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    with torch.no_grad():
        np.testing.assert_allclose(
            compiler(layer)(x, token_mask=real_tokens()), layer(x, token_mask=real_tokens()), atol=1e-13
        )


# cost


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(
    ("n", "dim", "heads", "k", "max_len"),
    [(7, 6, 1, 3, 7), (7, 6, 3, 7, 7), (1, 6, 6, 1, 1), (5, 6, 2, 3, 7), (2, 4, 1, 3, 7), (16, 8, 2, 4, 20)],
)
def test_the_cost_is_that_of_a_real_layer(n, dim, heads, k, max_len, sharing, gradient, calls):
    layer, (x,) = layer_of(dim, heads, max_len, k, sharing=sharing), tensors((1, n, dim))
    # The counter knows the products, not the fused kernel of a CPU.
    with torch.set_grad_enabled(gradient), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(x)
    cost = linformer_cost(n, dim, heads, k, sharing=sharing, max_len=max_len)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())
    assert cost.flops == counter.get_total_flops()
    assert cost.scores == sum(q.shape[1] * q.shape[2] * keys.shape[2] for q, keys, *_ in calls)
    if n == max_len:
        assert linformer_cost(n, dim, heads, k, sharing=sharing) == cost


def test_the_cost_worked_by_hand():
    # D = 2, n = 3, k = 2, one head, E = F: 12 multiplications for queries and as many for the output, 12 for the
    # tokens mixed, 8 each for keys and values, 12 for the scores and 12 for the averages; together 76.
    assert linformer_cost(n=3, dim=2, heads=1, k=2) == (4 * 4 + 2 + 2 * 3, 2 * 76, 6)
    assert linformer_cost(n=3, dim=2, heads=2, k=2, sharing="headwise") == (18 + 2 * 6, 2 * (76 + 12), 12)
    # Two more columns in E, and 3 times 2 products of the norm rule.
    assert linformer_cost(n=3, dim=2, heads=1, k=2, max_len=5) == (18 + 2 * 5, 2 * (76 + 6), 6)


@given(st.integers(1, 10**9), st.integers(1, 10**4), st.integers(1, 64), st.data())
def test_the_cost_is_the_formula_at_any_size(n, width, heads, data):
    dim, k = width * heads, data.draw(st.integers(1, n))
    one, two = (linformer_cost(n, dim, heads, k, sharing=sharing) for sharing in SHARINGS)
    assert one.flops == 4 * n * dim**2 + 6 * n * k * dim + 4 * k * dim**2
    assert two.flops - one.flops == 2 * n * k * dim
    assert one.parameters == 4 * dim**2 + dim + k * n
    assert two.parameters - one.parameters == k * n
    assert one.scores == two.scores == heads * n * k


# memory


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("n", "dim", "k", "batch", "fraction"),
    [
        (2048, 64, 64, 1, 1), (2048, 128, 64, 1, 2), (2048, 256, 128, 1, 1), (4096, 64, 256, 1, 2),
        (4096, 128, 256, 1, 1), (4096, 256, 64, 1, 2), (16384, 64, 256, 1, 1), (16384, 64, 64, 1, 2),
        (16384, 128, 64, 1, 1), (512, 64, 64, 12, 1), (512, 128, 64, 8, 2),
    ],
)  # fmt: skip
def test_without_a_gradient_a_layer_takes_little_more_than_what_goes_in_and_out(
    n, dim, k, batch, fraction, masked, sharing
):
    layer = LinformerSelfAttention(dim, 4, fraction * n, k, sharing=sharing)
    x = torch.zeros(batch, n, dim)
    mask = lengths(*[n // 2] * batch, n=n) if masked else None
    with torch.no_grad(), LargestLive() as made:
        layer(x, token_mask=mask)
    numbers = x.numel() + sum(p.numel() for p in layer.parameters())
    compressed = batch * k * dim * (3 if sharing == "key-value" else 4)  # EX (and FX), keys and values
    assert 4 * numbers + made.largest <= 1.2 * 4 * (numbers + x.numel() + compressed)


def test_with_a_gradient_a_layer_takes_much_more():
    layer, x = LinformerSelfAttention(64, 4, 8192, 64), torch.zeros(1, 8192, 64)
    largest = []
    for gradient in (False, True):
        with torch.set_grad_enabled(gradient), LargestLive() as made:
            layer(x)
        largest.append(made.largest)
    assert largest[1] > 2 * largest[0]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("given_f", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(2048, 16, 64), (2048, 64, 256), (16384, 16, 256), (16384, 32, 64)])
def test_attention_takes_little_more_than_what_goes_in_and_out(n, d, k, given_f, learned, masked):
    heads = 4
    q, keys, v = torch.zeros(3, 1, heads, n, d)
    matrices = [torch.ones(k, n, requires_grad=learned) for _ in range(2 if given_f else 1)]
    mask = lengths(n // 2, n=n) if masked else None
    with torch.no_grad(), LargestLive() as made:
        linformer_attention(q, keys, v, *matrices, token_mask=mask)
    numbers = 3 * q.numel() + len(matrices) * k * n
    assert 4 * numbers + made.largest <= 1.2 * 4 * (numbers + q.numel() + 2 * heads * k * d)


# pooling


@given(st.integers(1, 12), st.integers(1, 12))
def test_pooling_averages_windows(k, window):
    pooling, x = pooling_projection(k, k * window), np.random.default_rng(0).standard_normal(k * window)
    assert pooling.shape == (k, k * window)
    assert pooling.dtype == torch.float32
    np.testing.assert_allclose(array(pooling) @ x, x.reshape(k, window).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(pooling.sum(dim=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 8), ValueError, "k must divide max_len = 8, got 3"),
        ((0, 8), ValueError, "k must be between 1 and max_len = 8, got 0"),
        ((9, 8), ValueError, "k must be between 1 and max_len = 8, got 9"),
        ((1, 0), ValueError, "max_len must be at least 1, got 0"),
        ((2.0, 8), TypeError, "k must be an integer, got 2.0"),
        ((2, None), TypeError, "max_len must be an integer, got None"),
    ],
)
def test_windows_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        pooling_projection(*arguments)
    assert pooling_projection(8, 8).tolist() == torch.eye(8).tolist()
    assert pooling_projection(1, 8).tolist() == [[0.125] * 8]


# bad input

Q, K, V = triple()
E, F = tensors((4, 6), (4, 6), seed=1)
(X,) = tensors((3, 6, 6))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Q.numpy(), K, V, E), TypeError, "q must be a tensor, got ndarray"),
        ((Q, K[0], V, E), ValueError, "k must have shape (3, 2, n_keys, 5), got shape (2, 6, 5)"),
        ((Q, K, V[:1], E), ValueError, "v must have shape (3, 2, 6, d_v), got shape (1, 2, 6, 3)"),
        ((Q, K, V, E.numpy()), TypeError, "e must be a tensor, got ndarray"),
        ((Q, K, V, None), TypeError, "e must be a tensor, got NoneType"),
        ((Q, K, V, E[:, :5]), ValueError, "e must have shape (k, 6), got shape (4, 5)"),
        ((Q, K, V, E.T), ValueError, "e must have shape (k, 6), got shape (6, 4)"),
        ((Q, K, V, E[0]), ValueError, "e must have shape (k, 6), got shape (6,)"),
        ((Q, K, V, E[None]), ValueError, "e must have shape (k, 6), got shape (1, 4, 6)"),
        ((Q, K, V, E[:0]), ValueError, "e must have between 1 and n_keys = 6 rows, got shape (0, 6)"),
        (
            (Q, K, V, torch.cat([E, F])),
            ValueError,
            "e must have between 1 and n_keys = 6 rows, got shape (8, 6)",
        ),
        (
            (Q, K, V, torch.cat([E, F])[:7]),
            ValueError,
            "e must have between 1 and n_keys = 6 rows, got shape (7, 6)",
        ),
        ((Q, K, V, E, F[:3]), ValueError, "f must have shape (4, 6), got shape (3, 6)"),
        ((Q, K, V, E, F[:, :5]), ValueError, "f must have shape (4, 6), got shape (4, 5)"),
        ((Q, K, V, E, [1.0]), TypeError, "f must be a tensor, got list"),
        ((Q, K, V, E.float()), TypeError, "e must be of the type of q, torch.float64, got torch.float32"),
        ((Q, K, V, E, F.float()), TypeError, "f must be of the type of q, torch.float64, got torch.float32"),
        ((Q, K, V, E.long()), TypeError, "e must be of the type of q, torch.float64, got torch.int64"),
        ((Q, K, V, E.to("meta")), ValueError, "e must be on the device of q, cpu, got meta"),
        ((Q, K, V, E, F.to("meta")), ValueError, "f must be on the device of q, cpu, got meta"),
        ((Q.long(), K.long(), V.long(), E.long()), TypeError, "q must be of a floating-point type, got torch.int64"),
    ],
)
def test_what_does_not_fit_attention_is_refused(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        linformer_attention(*arguments)


def test_the_number_of_rows_is_accepted_up_to_both_bounds():
    for rows in (1, 6):
        assert linformer_attention(Q, K, V, torch.cat([E, F])[:rows]).shape == (3, 2, 4, 3)


OF_MASK = [
    (real_tokens().long(), TypeError, "token_mask must be a bool tensor (True marks a real token), got torch.int64"),
    ([[True]], TypeError, "token_mask must be a bool tensor (True marks a real token), got list"),
    (real_tokens(n=5), ValueError, "token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 5)"),
    (real_tokens(n=8), ValueError, "token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 8)"),
    (real_tokens(2), ValueError, "token_mask must have shape (batch, n_keys) = (3, 6), got shape (2, 6)"),
    (real_tokens()[0], ValueError, "token_mask must have shape (batch, n_keys) = (3, 6), got shape (6,)"),
    (real_tokens().to("meta"), ValueError, "token_mask must be on the device of the keys, cpu, got meta"),
]


@pytest.mark.parametrize(("mask", "error", "message"), OF_MASK)
def test_what_is_no_mask_is_refused(mask, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        linformer_attention(Q, K, V, E, token_mask=mask)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        layer_of()(X, token_mask=mask)


LONG = "; cut it, or make the layer with a larger max_len"


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (X[0], ValueError, "x must have shape (batch, n, 6), got shape (6, 6)"),
        (X[..., :5], ValueError, "x must have shape (batch, n, 6), got shape (3, 6, 5)"),
        (X[None], ValueError, "x must have shape (batch, n, 6), got shape (1, 3, 6, 6)"),
        (X.numpy(), TypeError, "x must be a tensor, got ndarray"),
        (None, TypeError, "x must be a tensor, got NoneType"),
        (X.float(), TypeError, "x must be of the type of the layer, torch.float64, got torch.float32"),
        (X.long(), TypeError, "x must be of the type of the layer, torch.float64, got torch.int64"),
        (X.to("meta"), ValueError, "x must be on the device of the layer, cpu, got meta"),
        (X[:, :0], ValueError, f"x must hold between 1 and max_len = 8 tokens, got 0{LONG}"),
        (torch.cat([X, X[:, :3]], dim=1), ValueError, f"x must hold between 1 and max_len = 8 tokens, got 9{LONG}"),
    ],
)
def test_tokens_that_do_not_fit_a_layer_are_refused(x, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        layer_of()(x)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"dim": 6.0}, TypeError, "dim must be an integer, got 6.0"),
        ({"heads": 0}, ValueError, "heads must be at least 1, got 0"),
        ({"heads": 4}, ValueError, "heads must divide dim = 6, got 4"),
        ({"heads": 12}, ValueError, "heads must divide dim = 6, got 12"),
        ({"heads": None}, TypeError, "heads must be an integer, got None"),
        ({"max_len": 0}, ValueError, "max_len must be at least 1, got 0"),
        ({"max_len": "8"}, TypeError, "max_len must be an integer, got '8'"),
        ({"k": 0}, ValueError, "k must be between 1 and max_len = 8, got 0"),
        ({"k": 9}, ValueError, "k must be between 1 and max_len = 8, got 9"),
        ({"k": True}, TypeError, "k must be an integer, got True"),
        ({"sharing": "layerwise"}, ValueError, 'sharing must be "key-value" or "headwise", got \'layerwise\''),
        ({"sharing": None}, TypeError, 'sharing must be "key-value" or "headwise", got None'),
        ({"dropout": 1.0}, ValueError, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, ValueError, "dropout must be at least 0 and below 1, got -0.1"),
        ({"dropout": math.nan}, ValueError, "dropout must be at least 0 and below 1, got nan"),
        ({"dropout": "0"}, TypeError, "dropout must be a real number, got '0'"),
        ({"dtype": torch.int64}, TypeError, "dtype must be a floating-point type, got torch.int64"),
        ({"dtype": torch.complex64}, TypeError, "dtype must be a floating-point type, got torch.complex64"),
        ({"dtype": "float32"}, TypeError, "dtype must be a floating-point type, got float32"),
        ({"projection": [[1.0]]}, TypeError, "projection must be a tensor, got list"),
        ({"projection": torch.ones(3, 7)}, ValueError, "projection must have shape (3, 8), got shape (3, 7)"),
        ({"projection": torch.ones(4, 8)}, ValueError, "projection must have shape (3, 8), got shape (4, 8)"),
        (
            {"projection": torch.ones(3, 8), "dtype": torch.float64},
            TypeError,
            "projection must be of the type of the layer, torch.float64, got torch.float32",
        ),
        (
            {"projection": nn.Parameter(torch.ones(3, 8, device="meta"))},
            ValueError,
            "projection must be on the device of the layer, cpu, got meta",
        ),
        (
            {"projection": torch.ones(3, 8), "sharing": "headwise"},
            ValueError,
            'sharing must be "key-value" where a projection is given, got "headwise"',
        ),
    ],
)
def test_a_layer_of_bad_sizes_is_refused(options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        LinformerSelfAttention(**{"dim": 6, "heads": 2, "max_len": 8, "k": 3} | options)


def test_a_layer_is_accepted_up_to_all_bounds():
    for sizes in ((1, 1, 1, 1), (6, 6, 8, 8), (6, 1, 8, 1)):
        layer = LinformerSelfAttention(*sizes, dropout=0.999)
        assert layer(torch.zeros(1, sizes[2], sizes[0])).shape == (1, sizes[2], sizes[0])
        assert layer(torch.zeros(1, 1, sizes[0])).shape == (1, 1, sizes[0])


def test_unknown_keywords_are_refused_and_masks_have_a_name():
    layer = layer_of()
    for keyword in ({"mask": None}, {"key_padding_mask": None}, {"attn_mask": None}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            layer(X, **keyword)
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            linformer_attention(Q, K, V, E, **keyword)
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            LinformerSelfAttention(6, 2, 8, 3, **keyword)
    with pytest.raises(TypeError, match="positional argument"):
        layer(X, real_tokens())
    with pytest.raises(TypeError, match="positional argument"):
        linformer_attention(Q, K, V, E, F, real_tokens())
    with pytest.raises(TypeError, match="positional argument"):
        LinformerSelfAttention(6, 2, 8, 3, "headwise")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1, got 0"),
        ({"n": 0, "max_len": 8}, ValueError, "n must be between 1 and max_len = 8, got 0"),
        ({"n": 9, "max_len": 8}, ValueError, "n must be between 1 and max_len = 8, got 9"),
        ({"n": 8.0}, TypeError, "n must be an integer, got 8.0"),
        ({"n": 8.0, "max_len": 8}, TypeError, "n must be an integer, got 8.0"),
        ({"max_len": 0}, ValueError, "max_len must be at least 1, got 0"),
        ({"max_len": 8.0}, TypeError, "max_len must be an integer, got 8.0"),
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"heads": 4}, ValueError, "heads must divide dim = 6, got 4"),
        ({"heads": 0}, ValueError, "heads must be at least 1, got 0"),
        ({"k": 0}, ValueError, "k must be between 1 and max_len = 8, got 0"),
        ({"k": 9}, ValueError, "k must be between 1 and max_len = 8, got 9"),
        ({"k": 10, "max_len": 9}, ValueError, "k must be between 1 and max_len = 9, got 10"),
        ({"sharing": "none"}, ValueError, 'sharing must be "key-value" or "headwise", got \'none\''),
        ({"sharing": 1}, TypeError, 'sharing must be "key-value" or "headwise", got 1'),
    ],
)
def test_a_cost_of_bad_sizes_is_refused(options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        linformer_cost(**{"n": 8, "dim": 6, "heads": 2, "k": 3} | options)


def test_a_cost_is_counted_up_to_all_bounds():
    assert linformer_cost(1, 1, 1, 1) == (4 + 1 + 1, 4 + 6 + 4, 1)
    assert linformer_cost(8, 6, 6, 8, max_len=8) == linformer_cost(8, 6, 6, 8)
    assert linformer_cost(8, 6, 2, 9, max_len=9).scores == 2 * 8 * 9  # more rows than tokens, not than columns


def test_every_argument_is_described():
    for thing in (linformer_attention, LinformerSelfAttention, LinformerSelfAttention.forward, linformer_cost):
        doc = inspect.getdoc(thing)
        for name in set(inspect.signature(thing).parameters) - {"self"}:
            assert re.search(rf"^{name} : ", doc, re.MULTILINE), name
