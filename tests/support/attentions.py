"""Shared by tests of attention: tensors of different sizes, masks, and plain loops as a judge."""

import math

import numpy as np
import pytest
import torch

torch.set_num_threads(1)  # for tensors this small, threads cost more than they save


def tensors(*shapes, seed=0, dtype=torch.float64):
    """Normal numbers, one tensor for each shape."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator, dtype=dtype) for shape in shapes]


def triple(batch=3, heads=2, n_queries=4, n_keys=6, d=5, d_v=3, **options):
    """Queries, keys and values of sizes that are all different."""
    return tensors(
        (batch, heads, n_queries, d),
        (batch, heads, n_keys, d),
        (batch, heads, n_keys, d_v),
        **options,
    )


def real_tokens(batch=3, n=6):
    """A mask: the first sequence is whole, the second has holes, the last is hidden altogether."""
    mask = torch.ones(batch, n, dtype=torch.bool)
    mask[1, [0, n - 1]] = False
    mask[batch - 1] = False
    return mask


def weights_by_loops(q, k, mask=None):
    """Each weight by itself, in Python's floats."""
    weights = np.zeros((*q.shape[:3], k.shape[2]))
    d, q, k = q.shape[3], q.detach().double().tolist(), k.detach().double().tolist()
    for b, h, i in np.ndindex(weights.shape[:3]):
        real = [j for j in range(weights.shape[3]) if mask is None or mask[b, j]]
        scores = {
            j: math.fsum(x * y for x, y in zip(q[b][h][i], k[b][h][j], strict=True)) / d**0.5
            for j in real
        }
        for j in real:
            weights[b, h, i, j] = 1 / math.fsum(
                math.exp(scores[other] - scores[j]) for other in real
            )
    return weights


def by_loops(q, k, v, mask=None):
    """The values, averaged with these weights; what a mask hides is left out."""
    weights, v = weights_by_loops(q, k, mask), v.detach().double().numpy()
    out = np.zeros((*weights.shape[:3], v.shape[3]))
    for b, h, i, j in np.ndindex(weights.shape):
        if mask is None or mask[b, j]:
            out[b, h, i] += weights[b, h, i, j] * v[b, h, j]
    return out


def said(call):
    """The refusal of a call, as Python prints it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return f"{caught.type.__name__}: {caught.value}"
