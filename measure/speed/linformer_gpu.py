"""Time attention on a GPU as it is, in a CUDA graph, and compiled; then whole encoders, and one token of decoding.

``python -m measure.speed.linformer --device cuda`` calls `grid`, which starts nothing new after eight minutes and saves
its record after each method: the same command again goes on where it stopped. A case builds each method, compares what
it gives with double precision, compares its graph and its compiled form with itself, and only then times them.

Heads are 64 wide. Linformer takes k = 256 mixtures. A window takes as many operations if each query reads 2k keys: 256
on each side, and its own. Linear attention is causal, has features elu + 1, and does not divide by their sum. Decoding
reads the past of one layer for one token: 32 heads 128 wide in 8 groups, latents of 512 + 64 numbers, or a state.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from lowrank_tutor.linformer import LinformerEncoderLayer, linformer_attention
from measure.harness import interleaved
from measure.memory import peak_bytes
from measure.packages.layers import Ours, Size, split
from measure.speed.linformer_methods import EncoderLayer, Exact

K, HEAD, LAYERS, FEEDFORWARD, ROWS = 256, 64, 12, 4, 64
EXACT, MIXED, WINDOW, LINEAR = "exact, fused", "Linformer", "window, FlexAttention", "linear, flash-linear-attention"
GROUPED, LATENT, STATE = "grouped queries", "latents, absorbed", "state, delta rule"
PLAIN = "as it is"
WAYS = {PLAIN: (False, False), "CUDA graph": (False, True), "compiled": (True, False)}  # compiled, in a graph
BLOCK = 128  # tokens that FlexAttention reads together
DEFINITIONS = {
    "time_min, time_q1, time_median, time_q3": "seconds by events of the GPU, each run after its cache is flushed",
    "peak_bytes": "the most that one call allocates beyond what was there; null in a graph, whose memory is its own",
    "off": "relative error: as it is, of the last rows against double precision (encoders: 0); else against as it is",
    "tokens_per_second": "batch * n / time_median; when decoding, batch / time_median",
}
Tensor, Row, Attend = torch.Tensor, dict[str, Any], Callable[..., torch.Tensor]


class Case(NamedTuple):
    """What is measured in the same rounds."""

    series: str  # "attention": q, k, v given; "layer": with its linear maps; "encoder": 12 layers; "decode": one token
    mode: str
    dim: int
    batch: int
    n: int


class Entry(NamedTuple):
    """A method, what it reads, what it learns, and what its last rows must be in double precision, if that is known."""

    function: Callable[..., Any]
    inputs: list[Tensor]
    parameters: list[Tensor]
    expected: Callable[[], Tensor] | None


def cases() -> list[Case]:
    """List what to measure: one sequence, batches of 16,384 and of 65,536 tokens; encoders; decoding."""
    modes, lengths = ("forward", "forward+backward"), (1024, 4096, 16384, 65536)
    places = dict.fromkeys((n, max(1, many // n)) for many in (1, 16384, 65536) for n in lengths)
    both = [(series, mode, dim) for dim in (512, 768) for series in ("attention", "layer") for mode in modes]
    found = [Case(*which, batch, n) for which in both for n, batch in places]
    found += [Case("encoder", mode, 768, 65536 // n, n) for mode in modes for n in (2048, 8192, 32768, 65536)]
    return found + [Case("decode", "forward", 4096, b, n) for b in (1, 16) for n in (4096, 32768, 131072)]


def features(x: Tensor) -> Tensor:
    """Make positive features."""
    return functional.elu(x) + 1


def near_blocks(n: int, device: torch.device) -> BlockMask:
    """Allow keys at most K tokens away; ``create_block_mask`` would write all n by n pairs out."""
    blocks = torch.arange(n // BLOCK, device=device)
    apart = (blocks[:, None] - blocks).abs()
    parts = []
    for chosen in (apart == K // BLOCK, apart < K // BLOCK):  # in part, and as a whole
        parts += [
            chosen.sum(-1).int()[None, None],
            chosen.int().argsort(dim=-1, descending=True, stable=True).int()[None, None],
        ]
    return BlockMask.from_kv_blocks(*parts, BLOCK_SIZE=BLOCK, mask_mod=lambda _b, _h, q, k: (q - k).abs() <= K)


def attend_by(method: str, n: int, e: Tensor) -> Attend:
    """Make the function of q, k and v; linear attention only where flash-linear-attention is installed."""
    if method == LINEAR:
        from fla.ops.linear_attn import chunk_linear_attn

        def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            parts = (x.transpose(1, 2).contiguous() for x in (features(q), features(k), v))
            out: Tensor = chunk_linear_attn(*parts, scale=1.0, normalize=False)[0].transpose(1, 2)
            return out

        return linear
    if method == WINDOW:
        program = torch.compile(flex_attention, dynamic=False)
        near = near_blocks(n, e.device)
        return lambda q, k, v: program(q, k, v, block_mask=near)
    if method == MIXED:
        return lambda q, k, v: linformer_attention(q, k, v, e)
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v)


def expected(method: str, q: Tensor, k: Tensor, v: Tensor, e: Tensor) -> Tensor:
    """Write the attention of the last queries out; all arguments are in double precision, q has the last rows only."""
    rows, n = q.shape[-2], k.shape[-2]
    apart = torch.arange(n - rows, n, device=q.device)[:, None] - torch.arange(n, device=q.device)
    if method == LINEAR:
        return (features(q) @ features(k).mT).masked_fill(apart < 0, 0) @ v
    if method == MIXED:
        k, v = e @ k, e @ v
    logits = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(logits.masked_fill(apart.abs() > K, -math.inf) if method == WINDOW else logits, -1) @ v


def entry(case: Case, method: str, device: torch.device, dtype: torch.dtype) -> Entry:
    """Build one method of a case."""
    b, n, dim, heads = case.batch, case.n, case.dim, case.dim // HEAD

    def draw(*shape: int) -> Tensor:
        return torch.randn(b, *shape, device=device).to(dtype)

    if case.series == "decode":
        return decoder(case, method, draw)
    e = (torch.randn(K, n, device=device) / math.sqrt(n)).to(dtype)
    attend = attend_by(method, n, e)
    if case.series == "attention":
        q, k, v = (draw(heads, n, HEAD) for _ in range(3))
        judge = partial(expected, method, *(x[:1].double() for x in (q[:, :, -ROWS:], k, v, e[None])))
        return Entry(attend, [q, k, v], [e] if method == MIXED else [], judge)
    x = draw(n, dim)
    if case.series == "layer":
        made: Any = (Ours().plain(Size(dim, heads, n, K)) if method == MIXED else Exact(attend, dim, heads)).to(e)
        mixes = made.e.detach() if method == MIXED else e

        def last_rows() -> Tensor:
            maps = (part.weight.double() for part in (made.to_q, made.to_k, made.to_v))
            q, k, v = (split(functional.linear(x[:1].double(), weight), heads) for weight in maps)
            out = expected(method, q[:, :, -ROWS:], k, v, mixes.double()).transpose(1, 2).flatten(2)
            return functional.linear(out, made.to_out.weight.double(), made.to_out.bias.double())

        return Entry(made, [x], [*made.parameters()], last_rows)
    ours = partial(LinformerEncoderLayer, dim, heads, n, K, FEEDFORWARD * dim, 0.0)

    def theirs() -> nn.Module:
        return EncoderLayer(Exact(attend, dim, heads), dim, FEEDFORWARD * dim)

    stack = nn.Sequential(*(ours() if method == MIXED else theirs() for _ in range(LAYERS))).to(e)
    return Entry(stack, [x], [*stack.parameters()], None)


def decoder(case: Case, method: str, draw: Callable[..., Tensor]) -> Entry:
    """Build what one new token does to the past of one layer."""
    n, heads, wide, latent, rotary = case.n, 32, 128, 512, 64
    if method == GROUPED:
        inputs = [draw(heads, 1, wide), draw(heads // 4, n, wide), draw(heads // 4, n, wide)]
        q, k, v = (x[:1].double() for x in inputs)
        k, v = (x.repeat_interleave(4, dim=1) for x in (k, v))
        grouped = partial(functional.scaled_dot_product_attention, enable_gqa=True)
        return Entry(lambda q, k, v: grouped(q, k, v), inputs, [], partial(expected, method, q, k, v, q))
    if method == LATENT:
        inputs = [draw(heads, latent + rotary), draw(n, latent + rotary)]

        def function(q: Tensor, cache: Tensor) -> Any:
            return torch.softmax(q @ cache.mT / math.sqrt(wide + rotary), dim=-1) @ cache[..., :latent]
    else:
        key = functional.normalize(draw(heads, 1, wide), dim=-1)
        inputs = [draw(heads, 1, wide), key, draw(heads, 1, wide), draw(heads, wide, wide)]

        def function(q: Tensor, k: Tensor, v: Tensor, memory: Tensor) -> Any:  # type: ignore[misc]
            memory = 0.9 * memory
            memory = memory + k.mT @ (v - k @ memory)
            return q @ memory, memory

    def judge() -> Tensor:
        out = function(*(x[:1].double() for x in inputs))
        return out[0] if isinstance(out, tuple) else out

    return Entry(function, inputs, [], judge)


def work_of(entry: Entry, mode: str, function: Callable[..., Any]) -> Callable[[], tuple[Tensor, ...]]:
    """Make one call: the results, and with gradients those of all inputs and parameters, from ones upstream."""
    wanted = [*entry.inputs, *entry.parameters]

    def forward() -> tuple[Tensor, ...]:
        with torch.no_grad():
            out = function(*entry.inputs)
        return out if isinstance(out, tuple) else (out,)

    def both() -> tuple[Tensor, ...]:
        out = function(*entry.inputs)
        return out.detach(), *torch.autograd.grad(out, wanted, upstream)

    if mode == "forward":
        return forward
    upstream = torch.linspace(-1, 1, forward()[0].numel()).to(wanted[0]).view_as(forward()[0])
    for part in wanted:
        part.requires_grad_()
    return both


def compile_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, or each layer of a stack: the layers are alike, so that PyTorch compiles only the first."""
    if isinstance(function, nn.Sequential):
        return nn.Sequential(*(compile_parts(layer) for layer in function))
    program: Callable[..., Any] = torch.compile(function, dynamic=False)
    return program


