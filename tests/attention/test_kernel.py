"""Linear attention and Performer against plain loops in NumPy, log-space sums, exact attention and the laws of both."""

import inspect
import math
import pickle
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor import attention
from lowrank_tutor.attention import (
    CHUNK,
    attention_weights,
    linear_attention,
    orthogonal_features,
    performer_attention,
    softmax_attention,
)
from lowrank_tutor.rank import numerical_rank


def tensors(*shape, seed=0, dtype=torch.float64, scale=1.0):
    return (scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def inputs(n=5, n_queries=None, batch=2, heads=2, d=3, d_v=2, seed=0, dtype=torch.float64, scale=1.0):
    """Queries, keys, values of the shapes (batch, heads, n, d), the last of width d_v."""
    widths = ((n if n_queries is None else n_queries, d), (n, d), (n, d_v))
    return [
        tensors(batch, heads, *size, seed=100 * seed + i, dtype=dtype, scale=1.0 if i == 2 else scale)
        for i, size in enumerate(widths)
    ]


W = tensors(7, 3, seed=99)  # 7 features for d = 3: no multiple of it


def performer(q, k, v, *, features=None, **options):
    return performer_attention(q, k, v, features=W.to(torch.promote_types(q.dtype, torch.float32)), **options)


METHODS = {"linear": linear_attention, "performer": performer}
both = pytest.mark.parametrize("method", METHODS)
both_orders = pytest.mark.parametrize("causal", [False, True])


def log_features(name, x, w=None):
    """The logarithm of each feature by its definition, for NumPy rows x (..., d)."""
    if name == "linear":
        return np.where(x > 0, np.log1p(np.maximum(x, 0)), x)
    w = W.numpy() if w is None else w
    x = x / x.shape[-1] ** 0.25
    return x @ w.T - np.sum(x * x, axis=-1, keepdims=True) / 2 - math.log(len(w)) / 2


def by_loops(name, q, k, v, mask=None, causal=False, w=None, logs=False):
    """Each output as one weighed average, in float64; with ``logs`` the weights never leave the logarithms."""
    q, k, v = (x.detach().double().numpy() for x in (q, k, v))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, i in np.ndindex(q.shape[:3]):
        seen = [j for j in range(k.shape[2]) if (mask is None or bool(mask[b, j])) and not (causal and j > i)]
        if not seen:
            continue
        phi_q, phi_k = log_features(name, q[b, h, i], w), log_features(name, k[b, h, seen], w)
        if logs:
            exponents = logsumexp(phi_q + phi_k, axis=-1)
            weights = np.exp(exponents - exponents.max())
        else:
            weights = np.exp(phi_k) @ np.exp(phi_q)
        out[b, h, i] = weights @ v[b, h, seen] / weights.sum()
    return out


def a_mask(n, batch=2):
    """Every third token hidden, the first among them; the last sequence altogether."""
    mask = (torch.arange(n) + torch.arange(batch)[:, None]) % 3 > 0
    mask[:, 0] = mask[-1] = False
    return mask


def close(actual, expected, atol=1e-12):
    np.testing.assert_allclose(actual.detach().numpy(), np.asarray(expected), rtol=0, atol=atol)


# the definition


@both
@both_orders
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n", [1, 4, CHUNK, 2 * CHUNK + 5])
def test_an_output_is_its_loops(method, causal, masked, n):
    q, k, v = inputs(n)
    mask = a_mask(n) if masked and n > 1 else None
    out = METHODS[method](q, k, v, token_mask=mask, causal=causal)
    assert out.shape == v.shape
    close(out, by_loops(method, q, k, v, mask, causal))


@both
@pytest.mark.parametrize("n_queries", [0, 1, 3, 9])
def test_there_may_be_more_or_fewer_queries_than_keys(method, n_queries):
    q, k, v = inputs(5, n_queries)
    out = METHODS[method](q, k, v, token_mask=a_mask(5))
    assert out.shape == (2, 2, n_queries, 2)
    close(out, by_loops(method, q, k, v, a_mask(5)))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 12), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.integers(1, 6), st.integers(0, 10**6)
)
def test_the_size_of_a_chunk_changes_nothing(n, d, heads, masked, chunk, seed):
    q, k, v = inputs(n, d=d, heads=heads, seed=seed)
    mask = tensors(2, n, seed=seed) > -1 if masked else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "CHUNK", chunk)
        out = linear_attention(q, k, v, token_mask=mask, causal=True)
    close(out, by_loops("linear", q, k, v, mask, True))


