r"""Remember a sequence in a state of fixed size, or in a short past with means of what is older.

Chapter ``book/10-states.md``. Keys ``k`` (n, d) and values ``v`` (n, d_v) are written into a
**state** S (d, d_v), which a query reads as $S^\top q$. Adding $k v^\top$ keeps all pairs, mixed.
The **delta rule** (Schlag, Irie and Schmidhuber 2021, arXiv:2102.11174) first takes out a share
$\beta$ of what the state holds under the key, and a decay $a_t$ shrinks the old state: $S_t = (I -
\beta_t k_t k_t^\top)\, a_t S_{t-1} + \beta_t k_t v_t^\top$.

`delta_attention` and `window_attention` take ``q`` (batch, heads, n, d), ``k`` (batch, groups, n,
d) and ``v`` (batch, groups, n, d_v), with as many groups as heads, or fewer that heads share.
``token_mask`` (batch, n) is **True for a real token**; PyTorch's ``key_padding_mask`` means the
opposite. Hidden tokens do not count, whatever they hold. ``state`` is what earlier tokens left, as
in ``attention``. Results have the type of ``q``. `delta_attention` adds half precision up in
float32; in `window_attention`, $\ln$ of the votes is rounded to the type of ``q``.
"""

import math
from typing import Any

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor

from lowrank_tutor._checks import as_matrix, check_bool, check_integer, check_real
from lowrank_tutor._tensors import (
    State,
    attend,
    check_attention_inputs,
    check_floating,
    check_like,
    check_plain,
    check_state,
    check_tensor,
    without_autocast,
    zero_hidden,
)
from lowrank_tutor.rank import numerical_rank

__all__ = [
    "block_ranks",
    "causal_decay",
    "delta_attention",
    "linear_state",
    "recall_error",
    "window_attention",
    "wy",
]

BLOCK = 128  # queries whose weights `window_attention` writes out at a time


def linear_state(
    k: Tensor,
    v: Tensor,
    *,
    decay: float | Tensor | None = None,
    delta: float | Tensor | None = None,
) -> Tensor:
    r"""Write keys and values into a state (d, d_v), one after the other, and return it.

    Its rank is at most min(n, d).

    Parameters
    ----------
    decay : float or Tensor of n numbers, optional
        $a_t$, from 0 to 1: what is left of the state. By default all of it.
    delta : float or Tensor of n numbers, optional
        $\beta_t$, from 0 to 2: the share that the delta rule replaces. By default $k_t v_t^\top$ is
        only added.

    Examples
    --------
    >>> import torch
    >>> k, v = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[5.0], [0.0]])
    >>> (k @ linear_state(k, v)).flatten().tolist()  # the second key reads 3 where it wrote 0
    [5.0, 3.0]
    """
    k, v = _pairs(k, v)
    dtype = k.dtype
    kept = _rates(1.0 if decay is None else decay, "decay", k)
    share = None if delta is None else _rates(delta, "delta", k)
    k, v = (part.to(torch.promote_types(dtype, torch.float32)) for part in (k, v))
    state = k.new_zeros(k.shape[1], v.shape[1])
    for i in range(len(k)):
        state = kept[i] * state
        # The delta rule takes out what the state holds.
        new = v[i] if share is None else share[i] * (v[i] - k[i] @ state)
        state = state + torch.outer(k[i], new)
    return state.to(dtype)


def recall_error(state: Tensor, k: Tensor, v: Tensor) -> float:
    r"""Return the relative error of what keys read from a state, $\|K S - V\|_F / \|V\|_F$.

    ``state`` (d, d_v) is what `linear_state` returns, ``k`` (n, d) are keys, and ``v`` (n, d_v) the
    values that they should read, not all zero.

    >>> import torch
    >>> k, v = torch.eye(2), torch.tensor([[3.0], [4.0]])
    >>> recall_error(linear_state(k, v), k, v), recall_error(torch.zeros(2, 1), k, v)
    (0.0, 1.0)
    """
    k, v = _pairs(k, v)
    check_like("state", state, (k.shape[1], v.shape[1]), "k", k)
    wide = torch.promote_types(k.dtype, torch.float32)
    k, v, state = (part.detach().to(wide) for part in (k, v, state))
    if not v.any():
        raise ValueError("v must be non-zero, got zeros: no error is relative to them")
    unit = v.abs().amax()  # so that no square overflows or vanishes
    v, state = v / unit, state / unit
    return float(torch.linalg.vector_norm(k @ state - v) / torch.linalg.vector_norm(v))


