"""The norm rule, and what else a mask promises: by hand, against exact attention, and against what is popular."""

import itertools
import math

import numpy as np
import pytest
import torch
from attentions import by_loops as exact_by_loops
from attentions import real_tokens, tensors, triple
from linformers import SHARINGS, array, layer_by_loops, layer_of, lengths, nearly_the_identity, norm_rule_by_loops
from torch.nn import functional

from lowrank_tutor.linformer import linformer_attention, pooling_projection
from lowrank_tutor.linformer.norm_rule import RowSquares, columns, norm_rule, row_squares


@pytest.mark.parametrize(("n", "by_mask"), [(4, True), (8, False), (12, True), (12, False), (16, True)])
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


def counted_in_full(q, k, v, e, mask):
    """The norm rule without the weights s: a row with any trace of a real token takes part like any other."""
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
        (scale,), log_shares = norm_rule([row_squares(e, mask, 8)])
        squares = e.bfloat16().square()
        rough = (squares.sum(dim=1) / (mask.bfloat16() @ squares.T)).sqrt()[:3, :3]
    assert scale.dtype == log_shares.dtype == torch.float32
    share = log_shares[:, 0, 0].exp()
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


POISON = pytest.mark.parametrize("poison", [1e3, math.nan, math.inf])


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 2])
def test_gradients_stay_bounded_where_a_share_vanishes(dtype, count):
    """A row of share eps^2 turns by 1 / eps, but its weight is eps^2: its gradient vanishes with eps."""
    q, k, v = triple(1, n_queries=6, dtype=dtype)
    wide, mask = [x.double() for x in (q, k, v)], lengths(4, n=6)
    exact = torch.eye(6, dtype=torch.float64, requires_grad=True)
    linformer_attention(*wide, exact, token_mask=mask).square().sum().backward()
    error = 0.1 if dtype == torch.bfloat16 else 1e-5
    for eps in (1e-2, 1e-6, 1e-10, 1e-14, 1e-18, 1e-19, 1e-20, 1e-22, 1e-24):
        matrices = [nearly_the_identity(eps, dtype).requires_grad_() for _ in range(count)]
        linformer_attention(q, k, v, *matrices, token_mask=mask).square().sum().backward()
        gradient = sum(matrix.grad.double() for matrix in matrices)
        assert torch.isfinite(gradient).all()
        assert gradient[4:].abs().max() < 500 * eps
        assert (gradient - exact.grad).abs().max() < error * exact.grad.abs().max() + 500 * eps
        counted = nearly_the_identity(eps).requires_grad_()
        counted_in_full(*wide, counted, mask).square().sum().backward()
        assert counted.grad[4:].abs().max() > 0.1 / eps


def test_gradients_are_finite_where_a_row_is_nearly_zero():
    q, k, v = triple(dtype=torch.float32)
    for size in (1e-15, 1e-18, 1e-19, 1e-20, 1e-22, 1e-30):
        e = (size * tensors((3, 6), seed=1, dtype=torch.float32)[0]).requires_grad_()
        out = linformer_attention(q, k, v, e, token_mask=real_tokens())
        out.sum().backward()
        assert torch.isfinite(out).all()
        assert torch.isfinite(e.grad).all()


# the two steps by themselves


def test_the_rule_gives_scales_and_logits_sequence_by_sequence():
    """Rows of squared norm 4 and 1; one sequence meets all of both, one a quarter of the first, one nothing."""
    squares = RowSquares(torch.tensor([4.0, 1.0]), torch.tensor([[4.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))
    (scales,), added = norm_rule([squares])
    assert scales.tolist() == [[1, 1], [2, 0], [0, 0]]
    assert torch.equal(added, torch.tensor([[0, 0], [-math.log(4), -math.inf], [0, 0]])[:, None, None])


@pytest.mark.parametrize("exporting", [False, True])
def test_columns_are_the_same_in_an_export(exporting, monkeypatch):
    monkeypatch.setattr("lowrank_tutor.linformer.norm_rule.is_exporting", lambda: exporting)
    matrix = torch.arange(24.0).view(3, 8)
    found = columns(matrix, 2, 5)
    assert torch.equal(found, matrix[:, 2:7])
    assert found.is_contiguous() == exporting, "a view, but a copy in an export"
