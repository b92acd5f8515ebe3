r"""Compute attention by softmax, or by kernels that never form the weights.

Chapters ``book/06-attention.md`` and ``book/07-linformer.md``. Letters: ``q`` (batch, heads,
n_queries, d) are queries, ``k`` (batch, groups, n_keys, d) keys, ``v`` (batch, groups, n_keys, d_v)
values. There are as many groups as heads, or fewer, each shared by equally many heads in a row
(**grouped queries**, GQA). ``token_mask`` (batch, n_keys) is **True for a real token**; PyTorch's
``key_padding_mask`` means the opposite. Hidden keys and values do not count, whatever they hold,
and a query that sees no real token gives zeros. Results are (batch, heads, n_queries, d_v), of the
type of ``q``. P is the matrix of weights, a row for each query; $\varphi(x)$ are the m features of
a query or key.

**Token by token**, here, in ``states`` and in ``caches``: ``state`` is what earlier tokens left, by
default nothing. With ``return_state=True`` a call returns its output and the new state, which goes
into the next call, for one token or many; ``token_mask`` speaks of the new tokens alone. A state is
several tensors, the batch first, so that ``[part[order] for part in state]`` puts it in another
order. That of `delta_attention` is one tensor, ``state[order]``.

Where a weight is $\varphi(q_i)^\top \varphi(k_j)$, the output of query i is $\varphi(q_i)^\top S /
\varphi(q_i)^\top z$ with $S = \sum_j \varphi(k_j) v_j^\top$ and $z = \sum_j \varphi(k_j)$. Half
precision is added up in float32. In the causal form query i sees only the keys up to i, and there
must be as many queries as keys.

Seen feature by feature, feature f gives the values an average of its own, row f of S divided by
$z_f$, and a query weighs these m averages by $\mathrm{softmax}_f(\ln \varphi_f(q) + \ln z_f)$, in
which nothing vanishes or overflows. In the causal form every query has sums of its own. There z is
the sum for one more value, 1 for real tokens and 0 for hidden ones, and each row of features is
stored divided by a factor, so that its largest is near 1: a query's factor cancels, a key's is
carried as its logarithm.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import (
    State,
    attend,
    check_attention_inputs,
    check_causal,
    check_device,
    check_dtype,
    check_generator,
    check_heads,
    check_like,
    check_state,
    each_head,
    is_transformed,
    softmax_mask,
    without_autocast,
    zero_hidden,
)

__all__ = [
    "Cost", "attention_weights", "linear_attention", "orthogonal_features", "performer_attention",
    "softmax_attention", "softmax_cost",
]  # fmt: skip

CHUNK = 64  # tokens whose weights on one another the causal form writes out


class Cost(NamedTuple):
    """The cost of one forward pass of a self-attention layer, for one sequence.

    Attributes
    ----------
    parameters : int
        Learned numbers, the bias of the last linear layer among them.
    flops : int
        Floating-point operations in the matrix products, two for each multiplication with its
        addition. Softmax, scaling and bias are left out, as PyTorch's ``FlopCounterMode`` leaves
        them out.
    scores : int
        Numbers in the score matrices of all heads. Fused kernels keep only a small part of them at
        a time.
    """

    parameters: int
    flops: int
    scores: int

    def with_feedforward(self, n: int, dim: int, feedforward: int | None) -> "Cost":
        r"""Add the second half of an encoder layer, unless its width is None.

        Two linear maps, from D to that width $D_f$ and back, take $4 n D D_f$ operations and have
        $2 D D_f + D_f + D$ parameters; the layer's two norms have $4 D$ more.
        """
        if feedforward is None:
            return self
        width = check_integer(feedforward, "feedforward")
        parameters = self.parameters + 2 * dim * width + width + 5 * dim
        return self._replace(parameters=parameters, flops=self.flops + 4 * n * dim * width)


def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    token_mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    r"""Average the values, weighted by the softmax of how each query scores the keys.

    $\mathrm{softmax}(Q K^\top / \sqrt{d})\, V$ (Vaswani et al. 2017, arXiv:1706.03762) by PyTorch's
    fused kernels: exact, and without the matrix of weights in memory (except on a CPU where ``d_v``
    differs from ``d``). With ``causal`` a token attends only to itself and those before it; with
    ``causal`` and ``token_mask`` there is a mask of n² bools in memory, on a CPU of n² numbers.

    >>> import torch
    >>> q, k = torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 3, 2)
    >>> softmax_attention(q, k, torch.tensor([[[[1.0], [2.0], [6.0]]]])).item()
    3.0
    """
    check_attention_inputs(q, k, v, token_mask, causal=causal)
    if token_mask is None:
        return attend(q, k, v, causal=causal)
    keys, values = zero_hidden(k, token_mask), zero_hidden(v, token_mask)
    return attend(q, keys, values, softmax_mask(token_mask, q.shape[2] if causal else None))


def attention_weights(
    q: Tensor,
    k: Tensor,
    *,
    token_mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    r"""Write out $P = \mathrm{softmax}(Q K^\top / \sqrt{d})$, (batch, heads, n_queries, n_keys).

    Fused kernels avoid this matrix. Hidden keys have weight 0, and with ``causal`` later ones, too;
    each row adds up to 1, unless all its keys are hidden.

    >>> import torch
    >>> attention_weights(torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 4, 2)).tolist()
    [[[[0.25, 0.25, 0.25, 0.25]]]]
    """
    check_attention_inputs(q, k, k, token_mask, causal=causal)
    wide = torch.promote_types(q.dtype, torch.float32)  # a product of half precision may overflow
    real = k.new_ones(1, k.shape[2], dtype=torch.bool) if token_mask is None else token_mask
    seen = softmax_mask(real, q.shape[2] if causal else None)
    with without_autocast(q.device):
        keys = each_head(zero_hidden(k, token_mask), q.shape[1]).to(wide)
        logits = q.to(wide) @ keys.mT / math.sqrt(q.shape[3])  # (batch, heads, n_queries, n_keys)
        weights = torch.softmax(logits.masked_fill(~seen, -math.inf), dim=3)
    if token_mask is None:
        return weights.to(q.dtype)
    return weights.masked_fill(~token_mask[:, None, None, :], 0).to(q.dtype)


def softmax_cost(n: int, *, dim: int, heads: int, feedforward: int | None = None) -> Cost:
    r"""Count for a softmax layer $4 D^2 + D$ parameters and $8 n D^2 + 4 n^2 D$ operations.

    ``n`` are tokens, ``dim`` is the width D of the model. ``heads``, which must divide it, only
    changes the number of score matrices. ``feedforward`` makes it a whole encoder layer: see
    `Cost.with_feedforward`.

    >>> softmax_cost(n=1024, dim=512, heads=8)
    Cost(parameters=1049088, flops=4294967296, scores=8388608)
    """
    n, dim = check_integer(n, "n"), check_integer(dim, "dim")
    heads = check_heads(heads, dim)
    cost = Cost(4 * dim**2 + dim, 8 * n * dim**2 + 4 * n**2 * dim, heads * n**2)
    return cost.with_feedforward(n, dim, feedforward)


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    token_mask: Tensor | None = None,
    causal: bool = False,
    state: State | None = None,
    return_state: bool = False,
) -> Tensor | Any:
    r"""Average values by $\varphi(q_i)^\top \varphi(k_j)$ with $\varphi(x) = \mathrm{elu}(x) + 1$.

    Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236) does not approximate softmax
    attention, and a model has to be trained with it. Its weights have rank d at most; with
    ``causal`` each block below their diagonal has.

    With ``causal`` no feature counts less than about e^-39 of the largest in its row (in float64,
    e^-319). So where a query and all its keys share no larger ones, because numbers in one row lie
    that far apart, the weights are wrong.

    Parameters
    ----------
    state : tuple of Tensor, optional
        What earlier tokens left, in the causal form. It does not grow: S and z side by side,
        divided by a factor, (batch, groups, d, d_v + 1), and the logarithm of that factor, (batch,
        groups, 1, 1).
    return_state : bool
        Whether to return the new state beside the output.

    Examples
    --------
    >>> import torch
    >>> q, k = torch.zeros(1, 1, 2, 1), torch.tensor([[[[0.0], [2.0]]]])  # phi is 1; 1 and 3
    >>> v = torch.tensor([[[[4.0], [8.0]]]])
    >>> linear_attention(q, k, v).flatten().tolist()
    [7.0, 7.0]
    >>> linear_attention(q, k, v, causal=True).flatten().tolist()
    [4.0, 7.0]
    >>> state = None
    >>> for t in range(2):
    ...     token = [part[:, :, t : t + 1] for part in (q, k, v)]
    ...     out, state = linear_attention(*token, causal=True, state=state, return_state=True)
    >>> out.item()
    7.0
    """
    check_causal(causal, state, return_state)
    check_attention_inputs(q, k, v, token_mask, causal=causal)
    dtype = _sum_type(q.dtype)
    if state is not None:
        groups = k.shape[:2]
        state = check_state(state, (*groups, k.shape[3], v.shape[3] + 1), (*groups, 1, 1))
    with without_autocast(q.device):
        queries = q.to(dtype)
        keys, values = (zero_hidden(part, token_mask).to(dtype) for part in (k, v))
        if causal:
            out, state = _causal_average(_elu_rows, queries, keys, values, token_mask, state)
            return (out.to(q.dtype), state) if return_state else out.to(q.dtype)
        real = keys.detach()
        if token_mask is not None:
            real = real.masked_fill(~token_mask[:, None, :, None], torch.finfo(dtype).min)
        scale = real.amax(dim=2, keepdim=True).clamp(max=0)
        averages, log_totals = _by_feature(
            _elu_plus_one(keys, scale), scale, values, token_mask, q.shape[1]
        )
        weights = torch.softmax(_log_elu(queries, log_totals), dim=3)
        return (weights @ averages).to(q.dtype)


def performer_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    n_features: int = 256,
    generator: torch.Generator | None = None,
    features: Tensor | None = None,
    token_mask: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    r"""Estimate softmax attention by m random features.

    On average their products are $\exp(q^\top k / \sqrt{d})$. Performer (Choromanski et al. 2020,
    arXiv:2009.14794): a random direction g gives a query the feature $\exp(g^\top x - \|x\|^2/2) /
    \sqrt{m}$ with $x = q / d^{1/4}$, and a key likewise. Each output is an average of the values,
    with positive weights. With independent directions one estimate of $\exp(x^\top y)$ has the
    relative standard deviation $\sqrt{(e^{\|x + y\|^2} - 1)/m}$.

    Parameters
    ----------
    n_features : int
        Number m of features, at least 1.
    generator : torch.Generator, optional
        Draws the features. By default the global generator of torch draws.
    features : Tensor, shape (m, d), optional
        Directions g, a row each, to use instead of drawn ones, such as one draw of
        `orthogonal_features` for all layers and steps, without a ``generator``; ``n_features`` then
        plays no part. Of the type of ``q``, for half precision float32.

    Notes
    -----
    Exponentials are kept in range by shifts that cancel; nothing is added to the features or to the
    divisor. With ``causal`` no later key changes an earlier output, not even its last bit, unless
    it is infinite or NaN; and no feature counts less than about e^-39 of the largest in its row (in
    float64, e^-319).

    Examples
    --------
    >>> import torch
    >>> q, k, v = 0.5 * torch.randn(3, 1, 8, 50, 4)  # each (batch, heads, n, d) = (1, 8, 50, 4)
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> error = performer_attention(q, k, v, n_features=20_000) - exact
    >>> bool(error.norm() < 0.1 * exact.norm())
    True
    """
    check_attention_inputs(q, k, v, token_mask, causal=causal)
    d, dtype = q.shape[3], _sum_type(q.dtype)
    if features is None:
        features = orthogonal_features(
            n_features, d, generator=generator, device=q.device, dtype=dtype
        )
    else:
        check_like("features", features, ("n_features", d), "the sums", q.to(dtype))
        if len(features) == 0:
            raise ValueError("features must hold at least one row, got none")
        if generator is not None:
            raise ValueError("generator must be None where features are given, got a generator")
    with without_autocast(q.device):
        queries, directions = q.to(dtype), features.to(dtype)
        keys, values = (zero_hidden(part, token_mask).to(dtype) for part in (k, v))
        if causal:
            rows_of = functools.partial(_exponential_rows, directions=directions)
            return _causal_average(rows_of, queries, keys, values, token_mask)[0].to(q.dtype)
        half_squares = _half_squares(keys)
        if token_mask is not None:  # an infinite norm gives a hidden key zero weight
            half_squares = half_squares.masked_fill(
                ~token_mask[:, None, :, None], torch.finfo(dtype).max
            )
        logs = _exponents(keys, directions) - half_squares
        scale = logs.detach().amax(dim=2, keepdim=True)
        averages, log_totals = _by_feature(
            (logs - scale).exp(), scale, values, token_mask, q.shape[1]
        )
        weights = torch.softmax(_exponents(queries, directions) + log_totals, dim=3)
        return (weights @ averages).to(q.dtype)


def orthogonal_features(
    n_features: int,
    d: int,
    *,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    r"""Draw directions (n_features, d), orthogonal in blocks of d.

    Each of them is normal with unit covariance. A block is the Q of a Gaussian matrix's QR
    decomposition, each column multiplied by the sign of the entry of R's diagonal (Mezzadri 2006,
    arXiv:math-ph/0609050). Without the signs Q depends on how it is computed and is not uniform:
    estimates are biased, and more features do not help. Rows are as long as those of a Gaussian
    matrix.

    ``n_features`` and ``d`` are at least 1; the first need not be a multiple of the second.
    ``generator``, by default torch's global one, draws on its own device. ``device`` is where the
    result is kept, and ``dtype`` its floating-point type; half precision is drawn in float32.

    >>> import torch
    >>> g = orthogonal_features(n_features=3, d=8)
    >>> bool(((g @ g.T).fill_diagonal_(0).abs() < 1e-4).all())
    True
    """
    m, d = check_integer(n_features, "n_features"), check_integer(d, "d")
    generator, dtype = check_generator(generator), check_dtype(dtype)
    device = check_device(device) or torch.empty(0).device  # torch 2.4 sees no other context
    place: dict[str, Any] = {
        "device": device if generator is None else generator.device,
        "dtype": _sum_type(dtype),
    }
    blocks = torch.randn(-(-m // d), d, d, generator=generator, **place)
    basis, triangle = torch.linalg.qr(blocks)
    signs = torch.where(triangle.diagonal(dim1=1, dim2=2) < 0, -1, 1)  # (blocks, d)
    directions: Tensor = (basis * signs[:, None, :]).flatten(0, 1)[:m]  # (m, d)
    normal = torch.randn(m, d, generator=generator, **place)
    lengths: Tensor = torch.linalg.vector_norm(normal, dim=1, keepdim=True)
    return (directions * lengths).to(device=device, dtype=dtype)


def _sum_type(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _lowest(dtype: torch.dtype) -> float:
    """Return the logarithm of the least feature, relative to the largest.

    Two of them multiply to a normal number.
    """
    return 0.45 * math.log(torch.finfo(dtype).tiny)


def _by_feature(
    k_rows: Tensor,
    k_scale: Tensor,
    v: Tensor,
    token_mask: Tensor | None,
    heads: int,
) -> tuple[Tensor, Tensor]:
    """Return the values averaged by each feature, (b, h, m, d_v), and ln z, (b, h, 1, m).

    The latter is known up to a constant.
    """
    k_rows = zero_hidden(k_rows, token_mask)
    totals = k_rows.sum(dim=2, keepdim=True)  # z, (b, g, 1, m)
    totals = torch.where(totals == 0, 1, totals)  # all tokens are hidden
    logs = totals.log() + (k_scale - k_scale.amax(dim=3, keepdim=True))
    return each_head(k_rows.mT @ v / totals.mT, heads), each_head(logs, heads)


def _in_steps() -> bool:
    """Say whether the compiler, forward mode or vmap is at work.

    They cannot look into an autograd function.
    """
    return torch.compiler.is_compiling() or is_transformed()


def _elu_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of elu(x) + 1, each over a factor, and the factors' logarithms (..., n, 1).

    Only rows without a positive entry are divided: all their entries are exponentials, which may
    all vanish.
    """
    scale = x.detach().amax(dim=3, keepdim=True).clamp(max=0)
    return _elu_plus_one(x, scale), scale