def test_linear_attention_weighs_two_tokens_10_to_9():
    """phi(q) = (1, 1/2), phi(k) = (2, 1) and (1/4, 4): weights 5/2 and 9/4."""
    q = torch.tensor([[[[0.0, -math.log(2)]]]])
    k = torch.tensor([[[[1.0, 0.0], [-math.log(4), 3.0]]]])
    v = torch.tensor([[[[19.0], [0.0]]]])
    assert linear_attention(q, k, v).item() == pytest.approx(10, rel=1e-6)


def test_one_dimension_makes_linear_attention_deaf_to_its_queries():
    q, k, v = inputs(6, d=1)
    close(linear_attention(q, k, v), linear_attention(tensors(2, 2, 6, 1, seed=5), k, v))


def test_performer_weighs_two_tokens_as_worked_by_hand():
    """With rows 1 and -1 the weight is cosh(x + y) exp(-(x^2 + y^2)/2): at x = 0 it is 1 for 0, and 0.983 for log 2."""
    q, k = torch.zeros(1, 1, 1, 1), torch.tensor([[[[0.0], [math.log(2)]]]])
    out = performer_attention(q, k, torch.tensor([[[[0.0], [1.0]]]]), features=torch.tensor([[1.0], [-1.0]]))
    weight = 1.25 * math.exp(-(math.log(2) ** 2) / 2)
    assert weight == pytest.approx(0.983, abs=5e-4)
    assert out.item() == pytest.approx(weight / (1 + weight), rel=1e-6)


def test_performer_divides_queries_and_keys_by_the_fourth_root_of_the_width():
    """At d = 16 that is 2; each sits in its first coordinate and meets one row, 3: exp(3 (1 + y) - y^2/2)."""
    q, k, row = torch.zeros(1, 1, 1, 16), torch.zeros(1, 1, 2, 16), torch.zeros(1, 16)
    q[..., 0], k[0, 0, 1, 0], row[0, 0] = 2.0, 2.0, 3.0
    out = performer_attention(q, k, torch.tensor([[[[0.0], [1.0]]]]), features=row)
    assert out.item() == pytest.approx(1 / (1 + math.exp(-2.5)), rel=1e-6)


# what every attention of the book promises


@both
@both_orders
@pytest.mark.parametrize("masked", [False, True])
def test_values_of_1_give_1(method, causal, masked):
    q, k, v = inputs(CHUNK + 9, scale=2.0)
    mask = a_mask(CHUNK + 9) if masked else None
    out = METHODS[method](q, k, torch.ones_like(v), token_mask=mask, causal=causal)
    expected = np.ones(out.shape)
    if masked:
        expected[1] = 0
        if causal:
            assert not mask[0, 0]
            expected[0, :, : int(mask[0].int().argmax())] = 0
    close(out, expected, atol=1e-14)


@both
@both_orders
@pytest.mark.parametrize("poison", [1e3, -1e3, float("nan"), float("inf")])
def test_what_lies_behind_the_mask_moves_nothing(method, causal, poison):
    q, k, v = inputs(CHUNK + 9)
    mask = a_mask(CHUNK + 9)
    hidden = ~mask[:, None, :, None]
    results = []
    for keys, values in ((k, v), (k.masked_fill(hidden, poison), v.masked_fill(hidden, poison))):
        leaves = [x.clone().requires_grad_() for x in (q, keys, values)]
        out = METHODS[method](*leaves, token_mask=mask, causal=causal)
        out.square().sum().backward()
        results.append([out, *(x.grad for x in leaves)])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)
    for gradient in results[0][2:]:
        assert not gradient.masked_select(hidden.expand_as(gradient)).any()
    assert not torch.allclose(METHODS[method](q, k, v, causal=causal)[0], results[0][0][0])  # the mask hid something


def test_hiding_the_values_but_not_what_divides_is_wrong():
    """As performer-pytorch 1.1.4 does: content behind the mask then moves what stands before it."""
    q, k, v = inputs(8)
    mask = torch.arange(8).expand(2, 8) < 5

    def values_only(keys):
        return performer(q, keys, v.masked_fill(~mask[:, None, :, None], 0))

    other = k.clone()
    other[:, :, 5:] = tensors(2, 2, 3, 3, seed=8)
    short = by_loops("performer", q, k[:, :, :5], v[:, :, :5])
    assert np.linalg.norm((values_only(k) - values_only(other)).numpy()) > 0.05 * np.linalg.norm(short)
    assert np.linalg.norm(values_only(k).numpy() - short) > 0.05 * np.linalg.norm(short)
    close(performer(q, k, v, token_mask=mask), short)
    close(performer(q, other, v, token_mask=mask), short)


