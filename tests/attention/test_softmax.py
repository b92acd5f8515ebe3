"""Softmax attention by hand, against PyTorch's own layer, and a count of operations;
tests/contracts has loops.
"""

import math

import numpy as np
import pytest
import torch
from attentions import tensors
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.attention import (
    Cost,
    attention_weights,
    softmax_attention,
    softmax_cost,
)
from measure.memory import LiveBytes

# the limit and the judges


def test_attention_by_hand():
    q = torch.tensor(
        [[[[2 * math.log(3), 0, 0, 0]]]], dtype=torch.float64
    )  # divided by the root of d = 4: log 3
    k = torch.tensor([[[[1, 0, 0, 0], [0, 1, 0, 0]]]], dtype=torch.float64)
    v = torch.tensor([[[[4.0], [8.0]]]], dtype=torch.float64)
    np.testing.assert_allclose(attention_weights(q, k), [[[[0.75, 0.25]]]], rtol=1e-15)
    assert softmax_attention(q, k, v).item() == pytest.approx(5, rel=1e-15)
    only_second = torch.tensor([[False, True]])
    assert attention_weights(q, k, token_mask=only_second).tolist() == [[[[0, 1]]]]
    assert softmax_attention(q, k, v, token_mask=only_second).item() == 8


# masks


# gradients, types, compilation


@pytest.mark.parametrize("mask", [None, torch.ones(1, 2, dtype=torch.bool)])
def test_half_precision_weights(mask):
    q = torch.full((1, 1, 2, 64), 200.0, dtype=torch.float16)
    weights = attention_weights(q, q, token_mask=mask)
    assert weights.dtype == torch.float16
    assert weights.flatten().tolist() == [0.5] * 4


def test_fused_memory():
    n, d = 2048, 16
    q, k, v = tensors((1, 1, n, d), (1, 1, n, d), (1, 1, n, d), dtype=torch.float32)
    mask = torch.arange(n)[None] < n // 2
    result = q.numel() * 4
    with torch.no_grad(), LiveBytes() as plain:
        softmax_attention(q, k, v)
    with torch.no_grad(), LiveBytes() as masked:
        softmax_attention(q, k, v, token_mask=mask)
    assert plain.peak < 1.5 * result
    assert masked.peak < 3.5 * result  # keys and values with zeros, and the result
    for write_out in (
        lambda: attention_weights(q, k),
        lambda: softmax_attention(q, k, v[..., :-1]),
    ):
        with torch.no_grad(), LiveBytes() as written_out:
            write_out()
        assert written_out.peak >= n * n * 4 > 100 * result


# cost


class SoftmaxLayer(nn.Module):
    """Self-attention of the textbook, with a bias at the end only."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.to_qkv(x).chunk(3, dim=2)
        )
        return self.to_out(softmax_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("n", "dim", "heads"), [(7, 6, 1), (7, 6, 3), (1, 6, 6), (16, 8, 2), (1, 1, 1)]
)
def test_cost_of_real_layer(n, dim, heads):
    layer, (x,) = SoftmaxLayer(dim, heads), tensors((1, n, dim), dtype=torch.float32)
    # The counter knows the products, not the fused kernel of a CPU.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(x)
    split = x.unflatten(2, (heads, -1)).transpose(1, 2)
    cost = softmax_cost(n, dim=dim, heads=heads)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())
    assert cost.flops == counter.get_total_flops()
    assert cost.scores == attention_weights(split, split).numel()


def test_cost_by_hand():
    # D = 2, n = 3, one head. Four products (3, 2) x (2, 2) of 12 multiplications, scores (3, 2) x
    # (2, 3) of 18, and averages (3, 3) x (3, 2) of 18: 84 multiplications, each with an addition.
    assert softmax_cost(n=3, dim=2, heads=1) == Cost(parameters=4 * 4 + 2, flops=168, scores=9)
    assert softmax_cost(n=3, dim=2, heads=2) == (18, 168, 18)
    assert Cost._fields == ("parameters", "flops", "scores")
