"""Promises of kernel attention, asked by ``python -m benchmarks.contract``.

Each line measures one number, which its bar bounds from above. "Its quadratic form" is the same attention written out:
each weight the product of a query's and a key's features, each row of weights divided by its sum.
"""

import math

import torch
from torch import Tensor, nn

from benchmarks.adapters_kernel import ADAPTERS, KernelAdapter, Mask
from benchmarks.promises import (
    EXACT,
    Family,
    Finding,
    Line,
    distance,
    normal,
    not_finite,
    reloaded,
    some_mask,
    takes_unknown,
)
from lowrank_tutor.attention import softmax_attention

BATCH, HEADS, N, D, M = 2, 2, 24, 8, 32  # of queries, keys and values; M random features
WIDE = 64  # a usual width of a head, which the remarks give beside D
FEW, MANY, DRAWS = 256, 4096, 16  # features of which the errors are compared, and how often they are drawn
SAMPLES = 2**17  # features that a mean is taken over
FORMS = (False, True)  # plain, causal

Tensors = tuple[Tensor, ...]


def inputs(n: int = N, d: int = D, scale: float = 1.0, seed: int = 0) -> Tensors:
    """Draw queries and keys of a standard deviation, and standard normal values."""
    q, k, v = normal(3, BATCH, HEADS, n, d, seed=seed)
    return scale * q, scale * k, v


def worst(*numbers: float) -> float:
    """Find the largest number; NaN is larger than any."""
    return float(torch.tensor(numbers).max())


def run(
    adapter: KernelAdapter, layer: nn.Module, tensors: Tensors, mask: Mask = None, *, causal: bool = False
) -> Tensor:
    """Run it on copies: what it does to the tensors it is given is one line's matter."""
    q, k, v = (part.clone() for part in tensors)
    return adapter.attend(layer, q, k, v, None if mask is None else mask.clone(), causal=causal)


def quadratic(
    adapter: KernelAdapter, layer: nn.Module, tensors: Tensors, mask: Mask = None, *, causal: bool = False
) -> Tensor:
    """Write the weights out in double precision, hidden and later tokens left out of both sums."""
    q, k, v = (part.detach().double() for part in tensors)
    rows, columns = adapter.rows(layer, q, k, mask, causal=causal)
    weights = rows @ columns.mT
    if mask is not None:
        weights = weights * mask[:, None, None, :]
    if causal:
        weights = weights.tril()
    total = weights.sum(dim=3, keepdim=True)
    return adapter.factor(q.shape[3], causal=causal) * (weights / torch.where(total == 0, 1, total)) @ v


def against_itself(
    adapter: KernelAdapter,
    tensors: Tensors,
    mask: Mask = None,
    dtype: torch.dtype | None = None,
    *,
    causal: bool = False,
) -> float:
    """Compare the package to its own quadratic form."""
    layer = adapter.draw(D, M).to(dtype)
    tensors = tuple(part.to(dtype) for part in tensors)
    found = run(adapter, layer, tensors, mask, causal=causal)
    if found.dtype != tensors[0].dtype:
        raise TypeError(f"gave {found.dtype} for {tensors[0].dtype}")
    return distance(found, quadratic(adapter, layer, tensors, mask, causal=causal))


def own_form_masked(adapter: KernelAdapter) -> float:
    """Compare both forms with tokens hidden, which must leave the weighed sum and what divides it."""
    return worst(*(against_itself(adapter, inputs(), some_mask(N), causal=causal) for causal in FORMS))


def softmax_error(adapter: KernelAdapter, d: int, m: int) -> float:
    """Measure the error against softmax attention, root of the mean square over some draws of m features.

    What the error depends on most, the length of q / d^(1/4), is the same for all widths d.
    """
    tensors = inputs(d=d, scale=0.5 * (D / d) ** 0.25)
    exact = softmax_attention(*tensors)
    errors = [distance(run(adapter, adapter.draw(d, m, seed), tensors), exact) for seed in range(DRAWS)]
    return math.hypot(*errors) / math.sqrt(DRAWS)


