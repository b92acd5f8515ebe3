"""Grouped queries as latents, and latents of heads, against spectra; tests/contracts judges
attention to latents.
"""

import math

import numpy as np
import pytest
import torch
from attentions import tensors
from torch.nn import functional

from lowrank_tutor.caches import latent_attention, latent_from_heads
from lowrank_tutor.svd import tail_error


def latent_parts(batch=3, n=6, dim=7, heads=2, d_c=3, d_h=4, d_v=5, d_rope=2, **options):
    """Tokens, four matrices and rotated parts of sizes that are all different."""
    shapes = ((batch, n, dim), (dim, d_c), (heads, d_c, d_h), (heads, d_c, d_v), (heads, dim, d_h))
    *parts, q_rope, k_rope = tensors(
        *shapes, (batch, heads, n, d_rope), (batch, n, d_rope), **options
    )
    return parts, {"q_rope": q_rope, "k_rope": k_rope}


def test_grouped_queries_are_latents():
    heads, groups, d, dim = 4, 2, 3, 12
    x, w_q, w_k, w_v = tensors((1, 5, dim), (heads, dim, d), (groups, dim, d), (groups, dim, d))
    down = torch.cat([*w_k, *w_v], dim=1)  # (dim, 2 groups d): what grouped-query attention stores
    blocks = torch.eye(2 * groups * d, dtype=torch.float64).split(d, dim=1)
    up_k = torch.stack([blocks[h * groups // heads] for h in range(heads)])
    up_v = torch.stack([blocks[groups + h * groups // heads] for h in range(heads)])
    q, k, v = x[:, None] @ w_q, *((x[:, None] @ w).repeat_interleave(2, dim=1) for w in (w_k, w_v))
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(
        latent_attention(x, down, up_k, up_v, w_q), exact, rtol=0, atol=1e-13
    )
    free = tensors((heads, 2 * groups * d, d))[0]
    of_all_heads = torch.cat([*(down @ free)], dim=1)
    assert torch.linalg.matrix_rank(of_all_heads) == 12 > groups * d, (
        "no two groups of keys have that rank"
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_latent_errors_are_least(weighted):
    """Keys and values count for half each, for tokens that fill few directions or all."""
    x, mix, w_k, w_v = tensors((300, 12), (12, 12), (3, 12, 4), (3, 12, 2))
    x = x @ (mix / torch.arange(1, 13)) / math.sqrt(300)
    tokens = x if weighted else torch.eye(12).double()
    sizes = [(tokens @ part).norm() for part in (w_k, w_v)]
    for k in (1, 5, 12):
        down, *ups = latent_from_heads(w_k, w_v, k, moment=tokens.T @ tokens if weighted else None)
        assert [tuple(part.shape) for part in (down, *ups)] == [(12, k), (3, k, 4), (3, k, 2)]
        parts = zip((w_k, w_v), ups, sizes, strict=True)
        errors = [float((tokens @ (w - down @ up)).norm() / size) for w, up, size in parts]
        both = [tokens @ part / size for part, size in zip((w_k, w_v), sizes, strict=True)]
        spectrum = np.linalg.svd(torch.cat([*both[0], *both[1]], dim=1), compute_uv=False)
        assert math.hypot(*errors) == pytest.approx(tail_error(spectrum, k), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("dtype", "bar"), [(torch.float64, 1.0001), (torch.float32, 1.2)])
def test_moments_of_few_samples(dtype, bar):
    """Eigenvalues that ought to be zero are rounded to negative numbers, and the large mean makes
    them larger.
    """
    x, w_k = tensors((40, 96), (2, 96, 16), dtype=torch.float32)
    x = x @ torch.diag(torch.arange(1, 97) ** -1.0) + 1
    moment = x.to(dtype).T @ x.to(dtype) / 40
    found, table = latent_from_heads(w_k, w_k[:, :, :0], 8, moment=moment), torch.cat([*w_k], dim=1)
    after = torch.cat([*(found.down @ found.up_k)], dim=1)
    assert after.dtype == torch.float32
    before = x.double() @ table.double()
    least = tail_error(np.linalg.svd(before.numpy(), compute_uv=False), 8)
    assert (x.double() @ after.double() - before).norm() < bar * least


@pytest.mark.parametrize("moment", [torch.zeros(7, 7), torch.ones(7, 7).triu(), -torch.eye(7)])
def test_bad_moments(moment):
    with pytest.raises(ValueError, match=r"^moment must be "):
        latent_from_heads(torch.ones(1, 7, 3), torch.ones(1, 7, 2), 2, moment=moment)
