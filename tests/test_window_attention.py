"""A short past and means of what is older: averages as in Linformer, votes, and refusals;
tests/contracts has loops.
"""

import torch
from attentions import tensors
from torch.nn import functional

from lowrank_tutor.linformer import pooling_projection
from lowrank_tutor.states import window_attention


def heads_of(n, d=4, d_v=4, **options):
    return tensors((2, 3, n, d), (2, 3, n, d), (2, 3, n, d_v), **options)


def test_groups_are_linformer_averages():
    """A query far behind all tokens sees `pooling_projection` of them, with ln m added to every
    logit alike.
    """
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
    assert (
        window_attention(q, k, v, window=4, m=8, votes=False) - exact
    ).norm() > 0.1 * exact.norm()
