"""Ask each package with a layer of Linformer for the same promises, and record which hold.

``python -m measure.packages.linformer`` writes ``lowrank_tutor/data/linformer_contract.json`` for
the page of packages; its exit status says whether our own layers keep every promise. Each package
is used as its README says. A promise is one number with an upper bound, and has one of four
outcomes: it **holds**, it **fails**, it is **not offered** (the package has no such feature, or
says that it has none: a limit, not a fault), or trying it is an **error**. To ask another package,
add it to :mod:`measure.packages.layers`.
"""

import contextlib
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from measure.harness import provenance, write
from measure.packages.layers import ADAPTERS, Adapter, NotOffered, Size, Weights, split

OUTCOMES = ("holds", "fails", "not offered", "error")
EXACT = 1e-6  # relative error in single precision: several times its rounding
LENGTHS = (256, 1024, 4096, 16384)
COMMON_MASK_NAMES = ("mask", "key_padding_mask", "attention_mask", "token_mask")
SMALL, SQUARE, TINY = Size(32, 4, 24, 8), Size(32, 4, 24, 24), Size(4, 2, 6, 3)


class Finding(NamedTuple):
    """What one line measured, and what there is to say about it."""

    number: float
    remark: str = ""


class Line(NamedTuple):
    """One promise: what it says, the bound of its number, and how to measure that."""

    name: str
    title: str
    bar: float
    measure: Callable[[Any], float | Finding]


def distance(
    output: torch.Tensor, expected: torch.Tensor, where: torch.Tensor | None = None
) -> float:
    """Relative error in the Frobenius norm, over the tokens that a mask marks."""
    output, expected = output.detach().double(), expected.detach().double()
    if where is not None:
        output, expected = output[where], expected[where]
    return float((output - expected).norm() / expected.norm())


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Draw a standard normal tensor."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def some_mask(n: int) -> torch.Tensor:
    """Hide the end of a first sequence, and tokens here and there in a second."""
    real = torch.arange(n) < 2 * n // 3
    return torch.stack([real, real[torch.randperm(n, generator=torch.Generator().manual_seed(3))]])


def draw_weights(size: Size, seed: int = 7) -> Weights:
    """Draw weights that give scores of spread 1; E and F are the identity where k = max_len."""
    maps = normal(4, size.dim, size.dim, seed=seed) / math.sqrt(size.dim)
    if size.k == size.max_len:
        e = f = torch.eye(size.k)
    else:
        e, f = normal(2, size.k, size.max_len, seed=seed + 1) / math.sqrt(size.max_len)
    return Weights(*maps, normal(size.dim, seed=seed + 2) / 10, e, f)


def judge(
    x: torch.Tensor,
    w: Weights,
    heads: int,
    token_mask: torch.Tensor | None = None,
    context: torch.Tensor | None = None,
    *,
    compress: bool = False,
) -> torch.Tensor:
    """Write attention out in double precision: the exact one, or Linformer's."""
    x, w = x.double(), Weights(*(part.double() for part in w))
    source = x if context is None else context.double()
    q, k, v = split(x @ w.q.T, heads), split(source @ w.k.T, heads), split(source @ w.v.T, heads)
    if compress:
        k, v = w.e @ k, w.f @ v
    scores = q @ k.mT / math.sqrt(q.shape[3])
    if token_mask is not None:
        scores = scores.masked_fill(~token_mask[:, None, None, :], -math.inf)
    return (scores.softmax(dim=3) @ v).transpose(1, 2).flatten(2) @ w.out.T + w.bias


def filled(adapter: Adapter, size: Size, build: str = "plain") -> tuple[nn.Module, Weights]:
    """Build a layer and give it the common weights."""
    layer, weights = getattr(adapter, build)(size), draw_weights(size)
    if adapter.one_projection:
        weights = weights._replace(f=weights.e)
    adapter.put(layer, weights)
    adapter.put_projections(layer, weights.e, weights.f)
    return layer, weights


def tokens(size: Size, n: int | None = None, seed: int = 1) -> torch.Tensor:
    """Draw a batch of two sequences."""
    return normal(2, n or size.max_len, size.dim, seed=seed)


def exact(adapter: Adapter, *, masked: bool = False) -> float:
    """Compare to exact attention, with k = n and E = F = I, on the tokens that are not hidden."""
    layer, weights = filled(adapter, SQUARE)
    x, real = tokens(SQUARE), some_mask(SQUARE.max_len) if masked else None
    return distance(adapter.call(layer, x, real), judge(x, weights, SQUARE.heads, real), real)


