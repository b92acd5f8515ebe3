"""Grouped queries as latents, and latents of heads, against spectra; tests/contracts judges attention to latents."""

import math

import numpy as np
import pytest
import torch
from attentions import said, tensors
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


def converted_layer():
    """A layer of 3 heads, tokens that fill few directions, its queries' second moment (one head has but 2), its W_O."""
    x, mix, w_q, w_k, w_v, w_o = tensors(
        (300, 12), (12, 12), (3, 12, 4), (3, 12, 4), (3, 12, 2), (3, 2, 9)
    )
    x = x @ (mix / torch.arange(1, 13))
    w_q[1, :, 2:] = 0
    q = x @ w_q
    return w_k, w_v, {"moment": x.T @ x / 300, "query_moment": q.mT @ q / 300, "output": w_o}


def harm(layer, found, known):
    """Errors of scores and of outputs, relative, by NumPy: roots of moments, and tables written out."""
    w_k, w_v, _ = layer
    roots = [np.eye(12), np.tile(np.eye(4), (3, 1, 1)), np.tile(np.eye(2), (3, 1, 1))]
    for i, name in enumerate(("moment", "query_moment")):
        if name in known:
            values, axes = np.linalg.eigh(known[name].numpy())
            roots[i] = axes * np.sqrt(values.clip(0))[..., None, :] @ axes.swapaxes(-1, -2)
    if "output" in known:
        roots[2] = known["output"].numpy()

    def columns(keys, values):
        parts = (
            roots[0] @ part.numpy() @ root for part, root in ((keys, roots[1]), (values, roots[2]))
        )
        return [np.concatenate(part, axis=1) for part in parts]

    whole, missed = (
        columns(w_k, w_v),
        columns(w_k - found.down @ found.up_k, w_v - found.down @ found.up_v),
    )
    errors = [
        np.linalg.norm(part) / np.linalg.norm(of) for part, of in zip(missed, whole, strict=True)
    ]
    both = np.concatenate([of / np.linalg.norm(of) for of in whole], axis=1)
    return errors, np.linalg.svd(both, compute_uv=False)


KNOWN = [
    (),
    ("moment",),
    ("query_moment",),
    ("moment", "query_moment"),
    ("moment", "query_moment", "output"),
]


@pytest.mark.parametrize("names", KNOWN, ids=" ".join)
def test_latent_errors_are_least(names):
    layer = converted_layer()
    known = {name: layer[2][name] for name in names}
    for k in (1, 5, 12):
        found = latent_from_heads(*layer[:2], k, **known)
        assert (found.down.shape, found.up_k.shape, found.up_v.shape) == (
            (12, k),
            (3, k, 4),
            (3, k, 2),
        )
        errors, spectrum = harm(layer, found, known)
        assert math.hypot(*errors) == pytest.approx(tail_error(spectrum, k), rel=1e-6, abs=1e-6)
    torch.testing.assert_close(
        found.down @ found.up_k, layer[0], rtol=0, atol=1e-6
    )  # also where no query looks


@pytest.mark.parametrize(("dtype", "bar"), [(torch.float64, 1.0001), (torch.float32, 1.2)])
def test_moments_of_few_samples(dtype, bar):
    """Eigenvalues that ought to be zero are rounded to negative numbers, and the large mean makes them larger."""
    x, w_k = tensors((40, 96), (2, 96, 16), dtype=torch.float32)
    x = x @ torch.diag(torch.arange(1, 97) ** -1.0) + 1
    moment = x.to(dtype).T @ x.to(dtype) / 40
    found, table = latent_from_heads(w_k, w_k[:, :, :0], 8, moment=moment), torch.cat([*w_k], dim=1)
    after = torch.cat([*(found.down @ found.up_k)], dim=1)
    before = x.double() @ table.double()
    least = tail_error(np.linalg.svd(before.numpy(), compute_uv=False), 8)
    assert (x.double() @ after.double() - before).norm() < bar * least


CONVERTED = {"w_k": torch.zeros(1, 7, 3), "w_v": torch.zeros(1, 7, 2), "k": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w_v": torch.zeros(1, 8, 2)}, "w_v must have shape (1, 7, d_v), got shape (1, 8, 2)"),
        ({"moment": torch.zeros(7, 7)}, "moment must be non-zero, got zeros"),
        (
            {"moment": torch.ones(7, 7).triu()},
            "moment must be symmetric, got a difference of 1 across the diagonal",
        ),
        (
            {"query_moment": -torch.eye(3)[None]},
            "query_moment must be positive semidefinite, got the eigenvalue -1",
        ),
        (
            {"output": torch.zeros(1, 3, 9)},
            "output must have shape (1, 2, dim_out), got shape (1, 3, 9)",
        ),
        ({"output": torch.zeros(1, 2, 9)}, "output must be non-zero, got zeros"),
    ],
)
def test_bad_conversions(change, message):
    assert said(lambda: latent_from_heads(**(CONVERTED | change))) == f"ValueError: {message}"


@pytest.mark.parametrize(
    ("name", "shape", "right"),
    [
        ("w_dkv", (6, 3), "(7, d_c)"), ("w_uk", (2, 4, 4), "(groups, 3, d_h)"), ("w_uv", (1, 3, 5), "(2, 3, d_v)"),
        ("w_q", (2, 7, 5), "(heads, 7, 4)"), ("q_rope", (3, 2, 5, 2), "(3, 2, 6, d_rope)"),
        ("k_rope", (3, 6, 3), "(3, 6, 2)"),
    ],
)  # fmt: skip
def test_bad_latents(name, shape, right):
    parts, rope = latent_parts()
    given = dict(zip(("x", "w_dkv", "w_uk", "w_uv", "w_q"), parts, strict=True)) | rope
    wrong = given | {name: torch.zeros(shape).double()}
    assert (
        said(lambda: latent_attention(**wrong))
        == f"ValueError: {name} must have shape {right}, got shape {shape}"
    )
    for one, other in (("q_rope", "k_rope"), ("k_rope", "q_rope")):
        message = f"ValueError: {one} must be given with {other}, got None"
        assert said(lambda one=one: latent_attention(**(given | {one: None}))) == message