@both
@both_orders
def test_padding_moves_nothing(method, causal):
    n = CHUNK - 2
    q, k, v = inputs(n + 7)
    mask = torch.arange(n + 7).expand(2, n + 7) < n
    short = METHODS[method](q[:, :, :n], k[:, :, :n], v[:, :, :n], causal=causal)
    close(METHODS[method](q, k, v, token_mask=mask, causal=causal)[:, :, :n], short.numpy())
    close(METHODS[method](q, k, v, token_mask=mask | True, causal=causal), METHODS[method](q, k, v, causal=causal))


@both
@both_orders
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_sequence_that_is_hidden_altogether_gives_zeros_and_no_gradient(method, causal, dtype):
    leaves = [x.requires_grad_() for x in inputs(6, dtype=dtype)]
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1] = False
    out = METHODS[method](*leaves, token_mask=mask, causal=causal)
    assert out.dtype == dtype
    assert not out[1].any()
    out.square().sum().backward()
    for x in leaves:
        assert torch.isfinite(x.grad).all()
        assert not x.grad[1].any()
        assert x.grad[0].any()


@both
@pytest.mark.parametrize("n", [2, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_the_causal_form_does_not_look_ahead(method, n):
    q, k, v = inputs(n)
    out = METHODS[method](q, k, v, causal=True)
    for place in {n - 1, n // 2, min(CHUNK, n - 1)}:
        for scale in (1.0, 1e3):  # keys so long that a shift by the largest of all would leave only zeros before them
            others = [x.clone() for x in (q, k, v)]
            for i, x in enumerate(others):
                x[:, :, place:] = tensors(*x[:, :, place:].shape, seed=50 + i, scale=scale)
            changed = METHODS[method](*others, causal=True)
            assert torch.equal(changed[:, :, :place], out[:, :, :place])
            assert torch.isfinite(changed).all()
            assert not torch.allclose(changed[:, :, place:], out[:, :, place:])


def test_one_shift_for_all_keys_would_tell_the_past_about_the_future():
    """The wrong form: exponentials relative to the largest of all keys. A short last key empties all sums before it."""
    q, k, v = inputs(5, dtype=torch.float32)
    k[:, :, :4] *= 40 / k[:, :, :4].norm(dim=3, keepdim=True)
    exponents = torch.tensor(log_features("performer", k.double().numpy())).float()
    assert not (exponents - exponents.amax(dim=(2, 3), keepdim=True)).exp()[:, :, :4].any()
    out = performer(q, k, v, causal=True)
    close(out, by_loops("performer", q, k, v, causal=True, logs=True), atol=1e-4)
    k[:, :, 4] *= 1000
    assert torch.equal(performer(q, k, v, causal=True)[:, :, :4], out[:, :, :4])


@both
@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_the_last_token_sees_what_it_sees_without_order(method, n):
    q, k, v = inputs(n, scale=2.0)
    for mask in (None, torch.arange(n).expand(2, n) > 0):
        causal, free = (METHODS[method](q, k, v, token_mask=mask, causal=order)[:, :, -1] for order in (True, False))
        close(causal, free)


@both
@both_orders
def test_each_sequence_and_head_stands_alone(method, causal):
    q, k, v = inputs(6, batch=3)
    mask = a_mask(6, 3)
    out = METHODS[method](q, k, v, token_mask=mask, causal=causal)
    for b, h in np.ndindex(3, 2):
        alone = METHODS[method](
            *(x[b : b + 1, h : h + 1] for x in (q, k, v)), token_mask=mask[b : b + 1], causal=causal
        )
        close(out[b : b + 1, h : h + 1], alone, atol=1e-14)


@both
def test_the_order_of_the_keys_is_no_matter_and_that_of_the_queries_is_kept(method):
    q, k, v = inputs(9)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    out = METHODS[method](q, k, v)
    close(METHODS[method](q, k[:, :, order], v[:, :, order]), out, atol=1e-14)
    close(METHODS[method](q[:, :, order], k, v), out[:, :, order], atol=1e-14)


@both
@both_orders
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_right(method, causal, masked, monkeypatch):
    monkeypatch.setattr(attention, "CHUNK", 2)
    leaves = [x.requires_grad_() for x in inputs(5, heads=1)]
    mask = a_mask(5) if masked else None
    assert torch.autograd.gradcheck(lambda *x: METHODS[method](*x, token_mask=mask, causal=causal), leaves)


def test_worked_out_derivatives_match_steps(monkeypatch):
    x = tensors(1, 1, 30, 3, scale=3.0)
    x[..., 0, :] -= 50  # a row of exponentials alone
    x[..., 1, 1] = 0
    scale = x.amax(dim=3, keepdim=True).clamp(max=0)
    more = tensors(1, 1, 1, 3, seed=1)
    for function, beside in ((attention._elu_plus_one, scale), (attention._log_elu, more)):
        found = []
        for in_steps in (False, True):
            monkeypatch.setattr(attention, "_in_steps", lambda in_steps=in_steps: in_steps)
            leaves = [tensor.clone().requires_grad_() for tensor in (x, beside)]
            out = function(*leaves)
            which = leaves if function is attention._log_elu else leaves[:1]
            found.append((out, *torch.autograd.grad(out, which, x + 1)))
        for one, other in zip(*found, strict=True):
            close(one, other.detach(), atol=1e-14)


KEYS_BELOW_ZERO = [x - 3 * (i == 1) for i, x in enumerate(inputs(16, d=4))]
WITH_A_COLUMN_BELOW_ZERO = [torch.cat([-x[..., :1].abs() - 1, x[..., 1:]], dim=3) for x in inputs(16, d=4)]
AFTER_A_RELU = [torch.relu(x) for x in inputs(16, d=4)]


@both_orders
@pytest.mark.parametrize(
    "tensors",
    [inputs(2 * CHUNK, d=4), KEYS_BELOW_ZERO, WITH_A_COLUMN_BELOW_ZERO, AFTER_A_RELU],
    ids=["normal", "keys below 0", "a column below 0", "exact zeros"],
)
def test_functional_gradients_match_eager(tensors, causal):
    """The largest entry of a row lies at the bound of a clamp, whose derivative there depends on PyTorch's version."""

    def loss(*tensors):
        return linear_attention(*tensors, causal=causal).square().sum()

    leaves = [x.clone().requires_grad_() for x in tensors]
    eager = torch.autograd.grad(loss(*leaves), leaves)
    for found, expected in zip(torch.func.grad(loss, argnums=(0, 1, 2))(*tensors), eager, strict=True):
        close(found, expected)
    mapped = torch.func.vmap(torch.func.grad(loss, argnums=1))(*(x[None] for x in tensors))
    close(mapped[0], eager[1])
    directions = tuple(x.cos() for x in tensors)
    slope = torch.func.jvp(loss, tuple(tensors), directions)[1]
    close(slope, sum((a * b).sum() for a, b in zip(eager, directions, strict=True)), atol=1e-11)


@both_orders
@pytest.mark.parametrize("shift", [0, -3])
def test_second_derivatives_are_right(causal, shift):
    q, k, v = inputs(4, heads=1, batch=1)
    leaves = [q.requires_grad_(), (k + shift).requires_grad_()]
    assert torch.autograd.gradgradcheck(lambda q, k: linear_attention(q, k, v, causal=causal), leaves)


def test_gradients_reach_the_features_of_performer():
    w = W.clone().requires_grad_()
    q, k, v = inputs(3, heads=1)
    assert torch.autograd.gradcheck(lambda w: performer_attention(q, k, v, features=w), w)


@both
@both_orders
def test_the_callers_tensors_are_never_changed(method, causal):
    q, k, v = inputs(6)
    mask = a_mask(6)
    before = [x.clone() for x in (q, k, v, mask, W)]
    METHODS[method](q, k, v, token_mask=mask, causal=causal)
    assert all(torch.equal(x, y) for x, y in zip((q, k, v, mask, W), before, strict=True))


# precision and extremes


@both
@both_orders
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1.6e-2)])
def test_a_result_is_as_exact_as_its_type(method, causal, dtype, atol):
    q, k, v = inputs(CHUNK + 9, dtype=dtype)
    out = METHODS[method](q, k, v, causal=causal)
    assert out.dtype == dtype
    expected = by_loops(method, q, k, v, causal=causal, w=W.float().double().numpy())
    assert np.abs(out.double().numpy() - expected).max() < atol * max(1, np.abs(expected).max())