def _elu_plus_one(x: Tensor, scale: Tensor) -> Tensor:
    """Return (elu(x) + 1) / exp(scale).

    ``scale`` is 0 or the largest of the entries that share it.
    """
    if _in_steps():
        # The largest entry of a row lies at 0, where the derivative must be 1. At a bound, that of
        # clamp is 1 up to PyTorch 2.13 and 0 from 2.14 on, so the bound is a hair above 0.
        bounds = {"min": _lowest(x.dtype), "max": torch.finfo(x.dtype).tiny}
        return torch.relu(x) + (x - scale).clamp(**bounds).exp()
    rows: Tensor = _EluPlusOne.apply(x, scale)  # type: ignore[no-untyped-call]
    return rows


class _EluPlusOne(torch.autograd.Function):
    """Compute (elu(x) + 1) / exp(scale) in place, with the derivative min(elu + 1, 1).

    It takes half the time of autograd's steps.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        rows = (x - scale).clamp_(min=_lowest(x.dtype), max=0).exp_().add_(x.clamp(min=0))
        ctx.save_for_backward(rows)
        return rows

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        # The derivative of clamp at 1 depends on PyTorch's version, as above; clamp is faster where
        # none is recorded.
        slopes = torch.where(rows > 1, 1, rows) if torch.is_grad_enabled() else rows.clamp(max=1)
        return slopes.mul_(gradients[0]), None


def _log_elu(x: Tensor, more: Tensor) -> Tensor:
    """Return ln(elu(x) + 1) + more, with ``more`` (batch, heads, 1, d)."""
    if _in_steps():
        positive = torch.relu(x)
        return positive.log1p() + (x - positive) + more
    logs: Tensor = _LogElu.apply(x, more)  # type: ignore[no-untyped-call]
    return logs


class _LogElu(torch.autograd.Function):
    """In-place log(elu(x) + 1) + more, using min(x, log1p(max(x, 0)))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, more: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0).log1p_().clamp_(max=x).add_(more)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (x,) = ctx.saved_tensors
        return gradients[0] / x.clamp(min=0).add_(1), gradients[0].sum(dim=2, keepdim=True)


