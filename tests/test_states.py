"""States, their chunks and blocks, against plain loops, NumPy and exact fractions."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from attentions import real_tokens, tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from lowrank_tutor.caches import newton_schulz, power_step
from lowrank_tutor.states import block_ranks, causal_decay, delta_attention, linear_state, recall_error, wy

# one state


def unit_keys(n, d, seed=0):
    return functional.normalize(tensors((n, d), seed=seed)[0], dim=1)


def state_by_products(k, v, decay, beta=None):
    """Every factor of the recurrence multiplied out as a matrix."""
    k, v = k.numpy(), v.numpy()
    state = np.zeros((k.shape[1], v.shape[1]))
    for t in range(len(k)):
        keep = np.eye(k.shape[1]) if beta is None else np.eye(k.shape[1]) - beta[t] * np.outer(k[t], k[t])
        state = decay[t] * keep @ state + (1 if beta is None else beta[t]) * np.outer(k[t], v[t])
    return state


@pytest.mark.parametrize("decay", [None, 0.5, torch.linspace(0.1, 1, 7).double()], ids=["none", "one", "each"])
@pytest.mark.parametrize("delta", [None, 0.7, torch.linspace(0, 2, 7).double()], ids=["none", "one", "each"])
def test_state_by_products(decay, delta):
    k, v = tensors((7, 3), (7, 2))
    rates = [np.broadcast_to(np.asarray(1.0 if rate is None else rate), 7) for rate in (decay, delta)]
    expected = state_by_products(k, v, rates[0], None if delta is None else rates[1])
    np.testing.assert_allclose(linear_state(k, v, decay=decay, delta=delta), expected, atol=1e-12)


def test_two_pairs_by_hand():
    k, v = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64), torch.tensor([[5.0], [0.0]]).double()
    assert (k @ linear_state(k, v)).flatten().tolist() == pytest.approx([5, 3])
    delta = linear_state(k, v, delta=1)
    assert delta.flatten().tolist() == pytest.approx([16 / 5, -12 / 5])
    assert (k @ delta).flatten().tolist() == pytest.approx([16 / 5, 0], abs=1e-15)
    assert recall_error(delta, k, v) == pytest.approx((5 - 16 / 5) / 5)


def test_exact_recall():
    k, v = torch.linalg.qr(tensors((5, 5))[0]).Q, tensors((5, 3), seed=1)[0]
    assert recall_error(linear_state(k, v), k, v) < 1e-14
    k, v = unit_keys(20, 5), tensors((20, 3), seed=1)[0]
    assert recall_error(linear_state(k, v, delta=1), k[-1:], v[-1:]) < 1e-14
    assert recall_error(linear_state(k, v), k[-1:], v[-1:]) > 0.1
    assert recall_error(linear_state(k, v, delta=1), k[:1], v[:1]) > 0.1, "an early pair is overwritten"


def test_mean_square_error_of_sum():
    d, t = 16, 9
    found = []
    for seed in range(400):
        k, v = unit_keys(t, d, seed), tensors((t, 8), seed=1000 + seed)[0]
        found.append(float((k @ linear_state(k, v) - v).square().sum()) / (8 * t))
    assert np.mean(found) == pytest.approx((t - 1) / d, rel=0.05)


@pytest.mark.parametrize("t", [1, 3, 9])
@pytest.mark.parametrize("options", [{}, {"delta": 1.0}, {"decay": 0.9, "delta": 0.5}])
def test_state_rank(t, options):
    assert torch.linalg.matrix_rank(linear_state(*tensors((t, 5), (t, 6)), **options)) == min(t, 5)


def test_bounds_are_allowed():
    k = torch.eye(2)
    for options in ({"decay": 1}, {"decay": 1e-9}, {"delta": 0}, {"delta": 2}):
        linear_state(k, k, **options)
    parts = delta_parts()[:4]
    still = delta_attention(*parts, log_decay=torch.zeros_like(parts[3]))
    for one, other in zip(still, delta_attention(*parts), strict=True):
        assert torch.equal(one, other)


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
        (lambda: newton_schulz(HALF_HUGE).diagonal().tolist(), newton_schulz(torch.eye(3).half()).diagonal().tolist()),
        (lambda: newton_schulz(HUGE).diagonal().tolist(), newton_schulz(torch.eye(3)).diagonal().tolist()),
        (lambda: newton_schulz(TINY).diagonal().tolist(), newton_schulz(torch.eye(3)).diagonal().tolist()),
        (lambda: newton_schulz(torch.ones(2, 0, 3)).shape, (2, 0, 3)),
    ],
)
def test_narrow_types_and_extremes(call, expected):
    assert call() == pytest.approx(expected, rel=1e-6)


# chunks


def delta_by_loops(q, k, v, beta, log_decay=None, state=None, mask=None):
    """The recurrence, a token at a time in NumPy."""
    q, k, v, beta = (part.detach().double().numpy() for part in (q, k, v, beta))
    out, last = np.zeros((*q.shape[:3], v.shape[3])), np.zeros((*k.shape[:2], k.shape[3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        s = np.zeros(last.shape[2:]) if state is None else state[b, h].double().numpy()
        for t in range(q.shape[2]):
            if mask is None or mask[b, t]:
                s = s * (1 if log_decay is None else math.exp(log_decay[b, h, t]))
                s = s + beta[b, h, t] * np.outer(k[b, h, t], v[b, h, t] - k[b, h, t] @ s)
            out[b, h, t] = q[b, h, t] @ s
        last[b, h] = s
    return out, last


def delta_parts(batch=3, heads=2, n=11, d=4, d_v=3, seed=0, dtype=torch.float64):
    q, k, v = tensors((batch, heads, n, d), (batch, heads, n, d), (batch, heads, n, d_v), seed=seed)
    beta, decay = (torch.sigmoid(part) for part in tensors((batch, heads, n), (batch, heads, n), seed=seed + 1))
    return [part.to(dtype) for part in (q, functional.normalize(k, dim=3), v, 2 * beta, decay.log())]


@pytest.mark.parametrize("chunk", [1, 2, 4, 11, 64])
@pytest.mark.parametrize("decays", [False, True])
def test_chunks_are_the_recurrence(chunk, decays):
    *parts, log_decay = delta_parts()
    log_decay = log_decay if decays else None
    (state,) = tensors((3, 2, 4, 3), seed=7)
    for start, mask in ((None, None), (state, None), (state, real_tokens(3, 11))):
        found = delta_attention(*parts, log_decay=log_decay, chunk=chunk, state=start, token_mask=mask)
        for one, other in zip(found, delta_by_loops(*parts, log_decay, start, mask), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_long_chunks_keep_ten_digits():
    *parts, log_decay = delta_parts(1, 1, 1000, 32, 16)
    chunks, steps = (delta_attention(*parts, log_decay=log_decay / 100, chunk=chunk) for chunk in (64, 1))
    for one, other in zip(chunks, steps, strict=True):
        assert (one - other).abs().max() < 1e-10


def test_state_carries_on():
    *parts, log_decay = delta_parts(1, 1)
    whole, last = delta_attention(*parts, log_decay=log_decay)
    alone = linear_state(parts[1][0, 0], parts[2][0, 0], decay=log_decay[0, 0].exp(), delta=parts[3][0, 0])
    torch.testing.assert_close(last[0, 0], alone)
    outputs, state = [], None
    for span in (slice(0, 5), slice(5, None)):
        *some, decays = (part[:, :, span] for part in (*parts, log_decay))
        out, state = delta_attention(*some, log_decay=decays, state=state)
        outputs.append(out)
    torch.testing.assert_close(torch.cat(outputs, dim=2), whole)
    torch.testing.assert_close(state, last)


def test_hidden_tokens_hold_anything():
    """Shares and decays, too, that would be refused for real tokens."""
    *parts, log_decay = delta_parts()
    mask = real_tokens(3, 11)
    before = delta_attention(*parts, log_decay=log_decay, token_mask=mask)
    for i, what in ((1, math.nan), (2, math.inf), (3, 9.0)):
        hidden = ~mask[:, None, :, None] if parts[i].ndim == 4 else ~mask[:, None]
        parts[i] = parts[i].masked_fill(hidden, what)
    log_decay = log_decay.masked_fill(~mask[:, None], 9.0)
    for one, other in zip(before, delta_attention(*parts, log_decay=log_decay, token_mask=mask), strict=True):
        assert torch.equal(one, other)


def test_steep_decay_stays_finite():
    *parts, log_decay = delta_parts(1, 1, 64)
    parts = [part.requires_grad_() for part in parts]
    log_decay = (log_decay - 200).requires_grad_()
    out, state = delta_attention(*parts, log_decay=log_decay)
    (out.sum() + state.sum()).backward()
    assert all(torch.isfinite(part.grad).all() for part in (*parts, log_decay))
    np.testing.assert_allclose(out.detach(), delta_by_loops(*parts, log_decay.detach())[0], atol=1e-12)


def test_narrow_types_of_chunks():
    exact = delta_parts(n=100)
    wanted = delta_attention(*exact[:4], log_decay=exact[4])[0]
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 0.05)):
        *narrow, log_decay = (part.to(dtype) for part in exact)
        found, state = delta_attention(*narrow, log_decay=log_decay)
        assert (found.dtype, state.dtype) == (dtype, torch.float32)
        assert (found.double() - wanted).norm() < bound * wanted.norm()
    *single, log_decay = (part.float() for part in exact)
    with torch.autocast("cpu", torch.bfloat16):
        inside = delta_attention(*single, log_decay=log_decay)[0]
    assert (inside.double() - wanted).norm() < 1e-5 * wanted.norm()
    first = torch.ones(3, 2, 4, 3, dtype=torch.bfloat16)  # a narrow state goes on in float32
    one, other = (delta_attention(*single, state=state)[1] for state in (first, first.float()))
    assert torch.equal(one, other)


def test_chunks_compile(compiler):
    parts = delta_parts(dtype=torch.float32)
    compiled = compiler(delta_attention, backend="eager")
    for one, other in zip(compiled(*parts[:4], chunk=4), delta_attention(*parts[:4], chunk=4), strict=True):
        torch.testing.assert_close(one, other)


def test_reflections_as_one_matrix():
    k, beta = tensors((6, 9))[0], tensors((6,), seed=1)[0]
    w, t = wy(k, beta)
    product = torch.eye(9, dtype=torch.float64)
    for row, share in zip(k, beta, strict=True):
        product = (torch.eye(9) - share * torch.outer(row, row)) @ product
    torch.testing.assert_close(torch.eye(9) - k.mT @ w, product, rtol=0, atol=1e-11)
    assert torch.equal(t, t.tril())
    torch.testing.assert_close(t.diagonal(), beta)
    torch.testing.assert_close(w, t @ k)
    for narrow, wide in zip(wy(k.bfloat16(), beta.bfloat16()), (w, t), strict=True):
        assert narrow.dtype == torch.bfloat16
        assert (narrow - wide).norm() < 0.1 * wide.norm()


# masks and blocks


@settings(max_examples=30)
@given(st.lists(st.fractions(-2, 2, max_denominator=4), min_size=2, max_size=7))
def test_decay_mask_by_fractions(decays):
    found = causal_decay(torch.tensor([float(a) for a in decays], dtype=torch.float64))
    x, y = [Fraction(i % 3 - 1) for i in range(len(decays))], Fraction(0)
    for i, a in enumerate(decays):
        y = a * y + x[i]
        for j in range(len(decays)):
            assert float(found[i, j]) == pytest.approx(float(math.prod(decays[j + 1 : i + 1])) if j <= i else 0)
        assert float(found[i] @ torch.tensor([float(one) for one in x]).double()) == pytest.approx(float(y), abs=1e-12)


def test_block_ranks():
    """Blocks of a recurrence have the rank of its state; those of softmax do not."""
    n, size = 32, 4
    c, b, a = tensors((n, size), (n, size), (n,))
    mask = causal_decay(torch.sigmoid(a))
    recurrence = mask * (c @ b.mT)
    assert block_ranks(mask) == [1] * (n - 1)
    assert block_ranks(recurrence) == [min(i, n - i, size) for i in range(1, n)]
    assert torch.linalg.matrix_rank(recurrence) == n
    logits = (c @ b.mT).masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    assert max(block_ranks(torch.softmax(3 * logits, dim=1), rtol=1e-10)) == n // 2
    assert block_ranks(torch.eye(3)) == [0, 0]
    assert block_ranks(torch.ones(3, 3, dtype=torch.int64)) == [1, 1]
    assert block_ranks(torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 1 + 1e-3, 1]]), rtol=0.01) == [1, 1]
    assert block_ranks(mask.bfloat16().requires_grad_(), rtol=0.05) == [1] * (n - 1)
    rounding = torch.zeros(4, 4)
    rounding[2, 0], rounding[3, 1] = 1, 1.5 * 2**-23
    assert block_ranks(rounding) == [1, 1, 1]


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


# gradients and bad input


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda k, v, a, b: linear_state(k, v, decay=a.sigmoid(), delta=b.sigmoid()),
         tensors((4, 3), (4, 2), (4,), (4,))),
        (lambda q, k, v, b, a: delta_attention(q, k, v, b, log_decay=a, chunk=3), delta_parts(1, 1, 5, 2, 2)),
        (wy, tensors((5, 3), (5,))),
        (causal_decay, tensors((5,))),
        (power_step, tensors((5, 4), (4, 2))),
        (lambda x: newton_schulz(x, 2), tensors((4, 3))),
    ],
    ids=["linear_state", "delta_attention", "wy", "causal_decay", "power_step", "newton_schulz"],
)  # fmt: skip
def test_gradients(function, inputs):
    assert torch.autograd.gradcheck(function, [part.requires_grad_() for part in inputs])


ONE, TWO = torch.eye(2), torch.eye(2).double()
WHOLE = torch.ones(2, 2, dtype=torch.int64)
RATES, KEYS = torch.ones(3).double(), torch.ones(3, 2).double()


def a_state(k=KEYS, v=KEYS, **options):
    return linear_state(k, v, **options)


def a_chunk(**change):
    return delta_attention(**(dict(zip(("q", "k", "v", "beta"), delta_parts(), strict=False)) | change))


VALUES = [
    (lambda: a_state(decay=0.0), "decay must be above 0 and at most 1, got 0"),
    (lambda: a_state(decay=1.5), "decay must be above 0 and at most 1, got 1.5"),
    (lambda: a_state(decay=1e308), "decay must be above 0 and at most 1, got 1e+308"),
    (lambda: a_state(decay=RATES - torch.tensor([0, 0, 2])), "decay must be above 0 and at most 1, got -1"),
    (lambda: a_state(delta=-0.5), "delta must be between 0 and 2, got -0.5"),
    (lambda: a_state(delta=2.5), "delta must be between 0 and 2, got 2.5"),
    (lambda: a_state(delta=RATES * torch.tensor([0, 2, math.nan])), "delta must be between 0 and 2, got nan"),
    (lambda: a_state(delta=RATES[:2]), "delta must have shape (3), got shape (2,)"),
    (lambda: a_state(torch.ones(3, 0).double()),
     "k must hold at least one key of at least one number, got shape (3, 0)"),
    (lambda: a_state(v=TWO), "v must have shape (3, d_v), got shape (2, 2)"),
    (lambda: a_state(ONE[0], ONE), "k must have shape (n, d), got shape (2,)"),
    (lambda: recall_error(ONE, ONE, 0 * ONE), "v must be non-zero, got zeros: no error is relative to them"),
    (lambda: recall_error(ONE[:, :1], ONE, ONE), "state must have shape (2, 2), got shape (2, 1)"),
    (lambda: a_chunk(chunk=0), "chunk must be at least 1, got 0"),
    (lambda: a_chunk(beta=torch.full((3, 2, 11), 2.5).double()), "beta must be between 0 and 2, got 2.5"),
    (lambda: a_chunk(beta=torch.full((3, 2, 11), -0.5).double()), "beta must be between 0 and 2, got -0.5"),
    (lambda: a_chunk(beta=torch.ones(3, 2, 10).double()), "beta must have shape (3, 2, 11), got shape (3, 2, 10)"),
    (lambda: a_chunk(log_decay=torch.ones(3, 2, 11).double()), "log_decay must be at most 0, got 1"),
    (lambda: a_chunk(q=torch.ones(3, 2, 10, 4).double()),
     "q must hold as many tokens as k, got shapes (3, 2, 10, 4) and (3, 2, 11, 4)"),
    (lambda: a_chunk(state=torch.ones(3, 2, 3, 4).double()),
     "state must have shape (3, 2, 4, 3), got shape (3, 2, 3, 4)"),
    (lambda: a_chunk(state=torch.ones(3, 2, 4, 3, dtype=torch.int64)),
     "state must be real numbers on the device of q, cpu, got torch.int64 on cpu"),
    (lambda: a_chunk(token_mask=torch.ones(3, 4, dtype=torch.bool)),
     "token_mask must have shape (batch, n_keys) = (3, 11), got shape (3, 4)"),
    (lambda: wy(ONE, ONE[0, :1]), "beta must have shape (2), got shape (1,)"),
    (lambda: wy(ONE[0], ONE[0]), "k must have shape (n, d), got shape (2,)"),
    (lambda: power_step(ONE[0], ONE), "m must have shape (m, n), got shape (2,)"),
    (lambda: causal_decay(ONE), "a must have shape (n), got shape (2, 2)"),
    (lambda: block_ranks(ONE[0]), "m must have shape (n, n), got shape (2,)"),
    (lambda: block_ranks(ONE[:1, :1]), "m must be square, of at least two rows, got shape (1, 1)"),
    (lambda: block_ranks(torch.ones(2, 3)), "m must be square, of at least two rows, got shape (2, 3)"),
    (lambda: block_ranks(math.nan * ONE), "m must be finite, got nan"),
]  # fmt: skip
TYPES = [
    (lambda: a_state(decay=RATES.float()), "decay must be of the type of k, torch.float64, got torch.float32"),
    (lambda: a_state(decay="1"), "decay must be a real number, got '1'"),
    (lambda: a_state(WHOLE, WHOLE), "k must be of a floating-point type, got torch.int64"),
    (lambda: a_state(ONE, TWO), "v must be of the type of k, torch.float32, got torch.float64"),
    (lambda: recall_error(TWO, ONE, ONE), "state must be of the type of k, torch.float32, got torch.float64"),
    (lambda: recall_error(*[ONE.to("meta")] * 3), "k must hold numbers, got a meta tensor"),
    (lambda: a_chunk(beta=None), "beta must be a tensor, got NoneType"),
    (lambda: a_chunk(beta=torch.ones(3, 2, 11)), "beta must be of the type of q, torch.float64, got torch.float32"),
    (lambda: wy(ONE, TWO[0]), "beta must be of the type of k, torch.float32, got torch.float64"),
    (lambda: wy(WHOLE, WHOLE[0]), "k must be of a floating-point type, got torch.int64"),
    (lambda: power_step(WHOLE, WHOLE), "m must be of a floating-point type, got torch.int64"),
    (lambda: power_step(ONE, TWO), "q must be of the type of m, torch.float32, got torch.float64"),
    (lambda: block_ranks(1j * ONE), "m must hold real numbers, got torch.complex64"),
    (lambda: block_ranks(ONE.to("meta")), "m must hold numbers, got a meta tensor"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "call", "message"), [*((ValueError, *row) for row in VALUES), *((TypeError, *row) for row in TYPES)]
)
def test_bad_input(kind, call, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        call()
