r"""Compress the sequence to k mixtures of its tokens, then attend to them: equation 7 of the paper.

Chapter ``book/07-linformer.md``; letters as in ``linformer``. Its layer is made of the same two steps: `mix` with
the rules for padding, and `attend`.
"""

from contextlib import nullcontext

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lowrank_tutor._checks import check_choice
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    is_exporting,
    is_transformed,
    shape_of,
    zero_hidden,
)
from lowrank_tutor.linformer.compress import mix
from lowrank_tutor.linformer.norm_rule import RULES, padding_rule, rescale, row_sums


def linformer_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    e: torch.Tensor,
    f: torch.Tensor | None = None,
    *,
    token_mask: torch.Tensor | None = None,
    rule: str | None = None,
) -> torch.Tensor:
    r"""Let each query look at k mixtures of the tokens: $\mathrm{softmax}(Q (E K)^\top / \sqrt{d})\, (F V)$.

    With k = n and E = F = I it is softmax attention. There is no causal form: each mixture holds all tokens, the
    future too.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k : Tensor, shape (batch, heads, n_keys, d)
        Keys.
    v : Tensor, shape (batch, heads, n_keys, d_v)
        Values.
    e : Tensor, shape (k, n_keys)
        What each of the k mixtures takes of the keys; k is at most n_keys.
    f : Tensor, shape (k, n_keys), optional
        What it takes of the values; by default ``e``.
    token_mask : bool Tensor, shape (batch, n_keys), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden keys and values do not
        count, whatever they hold; a sequence hidden altogether gives zeros.
    rule : {"sum", "norm"}, optional
        What each row keeps of itself where tokens are hidden: its sum or its length. By default its sum if it has no
        negative entry, and else its length. Where entries are learned and cross zero, name one: the default jumps.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, d_v)

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 8, 4, 2)  # each (batch, heads, n, d) = (1, 8, 4, 2)
    >>> e = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    >>> linformer_attention(q, k, v, e).shape
    torch.Size([1, 8, 4, 2])

    References
    ----------
    Wang et al. (2020), arXiv:2006.04768, equation 7.
    """
    f = e if f is None else f
    _check(q, k, v, e, f, token_mask)
    rule = None if rule is None else check_choice(rule, "rule", RULES)
    keys = mix(e, zero_hidden(k, token_mask))  # (batch, heads, k, d)
    values = mix(f, zero_hidden(v, token_mask))  # (batch, heads, k, d_v)
    if token_mask is None:
        return attend(q, keys, values)
    numbers_in_a_token = k.shape[1] * k.shape[3]
    sums = [row_sums(each, token_mask, numbers_in_a_token, rule=rule) for each in ([e] if f is e else [e, f])]
    scales, log_shares = padding_rule(sums)
    keys, values = rescale(keys, scales[0]), rescale(values, scales[-1])
    return attend(q, keys, values, log_shares)


def attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    log_shares: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    r"""Let queries (batch, heads, n, d) look at k keys: $\mathrm{softmax}(Q K^\top / \sqrt{d} + \ln s)\, V$."""
    added = None if log_shares is None else log_shares.to(q.dtype)
    # PyTorch's fused kernels know neither forward mode nor second derivatives; its plain one does.
    transformed = not torch.compiler.is_compiling() and is_transformed()
    with sdpa_kernel(SDPBackend.MATH) if transformed else nullcontext():
        return functional.scaled_dot_product_attention(q, keys, values, attn_mask=added, dropout_p=dropout)


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Cut the width into heads: (batch, n, D) to (batch, heads, n, d)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


def join_heads(x: torch.Tensor) -> torch.Tensor:
    """Lay the heads side by side again: (batch, heads, n, d) to (batch, n, D); an export copies, as in `columns`."""
    rows = x.transpose(1, 2)
    if is_exporting():  # the exporter to ONNX writes attention out, and what then comes cannot be seen as rows
        rows = rows.clone(memory_format=torch.contiguous_format)
    return rows.flatten(2)


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    e: torch.Tensor,
    f: torch.Tensor,
    token_mask: torch.Tensor | None,
) -> None:
    check_attention_inputs(q, k, v)
    n_keys = k.shape[2]
    check_tensor("e", e, ("k", n_keys))
    check_tensor("f", f, (e.shape[0], n_keys))
    if not 1 <= e.shape[0] <= n_keys:
        raise ValueError(f"e must have between 1 and n_keys = {n_keys} rows, got shape {shape_of(e)}")
    check_same_device_and_dtype("e", e, "q", q)
    check_same_device_and_dtype("f", f, "q", q)
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], n_keys))
