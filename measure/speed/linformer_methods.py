"""The layers that ``measure.speed.linformer`` times: this book's, and exact attention."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from lowrank_tutor.layers import LinformerEncoderLayer
from lowrank_tutor.linformer import LinformerSelfAttention, linformer_attention

DIM, HEADS, FEEDFORWARD = 512, 8, 4  # feed-forward networks are four times as wide as the tokens
FUSED = "exact, fused"  # as PyTorch chooses
MODES = ("forward", "forward+backward")
Attend = Callable[..., torch.Tensor]


class Group(NamedTuple):
    """What is measured in the same rounds: all methods on one batch."""

    # "core": queries, keys and values given; "module": attention with its four linear maps;
    # "encoder layer": a module, two norms and a feed-forward network
    series: str
    mode: str
    dtype: str
    batch: int
    n: int
    ks: tuple[int, ...]


class Method(NamedTuple):
    """One thing to run."""

    name: str
    k: int | None
    run: Callable[[int], Any]
    held_bytes: int  # tokens and parameters, there before


class Exact(nn.Module):
    """Exact attention with its linear maps, of the same weights as ours."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        ours = LinformerSelfAttention(dim, heads, 1, 1)
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = ours.to_q, ours.to_k, ours.to_v, ours.to_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend exactly."""
        q, k, v = (
            project(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project in (self.to_q, self.to_k, self.to_v)
        )
        read = functional.scaled_dot_product_attention(q, k, v)
        return self.to_out(read.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    """Attention and a feed-forward network, each behind a norm and added.

    It is ours without its checks, with any attention.
    """

    def __init__(self, attention: nn.Module, dim: int, feedforward: int) -> None:
        super().__init__()
        self.attention, self.norm = attention, nn.LayerNorm(dim)
        parts = (
            nn.LayerNorm(dim),
            nn.Linear(dim, feedforward),
            nn.ReLU(),
            nn.Linear(feedforward, dim),
        )
        self.feedforward = nn.Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves."""
        x = x + self.attention(self.norm(x))
        return x + self.feedforward(x)


class Built(NamedTuple):
    """A function of the group's inputs, and what it learns."""

    name: str
    k: int | None
    function: Attend
    parameters: list[torch.Tensor]


def methods(group: Group, device: torch.device) -> list[Method]:
    """Build everything that one group measures, on the same tokens."""
    dtype = getattr(torch, group.dtype)
    torch.manual_seed(0)
    with torch.device(device):
        if group.series == "core":
            shape = (group.batch, HEADS, group.n, DIM // HEADS)
            inputs, functions = (
                [torch.randn(shape).to(dtype) for _ in range(3)],
                cores(group, dtype),
            )
        else:
            inputs = [torch.randn(group.batch, group.n, DIM).to(dtype)]
            layers = encoder_layers if group.series == "encoder layer" else modules
            functions = (
                Built(name, k, layer.to(dtype), list(layer.parameters()))
                for name, k, layer in layers(group)
            )
        upstream = torch.randn_like(inputs[0])
        return [method(built, inputs, upstream, group.mode) for built in functions]


def cores(group: Group, dtype: torch.dtype) -> Iterator[Built]:
    """Build attention alone."""
    for k in group.ks:
        e = (torch.randn(k, group.n) / math.sqrt(group.n)).to(dtype)
        yield Built(
            "linformer_attention", k, lambda q, k, v, e=e: linformer_attention(q, k, v, e), [e]
        )
    yield Built(FUSED, None, functional.scaled_dot_product_attention, [])


def modules(group: Group) -> Iterator[tuple[str, int | None, nn.Module]]:
    """Build attention with its linear maps: ours, and exact attention."""
    for k in group.ks:
        yield "lowrank_tutor E = F", k, LinformerSelfAttention(DIM, HEADS, group.n, k)
    yield FUSED, None, Exact(DIM, HEADS)


def encoder_layers(group: Group) -> Iterator[tuple[str, int | None, nn.Module]]:
    """Build this book's encoder layer, and that of exact attention."""
    for k in group.ks:
        layer = LinformerEncoderLayer(DIM, HEADS, group.n, k, FEEDFORWARD * DIM, 0.0)
        yield "lowrank_tutor E = F", k, layer
    yield FUSED, None, EncoderLayer(Exact(DIM, HEADS), DIM, FEEDFORWARD * DIM)


def method(built: Built, inputs: list[torch.Tensor], upstream: torch.Tensor, mode: str) -> Method:
    """Run a function, or run it and its gradients from those ``upstream``."""
    parts = [*inputs, *built.parameters]
    held = sum(part.nbytes for part in parts)

    def forward(_run: int) -> torch.Tensor:
        with torch.no_grad():
            return built.function(*inputs)

    def both(_run: int) -> None:
        built.function(*inputs).backward(upstream)
        for part in parts:  # so that nothing is left for the next method to free
            part.grad = None

    if mode == "forward":
        return Method(built.name, built.k, forward, held)
    for part in parts:
        part.requires_grad_()
    return Method(built.name, built.k, both, held + upstream.nbytes)
