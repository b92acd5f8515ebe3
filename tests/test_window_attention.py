"""A short past and means of what is older, against plain loops, exact attention and Linformer."""

import math
import re

import numpy as np
import pytest
import torch
from attentions import real_tokens, tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from lowrank_tutor.linformer import pooling_projection
from lowrank_tutor.states import window_attention


def window_by_loops(q, k, v, window, m, votes=True, gates=None, mask=None):
    """Each query by itself: groups that are over `window` tokens back, then the tokens after them."""
    q, k, v = (part.detach().double().numpy() for part in (q, k, v))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, i in np.ndindex(q.shape[:3]):
        real = [t for t in range(k.shape[2]) if mask is None or mask[b, t]]
        groups = max(0, (i + 1 - window) // m)
        seen = []
        for group in range(groups):
            inside = [t for t in range(group * m, group * m + m) if t in real]
            if inside:
                gate = np.zeros((len(inside), 1)) if gates is None else gates[b, h, inside].numpy()
                share = np.exp(gate - gate.max(0)) / np.exp(gate - gate.max(0)).sum(0)
                vote = math.log(len(inside)) if votes else 0.0
                seen.append(((share * k[b, h, inside]).sum(0), (share * v[b, h, inside]).sum(0), vote))
        seen += [(k[b, h, t], v[b, h, t], 0.0) for t in range(groups * m, i + 1) if t in real]
        if seen:
            logits = np.array([q[b, h, i] @ key / math.sqrt(k.shape[3]) + vote for key, _, vote in seen])
            weights = np.exp(logits - logits.max())
            out[b, h, i] = weights @ np.array([value for _, value, _ in seen]) / weights.sum()
    return out


def heads_of(n, d=4, d_v=4, **options):
    return tensors((2, 3, n, d), (2, 3, n, d), (2, 3, n, d_v), **options)


@settings(max_examples=30)
@given(
    st.integers(1, 20), st.integers(1, 9), st.integers(1, 7), st.booleans(), st.sampled_from([None, 1, 4]), st.data()
)
def test_windows_by_loops(n, window, m, votes, gated, data):
    q, k, v = heads_of(n, seed=n)
    gates = None if gated is None else tensors((2, 3, n, gated), seed=9)[0]
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(2, n)
    for given_mask in (None, mask):
        found = window_attention(q, k, v, window=window, m=m, votes=votes, gates=gates, token_mask=given_mask)
        expected = window_by_loops(q, k, v, window, m, votes, gates, given_mask)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [127, 128, 129, 300])
def test_blocks_join(n):
    q, k, v = heads_of(n, d_v=3)
    found = window_attention(q, k, v, window=10, m=4)
    some = [0, 9, 10, 12, 13, 14, 126, n - 2, n - 1]
    expected = window_by_loops(q[:, :1], k[:, :1], v[:, :1], 10, 4)
    np.testing.assert_allclose(found[:, :1][:, :, some], expected[:, :, some], rtol=0, atol=1e-12)


@pytest.mark.parametrize("poison", [math.nan, -math.inf, math.inf, 1e9])
def test_hidden_gates(poison):
    q, k, v = heads_of(40)
    gates, mask = tensors((2, 3, 40, 1))[0], real_tokens(2, 40)
    mask[:, 8:16] = False  # two whole groups
    dirty = gates.masked_fill(~mask[:, None, :, None], poison)
    found, wanted = (window_attention(q, k, v, window=3, m=4, gates=g, token_mask=mask) for g in (dirty, gates))
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("window", [1, 16, 500])
@pytest.mark.parametrize("votes", [True, False])
def test_groups_of_one_are_exact(window, votes):
    q, k, v = heads_of(200)
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = window_attention(q, k, v, window=window, m=1, votes=votes)
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-12)


def test_long_window_is_exact():
    q, k, v = heads_of(24)
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(window_attention(q, k, v, window=23, m=2), exact, rtol=0, atol=1e-12)
    assert (window_attention(q, k, v, window=22, m=2) - exact).abs().amax((0, 1, 3)).gt(1e-6).tolist() == [
        *[False] * 23,
        True,
    ]


@pytest.mark.parametrize("gated", [False, True])
def test_later_tokens_unseen(gated):
    q, k, v = heads_of(150)
    gates = tensors((2, 3, 150, 4))[0] if gated else None
    before = window_attention(q, k, v, window=5, m=8, gates=gates)
    for cut in (1, 60, 128, 149):
        later = [part.clone() for part in (q, k, v)]
        for part in later:
            part[:, :, cut:] = 7
        after = window_attention(*later, window=5, m=8, gates=None if gates is None else gates + 0)
        torch.testing.assert_close(after[:, :, :cut], before[:, :, :cut], rtol=0, atol=1e-13)
        assert not torch.allclose(after[:, :, cut:], before[:, :, cut:])


