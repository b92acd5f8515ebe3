"""Attention of about the same cost, by every kind the studies compare: exact, local, averaged, linear, recurrent.

Functions of this file take queries, keys and values (batch, heads, n, d) and return values of that shape. None is
causal: each token may read both sides.
"""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.linformer import pooling_projection
from lowrank_tutor.states import delta_attention


class Attention(nn.Module):
    """Multi-head self-attention around any function of queries, keys and values."""

    def __init__(self, width: int, heads: int, attend: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the tokens, x (batch, n, width)."""
        q, k, v = (y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in self.to_qkv(x).chunk(3, dim=2))
        return self.to_out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Nothing(nn.Module):
    """No attention: each token has its own place, and what the rest of the model gives it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return zeros."""
        return torch.zeros_like(x)


def neighbors(x: torch.Tensor, block: int) -> torch.Tensor:
    """Return for each block of tokens its own and both neighbors, (batch, heads, blocks, 3 block, d); zeros outside."""
    blocks = functional.pad(x.unflatten(2, (-1, block)), (0, 0, 0, 0, 1, 1))
    return torch.cat([blocks[:, :, :-2], blocks[:, :, 1:-1], blocks[:, :, 2:]], dim=3)


def allowed(blocks: int, block: int, reach: int | None, device: torch.device) -> torch.Tensor:
    """Return which of the three blocks' keys a query may read, bool (blocks, block, 3 block); ``reach`` in tokens."""
    query = torch.arange(block, device=device)[:, None] + block
    key = torch.arange(3 * block, device=device)
    near = (query - key).abs() <= (3 * block if reach is None else reach)
    inside = torch.ones(blocks, 1, 3 * block, dtype=torch.bool, device=device)
    inside[0, :, :block] = inside[-1, :, 2 * block :] = False
    return near & inside


def local(block: int, reach: int | None = None) -> Callable[..., torch.Tensor]:
    """Let each token read its own block and both neighbors, or those ``reach`` tokens away at most."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        blocks = q.shape[2] // block
        mask = allowed(blocks, block, reach, q.device).repeat(q.shape[1], 1, 1)
        q, k, v = q.unflatten(2, (-1, block)), neighbors(k, block), neighbors(v, block)
        out = functional.scaled_dot_product_attention(*(y.flatten(1, 2) for y in (q, k, v)), attn_mask=mask)
        return out.unflatten(1, (-1, blocks)).flatten(2, 3)

    return attend


def local_and_averages(block: int) -> Callable[..., torch.Tensor]:
    """Read three blocks token by token and the averages of all others, in one softmax.

    An average of ``block`` tokens has ln(block) added to its logit: so many votes, as in
    :func:`lowrank_tutor.states.window_attention`.
    """

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        blocks, scale = q.shape[2] // block, 1 / math.sqrt(q.shape[3])
        q = q.unflatten(2, (-1, block)) * scale
        near = q @ neighbors(k, block).transpose(-2, -1)
        near = near.masked_fill(~allowed(blocks, block, None, q.device), -torch.inf)
        e = pooling_projection(blocks, k.shape[2]).to(k)
        far = q @ (e @ k).transpose(-2, -1)[:, :, None] + math.log(block)
        where = torch.arange(blocks, device=q.device)
        own = (where[:, None] - where).abs() <= 1
        far = far.masked_fill(own[:, None], -torch.inf)
        weights = torch.cat([near, far], dim=-1).softmax(dim=-1)
        out = weights[..., : 3 * block] @ neighbors(v, block) + weights[..., 3 * block :] @ (e @ v)[:, :, None]
        return out.flatten(2, 3)

    return attend


class GatedDelta(nn.Module):
    """Gated DeltaNet in both directions: one state reads from the left, one from the right, half of the heads each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_gates = nn.Linear(width, 2 * heads)
        self.to_out = nn.Linear(width, width)
        self.norm = nn.RMSNorm(width // heads)
        nn.init.constant_(self.to_gates.bias[heads:], 4.0)  # begin by forgetting little

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the tokens, x (batch, n, width)."""
        q, k, v = (y.unflatten(2, (self.heads, -1)).transpose(1, 2) for y in self.to_qkv(x).chunk(3, dim=2))
        beta, keep = self.to_gates(x).transpose(1, 2).chunk(2, dim=1)
        q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
        half = self.heads // 2
        parts = [q, k, v, beta.sigmoid(), functional.logsigmoid(keep)]
        turned = [torch.cat([y[:, :half], y[:, half:].flip(2)], dim=1) for y in parts]
        out = delta_attention(*turned[:4], log_decay=turned[4])[0]
        out = self.norm(torch.cat([out[:, :half], out[:, half:].flip(2)], dim=1))
        return self.to_out(out.transpose(1, 2).flatten(2))