def in_graph(work: Callable[[], Any]) -> Callable[[], Any]:
    """Record a call in a CUDA graph, and return what repeats it; PyTorch asks for a warm-up on another stream."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return lambda: (graph.replay(), result)[1]


def off(found: Tensor, wanted: Tensor) -> float:
    """Return the relative error, in the norm over all entries."""
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).norm() / wanted.norm())


def measure(case: Case, method: str, bench: Any, dtype: torch.dtype, repeats: int = 20) -> tuple[list[Row], list[Row]]:
    """Check one method in every way, then time those that gave what they must; return rows, and what failed."""
    torch.compiler.reset()  # programs for other lengths would count against PyTorch's limit
    works: dict[str, Callable[[], tuple[Tensor, ...]]] = {}
    errors: dict[str, float] = {}
    peaks: dict[str, int | None] = {}
    failed: dict[str, str] = {}
    for way, (compiled, graphed) in WAYS.items():
        try:
            if way == PLAIN:
                built = entry(case, method, bench.device, dtype)
            work = work_of(built, case.mode, compile_parts(built.function) if compiled else built.function)
            work = in_graph(work) if graphed else work
            results = work()
            if way == PLAIN:
                plain, judge = [part.clone() for part in results], built.expected
                errors[way] = 0.0 if judge is None else off(results[0][:1, ..., -ROWS:, :], judge())
            else:
                errors[way] = max(off(*pair) for pair in zip(results, plain, strict=True))
            # Half precision: many operations follow one another in an encoder and in gradients.
            if not errors[way] <= (0.1 if case.series == "encoder" or case.mode != "forward" else 0.02):
                raise ArithmeticError(f"off by {errors[way]:.2g}")
            peaks[way], works[way] = None if graphed else peak_bytes(work, bench.device), work
        except Exception as problem:  # noqa: BLE001  not installed, no memory, no kernel, no program: all are findings
            failed[way] = f"{type(problem).__name__}: {problem}"[:300]
            if way == PLAIN:
                break
    calls = {way: lambda _run, work=work: work() for way, work in works.items()}
    timings = interleaved(calls, repeats, lambda _: None, clock=bench.clock, limit=0.5)
    failed |= {way: timing.error for way, timing in timings.items() if timing.error is not None}
    where, rows = {**case._asdict(), "method": method}, []
    for way, timing in ((way, timing) for way, timing in timings.items() if way not in failed):
        low, high = timing.quartiles
        times = {"time_min": timing.best, "time_q1": low, "time_median": timing.median, "time_q3": high}
        rate = case.batch * (1 if case.series == "decode" else case.n) / timing.median
        more = {"tokens_per_second": round(rate), "peak_bytes": peaks[way], "off": errors[way]}
        rows.append({**where, "way": way, "runs": len(timing.seconds), **times, **more})
    return rows, [{**where, "way": way, "error": error} for way, error in failed.items()]


def grid(path: Path, bench: Any, meta: Row, dtype: torch.dtype, todo: Sequence[Case], seconds: float = 480) -> int:
    """Measure what a record lacks, and save it after each method of a case; return how many methods are left."""
    start = time.perf_counter()
    record: Row = {"meta": meta | {"definitions": DEFINITIONS}, "done": [], "failures": [], "rows": []}
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
        for key in (key for key in ("gpu", "versions") if record["meta"][key] != meta[key]):
            raise ValueError(f"{path.name} must be a record of this {key}, got {record['meta'][key]}")
    names = {True: (GROUPED, LATENT, STATE), False: (EXACT, MIXED, WINDOW, LINEAR)}
    every = [(case, method) for case in todo for method in names[case.series == "decode"]]
    left = [(case, method) for case, method in every if [*case, method] not in record["done"]]
    while left and time.perf_counter() - start < seconds:
        case, method = left.pop(0)
        rows, failures = measure(case, method, bench, dtype)
        for row in [*rows, *failures]:
            found = row["error"] if "error" in row else f"{1e3 * row['time_median']:.3f} ms"
            print(*case, method, row["way"], found, sep="  ", flush=True)
        record["rows"] += rows
        record["failures"] += failures
        record["done"].append([*case, method])
        fresh = path.with_suffix(".part")  # so that a command that is cut off leaves the old record whole
        fresh.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        fresh.replace(path)
        if bench.device.type == "cuda":
            torch.cuda.empty_cache()
    return len(left)
