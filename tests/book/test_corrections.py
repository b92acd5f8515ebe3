"""Corrections: the cells' assertions hold, and other judges agree with what their functions return."""

import math

import numpy as np
import pytest
import torch
from chapters import CELL_LINES, ROOT, code_cells, run

from lowrank_tutor.attention import attention_weights

PAGE = ROOT / "book" / "corrections.md"


@pytest.fixture(scope="module")
def page():
    return run(PAGE).namespace


def test_cells_are_short():
    for cell in code_cells(PAGE):
        assert len([line for line in cell.source.splitlines() if line.strip()]) <= CELL_LINES, cell.source


def test_cosines_of_example(page):
    """At best, for any unknown products, the least eigenvalue is 1 - sqrt 2, taken at a = b = 0."""
    best = max(page["lowest"](a, b) for a in np.linspace(-1, 1, 41) for b in np.linspace(-1, 1, 41))
    assert best == pytest.approx(1 - math.sqrt(2))


def test_tied_factors_are_best(page):
    rng = np.random.default_rng(3)
    table, x = rng.standard_normal((40, 40)), rng.standard_normal((40, 6))
    best, u, v = page["tied"](table, x)
    for _ in range(50):
        left, right = (x @ (w + 0.05 * rng.standard_normal(w.shape)).T for w in (u, v))
        assert np.linalg.norm(table - left @ right.T) > np.linalg.norm(table - best)


@pytest.mark.parametrize("c", [4, 16])
def test_chances_of_all_pairs(page, c):
    """N^(2 - gamma c): it grows below gamma c = 2 and falls above."""
    gamma = (0.5 - math.log(1.5)) / 2 / 0.5**2
    slope = math.log(page["chances"](c, 10**8)[1] / page["chances"](c, 10**4)[1]) / math.log(10**4)
    assert slope == pytest.approx(2 - gamma * c, abs=0.05)


@pytest.mark.parametrize("size", [1, 16, 50])
def test_attention_in_blocks(page, size):
    q, k, v = torch.randn(3, 50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = attention_weights(30 * q[None, None], k[None, None])[0, 0]
    assert torch.allclose(page["in_blocks"](30 * q, k, v, size=size), weights @ v)


def test_weights_of_theorems(page):
    q, keys = (torch.from_numpy(np.ascontiguousarray(page[name]))[None, None] for name in ("q", "keys"))
    assert np.allclose(attention_weights(q, keys)[0, 0].numpy(), page["P"], rtol=1e-12, atol=0)


@pytest.mark.parametrize("share", np.linspace(-0.5, 1.5, 11))
def test_one_output_for_all_queries(page, share):
    """Row 0 wants the heavy value, every other row zero: whatever one output is, it is far from one of the two."""
    weights, heavy = np.eye(5), np.zeros((5, 3))
    heavy[0] = 1
    needed = page["least_epsilon"](weights, heavy, np.tile(share * heavy[0], (5, 1)))
    assert max(needed[0], needed[1]) >= 0.5 - 1e-12
