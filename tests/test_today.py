"""Caches, latents, updates and windows against plain loops, each other's limits, and counts from published configs."""

import math
import re

import numpy as np
import pytest
import torch
from attentions import by_loops, real_tokens, tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.linformer import pooling_projection
from lowrank_tutor.svd import tail_error
from lowrank_tutor.today import (
    Latent,
    LatentCost,
    LoraLinear,
    kv_cache_numbers,
    latent_attention,
    latent_cost,
    latent_from_heads,
    window_attention,
)

# ------------------------------------------------------------------------------------------- what a model stores

PUBLISHED = [
    ({"layers": 32, "heads": 32, "width": 128}, 262_144),  # Llama-2-7B
    ({"layers": 80, "groups": 8, "width": 128}, 163_840),  # Llama-2-70B
    ({"layers": 95, "groups": 8, "width": 128}, 194_560),  # DeepSeek-67B
    ({"layers": 60, "latent": 512, "rotary": 64}, 34_560),  # DeepSeek-V2: its Table 9 gives 34.6K
    ({"layers": 61, "latent": 512, "rotary": 64}, 35_136),  # DeepSeek-V3
    ({"layers": 36, "latent": 256, "rotary": 64}, 11_520),
    ({"layers": 1, "latent": 1}, 1),
    ({"layers": 1, "heads": 1, "width": 1}, 2),
]