def exact_shorter(adapter: Adapter) -> float:
    """Compare to it where the sequence is shorter than the layer."""
    layer, weights = filled(adapter, SQUARE, "shorter")
    x = tokens(SQUARE, 2 * SQUARE.max_len // 3)
    return distance(adapter.call(layer, x), judge(x, weights, SQUARE.heads))


def cross_attention(adapter: Adapter) -> float:
    """Compare to it where queries come from another, shorter sequence."""
    layer, weights = filled(adapter, SQUARE)
    x, context = tokens(SQUARE, 10, seed=2), tokens(SQUARE)
    return distance(
        adapter.cross(layer, x, context), judge(x, weights, SQUARE.heads, context=context)
    )


def padding_content(adapter: Adapter) -> float:
    """Measure how far real tokens' results move when hidden tokens hold something else."""
    layer, real = adapter.plain(SMALL), some_mask(SMALL.max_len)
    x, other = tokens(SMALL), tokens(SMALL, seed=2)
    other = torch.where(real[:, :, None], x, 100 * other)
    return distance(adapter.call(layer, other, real), adapter.call(layer, x, real), real)


def padding_appended(adapter: Adapter) -> float:
    """Measure how far they move when hidden tokens are appended."""
    layer, n, longer = adapter.shorter(SMALL), SMALL.max_len // 2, 3 * SMALL.max_len // 4
    x = tokens(SMALL, longer)
    real = (torch.arange(longer) < n).expand(2, -1)
    return distance(adapter.call(layer, x, real)[:, :n], adapter.call(layer, x[:, :n]))


def mask_heeded(adapter: Adapter) -> float:
    """Count the names under which a mask is taken and has no effect; the documented name, where there is one."""
    layer, x, real = adapter.plain(SMALL), tokens(SMALL), some_mask(SMALL.max_len)
    swallowed = []
    for name in adapter.mask_names or COMMON_MASK_NAMES:
        with contextlib.suppress(TypeError, ValueError):
            if torch.equal(layer(x, **{name: real})[real], layer(x)[real]):
                swallowed.append(name)
    return len(swallowed)


def unknown_keyword(adapter: Adapter) -> Finding:
    """Return 1 if a keyword that means nothing is accepted silently."""
    try:
        adapter.plain(SMALL)(tokens(SMALL), no_such_keyword=True)
    except TypeError:
        return Finding(0)
    return Finding(1, "forward(**kwargs) accepts any")


def all_hidden(adapter: Adapter) -> float:
    """Count what is not finite, in result and gradients, where a whole sequence is hidden."""
    layer, x, real = adapter.plain(SMALL), tokens(SMALL).requires_grad_(), some_mask(SMALL.max_len)
    real[1] = False
    output = adapter.call(layer, x, real)
    output.sum().backward()
    parts = [output, x.grad, *(p.grad for p in layer.parameters() if p.grad is not None)]
    return sum(int((~part.isfinite()).sum()) for part in parts)


def batch_independent(adapter: Adapter) -> float:
    """Measure how far the first sequence's result moves when the second one changes."""
    layer, x = adapter.plain(SMALL), tokens(SMALL)
    other = torch.stack([x[0], tokens(SMALL, seed=2)[1]])
    return distance(adapter.call(layer, other)[0], adapter.call(layer, x)[0])


def heads_independent(adapter: Adapter) -> float:
    """Measure how far the other heads' results move when the weights of one head change."""
    layer, weights = adapter.plain(SMALL), draw_weights(SMALL)
    x, head = tokens(SMALL), slice(0, SMALL.dim // SMALL.heads)
    weights = weights._replace(out=torch.eye(SMALL.dim), bias=torch.zeros(SMALL.dim))
    adapter.put(layer, weights)
    before = adapter.call(layer, x).detach()
    changed = [part.clone() for part in weights[:3]]
    for part in changed:
        part[head] += 1
    adapter.put(layer, weights._replace(q=changed[0], k=changed[1], v=changed[2]))
    return distance(adapter.call(layer, x)[..., head.stop :], before[..., head.stop :])


def too_long(adapter: Adapter) -> Finding:
    """Return 1 if a sequence longer than the layer is accepted."""
    layer = adapter.plain(SMALL)
    try:
        adapter.call(layer, tokens(SMALL, SMALL.max_len + 1))
    except Exception as problem:  # noqa: BLE001  any refusal will do
        return Finding(0, f"refused: {type(problem).__name__}")
    return Finding(1)


def no_look_ahead(adapter: Adapter) -> Finding:
    """Measure how far the first token's result moves when the last token changes, in a layer said to be causal."""
    layer, x = adapter.causal(SMALL), tokens(SMALL)
    other = x.clone()
    other[:, -1] += 1
    try:
        before = layer(x)
    except (ValueError, NotImplementedError) as refusal:
        if (
            "causal" not in str(refusal).lower()
        ):  # a fault of another kind is no refusal to look ahead
            raise
        return Finding(0, f"refused: {type(refusal).__name__}")
    return Finding(distance(layer(other)[:, 0], before[:, 0]))


class Scores(TorchFunctionMode):
    """Record the scores of a layer, whichever way it takes their softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[torch.Tensor] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "softmax":
            self.parts.append(args[0].detach())
        elif name == "scaled_dot_product_attention":
            q, k = args[:2]
            self.parts.append((q @ k.mT / math.sqrt(q.shape[-1])).detach())
        return function(*args, **(kwargs or {}))


def score_spread(adapter: Adapter, layer: nn.Module, size: Size, n: int) -> float:
    """Measure the standard deviation of the scores that n drawn tokens give."""
    with Scores() as scores, torch.no_grad():
        adapter.call(layer, normal(1, n, size.dim))
    if not scores.parts:
        raise NotOffered("no softmax over scores")
    return float(torch.cat([part[..., :n, :].flatten() for part in scores.parts]).std())


def spread_over_lengths(adapter: Adapter) -> float:
    """Divide the largest by the smallest initial spread of the scores, over layers of many lengths."""
    sizes = [Size(64, 2, n, 128) for n in LENGTHS]
    spreads = [score_spread(adapter, adapter.plain(size), size, size.max_len) for size in sizes]
    return max(spreads) / min(spreads)


def spread_when_shorter(adapter: Adapter) -> float:
    """Do the same with one layer that reads sequences of many lengths."""
    size = Size(64, 2, max(LENGTHS), 128)
    layer = adapter.shorter(size)
    spreads = [score_spread(adapter, layer, size, n) for n in LENGTHS]
    return max(spreads) / min(spreads)


def sharing_saves(adapter: Adapter) -> float:
    """Count the numbers that E = F saves, beyond one projection or short of it."""
    apart, shared = (
        sum(p.numel() for p in build(SMALL).parameters())
        for build in (adapter.unshared, adapter.shared)
    )
    return abs(apart - shared - adapter.projection_size(SMALL))


def sharing_keeps_values(adapter: Adapter) -> float:
    """Compare a layer with E = F and V != K to the formula written out."""
    layer, weights = filled(adapter, SMALL, "shared")
    x = tokens(SMALL)
    return distance(
        adapter.call(layer, x), judge(x, weights._replace(f=weights.e), SMALL.heads, compress=True)
    )


def saved(adapter: Adapter, build: Callable[[Size, int], nn.Module]) -> float:
    """Measure how far results move when a layer's state is loaded into another that started elsewhere."""
    first, second, x, file = build(SMALL, 0), build(SMALL, 1), tokens(SMALL), io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    return distance(adapter.call(second, x), adapter.call(first, x))


def precision(adapter: Adapter, dtype: torch.dtype) -> float:
    """Compare a layer of another type to the formula written out, on inputs of that type."""
    layer, weights = filled(adapter, SMALL)
    layer, weights, x = (
        layer.to(dtype),
        Weights(*(part.to(dtype) for part in weights)),
        tokens(SMALL).to(dtype),
    )
    output = adapter.call(layer, x)
    if output.dtype != dtype:
        raise TypeError(f"gave {output.dtype} for {dtype}")
    return distance(output, judge(x, weights, SMALL.heads, compress=True))


def gradients(adapter: Adapter) -> float:
    """Count the inputs and parameters whose gradient is not the limit of differences, masked too where masks exist."""
    layer, x = adapter.plain(TINY).double(), tokens(TINY).double().requires_grad_()
    masks: list[torch.Tensor | None] = (
        [None, some_mask(TINY.max_len)] if adapter.mask_names else [None]
    )
    wrong = 0
    for mask in masks:
        for part in [x, *layer.parameters()]:  # gradcheck moves the entries of ``part`` in place
            wrong += not torch.autograd.gradcheck(
                lambda _, mask=mask: adapter.call(layer, x, mask), (part,), raise_exception=False
            )
    return wrong


LINES = [
    Line("exact", "exact attention at k = n with E = F = I", EXACT, exact),
    Line(
        "exact, masked",
        "exact attention at k = n, tokens hidden by a mask",
        EXACT,
        partial(exact, masked=True),
    ),
    Line("exact, shorter", "exact attention at k = n, shorter than max_len", EXACT, exact_shorter),
    Line("padding content", "the content of hidden tokens changes nothing", EXACT, padding_content),
    Line("padding appended", "appending hidden tokens changes nothing", EXACT, padding_appended),
    Line("mask heeded", "a mask is obeyed or refused, never ignored", 0, mask_heeded),
    Line("unknown keyword", "an unknown keyword is refused", 0, unknown_keyword),
    Line("all hidden", "a mask that hides every token gives finite numbers", 0, all_hidden),
    Line("batch", "sequences in a batch are independent", EXACT, batch_independent),
    Line("heads", "heads are independent", EXACT, heads_independent),
    Line("too long", "a sequence longer than max_len is refused", 0, too_long),
    Line("causal", "causal use is refused, or does not look ahead", EXACT, no_look_ahead),
    Line("spread", "spread of scores at the start, n = 256 ... 16384", 1.5, spread_over_lengths),
    Line(
        "spread, shorter",
        "spread of scores, one layer at n = 256 ... 16384",
        1.5,
        spread_when_shorter,
    ),
    Line("sharing saves", "E = F saves exactly one projection", 0, sharing_saves),
    Line("sharing keeps values", "E = F leaves V different from K", EXACT, sharing_keeps_values),
    Line("cross-attention", "queries from another sequence", EXACT, cross_attention),
    Line(
        "saved",
        "saving and loading gives the same results",
        EXACT,
        lambda adapter: saved(adapter, adapter.plain),
    ),
    Line(
        "saved, fixed",
        "saving and loading, fixed projection",
        EXACT,
        lambda adapter: saved(adapter, adapter.fixed),
    ),
    Line("double", "double precision", 1e-12, lambda adapter: precision(adapter, torch.float64)),
    Line("bfloat16", "bfloat16", 2e-2, lambda adapter: precision(adapter, torch.bfloat16)),
    Line("gradients", "gradients are correct (gradcheck)", 0, gradients),
]


def try_line(line: Line, adapter: Adapter) -> dict[str, Any]:
    """Try one promise on one package and return a row."""
    measured, remark = None, adapter.remarks.get(line.name, "")
    try:
        result = line.measure(adapter)
        number, more = result if isinstance(result, Finding) else Finding(result)
        measured = float(f"{number:.3g}")
        outcome, remark = (
            "holds" if number <= line.bar else "fails",
            "; ".join(filter(None, (remark, more))),
        )
    except NotOffered as reason:
        outcome, remark = "not offered", str(reason)
    except Exception as problem:  # noqa: BLE001  a peer may fail in any way, and that is a finding
        outcome, remark = "error", f"{type(problem).__name__}: {problem}"
    row = {"line": line.name, "package": adapter.name, "outcome": outcome, "measured": measured}
    return row | {"bar": line.bar, "remark": remark}


def ours_hold(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether our own layers keep every promise, but for those that they need not offer."""
    may_lack = {adapter.name: adapter.may_lack for adapter in ADAPTERS if adapter.ours}
    return all(
        row["outcome"] == "holds"
        or (row["outcome"] == "not offered" and row["line"] in may_lack[row["package"]])
        for row in rows
        if row["package"] in may_lack
    )


def main() -> int:
    """Try every promise on every package, print, and write."""
    torch.set_num_threads(1)  # many tiny operations, none timed
    names = sorted({"torch", *(adapter.distribution for adapter in ADAPTERS)})
    meta = provenance("python -m measure.packages.linformer", names)
    del meta["machine"]  # the outcomes do not depend on it
    rows = [try_line(line, adapter) for line in LINES for adapter in ADAPTERS]
    for row in rows:
        print("{line}, {package}: {outcome} ({measured}, at most {bar:g}). {remark}".format(**row))
    meta["packages"] = {
        adapter.name: {"version": version(adapter.distribution), "layer": adapter.layer}
        for adapter in ADAPTERS
    }
    meta["lines"] = {line.name: {"title": line.title, "bar": line.bar} for line in LINES}
    meta["outcomes"] = OUTCOMES
    print(f"written: {write('linformer_contract', meta, rows).name}")
    return 0 if ours_hold(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
