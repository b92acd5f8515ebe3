"""The rules for padding: by hand, on equal tokens, against exact attention, and against common
alternatives.
"""

import copy
import math

import numpy as np
import pytest
import torch
from attentions import real_tokens, tensors, triple
from linformers import array, layer_by_loops, layer_of, lengths, nearly_the_identity, rule_by_loops
from torch import nn

from lowrank_tutor._padding import padding_rule, row_sums
from lowrank_tutor.layers import LinformerEncoderLayer, from_mha, resized
from lowrank_tutor.linformer import linformer_attention, pooling_projection

RULES = pytest.mark.parametrize("rule", ["sum", "norm"])
AVERAGES = pooling_projection(4, 8).double()


@pytest.mark.parametrize(("rule", "size"), [(None, 1), ("sum", 1), ("norm", math.sqrt(1 / 2))])
def test_half_a_window_counts_half(rule, size):
    """Two windows of 8 with 12 tokens; values of 1 in the first, and of 4 in the second."""
    e = pooling_projection(2, 16).double()
    q, k, v = (
        torch.zeros(1, 1, 1, 1).double(),
        tensors((1, 1, 16, 1))[0],
        torch.ones(1, 1, 16, 1).double(),
    )
    v[:, :, 8:] = 4
    out = linformer_attention(q, k, v, e, token_mask=lengths(12, n=16), rule=rule)
    assert out.item() == pytest.approx((1 + 4 * size / 2) / 1.5, rel=1e-15)


def test_the_smaller_share_counts():
    """By sums E has the shares 1/4 and 1, by squares F 1 and 1/2: weights 1/4 and 1/2."""
    e = torch.tensor([[1.0, 0, 3], [0, 1, 0]], dtype=torch.float64)
    f = torch.tensor([[-1.0, 0, 0], [0, 1, -1]], dtype=torch.float64)
    q, k = torch.zeros(1, 1, 1, 1, dtype=torch.float64), tensors((1, 1, 3, 1))[0]
    v = torch.tensor([1.0, 3, 50], dtype=torch.float64).view(1, 1, 3, 1)
    for keys, values, (first, second) in ((e, f, (-1, math.sqrt(2))), (f, e, (4, 1))):
        out = linformer_attention(q, k, v, keys, values, token_mask=lengths(2, n=3))
        assert out.item() == pytest.approx(
            (first * 1 / 4 + second * 3 / 2) / (1 / 4 + 1 / 2), rel=1e-14
        )


# which rule a layer follows


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "norm"),
        ({"sharing": "headwise"}, "norm"),
        ({"projection": AVERAGES}, None),
        ({"projection": AVERAGES - 0.1}, None),
        ({"projection": nn.Parameter(AVERAGES)}, "sum"),
        ({"projection": nn.Parameter(AVERAGES - 0.1)}, "norm"),
        ({"rule": "sum"}, "sum"),
        ({"projection": AVERAGES, "rule": "norm"}, "norm"),
        ({"projection": nn.Parameter(AVERAGES.to("meta")), "rule": "sum", "device": "meta"}, "sum"),
    ],
)
def test_the_rule_is_settled_once(options, rule):
    layer, options = layer_of(k=4, **options), dict(options)
    place = {"dtype": torch.float64, "device": options.pop("device", None)}
    taken = from_mha(nn.MultiheadAttention(6, 2, batch_first=True, **place), 8, 4, **options)
    encoder = LinformerEncoderLayer(6, 2, 8, 4, 5, **options, **place)
    for one in (layer, taken, encoder.self_attn, copy.deepcopy(layer), resized(layer, 11)):
        assert one.rule == rule
        assert one.extra_repr().endswith(f", rule={rule!r}")
    if layer.e.is_meta:
        return
    (x,), mask = tensors((3, 8, 6)), lengths(8, 5, 1)
    np.testing.assert_allclose(
        layer(x, token_mask=mask).detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-13
    )


def test_learned_averages_do_not_jump():
    """The layer keeps the rule with which it was made, where the entries alone would now choose
    another.
    """
    layer, (x,) = layer_of(k=4, projection=nn.Parameter(AVERAGES.clone())), tensors((1, 5, 6))
    before = layer(x).detach()
    with torch.no_grad():
        layer.e[:, 7] -= 1e-9
    np.testing.assert_allclose(layer(x).detach(), before, rtol=0, atol=1e-7)
    np.testing.assert_allclose(layer(x).detach(), layer_by_loops(layer, x), rtol=0, atol=1e-13)
    fixed = layer_of(k=4, projection=layer.e.detach())
    state = layer.state_dict()
    fixed.load_state_dict(
        {name: part for name, part in state.items() if name != "_extra_state"}
    )  # as saved before
    assert abs(fixed(x) - before).max() > 0.01
    fixed.load_state_dict(state)
    np.testing.assert_allclose(fixed(x).detach(), layer(x).detach(), rtol=0, atol=1e-13)
    other = layer_of(heads=3, k=4)
    with pytest.raises(ValueError, match=r"^heads must be 2, as in the saved layer, got 3$"):
        other.load_state_dict(state)


