"""The rivals of the studies, against dense attention with a mask."""

import math

import torch
from torch.nn import functional

from measure.training.rivals import local, local_and_averages

N, BLOCK = 32, 4
g = torch.Generator().manual_seed(0)
Q, K, V = torch.randn(3, 2, 3, N, 5, generator=g, dtype=torch.float64)
PLACE = torch.arange(N)
BLOCKS_APART = (PLACE[:, None] // BLOCK - PLACE // BLOCK).abs()


def test_local_window_is_a_mask():
    near = {None: BLOCKS_APART <= 1, 3: (PLACE[:, None] - PLACE).abs() <= 3}
    for reach, mask in near.items():
        expected = functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
        torch.testing.assert_close(local(BLOCK, reach)(Q, K, V), expected)


def test_averages_have_votes():
    means = [x.unflatten(2, (-1, BLOCK)).mean(3) for x in (K, V)]
    keys, values = torch.cat([K, means[0]], 2), torch.cat([V, means[1]], 2)
    logits = Q @ keys.transpose(2, 3) / math.sqrt(5)
    logits[..., N:] += math.log(BLOCK)
    far = (PLACE[:, None] // BLOCK - torch.arange(N // BLOCK)).abs() > 1
    seen = torch.cat([BLOCKS_APART <= 1, far], 1)
    expected = logits.masked_fill(~seen, -math.inf).softmax(-1) @ values
    torch.testing.assert_close(local_and_averages(BLOCK)(Q, K, V), expected)


def test_equal_far_keys_give_exact_attention():
    keys = K.unflatten(2, (-1, BLOCK))[:, :, :, :1].expand(-1, -1, -1, BLOCK, -1).flatten(2, 3)
    expected = functional.scaled_dot_product_attention(Q, keys, V)
    torch.testing.assert_close(local_and_averages(BLOCK)(Q, keys, V), expected)
