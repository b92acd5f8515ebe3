"""States, chunks, and blocks: numbers by hand, laws, refusals; tests/contracts has loops."""

import math

import pytest
import torch
from attentions import said, tensors
from torch.nn import functional

from lowrank_tutor.adapters import newton_schulz, power_step
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.caches import latent_attention
from lowrank_tutor.states import (
    block_ranks,
    causal_decay,
    delta_attention,
    linear_state,
    recall_error,
    window_attention,
    wy,
)

# one state


def test_two_pairs_by_hand():
    k, v = (
        torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64),
        torch.tensor([[5.0], [0.0]]).double(),
    )
    assert (k @ linear_state(k, v)).flatten().tolist() == pytest.approx([5, 3])
    delta = linear_state(k, v, delta=1)
    assert delta.flatten().tolist() == pytest.approx([16 / 5, -12 / 5])
    assert (k @ delta).flatten().tolist() == pytest.approx([16 / 5, 0], abs=1e-15)
    assert recall_error(delta, k, v) == pytest.approx((5 - 16 / 5) / 5)


def test_bounds_are_allowed():
    k = torch.eye(2)
    for options in ({"decay": 1}, {"decay": 1e-9}, {"delta": 0}, {"delta": 2}):
        linear_state(k, k, **options)
    parts = delta_parts()[:4]
    still = delta_attention(*parts, log_decay=torch.zeros_like(parts[3]))
    assert torch.equal(still, delta_attention(*parts))


ONES = torch.ones(4096, 1)
TINY, HUGE = 1e-30 * torch.eye(3), 1e30 * torch.eye(3)
HALF_HUGE = 60000 * torch.eye(3, dtype=torch.float16)
SEMISEPARABLE = causal_decay(torch.linspace(0.6, 0.9, 12))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: linear_state(ONES.half(), ONES.half()).item(), 4096),
        (lambda: linear_state(ONES.bfloat16(), ONES.bfloat16()).item(), 4096),
        (lambda: block_ranks(SEMISEPARABLE.half()), [1] * 11),
        (lambda: block_ranks(SEMISEPARABLE.bfloat16()), [1] * 11),
        (lambda: recall_error(torch.zeros(3, 3).half(), HALF_HUGE, HALF_HUGE), 1),
        (lambda: recall_error(torch.zeros(3, 3), HUGE, HUGE), 1),
        (lambda: recall_error(torch.eye(3), TINY, TINY), 0),
        (
            lambda: newton_schulz(HALF_HUGE).diagonal().tolist(),
            newton_schulz(torch.eye(3).half()).diagonal().tolist(),
        ),
        (lambda: newton_schulz(torch.ones(2, 0, 3)).shape, (2, 0, 3)),
    ],
)
def test_narrow_types_and_extremes(call, expected):
    assert call() == pytest.approx(expected, rel=1e-6)


# chunks


def delta_parts(batch=3, heads=2, n=11, d=4, d_v=3, seed=0, dtype=torch.float64):
    q, k, v = tensors((batch, heads, n, d), (batch, heads, n, d), (batch, heads, n, d_v), seed=seed)
    beta, decay = (
        torch.sigmoid(part) for part in tensors((batch, heads, n), (batch, heads, n), seed=seed + 1)
    )
    return [
        part.to(dtype) for part in (q, functional.normalize(k, dim=3), v, 2 * beta, decay.log())
    ]


# masks and blocks


def test_block_ranks():
    """Blocks of a recurrence have the rank of its state, whatever that of the whole; those of
    softmax do not.
    """
    n, size = 32, 4
    c, b, a = tensors((n, size), (n, size), (n,))
    mask = causal_decay(torch.sigmoid(a))
    assert torch.linalg.matrix_rank(mask * (c @ b.mT)) == n
    logits = (c @ b.mT).masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    assert max(block_ranks(torch.softmax(3 * logits, dim=1), rtol=1e-10)) == n // 2
    assert block_ranks(torch.eye(3)) == [0, 0]
    assert block_ranks(torch.ones(3, 3, dtype=torch.int64)) == [1, 1]
    assert block_ranks(torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 1 + 1e-3, 1]]), rtol=0.01) == [
        1,
        1,
    ]
    assert block_ranks(mask.bfloat16().requires_grad_(), rtol=0.05) == [1] * (n - 1)
    rounding = torch.zeros(12, 12)  # the longer side of a block decides: 10 in the second
    rounding[2, 0], rounding[3, 1] = 1, 5 * 2**-23
    assert block_ranks(rounding) == [1, 1, 1] + [0] * 8


def test_recurrence_as_matrix_product():
    """SSD: y = (L * C B^T) x is h_t = a_t h_{t-1} + b_t x_t, y_t = c_t h_t."""
    c, b, a, x = tensors((20, 3), (20, 3), (20,), (20, 2))
    a = torch.sigmoid(a)
    state, outputs = torch.zeros(3, 2, dtype=torch.float64), []
    for t in range(20):
        state = a[t] * state + torch.outer(b[t], x[t])
        outputs.append(c[t] @ state)
    torch.testing.assert_close((causal_decay(a) * (c @ b.mT)) @ x, torch.stack(outputs))
    torch.testing.assert_close(linear_state(b, x, decay=a), state)