def test_rules_compile_and_vmap():
    layer, (x,), mask = layer_of(k=4, projection=AVERAGES), tensors((3, 6, 6)), real_tokens()
    layer.e[0] -= 0.1
    expected = layer(x, token_mask=mask).detach()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)(x, token_mask=mask)
    state = {
        name: torch.stack([it, AVERAGES if name == "e" else it])
        for name, it in layer.state_dict().items()
    }
    both = torch.func.vmap(
        lambda one: torch.func.functional_call(layer, one, (x,), {"token_mask": mask})
    )(state)
    layer.e.copy_(AVERAGES)
    for out, right in (
        (compiled, expected),
        (both[0], expected),
        (both[1], layer(x, token_mask=mask).detach()),
    ):
        np.testing.assert_allclose(out.detach(), right, rtol=0, atol=1e-13)


# against exact attention, and against common alternatives


# floating point


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
@RULES
def test_shares_in_float32(dtype, autocast, rule):
    (e,) = tensors((5, 300), dtype=dtype)
    e[3], e[4, :100] = 0, 0
    mask = lengths(100, 299, 300, 0)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        (scale,), log_shares = padding_rule([row_sums(e, mask, rule)])
        squares = e.bfloat16().square()
        rough = (squares.sum(dim=1) / (mask.bfloat16() @ squares.T)).sqrt()[:3, :3]
    assert scale.dtype == log_shares.dtype == torch.float32
    share = log_shares[:, 0, 0].exp()
    rules = np.array(
        [
            [rule_by_loops(row, range(n), rule) for row in e.double().tolist()]
            for n in (100, 299, 300, 0)
        ]
    )
    np.testing.assert_allclose(scale[:, :, 0], rules[:, :, 0], rtol=1e-6)
    np.testing.assert_allclose(share, rules[:, :, 1], rtol=1e-6)
    if rule == "norm":
        assert abs(array(rough) - rules[:3, :3, 0]).max() > 1e-4, "the squares must not be rounded"


def test_rescaling_precedes_rounding():
    """2**-24 is the least float16; its scale is above the largest, 65504, and their product 1."""
    e = torch.tensor([[1, 2**-24]], dtype=torch.float16)
    x = torch.ones(1, 1, 2, 1, dtype=torch.float16)
    assert linformer_attention(x, x, x, e, token_mask=torch.tensor([[False, True]])).tolist() == [
        [[[1], [1]]]
    ]


# what a mask promises


# gradients where there is little left


@RULES
def test_gradients_of_zero_rows(rule):
    e = torch.tensor(
        [[0.0] * 6, [0, 0, 1, 2, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=torch.float64
    )
    e.requires_grad_()
    linformer_attention(
        *triple(), e, token_mask=lengths(2, 4, 0, n=6), rule=rule
    ).square().sum().backward()
    assert torch.isfinite(e.grad).all()
    assert e.grad[0].abs().sum() > 0, "a row of zeros can learn"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 2])
@RULES
def test_gradients_of_vanishing_shares(dtype, count, rule):
    """A row with little left of it is scaled up as much as its weight is scaled down, or less.

    By the norm rule the row grows by 1 / eps, and its weight is eps^2: its gradient vanishes with
    eps. By the sum rule the weight is eps, and its gradient a constant.
    """
    q, k, v = triple(1, n_queries=6, dtype=dtype)
    wide, mask = [x.double() for x in (q, k, v)], lengths(4, n=6)
    exact = torch.eye(6, dtype=torch.float64, requires_grad=True)
    linformer_attention(*wide, exact, token_mask=mask, rule=rule).square().sum().backward()
    error = 0.1 if dtype == torch.bfloat16 else 1e-5
    for eps in (1e-2, 1e-6, 1e-10, 1e-14, 1e-18, 1e-19, 1e-20, 1e-22, 1e-24, 1e-36, 1e-38):
        matrices = [nearly_the_identity(eps, dtype).requires_grad_() for _ in range(count)]
        linformer_attention(
            q, k, v, *matrices, token_mask=mask, rule=rule
        ).square().sum().backward()
        gradient = sum(matrix.grad.double() for matrix in matrices)
        assert torch.isfinite(gradient).all(), eps
        if rule == "sum":
            assert gradient.abs().max() < 50, eps
            continue
        assert gradient[4:].abs().max() < 500 * eps
        assert (gradient - exact.grad).abs().max() < error * exact.grad.abs().max() + 500 * eps
