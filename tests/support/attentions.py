"""Shared by tests of attention: tensors of different sizes, masks, and what a refusal says."""

import pytest
import torch
from torch import nn

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


def linear_of(m, n, bias=True, dtype=torch.float64):
    """A linear layer of drawn numbers."""
    linear = nn.Linear(n, m, bias=bias, dtype=dtype)
    with torch.no_grad():
        for part, number in zip(linear.parameters(), tensors((m, n), (m,)), strict=False):
            part.copy_(number)
    return linear


def moved(model):
    """A model, or an adapted layer, after a step of what learns there."""
    with torch.no_grad():
        for seed, part in enumerate(part for part in model.parameters() if part.requires_grad):
            part += 0.5 * tensors(tuple(part.shape), seed=seed)[0].to(part.dtype)
    return model


def said(call):
    """The refusal of a call, as Python prints it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return f"{caught.type.__name__}: {caught.value}"
