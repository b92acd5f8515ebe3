r"""What if weights were products of features? Linear attention and Performer: the same sum, added up in another order.

Chapter ``book/06-attention.md``; letters as in ``attention``, and $\varphi(x)$ are the m features of a query or key.
Where a weight is $\varphi(q_i)^\top \varphi(k_j)$, the output of query i is $\varphi(q_i)^\top S / \varphi(q_i)^\top z$
with $S = \sum_j \varphi(k_j) v_j^\top$ and $z = \sum_j \varphi(k_j)$: sums that no query changes, so that n tokens cost
n steps and not n squared. The weights then have rank m at most.

Softmax attention has no such features of finite number. It is a kernel smoother, with the kernel
$\exp(q^\top k / \sqrt{d})$; for keys of one norm that is the Gaussian of Nadaraya and Watson, bandwidth $d^{1/4}$.
Linear attention takes another kernel; Performer keeps this one and estimates it by random features.

Here z is the sum for one more value, which is 1 for real tokens and 0 for hidden ones. And each row of
features is stored divided by a factor of its own, so that its largest is near 1: a query's factor cancels, a key's is
carried as its logarithm.
"""

import math
from typing import Any

import torch

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_dtype,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    is_transformed,
    shape_of,
    without_autocast,
    zero_hidden,
)

CHUNK = 64  # tokens whose weights on each other are written out in the causal form


def linear_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    token_mask: torch.Tensor | None = None,
    causal: bool = False,
) -> torch.Tensor:
    r"""Average the values with weights $\varphi(q_i)^\top \varphi(k_j)$, $\varphi(x) = \mathrm{elu}(x) + 1$.

    $o_i = \sum_j \varphi(q_i)^\top \varphi(k_j)\, v_j \big/ \sum_j \varphi(q_i)^\top \varphi(k_j)$, with j up to i in
    the causal form. It does not approximate softmax attention: it is an attention of its own, with weights of rank d
    at most, and a model has to be trained with it. Time and memory grow with the number of tokens, not its square.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k : Tensor, shape (batch, heads, n_keys, d)
        Keys.
    v : Tensor, shape (batch, heads, n_keys, d_v)
        Values.
    token_mask : bool Tensor, shape (batch, n_keys), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden keys and values do not
        count in either sum, whatever they hold; a query that sees no real token gives zeros.
    causal : bool
        Whether query i sees only the keys up to i; then there are as many queries as keys.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, d_v)
        Of the type of ``q``; half precision is added up in float32.

    Examples
    --------
    >>> import torch
    >>> q, k = torch.zeros(1, 1, 2, 1), torch.tensor([[[[0.0], [2.0]]]])  # phi is 1 of each query, 1 and 3 of the keys
    >>> v = torch.tensor([[[[4.0], [8.0]]]])
    >>> linear_attention(q, k, v).flatten().tolist()
    [7.0, 7.0]
    >>> linear_attention(q, k, v, causal=True).flatten().tolist()
    [4.0, 7.0]

    References
    ----------
    Katharopoulos et al. (2020), arXiv:2006.16236.
    """
    dtype = _check(q, k, v, token_mask, causal)
    with without_autocast(q.device):
        q_rows, _ = _elu_rows(q.to(dtype))
        k_rows, k_scale = _elu_rows(zero_hidden(k, token_mask).to(dtype))
        return _average(q_rows, k_rows, k_scale, v.to(dtype), token_mask, causal).to(q.dtype)


