r"""Set how much a row of E counts where tokens are hidden, and how large what is left of it must be.

Chapter ``book/07-linformer.md``, the definition of the two rules. Letters: $E_j$ is row j of E, $E_j'$ the same row
with zeros for hidden tokens, and $s_j = \sum_{\text{real}} |E_{ji}|^p / \sum_i |E_{ji}|^p$ its share. The row becomes
$E_j' / s_j^{1/p}$, and its weight is multiplied by $s_j$: $\ln s_j$ is added to its logits. With $p = 1$, the **sum
rule**, a row without negative entries keeps its sum, so that equal tokens come out as they are. With $p = 2$, the
**norm rule**, a row keeps its length, for the sum of a row of random signs is near zero by accident.

The entries of a row say which rule fits it: the sum rule if none is negative. But the entries of a *learned* E cross
zero while it learns, and its results would jump if it then changed the rule. So a layer whose E is learned settles on
one rule for all rows when it is made: the sum rule if E starts without negative entries, such as averages, otherwise
the norm rule. The absolute values keep the sum rule continuous after entries have turned negative.
"""

import math
from typing import NamedTuple

import torch

from lowrank_tutor._tensors import is_exporting, without_autocast

RULES = ("sum", "norm")


class RowSums(NamedTuple):
    r"""Sums of $|E_{ji}|^p$ over each row: ``total`` (k,) over all tokens, and ``real`` (batch, k) over real ones.

    ``by_sum`` (k,) is true where p is 1, the sum rule; elsewhere p is 2.
    """

    total: torch.Tensor
    real: torch.Tensor
    by_sum: torch.Tensor


def row_sums(
    projection: torch.Tensor, token_mask: torch.Tensor, width: int, start: int = 0, rule: str | None = None
) -> RowSums:
    """Add up the rows of ``projection`` (k, max_len), and of each what meets real tokens.

    The tokens of the mask (batch, n) have the columns from ``start`` on; what lies beyond is hidden. Without a ``rule``
    for all rows, the entries of each decide. Some rows at a time are raised to the power p: where k is above ``width``,
    the numbers in a token, all powers at once would take more memory than the tokens.
    """
    n = token_mask.shape[1]
    parts = []
    with without_autocast(projection.device):
        for some in torch.split(projection, max(16, width // (8 if rule is None else 4))):
            rows = some.to(torch.promote_types(some.dtype, torch.float32))  # (rows, max_len)
            powers, by_sum = _powers(rows, rule)
            real = token_mask.to(rows.dtype) @ columns(powers, start, n).T
            parts.append((powers.sum(dim=1), real, by_sum))
    totals, reals, rules = zip(*parts, strict=True)
    return RowSums(torch.cat(totals), torch.cat(reals, dim=1), torch.cat(rules))


def columns(matrix: torch.Tensor, start: int, count: int) -> torch.Tensor:
    """Return ``count`` columns from ``start`` on: a view, but a copy in an export.

    Whether a view lies in one piece of memory depends on its length, and an exported program must hold for all.
    """
    if is_exporting():
        return matrix.index_select(1, torch.arange(start, start + count, device=matrix.device))
    return matrix.narrow(1, start, count)


def padding_rule(sums: list[RowSums]) -> tuple[list[torch.Tensor], torch.Tensor]:
    r"""Return $s_j^{-1/p}$ for each matrix, (batch, k), and what is added to the logits, $\ln s_j$.

    That is (batch, 1, 1, k); with two matrices the smaller share counts. A row without a share has the scale 0 and the
    logit -inf. Where no row has one, all logits are 0: the mixtures are zeros by then, and an average of zeros is zero,
    not NaN.
    """
    shares = [_share(each) for each in sums]
    share = shares[0] if len(shares) == 1 else torch.minimum(*shares)
    empty = share == 0  # root and logarithm have no gradient there
    scales = []
    for each, own in zip(sums, shares, strict=True):
        kept = torch.where(empty, 1, own)
        scales.append(torch.where(each.by_sum, kept, kept.sqrt()).reciprocal().masked_fill(empty, 0))
    log_shares = torch.where(empty, 1, share).log().masked_fill(empty, -math.inf)
    return scales, log_shares.masked_fill(empty.all(dim=1, keepdim=True), 0)[:, None, None, :]


def rescale(mixed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Multiply mixtures (batch, k, D) or (batch, heads, k, d) by (batch, k), of 24 bits or more, and round once."""
    scale = scale[:, :, None]
    return (mixed * (scale if mixed.ndim == 3 else scale[:, None])).to(mixed.dtype)


def _powers(rows: torch.Tensor, rule: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Raise the sizes of all entries to the power p of their row, and say of each row whether p is 1."""
    if rule is None:
        by_sum, sizes = (rows >= 0).all(dim=1), rows.abs()
        return torch.where(by_sum[:, None], sizes, sizes * sizes), by_sum
    by_sum = torch.full(rows.shape[:1], rule == "sum", device=rows.device)
    return rows.abs() if rule == "sum" else rows.square(), by_sum


def _share(sums: RowSums) -> torch.Tensor:
    """Divide (batch, k) by (k,). A row of zeros has the share 1: no mask has emptied it. A tiny share is 0.

    The gradient holds the square of the scale, which must stay finite: p = 1 needs the larger bound.
    """
    tiny = torch.finfo(sums.real.dtype).tiny
    least = torch.full_like(sums.total, tiny).masked_fill(sums.by_sum, math.sqrt(tiny))
    zero = sums.total < least
    share = torch.where(zero, 1, sums.real / torch.where(zero, 1, sums.total))
    return torch.where(share < least, 0, share)
