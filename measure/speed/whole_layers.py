"""Time whole encoder layers, and the attention of one new token over a cache, on a GPU, within eight minutes.

``python -m measure.speed.whole_layers --device cuda`` writes
``lowrank_tutor/data/whole_layers.json``, a row a cell:

- *encoder layer*: width 768, 12 heads, a feed-forward network four times as wide, in bfloat16, in batches of 65,536
  tokens, forward or with all gradients. Attention is exact (fused), a window of 128 tokens to each
  side (by FlexAttention, compiled), two such layers and an exact one (``seconds`` are the mean of
  the three), or Linformer with 256 mixtures: eager, compiled, or in a CUDA graph.
- *decoding*: one token attends, with 32 heads of 128, to a cache of 8 groups, of latents (512 numbers and 64 rotated
  ones, absorbed), to the last 1,024 tokens of 8 groups, or reads and writes a state by the gated
  delta rule. That is the attention of one layer, without linear maps; on a GPU it runs in a CUDA
  graph, as servers run it.

``seconds`` are those of each run, by events, after one that does not count, with the card's cache
flushed before each. No cell starts after ``SECONDS``; the file names those left out. What cannot
run has an ``error`` instead. ``--short`` runs tiny sizes and writes nothing; a CPU has no graphs,
and FlexAttention no gradients there.
"""

import argparse
import gc
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import flex_attention as flex

from lowrank_tutor.layers import LinformerEncoderLayer
from measure.harness import add_device, interleaved, provenance, wall_clock, write
from measure.speed.linformer import Clock, CudaClock, card
from measure.speed.linformer_methods import MODES, Attend, Built, EncoderLayer, Exact, method

SECONDS = 420  # when the last cell starts; to compile takes less than a minute
LAYERS = {name: name for name in ("exact", "window", "window, window, exact")}
LAYERS |= {f"Linformer{way}": "Linformer" for way in ("", ", compiled", ", CUDA graph")}


class Sizes(NamedTuple):
    """How large everything is."""

    width: int = 768
    heads: int = 12
    tokens: int = 65536  # of a batch
    lengths: tuple[int, ...] = (8192, 32768, 2048, 16384, 65536, 4096)  # the most telling first
    near: int = 128  # the reach of a window
    k: int = 256
    caches: tuple[int, ...] = tuple(2**i for i in range(13, 18))
    batches: tuple[int, ...] = (1, 8, 64)
    last: int = 1024  # tokens of a decoder's window


SHORT = Sizes(32, 4, 512, (256,), 16, 32, (64, 128), (1, 2), 32)
Work = Callable[[int], Any]


class Cell(NamedTuple):
    """One thing to time; a state has no n."""

    series: str
    method: str
    mode: str
    batch: int
    n: int


