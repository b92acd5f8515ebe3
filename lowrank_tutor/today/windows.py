"""Attend to a short past exactly, and to what is older as means."""

import math

import torch
from torch.nn import functional

from lowrank_tutor._checks import check_bool, check_size
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    shape_of,
    zero_hidden,
)

BLOCK = 128  # queries of which `window_attention` writes the weights out at a time


def window_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    window: int,
    m: int,
    votes: bool = True,
    gates: torch.Tensor | None = None,
    token_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Attend to the last tokens exactly, and to older ones as means of ``m`` at a time; never to later ones.

    Tokens are cut into groups of ``m``. The last ``window`` tokens, the query's own among them, are seen as they are,
    and so are up to ``m - 1`` before them, whose group is not over yet. Of each earlier group a query sees the mean key
    and the mean value. With ``votes``, $\ln m$ is added to the logit of a group, so that it weighs as much as ``m``
    tokens with that key. With m = 1 it is exact causal attention. This is Linformer with averages, made causal.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n, d)
        Queries.
    k : Tensor, shape (batch, heads, n, d)
        Keys.
    v : Tensor, shape (batch, heads, n, d_v)
        Values.
    window : int
        Number of last tokens that are always exact, at least 1.
    m : int
        Tokens in a group, at least 1.
    votes : bool
        Whether a group votes with $\ln$ of the number of its real tokens, or like one token.
    gates : Tensor, shape (batch, heads, n, 1) or (batch, heads, n, d), optional
        Logits of the tokens within their group: its mean is weighted by their softmax, for each of the d numbers apart
        if there are as many (values must then have d numbers, too). Without them all tokens count alike.
    token_mask : bool Tensor, shape (batch, n), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden keys and values do not
        count, whatever they hold. A query that sees no real token gives zero.

    Returns
    -------
    Tensor, shape (batch, heads, n, d_v)

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 2, 64, 8, dtype=torch.float64)
    >>> exact = window_attention(q, k, v, window=16, m=1)
    >>> torch.allclose(exact, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    True

    References
    ----------
    This book, chapter 7, for the averages; gates as in the compressed attention of DeepSeek-V4.
    """
    check_attention_inputs(q, k, v)
    n, window, m = k.shape[2], check_size(window, "window"), check_size(m, "m")
    votes = check_bool(votes, "votes")
    if q.shape[2] != n:
        raise ValueError(f"q must hold as many tokens as k, got shapes {shape_of(q)} and {shape_of(k)}")
    _check_gates(gates, k, v)
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], n))
        k, v = zero_hidden(k, token_mask), zero_hidden(v, token_mask)

    keys, values, log_votes = _groups(k, v, m, gates, token_mask)  # (batch, heads, n // m, ...), (batch, n // m)
    log_votes = log_votes if votes else torch.where(log_votes.isinf(), log_votes, 0)
    parts = []
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        first, last = (max(0, query + 1 - window) // m for query in (start, end - 1))  # groups that a query may use
        near = slice(first * m, end)
        added = _added(start, end, first, last, window, m, log_votes, token_mask)  # (batch, 1, queries, seen)
        seen_keys = torch.cat([keys[:, :, :last], k[:, :, near]], dim=2)
        seen_values = torch.cat([values[:, :, :last], v[:, :, near]], dim=2)
        parts.append(_attend_added(q[:, :, start:end], seen_keys, seen_values, added))
    return torch.cat(parts, dim=2)


def _groups(
    k: torch.Tensor, v: torch.Tensor, m: int, gates: torch.Tensor | None, token_mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Average whole groups of m keys and values, and give the logarithm of the number of real tokens in each."""
    batch, heads, n, _ = k.shape
    count, whole = n // m, n // m * m
    real = torch.ones(batch, n, dtype=torch.bool, device=k.device) if token_mask is None else token_mask
    real = real[:, :whole].view(batch, count, m)
    logits = k.new_zeros(batch, heads, n, 1) if gates is None else gates
    logits = logits[:, :, :whole].reshape(batch, heads, count, m, logits.shape[3])
    logits = logits.masked_fill(~real[:, None, :, :, None], -math.inf)
    empty = ~real.any(dim=2)[:, None, :, None, None]
    shares = torch.softmax(logits.masked_fill(empty, 0), dim=3)  # an empty group averages zeros

    def mean(part: torch.Tensor) -> torch.Tensor:
        cut = part[:, :, :whole].reshape(batch, heads, count, m, part.shape[3])
        return (shares * cut).sum(dim=3).to(part.dtype)

    return mean(k), mean(v), real.sum(dim=2).to(torch.promote_types(k.dtype, torch.float32)).log()


def _added(
    start: int,
    end: int,
    first: int,
    last: int,
    window: int,
    m: int,
    log_votes: torch.Tensor,
    token_mask: torch.Tensor | None,
) -> torch.Tensor:
    """Say what is added to the logits of queries start .. end - 1: votes of groups, and -inf where they may not look.

    Columns are the groups 0 .. last - 1, and then the tokens from the group ``first`` on.
    """
    device = log_votes.device
    queries = torch.arange(start, end, device=device)[:, None]
    groups = (queries + 1 - window).clamp(min=0) // m  # how many a query uses
    tokens = torch.arange(first * m, end, device=device)
    far = torch.arange(last, device=device) < groups
    near = (tokens >= groups * m) & (tokens <= queries)
    added_far = log_votes[:, None, :last].masked_fill(~far, -math.inf)
    hidden = ~near if token_mask is None else ~(near & token_mask[:, None, first * m : end])
    added_near = log_votes.new_zeros(hidden.shape).masked_fill(hidden, -math.inf)
    return torch.cat([added_far, added_near.expand(len(added_far), -1, -1)], dim=2)[:, None]


def _attend_added(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Attend with something added to the logits; where that hides all, the result is zero, not NaN."""
    empty = (added == -math.inf).all(dim=3, keepdim=True)
    mask = added.masked_fill(empty, 0).to(q.dtype)
    mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    return mixed.masked_fill(empty, 0)


def _check_gates(gates: torch.Tensor | None, k: torch.Tensor, v: torch.Tensor) -> None:
    if gates is None:
        return
    check_tensor("gates", gates, (*k.shape[:3], "1 or d"))
    check_same_device_and_dtype("gates", gates, "q", k)
    if gates.shape[3] != 1 and not gates.shape[3] == k.shape[3] == v.shape[3]:
        raise ValueError(
            f"gates must have one number a token, or as many as keys and as values, got shapes {shape_of(gates)}, "
            f"{shape_of(k)} and {shape_of(v)}"
        )
