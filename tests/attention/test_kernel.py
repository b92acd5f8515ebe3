"""Linear attention and Performer by hand, against exact attention, and their laws; tests/contracts
has loops.
"""

import math
from functools import partial

import pytest
import torch
from attentions import tensors
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.attention import (
    CHUNK,
    linear_attention,
    orthogonal_features,
    performer_attention,
)


def inputs(n):
    """Queries, keys, and values of two sequences and heads."""
    return tensors((2, 2, n, 3), (2, 2, n, 3), (2, 2, n, 2))


(W,) = tensors((7, 3), seed=99)  # 7 features for d = 3: no multiple of it


METHODS = {"linear": linear_attention, "performer": partial(performer_attention, features=W)}


# the definition


def test_linear_attention_by_hand():
    """phi(q) = (1, 1/2), phi(k) = (2, 1) and (1/4, 4): weights 5/2 and 9/4."""
    q = torch.tensor([[[[0.0, -math.log(2)]]]])
    k = torch.tensor([[[[1.0, 0.0], [-math.log(4), 3.0]]]])
    v = torch.tensor([[[[19.0], [0.0]]]])
    assert linear_attention(q, k, v).item() == pytest.approx(10, rel=1e-6)


def test_performer_by_hand():
    """With rows 1 and -1 the weight is cosh(x + y) exp(-(x^2 + y^2)/2): at x = 0 it is 1 for 0, and
    0.983 for log 2.
    """
    q, k, v = (
        torch.zeros(1, 1, 1, 1),
        torch.tensor([[[[0.0], [math.log(2)]]]]),
        torch.tensor([[[[0.0], [1.0]]]]),
    )
    out = performer_attention(q, k, v, features=torch.tensor([[1.0], [-1.0]]))
    weight = 1.25 * math.exp(-(math.log(2) ** 2) / 2)
    assert weight == pytest.approx(0.983, abs=5e-4)
    assert out.item() == pytest.approx(weight / (1 + weight), rel=1e-6)
    # At d = 16 the fourth root is 2; each sits in its first coordinate and meets one row, 3: exp(3
    # (1 + y) - y^2/2).
    q, k, row = torch.zeros(1, 1, 1, 16), torch.zeros(1, 1, 2, 16), torch.zeros(1, 16)
    q[..., 0], k[0, 0, 1, 0], row[0, 0] = 2.0, 2.0, 3.0
    assert performer_attention(q, k, v, features=row).item() == pytest.approx(
        1 / (1 + math.exp(-2.5)), rel=1e-6
    )


# what every attention of the book promises


def test_gradients_of_features():
    w = W.clone().requires_grad_()
    q, k, v = inputs(3)
    assert torch.autograd.gradcheck(lambda w: performer_attention(q, k, v, features=w), w)


# Performer's estimate


