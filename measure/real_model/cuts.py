"""Cuts of SmolLM2's attention: each takes rotated q and k, and v, and returns a table and values.

Shapes are those of ``lowrank_tutor.smollm``: q (batch, 9, n, 64), k and v (batch, 3, n, 64), tables
(batch, 9, n, n). :class:`Meter` makes attention of a cut, and sums up how far its tables are off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from lowrank_tutor.smollm import HEADS, WIDTH, rotate, table

Cut = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def each_head(part: Tensor) -> Tensor:
    """Give each of nine heads what its group of three has."""
    return part.repeat_interleave(HEADS // part.shape[1], dim=1)


class Meter:
    """Attention by a cut for each layer; :meth:`errors` says how far the tables were off.

    ``whole`` are the tables of the whole model on the same texts, one tensor for each layer.
    """

    def __init__(self, cut: Cut | Sequence[Cut], whole: Sequence[Tensor] = ()) -> None:
        cuts = list(cut) if isinstance(cut, list | tuple) else [cut] * 30
        self.whole = whole
        self.layers = [lambda q, k, v, i=i: self.attend(i, cuts[i], q, k, v) for i in range(30)]
        self.off = self.length = self.off_whole = self.length_whole = 0.0

    def attend(self, i: int, cut: Cut, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend by the cut in layer i, and add up squares."""
        used, values = cut(q, k, v)
        exact = table(q, k)
        self.off += float((used - exact).square().sum())
        self.length += float(exact.square().sum())
        if self.whole:
            whole = self.whole[i].float()
            self.off_whole += float((used - whole).square().sum())
            self.length_whole += float(whole.square().sum())
        return used @ each_head(values)

    def errors(self) -> tuple[float, float | None]:
        """Return the norm of the errors of all tables over that of the tables.

        First against exact tables for the inputs that the cut model has, then against those of
        the whole model on the same texts.
        """
        drift = math.sqrt(self.off_whole / self.length_whole) if self.whole else None
        return math.sqrt(self.off / self.length), drift


def scores(q: Tensor, k: Tensor, seen: Tensor | None = None) -> Tensor:
    """Return q k^T / 8 where a token may look, (n, n) or by head, and -inf elsewhere."""
    n = q.shape[2]
    seen = torch.ones(n, n, dtype=torch.bool).tril() if seen is None else seen.tril()
    return (q @ each_head(k).mT / math.sqrt(WIDTH)).masked_fill(~seen, -math.inf)


def ages(n: int) -> Tensor:
    """Return how many tokens ago each token (columns) was for each (rows)."""
    return torch.arange(n)[:, None] - torch.arange(n)