@both
@both_orders
def test_long_sums_are_not_kept_in_half_precision(method, causal):
    """Added up in bfloat16, 1 + 1 + ... stops at 256."""
    q, k = torch.zeros(2, 1, 1, 2000, 3, dtype=torch.bfloat16)
    v = torch.zeros(1, 1, 2000, 1, dtype=torch.bfloat16)
    v[:, :, 1000:] = 1
    assert METHODS[method](q, k, v, causal=causal)[0, 0, -1, 0].item() == 0.5


@both
@both_orders
def test_autocast_changes_nothing(method, causal):
    q, k, v = inputs(9, dtype=torch.float32)
    plain = METHODS[method](q, k, v, causal=causal)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(METHODS[method](q, k, v, causal=causal), plain)
        mixed = METHODS[method](q, k.bfloat16(), v.bfloat16(), causal=causal)
    assert mixed.dtype == torch.float32
    close(mixed, plain, atol=0.05)


@both
@both_orders
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_numbers_stay_averages_of_the_values(method, causal, dtype):
    mask = a_mask(CHUNK + 9)
    for scale in (1e2, 1e4, 1e9):
        q, k, v = inputs(CHUNK + 9, dtype=dtype, scale=scale)
        for signed in (1, -1):
            out = METHODS[method](signed * q.abs(), -k.abs(), v, token_mask=mask, causal=causal)
            assert torch.isfinite(out).all()
            assert out[0].max() <= v[0].max() + 1e-5
            assert out[0].min() >= v[0].min() - 1e-5
            assert METHODS[method](q, k, v.sign().abs(), causal=causal).sub(1).abs().max() < 1e-5