def cells(sizes: Sizes) -> list[Cell]:
    """List decoding, which compiles nothing, and then the layers, length by length."""
    reads = {
        "groups": sizes.caches,
        "latents": sizes.caches,
        "window": (sizes.last,),
        "state": (0,),
    }
    caches = [(name, n) for name, lengths in reads.items() for n in lengths]
    decoded = [
        Cell("decoding", name, "forward", batch, n) for batch in sizes.batches for name, n in caches
    ]
    layers = itertools.product(sizes.lengths, MODES, LAYERS)
    return decoded + [
        Cell("encoder layer", name, mode, sizes.tokens // n, n) for n, mode, name in layers
    ]


def compiled(function: Any, device: torch.device) -> Any:
    """Compile for a GPU."""
    return torch.compile(function, dynamic=False) if device.type == "cuda" else function


@cache  # what is compiled once for a length serves all cells of that length
def window(n: int, near: int, device: torch.device) -> Attend:
    """Let each token attend to its neighbors, by FlexAttention."""

    def close(_batch: Any, _head: Any, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (query - key).abs() <= near

    mask = compiled(flex.create_block_mask, device)(close, None, None, n, n, device=device)
    attend = compiled(flex.flex_attention, device)
    return lambda q, k, v: attend(q, k, v, block_mask=mask)


def graphed(work: Work) -> Work:
    """Record the launches of a function in a CUDA graph; return what repeats them."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # what PyTorch sets up in the first runs must not be recorded
        for run in range(3):
            work(run)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work(0)
    return lambda _run: graph.replay()


def layer(cell: Cell, sizes: Sizes, device: torch.device, dtype: torch.dtype) -> Work:
    """Build an encoder layer, or three on top of each other, and return what runs it."""

    def one(name: str) -> nn.Module:
        if name == "Linformer":
            return LinformerEncoderLayer(
                sizes.width, sizes.heads, cell.n, sizes.k, 4 * sizes.width, 0.0
            )
        exact = functional.scaled_dot_product_attention
        attend = exact if name == "exact" else window(cell.n, sizes.near, device)
        return EncoderLayer(Exact(attend, sizes.width, sizes.heads), sizes.width, 4 * sizes.width)

    model: Any = nn.Sequential(*map(one, LAYERS[cell.method].split(", "))).to(device, dtype)
    x = torch.randn(cell.batch, cell.n, sizes.width, device=device, dtype=dtype)
    parameters = list(model.parameters())
    model = compiled(model, device) if "compiled" in cell.method else model
    run = method(
        Built(cell.method, None, model, parameters), [x], torch.randn_like(x), cell.mode
    ).run
    return graphed(run) if "graph" in cell.method else run


def decoding(cell: Cell, _sizes: Sizes, device: torch.device, dtype: torch.dtype) -> Work:
    """Fill a cache, and return what reads it for one new token of each sequence."""

    def some(*shape: int) -> torch.Tensor:
        return torch.randn(cell.batch, *shape, device=device, dtype=dtype)

    if cell.method == "state":
        s, q, k, v = (
            some(32, 128, 128),
            some(32, 128, 1),
            some(32, 128, 1) / 128**0.5,
            some(32, 1, 128),
        )
    elif cell.method == "latents":
        q, c = some(32, 512 + 64), some(cell.n, 512 + 64)
    else:
        q, k, v = some(32, 1, 128), some(8, cell.n, 128), some(8, cell.n, 128)

    @torch.no_grad()
    def run(_run: int) -> torch.Tensor:
        if cell.method == "state":
            s.mul_(0.99).add_(k @ (0.5 * (v - k.mT @ s)))  # forget 1%, then write with rate 0.5
            return q.mT @ s
        if cell.method == "latents":
            return (q @ c.mT / 192**0.5).softmax(dim=2) @ c[..., :512]
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    return graphed(run) if device.type == "cuda" else run


def timed(cell: Cell, sizes: Sizes, device: torch.device, clock: Clock) -> dict[str, Any]:
    """Time one cell; return its row."""
    row: dict[str, Any] = cell._asdict()
    try:
        build = decoding if cell.series == "decoding" else layer
        work = build(
            cell, sizes, device, torch.bfloat16 if device.type == "cuda" else torch.float32
        )
        (timing,) = interleaved({"": work}, 20, lambda _: None, clock=clock, limit=1.0).values()
        error = timing.error
    except Exception as problem:  # noqa: BLE001  memory, a kernel, a compiler: that it cannot run is a finding
        error = f"{type(problem).__name__}: {problem}"
    if error is not None:
        return row | {"error": error.splitlines()[0]}
    layers = len(LAYERS.get(cell.method, "one").split(", "))
    row |= {"seconds": [float(f"{each / layers:.4g}") for each in timing.seconds]}
    return row | (
        {"tokens_a_second": round(cell.batch / statistics.median(timing.seconds))}
        if build is decoding
        else {}
    )


def carry_out(
    sizes: Sizes, device: torch.device, clock: Clock, seconds: float
) -> tuple[list[dict[str, Any]], list[Cell]]:
    """Time cell after cell and print each; return the rows, and the cells for which no time was left."""
    plan, rows, start = cells(sizes), [], time.perf_counter()
    for i, cell in enumerate(plan):
        if time.perf_counter() - start > seconds:
            print(f"{len(plan) - i} cells are left out: {seconds:g} seconds are over")
            return rows, plan[i:]
        if device.type == "cuda":
            torch.cuda.empty_cache()
            if i and cell.n != plan[i - 1].n:
                torch.compiler.reset()  # it compiles for eight shapes, and silently no more
        rows.append(timed(cell, sizes, device, clock))
        print(*rows[-1].values(), flush=True)
        gc.collect()
    return rows, []


def main(arguments: Sequence[str] | None = None) -> int:
    """Time, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_device(parser)
    parser.add_argument("--short", action="store_true", help="tiny sizes, nothing written")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    if not (options.short or device.type == "cuda"):
        parser.error("--device cpu needs --short")
    clock, sizes = (
        CudaClock(device) if device.type == "cuda" else wall_clock,
        SHORT if options.short else Sizes(),
    )
    rows, left_out = carry_out(sizes, device, clock, SECONDS)
    if not options.short:
        meta = provenance(
            "python -m measure.speed.whole_layers --device cuda", ["torch", "lowrank-tutor"]
        )
        meta |= {"gpu": card(device), "sizes": sizes._asdict(), "left_out": left_out}
        print(f"written: {write('whole_layers', meta, rows).name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
