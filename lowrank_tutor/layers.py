"""Put Linformer in place of a model's attention, lengthen it, and build encoder layers.

Page ``book/use-linformer.md``. Shapes and ``token_mask`` are as in :mod:`lowrank_tutor.linformer`.
"""

import copy
import math
from typing import Any, TypeVar

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

from lowrank_tutor._checks import check_bool, check_choice, check_fraction, check_integer
from lowrank_tutor._tensors import (
    check_device,
    check_dtype,
    check_like,
    check_own_methods,
    check_sizes,
    check_tensor,
    check_tokens,
    is_transformed,
    zero_hidden,
)
from lowrank_tutor.linformer import LinformerSelfAttention

__all__ = ["LinformerCrossAttention", "LinformerEncoderLayer", "from_layer", "from_mha", "resized"]

Layer = TypeVar("Layer", bound=LinformerSelfAttention)
Model = TypeVar("Model", bound=nn.Module)
TRANSFORMERS = "the page book/use-linformer.md converts encoders of transformers"


def from_mha(
    mha: nn.MultiheadAttention,
    max_len: int,
    k: int,
    *,
    kind: type[Layer] | None = None,
    **options: Any,
) -> Layer:
    """Copy the weights and settings of exact attention; with k = n and E = I the layer equals it.

    Only E is new and must be learned: start it from `pooling_projection`, as a ``Parameter``.

    Parameters
    ----------
    mha : torch.nn.MultiheadAttention
        Exact attention made with ``batch_first=True``, whose keys and values are as wide as its
        queries.
    max_len, k, **options
        As in `LinformerSelfAttention`. The options are ``projection``, ``sharing``, ``rule`` and
        ``generator``.
    kind : type, optional
        The class of the new layer, such as `LinformerCrossAttention` for the ``multihead_attn`` of
        a decoder layer; by default `LinformerSelfAttention`.

    Examples
    --------
    >>> import torch
    >>> exact = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> layer = from_mha(exact, max_len=5, k=5, projection=torch.eye(5))
    >>> x = torch.randn(3, 5, 8)
    >>> bool((layer(x) - exact(x, x, x)[0]).abs().max() < 1e-5)
    True
    """
    kind = LinformerSelfAttention if kind is None else kind  # type: ignore[assignment]
    if not (isinstance(kind, type) and issubclass(kind, LinformerSelfAttention)):
        raise TypeError(f"kind must be LinformerSelfAttention or a subclass, got {kind!r}")
    if not isinstance(mha, nn.MultiheadAttention):
        raise TypeError(
            f"mha must be a torch.nn.MultiheadAttention, got {type(mha).__name__}; {TRANSFORMERS}"
        )
    check_own_methods("mha", mha, nn.MultiheadAttention, "forward")
    if not mha.batch_first:
        raise ValueError("mha must have batch_first=True, got False")
    if mha.in_proj_weight is None:
        raise ValueError(
            f"mha must have keys and values as wide as its queries, {mha.embed_dim}, "
            f"got {mha.kdim} and {mha.vdim}"
        )
    if mha.bias_k is not None or mha.add_zero_attn:
        raise ValueError("mha must attend to the tokens alone, got add_bias_kv or add_zero_attn")
    out = mha.out_proj
    own: dict[str, Any] = {"dropout": mha.dropout, "bias": mha.in_proj_bias is not None}
    own |= {"device": out.weight.device, "dtype": out.weight.dtype}
    layer = kind(mha.embed_dim, mha.num_heads, max_len, k, **own, **options)
    # An adapter's own parameters have other names.
    state = {"to_out.weight": out.weight, "to_out.bias": out.bias}
    for part, stacked in (("weight", mha.in_proj_weight), ("bias", mha.in_proj_bias)):
        if stacked is not None:
            names = (f"to_{name}.{part}" for name in "qkv")
            state |= dict(zip(names, stacked.chunk(3), strict=True))
    given = {name: rows.detach() for name, rows in state.items() if rows is not None}
    layer.load_state_dict(given, strict=False)
    return layer.train(mha.training)


