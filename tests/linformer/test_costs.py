"""Costs, against the parameters and products of a real layer, and averages of windows, against
NumPy's means.
"""

import pytest
import torch
from attentions import tensors
from linformers import SHARINGS, layer_of
from torch import set_grad_enabled
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.attention import softmax_cost
from lowrank_tutor.layers import LinformerEncoderLayer
from lowrank_tutor.linformer import linformer_cost


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(
    ("n", "dim", "heads", "k", "max_len", "gradient"),
    [
        (7, 6, 1, 3, 7, True), (7, 6, 3, 7, 7, False), (1, 6, 6, 1, 1, True),
        (5, 6, 2, 3, 7, False),
        (2, 4, 1, 3, 7, True), (16, 8, 2, 4, 20, False),
    ],
)  # fmt: skip
def test_cost_of_real_layer(n, dim, heads, k, max_len, gradient, sharing, calls):
    layer, (x,) = layer_of(dim, heads, max_len, k, sharing=sharing), tensors((1, n, dim))
    # The counter knows the products, not the fused kernel of a CPU.
    with (
        set_grad_enabled(gradient),
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
    ):
        layer(x)
    cost = linformer_cost(n, dim=dim, heads=heads, k=k, sharing=sharing, max_len=max_len)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())
    assert cost.flops == counter.get_total_flops()
    assert cost.scores == sum(q.shape[1] * q.shape[2] * keys.shape[2] for q, keys, *_ in calls)
    if n == max_len:
        assert linformer_cost(n, dim=dim, heads=heads, k=k, sharing=sharing) == cost


@pytest.mark.parametrize(
    ("n", "dim", "heads", "k", "feedforward"), [(7, 6, 3, 3, 24), (5, 4, 1, 5, 1), (1, 6, 6, 1, 9)]
)
def test_cost_of_encoder_layer(n, dim, heads, k, feedforward):
    layer = LinformerEncoderLayer(dim, heads, n, k, feedforward, 0.0)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        layer(torch.zeros(1, n, dim))
    cost = linformer_cost(n, dim=dim, heads=heads, k=k, feedforward=feedforward)
    assert cost.parameters == sum(p.numel() for p in layer.parameters())
    assert cost.flops == counter.get_total_flops()
    assert cost.scores == linformer_cost(n, dim=dim, heads=heads, k=k).scores


def test_cost_by_hand():
    # D = 2, n = 3, k = 2, one head, E = F: 12 multiplications for queries and as many for the
    # output, 12 for the tokens mixed, 8 each for keys and values, 12 for the scores and 12 for the
    # averages; together 76.
    assert linformer_cost(n=3, dim=2, heads=1, k=2) == (4 * 4 + 2 + 2 * 3, 2 * 76, 6)
    assert linformer_cost(n=3, dim=2, heads=2, k=2, sharing="headwise") == (
        18 + 2 * 6,
        2 * (76 + 12),
        12,
    )
    # Two more columns in E, and 3 times 2 products of the norm rule.
    assert linformer_cost(n=3, dim=2, heads=1, k=2, max_len=5) == (18 + 2 * 5, 2 * (76 + 6), 6)
    # With a second half of width 5: 2 * 3 * 10 multiplications, two tables of 10, biases of 5 and
    # 2, two norms of 4.
    assert linformer_cost(n=3, dim=2, heads=1, k=2, feedforward=5) == (24 + 35, 2 * (76 + 60), 6)
    assert softmax_cost(n=3, dim=2, heads=1, feedforward=5) == (18 + 35, 168 + 120, 9)