WEIGHTS = dict(
    zip(
        ("w_dkv", "w_uk", "w_uv", "w_q"),
        tensors((6, 3), (4, 3, 5), (4, 3, 2), (4, 6, 5)),
        strict=True,
    )
)


# gradients and bad input


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda k, v, a, b: linear_state(k, v, decay=a.sigmoid(), delta=b.sigmoid()),
         tensors((4, 3), (4, 2), (4,), (4,))),
        (wy, tensors((5, 3), (5,))),
        (causal_decay, tensors((5,))),
        (power_step, tensors((5, 4), (4, 2))),
        (lambda x: newton_schulz(x, 2), tensors((4, 3))),
    ],
    ids=["linear_state", "wy", "causal_decay", "power_step", "newton_schulz"],
)  # fmt: skip
def test_gradients(function, inputs):
    assert torch.autograd.gradcheck(function, [part.requires_grad_() for part in inputs])


ONE = torch.eye(2)
RATES, KEYS = torch.ones(3).double(), torch.ones(3, 2).double()


def a_state(**options):
    return linear_state(KEYS, KEYS, **options)


def a_chunk(**change):
    return delta_attention(
        **(dict(zip(("q", "k", "v", "beta"), delta_parts(), strict=False)) | change)
    )


Q, X = tensors((1, 2, 6, 4), (1, 2, 6))
PAIR = linear_attention(Q, Q, Q, causal=True, return_state=True)[1]
SIX = window_attention(Q, Q, Q, window=2, m=2, return_state=True)[1]
GIVES = "tensors that return_state=True gives here, got"
CAUSAL = "ValueError: causal must be True where a state comes in or goes out, got False"


def linear(**change):
    return linear_attention(Q, Q, Q, **({"causal": True} | change))


def windows(**change):
    return window_attention(Q, Q, Q, **({"window": 2, "m": 2} | change))


def latents(**change):
    return latent_attention(X, **WEIGHTS, **change)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear(state=PAIR, causal=False), CAUSAL),
        (lambda: latents(return_state=True, causal=False), CAUSAL),
        (lambda: windows(state=SIX[1:]), f"TypeError: state must be the 6 {GIVES} 5 parts"),
        (lambda: linear(state=PAIR[::-1]),
         "ValueError: state[0] must have shape (1, 2, 4, 5), got shape (1, 2, 1, 1)"),
        (lambda: linear(state=[part.to("meta") for part in PAIR]),
         "ValueError: state must be on the device of the new tokens, cpu, got meta"),
        (lambda: windows(state=SIX, m=3),
         "ValueError: state[2] must have shape (1, 1, n, 3), got shape (1, 1, 2, 2)"),
        (lambda: windows(state=SIX, window=4),
         "ValueError: window must be that of the state, got 4"),
        (lambda: a_chunk(state=torch.ones(3, 2, 4, 3, dtype=torch.int64)),
         "ValueError: state must be real numbers on the device of q, cpu, got torch.int64 on cpu"),
        (lambda: latent_attention(X,
                                  **(WEIGHTS | {"w_uk": WEIGHTS["w_uk"][:3],
                                                "w_uv": WEIGHTS["w_uv"][:3]})),
         "ValueError: w_q must have 3 heads, as w_uk has, or a multiple, got shape (4, 6, 5)"),
        (lambda: a_state(decay=0.0), "ValueError: decay must be above 0 and at most 1, got 0"),
        (lambda: a_state(decay=RATES - torch.tensor([0, 0, 2])),
         "ValueError: decay must be above 0 and at most 1, got -1"),
        (lambda: a_state(delta=-0.5), "ValueError: delta must be between 0 and 2, got -0.5"),
        (lambda: a_state(delta=RATES * torch.tensor([0, 2, math.nan])),
         "ValueError: delta must be between 0 and 2, got nan"),
        (lambda: a_chunk(beta=torch.full((3, 2, 11), 2.5).double()),
         "ValueError: beta must be between 0 and 2, got 2.5"),
        (lambda: a_chunk(k=torch.full((3, 2, 11, 4), 9.0).double(),
                         beta=torch.full((3, 2, 11), 0.5).double()),
         "ValueError: beta times the squared length of its key must be at most 2, or the state "
         "would grow (torch.nn.functional.normalize(k, dim=3) gives keys of length 1), got 162"),
        (lambda: a_chunk(log_decay=torch.ones(3, 2, 11).double()),
         "ValueError: log_decay must be at most 0, got 1"),
        (lambda: recall_error(ONE, ONE, 0 * ONE),
         "ValueError: v must be non-zero, got zeros: no error is relative to them"),
        (lambda: block_ranks(ONE[:1, :1]),
         "ValueError: m must be square, of at least two rows, got shape (1, 1)"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    assert said(call) == message
