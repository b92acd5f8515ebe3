r"""Mix n tokens to k: each row of E mixes all of them, whoever holds them, and a rule hides padding.

Chapter ``book/07-linformer.md``; letters as in ``linformer``, and ``x`` (batch, n, D) are tokens. The layers of
``linformer`` call this before they form keys and values: E(XW) = (EX)W.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from lowrank_tutor._tensors import is_exporting, zero_hidden
from lowrank_tutor.linformer.norm_rule import columns, padding_rule, rescale, row_sums
from lowrank_tutor.linformer.shards import Shard, add_up

if TYPE_CHECKING:  # a build of PyTorch may lack it
    from torch.distributed import ProcessGroup


class Mixtures(NamedTuple):
    """What is left of a sequence: one of each for keys and values where E = F, else two.

    ``tokens`` are EX, (batch, k, D); ``counts`` are E1, (batch, k, 1), how often a bias counts, where that was asked
    for; and ``log_shares`` is what the rule for padding adds to logits, (batch, 1, 1, k), or None.
    """

    tokens: list[torch.Tensor]
    counts: list[torch.Tensor]
    log_shares: torch.Tensor | None


def compress(
    matrices: list[torch.Tensor],
    x: torch.Tensor,
    token_mask: torch.Tensor | None,
    group: "ProcessGroup | None",
    shard: Shard,
    *,
    with_counts: bool,
    rule: str | None,
) -> Mixtures:
    """Mix tokens (batch, n, D) by one or two matrices (k, max_len), whose rows all follow ``rule`` if it is given."""
    own = [columns(matrix, shard.start, x.shape[1]) for matrix in matrices]  # the columns of these tokens
    mixed = _mix_each(own, zero_hidden(x, token_mask))  # (batch, k, D) each
    partly = shard.masked or is_exporting() or shard.total < matrices[0].shape[1]  # an export holds for all lengths
    real = token_mask
    if real is None and (with_counts or partly):
        real = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    if with_counts and real is not None:
        mixed += _mix_each(own, real[:, :, None].to(x.dtype))  # (batch, k, 1) each
    sums = []
    if partly and real is not None:
        sums = [row_sums(matrix, real, x.shape[2], shard.start, rule) for matrix in matrices]
    if group is not None:
        everything = add_up(group, *mixed, *(each.real for each in sums))
        sums = [each._replace(real=it) for each, it in zip(sums, everything[len(mixed) :], strict=True)]
        mixed = list(everything[: len(mixed)])
    log_shares = None
    if sums:
        scales, log_shares = padding_rule(sums)
        scales = [*scales, *scales] if with_counts else scales  # E1 is mixed like EX, and rescaled like it
        mixed = [rescale(rows, scale) for rows, scale in zip(mixed, scales, strict=True)]
    return Mixtures(mixed[: len(matrices)], mixed[len(matrices) :], log_shares)


def mix(projection: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Mix n tokens to k: (k, n) times (batch, n, width) or (batch, heads, n, width).

    A batch of products copies nothing. But its gradient holds a (k, n) for every sequence and head before they are
    added up: where there are heads and that is asked for, ``@`` copies the tokens instead, which is less.
    """
    if x.ndim == 4 and torch.is_grad_enabled() and projection.requires_grad:
        return projection @ x
    *batch, _, width = x.shape
    rows = torch.bmm(projection.expand(math.prod(batch), -1, -1), x.flatten(0, -3))
    return rows.view(*batch, projection.shape[0], width)


def _mix_each(projections: list[torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
    """Mix with one matrix or two. What a mask makes of ``x`` is a copy, which need not outlive this call."""
    return [mix(projection, x) for projection in projections]
