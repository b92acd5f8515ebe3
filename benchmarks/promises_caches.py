"""Promises of adapters, latents and states, asked by ``python -m benchmarks.contract caches``.

Each line measures one number, which its bar bounds from above.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.adapters_caches import ADAPTERS, CachesPackage
from benchmarks.promises import EXACT, Family, Finding, Line, distance, normal

M, N, R, ALPHA = 48, 64, 4, 8
ABSORBED = 139_264  # multiplications for each stored token in the absorbed order


def base() -> nn.Linear:
    """Make the layer that is adapted, without a bias."""
    linear = nn.Linear(N, M, bias=False)
    with torch.no_grad():
        linear.weight.copy_(normal(M, N))
    return linear


def moved(package: CachesPackage, kind: str) -> nn.Module:
    """Adapt it, and move both factors as training would, the same in every package."""
    model = package.adapted(base(), R, ALPHA, kind)
    with torch.no_grad():
        for i, part in enumerate(package.factors(model), start=1):
            part.copy_(normal(*part.shape, seed=i) / 4)
    return model


def formula(kind: str) -> Tensor:
    """Write the weight out that the adapted layer stands for, (m, n); PiSSA's start is subtracted."""
    w, a, b = base().weight.detach().double(), normal(R, N, seed=1).double() / 4, normal(M, R, seed=2).double() / 4
    changed = w + ALPHA / (R**0.5 if kind == "rslora" else R) * b @ a
    if kind == "dora":
        changed = changed * (w.norm(dim=1) / changed.norm(dim=1))[:, None]
    return changed


def maps_like(kind: str) -> Callable[[CachesPackage], float]:
    """Compare an adapted layer, and the layer that it is merged into, to the formula."""

    def measure(package: CachesPackage) -> float:
        model, x = moved(package, kind), normal(32, N, seed=3)
        wanted = x.double() @ formula(kind).T
        unmerged = distance(model(x), wanted)
        return max(unmerged, distance(package.merged(model)(x), wanted))

    return measure


def average(package: CachesPackage) -> float:
    """Compare the average of two adapters to the mean of their updates."""
    pairs = [(normal(M, R, seed=2 * i), normal(R, N, seed=2 * i + 1)) for i in (1, 2)]
    wanted = sum(b @ a for b, a in pairs) / 2
    return distance(package.averaged(base(), pairs), wanted)


def few_samples(package: CachesPackage) -> float | Finding:
    """Cut a weight for fewer inputs than these have numbers, and say by how much the outputs miss the least error."""
    w, x, k = normal(M, N), normal(N // 2, N, seed=5), 8
    found, wanted = package.cut(w, x, k).double(), x.double() @ w.double().T
    if int(torch.linalg.matrix_rank(found, rtol=1e-5)) > k:
        return Finding(float("inf"), f"the cut has a rank above {k}")
    least = torch.linalg.svdvals(wanted)[k:].norm() / wanted.norm()
    return float(distance(x.double() @ found.T, wanted) / least - 1)


def delta(package: CachesPackage) -> float:
    """Compare a gated delta rule over 200 tokens to the recurrence in double precision."""
    q, k, v = (normal(2, 3, 200, 16, seed=i) for i in range(3))
    k = nn.functional.normalize(k, dim=3)
    beta, log_decay = torch.sigmoid(normal(2, 3, 200, seed=3)), -torch.sigmoid(normal(2, 3, 200, seed=4)) / 10
    state, outputs = torch.zeros(2, 3, 16, 16, dtype=torch.float64), []
    for t in range(200):
        key, value, query = (part[:, :, t].double() for part in (k, v, q))
        state = log_decay[:, :, t, None, None].double().exp() * state
        missing = value - (key[..., None, :] @ state)[..., 0, :]
        state = state + beta[:, :, t, None, None].double() * key[..., :, None] * missing[..., None, :]
        outputs.append((query[..., None, :] @ state)[..., 0, :])
    return distance(package.delta(q, k, v, beta, log_decay), torch.stack(outputs, dim=2))


LINES = (
    Line("lora", "LoRA is W + (alpha/r) BA, merged or not", EXACT, maps_like("lora")),
    Line("rslora", "rsLoRA is, with the root of r", EXACT, maps_like("rslora")),
    Line("dora", "DoRA divides by the lengths of rows", EXACT, maps_like("dora")),
    Line("average", "averaged adapters are the mean update", EXACT, average),
    Line(
        "base",
        "removing a PiSSA adapter restores the old weight",
        EXACT,
        lambda one: distance(one.without(moved(one, "pissa")).weight, base().weight),
    ),
    Line("work", "a model that stores latents absorbs its queries", 2.0, lambda one: one.per_stored_token() / ABSORBED),
    Line("delta", "chunks are the recurrence", EXACT, delta),
    Line("samples", "cut for fewer samples than features", 0.01, few_samples),
    Line("sent", "gradients are compressed from the first step", 0.5, lambda one: one.share_sent()),
)
CACHES = Family("caches_contract", ADAPTERS, LINES)
