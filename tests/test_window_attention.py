"""A short past and means of what is older, against plain loops, exact attention and Linformer."""

import math
import re

import pytest
import torch
from attentions import real_tokens, tensors
from torch.nn import functional

from lowrank_tutor.linformer import pooling_projection
from lowrank_tutor.states import window_attention


def heads_of(n, d=4, d_v=4, **options):
    return tensors((2, 3, n, d), (2, 3, n, d), (2, 3, n, d_v), **options)


@pytest.mark.parametrize("poison", [math.nan, -math.inf, math.inf, 1e9])
def test_hidden_gates(poison):
    q, k, v = heads_of(40)
    gates, mask = tensors((2, 3, 40, 1))[0], real_tokens(2, 40)
    mask[:, 8:16] = False  # two whole groups
    dirty = gates.masked_fill(~mask[:, None, :, None], poison)
    found, wanted = (window_attention(q, k, v, window=3, m=4, gates=g, token_mask=mask) for g in (dirty, gates))
    assert torch.equal(found, wanted)


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
