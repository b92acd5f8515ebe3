"""The layers of each package that has Linformer, built and called by the same methods: one adapter a package.

``measure.packages.linformer`` asks them for their promises, ``measure.speed.linformer`` times them.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import linformer_pytorch
import torch
from linformer import LinformerSelfAttention as LucidrainsLayer
from torch import nn

from lowrank_tutor.linformer import LinformerSelfAttention, linformer_attention


class NotOffered(Exception):
    """The package has no such feature; the text says how one knows."""


class Size(NamedTuple):
    """The sizes of a layer."""

    dim: int
    heads: int
    max_len: int
    k: int


class Weights(NamedTuple):
    """The weights of one layer: four (D, D) matrices in torch's layout (out, in), a bias (D,), and two (k, n)."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor
    bias: torch.Tensor
    e: torch.Tensor
    f: torch.Tensor


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let the CPU's global generator start from a seed, and give it back as it was."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also note for a GPU where it was called from, which takes longer
        # than the draw.
        torch.default_generator.manual_seed(seed)
        yield


def copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Overwrite a parameter, whatever its type."""
    with torch.no_grad():
        target.copy_(source.to(target).expand_as(target))


def split(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Cut the width into heads: (batch, n, D) to (batch, heads, n, d)."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


class Adapter(ABC):
    """A package with a layer of Linformer. What a package does not have raises `NotOffered`."""

    name: ClassVar[str]
    distribution: ClassVar[str]
    layer: ClassVar[str]  # what is built, for the record
    remarks: ClassVar[
        Mapping[str, str]
    ] = {}  # by promise: what the reader should know beside the number
    ours: ClassVar[bool] = False
    may_lack: ClassVar[
        Sequence[str]
    ] = ()  # promises that our own layer need not offer in this form
    mask_names: ClassVar[Sequence[str]] = ()
    one_projection: ClassVar[bool] = False  # E = F at the defaults

    @abstractmethod
    def plain(self, size: Size, seed: int = 0) -> nn.Module:
        """Build the layer at the package's defaults."""

    def call(
        self, layer: nn.Module, x: torch.Tensor, token_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Run it; ``token_mask`` is True for real tokens."""
        if token_mask is not None:
            raise NotOffered("no mask")
        return layer(x)

    @abstractmethod
    def put(self, layer: nn.Module, weights: Weights) -> None:
        """Set the weights of queries, keys, values and output."""

    @abstractmethod
    def put_projections(self, layer: nn.Module, e: torch.Tensor, f: torch.Tensor) -> None:
        """Set E and F, and zero a bias that they have."""

    def shorter(self, size: Size, seed: int = 0) -> nn.Module:
        """Build a layer that may read sequences shorter than ``max_len``."""
        return self.plain(size, seed)

    def unshared(self, size: Size, seed: int = 0) -> nn.Module:
        """Build a layer with E and F apart."""
        return self.plain(size, seed)

    @abstractmethod
    def shared(self, size: Size, seed: int = 0) -> nn.Module:
        """Build a layer with E = F and values of its own."""

    @abstractmethod
    def causal(self, size: Size, seed: int = 0) -> Callable[[torch.Tensor], torch.Tensor]:
        """Build a layer in which no token sees a later one."""

    def fixed(self, size: Size, seed: int = 0) -> nn.Module:
        """Build a layer with a compression that is not learned."""
        raise NotOffered("no argument for a projection that is not learned")

    @abstractmethod
    def cross(self, layer: nn.Module, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        """Let the tokens of one sequence attend to another."""

    def projection_size(self, size: Size) -> int:
        """Count the numbers of one compressing projection."""
        return size.k * size.max_len


class Ours(Adapter):
    """Our layer, with E = F."""

    name, distribution, ours = "lowrank_tutor E = F", "lowrank-tutor", True
    layer = 'LinformerSelfAttention(sharing="key-value")'
    mask_names = ("token_mask",)
    sharing: ClassVar[str] = "key-value"
    one_projection = True
    remarks: ClassVar[dict[str, str]] = {
        "cross-attention": "with the function linformer_attention; the layer is self-attention only",
        "saved, fixed": "with the argument projection",
    }

    def plain(self, size: Size, seed: int = 0, **options: Any) -> nn.Module:
        with seeded(seed):
            return LinformerSelfAttention(*size, **{"sharing": self.sharing, **options})

    def call(
        self, layer: nn.Module, x: torch.Tensor, token_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        return layer(x, token_mask=token_mask)

    def put(self, layer: nn.Module, weights: Weights) -> None:
        copy(layer.to_q.weight, weights.q)
        copy(layer.to_k.weight, weights.k)
        copy(layer.to_v.weight, weights.v)
        copy(layer.to_out.weight, weights.out)
        copy(layer.to_out.bias, weights.bias)

    def put_projections(self, layer: nn.Module, e: torch.Tensor, f: torch.Tensor) -> None:
        copy(layer.e, e)
        if layer.f is not None:
            copy(layer.f, f)

    def causal(self, size: Size, seed: int = 0) -> Callable[[torch.Tensor], torch.Tensor]:
        layer = self.plain(size, seed)
        return lambda x: layer(x, causal=True)

    def unshared(self, size: Size, seed: int = 0) -> nn.Module:
        return self.plain(size, seed, sharing="headwise")

    def shared(self, size: Size, seed: int = 0) -> nn.Module:
        return self.plain(size, seed, sharing="key-value")

    def fixed(self, size: Size, seed: int = 0) -> nn.Module:
        return self.plain(
            size,
            seed,
            projection=torch.randn(
                size.k, size.max_len, generator=torch.Generator().manual_seed(seed)
            ),
        )

    def cross(self, layer: nn.Module, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        parts = (layer.to_q(x), layer.to_k(context), layer.to_v(context))
        q, k, v = (split(part, layer.heads) for part in parts)
        return layer.to_out(
            linformer_attention(q, k, v, layer.e, layer.f).transpose(1, 2).flatten(2)
        )


class OursHeadwise(Ours):
    """Our layer, with E and F apart."""

    name, layer, sharing = (
        "lowrank_tutor E != F",
        'LinformerSelfAttention(sharing="headwise")',
        "headwise",
    )
    one_projection = False
    may_lack = ("saved, fixed",)

    def fixed(self, size: Size, seed: int = 0) -> nn.Module:
        raise NotOffered("a projection that is passed in serves both keys and values")


class Lucidrains(Adapter):
    """The package ``linformer``."""

    name, distribution = "linformer", "linformer"
    layer = "LinformerSelfAttention (defaults, E != F)"
    remarks: ClassVar[dict[str, str]] = {
        "exact, shorter": 'the README says "Assumes a fixed sequence length"; since issue 8, shorter ones are accepted'
        " and E is sliced, but rows left empty still take a share of the softmax",
        "spread": "E starts uniform within 1/sqrt(k), whatever the length: the spread grows like sqrt(n)",
        "spread, shorter": "since issue 8 E is sliced",
        "mask heeded": "no mask is documented, and forward(**kwargs) accepts and ignores mask, key_padding_mask,"
        " attention_mask, and token_mask",
    }

    def plain(self, size: Size, seed: int = 0, **options: Any) -> nn.Module:
        with seeded(seed):
            return LucidrainsLayer(size.dim, size.max_len, k=size.k, heads=size.heads, **options)

    def call(
        self, layer: nn.Module, x: torch.Tensor, token_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if token_mask is not None:
            raise NotOffered("no mask argument (issue 6 asks for one)")
        return layer(x)

    def put(self, layer: nn.Module, weights: Weights) -> None:
        copy(layer.to_q.weight, weights.q)
        copy(layer.to_k.weight, weights.k)
        copy(layer.to_out.weight, weights.out)
        copy(layer.to_out.bias, weights.bias)
        if not layer.share_kv:
            copy(layer.to_v.weight, weights.v)

    def put_projections(self, layer: nn.Module, e: torch.Tensor, f: torch.Tensor) -> None:
        copy(layer.proj_k, e.T)
        if not layer.share_kv:
            copy(layer.proj_v, f.T)

    def shared(self, size: Size, seed: int = 0) -> nn.Module:
        raise NotOffered(
            "share_kv shares the D x D matrix, too, so V = K; E = F with separate values is not possible"
        )

    def causal(self, size: Size, seed: int = 0) -> Callable[[torch.Tensor], torch.Tensor]:
        raise NotOffered('the README says "It does not work for the auto-regressive case"')

    def cross(self, layer: nn.Module, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        return layer(x, context)


class Tatp22(Adapter):
    """The package ``linformer-pytorch``: its attention layer, and its model with the padder where lengths vary."""

    name, distribution = "linformer-pytorch", "linformer-pytorch"
    layer = 'MHAttention(parameter_sharing="headwise", E != F); Padder(Linformer(include_ff=False)) for shorter sequences'
    mask_names = ("input_mask",)
    remarks: ClassVar[dict[str, str]] = {
        "exact, masked": "hidden keys become zeros and still take a share of the softmax; pull request 12 says that"
        " masking is not done as in the original transformer",
        "exact, shorter": "with the Padder, which appends zeros that still take a share of the softmax",
        "padding appended": "with the Padder",
        "spread, shorter": "with the Padder",
        "causal": "causal=True, documented, masks the upper right of the (n, k) matrix, whose columns mix all tokens",
        "sharing saves": 'parameter_sharing="kv"; one matrix with its bias',
        "sharing keeps values": 'parameter_sharing="kv"',
        "saved, fixed": 'method="no_params": the matrix is in no state_dict',
        "double": "the Padder makes zeros in single precision, and then fails",
        "bfloat16": "the Padder makes zeros in single precision, and then fails",
    }

    def plain(self, size: Size, seed: int = 0, **options: Any) -> nn.Module:
        options = {"parameter_sharing": "headwise", "E_proj": None, "F_proj": None, **options}
        sizes = {
            "input_size": size.max_len,
            "dim": size.dim // size.heads,
            "channels": size.dim,
            "dim_k": size.k,
        }
        rest = {"nhead": size.heads, "dropout": 0.0, "checkpoint_level": "C0"}
        with seeded(seed):
            return linformer_pytorch.MHAttention(
                **sizes, **rest, full_attention=False, causal_mask=None, **options
            )

    def model(self, size: Size, seed: int, **options: Any) -> nn.Module:
        """Build the whole model, one layer deep and without feed-forward layers."""
        sizes = {
            "input_size": size.max_len,
            "channels": size.dim,
            "dim_k": size.k,
            "nhead": size.heads,
        }
        rest = {"depth": 1, "dropout": 0.0, "include_ff": False, "parameter_sharing": "headwise"}
        with seeded(seed):
            return linformer_pytorch.Linformer(**sizes, **rest, **options)

    def call(
        self, layer: nn.Module, x: torch.Tensor, token_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Run it. Of a whole model the attention's own result is taken, before the residual and the norm."""
        options = {}
        if (
            token_mask is not None
        ):  # the padder passes a mask on as it is: it must be as long as the layer
            long = (
                layer.net.input_size if isinstance(layer, linformer_pytorch.Padder) else x.shape[1]
            )
            options["input_mask"] = nn.functional.pad(
                token_mask, (0, long - x.shape[1]), value=False
            )
        outputs = []
        hook = attention_in(layer).register_forward_hook(
            lambda _module, _inputs, output: outputs.append(output)
        )
        try:
            layer(x, **options)
        finally:
            hook.remove()
        return outputs[0][:, : x.shape[1]]

    def put(self, layer: nn.Module, weights: Weights) -> None:
        attention = attention_in(layer)
        for i, rows in enumerate(torch.arange(weights.q.shape[0]).chunk(len(attention.heads))):
            copy(attention.to_q[i].weight, weights.q[rows])
            copy(attention.to_k[i].weight, weights.k[rows])
            copy(attention.to_v[i].weight, weights.v[rows])
        copy(attention.w_o.weight, weights.out)
        copy(attention.w_o.bias, weights.bias)

    def put_projections(self, layer: nn.Module, e: torch.Tensor, f: torch.Tensor) -> None:
        for head in attention_in(layer).heads:
            copy(head.E.weight, e)
            copy(head.E.bias, torch.zeros(()))
            if head.F is not head.E:
                copy(head.F.weight, f)
                copy(head.F.bias, torch.zeros(()))

    def shorter(self, size: Size, seed: int = 0) -> nn.Module:
        return linformer_pytorch.Padder(self.model(size, seed))

    def causal(self, size: Size, seed: int = 0) -> Callable[[torch.Tensor], torch.Tensor]:
        model = self.model(size, seed, causal=True)
        return lambda x: self.call(model, x)

    def cross(self, layer: nn.Module, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        raise NotOffered("decoder_mode needs as many embeddings as the input has tokens")

    def shared(self, size: Size, seed: int = 0) -> nn.Module:
        return self.plain(size, seed, parameter_sharing="kv")

    def projection_size(self, size: Size) -> int:
        return size.k * size.max_len + size.k

    def fixed(self, size: Size, seed: int = 0) -> nn.Module:
        return self.plain(size, seed, method="no_params")


def attention_in(layer: nn.Module) -> linformer_pytorch.MHAttention:
    """Find the attention in a model of ``linformer-pytorch``; of the attention itself, it is that."""
    return next(part for part in layer.modules() if isinstance(part, linformer_pytorch.MHAttention))


ADAPTERS: list[Adapter] = [Ours(), OursHeadwise(), Lucidrains(), Tatp22()]
