"""Attend by reduced-rank bilinear scores, in a PyTorch layer.

It is kept apart so that the NumPy half needs no torch. Import it with ``from lowrank_tutor.bilinear
import ReducedRankAttention``. ``token_mask`` (b, n_keys) is **True for a real token**; PyTorch's
``key_padding_mask`` means the opposite.
"""

import math
from typing import Any

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import (
    check_device,
    check_dtype,
    check_generator,
    check_like,
    check_token_mask,
    softmax_mask,
    zero_hidden,
)


class ReducedRankAttention(nn.Module):
    r"""Attend by reduced-rank bilinear scores.

    Each query averages the values, weighted by the scores of the keys. The weights of query ``i``
    are $\mathrm{softmax}_j\!\left( (U q_i)^\top (V h_j) / \sqrt{k} \right)$. The division by
    $\sqrt{k}$ (Vaswani et al., 2017, arXiv:1706.03762) makes this an ordinary attention head of
    width ``k``, with $W_Q = U^\top$, $W_K = V^\top$ and unchanged values. To start from the factors
    ``u`` (k, query_dim) and ``v`` (k, key_dim) of a known score, undo the division in one of them:
    ``load_state_dict({"u": math.sqrt(k) * u, "v": v})``.

    ``k`` is between 1 and ``min(query_dim, key_dim)``. ``generator``, by default torch's global
    one, draws the factors, normal with variance 1 / width, so that for tokens of unit variance the
    scores have unit variance too, for every ``k``.

    >>> import torch
    >>> layer = ReducedRankAttention(query_dim=2, key_dim=2, k=1)
    >>> factors = {"u": torch.tensor([[2.0, 1.0]]), "v": torch.tensor([[1.0, -1.0]])}
    >>> _ = layer.load_state_dict(factors)
    >>> query, keys = torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [4.0, 3.0]]])
    >>> layer.scores(query, keys).tolist()
    [[[-4.0, 4.0]]]
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        k: int,
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.query_dim = check_integer(query_dim, "query_dim")
        self.key_dim = check_integer(key_dim, "key_dim")
        smaller = min(self.query_dim, self.key_dim)
        self.k = check_integer(k, "k", 1, smaller, "min(query_dim, key_dim)")
        generator = check_generator(generator)
        place: dict[str, Any] = {"device": check_device(device), "dtype": check_dtype(dtype)}

        def start(width: int) -> nn.Parameter:
            numbers = torch.empty((self.k, width), **place)
            return nn.Parameter(numbers.normal_(std=1 / math.sqrt(width), generator=generator))

        self.u, self.v = start(self.query_dim), start(self.key_dim)

    def extra_repr(self) -> str:
        """List the sizes for the printed form of the layer."""
        return f"query_dim={self.query_dim}, key_dim={self.key_dim}, k={self.k}"

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        r"""Score every query against every key, $(U q_i)^\top (V h_j) / \sqrt{k}$.

        These are the logits of the weights. From queries (b, n_queries, query_dim) and keys (b,
        n_keys, key_dim) to (b, n_queries, n_keys).
        """
        left, right = self._factors(query, keys)
        return left @ right.transpose(1, 2) / math.sqrt(self.k)

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor | None = None,
        token_mask: Tensor | None = None,
    ) -> Tensor:
        r"""Average the values by the softmax of the scores, (b, n_queries, value_dim).

        ``values`` (b, n_keys, value_dim) are by default the keys themselves. Hidden keys and values
        do not count, whatever they hold; a sequence that is entirely hidden gives zeros.
        """
        left, right = self._factors(query, keys, token_mask)
        values = keys if values is None else values
        check_like("values", values, (*keys.shape[:2], "value_dim"), "the layer", self.u)
        values = zero_hidden(values, token_mask)
        mask = None if token_mask is None else softmax_mask(token_mask)
        # One head: (b, 1, n, width).
        q, k, v = (x.unsqueeze(1) for x in (left, right, values.to(left.dtype)))
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(1)

    def _factors(
        self, query: Tensor, keys: Tensor, token_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return $U q_i$ and $V h_j$, (b, n, k)."""
        check_like("query", query, ("batch", "n_queries", self.query_dim), "the layer", self.u)
        check_like("keys", keys, (len(query), "n_keys", self.key_dim), "the layer", self.u)
        if keys.shape[1] == 0:
            raise ValueError("keys must hold at least one token, got none")
        check_token_mask(token_mask, keys, keys.shape[:2])
        keys = zero_hidden(keys, token_mask)
        return functional.linear(query, self.u), functional.linear(keys, self.v)
