"""The ways to attend that ``benchmarks.linformer`` measures, each with its cost by the formulas.

A cost counts what the written-out algorithm multiplies, whichever kernel does it. Forward and backward together count
three times the operations of forward: each product has two gradients, each a product of the same size.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.adapters_linformer import Lucidrains, Ours, OursHeadwise, Size, Tatp22, seeded, split
from lowrank_tutor.attention import softmax_cost
from lowrank_tutor.linformer import linformer_attention, linformer_cost
from lowrank_tutor.roofline import RESERVE, attention_bytes

DIM, HEADS = 512, 8
OURS, OURS_APART = Ours.name, OursHeadwise.name
LUCIDRAINS, LUCIDRAINS_SHARED = "linformer", "linformer share_kv (V = K)"
TATP22, TATP22_APART = "linformer-pytorch kv", "linformer-pytorch headwise"
FUSED, NAIVE = "exact, fused", "exact, written out"
CORE, CORE_UNFUSED = "linformer_attention", "linformer, written out"
OWN_PRODUCT, SQUARE_PRODUCT = "x @ W", "square product"
SQUARE = 2048
MODES = ("forward", "forward+backward")
BACKENDS = {
    f"exact, {backend.name}": backend
    for backend in (
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.MATH,
    )
}
WRITES_SCORES = (NAIVE, "exact, MATH")
LONGEST_WRITTEN_OUT = 4096  # on a CPU, for its time and memory


class Group(NamedTuple):
    """What is measured in the same rounds: all methods on one batch."""

    # "module": a whole layer; "core": queries, keys and values given; "crossover": a module, short sequences
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
    """A layer of exact attention, of the same weights as ours."""

    def __init__(self, attend: Callable[..., torch.Tensor], dim: int, heads: int) -> None:
        super().__init__()
        ours = Ours().plain(Size(dim, heads, 1, 1))
        self.attend, self.heads = attend, heads
        self.to_q, self.to_k, self.to_v, self.to_out = ours.to_q, ours.to_k, ours.to_v, ours.to_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend exactly."""
        q, k, v = (split(project(x), self.heads) for project in (self.to_q, self.to_k, self.to_v))
        return self.to_out(self.attend(q, k, v).transpose(1, 2).flatten(2))


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attend with the matrix of weights in memory."""
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[3]), dim=3) @ v


def by_backend(backend: SDPBackend) -> Callable[..., torch.Tensor]:
    """Attend by one of PyTorch's kernels, or not at all."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v)

    return attend


def exact_ways(group: Group, device: torch.device, heads: int) -> dict[str, Callable[..., torch.Tensor]]:
    """Name the ways to attend exactly that fit; the backends one by one on a GPU, where there is a choice."""
    ways = {FUSED: functional.scaled_dot_product_attention}
    if group.series == "module":
        ways[NAIVE] = written_out
    if device.type == "cuda":
        ways |= {name: by_backend(backend) for name, backend in BACKENDS.items()}
    return {name: way for name, way in ways.items() if name not in WRITES_SCORES or scores_fit(group, device, heads)}


def scores_fit(group: Group, device: torch.device, heads: int, dim: int = DIM) -> bool:
    """Say whether the scores may be written out: on a GPU where they fit, with two thirds more for gradients."""
    if device.type == "cpu":
        return group.n <= LONGEST_WRITTEN_OUT
    needed = attention_bytes(group.n, dim // heads, heads, fused=False, batch=group.batch)
    free, _ = torch.cuda.mem_get_info(device)
    return needed * (1 if group.mode == "forward" else 5 / 3) <= RESERVE * free


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
            for name, k, layer, flops in layers(group, device, dim, heads)
        ]
        return built + (list(products(x.detach(), dim)) if device.type == "cpu" else [])


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
        yield LUCIDRAINS_SHARED, k, Lucidrains().plain(size, share_kv=True), theirs - 2 * n * dim**2
        yield TATP22, k, Tatp22().shared(size), theirs
        yield TATP22_APART, k, Tatp22().plain(size), theirs
    for name, attend in exact_ways(group, device, heads).items():
        yield name, None, Exact(attend, dim, heads), softmax_cost(n, dim, heads).flops


def core_methods(group: Group, device: torch.device, dim: int, heads: int) -> Iterator[Method]:
    """Build attention alone: queries, keys and values given."""
    n, b = group.n, group.batch
    inputs = [torch.randn(b, heads, n, dim // heads).to(dtype_of(group)) for _ in range(3)]
    upstream = torch.randn_like(inputs[0])
    for k in (k for k in group.ks if k <= n):
        e = (torch.randn(k, n) / math.sqrt(n)).to(dtype_of(group))

        def unfused(q: torch.Tensor, key: torch.Tensor, v: torch.Tensor, e: torch.Tensor = e) -> torch.Tensor:
            return written_out(q, e @ key, e @ v)

        def fused(q: torch.Tensor, key: torch.Tensor, v: torch.Tensor, e: torch.Tensor = e) -> torch.Tensor:
            return linformer_attention(q, key, v, e)

        for name, function in ((CORE, fused), (CORE_UNFUSED, unfused)):
            yield method(name, k, function, inputs, [e], 8 * b * n * k * dim, upstream, group)
    for name, attend in exact_ways(group, device, heads).items():
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


def products(x: torch.Tensor, dim: int) -> Iterator[Method]:
    """Build the two products whose rates the others are held against, in the same rounds."""
    rows, w, square = x.flatten(0, 1), torch.randn(dim, dim, dtype=x.dtype), torch.randn(SQUARE, SQUARE, dtype=x.dtype)
    for name, a, b in ((OWN_PRODUCT, rows, w), (SQUARE_PRODUCT, square, square)):
        flops = 2 * a.shape[0] * a.shape[1] * b.shape[1]
        yield Method(name, None, lambda _run, a=a, b=b: a @ b, flops, a.nbytes + b.nbytes)
