"""Attention of about the same cost, by every kind the studies compare.

It is exact, local, averaged, linear, or recurrent. Functions of this file take queries, keys and
values (batch, heads, n, d) and return values of that shape. None is causal: each token may read
both sides. Some take ``real`` (batch, n), True for a token that is no padding.
"""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.linformer import pooling_projection


class Attention(nn.Module):
    """Multi-head self-attention around any function of queries, keys and values."""

    def __init__(self, width: int, heads: int, attend: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the tokens, x (batch, n, width)."""
        q, k, v = (
            y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in self.to_qkv(x).chunk(3, dim=2)
        )
        return self.to_out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Nothing(nn.Module):
    """No attention: each token has its own place, and what the rest of the model gives it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return zeros."""
        return torch.zeros_like(x)


def neighbors(x: torch.Tensor, block: int) -> torch.Tensor:
    """Return each block's own tokens and both neighbors', (batch, heads, blocks, 3 block, d).

    Outside are zeros.
    """
    blocks = functional.pad(x.unflatten(2, (-1, block)), (0, 0, 0, 0, 1, 1))
    return torch.cat([blocks[:, :, :-2], blocks[:, :, 1:-1], blocks[:, :, 2:]], dim=3)


def allowed(blocks: int, block: int, reach: int | None, real: torch.Tensor) -> torch.Tensor:
    """Return which of three blocks' keys a query may read, bool (batch, blocks, block, 3 block).

    ``reach`` is in tokens, ``real`` (batch, n) is False for padding. A query may always read
    itself, so that the rows of padding, which nobody reads, do not become NaN.
    """
    query = torch.arange(block, device=real.device)[:, None] + block
    key = torch.arange(3 * block, device=real.device)
    near = (query - key).abs() <= (3 * block if reach is None else reach)
    inside = (
        neighbors(real[:, None, :, None].float(), block)[:, 0, :, :, 0] > 0
    )  # (batch, blocks, 3 block)
    return near & inside[:, :, None] | (query == key)


def all_real(k: torch.Tensor) -> torch.Tensor:
    """Return a mask without padding, (1, n), for any batch."""
    return k.new_ones(1, k.shape[2], dtype=torch.bool)


def local(block: int, reach: int | None = None) -> Callable[..., torch.Tensor]:
    """Let each token read its own block and both neighbors, or at most ``reach`` tokens away."""

    def attend(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor | None = None
    ) -> torch.Tensor:
        heads, blocks = q.shape[1], q.shape[2] // block
        mask = allowed(blocks, block, reach, all_real(k) if real is None else real).repeat(
            1, heads, 1, 1
        )
        q, k, v = q.unflatten(2, (-1, block)), neighbors(k, block), neighbors(v, block)
        out = functional.scaled_dot_product_attention(
            *(y.flatten(1, 2) for y in (q, k, v)), attn_mask=mask
        )
        return out.unflatten(1, (-1, blocks)).flatten(2, 3)

    return attend


def local_and_averages(block: int) -> Callable[..., torch.Tensor]:
    """Read three blocks token by token and the averages of all others, in one softmax.

    An average of m real tokens has ln m added to its logit: so many votes, as in
    :func:`lowrank_tutor.states.window_attention`.
    """

    def attend(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor | None = None
    ) -> torch.Tensor:
        blocks, scale = q.shape[2] // block, 1 / math.sqrt(q.shape[3])
        real = all_real(k) if real is None else real
        q = q.unflatten(2, (-1, block)) * scale
        near = q @ neighbors(k, block).transpose(-2, -1)
        near = near.masked_fill(~allowed(blocks, block, None, real)[:, None], -torch.inf)
        blockwise = (
            block * pooling_projection(blocks, k.shape[2]).to(k) * real[:, None]
        )  # ones, (batch, blocks, n)
        votes = blockwise.sum(2)
        e = (blockwise / votes.clamp(min=1)[:, :, None])[:, None]
        means = e @ k, e @ v  # (batch, heads, blocks, d)
        far = q @ means[0].transpose(-2, -1)[:, :, None] + votes.log()[:, None, None, None]
        where = torch.arange(blocks, device=q.device)
        own = (where[:, None] - where).abs() <= 1
        far = far.masked_fill(own[:, None], -torch.inf)
        weights = torch.cat([near, far], dim=-1).softmax(dim=-1).to(v)
        out = (
            weights[..., : 3 * block] @ neighbors(v, block)
            + weights[..., 3 * block :] @ means[1][:, :, None]
        )
        return out.flatten(2, 3)

    return attend