def test_groups_are_linformer_averages():
    """A query far behind all tokens sees `pooling_projection` of them, with ln m added to every logit alike."""
    q, k, v = heads_of(33)
    e = pooling_projection(4, 32).double()
    far = window_attention(q, k, v, window=1, m=8, votes=False)[:, :, 32]
    mixed = [torch.cat([e @ part[:, :, :32], part[:, :, 32:]], dim=2) for part in (k, v)]
    expected = functional.scaled_dot_product_attention(q[:, :, 32:], *mixed)[:, :, 0]
    torch.testing.assert_close(far, expected, rtol=0, atol=1e-13)


def test_alike_tokens_need_votes():
    q, k, v = heads_of(64)
    k, v = (part[:, :, ::8].repeat_interleave(8, dim=2) for part in (k, v))
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(window_attention(q, k, v, window=4, m=8), exact, rtol=0, atol=1e-12)
    assert (window_attention(q, k, v, window=4, m=8, votes=False) - exact).norm() > 0.1 * exact.norm()


def test_large_gates_pick_tokens():
    q, k, v = heads_of(17)
    gates = torch.full((2, 3, 17, 1), -1e4, dtype=torch.float64)
    gates[:, :, 3::8] = 1e4
    found = window_attention(q, k, v, window=1, m=8, votes=False, gates=gates)[:, :, 16]
    kept = [3, 11, 16]
    expected = functional.scaled_dot_product_attention(q[:, :, 16:], k[:, :, kept], v[:, :, kept])[:, :, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_gradients_under_mask():
    parts = [part[:, :1].clone().requires_grad_() for part in heads_of(9)]
    gates = tensors((2, 1, 9, 1), seed=4)[0].requires_grad_()
    mask = real_tokens(2, 9)

    def output(q, k, v, g):
        return window_attention(q, k, v, window=2, m=3, gates=g, token_mask=mask)

    assert torch.autograd.gradcheck(output, (*parts, gates))


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_windows_in_narrow_types(dtype, bound):
    *parts, gates = (*heads_of(40), *tensors((2, 3, 40, 1)))
    options = {"window": 4, "m": 4, "token_mask": real_tokens(2, 40)}
    exact = window_attention(*parts, gates=gates, **options)
    narrow = window_attention(*(part.to(dtype) for part in parts), gates=gates.to(dtype), **options)
    with torch.autocast("cpu", dtype, enabled=dtype == torch.bfloat16):
        inside = window_attention(*(part.float() for part in parts), gates=gates.float(), **options)
    for found in (narrow, inside):
        assert found.dtype == dtype
        assert (found.double() - exact).norm() < bound * exact.norm()


def test_windows_compile(compiler):
    q, k, v = heads_of(140, dtype=torch.float32)

    def windows(q, k, v):
        return window_attention(q, k, v, window=5, m=4)

    torch.testing.assert_close(compiler(windows, backend="eager")(q, k, v), windows(q, k, v))


Q = torch.zeros(2, 3, 6, 4, dtype=torch.float64)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"window": 0}, ValueError, "window must be at least 1, got 0"),
        ({"m": 0}, ValueError, "m must be at least 1, got 0"),
        ({"window": 10**30}, ValueError, f"window must be below 2**31, got {10**30}"),
        ({"m": 2.0}, TypeError, "m must be an integer, got 2.0"),
        ({"votes": 1}, TypeError, "votes must be True or False, got 1"),
        ({"k": Q[:, :, :5], "v": Q[:, :, :5]}, ValueError,
         "q must hold between 1 token and as many as k, got shapes (2, 3, 6, 4) and (2, 3, 5, 4)"),
        ({"q": Q[:, :, :0]}, ValueError,
         "q must hold between 1 token and as many as k, got shapes (2, 3, 0, 4) and (2, 3, 6, 4)"),
        ({"gates": Q[..., 0]}, ValueError, "gates must have shape (2, 3, 6, 1 or d), got shape (2, 3, 6)"),
        ({"gates": Q[..., :2]}, ValueError, "gates must have one number a token, or as many as keys and as values, "
         "got shapes (2, 3, 6, 2), (2, 3, 6, 4) and (2, 3, 6, 4)"),
        ({"v": Q[..., :3], "gates": Q}, ValueError, "gates must have one number a token, or as many as keys and as "
         "values, got shapes (2, 3, 6, 4), (2, 3, 6, 4) and (2, 3, 6, 3)"),
        ({"gates": Q.float()}, TypeError, "gates must be of the type of q, torch.float64, got torch.float32"),
        ({"token_mask": torch.ones(2, 5, dtype=torch.bool)}, ValueError,
         "token_mask must have shape (batch, n_keys) = (2, 6), got shape (2, 5)"),
        ({"token_mask": torch.ones(2, 6)}, TypeError,
         "token_mask must be a bool tensor (True marks a real token), got torch.float32"),
    ],
)  # fmt: skip
def test_bad_input(change, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        window_attention(**({"q": Q, "k": Q, "v": Q, "window": 2, "m": 2} | change))
