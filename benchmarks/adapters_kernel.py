"""Call each package that has kernel attention: one adapter a package, the same methods for all.

Queries, keys and values are (batch, heads, n, d), a mask is (batch, n) and True for real tokens. ``rows`` does not use
the package: it writes out, in double precision, the features that the package says it has, so that the contract can
form every weight as the product of two rows.
"""

import contextlib
import io
import math
import warnings
from abc import abstractmethod
from typing import ClassVar

import torch
from linear_attention_transformer.linear_attention_transformer import SelfAttention as LinearSelfAttention
from linear_attention_transformer.linear_attention_transformer import causal_linear_attn, linear_attn
from torch import Tensor, nn

from benchmarks.adapters_linformer import seeded, split
from benchmarks.promises import Package
from lowrank_tutor.attention import linear_attention, orthogonal_features, performer_attention

with warnings.catch_warnings():  # it reads torch's version by a class of distutils, which is deprecated
    warnings.filterwarnings("ignore", "distutils Version classes", DeprecationWarning)
    import performer_pytorch

Mask = Tensor | None


class KernelAdapter(Package):
    """A package with kernel attention; ``directions(layer)`` returns the directions W (m, d) of random features."""

    lacks: ClassVar[dict[str, str]] = {"directions": "an attention of its own, no estimate of softmax attention"}

    def draw(self, d: int, m: int, seed: int = 0) -> nn.Module:
        """Build what holds the random features, m of them for rows of width d; nothing, where there are none."""
        return nn.Module()

    @abstractmethod
    def attend(self, layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, causal: bool) -> Tensor:
        """Run it on these very tensors."""

    @abstractmethod
    def rows(self, layer: nn.Module, q: Tensor, k: Tensor, mask: Mask, *, causal: bool) -> tuple[Tensor, Tensor]:
        """Write out the features of queries and keys."""

    def factor(self, d: int, *, causal: bool) -> float:
        """Give what the package multiplies its weighed average by."""
        return 1.0

    @abstractmethod
    def with_keyword(self, **unknown: bool) -> None:
        """Run what the README shows with one keyword more."""


class OursLinear(KernelAdapter):
    """Our linear attention."""

    name, distribution, ours = "lowrank_tutor linear", "lowrank-tutor", True
    layer = "linear_attention"
    may_lack = ("limit", "unbiased")

    def attend(self, layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, causal: bool) -> Tensor:
        return linear_attention(q, k, v, token_mask=mask, causal=causal)

    def rows(self, layer: nn.Module, q: Tensor, k: Tensor, mask: Mask, *, causal: bool) -> tuple[Tensor, Tensor]:
        return nn.functional.elu(q) + 1, nn.functional.elu(k) + 1

    def with_keyword(self, **unknown: bool) -> None:
        linear_attention(*torch.ones(3, 1, 1, 2, 2), **unknown)


class Directions(nn.Module):
    """One draw of our features, as a model would keep it."""

    def __init__(self, d: int, m: int, seed: int) -> None:
        super().__init__()
        self.register_buffer("w", orthogonal_features(m, d, generator=torch.Generator().manual_seed(seed)))


class OursPerformer(KernelAdapter):
    """Our Performer."""

    name, distribution, ours = "lowrank_tutor Performer", "lowrank-tutor", True
    layer = "performer_attention, features by orthogonal_features"

    def draw(self, d: int, m: int, seed: int = 0) -> nn.Module:
        return Directions(d, m, seed)

    def directions(self, layer: nn.Module) -> Tensor:
        return layer.w

    def attend(self, layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, causal: bool) -> Tensor:
        w = layer.w.to(torch.promote_types(q.dtype, torch.float32))
        return performer_attention(q, k, v, features=w, token_mask=mask, causal=causal)

    def rows(self, layer: nn.Module, q: Tensor, k: Tensor, mask: Mask, *, causal: bool) -> tuple[Tensor, Tensor]:
        return positive_rows(q, layer.w), positive_rows(k, layer.w)

    def with_keyword(self, **unknown: bool) -> None:
        performer_attention(*torch.ones(3, 1, 1, 2, 2), **unknown)


def positive_rows(x: Tensor, w: Tensor, axes: tuple[int, ...] = (), epsilon: float = 0.0) -> Tensor:
    """Write out exp(w x - |x|^2/2) of x / d^(1/4), divided by the largest exp(w x) along axes, plus epsilon."""
    x, w = x.double() / x.shape[3] ** 0.25, w.double()
    exponents = x @ w.T
    largest = exponents.amax(dim=axes, keepdim=True) if axes else 0.0
    return (exponents - largest - x.square().sum(dim=3, keepdim=True) / 2).exp() + epsilon


class Handed(nn.Module):
    """In place of a linear layer: hand on one of three parts of the width, as a tensor of its own."""

    def __init__(self, part: int) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return x.chunk(3, dim=2)[self.part].clone()