def resized(model: Model, max_len: int) -> Model:
    """Return a copy of a layer, or of a model with such layers, for up to ``max_len`` tokens.

    It gives the same results, because each E gets columns of zeros, which have learned nothing:
    train with sequences that reach them. The copy shares no tensor with the model; layers that
    share one E still do.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    longest = check_integer(max_len, "max_len")
    grown = copy.deepcopy(model)
    layers = [part for part in grown.modules() if isinstance(part, LinformerSelfAttention)]
    if not layers:
        raise TypeError("model must hold a LinformerSelfAttention, got one without")
    wider: dict[Tensor, Tensor] = {}
    for layer in layers:
        if longest < layer.max_len:
            raise ValueError(f"max_len must be at least {layer.max_len}, got {longest}")
        for name in ("e", "f"):
            matrix = getattr(layer, name)
            if matrix is not None and matrix not in wider:
                more = functional.pad(matrix.detach(), (0, longest - layer.max_len))
                if isinstance(matrix, nn.Parameter):
                    more = nn.Parameter(more, matrix.requires_grad)
                wider[matrix] = more
            if matrix is not None:
                setattr(layer, name, wider[matrix])
        layer.max_len = longest
    return grown


class LinformerCrossAttention(LinformerSelfAttention):
    r"""Multi-head attention of one sequence to k mixtures of another.

    All but ``forward`` is as in `LinformerSelfAttention`. ``max_len`` bounds the sequence that is
    compressed; the one that attends may have any length.

    >>> import torch
    >>> layer = LinformerCrossAttention(dim=64, heads=4, max_len=512, k=32)
    >>> translation, original = torch.randn(2, 20, 64), torch.randn(2, 300, 64)
    >>> layer(translation, original).shape
    torch.Size([2, 20, 64])
    """

    def forward(  # type: ignore[override]
        self, x: Tensor, memory: Tensor, *, token_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Attend from ``x`` (batch, n_queries, dim) to mixtures of ``memory`` (batch, n, dim).

        ``token_mask`` (batch, n) marks the real tokens of ``memory``.
        """
        check_tokens(self, memory, token_mask, causal, "memory")
        check_like("x", x, (len(memory), "n_queries", self.dim), "the layer", self.e)
        return self._attend(x, *self._compress(zero_hidden(memory, token_mask), token_mask))


class LinformerEncoderLayer(nn.TransformerEncoderLayer):
    """PyTorch's encoder layer, its first half a `LinformerSelfAttention`.

    It is for use in ``nn.TransformerEncoder``.

    Parameters
    ----------
    dim, heads, max_len, k : int
        As in `LinformerSelfAttention`.
    feedforward, dropout : int, float
        Width of the second half, and the share dropped in training, in both halves.
    norm_first : bool
        Whether each half normalizes its input (the default, unlike PyTorch's) or its output.
    activation : str or callable
        ``"relu"``, ``"gelu"`` or a function, for the second half.
    device, dtype, **options
        As in `LinformerSelfAttention`. ``nn.TransformerEncoder`` copies its layer, and the copies
        share nothing.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerEncoderLayer(64, heads=4, max_len=512, k=32, feedforward=128)
    >>> encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        # Checked here because PyTorch's constructor, which has to draw first, would refuse bad
        # sizes in its own words.
        dim, heads, max_len, k = check_sizes(dim, heads, max_len, k)
        feedforward = check_integer(feedforward, "feedforward")
        dropout = check_fraction(dropout, "dropout", 0)
        if isinstance(activation, str):
            check_choice(activation, "activation", ("relu", "gelu"))
        elif not callable(activation) or isinstance(activation, type):
            raise TypeError(f'activation must be "relu", "gelu" or a function, got {activation!r}')
        place: dict[str, Any] = {"device": check_device(device), "dtype": check_dtype(dtype)}
        half = {"norm_first": check_bool(norm_first, "norm_first"), "batch_first": True}
        super().__init__(dim, heads, feedforward, dropout, activation, **half, **place)
        options |= {"dropout": dropout, **place}
        self.self_attn = LinformerSelfAttention(dim, heads, max_len, k, **options)  # type: ignore[assignment]

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Apply attention, then the feed-forward network, each with norm and residual connection.

        Parameters
        ----------
        src : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``.
        src_mask, is_causal
            Must be None and False: there are no n by n weights to mask.
        src_key_padding_mask : Tensor, shape (batch, n), optional
            PyTorch's mask of **padding**: True marks it, or -inf in a floating-point mask that is 0
            elsewhere. Other numbers are refused on a CPU; on a GPU and in a compiled program they
            turn their sequences into NaN.
        """
        attention: Any = self.self_attn
        if src_mask is not None:
            raise ValueError(
                "src_mask must be None, for there are no n by n weights, "
                f"got {type(src_mask).__name__}"
            )
        check_tokens(attention, src, None, is_causal, "src", "is_causal")
        real = unclear = None
        if src_key_padding_mask is not None:
            real, unclear = _read_padding(src_key_padding_mask, src)
        # A NaN in padding would reach the gradients of norms and feed-forward network.
        src = zero_hidden(src, real)
        tokens = self.norm1(src) if self.norm_first else src
        mixed: Tensor = self.dropout1(attention(tokens, token_mask=real))
        if self.norm_first:
            src = src + mixed
            out: Tensor = src + self._ff_block(self.norm2(src))
        else:
            src = self.norm1(src + mixed)
            out = self.norm2(src + self._ff_block(src))
        return out if unclear is None else out.masked_fill(unclear, math.nan)