def delta_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    chunk: int = 64,
    state: Tensor | None = None,
    token_mask: Tensor | None = None,
    return_state: bool = False,
) -> Tensor | Any:
    r"""Read a state that the delta rule writes, a chunk of tokens at a time.

    With decays this is Gated DeltaNet and KDA. Token t reads $S_t^\top q_t$, (batch, heads, n,
    d_v). Queries are not scaled and keys not normalized: with keys of length 1 the rule erases.
    Where $\beta_t \|k_t\|^2$ is above 2, the state grows, in the end to infinity and NaN. Within a
    chunk one triangular system gives what each token adds, and the rest is products of matrices
    (Yang et al. 2024, arXiv:2406.06484; decays: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464;
    a decay for each number of a key: Kimi Team 2025, arXiv:2510.26692). Chunks of any size give the
    same but for rounding.

    Parameters
    ----------
    beta : Tensor, shape (batch, groups, n)
        Shares, from 0 to 2. Beside half precision they may be in float32, and so may the decays.
    log_decay : Tensor, shape (batch, groups, n) or (batch, groups, n, d), optional
        $\ln a_t$, at most 0: one for the whole state or one for each of its d rows. After $-\infty$
        nothing is left of what came before, if that was finite. By default nothing decays.
    chunk : int
        Tokens in a chunk, at least 1. With 1 it is the recurrence itself. A decay for each number
        takes memory for chunk times d numbers a token.
    state : Tensor, shape (batch, groups, d, d_v), optional
        What earlier tokens left, by default zeros.
    token_mask : bool Tensor, shape (batch, n), optional
        A hidden token leaves the state as it is; its query reads it like any other.
    return_state : bool
        Whether to return the new state beside the output, in float32 at least.

    Examples
    --------
    >>> import torch
    >>> parts = torch.randn(3, 1, 2, 100, 8, dtype=torch.float64)
    >>> q, k, v = torch.nn.functional.normalize(parts, dim=4)
    >>> beta = torch.full((1, 2, 100), 0.5, dtype=torch.float64)
    >>> chunks, steps = (delta_attention(q, k, v, beta, chunk=size) for size in (64, 1))
    >>> torch.allclose(chunks, steps)
    True
    """
    check_attention_inputs(q, k, v, token_mask, causal=True)
    return_state = check_bool(return_state, "return_state")
    beta = _rate("beta", beta, k, token_mask, tuple(k.shape[:3]))
    if log_decay is None:
        log_decay = torch.zeros_like(beta)
    else:
        each = check_plain("log_decay", log_decay).ndim == 4
        axes = tuple(k.shape[: 4 if each else 3])
        log_decay = _rate("log_decay", log_decay, k, token_mask, axes)
    shape = (*k.shape[:2], k.shape[3], v.shape[3])
    state = q.new_zeros(shape) if state is None else check_tensor("state", state, shape)
    check_floating("state", state)
    chunk = check_integer(chunk, "chunk")
    wide = torch.promote_types(q.dtype, torch.float32)
    outputs = []
    with without_autocast(q.device):
        state = state.to(wide)
        real = (zero_hidden(part, token_mask) for part in (k, v))
        # Split once: the gradient of a slice is as long as the whole, and every chunk would have
        # its own.
        parts = (torch.split(part.to(wide), chunk, dim=2) for part in (q, *real, beta, log_decay))
        for tokens in zip(*parts, strict=True):
            out, state = _chunk(state, *tokens)
            outputs.append(out)
    out = torch.cat(outputs, dim=2).to(q.dtype)
    return (out, state) if return_state else out


def _chunk(
    state: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    log_decay: Tensor,
) -> tuple[Tensor, Tensor]:
    r"""Read and write a chunk of tokens at once.

    One triangular system gives what is written, all $\tilde v_t$.
    """
    # For each pair of tokens the logarithms between them are added up: a difference of two sums
    # from the start would lose its digits after a strong decay, and be NaN after one of -inf.
    later = torch.ones(k.shape[2], k.shape[2], dtype=torch.bool, device=k.device).tril(-1)
    between = torch.where(later[:, :, None], log_decay[:, :, :, None], 0).cumsum(dim=2)
    ratios = between.exp()  # what is left at token i of what token j wrote, (b, g, c, c, 1 or d)
    left = log_decay.cumsum(dim=2).exp()  # and of the state before the chunk, (b, g, c, 1 or d)
    system = beta * _products(k, k, ratios).tril(-1)
    new = beta * (v - (left * k) @ state)
    written = torch.linalg.solve_triangular(system, new, upper=False, unitriangular=True)
    kept = left[:, :, -1, :, None] * state + (ratios[:, :, -1] * k).mT @ written
    heads = q.shape[1] // max(k.shape[1], 1)  # of a group
    q = q.reshape(*k.shape[:2], heads, *k.shape[2:])  # (b, g, heads, c, d)
    left, state, written = (part[:, :, None] for part in (left, state, written))
    weights = _products(q, k[:, :, None], ratios[:, :, None]).tril()
    out = (left * q) @ state + weights @ written
    return out.flatten(1, 2), kept