class PerformerPytorch(KernelAdapter):
    """The package ``performer-pytorch``: ``FastAttention``, and around it ``SelfAttention`` where there is a mask."""

    name, distribution = "performer-pytorch", "performer-pytorch"
    layer = "FastAttention (defaults); SelfAttention (its linear layers the identity) where there is a mask"
    remarks: ClassVar[dict[str, str]] = {
        "own form, masked": "the mask zeroes values only: hidden keys stay in the sum that divides; issue 89 asks where"
        " the mask acts",
        "limit": "the features are biased",
        "unbiased": "Q of a QR decomposition, without the signs of R's diagonal",
        "padding content": "hidden keys stay in the sum that divides",
        "padding appended": "hidden keys stay in the sum that divides",
        "ones": "1 in the plain form; the causal one adds 1e-6 to sums that may be as small",
        "causal": "keys are divided by the largest feature among all tokens, later ones too, before constants are"
        " added: shown by a last token made three times as long",
        "causal, own form": "1e-6 is added to sums that may be as small",
        "causal, last": "1e-6 is added to sums that may be as small",
        "unknown keyword": "SelfAttention.forward(**kwargs) takes any; FastAttention refuses",
        "gradients": "the largest exponent is detached, but with a constant added to each feature it does not cancel",
        "large norms": "finite, and no softmax any more: each feature is the constant added to it, each result the"
        " plain mean",
    }

    def draw(self, d: int, m: int, seed: int = 0) -> nn.Module:
        with seeded(seed):
            return performer_pytorch.FastAttention(dim_heads=d, nb_features=m)

    def directions(self, layer: nn.Module) -> Tensor:
        return layer.projection_matrix

    def attend(self, layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, causal: bool) -> Tensor:
        if mask is None and not causal:
            return layer(q, k, v)
        heads, d = q.shape[1], q.shape[3]
        with seeded(0), contextlib.redirect_stdout(io.StringIO()):  # it says that its CUDA code is not there
            around = performer_pytorch.SelfAttention(
                heads * d, heads=heads, dim_head=d, nb_features=layer.nb_features, causal=causal
            )
        attention = around.fast_attention.to(q.dtype)
        attention.load_state_dict(layer.state_dict())
        if mask is None:
            return attention(q, k, v)
        around.to_q, around.to_k, around.to_v, around.to_out = Handed(0), Handed(1), Handed(2), nn.Identity()
        x = torch.cat([part.transpose(1, 2).flatten(2) for part in (q, k, v)], dim=2)
        return split(around(x, mask=mask), heads)

    def rows(self, layer: nn.Module, q: Tensor, k: Tensor, mask: Mask, *, causal: bool) -> tuple[Tensor, Tensor]:
        w = layer.projection_matrix
        return positive_rows(q, w, (3,), 1e-4), positive_rows(k, w, (2, 3), 1e-4)

    def with_keyword(self, **unknown: bool) -> None:
        with seeded(0):
            performer_pytorch.SelfAttention(dim=2, heads=1, dim_head=2)(torch.ones(1, 2, 2), **unknown)


class LinearAttentionTransformer(KernelAdapter):
    """The package ``linear-attention-transformer``: the functions of its attention layer, as the layer calls them."""

    name, distribution = "linear-attention-transformer", "linear-attention-transformer"
    layer = "linear_attn; causal_linear_attn(bucket_size=1): what SelfAttention calls at its defaults"
    remarks: ClassVar[dict[str, str]] = {
        "own form": "up to a factor 1/sqrt(d) beside the weights; see the average of ones",
        "ones": "a factor 1/sqrt(d) in the plain form, which the next linear layer can learn; 1 in the causal form",
        "tensors kept": "linear_attn overwrites hidden keys and values in place, causal_linear_attn values; the layer"
        " hands over its own",
        "causal, last": "two formulas: the plain form divides each feature by its sum over the tokens, the causal one"
        " each weight by its query's sum",
        "unknown keyword": "SelfAttention.forward(**kwargs) takes any",
    }

    def attend(self, layer: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Mask, *, causal: bool) -> Tensor:
        if causal:
            return causal_linear_attn(q, k, v, kv_mask=mask, bucket_size=1)
        return linear_attn(q, k, v, kv_mask=mask)

    def rows(self, layer: nn.Module, q: Tensor, k: Tensor, mask: Mask, *, causal: bool) -> tuple[Tensor, Tensor]:
        if causal:
            return q.softmax(dim=3), k.exp()
        if mask is not None:
            k = k.masked_fill(~mask[:, None, :, None], -math.inf)
        return q.softmax(dim=3), k.softmax(dim=2)

    def factor(self, d: int, *, causal: bool) -> float:
        return 1.0 if causal else d**-0.5

    def with_keyword(self, **unknown: bool) -> None:
        with seeded(0):
            LinearSelfAttention(dim=2, heads=1)(torch.ones(1, 2, 2), **unknown)


ADAPTERS: list[KernelAdapter] = [OursLinear(), OursPerformer(), PerformerPytorch(), LinearAttentionTransformer()]
