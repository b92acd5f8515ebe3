"""States, chunks, and blocks: numbers by hand, laws, refusals; tests/contracts has loops."""

import pytest
import torch
from attentions import tensors

from lowrank_tutor.adapters import newton_schulz, power_step
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.states import (
    block_ranks,
    causal_decay,
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


# masks and blocks


def test_block_ranks():
    assert block_ranks(torch.eye(3)) == [0, 0]
    assert block_ranks(torch.ones(3, 3, dtype=torch.int64)) == [1, 1]
    near = torch.ones(4, 4)
    near[3, 1] += 1e-3
    assert (block_ranks(near), block_ranks(near, rtol=0.01)) == ([1, 2, 1], [1, 1, 1])
    assert block_ranks(SEMISEPARABLE.bfloat16().requires_grad_()) == [1] * 11
    rounding = torch.zeros(12, 12)  # the longer side of a block decides: 10 in the second
    rounding[2, 0], rounding[3, 1] = 1, 5 * 2**-23
    assert block_ranks(rounding) == [1, 1, 1] + [0] * 8


# gradients, and states that do not fit


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


(Q,) = tensors((1, 2, 6, 4))
PAIR = linear_attention(Q, Q, Q, causal=True, return_state=True)[1]
SIX = window_attention(Q, Q, Q, window=2, m=2, return_state=True)[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_attention(Q, Q, Q, state=PAIR), "causal must be True where a state comes"),
        (lambda: window_attention(Q, Q, Q, window=2, m=2, state=SIX[1:]),
         "state must be the 6 tensors that return_state=True gives here, got"),
        (lambda: window_attention(Q, Q, Q, window=2, m=3, state=SIX),
         r"state\[2\] must have shape \(1, 1, n, 3\), got"),
        (lambda: window_attention(Q, Q, Q, window=4, m=2, state=SIX),
         "window must be that of the state, got 4"),
        (lambda: window_attention(Q, Q[:, :, :5], Q[:, :, :5], window=2, m=2),
         "q must hold between 1 and 5 tokens"),
        (lambda: recall_error(torch.eye(2), torch.eye(2), torch.zeros(2, 2)), "v must be non-zero"),
        (lambda: block_ranks(torch.eye(1)), "m must be real and square, of at least two rows"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        call()
