r"""Attention of one sequence to the compressed tokens of another.

Chapter ``book/07-linformer.md``; letters as in ``linformer``.
"""

import torch

from lowrank_tutor._tensors import shape_of
from lowrank_tutor.linformer.layer import LinformerSelfAttention


class LinformerCrossAttention(LinformerSelfAttention):
    r"""Multi-head attention of one sequence to the k mixtures of another, which is compressed.

    Everything but ``forward`` is that of `LinformerSelfAttention`: parameters, attributes, ``from_mha`` (for the
    ``multihead_attn`` of a decoder layer), ``resized`` and ``reset_parameters``. ``max_len`` is the longest sequence
    that is compressed; the one that asks may have any length.

    Parameters
    ----------
    dim, heads, max_len, k : int
        As in `LinformerSelfAttention`; both sequences have the width ``dim``.
    sharing, dropout, projection, rule, bias, process_group, generator, device, dtype : optional
        As in `LinformerSelfAttention`.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerCrossAttention(dim=64, heads=4, max_len=512, k=32)
    >>> translation, original = torch.randn(2, 20, 64), torch.randn(2, 300, 64)
    >>> layer(translation, original).shape
    torch.Size([2, 20, 64])
    """

    _sequences: tuple[str, ...] = ("x", "memory")

    def forward(  # type: ignore[override]
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        *,
        token_mask: torch.Tensor | None = None,
        causal: bool = False,
    ) -> torch.Tensor:
        r"""Let every token of one sequence look at the k compressed tokens of another.

        Parameters
        ----------
        x : Tensor, shape (batch, n_queries, dim)
            Tokens that ask.
        memory : Tensor, shape (batch, n, dim)
            Tokens that are looked at; n is at most ``max_len``. With a process group, those of this process.
        token_mask : bool Tensor, shape (batch, n), optional
            **True marks a real token** of ``memory``. Hidden ones change nothing, whatever they hold; where a sequence
            is hidden altogether, the mixtures are zeros.
        causal : bool
            Refused where true: each compressed token mixes all tokens.

        Returns
        -------
        Tensor, shape (batch, n_queries, dim)
        """
        with self._telling():
            self._check(memory, token_mask, causal, name="memory")
            self._check_tokens("x", x, "n_queries")
            if x.shape[0] != memory.shape[0]:
                shapes = f"{shape_of(x)} and {shape_of(memory)}"
                raise ValueError(f"x must have the batch size of memory, got shapes {shapes}")
        keys, values, log_shares = self._compress(memory, token_mask)
        return self._attend(x, keys, values, log_shares, None)
