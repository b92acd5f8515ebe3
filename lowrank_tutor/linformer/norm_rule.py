r"""How much does a row of E count where tokens are hidden? By the share of its squared norm that meets real ones.

Chapter ``book/07-linformer.md``, the definition of the norm rule. Letters: $E_j$ is row j of E, $E_j'$ what is left of
it on real tokens, and $s_j = \|E_j'\|^2 / \|E_j\|^2$ its share. The row $E_j' / \sqrt{s_j}$ has the old norm, and its
weight is multiplied by $s_j$: $\ln s_j$ is added to its logits.
"""

import math
from typing import NamedTuple

import torch

from lowrank_tutor._tensors import is_exporting, without_autocast


class RowSquares(NamedTuple):
    r"""Squared norms of the rows of E: ``total`` (k,), $\|E_j\|^2$, and ``real`` (batch, k), $\|E_j'\|^2$."""

    total: torch.Tensor
    real: torch.Tensor


def row_squares(projection: torch.Tensor, token_mask: torch.Tensor, width: int, start: int = 0) -> RowSquares:
    """Square and add up the rows of ``projection`` (k, max_len), and of each what meets real tokens.

    The tokens of the mask (batch, n) have the columns from ``start`` on; what lies beyond is hidden. Some rows at a
    time are squared: where k is above ``width``, the numbers in a token, all squares at once would take more memory
    than the tokens.
    """
    n = token_mask.shape[1]
    parts = []
    with without_autocast(projection.device):
        for rows in torch.split(projection, max(16, width // 4)):
            squares = rows.to(torch.promote_types(rows.dtype, torch.float32)).square()  # (rows, max_len)
            real = token_mask.to(squares.dtype) @ columns(squares, start, n).T
            parts.append((squares.sum(dim=1), real))
    return RowSquares(torch.cat([total for total, _ in parts]), torch.cat([real for _, real in parts], dim=1))


def columns(matrix: torch.Tensor, start: int, count: int) -> torch.Tensor:
    """Return ``count`` columns from ``start`` on: a view, but a copy in an export.

    Whether a view lies in one piece of memory depends on its length, and an exported program must hold for all.
    """
    if is_exporting():
        return matrix.index_select(1, torch.arange(start, start + count, device=matrix.device))
    return matrix.narrow(1, start, count)


def norm_rule(squares: list[RowSquares]) -> tuple[list[torch.Tensor], torch.Tensor]:
    r"""Return $1 / \sqrt{s_j}$ for each matrix, (batch, k), and what is added to the logits, $\ln s_j$.

    That is (batch, 1, 1, k); with two matrices the smaller share counts. A row without a share has the scale 0 and the
    logit -inf. Where no row has one, all logits are 0: the mixtures are zeros by then, and an average of zeros is zero,
    not NaN.
    """
    shares = [_share(*each) for each in squares]
    share = shares[0] if len(shares) == 1 else torch.minimum(*shares)
    empty = share == 0  # root and logarithm have no gradient there
    scales = [torch.where(empty, 1, each).sqrt().reciprocal().masked_fill(empty, 0) for each in shares]
    log_shares = torch.where(empty, 1, share).log().masked_fill(empty, -math.inf)
    return scales, log_shares.masked_fill(empty.all(dim=1, keepdim=True), 0)[:, None, None, :]


def rescale(mixed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Multiply mixtures (batch, k, D) or (batch, heads, k, d) by (batch, k), of 24 bits or more, and round once."""
    scale = scale[:, :, None]
    return (mixed * (scale if mixed.ndim == 3 else scale[:, None])).to(mixed.dtype)


def _share(total: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Divide (batch, k) by (k,). A row of zeros has the share 1: no mask has emptied it. A tiny share is 0."""
    tiny = torch.finfo(real.dtype).tiny
    zero = total < tiny
    share = torch.where(zero, 1, real / torch.where(zero, 1, total))
    return torch.where(share < tiny, 0, share)
