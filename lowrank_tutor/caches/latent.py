r"""Attention that stores a latent of each token, and latents made from a trained model.

``token_mask`` (batch, n) is **True for a real token**; PyTorch's ``key_padding_mask`` means the
opposite. Hidden tokens do not count, whatever they hold, and their own output is zero. ``state`` is
what earlier tokens left, as in ``attention``. Results have the type of ``x``.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lowrank_tutor._checks import check_bool, check_integer
from lowrank_tutor._tensors import (
    State,
    attend,
    check_causal,
    check_floating,
    check_like,
    check_state,
    check_tensor,
    check_token_mask,
    each_head,
    softmax_mask,
    zero_hidden,
)
from lowrank_tutor.bilinear.scores import _root, factorize


class Latent(NamedTuple):
    """A latent's weights: ``down`` (dim, k), ``up_k`` (heads, k, d_h), ``up_v`` (heads, k, d_v).

    They are `latent_attention`'s ``w_dkv``, ``w_uk`` and ``w_uv``.
    """

    down: Tensor
    up_k: Tensor
    up_v: Tensor


def latent_attention(
    x: Tensor,
    w_dkv: Tensor,
    w_uk: Tensor,
    w_uv: Tensor,
    w_q: Tensor,
    *,
    q_rope: Tensor | None = None,
    k_rope: Tensor | None = None,
    token_mask: Tensor | None = None,
    causal: bool = True,
    absorb: bool = True,
    state: State | None = None,
    return_state: bool = False,
) -> Tensor | Any:
    r"""Attend to tokens ``x`` (batch, n, dim) of which only a latent is stored.

    The result is (batch, heads, n, d_v). Since $q^\top (W_{UK}^\top c) = (W_{UK} q)^\top c$ and
    $\sum_j p_j W_{UV}^\top c_j = W_{UV}^\top \sum_j p_j c_j$, queries can be brought to the
    latents, so that keys and values are never made (DeepSeek-AI, 2024, arXiv:2405.04434, section
    2.1). Both orders give the same result.

    Parameters
    ----------
    w_dkv, w_q : Tensor, shapes (dim, d_c), (heads, dim, d_h)
        Make the latents $c = W_{DKV}^\top x$, and the queries, of the tokens.
    w_uk, w_uv : Tensor, shapes (groups, d_c, d_h), (groups, d_c, d_v)
        Make the keys of each group of heads, $W_{UK}^\top c$, and the values. As many groups as
        heads, or fewer that heads share.
    q_rope, k_rope : Tensor, shapes (batch, heads, n, d_rope), (batch, n, d_rope), optional
        Rotated parts of the queries, and of the one key that all heads share and that is stored
        beside the latent. Both or neither. The logits are divided by $\sqrt{d_h + d_R}$, with their
        width $d_R$.
    causal : bool
        Whether a token attends only to itself and those before it.
    absorb : bool
        Whether queries are brought to the latents, or keys and values made of them.
    state : tuple of Tensor, optional
        What ``return_state`` gave for the earlier tokens: of each its latent and ``k_rope``,
        (batch, n, d_c + d_rope), and whether it is real, (batch, n).

    Examples
    --------
    >>> import torch
    >>> x, w_dkv = torch.randn(1, 5, 12), torch.randn(12, 3)
    >>> w_uk, w_uv, w_q = torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(2, 12, 4)
    >>> weights = w_dkv, w_uk, w_uv, w_q
    >>> short, long = (latent_attention(x, *weights, absorb=order) for order in (True, False))
    >>> short.shape, torch.allclose(short, long, atol=1e-4)
    (torch.Size([1, 2, 5, 4]), True)
    """
    check_floating("x", check_tensor("x", x, ("batch", "n", "dim")))
    batch, n, dim = x.shape
    d_c = check_like("w_dkv", w_dkv, (dim, "d_c"), "x", x).shape[1]
    groups, _, d_h = check_like("w_uk", w_uk, ("groups", d_c, "d_h"), "x", x).shape
    check_like("w_uv", w_uv, (groups, d_c, "d_v"), "x", x)
    heads = check_like("w_q", w_q, ("heads", dim, d_h), "x", x).shape[0]
    if groups == 0 or heads % groups:
        raise ValueError(f"w_q must have a multiple of the {groups} heads of w_uk, got {heads}")
    if q_rope is not None or k_rope is not None:
        d_rope = check_like("q_rope", q_rope, (batch, heads, n, "d_rope"), "x", x).shape[3]
        check_like("k_rope", k_rope, (batch, n, d_rope), "x", x)
    check_token_mask(token_mask, x, (batch, n))
    check_causal(causal, state, return_state)
    absorb = check_bool(absorb, "absorb")
    x = zero_hidden(x, token_mask)
    stored = x @ w_dkv
    q = x[:, None] @ w_q  # (batch, heads, n, d_h)
    scale = (q.shape[3] + (0 if q_rope is None else q_rope.shape[3])) ** -0.5
    if absorb:
        w_uk, w_uv = (each_head(w[None], heads)[0] for w in (w_uk, w_uv))
        q = q @ w_uk.mT  # (batch, heads, n, d_c)
    if q_rope is not None and k_rope is not None:
        stored = torch.cat([stored, zero_hidden(k_rope, token_mask).to(stored.dtype)], dim=2)
        q = torch.cat([q, zero_hidden(q_rope, token_mask).to(q.dtype)], dim=3)
    mask = token_mask
    real = x.new_ones(batch, n, dtype=torch.bool) if token_mask is None else token_mask.clone()
    if state is not None:
        older, was_real = check_state(state, (batch, "n", stored.shape[2]), (batch, "n"))
        stored = torch.cat([older.to(stored.dtype), stored], dim=1)
        mask = real = torch.cat([was_real.bool(), real], dim=1)
    keys = stored[:, None]
    values = keys[..., :d_c]
    if not absorb:
        rotated = keys[..., d_c:].expand(-1, w_uk.shape[0], -1, -1)
        keys, values = torch.cat([values @ w_uk, rotated], dim=3), values @ w_uv
    if mask is None:
        mixed = attend(q, keys, values, causal=causal, scale=scale)
    else:
        seen = softmax_mask(mask, n if causal else None)
        mixed = attend(q, keys, values, seen, scale=scale)
    out = zero_hidden(mixed @ w_uv if absorb else mixed, token_mask).to(x.dtype)
    return (out, (stored, real)) if return_state else out


def latent_from_heads(
    w_k: Tensor,
    w_v: Tensor,
    k: int,
    *,
    moment: Tensor | None = None,
) -> Latent:
    r"""Turn the keys' and values' weights of all heads into one latent of ``k`` numbers.

    The weights side by side, $[W_K\; W_V]$, are cut to rank ``k`` in one go, so that what keys and
    values have in common is stored once (Meng et al., 2025, arXiv:2502.07864). The cut keeps best
    the keys and values of tokens with the second moment ``moment`` (Wang et al., 2024,
    arXiv:2403.07378), by default the identity. Keys and values have different units, so each is
    scaled to a total mean square of 1 before the cut, and counts for half: a factor that a model
    moves from $W_K$ to $W_Q$, or from $W_V$ to $W_O$, changes nothing.

    Parameters
    ----------
    w_k, w_v : Tensor, shapes (heads, dim, d_h), (heads, dim, d_v)
        Make the keys and values of each head. Heads that share them are given once. Of a linear
        layer ``k_proj``, w_k is ``k_proj.weight.unflatten(0, (heads, -1)).mT``.
    k : int
        Width of the latent, at most dim and heads · (d_h + d_v).
    moment : Tensor, shape (dim, dim), optional
        $E\,x x^\top$, for tokens (n, dim) ``x.T @ x / n``; not centered. Best in float64:
        directions that rounding could have made are left out.

    Examples
    --------
    >>> import torch
    >>> w_k, w_v = torch.randn(2, 4, 16, 8)  # 4 heads of width 8
    >>> down, up_k, up_v = latent_from_heads(w_k, w_v, k=16)
    >>> down.shape, up_k.shape, torch.allclose(down @ up_v, w_v, atol=1e-4)
    (torch.Size([16, 16]), torch.Size([4, 16, 8]), True)
    """
    keys = as_finite("w_k", check_tensor("w_k", w_k, ("heads", "dim", "d_h")))
    heads, dim, d_h = keys.shape
    values = as_finite("w_v", check_like("w_v", w_v, (heads, dim, "d_v"), "w_k", w_k))
    d_v = values.shape[2]
    k = check_integer(k, "k", 1, min(dim, heads * (d_h + d_v)), "min(dim, heads * (d_h + d_v))")
    if moment is not None:
        moment = as_moment(moment, dim)
    keys, key_size = _unit(keys, moment)
    values, value_size = _unit(values, moment)
    joint = torch.cat([part.transpose(0, 1).flatten(1) for part in (keys, values)], dim=1)
    u, v = factorize(joint.numpy(), k, s_moment=None if moment is None else moment.numpy())
    up_k, up_v = torch.split(torch.from_numpy(v), [heads * d_h, heads * d_v], dim=1)
    ups = (
        part.reshape(k, heads, -1).transpose(0, 1) * size
        for part, size in ((up_k, key_size), (up_v, value_size))
    )
    return Latent(*(part.to(w_k).contiguous() for part in (torch.from_numpy(u.T), *ups)))


def _unit(table: Tensor, moment: Tensor | None) -> tuple[Tensor, float]:
    """Divide a table (heads, dim, d) by its root mean square for tokens, which is returned, too."""
    seen = table if moment is None else moment.to(table.dtype) @ table
    size = math.sqrt(float((table * seen).sum().clamp(min=0))) or 1.0
    return table / size, size


def as_finite(name: str, value: Tensor) -> Tensor:
    """Return finite numbers in float64, on the CPU and without a gradient."""
    check_floating(name, value)
    numbers = value.detach().to("cpu", torch.float64)
    if not numbers.isfinite().all():
        raise ValueError(f"{name} must be finite, got {float(numbers[~numbers.isfinite()][0])}")
    return numbers


def as_moment(moment: Tensor, dim: int) -> Tensor:
    """Return a second moment (dim, dim) as `factorize` takes it, on the CPU, and not all zeros.

    Its type tells `factorize` how much rounding to expect.
    """
    check_floating("moment", check_tensor("moment", moment, (dim, dim)))
    known = moment.detach().to("cpu", torch.promote_types(moment.dtype, torch.float32))
    root, _ = _root(known.numpy(), dim, "moment")
    if not root.size:
        raise ValueError("moment must be non-zero, got zeros")
    return known