@pytest.mark.parametrize(("config", "numbers"), PUBLISHED)
def test_the_cache_is_that_of_published_configurations(config, numbers):
    assert kv_cache_numbers(**config) == numbers


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "heads, groups or latent must be given, one of the three, got none"),
        ({"heads": 2, "latent": 3}, "heads, groups or latent must be given, one of the three, got heads, latent"),
        ({"latent": 3, "width": 4}, "width must be None with a latent, which stands for keys and values, got 4"),
        ({"groups": 2, "width": 4, "rotary": 1},
         "rotary must be 0 without a latent: the keys themselves are rotated, got 1"),
        ({"heads": 0, "width": 4}, "heads must be at least 1, got 0"),
        ({"heads": 1, "width": 0}, "width must be at least 1, got 0"),
        ({"latent": 1, "rotary": -1}, "rotary must be at least 0, got -1"),
        ({"layers": 0, "latent": 1}, "layers must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_a_cache_that_cannot_be_meant_is_refused(config, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        kv_cache_numbers(**({"layers": 1} | config))


def test_a_width_is_needed_with_heads_and_numbers_are_whole():
    with pytest.raises(TypeError, match=r"^width must be an integer, got None$"):
        kv_cache_numbers(1, heads=2)
    with pytest.raises(TypeError, match=r"^latent must be an integer, got 2\.0$"):
        kv_cache_numbers(1, latent=2.0)


# ------------------------------------------------------------------------------------------------ keep a latent


def latent_parts(batch=3, n=6, dim=7, heads=2, d_c=3, d_h=4, d_v=5, d_rope=2, **options):
    """Tokens, four matrices and rotated parts of sizes that are all different."""
    shapes = ((batch, n, dim), (dim, d_c), (heads, d_c, d_h), (heads, d_c, d_v), (heads, dim, d_h))
    *parts, q_rope, k_rope = tensors(*shapes, (batch, heads, n, d_rope), (batch, n, d_rope), **options)
    return parts, {"q_rope": q_rope, "k_rope": k_rope}


def latent_by_loops(x, w_dkv, w_uk, w_uv, w_q, q_rope=None, k_rope=None, mask=None, causal=True):
    """Keys and values written out, a sequence, a head and a query at a time; attention by loops does the rest."""
    batch, n, _ = x.shape
    out = np.zeros((batch, w_uk.shape[0], n, w_uv.shape[2]))
    for b, h in np.ndindex(out.shape[:2]):
        latents = x[b] @ w_dkv
        q, k, v = x[b] @ w_q[h], latents @ w_uk[h], latents @ w_uv[h]
        if q_rope is not None:
            q, k = torch.cat([q, q_rope[b, h]], dim=1), torch.cat([k, k_rope[b]], dim=1)
        for i in range(n):
            seen = torch.arange(n) <= (i if causal else n)
            if mask is not None:
                seen = seen & mask[b]
                if not mask[b, i]:
                    continue
            out[b, h, i] = by_loops(q[None, None, i : i + 1], k[None, None], v[None, None], seen[None])[0, 0, 0]
    return out


@pytest.mark.parametrize("absorb", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("rotated", [True, False])
@pytest.mark.parametrize("mask", [None, real_tokens()], ids=["whole", "masked"])
def test_latent_attention_is_that_of_the_keys_and_values_written_out(absorb, causal, rotated, mask):
    parts, rope = latent_parts()
    rope = rope if rotated else {}
    out = latent_attention(*parts, **rope, token_mask=mask, causal=causal, absorb=absorb)
    assert out.shape == (3, 2, 6, 5)
    np.testing.assert_allclose(out, latent_by_loops(*parts, **rope, mask=mask, causal=causal), rtol=0, atol=1e-13)


def test_absorbed_equals_naive_to_twelve_digits_at_the_widths_of_a_model():
    parts, rope = latent_parts(1, 48, 64, 8, 16, 24, 24, 8)
    short, long = (latent_attention(*parts, **rope, absorb=absorb) for absorb in (True, False))
    assert (short - long).abs().max() < 1e-12 * long.abs().max()


def test_hidden_tokens_may_hold_anything_and_the_scale_counts_what_is_rotated():
    parts, rope = latent_parts()
    mask = real_tokens()
    before = latent_attention(*parts, **rope, token_mask=mask)
    parts[0] = parts[0].masked_fill(~mask[:, :, None], math.nan)
    rope["k_rope"] = rope["k_rope"].masked_fill(~mask[:, :, None], math.nan)
    assert torch.equal(latent_attention(*parts, **rope, token_mask=mask), before)
    still = {name: torch.zeros_like(part) for name, part in rope.items()}
    narrow = latent_attention(*parts[:4], parts[4] * math.sqrt(4 / 6), token_mask=mask)
    torch.testing.assert_close(latent_attention(*parts, **still, token_mask=mask), narrow)


def test_grouped_queries_are_a_latent_of_the_same_size_but_not_the_other_way_round():
    heads, groups, d, dim = 4, 2, 3, 12
    x, w_q, w_k, w_v = tensors((1, 5, dim), (heads, dim, d), (groups, dim, d), (groups, dim, d))
    down = torch.cat([*w_k, *w_v], dim=1)  # (dim, 2 groups d): what grouped-query attention stores
    blocks = torch.eye(2 * groups * d, dtype=torch.float64).split(d, dim=1)
    up_k = torch.stack([blocks[h * groups // heads] for h in range(heads)])
    up_v = torch.stack([blocks[groups + h * groups // heads] for h in range(heads)])
    q, k, v = x[:, None] @ w_q, *((x[:, None] @ w).repeat_interleave(2, dim=1) for w in (w_k, w_v))
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(latent_attention(x, down, up_k, up_v, w_q), exact, rtol=0, atol=1e-13)
    free = tensors((heads, 2 * groups * d, d))[0]
    of_all_heads = torch.cat([*(down @ free)], dim=1)
    assert torch.linalg.matrix_rank(of_all_heads) == 12 > groups * d, "no two groups of keys have that rank"


@pytest.mark.parametrize(("absorb", "per_token"), [(True, 139_264), (False, 16_818_176)])
def test_the_count_is_that_of_the_products(absorb, per_token):
    one, two = (latent_cost(n, 128, 128, 512, 64, absorb=absorb) for n in (1, 2))
    assert two.multiplications - one.multiplications == per_token
    assert (one.read, two.read) == (576, 1152)
    n, heads, d_h, d_c, d_rope = 5, 2, 4, 3, 2
    q, latents = torch.zeros(1, heads, 1, d_h), torch.zeros(1, n, d_c)
    up = torch.zeros(heads, d_c, d_h)
    counter = FlopCounterMode(display=False)
    with counter:
        if absorb:
            rows = torch.cat([q @ up.mT, torch.zeros(1, heads, 1, d_rope)], dim=3)
            stored = torch.cat([latents, torch.zeros(1, n, d_rope)], dim=2)
            ((rows @ stored[:, None].mT) @ latents[:, None]) @ up
        else:
            keys = torch.cat([latents[:, None] @ up, torch.zeros(1, heads, n, d_rope)], dim=3)
            (torch.cat([q, torch.zeros(1, heads, 1, d_rope)], dim=3) @ keys.mT) @ (latents[:, None] @ up)
    found = latent_cost(n, heads, d_h, d_c, d_rope, absorb=absorb)
    assert found == LatentCost(counter.get_total_flops() // 2, n * (d_c + d_rope))


def test_joint_and_whitened_cuts_reach_what_the_spectra_say():
    x, w_k, w_v, mix = tensors((500, 12), (3, 12, 4), (3, 12, 2), (12, 12))
    x = x @ (mix / torch.arange(1, 13))
    table = torch.cat([*w_k, *w_v], dim=1)
    for k in (1, 5, 12):
        plain, white = latent_from_heads(w_k, w_v, k), latent_from_heads(w_k, w_v, k, moment=x.T @ x / 500)
        assert (plain.down.shape, plain.up_k.shape, plain.up_v.shape) == ((12, k), (3, k, 4), (3, k, 2))
        for found, before in ((plain, table), (white, x @ table)):
            after = torch.cat([*(found.down @ found.up_k), *(found.down @ found.up_v)], dim=1)
            missed = torch.linalg.norm((after if found is plain else x @ after) - before)
            least = tail_error(np.linalg.svd(before.numpy(), compute_uv=False), k)
            assert float(missed) == pytest.approx(least, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("dtype", "bar"), [(torch.float64, 1.0001), (torch.float32, 1.2)])
def test_a_moment_of_few_samples_is_taken_in_single_precision_too(dtype, bar):
    """Eigenvalues that ought to be zero are rounded to negative numbers, and the large mean makes them larger."""
    x, w_k, w_v = tensors((40, 96), (2, 96, 8), (2, 96, 8), dtype=torch.float32)
    x = x @ torch.diag(torch.arange(1, 97) ** -1.0) + 1
    moment = x.to(dtype).T @ x.to(dtype) / 40
    found, table = latent_from_heads(w_k, w_v, 8, moment=moment), torch.cat([*w_k, *w_v], dim=1)
    after = torch.cat([*(found.down @ found.up_k), *(found.down @ found.up_v)], dim=1)
    before = x.double() @ table.double()
    least = tail_error(np.linalg.svd(before.numpy(), compute_uv=False), 8)
    assert (x.double() @ after.double() - before).norm() < bar * least


def test_a_full_latent_is_the_attention_it_came_from_also_in_single_precision():
    x, w_q, w_k, w_v = tensors((2, 6, 8), *[(4, 8, 3)] * 3, dtype=torch.float32)
    found = latent_from_heads(w_k, w_v, 8)
    assert isinstance(found, Latent)
    assert found.down.dtype == torch.float32
    q, k, v = (x[:, None] @ w for w in (w_q, w_k, w_v))
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(latent_attention(x, *found, w_q), exact, rtol=1e-4, atol=1e-5)


def test_a_latent_is_made_of_weights_that_learn_but_does_not_learn_with_them():
    w_k, w_v, moment = (part.requires_grad_() for part in tensors((2, 6, 3), (2, 6, 3), (6, 6)))
    found = latent_from_heads(w_k, w_v, 6, moment=moment @ moment.mT)
    assert not any(part.requires_grad for part in found)
    torch.testing.assert_close(found.down @ found.up_v, w_v.detach())
    with pytest.raises(TypeError, match=r"^w_v must be of the type of w_k, torch\.float64, got torch\.float32$"):
        latent_from_heads(w_k, w_v.float(), 2)
    with pytest.raises(ValueError, match=r"^w_k must have shape \(heads, dim, d_h\), got shape \(6, 3\)$"):
        latent_from_heads(w_k[0], w_v, 2)


LATENT_ERRORS = [
    ({"x": (3, 6)}, ValueError, "x must have shape (batch, n, dim), got shape (3, 6)"),
    ({"x": (3, 0, 7)}, ValueError, "x must hold at least one token of at least one number, got shape (3, 0, 7)"),
    ({"w_dkv": (6, 3)}, ValueError, "w_dkv must have shape (7, d_c), got shape (6, 3)"),
    ({"w_uk": (2, 4, 4)}, ValueError, "w_uk must have shape (heads, 3, d_h), got shape (2, 4, 4)"),
    ({"w_uv": (1, 3, 5)}, ValueError, "w_uv must have shape (2, 3, d_v), got shape (1, 3, 5)"),
    ({"w_q": (2, 7, 5)}, ValueError, "w_q must have shape (2, 7, 4), got shape (2, 7, 5)"),
    ({"q_rope": None}, ValueError, "q_rope must be given with k_rope, got None"),
    ({"k_rope": None}, ValueError, "k_rope must be given with q_rope, got None"),
    ({"q_rope": (3, 2, 5, 2)}, ValueError, "q_rope must have shape (3, 2, 6, d_rope), got shape (3, 2, 5, 2)"),
    ({"k_rope": (3, 6, 3)}, ValueError, "k_rope must have shape (3, 6, 2), got shape (3, 6, 3)"),
    ({"w_q": torch.zeros(2, 7, 4)}, TypeError, "w_q must be of the type of x, torch.float64, got torch.float32"),
    ({"x": torch.zeros(3, 6, 7, dtype=torch.int64)}, TypeError, "x must be of a floating-point type, got torch.int64"),
    ({"causal": 1}, TypeError, "causal must be True or False, got 1"),
    ({"absorb": None}, TypeError, "absorb must be True or False, got None"),
    ({"token_mask": torch.ones(3, 5, dtype=torch.bool)}, ValueError,
     "token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 5)"),
    ({"token_mask": torch.ones(3, 6)}, TypeError,
     "token_mask must be a bool tensor (True marks a real token), got torch.float32"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "message"), LATENT_ERRORS)
def test_what_does_not_fit_a_latent_is_refused(change, kind, message):
    parts, rope = latent_parts()
    given = dict(zip(("x", "w_dkv", "w_uk", "w_uv", "w_q"), parts, strict=True)) | rope
    change = {
        name: torch.zeros(value, dtype=torch.float64) if isinstance(value, tuple) else value
        for name, value in change.items()
    }
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        latent_attention(**(given | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be between 1 and min(dim, heads * (d_h + d_v)) = 5, got 0"),
        ({"k": 6}, "k must be between 1 and min(dim, heads * (d_h + d_v)) = 5, got 6"),
        ({"w_v": torch.zeros(1, 8, 2)}, "w_v must have shape (1, 7, d_v), got shape (1, 8, 2)"),
        ({"moment": torch.eye(6)}, "moment must have shape (7, 7), got shape (6, 6)"),
    ],
)
def test_a_latent_wider_than_its_heads_is_refused(change, message):
    given = {"w_k": torch.zeros(1, 7, 3), "w_v": torch.zeros(1, 7, 2), "k": 2} | change
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        latent_from_heads(**given)


@pytest.mark.parametrize("name", ["n", "heads", "d_h", "d_c", "d_rope"])
def test_a_count_below_its_least_is_refused(name):
    sizes = {"n": 1, "heads": 1, "d_h": 1, "d_c": 1, "d_rope": 0}
    least = latent_cost(**sizes, absorb=True)
    assert least == LatentCost(4, 1)
    with pytest.raises(ValueError, match=f"^{name} must be at least {sizes[name]}, got {sizes[name] - 1}$"):
        latent_cost(**(sizes | {name: sizes[name] - 1}), absorb=True)


# ------------------------------------------------------------------------------------ an update of low rank

LORAS = pytest.mark.parametrize(
    "options",
    [
        {}, {"scaling": "alpha/sqrt(r)"}, {"init": "principal"}, {"magnitude": True},
        {"init": "principal", "magnitude": True},
    ],
    ids=str,
)  # fmt: skip


def lora_of(m=5, n=7, r=2, bias=True, dtype=torch.float64, trained=True, **options):
    """An adapted layer whose factors have moved."""
    linear = nn.Linear(n, m, bias=bias, dtype=dtype)
    with torch.no_grad():
        for part, number in zip(linear.parameters(), tensors((m, n), (m,)), strict=False):
            part.copy_(number)
    layer = LoraLinear(linear, r, generator=torch.Generator().manual_seed(0), **options)
    if trained:
        with torch.no_grad():
            for seed, part in enumerate(part for part in layer.parameters() if part.requires_grad):
                part += tensors(tuple(part.shape), seed=seed + 1)[0].to(dtype)
    return layer


@LORAS
@pytest.mark.parametrize("bias", [True, False])
def test_the_output_follows_the_formula_and_merging_changes_nothing(options, bias):
    layer, (x,) = lora_of(alpha=3, bias=bias, **options), tensors((4, 6, 7), seed=9)
    factor = 3 / (math.sqrt(2) if options.get("scaling") else 2)
    w, b, a = (part.detach().numpy() for part in (layer.linear.weight, layer.b, layer.a))
    v = w + factor * b @ a
    if options.get("init") == "principal":
        u, s, vt = np.linalg.svd(w)
        v = v - (u[:, :2] * s[:2]) @ vt[:2]
    if options.get("magnitude"):
        v = layer.g.detach().numpy()[:, None] * v / np.linalg.norm(v, axis=1, keepdims=True)
    expected = x.numpy() @ v.T + (layer.linear.bias.numpy() if bias else 0)
    np.testing.assert_allclose(layer(x).detach(), expected, atol=1e-12)
    np.testing.assert_allclose(layer.update().detach(), v - w, atol=1e-12)
    merged = layer.merged()
    assert type(merged) is nn.Linear
    assert (merged.bias is not None) == bias
    torch.testing.assert_close(merged(x), layer(x), rtol=0, atol=1e-12)


@LORAS
def test_the_start_changes_nothing_and_the_base_comes_back_bit_by_bit(options):
    linear = nn.Linear(7, 5)
    weight, (x,) = linear.weight.detach().clone(), tensors((4, 7), dtype=torch.float32)
    linear.bias.requires_grad_(False)
    before = linear(x).detach()
    layer = LoraLinear(linear, 2, **options)
    torch.testing.assert_close(layer(x), before, rtol=1e-5, atol=1e-5)
    optimizer = torch.optim.Adam([part for part in layer.parameters() if part.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(x).square().sum().backward()
        optimizer.step()
    assert not torch.allclose(layer(x), before, atol=1e-2)
    back = layer.reset_base()
    assert back is linear
    assert torch.equal(back.weight, weight)
    assert [part.requires_grad for part in back.parameters()] == [True, False]


def test_only_the_update_learns_and_it_has_r_m_plus_n_numbers():
    for options, more in (({}, 0), ({"magnitude": True}, 5), ({"init": "principal"}, 0)):
        layer = lora_of(**options)
        assert sum(part.numel() for part in layer.parameters() if part.requires_grad) == 2 * (5 + 7) + more
    layer = lora_of()
    layer(tensors((3, 7))[0]).sum().backward()
    assert layer.linear.weight.grad is None
    assert layer.a.grad.abs().sum() > 0


def test_null_space_of_a_is_mapped_as_before_and_the_update_has_rank_r():
    layer = lora_of(r=3, n=9)
    null = torch.linalg.svd(layer.a.detach()).Vh[3:]
    assert len(null) == 6
    torch.testing.assert_close(layer(null), layer.linear(null), rtol=0, atol=1e-12)
    assert torch.linalg.matrix_rank(layer.update()) == 3


def test_a_starts_uniform_with_variance_one_third_of_one_over_n():
    layer = LoraLinear(nn.Linear(400, 3), 3, generator=torch.Generator().manual_seed(0))
    assert layer.a.abs().max() <= 1 / 20
    assert layer.a.abs().max() > 0.99 / 20
    assert float(layer.a.detach().var()) == pytest.approx(1 / 1200, rel=0.1)
    assert not layer.b.any()
    again = LoraLinear(nn.Linear(400, 3), 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(layer.a, again.a)


def test_one_step_of_descent_does_not_depend_on_r_with_the_root_and_does_without():
    """The theorem of the chapter: from B = 0, the first step is - eta s^2 G A^T A, and A^T A has the mean (r/3n) I."""
    (x,) = tensors((64,), seed=3)

    def response(r, scaling, draws=20):
        moved = torch.zeros(512, dtype=torch.float64)
        for seed in range(draws):
            layer = LoraLinear(nn.Linear(64, 512, bias=False, dtype=torch.float64), r, alpha=8, scaling=scaling,
                               generator=torch.Generator().manual_seed(seed))  # fmt: skip
            before = layer(x).detach()
            layer(x).sum().backward()
            with torch.no_grad():
                layer.b -= layer.b.grad
                moved += (layer(x) - before) / draws
        return float(moved.norm())

    with_root, without = ([response(r, scaling) for r in (4, 64)] for scaling in ("alpha/sqrt(r)", "alpha/r"))
    expected = 64 / (3 * 64) * float(x @ x) * math.sqrt(512)  # s^2 (r/3n) |x|^2, with G = 1 x^T and s^2 r = 64
    assert with_root == pytest.approx([expected, expected], rel=0.2)
    assert without == pytest.approx([expected / 4, expected / 64], rel=0.2)


def test_gradients_are_those_of_differences_through_the_division_too():
    layer, (x,) = lora_of(magnitude=True), tensors((3, 7), seed=5)
    names = ("a", "b", "g")

    def output(*parts):
        return torch.func.functional_call(layer, dict(zip(names, parts, strict=True)), (x,))

    start = [getattr(layer, name).detach().clone().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(output, start)


@pytest.mark.parametrize("options", [{}, {"magnitude": True}, {"init": "principal"}], ids=str)
def test_bfloat16_autocast_and_saving(options):
    layer = lora_of(dtype=torch.bfloat16, **options)
    assert layer(torch.ones(2, 7, dtype=torch.bfloat16)).dtype == torch.bfloat16
    wide = lora_of(dtype=torch.float32, **options)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.isfinite(wide(torch.ones(2, 7))).all()
    other = lora_of(dtype=torch.float32, trained=False, **options)
    other.load_state_dict(wide.state_dict())
    assert torch.equal(other(torch.ones(2, 7)), wide(torch.ones(2, 7)))


@LORAS
def test_it_compiles_whole(options):
    torch.compiler.reset()
    layer, (x,) = lora_of(dtype=torch.float32, **options), tensors((4, 7), dtype=torch.float32)
    torch.testing.assert_close(torch.compile(layer, fullgraph=True, backend="eager")(x), layer(x))
    torch.compiler.reset()


def test_a_merge_in_bfloat16_loses_most_of_a_small_update():
    """What the chapter says: of an update a thousandth as large, the merged weight keeps little."""
    linear = nn.Linear(256, 256, bias=False)
    layer = LoraLinear(linear, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        linear.weight.copy_(tensors((256, 256), dtype=torch.float32)[0])
        layer.b.copy_(tensors((256, 4), seed=1, dtype=torch.float32)[0])
        layer.b *= 1e-3 * linear.weight.norm() / layer.update().norm()
    wanted = layer.update().detach()
    base = linear.weight.detach().bfloat16()
    narrow = (base.float() + wanted).bfloat16().float() - base.float()
    assert (narrow - wanted).norm() / wanted.norm() > 0.5
    assert (layer.merged().weight - linear.weight - wanted).norm() / wanted.norm() < 1e-3


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"linear": nn.Identity()}, TypeError, "linear must be a torch.nn.Linear, got Identity"),
        ({"r": 0}, ValueError, "r must be between 1 and min(m, n) = 5, got 0"),
        ({"r": 6}, ValueError, "r must be between 1 and min(m, n) = 5, got 6"),
        ({"alpha": 0}, ValueError, "alpha must be finite and above 0, got 0.0"),
        ({"alpha": math.inf}, ValueError, "alpha must be finite and above 0, got inf"),
        ({"scaling": "r"}, ValueError, 'scaling must be "alpha/r" or "alpha/sqrt(r)", got \'r\''),
        ({"init": "ones"}, ValueError, 'init must be "zero" or "principal", got \'ones\''),
        ({"magnitude": 1}, TypeError, "magnitude must be True or False, got 1"),
    ],
)
def test_an_adapter_that_cannot_be_is_refused(change, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        LoraLinear(**({"linear": nn.Linear(7, 5), "r": 2} | change))


def test_an_input_of_another_width_or_type_is_refused():
    layer = lora_of()
    for x, kind, message in (
        (torch.zeros(3, 6).double(), ValueError, "x must have shape (..., 7), got shape (3, 6)"),
        (torch.zeros(()).double(), ValueError, "x must have shape (..., 7), got shape ()"),
        (torch.zeros(3, 7), TypeError, "x must be of the type of the layer, torch.float64, got torch.float32"),
        ([1.0] * 7, TypeError, "x must be a tensor, got list"),
    ):
        with pytest.raises(kind, match=f"^{re.escape(message)}$"):
            layer(x)


def test_the_printed_form_names_the_settings():
    assert lora_of(alpha=3, magnitude=True).extra_repr() == (
        "r=2, alpha=3, scaling='alpha/r', init='zero', magnitude=True"
    )
    assert "magnitude" not in lora_of().extra_repr()


# ------------------------------------------------------------------------------------------- a short past


def window_by_loops(q, k, v, window, m, votes=True, gates=None, mask=None):
    """Each query by itself: groups that are over `window` tokens back, then the tokens after them."""
    q, k, v = (part.detach().double().numpy() for part in (q, k, v))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, i in np.ndindex(q.shape[:3]):
        real = [t for t in range(k.shape[2]) if mask is None or mask[b, t]]
        groups = max(0, (i + 1 - window) // m)
        seen = []
        for group in range(groups):
            inside = [t for t in range(group * m, group * m + m) if t in real]
            if inside:
                gate = np.zeros((len(inside), 1)) if gates is None else gates[b, h, inside].numpy()
                share = np.exp(gate - gate.max(0)) / np.exp(gate - gate.max(0)).sum(0)
                vote = math.log(len(inside)) if votes else 0.0
                seen.append(((share * k[b, h, inside]).sum(0), (share * v[b, h, inside]).sum(0), vote))
        seen += [(k[b, h, t], v[b, h, t], 0.0) for t in range(groups * m, i + 1) if t in real]
        if seen:
            logits = np.array([q[b, h, i] @ key / math.sqrt(k.shape[3]) + vote for key, _, vote in seen])
            weights = np.exp(logits - logits.max())
            out[b, h, i] = weights @ np.array([value for _, value, _ in seen]) / weights.sum()
    return out


def heads_of(n, d=4, d_v=4, **options):
    return tensors((2, 3, n, d), (2, 3, n, d), (2, 3, n, d_v), **options)


@settings(max_examples=30)
@given(
    st.integers(1, 20), st.integers(1, 9), st.integers(1, 7), st.booleans(), st.sampled_from([None, 1, 4]), st.data()
)
def test_windows_of_any_sizes_and_any_mask_are_those_of_the_loops(n, window, m, votes, gated, data):
    q, k, v = heads_of(n, seed=n)
    gates = None if gated is None else tensors((2, 3, n, gated), seed=9)[0]
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(2, n)
    for given_mask in (None, mask):
        found = window_attention(q, k, v, window=window, m=m, votes=votes, gates=gates, token_mask=given_mask)
        expected = window_by_loops(q, k, v, window, m, votes, gates, given_mask)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [127, 128, 129, 300])
def test_blocks_of_queries_join_without_a_seam(n):
    q, k, v = heads_of(n, d_v=3)
    found = window_attention(q, k, v, window=10, m=4)
    some = [0, 9, 10, 12, 13, 14, 126, n - 2, n - 1]
    expected = window_by_loops(q[:, :1], k[:, :1], v[:, :1], 10, 4)
    np.testing.assert_allclose(found[:, :1][:, :, some], expected[:, :, some], rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [1, 16, 500])
@pytest.mark.parametrize("votes", [True, False])
def test_one_token_a_group_is_exact_causal_attention(window, votes):
    q, k, v = heads_of(200)
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    found = window_attention(q, k, v, window=window, m=1, votes=votes)
    torch.testing.assert_close(found, exact, rtol=0, atol=1e-12)


def test_a_window_as_long_as_the_sequence_is_exact_too_and_one_token_less_is_not():
    q, k, v = heads_of(24)
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(window_attention(q, k, v, window=23, m=2), exact, rtol=0, atol=1e-12)
    assert (window_attention(q, k, v, window=22, m=2) - exact).abs().amax((0, 1, 3)).gt(1e-6).tolist() == [
        *[False] * 23,
        True,
    ]


@pytest.mark.parametrize("gated", [False, True])
def test_later_tokens_move_nothing(gated):
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


def test_groups_are_the_averages_of_linformer():
    """A query far behind all tokens sees `pooling_projection` of them, with ln m added to every logit alike."""
    q, k, v = heads_of(33)
    e = pooling_projection(4, 32).double()
    far = window_attention(q, k, v, window=1, m=8, votes=False)[:, :, 32]
    mixed = [torch.cat([e @ part[:, :, :32], part[:, :, 32:]], dim=2) for part in (k, v)]
    expected = functional.scaled_dot_product_attention(q[:, :, 32:], *mixed)[:, :, 0]
    torch.testing.assert_close(far, expected, rtol=0, atol=1e-13)


def test_alike_tokens_make_groups_exact_with_votes_and_only_with_them():
    q, k, v = heads_of(64)
    k, v = (part[:, :, ::8].repeat_interleave(8, dim=2) for part in (k, v))
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(window_attention(q, k, v, window=4, m=8), exact, rtol=0, atol=1e-12)
    assert (window_attention(q, k, v, window=4, m=8, votes=False) - exact).norm() > 0.1 * exact.norm()


def test_large_gates_pick_one_token_of_a_group():
    q, k, v = heads_of(17)
    gates = torch.full((2, 3, 17, 1), -1e4, dtype=torch.float64)
    gates[:, :, 3::8] = 1e4
    found = window_attention(q, k, v, window=1, m=8, votes=False, gates=gates)[:, :, 16]
    kept = [3, 11, 16]
    expected = functional.scaled_dot_product_attention(q[:, :, 16:], k[:, :, kept], v[:, :, kept])[:, :, 0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_gradients_of_windows_are_those_of_differences_and_are_finite_where_all_is_hidden():
    parts = [part[:, :1].clone().requires_grad_() for part in heads_of(9)]
    gates = tensors((2, 1, 9, 1), seed=4)[0].requires_grad_()
    mask = real_tokens(2, 9)

    def output(q, k, v, g):
        return window_attention(q, k, v, window=2, m=3, gates=g, token_mask=mask)

    assert torch.autograd.gradcheck(output, (*parts, gates))


@pytest.mark.parametrize("absorb", [True, False])
def test_gradients_of_latents_are_those_of_differences(absorb):
    parts, rope = latent_parts(batch=2, n=3, dim=4, d_c=2, d_h=2, d_v=3)
    mask = torch.tensor([[True, True, False], [True, True, True]])

    def output(*given):
        named = dict(zip(("q_rope", "k_rope"), given[5:], strict=True))
        return latent_attention(*given[:5], **named, token_mask=mask, absorb=absorb)

    assert torch.autograd.gradcheck(output, [part.requires_grad_() for part in (*parts, *rope.values())])


def test_windows_and_latents_under_autocast():
    heads, (parts, rope) = heads_of(40, dtype=torch.float32), latent_parts(dtype=torch.float32)
    gates = tensors((2, 3, 40, 1), dtype=torch.float32)[0]

    def both():
        for absorb in (True, False):
            yield latent_attention(*parts, **rope, token_mask=real_tokens(), absorb=absorb)
        yield window_attention(*heads, window=4, m=4, gates=gates, token_mask=real_tokens(2, 40))

    wanted = [*both()]
    with torch.autocast("cpu", torch.bfloat16):
        found = [*both()]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.bfloat16
        assert (one - other).norm() < 0.1 * other.norm()


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_windows_and_latents_in_narrow_types(dtype, bound):
    q, k, v = heads_of(40)
    narrow = window_attention(*(part.to(dtype) for part in (q, k, v)), window=4, m=4)
    assert narrow.dtype == dtype
    exact = window_attention(q, k, v, window=4, m=4)
    assert (narrow.double() - exact).norm() < bound * exact.norm()
    parts, rope = latent_parts()
    found = latent_attention(*(p.to(dtype) for p in parts), **{name: p.to(dtype) for name, p in rope.items()})
    assert found.dtype == dtype
    assert (found.double() - latent_attention(*parts, **rope)).norm() < bound * 4 * found.double().norm()


def test_windows_and_latents_compile_whole(compiler):
    q, k, v = heads_of(140, dtype=torch.float32)

    def windows(q, k, v):
        return window_attention(q, k, v, window=5, m=4)

    torch.testing.assert_close(compiler(windows, backend="eager")(q, k, v), windows(q, k, v))
    parts, rope = latent_parts(dtype=torch.float32)

    def latents(*parts):
        return latent_attention(*parts, **rope)

    torch.testing.assert_close(compiler(latents, backend="eager")(*parts), latents(*parts))


@pytest.fixture
def compiler():
    torch.compiler.reset()
    yield lambda function, **options: torch.compile(function, fullgraph=True, **options)
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"window": 0}, ValueError, "window must be at least 1, got 0"),
        ({"m": 0}, ValueError, "m must be at least 1, got 0"),
        ({"m": 2.0}, TypeError, "m must be an integer, got 2.0"),
        ({"votes": 1}, TypeError, "votes must be True or False, got 1"),
        ({"q": (2, 3, 5, 4)}, ValueError, "q must hold as many tokens as k, got shapes (2, 3, 5, 4) and (2, 3, 6, 4)"),
        ({"gates": (2, 3, 6)}, ValueError, "gates must have shape (2, 3, 6, 1 or d), got shape (2, 3, 6)"),
        ({"gates": (2, 3, 6, 2)}, ValueError,
         "gates must have one number a token, or as many as keys and as values, got shapes (2, 3, 6, 2), (2, 3, 6, 4) "
         "and (2, 3, 6, 4)"),
        ({"v": (2, 3, 6, 5), "gates": (2, 3, 6, 4)}, ValueError,
         "gates must have one number a token, or as many as keys and as values, got shapes (2, 3, 6, 4), (2, 3, 6, 4) "
         "and (2, 3, 6, 5)"),
        ({"token_mask": torch.ones(2, 5, dtype=torch.bool)}, ValueError,
         "token_mask must have shape (batch, n_keys) = (2, 6), got shape (2, 5)"),
        ({"token_mask": torch.ones(2, 6)}, TypeError,
         "token_mask must be a bool tensor (True marks a real token), got torch.float32"),
    ],
)  # fmt: skip
def test_windows_that_do_not_fit_are_refused(change, kind, message):
    given = dict(zip("qkv", tensors(*[(2, 3, 6, 4)] * 3), strict=True)) | {"window": 2, "m": 2}
    change = {
        name: torch.zeros(value, dtype=torch.float64) if isinstance(value, tuple) else value
        for name, value in change.items()
    }
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        window_attention(**(given | change))
