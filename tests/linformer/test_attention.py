"""The function by hand, against finite differences, and a count of bytes; tests/contracts judges it
by loops.
"""

import itertools
import math

import pytest
import torch
from attentions import real_tokens, said, tensors, triple
from linformers import lengths, nearly_the_identity

from lowrank_tutor.linformer import linformer_attention, pooling_projection
from measure.memory import LiveBytes


def test_pooling_by_hand():
    """Keys 1, 3 | 5, 7 have the means 2 and 6, values 0, 8 | 2, 2 have 4 and 2; the scores differ
    by log 3.
    """
    q = torch.full((1, 1, 1, 1), math.log(3) / 4, dtype=torch.float64)
    k = torch.tensor([1.0, 3, 5, 7], dtype=torch.float64).view(1, 1, 4, 1)
    v = torch.tensor([0.0, 8, 2, 2], dtype=torch.float64).view(1, 1, 4, 1)
    e = pooling_projection(2, 4).double()
    assert linformer_attention(q, k, v, e).item() == pytest.approx((4 + 3 * 2) / 4, rel=1e-15)
    first_window = torch.tensor([[True, True, False, False]])
    assert linformer_attention(q, k, v, e, token_mask=first_window).item() == 4
    one_token = torch.tensor([[False, False, False, True]])  # half of its window: the mean of one
    assert linformer_attention(q, k, v, e, token_mask=one_token).item() == 2
    shrunk = linformer_attention(q, k, v, e, token_mask=one_token, rule="norm")
    assert shrunk.item() == pytest.approx(math.sqrt(2), rel=1e-15)


@pytest.mark.parametrize(
    "mask", [None, real_tokens(), lengths(4, 2, 5, n=6)], ids=["whole", "masked", "nearly"]
)
@pytest.mark.parametrize("given_f", [False, True])
def test_gradients_of_attention(mask, given_f):
    matrices = tensors((3, 6), (3, 6), seed=1)
    if mask is not None and mask.any(dim=1).all():  # little is left of some rows
        matrices = [nearly_the_identity(0.03), nearly_the_identity(-0.05)]
    inputs = [
        x.requires_grad_() for x in (*triple(n_queries=2, d=2, d_v=2), *matrices[: 1 + given_f])
    ]
    assert torch.autograd.gradcheck(lambda *x: linformer_attention(*x, token_mask=mask), inputs)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(2048, 64, 256), (16384, 16, 256)])
def test_peak_memory(n, d, k, masked):
    heads = 4
    q, keys, v = torch.zeros(3, 1, heads, n, d)
    mask = lengths(n // 2, n=n) if masked else None
    for count, learned in itertools.product((1, 2), (False, True)):
        matrices = [torch.ones(k, n, requires_grad=learned) for _ in range(count)]
        with torch.no_grad(), LiveBytes() as made:
            linformer_attention(q, keys, v, *matrices, token_mask=mask)
        numbers = 3 * q.numel() + count * k * n
        between = (
            2 * heads * k * d + 3 * masked * k * n
        )  # mixtures, and the powers of a matrix's entries
        assert 4 * numbers + made.peak <= 1.2 * 4 * (numbers + q.numel() + between)


Q, K, V = triple()
E, F = tensors((4, 6), (4, 6), seed=1)


@pytest.mark.parametrize("rows", [0, 7])
def test_bad_number_of_rows(rows):
    message = f"ValueError: e must have between 1 and n_keys = 6 rows, got {rows}"
    assert said(lambda: linformer_attention(Q, K, V, torch.cat([E, F])[:rows])) == message