def softmax_limit(adapter: KernelAdapter) -> Finding:
    """Divide the error against softmax attention with 16 m features by that with m; the law says 1/4."""
    adapter.directions(adapter.draw(D, M))
    (few, many), (few_wide, many_wide) = ([softmax_error(adapter, d, m) for m in (FEW, MANY)] for d in (D, WIDE))
    remark = (
        f"{few:.3f} at m = {FEW}, {many:.3f} at m = {MANY}; with d = {WIDE} the ratio is {many_wide / few_wide:.2f}"
    )
    return Finding(many / few, remark)


def bias(adapter: KernelAdapter, d: int, m: int = 64) -> float:
    """Compare the mean estimate of exp(q . k) to its value: relative, root of the mean square over 32 unit q + k."""
    sums = nn.functional.normalize(normal(32, d, seed=1).double(), dim=1)
    w = torch.cat([adapter.directions(adapter.draw(d, m, seed)) for seed in range(SAMPLES // m)]).double()
    return float(((w @ sums.T - 0.5).exp().mean(dim=0) - 1).square().mean().sqrt())


def unbiased(adapter: KernelAdapter) -> Finding:
    """Measure the bias of the features."""
    chance = math.sqrt((math.e - 1) / SAMPLES)
    return Finding(
        bias(adapter, D), f"with d = {WIDE} it is {bias(adapter, WIDE):.2g}; chance alone gives {chance:.2g}"
    )


def ones(adapter: KernelAdapter) -> float:
    """Measure how far the average of ones is from 1."""
    q, k, v = inputs()
    layer, v = adapter.draw(D, M), torch.ones_like(v)
    return worst(*((run(adapter, layer, (q, k, v), causal=causal) - 1).abs().max() for causal in FORMS))


def padding_content(adapter: KernelAdapter) -> float:
    """Measure how far the real tokens' results move when hidden tokens hold something else."""
    layer, real, tensors = adapter.draw(D, M), some_mask(N), inputs()
    other = tuple(
        torch.where(real[:, None, :, None], part, 10 * new) for part, new in zip(tensors, inputs(seed=2), strict=True)
    )
    moved = []
    for causal in FORMS:
        found, before = (run(adapter, layer, part, real, causal=causal).transpose(1, 2) for part in (other, tensors))
        moved.append(distance(found, before, real))
    return worst(*moved)


def padding_appended(adapter: KernelAdapter) -> float:
    """Measure how far they move when hidden tokens are appended."""
    layer, tensors, n = adapter.draw(D, M), inputs(), 2 * N // 3
    real = (torch.arange(N) < n).expand(BATCH, -1)
    short = tuple(part[:, :, :n] for part in tensors)
    return distance(run(adapter, layer, tensors, real)[:, :, :n], run(adapter, layer, short))


def with_gradients(adapter: KernelAdapter, tensors: Tensors, mask: Mask) -> int:
    """Count what is not finite, in results and gradients of both forms."""
    layer, count = adapter.draw(D, M), 0
    for causal in FORMS:
        parts = tuple(part.clone().requires_grad_() for part in tensors)
        found = run(adapter, layer, parts, mask, causal=causal)
        found.sum().backward()
        count += not_finite(found, *(part.grad for part in parts))
    return count


def all_hidden(adapter: KernelAdapter) -> float:
    """Count what is not finite where a whole sequence is hidden."""
    real = some_mask(N)
    real[1] = False
    return with_gradients(adapter, inputs(), real)


def tensors_kept(adapter: KernelAdapter) -> float:
    """Count the tensors of the caller that are not what they were."""
    changed = 0
    for causal in FORMS:
        given = (*inputs(), some_mask(N))
        adapter.attend(adapter.draw(D, M), *given, causal=causal)
        changed += sum(not torch.equal(*pair) for pair in zip(given, (*inputs(), some_mask(N)), strict=True))
    return changed


def no_look_ahead(adapter: KernelAdapter) -> float:
    """Measure how far the earlier tokens' results move when the last token changes, in the causal form."""
    layer, tensors, other = adapter.draw(D, M), inputs(), tuple(part.clone() for part in inputs())
    for part in other:
        part[:, :, -1] *= 3
    found, before = (run(adapter, layer, part, causal=True)[:, :, :-1] for part in (other, tensors))
    return distance(found, before)


def last_position(adapter: KernelAdapter) -> float:
    """Compare the last token's result in the causal form, which sees all tokens, to that in the plain form."""
    layer = adapter.draw(D, M)
    found, wanted = (run(adapter, layer, inputs(), causal=causal)[:, :, -1] for causal in (True, False))
    return distance(found, wanted)


def independent(adapter: KernelAdapter) -> float:
    """Measure how far the other heads' and sequences' results move when one head of one sequence changes."""
    layer, others = adapter.draw(D, M), torch.ones(BATCH, HEADS, dtype=torch.bool)
    others[0, 0] = False
    other = tuple(
        torch.where(others[:, :, None, None], part, new) for part, new in zip(inputs(), inputs(seed=2), strict=True)
    )
    moved = [
        distance(*(run(adapter, layer, part, causal=causal) for part in (other, inputs())), others) for causal in FORMS
    ]
    return worst(*moved)


def gradients(adapter: KernelAdapter) -> float:
    """Count the cases, of plain and causal, masked and not, where a gradient is not the limit of differences."""
    layer, wrong = adapter.draw(3, 5).double(), 0
    q, k, v = (part[:, :1].double().requires_grad_() for part in inputs(6, 3))
    for causal in FORMS:
        for mask in (None, some_mask(6)):
            wrong += not torch.autograd.gradcheck(
                lambda *parts, mask=mask, causal=causal: run(adapter, layer, parts, mask, causal=causal),
                (q, k, v),
                raise_exception=False,
            )
    return wrong


def repeatable(adapter: KernelAdapter) -> float:
    """Measure how far results move with another draw from the same seed, or with a saved state that is loaded."""
    first, tensors = adapter.draw(D, M), inputs()
    wanted = run(adapter, first, tensors)
    again = (adapter.draw(D, M), reloaded(first, adapter.draw(D, M, seed=1)))
    return worst(*(distance(run(adapter, layer, tensors), wanted) for layer in again))


LINES = [
    Line("own form", "equals its own quadratic form", EXACT, lambda one: against_itself(one, inputs())),
    Line("own form, masked", "equals it with tokens hidden in both sums", EXACT, own_form_masked),
    Line(
        "cross-attention",
        "equals it with queries of another sequence",
        EXACT,
        lambda one: against_itself(one, (inputs(10, seed=1)[0], *inputs()[1:])),
    ),
    Line("limit", "error with 16 m features over that with m", 0.35, softmax_limit),
    Line("unbiased", "random features are right in the mean", 0.01, unbiased),
    Line("ones", "the average of ones is 1", EXACT, ones),
    Line("padding content", "what hidden tokens hold changes nothing", EXACT, padding_content),
    Line("padding appended", "appending hidden tokens changes nothing", EXACT, padding_appended),
    Line("all hidden", "a mask that hides all gives finite numbers", 0, all_hidden),
    Line("tensors kept", "the caller's tensors are not changed", 0, tensors_kept),
    Line("causal", "the causal form does not look ahead", EXACT, no_look_ahead),
    Line(
        "causal, own form",
        "the causal form equals its own quadratic form",
        EXACT,
        lambda one: against_itself(one, inputs(), causal=True),
    ),
    Line("causal, last", "the causal form ends as the plain form does", EXACT, last_position),
    Line("independent", "sequences and heads are independent", EXACT, independent),
    Line("unknown keyword", "an unknown keyword is refused", 0, lambda one: takes_unknown(one.with_keyword)),
    Line("double", "double precision", 1e-12, lambda one: against_itself(one, inputs(), dtype=torch.float64)),
    Line("bfloat16", "bfloat16", 2e-2, lambda one: against_itself(one, inputs(), dtype=torch.bfloat16)),
    Line("gradients", "gradients are right (gradcheck)", 0, gradients),
    Line(
        "large norms",
        "entries of standard deviation 10 stay finite",
        0,
        lambda one: with_gradients(one, inputs(scale=10), None),
    ),
    Line("repeatable", "same seed or saved state, same results", EXACT, repeatable),
]
KERNEL = Family("kernel_contract", ADAPTERS, LINES)