@both
@both_orders
def test_large_numbers_are_right_where_plain_exponentials_are_all_zero(method, causal):
    q, k, v = inputs(20, dtype=torch.float32, scale=4.0)
    if method == "linear":
        q, k = q - 140, k - 150
    else:
        k = 6 * k
    assert not torch.tensor(log_features(method, k.double().numpy())).float().exp()[:, :, 3:].any(dim=-1).all()
    expected = by_loops(method, q, k, v, causal=causal, logs=True)
    close(METHODS[method](q, k, v, causal=causal), expected, atol=2e-4)
    close(METHODS[method](q.double(), k.double(), v.double(), causal=causal), expected, atol=1e-9)


def test_features_that_share_nothing_still_average_the_values():
    """Each feature of the query is nothing beside its largest where the keys have something: 0/0 as products."""
    rows = torch.tensor([[1.0], [-1.0]])
    q, k, v = torch.full((1, 1, 1, 1), 200.0), torch.full((1, 1, 2, 1), -200.0), torch.tensor([[[[1.0], [3.0]]]])
    assert performer_attention(q, k, v, features=rows).item() == 2.0
    assert linear_attention(
        *torch.tensor([[[[[9.0, -900.0]]]], [[[[-900.0, 9.0]]]]]), v[:, :, 1:]
    ).item() == pytest.approx(3)


# Performer's estimate


