"""PyTorch's encoder layer with Linformer for its attention.

Chapter ``book/07-linformer.md``, and the page ``book/use-linformer.md``.
"""

import copy
import math
from typing import Any, Self

import torch
from torch import nn

from lowrank_tutor._checks import check_bool, check_choice, check_integer, check_real
from lowrank_tutor._tensors import check_device, check_dtype, check_heads, check_tensor, is_transformed
from lowrank_tutor.linformer.costs import check_numbers
from lowrank_tutor.linformer.layer import LinformerSelfAttention


class LinformerEncoderLayer(nn.TransformerEncoderLayer):
    """PyTorch's encoder layer with `LinformerSelfAttention` for its first half; it goes into ``nn.TransformerEncoder``.

    Parameters
    ----------
    dim, heads, max_len, k : int
        As in `LinformerSelfAttention`.
    feedforward : int
        Width of the small network.
    dropout : float
        Share that is dropped in training, in both halves.
    norm_first : bool
        Whether each half normalizes what comes in (the default, unlike PyTorch's) or what goes out.
    activation : str or callable
        ``"relu"``, ``"gelu"`` or a function, in the small network.
    sharing : {"key-value", "headwise"}
        As in `LinformerSelfAttention`.
    projection : Tensor, shape (k, max_len), optional
        As in `LinformerSelfAttention`. ``nn.TransformerEncoder`` copies its layer, and then the copies share nothing.
    rule : {"sum", "norm"}, optional
        As in `LinformerSelfAttention`.
    device : torch.device or str, optional
        Where the parameters are kept.
    dtype : torch.dtype, optional
        Their floating-point type.

    Examples
    --------
    >>> import torch
    >>> encoder = torch.nn.TransformerEncoder(
    ...     LinformerEncoderLayer(64, heads=4, max_len=512, k=32, feedforward=128), 2, enable_nested_tensor=False)
    >>> padding = torch.arange(300) >= torch.tensor([[300], [120]])
    >>> encoder(torch.randn(2, 300, 64), src_key_padding_mask=padding).shape
    torch.Size([2, 300, 64])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        max_len: int,
        k: int,
        feedforward: int,
        dropout: float = 0.1,
        *,
        norm_first: bool = True,
        activation: Any = "relu",
        sharing: str = "key-value",
        projection: torch.Tensor | None = None,
        rule: str | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        # PyTorch's constructor comes first, for it draws first, and would refuse bad sizes in words of its own.
        dim, feedforward = check_integer(dim, "dim", 1), check_integer(feedforward, "feedforward", 1)
        heads = check_heads(heads, dim)
        check_numbers("dim", dim, dim)
        check_numbers("feedforward", feedforward, dim)
        dropout = check_real(dropout, "dropout", "at least 0 and below 1", 0.0, 1.0)
        if isinstance(activation, str):
            check_choice(activation, "activation", ("relu", "gelu"))
        elif not callable(activation) or isinstance(activation, type):
            raise TypeError(f'activation must be "relu", "gelu" or a function, got {activation!r}')
        place: dict[str, Any] = {"device": check_device(device), "dtype": check_dtype(dtype)}
        order = check_bool(norm_first, "norm_first")
        super().__init__(dim, heads, feedforward, dropout, activation, batch_first=True, norm_first=order, **place)
        self.self_attn = LinformerSelfAttention(  # type: ignore[assignment]
            dim, heads, max_len, k, dropout=dropout, sharing=sharing, projection=projection, rule=rule, **place
        )

    @classmethod
    def from_layer(
        cls,
        layer: nn.TransformerEncoderLayer,
        max_len: int,
        k: int,
        *,
        projection: torch.Tensor | None = None,
        sharing: str = "key-value",
        rule: str | None = None,
        generator: torch.Generator | None = None,
    ) -> Self:
        """Take over all weights and settings of PyTorch's encoder layer; with k = n and E = I the new one equals it.

        Attention is taken over as `LinformerSelfAttention.from_mha` does it, and everything else is copied. For a whole
        encoder, put the new layers into its ``layers``.

        Parameters
        ----------
        layer : torch.nn.TransformerEncoderLayer
            Made with ``batch_first=True``. Its tensors are copied.
        max_len : int
            Longest sequence.
        k : int
            Length of the compressed sequence, between 1 and ``max_len``.
        projection : Tensor, shape (k, max_len), optional
            As in `LinformerSelfAttention`.
        sharing : {"key-value", "headwise"}
            As in `LinformerSelfAttention`.
        rule : {"sum", "norm"}, optional
            As in `LinformerSelfAttention`.
        generator : torch.Generator, optional
            Draws E (and F).

        Returns
        -------
        LinformerEncoderLayer

        Examples
        --------
        >>> import torch
        >>> exact = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3)
        >>> new = (LinformerEncoderLayer.from_layer(old, max_len=50, k=4) for old in exact.layers)
        >>> exact.layers = torch.nn.ModuleList(new)
        >>> exact(torch.randn(3, 30, 8)).shape
        torch.Size([3, 30, 8])
        """
        exact = isinstance(getattr(layer, "self_attn", None), nn.MultiheadAttention)
        if not (exact and isinstance(layer, nn.TransformerEncoderLayer)):
            got = type(layer).__name__
            raise TypeError(f"layer must be a torch.nn.TransformerEncoderLayer with exact attention, got {got}")
        if not layer.self_attn.batch_first:
            way = "hand tokens over as (batch, n, dim), and set layer.self_attn.batch_first = True"
            raise ValueError(f"layer must be batch first, got batch_first=False: {way}")
        attention = LinformerSelfAttention.from_mha(
            layer.self_attn, max_len, k, projection=projection, sharing=sharing, rule=rule, generator=generator
        )
        sizes = (attention.dim, attention.heads, 1, 1, 1)
        with torch.device("meta"):  # every part is replaced
            taken = cls(*sizes, norm_first=bool(layer.norm_first), activation=layer.activation)
        for name, part in layer.named_children():
            if name != "self_attn":
                setattr(taken, name, copy.deepcopy(part))
        taken.self_attn = attention  # type: ignore[assignment]
        return taken.train(layer.training)

    def forward(
        self,
        src: torch.Tensor,
        src_mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool = False,
    ) -> torch.Tensor:
        """Let tokens look at each other, then treat each by itself.

        Parameters
        ----------
        src : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``.
        src_mask : None
            Refused: there are no n by n weights to mask.
        src_key_padding_mask : Tensor, shape (batch, n), optional
            PyTorch's mask of **padding**: True marks it, or -inf in a floating-point mask that is 0 elsewhere. PyTorch
            would add other numbers to the logits of single tokens, and there are no such logits here. On a CPU they are
            refused. Where reading them would make a GPU wait, or break a compiled program, the result of a sequence
            that has one is NaN.
        is_causal : bool
            Refused where true.

        Returns
        -------
        Tensor, shape (batch, n, dim)
        """
        attention: Any = self.self_attn
        with attention._telling():
            if src_mask is not None:
                raise ValueError(f"src_mask must be None, got {type(src_mask).__name__}: there are no n by n weights")
            attention._check(src, None, is_causal, name="src", causal_name="is_causal")
            real, unclear = _read_padding(src_key_padding_mask, src)
        if self.norm_first:
            src = src + self._attention(src, real)
            out: torch.Tensor = src + self._ff_block(self.norm2(src))
        else:
            src = self.norm1(src + self._attention(src, real))
            out = self.norm2(src + self._ff_block(src))
        return out if unclear is None else out.masked_fill(unclear, math.nan)

    def _attention(self, x: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        attention: Any = self.self_attn
        with attention._telling():  # a hook of the norm may raise an error
            x = self.norm1(x) if self.norm_first else x
        mixed: torch.Tensor = self.dropout1(attention(x, token_mask=real))
        return mixed


def _read_padding(padding: torch.Tensor | None, src: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return which tokens of ``src`` are real, and which sequences are unclear where that cannot be looked at."""
    if padding is None:
        return None, None
    name, way = "src_key_padding_mask", "what is to be hidden as True, such as mask == -torch.inf or mask < -1000"
    check_tensor(name, padding, tuple(src.shape[:2]))
    if padding.device != src.device:
        raise ValueError(f"{name} must be on the device of src, {src.device}, got {padding.device}")
    if padding.dtype == torch.bool:
        return ~padding, None
    if not padding.is_floating_point():
        raise TypeError(f"{name} must be of type bool, or floating-point with 0 and -inf, got {padding.dtype}")
    real = padding == 0
    unclear = ~(real | (padding == -math.inf))
    if padding.device.type != "cpu" or torch.compiler.is_compiling() or is_transformed():
        return real, unclear.any(dim=1)[:, None, None]
    if unclear.any():
        raise ValueError(
            f"{name} must hold 0 and -inf alone, or bools, got {padding[unclear][0].item()}: hand over {way}"
        )
    return real, None