def performer_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    n_features: int = 256,
    generator: torch.Generator | None = None,
    features: torch.Tensor | None = None,
    token_mask: torch.Tensor | None = None,
    causal: bool = False,
) -> torch.Tensor:
    r"""Estimate softmax attention: m random features whose products are $\exp(q^\top k / \sqrt{d})$ in the mean.

    $\varphi(q) = \exp(W x - \|x\|^2/2) / \sqrt{m}$ with $x = q / d^{1/4}$, and for keys alike; the rows of $W$ are
    normal, and orthogonal in blocks of d (`orthogonal_features`). Every weight is positive, and each output an average
    of the values. The error falls like $1/\sqrt{m}$ in the end, but its factor grows fast with the norms: with
    independent rows one estimate of $\exp(x^\top y)$ has the relative standard deviation
    $\sqrt{(e^{\|x + y\|^2} - 1)/m}$. Where that is far above 1, the plain mean of the
    values does better.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k : Tensor, shape (batch, heads, n_keys, d)
        Keys.
    v : Tensor, shape (batch, heads, n_keys, d_v)
        Values.
    n_features : int
        Number m of features, at least 1.
    generator : torch.Generator, optional
        Draws the features. Without it the global generator of torch draws.
    features : Tensor, shape (m, d), optional
        Rows W to use instead of drawn ones, such as one draw of `orthogonal_features` for all layers and steps; then
        ``n_features`` plays no part, and there must be no ``generator``. Of the type of ``q``, for half precision
        float32.
    token_mask : bool Tensor, shape (batch, n_keys), optional
        **True marks a real token**, as in `linear_attention`: hidden tokens take part in neither sum.
    causal : bool
        Whether query i sees only the keys up to i; then there are as many queries as keys.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, d_v)
        Of the type of ``q``; half precision is added up in float32.

    Notes
    -----
    Exponentials are kept in range by shifts that cancel: each query's largest feature, and each key's. A key's own
    factor comes back when it is added up, relative to the largest among the keys that a query may see; so in the causal
    form no later key touches an earlier output, not even its last bit (unless it is infinite or NaN: zero times that is
    NaN, here as in exact attention). Nothing is added to the features or to what divides. Instead no feature counts
    less than about e^-39 of the largest in its row (in float64, e^-319): a query and its keys never share only zeros.
    Where that makes a difference, the estimate rests on a single feature anyway.

    Examples
    --------
    >>> import torch
    >>> q, k, v = 0.5 * torch.randn(3, 1, 8, 50, 4)  # each (batch, heads, n, d) = (1, 8, 50, 4)
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> error = performer_attention(q, k, v, n_features=20_000) - exact
    >>> bool(error.norm() < 0.1 * exact.norm())
    True

    References
    ----------
    Choromanski et al. (2020), arXiv:2009.14794.
    """
    dtype = _check(q, k, v, token_mask, causal)
    d = q.shape[3]
    if features is None:
        features = orthogonal_features(n_features, d, generator=generator, device=q.device, dtype=dtype)
    else:
        check_tensor("features", features, ("n_features", d))
        check_same_device_and_dtype("features", features, "the sums", q.to(dtype))
        if features.shape[0] == 0:
            raise ValueError(f"features must hold at least one row, got shape {shape_of(features)}")
        if generator is not None:
            raise ValueError("generator must be None where features are given, got a generator")
    with without_autocast(q.device):
        w = features.to(dtype)
        q_rows, _ = _exponential_rows(q.to(dtype), w)
        k_rows, k_scale = _exponential_rows(zero_hidden(k, token_mask).to(dtype), w)
        return _average(q_rows, k_rows, k_scale, v.to(dtype), token_mask, causal).to(q.dtype)


def orthogonal_features(
    n_features: int,
    d: int,
    *,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    r"""Draw directions that are orthogonal in blocks of d, and each of them normal with unit covariance.

    A block is the Q of a Gaussian matrix's QR decomposition, each column multiplied by the sign of the entry of R's
    diagonal. Without the signs Q depends on how the decomposition is computed, and is not uniform: estimates made with
    it are biased, and more features do not help. The rows are then as long as those of a Gaussian matrix.

    Parameters
    ----------
    n_features : int
        Number m of rows, at least 1; no multiple of ``d`` is needed.
    d : int
        Their width, at least 1.
    generator : torch.Generator, optional
        Draws, on its own device. Without it the global generator of torch draws.
    device : torch.device or str, optional
        Where the result is kept.
    dtype : torch.dtype, optional
        Its floating-point type; half precision is drawn in float32.

    Returns
    -------
    Tensor, shape (n_features, d)

    Examples
    --------
    >>> import torch
    >>> w = orthogonal_features(n_features=3, d=8)
    >>> bool(((w @ w.T).fill_diagonal_(0).abs() < 1e-4).all())
    True

    References
    ----------
    Choromanski et al. (2020), arXiv:2009.14794, section 2.4; Mezzadri (2006), arXiv:math-ph/0609050, on the signs.
    """
    m, d = check_integer(n_features, "n_features", 1), check_integer(d, "d", 1)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator or None, got {type(generator).__name__}")
    dtype = check_dtype(dtype)
    device = torch.get_default_device() if device is None else device
    place: dict[str, Any] = {"device": device if generator is None else generator.device, "dtype": _sum_type(dtype)}
    blocks = torch.randn(-(-m // d), d, d, generator=generator, **place)
    basis, triangle = torch.linalg.qr(blocks)
    signs = torch.where(triangle.diagonal(dim1=1, dim2=2) < 0, -1, 1)  # (blocks, d)
    directions: torch.Tensor = (basis * signs[:, None, :]).flatten(0, 1)[:m]  # (m, d)
    lengths: torch.Tensor = torch.linalg.vector_norm(
        torch.randn(m, d, generator=generator, **place), dim=1, keepdim=True
    )
    return (directions * lengths).to(device=device, dtype=dtype)


def _check(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, token_mask: torch.Tensor | None, causal: bool
) -> torch.dtype:
    """Refuse what does not fit together; return the type in which to add up."""
    check_attention_inputs(q, k, v)
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], k.shape[2]))
    if causal and q.shape[2] != k.shape[2]:
        raise ValueError(
            f"q must hold as many tokens as k where causal is True, got shapes {shape_of(q)} and {shape_of(k)}"
        )
    return _sum_type(q.dtype)