def _products(x: Tensor, y: Tensor, ratios: Tensor) -> Tensor:
    """Return the inner products of rows x_i and y_j, (..., c, c).

    Their entries are multiplied by ``ratios``, (..., c, c, 1 or d).
    """
    if ratios.shape[-1] == 1:  # the sum below, with fewer and larger steps
        return ratios[..., 0] * (x @ y.mT)
    products: Tensor = torch.einsum("...id,...jd,...ijd->...ij", x, y, ratios)
    return products


def wy(k: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    r"""Write a product of n factors $I - \beta_t k_t k_t^\top$ as $I - K^\top Y$.

    The last factor stands on the left. The vectors are the rows of ``k`` (n, d), and ``beta`` (n,)
    are any numbers. $Y = T K$, where T is the inverse of $I$ plus the part of
    $\operatorname{diag}(\beta) K K^\top$ strictly below its diagonal, times
    $\operatorname{diag}(\beta)$ (Bischof and Van Loan 1987, doi:10.1137/0908009; in attention Yang
    et al. 2024, arXiv:2406.06484). It returns ``y`` (n, d), with which the product is ``I - k.T @
    y``, and ``t`` (n, n), lower triangular.

    >>> import torch
    >>> y, t = wy(torch.eye(2), torch.tensor([1.0, 0.5]))
    >>> (torch.eye(2) - torch.eye(2).T @ y).tolist()
    [[0.0, 0.0], [0.0, 0.5]]
    """
    check_tensor("k", k, ("n", "d"))
    check_like("beta", beta, (k.shape[0],), "k", k)
    check_floating("k", k)
    wide = torch.promote_types(k.dtype, torch.float32)
    rows, shares = k.to(wide), beta.to(wide)
    system = shares[:, None] * (rows @ rows.mT).tril(-1)
    t = torch.linalg.solve_triangular(system, torch.diag(shares), upper=False, unitriangular=True)
    return (t @ rows).to(k.dtype), t.to(k.dtype)


def causal_decay(a: Tensor) -> Tensor:
    r"""Write a recurrence as a matrix, $L_{ij} = a_{j+1} \cdots a_i$.

    This much is left at time i of what was written at time j. $y = L x$ is the recurrence $y_i =
    a_i y_{i-1} + x_i$. Above the diagonal L is zero; blocks below it have rank at most 1 (Dao and
    Gu 2024, arXiv:2405.21060). The decays ``a`` (n,) are any numbers; the first is never used.

    >>> import torch
    >>> causal_decay(torch.tensor([1, 2, 1, 3])).tolist()
    [[1, 0, 0, 0], [2, 1, 0, 0], [2, 1, 1, 0], [6, 3, 3, 1]]
    """
    check_tensor("a", a, ("n",))
    n = len(a)
    below = torch.ones(n, n, dtype=torch.bool, device=a.device).tril(-1)
    factors = torch.where(below, a[:, None], torch.ones_like(a)[:, None])
    return factors.cumprod(dim=0).tril()


def block_ranks(m: Tensor, *, rtol: float | None = None) -> list[int]:
    """Return the rank of each block below the diagonal.

    A block has rows from i on and columns before i, for i from 1 to n - 1. For the matrix of
    `causal_decay` it is at most 1, for a recurrence with a state of d numbers at most d. ``m`` (n,
    n) is real and finite, of at least two rows. Singular values below the share ``rtol`` of the
    block's largest are zero, by default as in ``rank.numerical_rank``.

    >>> import torch
    >>> block_ranks(causal_decay(torch.tensor([1.0, 2.0, 1.0, 3.0])))
    [1, 1, 1]
    """
    check_tensor("m", m, ("n", "n"))
    n = m.shape[0]
    if n < 2 or m.shape[1] != n or m.is_complex():
        raise ValueError(
            "m must be real and square, of at least two rows, "
            f"got {m.dtype} of shape {tuple(m.shape)}"
        )
    table = as_matrix(m.detach().cpu().double().numpy(), "m")
    # NumPy has no bfloat16, so the tolerance for the type of m is computed here.
    eps = torch.finfo(m.dtype if m.is_floating_point() else torch.float64).eps
    usual = {i: min(max(i, n - i) * eps, 0.5) for i in range(1, n)}
    return [numerical_rank(table[i:, :i], rtol=usual[i] if rtol is None else rtol) for i in usual]


def window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    window: int,
    m: int,
    votes: bool = True,
    token_mask: Tensor | None = None,
    state: State | None = None,
    return_state: bool = False,
) -> Tensor | Any:
    r"""Attend to the last tokens exactly, and to older ones as means of ``m`` at a time.

    Later ones are never seen. Tokens are cut into groups of ``m``. A query sees the last ``window``
    tokens, its own among them, as they are, and the up to ``m - 1`` tokens before these whose group
    reaches into them. Of each earlier group it sees the mean key and the mean value: Linformer with
    averages, made causal. With m = 1 it is exact causal attention, whatever the window: the mean of
    one token is that token. The result is (batch, heads, n_queries, d_v); a query that sees no real
    token gives zero.

    A hidden token keeps its place in its group and in the window. So padding before a sequence
    changes no result if its length is a multiple of ``m``, and otherwise other tokens share a mean;
    padding after a sequence changes none. For a window alone, give ``scaled_dot_product_attention``
    the mask ``torch.ones(n, n, dtype=bool).tril().triu(1 - window)``; for one to both sides, or
    tokens that see all and are seen by all, use PyTorch's FlexAttention, as the page
    ``book/use-linformer.md`` does.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries of all tokens or, where the keys come from a cache, of the last ones.
    window, m : int
        Number of last tokens that are always exact, and tokens in a group, both at least 1.
    votes : bool
        Whether $\ln$ of the number of a group's real tokens is added to its logit, so that it
        weighs as much as they would with its key; otherwise it weighs like one token.
    state : tuple of Tensor, optional
        What earlier tokens left, with the same ``window`` and ``m``: the key and the value of each
        group of tokens that is seen as a mean from now on, and which of its tokens are real; the
        key and the value of each later token, and whether it is real. These groups and tokens are
        the third axis.
    return_state : bool
        Whether to return the new state beside the output.

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 2, 64, 8, dtype=torch.float64)
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    >>> torch.allclose(window_attention(q, k, v, window=16, m=1), exact)
    True
    """
    check_attention_inputs(q, k, v, token_mask)
    batch, _, n, _ = k.shape
    if not 1 <= q.shape[2] <= n:
        raise ValueError(f"q must hold between 1 and {n} tokens, as k, got {q.shape[2]}")
    window, m = check_integer(window, "window"), check_integer(m, "m")
    votes = check_bool(votes, "votes")
    return_state = check_bool(return_state, "return_state")
    real = k.new_ones(batch, n, dtype=torch.bool) if token_mask is None else token_mask
    tokens = [zero_hidden(k, token_mask), zero_hidden(v, token_mask), real[:, None, :, None]]
    means: list[Tensor] = []
    past = start = 0  # tokens so far, and those of which only means are left
    if state is not None:
        shapes = [(*part.shape[:2], "n", part.shape[3]) for part in tokens]
        parts = check_state(state, *shapes[:2], (batch, 1, "n", m), *shapes)
        start = parts[0].shape[2] * m
        past = start + parts[3].shape[2]
        if start != _averaged(past, window, m):
            raise ValueError(f"window must be that of the state, got {window}")
        means, tokens = parts[:3], _joined(parts[3:], tokens)
    k, v, real = tokens
    means = _joined(means, _groups(k, v, real, m))
    # (batch, groups, n // m, d), (batch, groups, n // m, d_v), (batch, 1, n // m, m)
    keys, values, counted = means
    log_votes = counted[:, 0].sum(dim=2).to(torch.promote_types(k.dtype, torch.float32)).log()
    log_votes = log_votes if votes else torch.where(log_votes.isinf(), log_votes, 0)
    outputs = []
    start_of_queries = past + n - q.shape[2]
    for begin in range(start_of_queries, past + n, BLOCK):
        end = min(begin + BLOCK, past + n)
        # Groups that a query may use.
        first, last = (_averaged(query, window, m) // m for query in (begin, end - 1))
        near = slice(first * m - start, end - start)
        # (batch, 1, queries, seen)
        added = _added(begin, end, first, last, window, m, log_votes, real[:, 0, near, 0])
        seen_keys = torch.cat([keys[:, :, :last], k[:, :, near]], dim=2)
        seen_values = torch.cat([values[:, :, :last], v[:, :, near]], dim=2)
        queries = q[:, :, begin - start_of_queries : end - start_of_queries]
        outputs.append(_attend_added(queries, seen_keys, seen_values, added))
    out = torch.cat(outputs, dim=2)
    if not return_state:
        return out
    cut = _averaged(past + n, window, m)
    parts = [*(part[:, :, : cut // m] for part in means), *(x[:, :, cut - start :] for x in tokens)]
    return out, tuple(part.clone() for part in parts)  # a view would keep all tokens in memory


def _pairs(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Check keys and values, a row each."""
    check_tensor("k", k, ("n", "d"))
    check_like("v", v, (k.shape[0], "d_v"), "k", k)
    check_floating("k", k)
    if k.numel() == 0:
        raise ValueError(f"k must hold at least one number of one key, got shape {tuple(k.shape)}")
    return k, v


def _rates(value: float | Tensor, name: str, k: Tensor) -> Tensor:
    """Return a decay or share for each token, given one for all or one each."""
    if isinstance(value, Tensor):
        return check_like(name, value, (len(k),), "k", k)
    number = check_real(value, name, "0 or more", 0)
    wide = torch.promote_types(k.dtype, torch.float32)
    return torch.full((len(k),), number, dtype=wide, device=k.device)


def _rate(
    name: str,
    value: Tensor,
    k: Tensor,
    token_mask: Tensor | None,
    axes: tuple[int, ...],
) -> Tensor:
    """Return shares or decays, (batch, groups, n, width), with 0 for hidden tokens."""
    wide = torch.promote_types(k.dtype, torch.float32)
    like = k.new_empty(0, dtype=wide) if check_plain(name, value).dtype == wide else k
    value = check_like(name, value, axes, "k", like)
    value = value[..., None] if value.ndim == 3 else value
    return value if token_mask is None else value.masked_fill(~token_mask[:, None, :, None], 0)


def _averaged(query: int, window: int, m: int) -> int:
    """Return how many of the tokens before a query it sees as means only."""
    return max(0, query + 1 - window) // m * m


def _joined(older: list[Tensor], newer: list[Tensor]) -> list[Tensor]:
    """Put tokens after older ones, if there are any."""
    if not older:
        return newer
    pairs = zip(older, newer, strict=True)
    return [torch.cat([old.to(new.dtype), new], dim=2) for old, new in pairs]


def _groups(k: Tensor, v: Tensor, real: Tensor, m: int) -> list[Tensor]:
    """Average whole groups of m keys and values, and return which tokens are real.

    The latter is (batch, 1, count, m).
    """
    whole = k.shape[2] // m * m

    def split(part: Tensor) -> Tensor:  # (batch, groups, count, m, width)
        return part[:, :, :whole].reshape(*part.shape[:2], whole // m, m, part.shape[3])

    real = split(real)
    count = real.sum(dim=3, keepdim=True).clamp(min=1)
    shares = real.to(k.dtype) / count  # before the sum, which could overflow
    return [*((shares * split(part)).sum(dim=3) for part in (k, v)), real[..., 0]]


def _added(
    start: int,
    end: int,
    first: int,
    last: int,
    window: int,
    m: int,
    log_votes: Tensor,
    real: Tensor,
) -> Tensor:
    """Build what is added to the logits of queries start .. end - 1.

    It holds votes of groups, and -inf where they may not look. Columns are the groups 0 .. last -
    1, and then the tokens from the group ``first`` on, of which some are ``real``.
    """
    device = log_votes.device
    queries = torch.arange(start, end, device=device)[:, None]
    groups = (queries + 1 - window).clamp(min=0) // m  # how many a query uses
    tokens = torch.arange(first * m, end, device=device)
    far = torch.arange(last, device=device) < groups
    near = (tokens >= groups * m) & (tokens <= queries)
    added_far = log_votes[:, None, :last].masked_fill(~far, -math.inf)
    hidden = ~(near & real[:, None])
    added_near = log_votes.new_zeros(hidden.shape).masked_fill(hidden, -math.inf)
    return torch.cat([added_far, added_near], dim=2)[:, None]


def _attend_added(q: Tensor, keys: Tensor, values: Tensor, added: Tensor) -> Tensor:
    """Attend with something added to the logits.

    Where that hides all, the result is zero, not NaN.
    """
    empty = (added == -math.inf).all(dim=3, keepdim=True)
    mask = added.masked_fill(empty, 0).to(q.dtype)
    return attend(q, keys, values, mask).masked_fill(empty, 0)
