"""How does each query average the values? Softmax attention, exact, its weights written out, and what it costs.

Chapters ``book/07-linformer.md`` and ``book/06-attention.md``; letters as in ``attention``.
"""

import math
from typing import NamedTuple

import torch
from torch.nn import functional

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_heads,
    check_token_mask,
    softmax_mask,
    without_autocast,
    zero_hidden,
)


class Cost(NamedTuple):
    """What one forward pass of a self-attention layer takes, for one sequence.

    Attributes
    ----------
    parameters : int
        Learned numbers, the bias of the last linear layer among them.
    flops : int
        Floating-point operations in the matrix products, two for each multiplication with its addition. What softmax,
        scaling and bias take is left out, as PyTorch's ``FlopCounterMode`` leaves it out.
    scores : int
        Numbers in the score matrices of all heads. They fill memory only where the matrices are written out: fused
        kernels keep a small part at a time.
    """

    parameters: int
    flops: int
    scores: int


def softmax_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, token_mask: torch.Tensor | None = None
) -> torch.Tensor:
    r"""Average the values, weighted by the softmax of how each query scores the keys.

    $\mathrm{softmax}(Q K^\top / \sqrt{d})\, V$, by PyTorch's fused kernels: exact, and without the matrix of weights
    in memory (on a CPU it is written out where ``d_v`` differs from ``d``).

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
        count, whatever they hold; a sequence hidden altogether gives zeros.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, d_v)

    Examples
    --------
    >>> import torch
    >>> q, k = torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 3, 2)
    >>> softmax_attention(q, k, torch.tensor([[[[1.0], [2.0], [6.0]]]])).item()
    3.0

    References
    ----------
    Vaswani et al. (2017), arXiv:1706.03762.
    """
    check_attention_inputs(q, k, v)
    weighed = None
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], k.shape[2]))
        k, v = zero_hidden(k, token_mask), zero_hidden(v, token_mask)
        weighed = softmax_mask(token_mask)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=weighed)


def attention_weights(q: torch.Tensor, k: torch.Tensor, *, token_mask: torch.Tensor | None = None) -> torch.Tensor:
    r"""Write out the weights of softmax attention, $P = \mathrm{softmax}(Q K^\top / \sqrt{d})$.

    This is the matrix that fused kernels avoid: it takes n_queries times n_keys numbers a head. Use it to look at, and
    `softmax_attention` to compute.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k : Tensor, shape (batch, heads, n_keys, d)
        Keys.
    token_mask : bool Tensor, shape (batch, n_keys), optional
        **True marks a real token**, as in `softmax_attention`. Hidden keys have weight 0; where all are hidden, all
        weights are 0.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, n_keys)
        Each row adds up to 1, unless all its keys are hidden.

    Examples
    --------
    >>> import torch
    >>> attention_weights(torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 4, 2)).tolist()
    [[[[0.25, 0.25, 0.25, 0.25]]]]
    """
    check_attention_inputs(q, k, k)
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], k.shape[2]))
    wide = torch.promote_types(q.dtype, torch.float32)  # a product of half precision may overflow
    with without_autocast(q.device):
        # (batch, heads, n_queries, n_keys)
        logits = q.to(wide) @ zero_hidden(k, token_mask).to(wide).transpose(2, 3) / math.sqrt(q.shape[3])
        if token_mask is None:
            return torch.softmax(logits, dim=3).to(q.dtype)
        weights = torch.softmax(logits.masked_fill(~softmax_mask(token_mask), -math.inf), dim=3)
    return weights.masked_fill(~token_mask[:, None, None, :], 0).to(q.dtype)


def softmax_cost(n: int, dim: int, heads: int) -> Cost:
    r"""Count what a layer of softmax self-attention takes: $4 D^2 + D$ parameters, $8 n D^2 + 4 n^2 D$ operations.

    Parameters
    ----------
    n : int
        Tokens.
    dim : int
        Width D of the model.
    heads : int
        Number of heads, which must divide ``dim``. It changes nothing but the number of score matrices.

    Returns
    -------
    Cost

    Examples
    --------
    >>> softmax_cost(n=1024, dim=512, heads=8)
    Cost(parameters=1049088, flops=4294967296, scores=8388608)
    """
    n, dim, heads = check_integer(n, "n", 1), check_integer(dim, "dim", 1), check_heads(heads, dim)
    return Cost(4 * dim**2 + dim, 8 * n * dim**2 + 4 * n**2 * dim, heads * n**2)