def from_layer(
    layer: nn.TransformerEncoderLayer, max_len: int, k: int, **options: Any
) -> LinformerEncoderLayer:
    """Copy all weights and settings of PyTorch's encoder layer.

    With k = n and E = I the new one equals it.

    Parameters
    ----------
    layer : torch.nn.TransformerEncoderLayer
        An encoder layer made with ``batch_first=True``.
    max_len, k, **options
        As in `from_mha`.

    Examples
    --------
    >>> import torch
    >>> exact = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    >>> encoder = torch.nn.TransformerEncoder(exact, num_layers=3)
    >>> for i, layer in enumerate(encoder.layers):
    ...     encoder.layers[i] = from_layer(layer, max_len=40, k=8)
    >>> encoder(torch.randn(2, 40, 16)).shape
    torch.Size([2, 40, 16])
    """
    exact = isinstance(getattr(layer, "self_attn", None), nn.MultiheadAttention)
    if not (exact and isinstance(layer, nn.TransformerEncoderLayer)):
        raise TypeError(
            "layer must be a torch.nn.TransformerEncoderLayer with exact attention, "
            f"got {type(layer).__name__}; {TRANSFORMERS}"
        )
    methods = ("forward", "_sa_block", "_ff_block")
    check_own_methods("layer", layer, nn.TransformerEncoderLayer, *methods)
    if not layer.self_attn.batch_first:
        raise ValueError("layer must have batch_first=True, got False")
    attention = from_mha(layer.self_attn, max_len, k, **options)
    sizes = (attention.dim, attention.heads, 1, 1, 1)
    settings: dict[str, Any] = {"norm_first": layer.norm_first, "activation": layer.activation}
    with torch.device("meta"):  # every part is replaced
        converted = LinformerEncoderLayer(*sizes, **settings)
    for name, part in layer.named_children():
        setattr(converted, name, attention if name == "self_attn" else copy.deepcopy(part))
    return converted.train(layer.training)


def _read_padding(padding: Tensor, src: Tensor) -> tuple[Tensor, Tensor | None]:
    """Turn PyTorch's mask of padding into a token mask, and name the sequences to become NaN.

    The mask (batch, n) is bool, or floating-point with 0 and -inf. Other numbers are refused where
    they can be looked at, on a CPU; elsewhere their sequences are returned as a mask (batch, 1, 1).
    """
    name = "src_key_padding_mask"
    check_tensor(name, padding, tuple(src.shape[:2]))
    if padding.device != src.device:
        raise ValueError(f"{name} must be on the device of src, {src.device}, got {padding.device}")
    if padding.dtype == torch.bool:
        return ~padding, None
    real = padding == 0
    unclear = ~(real | (padding == -math.inf))
    # Looking would make a GPU wait, or break a compiled program.
    if padding.device.type != "cpu" or torch.compiler.is_compiling() or is_transformed():
        return real, unclear.any(dim=1)[:, None, None]
    if unclear.any():
        raise ValueError(
            f"{name} must hold 0 and -inf alone, or bools, got {padding[unclear][0].item()}"
        )
    return real, None