def _exponents(x: Tensor, directions: Tensor) -> Tensor:
    """Return g^T x of x / d^(1/4) for each direction g, (..., n, m)."""
    exponents: Tensor = x / x.shape[3] ** 0.25 @ directions.T
    return exponents


def _half_squares(x: Tensor) -> Tensor:
    """Return |x|^2/2 of x / d^(1/4), (..., n, 1)."""
    half_squares: Tensor = x.square().sum(dim=3, keepdim=True) / (2 * math.sqrt(x.shape[3]))
    return half_squares


def _exponential_rows(x: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of exp(g^T x - |x|^2/2), each over a factor, and the factors' logarithms.

    Root m cancels.
    """
    logs = _exponents(x, directions)
    largest = logs.detach().amax(dim=3, keepdim=True)
    return (logs - largest).clamp(min=_lowest(x.dtype)).exp(), largest - _half_squares(x)


def _causal_average(
    rows_of: Callable[[Tensor], tuple[Tensor, Tensor]],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    token_mask: Tensor | None,
    state: State | None = None,
) -> tuple[Tensor, State]:
    """Divide the weighted sums of the values by those of 1, and give 0 to hidden tokens.

    Weights are written out within a chunk; all before it is one sum, stored divided by the largest
    factor so far. A query divides by the largest among its own past, so no exponent is positive and
    none knows the future.
    """
    batch, groups, n, _ = k.shape
    heads = q.shape[1]
    real = k.new_ones(batch, n) if token_mask is None else token_mask.to(k.dtype)
    later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=k.device).triu(1)
    lowest = torch.finfo(k.dtype).min
    past, largest = k.new_zeros(1), k.new_full((batch, groups, 1, 1), lowest)
    if state is not None:
        past, largest = (part.to(k.dtype) for part in state)
    outputs: list[Tensor] = []
    # Split once: the gradient of a slice is as long as the whole, and every chunk would have its
    # own.
    parts = (
        torch.split(x, CHUNK, dim=2)
        for x in (q, k, v, real[:, None, :, None].expand(-1, groups, -1, -1))
    )
    for queries, keys, values, ones in zip(*parts, strict=True):
        q_rows, _ = rows_of(queries)
        k_rows, k_scale = rows_of(keys)
        scale = k_scale.masked_fill(ones == 0, lowest)  # hidden tokens change no shift
        chunk = torch.cat([values, ones], dim=3)  # (b, g, c, d_v + 1)
        largest_seen = torch.maximum(largest, scale.detach().cummax(dim=2).values)  # (b, g, c, 1)
        hidden = later[: chunk.shape[2], : chunk.shape[2]]
        factors = (scale.mT - largest_seen).masked_fill(hidden, -math.inf).exp()  # (b, g, c, c)
        weights = each_head(factors, heads) * (q_rows @ each_head(k_rows, heads).mT)  # (b, h, c, c)
        both = weights @ each_head(chunk, heads)
        if outputs or state is not None:
            both = both + each_head((largest - largest_seen).exp(), heads) * (
                q_rows @ each_head(past, heads)
            )
        before, largest = largest, largest_seen[:, :, -1:]
        past = (before - largest).exp() * past + k_rows.mT @ (
            (scale - largest).exp() * chunk
        )  # (b, g, m, d_v + 1)
        sums, normalizer = torch.split(both, [v.shape[3], 1], dim=3)
        outputs.append(sums / torch.where(normalizer == 0, 1, normalizer))
    return torch.cat(outputs, dim=2), (past, largest)