def kernel_estimates(draw, x, y, m, repeats):
    """One estimate of exp(x . y) by each of many draws of m rows."""
    d = len(x)
    whole = -(-m // d) * d  # blocks are independent: those of one long draw make many short ones
    rows = draw(repeats * whole, d).view(repeats, whole, d)[:, :m]
    return (rows @ (x + y)).exp().mean(dim=1) * (-(x @ x + y @ y) / 2).exp()


def drawing(kind, seed=0):
    """Return a function that draws rows: independent, orthogonal, or orthogonal with the signs of R left out."""
    generator = torch.Generator().manual_seed(seed)

    def draw(m, d):
        if kind == "orthogonal":
            return orthogonal_features(m, d, generator=generator, dtype=torch.float64)
        normal = torch.randn(m, d, generator=generator, dtype=torch.float64)
        if kind == "independent":
            return normal
        q, _ = torch.linalg.qr(torch.randn(-(-m // d), d, d, generator=generator, dtype=torch.float64))
        return q.flatten(0, 1)[:m] * normal.norm(dim=1, keepdim=True)

    return draw


X, Y = (
    torch.tensor([0.5, 0.1, -0.3, 0.2], dtype=torch.float64),
    torch.tensor([0.4, 0.4, 0.1, -0.2], dtype=torch.float64),
)


def test_the_estimate_of_the_kernel_is_unbiased_and_without_the_signs_it_is_not():
    truth = (X @ Y).exp()
    bias = {}
    for kind in ("independent", "orthogonal", "without signs"):
        found = kernel_estimates(drawing(kind), X, Y, 6, 20_000)
        bias[kind] = ((found.mean() - truth) / (found.std() / math.sqrt(20_000))).item()
    assert abs(bias["independent"]) < 3
    assert abs(bias["orthogonal"]) < 3
    assert abs(bias["without signs"]) > 6


def test_the_spread_of_an_estimate_follows_its_law_and_orthogonal_rows_stay_below():
    m = 8
    law = math.sqrt(((X + Y).square().sum().exp().item() - 1) / m)
    spread = {
        kind: (kernel_estimates(drawing(kind), X, Y, m, 200_000).std() / (X @ Y).exp()).item()
        for kind in ("independent", "orthogonal")
    }
    assert spread["independent"] == pytest.approx(law, rel=0.02)
    assert spread["orthogonal"] < 0.97 * law


def output_errors(kind, sizes, repeats=12):
    """Root mean square over draws of the relative output error against exact attention, for each number of rows."""
    q, k, v = inputs(24, batch=1, d=8, d_v=4, scale=0.4)
    exact = softmax_attention(q, k, v)
    draw = drawing(kind)
    return [
        math.sqrt(
            sum(
                (performer_attention(q, k, v, features=draw(m, 8)) - exact).square().sum().item()
                for _ in range(repeats)
            )
            / repeats
            / exact.square().sum().item()
        )
        for m in sizes
    ]


def test_performer_converges_to_softmax_attention_like_one_over_the_root_of_its_features():
    errors = output_errors("orthogonal", (400, 3600, 32400))
    assert errors[0] / errors[1] == pytest.approx(3, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(3, rel=0.3)
    assert errors[2] < 0.007


def test_without_the_signs_of_r_more_features_do_not_help():
    """The error of the wrong form stands still where the right one halves again and again."""
    right, wrong = (output_errors(kind, (1600, 25600), 6) for kind in ("orthogonal", "without signs"))
    assert wrong[1] > 0.75 * wrong[0]
    assert right[1] < 0.35 * right[0]
    assert wrong[1] > 5 * right[1]


def test_where_norms_are_large_performer_is_worse_than_the_mean_of_the_values():
    """For standard normal queries and keys of width 64 the law asks for e^16 features; at 0.4 times that, for 13."""
    q, k, v = inputs(256, batch=1, heads=1, d=64, d_v=64)
    generator = torch.Generator().manual_seed(0)

    def errors(scale, m):
        exact = softmax_attention(scale * q, scale * k, v)
        estimate = performer_attention(scale * q, scale * k, v, n_features=m, generator=generator)
        return [((x - exact).norm() / exact.norm()).item() for x in (estimate, v.mean(dim=2, keepdim=True))]

    estimated, averaged = errors(1.0, 256)
    assert estimated > 2 * averaged
    estimated, averaged = errors(0.4, 4096)
    assert estimated < averaged / 2


# the rows of W


@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 8), (8, 8), (20, 8), (5, 1)])
def test_rows_are_orthogonal_in_blocks(m, d):
    w = orthogonal_features(m, d, dtype=torch.float64)
    assert w.shape == (m, d)
    for start in range(0, m, d):
        block = w[start : start + d]
        gram = block @ block.T
        close(gram - gram.diagonal().diag(), np.zeros(gram.shape))
    if m > d > 1:
        assert (w[0] @ w[d]).abs() > 1e-6
    assert len(set(w.norm(dim=1).tolist())) == m


def test_each_row_is_normal_with_unit_covariance():
    rows = drawing("orthogonal", 3)(4000 * 8, 4).view(4000, 8, 4)  # (draws, m, d), two blocks each
    for i in (0, 3, 4):
        close(rows[:, i].mean(dim=0), np.zeros(4), atol=0.07)
        close(rows[:, i].T @ rows[:, i] / 4000, np.eye(4), atol=0.11)
        squares = rows[:, i].square().sum(dim=1)  # chi-squared with d = 4 degrees: mean 4, variance 8
        assert squares.mean().item() == pytest.approx(4, rel=0.05)
        assert squares.var().item() == pytest.approx(8, rel=0.15)
    lengths = rows.norm(dim=2)
    assert torch.corrcoef(lengths.T)[0, 1].abs() < 0.06


def test_a_generator_fixes_the_draw_and_rows_can_be_shared():
    def fresh():
        return torch.Generator().manual_seed(4)

    w = orthogonal_features(256, 3, generator=fresh(), dtype=torch.float64)
    assert torch.equal(w, orthogonal_features(256, 3, generator=fresh(), dtype=torch.float64))
    generator = fresh()
    first = orthogonal_features(256, 3, generator=generator)
    assert not torch.equal(first, orthogonal_features(256, 3, generator=generator))
    q, k, v = inputs(6)
    drawn = performer_attention(q, k, v, generator=fresh())
    assert torch.equal(drawn, performer_attention(q, k, v, features=w))
    assert torch.equal(drawn, performer_attention(q, k, v, features=w, n_features=1))
    few = performer_attention(q, k, v, generator=fresh(), n_features=2)
    assert torch.equal(
        few, performer_attention(q, k, v, features=orthogonal_features(2, 3, generator=fresh(), dtype=torch.float64))
    )
    assert not torch.equal(performer_attention(q, k, v), performer_attention(q, k, v))


def test_rows_have_the_type_and_place_that_are_asked_for():
    assert orthogonal_features(3, 2).dtype == torch.float32
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert orthogonal_features(3, 2, dtype=dtype).dtype == dtype
    generator = torch.Generator().manual_seed(0)
    assert orthogonal_features(3, 2, device="meta", generator=generator).device.type == "meta"
    assert orthogonal_features(3, 2, device="meta").shape == (3, 2)
    with torch.device("meta"):
        assert orthogonal_features(3, 2).device.type == "meta"
    half = orthogonal_features(3, 2, generator=generator.manual_seed(1), dtype=torch.float16)
    whole = orthogonal_features(3, 2, generator=generator.manual_seed(1))
    assert torch.equal(half, whole.half())


# rank, cost, kernels


def test_weights_of_m_features_have_rank_m_and_those_of_softmax_have_more():
    """Identity matrices as values give the weights themselves."""
    q, k, _ = inputs(20, batch=1, heads=1, d=3)
    eye = torch.eye(20, dtype=torch.float64)[None, None]
    assert numerical_rank(linear_attention(q, k, eye)[0, 0].numpy(), rtol=1e-12) == 3
    assert numerical_rank(performer(q, k, eye)[0, 0].numpy(), rtol=1e-12) == 7
    assert numerical_rank(attention_weights(q, k)[0, 0].numpy(), rtol=1e-12) > 12


@both
@both_orders
def test_the_work_grows_with_the_tokens_and_not_with_their_square(method, causal):
    def flops(n):
        with FlopCounterMode(display=False) as counter:
            METHODS[method](*inputs(n), causal=causal)
        return counter.get_total_flops()

    m = 3 if method == "linear" else 7
    assert flops(8 * CHUNK) - flops(4 * CHUNK) == 2 * (flops(4 * CHUNK) - flops(2 * CHUNK)) > 0
    if not causal:
        drawn = 0 if method == "linear" else 2 * 3 * 7
        assert flops(10) == 2 * 2 * 10 * 2 * (2 * m * 2 + drawn)  # batch, heads, n, two sides, d_v = 2


def test_for_keys_of_one_norm_softmax_attention_is_a_gaussian_smoother():
    """Nadaraya-Watson with bandwidth d^(1/4); for keys of several norms it is not."""
    q, k, v = inputs(12, 5, d=6)

    def smoother(q, k, v, bandwidth):
        out = np.zeros((*q.shape[:3], v.shape[3]))
        for b, h, i in np.ndindex(q.shape[:3]):
            distances = np.linalg.norm(q[b, h, i] - k[b, h], axis=1)
            weights = np.exp(-((distances / bandwidth) ** 2) / 2)
            out[b, h, i] = weights @ v[b, h].numpy() / weights.sum()
        return out

    for norm in (0.5, 3.0):
        even = norm * k / k.norm(dim=3, keepdim=True)
        close(softmax_attention(q, even, v), smoother(q, even, v, 6**0.25))
    assert np.abs(softmax_attention(q, k, v).numpy() - smoother(q, k, v, 6**0.25)).max() > 0.05


# bad input

Q, K, V = inputs(4)
MASK = torch.ones(2, 4, dtype=torch.bool)


def refused(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


@both
@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Q, K[:1], V), {}, ValueError, "k must have shape (2, 2, n_keys, 3), got shape (1, 2, 4, 3)"),
        ((Q, K, V), {"causal": "False"}, TypeError, "causal must be True or False, got 'False'"),
        (
            (Q, K, V),
            {"token_mask": MASK[:, :3]},
            ValueError,
            "token_mask must have shape (batch, n_keys) = (2, 4), got shape (2, 3)",
        ),
        (
            (Q[:, :, :3], K, V),
            {"causal": True},
            ValueError,
            "q must hold as many tokens as k where causal is True, got shapes (2, 2, 3, 3) and (2, 2, 4, 3)",
        ),
        (
            (Q, K[:, :, :3], V[:, :, :3]),
            {"causal": True},
            ValueError,
            "q must hold as many tokens as k where causal is True, got shapes (2, 2, 4, 3) and (2, 2, 3, 3)",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(method, arguments, options, error, message):
    function = {"linear": linear_attention, "performer": performer_attention}[method]
    refused(lambda: function(*arguments, **options), error, message)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_features": 0}, ValueError, "n_features must be at least 1, got 0"),
        (
            {"generator": 3},
            TypeError,
            "generator must be a torch.Generator or None, got int: torch.Generator().manual_seed(3) makes one",
        ),
        ({"features": W[:, :2]}, ValueError, "features must have shape (n_features, 3), got shape (7, 2)"),
        ({"features": W[:0]}, ValueError, "features must hold at least one row, got shape (0, 3)"),
        (
            {"features": W.float()},
            TypeError,
            "features must be of the type of the sums, torch.float64, got torch.float32",
        ),
        (
            {"features": W, "generator": torch.Generator()},
            ValueError,
            "generator must be None where features are given, got a generator",
        ),
    ],
)
def test_what_performer_cannot_use_is_refused(options, error, message):
    refused(lambda: performer_attention(Q, K, V, **options), error, message)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((0, 3), {}, ValueError, "n_features must be at least 1, got 0"),
        ((3, 0), {}, ValueError, "d must be at least 1, got 0"),
        ((2**31, 3), {}, ValueError, "n_features must be below 2**31, got 2147483648"),
        (
            (3, 2),
            {"device": "a"},
            ValueError,
            "device must be a torch.device, a name such as \"cpu\" or None, got 'a'",
        ),
        ((3, 2), {"dtype": torch.int64}, TypeError, "dtype must be a floating-point type, got torch.int64"),
        ((3, 2), {"generator": "0"}, TypeError, "generator must be a torch.Generator or None, got str"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(arguments, options, error, message):
    refused(lambda: orthogonal_features(*arguments, **options), error, message)


def test_half_precision_takes_rows_of_float32():
    q, k, v = inputs(4, dtype=torch.bfloat16)
    assert performer_attention(q, k, v, features=W.float()).dtype == torch.bfloat16
    message = "features must be of the type of the sums, torch.float32, got torch.bfloat16"
    refused(lambda: performer_attention(q, k, v, features=W.bfloat16()), TypeError, message)


# as functions of PyTorch


@both
@both_orders
def test_it_compiles_in_one_graph(compiler, method, causal):
    q, k, v = inputs(CHUNK + 3, dtype=torch.float32)
    mask = a_mask(CHUNK + 3)
    compiled = compiler(METHODS[method], backend="aot_eager")
    close(
        compiled(q, k, v, token_mask=mask, causal=causal),
        METHODS[method](q, k, v, token_mask=mask, causal=causal),
        atol=1e-6,
    )


@both_orders
def test_compiled_gradients_match_eager(compiler, causal):
    compiled = compiler(linear_attention, backend="aot_eager")
    found = []
    for method in (compiled, linear_attention):
        leaves = [x.clone().requires_grad_() for x in KEYS_BELOW_ZERO]
        found.append(torch.autograd.grad(method(*leaves, causal=causal).square().sum(), leaves))
    for one, other in zip(*found, strict=True):
        close(one, other)


@both
@both_orders
def test_meta_tensors_have_the_right_shapes(method, causal):
    function = {"linear": linear_attention, "performer": performer_attention}[method]
    q, k, v = (x.to("meta") for x in inputs(5, d_v=7))
    out = function(q, k, v, token_mask=MASK.new_ones(2, 5).to("meta"), causal=causal)
    assert out.shape == (2, 2, 5, 7)
    refused(lambda: function(q, k, V.new_ones(2, 2, 5, 1)), ValueError, "v must be on the device of q, meta, got cpu")


def test_functions_are_pickled_and_their_arguments_have_names():
    for function in (linear_attention, performer_attention, orthogonal_features):
        assert pickle.loads(pickle.dumps(function)) is function
    fixed = {"q", "k", "v", "token_mask", "causal"}
    assert set(inspect.signature(linear_attention).parameters) == fixed
    assert set(inspect.signature(performer_attention).parameters) == fixed | {"n_features", "generator", "features"}
    assert inspect.signature(performer_attention).parameters["n_features"].default == 256


def test_gradients_of_the_causal_form_write_as_much_for_each_token_of_a_long_text():
    """The gradient of a slice is as long as what was cut: slices of the whole would write numbers like n squared."""

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
