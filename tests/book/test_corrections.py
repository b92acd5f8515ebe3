"""Corrections: the cells' assertions hold, and other judges agree with their functions."""

import numpy as np
import pytest
import torch
from chapters import ROOT, run

from lowrank_tutor.attention import attention_weights

PAGE = ROOT / "book" / "corrections.md"


@pytest.fixture(scope="module")
def page():
    return run(PAGE).namespace


@pytest.mark.parametrize("size", [1, 16, 50])
def test_attention_in_blocks(page, size):
    q, k, v = torch.randn(3, 50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = attention_weights(30 * q[None, None], k[None, None])[0, 0]
    assert torch.allclose(page["in_blocks"](30 * q, k, v, size=size), weights @ v)


def test_weights_of_theorems(page):
    q, keys = (
        torch.from_numpy(np.ascontiguousarray(page[name]))[None, None] for name in ("q", "keys")
    )
    assert np.allclose(attention_weights(q, keys)[0, 0].numpy(), page["P"], rtol=1e-12, atol=0)


@pytest.mark.parametrize("share", np.linspace(-0.5, 1.5, 11))
def test_one_output_for_all_queries(page, share):
    """Row 0 wants the heavy value, every other row zero: whatever one output is, it is far from one
    of the two.
    """
    weights, heavy = np.eye(5), np.zeros((5, 3))
    heavy[0] = 1
    needed = page["least_epsilon"](weights, heavy, np.tile(share * heavy[0], (5, 1)))
    assert max(needed[0], needed[1]) >= 0.5 - 1e-12