def exact(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Cut nothing."""
    return table(q, k), v


def sheets(count: int, *, masked: bool = True, rescaled: bool = False) -> Cut:
    """Keep the first singular sheets of each table, and hide what would look ahead.

    Not ``masked``, a token hears later ones as the sheets say; ``rescaled``, rows without their
    negative entries sum to 1 again. The right directions are eigenvectors of A^T A in float64, so
    that tables agree with those of a full SVD to 1e-6.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        a = table(q, k).double()
        right = torch.linalg.eigh(a.mT @ a)[1][..., -count:]
        used = a @ right @ right.mT
        used = used.tril() if masked else used
        if rescaled:
            used = used.clamp_min(0)
            used = used / used.sum(-1, keepdim=True).clamp_min(1e-9)
        return used.float(), v

    return cut


def window(count: int, first: int = 0) -> Cut:
    """See the newest ``count`` tokens, and the ``first`` of the text."""

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[2]
        seen = (ages(n) < count) | (torch.arange(n) < first)
        return scores(q, k, seen).softmax(-1), v

    return cut


def means(count: int) -> Cut:
    """See all tokens so far as the mean keys and values of ``count`` groups of neighbors.

    A group votes as often as it has tokens; groups are those of the storyteller's ``means``.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[2]
        i, j = torch.arange(n)[:, None], torch.arange(n)
        groups = (i + 1).clamp_max(count)
        group = (((j + 1) * groups - 1) // (i + 1)).clamp_max(count).masked_fill(j > i, count)
        sizes = torch.zeros(n, count + 1).scatter_add(1, group, torch.ones(n, n))
        logits = q @ each_head(k).mT / math.sqrt(WIDTH)
        group = group.expand_as(logits)
        sums = logits.new_zeros(*logits.shape[:3], count + 1).scatter_add(3, group, logits)
        sums = sums / sizes.clamp_min(1) + sizes.log()  # an empty group has a logit of -inf
        sums[..., count] = -math.inf
        shares = sums.softmax(-1) / sizes.clamp_min(1)
        return shares.gather(3, group), v

    return cut


def rounded(x: Tensor, bits: int, dim: int = -1) -> Tensor:
    """Round to 2^bits levels between the least and the largest entry along an axis."""
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    step = (high - low).clamp_min(1e-9) / (2**bits - 1)
    return ((x - low) / step).round() * step + low


def round_cache(bits: int, *, values: bool = True, by_channel: bool = False) -> Cut:
    """Round each head's key and value of a token.

    Keys ``by_channel`` share levels along the text instead: these know later tokens, too.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys = rounded(k, bits, -2 if by_channel else -1)
        return table(q, keys), rounded(v, bits) if values else v

    return cut


def round_centered(bits: int, mean: Tensor) -> Cut:
    """Round what keys have besides a mean key, (3, 64), taken before the rotation and kept."""

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        center = rotate(mean[:, None].expand(-1, k.shape[2], -1))
        return table(q, rounded(k - center, bits) + center), rounded(v, bits)

    return cut


def round_shifted(bits: int, mean: Tensor) -> Cut:
    """Round keys less one vector for all, (3, 64), which softmax does not see."""
    return lambda q, k, v: (table(q, rounded(k - mean[:, None], bits)), rounded(v, bits))


def hadamard(n: int) -> Tensor:
    """Return the orthogonal matrix of Sylvester, (n, n), for a power of two."""
    return torch.ones(1, 1) if n == 1 else torch.kron(PAIR, hadamard(n // 2))


PAIR = torch.tensor([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2)


def round_spread(bits: int) -> Cut:
    """Round keys and values after a fixed rotation that spreads large entries over all."""
    signs = torch.randint(2, (WIDTH,), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
    spread = hadamard(WIDTH) * signs

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        values = rounded(v @ spread.T, bits) @ spread
        return table(q @ spread.T, rounded(k @ spread.T, bits)), values

    return cut


def shift(vector: Tensor) -> Cut:
    """Subtract a vector, (3, 64), from all keys: it changes nothing."""
    return lambda q, k, v: (table(q, k - vector[:, None]), v)


def flat(x: Tensor) -> Tensor:
    """Put the groups of a token side by side, (batch, n, 192)."""
    return x.transpose(1, 2).flatten(2)


def in_groups(x: Tensor) -> Tensor:
    """Undo `flat`."""
    return x.unflatten(2, (-1, WIDTH)).transpose(1, 2)


def project_keys(p: Tensor, *, after: bool = False, bits: int | None = None) -> Cut:
    """Replace the keys of a token by ``p``, (192, 192), times them, before or ``after`` rotation.

    With ``bits``, the numbers along p's directions are rounded, too.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys = flat(k if after else rotate(k, -1))
        if bits:
            basis = torch.linalg.svd(p)[0][:, : round(float(p.trace()))]  # p is orthogonal here
            keys = rounded(keys @ basis, bits) @ basis.T
        keys = in_groups(keys @ p.T)
        return table(q, keys if after else rotate(keys)), v

    return cut


def project_values(p: Tensor) -> Cut:
    """Replace the values of a token by ``p``, (192, 192), times them."""
    return lambda q, k, v: (table(q, k), in_groups(flat(v) @ p.T))


def project_both(p: Tensor) -> Cut:
    """Replace keys before rotation and values, 384 numbers of a token, by ``p`` times them."""

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([flat(rotate(k, -1)), flat(v)], dim=2) @ p.T
        keys, values = map(in_groups, both.chunk(2, dim=2))
        return table(q, rotate(keys)), values

    return cut


def keep_unlike(count: int) -> Cut:
    """See the newest half, and of the older tokens those whose keys are least like the mean key.

    Likeness is the cosine, before rotation, with the mean of all keys so far.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        n = q.shape[2]
        keys = F.normalize(rotate(k, -1), dim=-1)
        mean = F.normalize(keys.cumsum(2), dim=-1)  # only its direction counts
        older = ages(n) >= count // 2
        likeness = (mean @ keys.mT).masked_fill(~older, math.inf)  # (batch, 3, n, n)
        chosen = likeness.argsort(-1).argsort(-1) < count - count // 2
        return scores(q, k, each_head(chosen & older | ~older)).softmax(-1), v

    return cut


def keep_heard(count: int) -> Cut:
    """Keep the newest half, and of the older tokens those that the group has heard most so far.

    What was dropped stays away.
    """

    def cut(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        batch, groups, n, _ = k.shape
        logits, half = scores(q, k), count // 2
        used, heard = torch.zeros_like(logits), torch.zeros(batch, groups, n)
        kept = torch.zeros(batch, groups, n, dtype=torch.bool)
        for i in range(n):
            kept[..., i] = True
            if i >= count:
                old = slice(0, i - half + 1)
                least = heard[..., old].masked_fill(~kept[..., old], math.inf).argmin(-1)
                kept.scatter_(2, least[..., None], False)
            used[:, :, i] = logits[:, :, i].masked_fill(~each_head(kept), -math.inf).softmax(-1)
            heard += used[:, :, i].unflatten(1, (groups, -1)).sum(2)
        return used, v

    return cut


def linear(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Put the features elu(x) + 1 in place of the exponential, with nothing trained for it."""
    left, right = (F.elu(x / WIDTH**0.25) + 1 for x in (q, each_head(k)))
    used = (left @ right.mT).tril()
    return used / used.sum(-1, keepdim=True), v
