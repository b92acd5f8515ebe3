"""The ways to attend that ``measure.speed.linformer`` measures, each with its cost by the formulas.

A cost counts what the written-out algorithm multiplies, whichever kernel does it. Forward and backward together count
three times the operations of forward: each product has two gradients, each a product of the same size.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lowrank_tutor.attention import softmax_cost
from lowrank_tutor.linformer import LinformerEncoderLayer, linformer_attention, linformer_cost
from measure.packages.layers import Lucidrains, Ours, OursHeadwise, Size, Tatp22, seeded, split

DIM, HEADS = 512, 8
OURS, OURS_APART = Ours.name, OursHeadwise.name
LUCIDRAINS, TATP22 = "linformer", "linformer-pytorch kv"
FUSED, CORE, OWN_PRODUCT = "exact, fused", "linformer_attention", "x @ W"
MODES = ("forward", "forward+backward")
ENCODERS = {"encoder layer": 1, "encoder": 6}  # layers of each series in which attention is a part
FEEDFORWARD = 4  # times as wide as the tokens
BACKENDS = {
    f"exact, {backend.name}": backend
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)
}


class Group(NamedTuple):
    """What is measured in the same rounds: all methods on one batch."""

    # "module": attention with its four linear maps; "core": queries, keys and values given; "crossover": a module,
    # short sequences; those of ENCODERS: modules with a feed-forward network and norms
    series: str
    mode: str
    dtype: str
    batch: int
    n: int
    ks: tuple[int, ...]
    peer_ks: tuple[int, ...] = ()  # those at which other packages are measured too


class Method(NamedTuple):
    """One thing to run."""

    name: str
    k: int | None
    run: Callable[[int], Any]
    flops: int
    held_bytes: int  # tokens and parameters, there before


class Exact(nn.Module):
    """Exact attention with its linear maps, of the same weights as ours."""

    def __init__(self, attend: Callable[..., torch.Tensor], dim: int, heads: int) -> None:
        super().__init__()
        ours = Ours().plain(Size(dim, heads, 1, 1))
        self.attend, self.heads = attend, heads
        self.to_q, self.to_k, self.to_v, self.to_out = ours.to_q, ours.to_k, ours.to_v, ours.to_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend exactly."""
        q, k, v = (split(project(x), self.heads) for project in (self.to_q, self.to_k, self.to_v))
        return self.to_out(self.attend(q, k, v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    """Attention and a feed-forward network, each behind a norm and added: ours without its checks, any attention."""

    def __init__(self, attention: nn.Module, dim: int, feedforward: int) -> None:
        super().__init__()
        self.attention, self.norm = attention, nn.LayerNorm(dim)
        parts = nn.LayerNorm(dim), nn.Linear(dim, feedforward), nn.ReLU(), nn.Linear(feedforward, dim)
        self.feedforward = nn.Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves."""
        x = x + self.attention(self.norm(x))
        return x + self.feedforward(x)


def by_backend(backend: SDPBackend) -> Callable[..., torch.Tensor]:
    """Attend by one of PyTorch's kernels, or not at all."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v)

    return attend


def exact_ways(device: torch.device) -> dict[str, Callable[..., torch.Tensor]]:
    """Name the ways to attend exactly: as PyTorch chooses, and on a GPU by each kernel that writes no scores."""
    kernels = BACKENDS if device.type == "cuda" else {}
    chosen = {FUSED: functional.scaled_dot_product_attention}
    return chosen | {name: by_backend(backend) for name, backend in kernels.items()}


def dtype_of(group: Group) -> torch.dtype:
    """Turn the name of a type into the type."""
    found: torch.dtype = getattr(torch, group.dtype)
    return found


def methods(group: Group, device: torch.device, dim: int = DIM, heads: int = HEADS) -> list[Method]:
    """Build everything that one group measures, on the same tokens."""
    with seeded(0), torch.device(device):
        if group.series == "core":
            return list(core_methods(group, device, dim, heads))
        x = torch.randn(group.batch, group.n, dim).to(dtype_of(group))
        upstream = torch.randn_like(x)
        built = [
            method(
                name, k, layer.to(dtype_of(group)), [x], list(layer.parameters()), group.batch * flops, upstream, group
            )
            for name, k, layer, flops in (encoders if group.series in ENCODERS else layers)(group, device, dim, heads)
        ]
        alone = device.type != "cpu" or group.series in ENCODERS
        return built if alone else [*built, own_product(x.detach(), dim)]


def layers(
    group: Group, device: torch.device, dim: int, heads: int
) -> Iterator[tuple[str, int | None, nn.Module, int]]:
    """Yield name, k, layer, and the operations of one sequence."""
    n = group.n
    for k in (k for k in group.ks if k <= n):
        size = Size(dim, heads, n, k)
        yield OURS, k, Ours().plain(size), linformer_cost(n, dim, heads, k).flops
        yield OURS_APART, k, OursHeadwise().plain(size), linformer_cost(n, dim, heads, k, sharing="headwise").flops
        if k not in group.peer_ks:
            continue
        theirs = 8 * n * dim**2 + 8 * n * k * dim
        yield LUCIDRAINS, k, Lucidrains().plain(size), theirs
        yield TATP22, k, Tatp22().shared(size), theirs
    for name, attend in exact_ways(device).items():
        yield name, None, Exact(attend, dim, heads), softmax_cost(n, dim, heads).flops


def encoders(
    group: Group, device: torch.device, dim: int, heads: int
) -> Iterator[tuple[str, int | None, nn.Module, int]]:
    """Yield name, k, encoder, and the operations of one sequence: this book's layers, and those of exact attention."""
    n, count, width = group.n, ENCODERS[group.series], FEEDFORWARD * dim

    def stack(layer: Callable[[], nn.Module]) -> nn.Module:
        return nn.Sequential(*(layer() for _ in range(count)))

    for k in (k for k in group.ks if k <= n):
        ours = partial(LinformerEncoderLayer, dim, heads, n, k, width, 0.0)
        yield OURS, k, stack(ours), count * linformer_cost(n, dim, heads, k, feedforward=width).flops
    for name, attend in exact_ways(device).items():

        def exact(attend: Callable[..., torch.Tensor] = attend) -> nn.Module:
            return EncoderLayer(Exact(attend, dim, heads), dim, width)

        yield name, None, stack(exact), count * softmax_cost(n, dim, heads, feedforward=width).flops


def core_methods(group: Group, device: torch.device, dim: int, heads: int) -> Iterator[Method]:
    """Build attention alone: queries, keys and values given."""
    n, b = group.n, group.batch
    inputs = [torch.randn(b, heads, n, dim // heads).to(dtype_of(group)) for _ in range(3)]
    upstream = torch.randn_like(inputs[0])
    for k in (k for k in group.ks if k <= n):
        e = (torch.randn(k, n) / math.sqrt(n)).to(dtype_of(group))

        def fused(q: torch.Tensor, key: torch.Tensor, v: torch.Tensor, e: torch.Tensor = e) -> torch.Tensor:
            return linformer_attention(q, key, v, e)

        yield method(CORE, k, fused, inputs, [e], 8 * b * n * k * dim, upstream, group)
    for name, attend in exact_ways(device).items():
        yield method(name, None, attend, inputs, [], 4 * b * n**2 * dim, upstream, group)


def method(
    name: str,
    k: int | None,
    function: Callable[..., torch.Tensor],
    inputs: list[torch.Tensor],
    parameters: list[torch.Tensor],
    flops: int,
    upstream: torch.Tensor,
    group: Group,
) -> Method:
    """Make a method of a function of ``inputs``: run it, or run it and its gradients from those ``upstream``."""
    read = sum(part.nbytes for part in [*inputs, *parameters])
    if group.mode == "forward":

        def forward(_run: int) -> torch.Tensor:
            with torch.no_grad():
                return function(*inputs)

        return Method(name, k, forward, flops, read)
    for part in [*inputs, *parameters]:
        part.requires_grad_()

    def both(_run: int) -> None:
        function(*inputs).backward(upstream)
        for part in [*inputs, *parameters]:  # so that nothing is left for the next method to free
            part.grad = None

    return Method(name, k, both, 3 * flops, read + upstream.nbytes)


def own_product(x: torch.Tensor, dim: int) -> Method:
    """Build the product whose rate the others are held against, in the same rounds."""
    rows, w = x.flatten(0, 1), torch.randn(dim, dim, dtype=x.dtype)
    return Method(OWN_PRODUCT, None, lambda _run: rows @ w, 2 * rows.shape[0] * dim**2, rows.nbytes + w.nbytes)
