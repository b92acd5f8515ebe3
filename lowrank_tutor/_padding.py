r"""What is left of Linformer's mixtures where tokens are hidden; chapter ``book/07-linformer.md``.

Let $\omega_j$ be the share of row j of E on real tokens, $\sum_{\text{real}} |E_{ji}|^p / \sum_i
|E_{ji}|^p$. What is left of the row is divided by $\omega_j^{1/p}$, and $\ln \omega_j$ is added to
its logits, as if it had $\omega_j$ votes. With two matrices the smaller share counts. With $p = 1$,
the **sum rule**, a row without negative entries keeps its sum, so that averages return equal tokens
unchanged. With $p = 2$, the **norm rule**, a row keeps its norm: the sum of random signs is near
zero by accident.
"""

import math
from typing import TypeAlias

import torch
from torch import Tensor

from lowrank_tutor._tensors import is_exporting, without_autocast

RowSums: TypeAlias = tuple[
    Tensor, Tensor, Tensor
]  # of a matrix's rows on real tokens, and on all; whether p is 1


def row_sums(matrix: Tensor, real: Tensor, rule: str | None) -> RowSums:
    r"""Add up $|E_{ji}|^p$ of each row over real tokens, (batch, k), and over all, (k,); say where p is 1, (k,).

    The tokens of the mask (batch, n) have the first n columns; all other columns are hidden.
    """
    with without_autocast(matrix.device):
        rows = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        given = torch.full(rows.shape[:1], rule == "sum", device=rows.device)
        by_sum = given if rule else (rows >= 0).all(dim=1)
        largest = (
            rows.detach().abs().amax(dim=1, keepdim=True)
        )  # shares do not change, and no power may vanish
        sizes = rows.abs() / torch.where(largest == 0, 1, largest)
        powers = sizes * torch.where(by_sum[:, None], 1, sizes)
        kept = real.to(rows.dtype) @ columns_of(powers, real.shape[1]).T
    return kept, powers.sum(dim=1), by_sum


def padding_rule(sums: list[RowSums]) -> tuple[list[Tensor], Tensor]:
    r"""Return $\omega_j^{-1/p}$ for each matrix, (batch, k, 1), and $\ln \omega_j$ for the logits, (batch, 1, 1, k).

    A row without a share has the scale 0 and the logit -inf. Where no row has one, all logits are
    0: the mixtures are zeros by then, and an average of zeros is zero, not NaN.
    """
    shares = []
    for kept, total, by_sum in sums:  # (batch, k), (k,), (k,)
        # A tiny share counts as 0, because the gradient holds the square of the scale: p = 1 needs
        # the larger bound.
        tiny = torch.finfo(total.dtype).tiny
        least = torch.full_like(total, tiny).masked_fill(by_sum, math.sqrt(tiny))
        zero = total == 0  # no mask has emptied such a row: its share is 1
        share = torch.where(zero, 1, kept / torch.where(zero, 1, total))
        shares.append(torch.where(share < least, 0, share))
    share = shares[0] if len(shares) == 1 else torch.minimum(*shares)
    empty = share == 0  # root and logarithm have no gradient there
    scales = []
    for own, (_, _, by_sum) in zip(shares, sums, strict=True):
        kept = torch.where(empty, 1, own)
        # rsqrt would overflow in the gradient of a tiny share
        scales.append(
            torch.where(by_sum, kept, kept.sqrt()).reciprocal().masked_fill(empty, 0)[:, :, None]
        )
    logs = torch.where(empty, 1, share).log().masked_fill(empty, -math.inf)
    return scales, logs.masked_fill(empty.all(dim=1, keepdim=True), 0)[:, None, None, :]


def rescaled(mixed: Tensor, scale: Tensor) -> Tensor:
    """Multiply by a scale of at least 24 bits, and round once."""
    return (mixed * scale).to(mixed.dtype)


def columns_of(matrix: Tensor, count: int) -> Tensor:
    """Return the first ``count`` columns: a view, or a copy in an export."""
    if (
        is_exporting()
    ):  # an export holds for all lengths, but whether a view is contiguous depends on its length
        return matrix.index_select(1, torch.arange(count, device=matrix.device))
    return matrix[:, :count]