def _sum_type(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _lowest(dtype: torch.dtype) -> float:
    """Logarithm of the least feature, relative to the largest; the product of two such is still a normal number."""
    return 0.45 * math.log(torch.finfo(dtype).tiny)


def _elu_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return elu(x) + 1, in rows of which each is divided by a factor, and the factors' logarithms, (..., n, 1).

    Only rows without a positive entry are divided: they hold exponentials alone, and might hold nothing else than 0.
    """
    scale = x.detach().amax(dim=3, keepdim=True).clamp(max=0)
    if torch.compiler.is_compiling() or is_transformed():
        return _elu_plus_one(x, scale), scale
    rows: torch.Tensor = _EluPlusOne.apply(x, scale)  # type: ignore[no-untyped-call]
    return rows, scale


def _elu_plus_one(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + (x - scale).clamp(min=_lowest(x.dtype), max=0).exp()


class _EluPlusOne(torch.autograd.Function):
    """The same in place, and its derivative min(elu + 1, 1): half the time that a record of the steps takes.

    The compiler, forward mode and vmap need the steps.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        rows = (x - scale).clamp_(min=_lowest(x.dtype), max=0).exp_().add_(torch.relu(x))
        ctx.save_for_backward(rows)
        return rows

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (rows,) = ctx.saved_tensors
        return rows.clamp(max=1) * gradients[0], None


def _exponential_rows(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return exp(w x - |x|^2/2) of x / d^(1/4), (..., n, m), in the same way; the root of m cancels."""
    x = x / x.shape[3] ** 0.25
    exponents = x @ w.T
    largest = exponents.detach().amax(dim=3, keepdim=True)
    rows = (exponents - largest).clamp(min=_lowest(x.dtype)).exp()
    return rows, largest - x.square().sum(dim=3, keepdim=True) / 2


def _average(
    q_rows: torch.Tensor,
    k_rows: torch.Tensor,
    k_scale: torch.Tensor,
    v: torch.Tensor,
    token_mask: torch.Tensor | None,
    causal: bool,
) -> torch.Tensor:
    """Divide the weighed sums of the values by those of a value that is 1, and 0 where a token is hidden."""
    one = v.new_ones(1).expand(*v.shape[:3], 1)
    values = zero_hidden(torch.cat([v, one], dim=3), token_mask)
    if token_mask is not None:  # no shift looks at hidden tokens
        k_scale = k_scale.masked_fill(~token_mask[:, None, :, None], torch.finfo(k_scale.dtype).min)
    both = (_causal_sums if causal else _sums)(q_rows, k_rows, k_scale, values)
    sums, normalizer = torch.split(both, [v.shape[3], 1], dim=3)
    return sums / torch.where(normalizer == 0, 1, normalizer)


def _sums(q_rows: torch.Tensor, k_rows: torch.Tensor, k_scale: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Add up the keys' features times values first, (b, h, m, d_v + 1), and let all queries meet that."""
    weights = (k_scale - k_scale.detach().amax(dim=2, keepdim=True)).exp()  # (b, h, n_keys, 1)
    return q_rows @ (k_rows.mT @ (weights * values))


def _causal_sums(
    q_rows: torch.Tensor, k_rows: torch.Tensor, k_scale: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    """Do it chunk by chunk: weights are written out within a chunk, and what lies before it is one sum.

    That sum is stored divided by the largest factor so far. A query divides by the largest among its own past, so no
    exponent is positive and none knows the future.
    """
    batch, heads, _, m = k_rows.shape
    later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=values.device).triu(1)
    past = values.new_zeros(batch, heads, m, values.shape[3])
    largest = k_scale.new_full((batch, heads, 1, 1), torch.finfo(k_scale.dtype).min)
    outputs = []
    # Split once: the gradient of a slice would be as long as the whole, and every chunk would have its own.
    parts = (torch.split(x, CHUNK, dim=2) for x in (q_rows, k_rows, k_scale, values))
    for queries, keys, scale, chunk in zip(*parts, strict=True):
        largest_seen = torch.maximum(largest, scale.detach().cummax(dim=2).values)  # (b, h, c, 1)
        hidden = later[: chunk.shape[2], : chunk.shape[2]]
        weights = (scale.mT - largest_seen).masked_fill(hidden, -math.inf).exp() * (queries @ keys.mT)  # (b, h, c, c)
        outputs.append((largest - largest_seen).exp() * (queries @ past) + weights @ chunk)
        before, largest = largest, largest_seen[:, :, -1:]
        past = (before - largest).exp() * past + keys.mT @ ((scale - largest).exp() * chunk)
    return torch.cat(outputs, dim=2)
