"""What a layer costs, against the parameters and products of a real one."""

import re

import pytest
from attentions import tensors
from hypothesis import given
from hypothesis import strategies as st
from linformers import SHARINGS, layer_of
from torch import set_grad_enabled
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.linformer import linformer_cost


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(
    ("n", "dim", "heads", "k", "max_len", "gradient"),
    [
        (7, 6, 1, 3, 7, True), (7, 6, 3, 7, 7, False), (1, 6, 6, 1, 1, True), (5, 6, 2, 3, 7, False),
        (2, 4, 1, 3, 7, True), (16, 8, 2, 4, 20, False),
    ],
)  # fmt: skip
def test_cost_of_real_layer(n, dim, heads, k, max_len, gradient, sharing, calls):
    layer, (x,) = layer_of(dim, heads, max_len, k, sharing=sharing), tensors((1, n, dim))
    # The counter knows the products, not the fused kernel of a CPU.
    with set_grad_enabled(gradient), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
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
def test_cost_formula(n, width, heads, data):
    dim, k = width * heads, data.draw(st.integers(1, n))
    one, two = (linformer_cost(n, dim, heads, k, sharing=sharing) for sharing in SHARINGS)
    assert one.flops == 4 * n * dim**2 + 6 * n * k * dim + 4 * k * dim**2
    assert two.flops - one.flops == 2 * n * k * dim
    assert one.parameters == 4 * dim**2 + dim + k * n
    assert two.parameters - one.parameters == k * n
    assert one.scores == two.scores == heads * n * k


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1, got 0"),
        ({"n": 9, "max_len": 8}, ValueError, "n must be between 1 and max_len = 8, got 9"),
        ({"n": 0, "max_len": 8}, ValueError, "n must be between 1 and max_len = 8, got 0"),
        ({"max_len": 0}, ValueError, "max_len must be at least 1, got 0"),
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"heads": 4}, ValueError, "heads must divide dim = 6, got 4"),
        ({"k": 0}, ValueError, "k must be between 1 and max_len = 8, got 0"),
        ({"k": 10, "max_len": 9}, ValueError, "k must be between 1 and max_len = 9, got 10"),
        ({"sharing": "none"}, ValueError, 'sharing must be "key-value" or "headwise", got \'none\''),
    ],
)
def test_bad_cost_sizes(options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        linformer_cost(**{"n": 8, "dim": 6, "heads": 2, "k": 3} | options)


def test_cost_size_bounds():
    assert linformer_cost(1, 1, 1, 1) == (4 + 1 + 1, 4 + 6 + 4, 1)
    assert linformer_cost(8, 6, 6, 8, max_len=8) == linformer_cost(8, 6, 6, 8)
    assert linformer_cost(8, 6, 2, 9, max_len=9).scores == 2 * 8 * 9  # more rows than tokens, not than columns