def kernel_estimates(draw, x, y, m, repeats):
    """One estimate of exp(x . y) by each of many draws of m rows."""
    d = len(x)
    whole = -(-m // d) * d  # blocks are independent: those of one long draw make many short ones
    rows = draw(repeats * whole, d).view(repeats, whole, d)[:, :m]
    return (rows @ (x + y)).exp().mean(dim=1) * (-(x @ x + y @ y) / 2).exp()


def drawing(kind, seed=0):
    """Return a function that draws rows: independent, orthogonal, or orthogonal with the signs of R
    left out.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(m, d):
        if kind == "orthogonal":
            return orthogonal_features(m, d, generator=generator, dtype=torch.float64)
        normal = torch.randn(m, d, generator=generator, dtype=torch.float64)
        if kind == "independent":
            return normal
        q, _ = torch.linalg.qr(
            torch.randn(-(-m // d), d, d, generator=generator, dtype=torch.float64)
        )
        return q.flatten(0, 1)[:m] * normal.norm(dim=1, keepdim=True)

    return draw


X, Y = torch.tensor([[0.5, 0.1, -0.3, 0.2], [0.4, 0.4, 0.1, -0.2]], dtype=torch.float64)


def test_kernel_estimates():
    """Without bias, unless the signs of R are left out, and with the spread of the law or less."""
    truth, law = (X @ Y).exp(), math.sqrt(((X + Y).square().sum().exp().item() - 1) / 8)
    bias, spread = {}, {}
    for kind in ("independent", "orthogonal", "without signs"):
        estimates = kernel_estimates(drawing(kind), X, Y, 8, 100_000)
        bias[kind] = (
            (estimates.mean() - truth) / (estimates.std() / math.sqrt(len(estimates)))
        ).item()
        spread[kind] = (estimates.std() / truth).item()
    assert abs(bias["independent"]) < 3
    assert abs(bias["orthogonal"]) < 3
    assert abs(bias["without signs"]) > 6
    assert spread["independent"] == pytest.approx(law, rel=0.02)
    assert spread["orthogonal"] < 0.97 * law


# the rows of W


@pytest.mark.parametrize(("m", "d"), [(3, 8), (20, 8), (5, 1)])
def test_rows_orthogonal_in_blocks(m, d):
    w = orthogonal_features(m, d, dtype=torch.float64)
    assert w.shape == (m, d)
    for start in range(0, m, d):
        block = w[start : start + d]
        gram = block @ block.T
        assert (gram - gram.diagonal().diag()).abs().max() < 1e-12
    if m > d > 1:
        assert (w[0] @ w[d]).abs() > 1e-6
    assert len(set(w.norm(dim=1).tolist())) == m


def test_generator_fixes_the_draw():
    def fresh():
        return torch.Generator().manual_seed(4)

    generator = fresh()
    w, other = (
        orthogonal_features(256, 3, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    assert torch.equal(w, orthogonal_features(256, 3, generator=fresh(), dtype=torch.float64))
    assert not torch.equal(w, other)
    q, k, v = inputs(6)
    shared = performer_attention(q, k, v, features=w, n_features=1)
    assert torch.equal(performer_attention(q, k, v, generator=fresh()), shared)
    few = orthogonal_features(2, 3, generator=fresh(), dtype=torch.float64)
    drawn = performer_attention(q, k, v, generator=fresh(), n_features=2)
    assert torch.equal(drawn, performer_attention(q, k, v, features=few))
    assert not torch.equal(performer_attention(q, k, v), performer_attention(q, k, v))
    with pytest.raises(ValueError, match=r"^features must hold at least one row"):
        performer_attention(q, k, v, features=w[:0])
    with pytest.raises(ValueError, match=r"^generator must be None where features are given"):
        performer_attention(q, k, v, features=w, generator=fresh())
    half = [x.bfloat16() for x in (q, k, v)]
    assert performer_attention(*half, features=w.float()).dtype == torch.bfloat16


def test_type_and_device_of_rows():
    assert orthogonal_features(3, 2).dtype == torch.float32
    generator = torch.Generator()
    whole = orthogonal_features(3, 2, generator=generator.manual_seed(1))
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(
            orthogonal_features(3, 2, generator=generator.manual_seed(1), dtype=dtype),
            whole.to(dtype),
        )
    assert orthogonal_features(3, 2, device="meta", generator=generator).device.type == "meta"
    with torch.device("meta"):
        assert orthogonal_features(3, 2).device.type == "meta"


# rank, cost, kernels


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("causal", [False, True])
def test_operations_grow_linearly(method, causal):
    def flops(n):
        with FlopCounterMode(display=False) as counter:
            METHODS[method](*inputs(n), causal=causal)
        return counter.get_total_flops()

    m = 3 if method == "linear" else 7
    assert flops(8 * CHUNK) - flops(4 * CHUNK) == 2 * (flops(4 * CHUNK) - flops(2 * CHUNK)) > 0
    if not causal:
        drawn = 0 if method == "linear" else 2 * 3 * 7
        assert flops(10) == 2 * 2 * 10 * 2 * (
            2 * m * 2 + drawn
        )  # batch, heads, n, two sides, d_v = 2


# as functions of PyTorch


def test_causal_gradients_write_linearly():
    """The gradient of a slice is as long as what was cut: slices of the whole would write numbers
    like n squared.
    """

    def written(tokens):
        q, k, v = torch.ones(3, 1, 1, tokens, 4, requires_grad=True).unbind()
        left, seen, numbers = [linear_attention(q, k, v, causal=True).grad_fn], set(), 0
        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                left += [before for before, _ in node.next_functions]
                if "Slice" in node.name() or "Split" in node.name():
                    numbers += math.prod(node._saved_self_sym_sizes)
        return numbers

    assert written(8 * CHUNK) > 0
    assert written(16 * CHUNK) == pytest.approx(2 * written(8 * CHUNK), rel=0.1)
