"""What should adapters, latents and states promise? The lines of ``python -m benchmarks.contract_today``.

Each line measures one number, which its bar bounds from above.
"""

import torch
from torch import Tensor, nn

from benchmarks.adapters_today import ADAPTERS, Ours, TodayPackage
from benchmarks.promises import EXACT, Family, Finding, Line, distance

M, N, R, ALPHA = 48, 64, 4, 8


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Draw normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def base() -> nn.Linear:
    """Make the layer that is adapted, without a bias."""
    linear = nn.Linear(N, M, bias=False)
    with torch.no_grad():
        linear.weight.copy_(normal(M, N))
    return linear


def moved(package: TodayPackage, kind: str) -> nn.Module:
    """Adapt it, and move both factors as training would, the same in every package."""
    model = package.adapted(base(), R, ALPHA, kind)
    with torch.no_grad():
        for i, part in enumerate(package.factors(model), start=1):
            part.copy_(normal(*part.shape, seed=i) / 4)
    return model


def formula(kind: str) -> Tensor:
    """Write the weight out that the adapted layer stands for, (m, n); of PiSSA its start is taken off."""
    w, a, b = base().weight.detach().double(), normal(R, N, seed=1).double() / 4, normal(M, R, seed=2).double() / 4
    changed = w + ALPHA / (R**0.5 if kind == "rslora" else R) * b @ a
    if kind == "dora":
        changed = changed * (w.norm(dim=1) / changed.norm(dim=1))[:, None]
    return changed


def maps_like(kind: str):  # type: ignore[no-untyped-def]
    """Compare an adapted layer, and the layer that it is merged into, to the formula."""

    def measure(package: TodayPackage) -> Finding:
        model, x = moved(package, kind), normal(32, N, seed=3)
        wanted = x.double() @ formula(kind).T
        unmerged = distance(model(x), wanted)
        return Finding(max(unmerged, distance(package.merged(model)(x), wanted)))

    return measure


def average(package: TodayPackage) -> Finding:
    """Compare the average of two adapters to the mean of their updates."""
    pairs = [(normal(M, R, seed=2 * i), normal(R, N, seed=2 * i + 1)) for i in (1, 2)]
    wanted = sum(b @ a for b, a in pairs) / 2
    return Finding(distance(package.averaged(base(), pairs), wanted))


def base_back(package: TodayPackage) -> Finding:
    """Train a PiSSA adapter, take it off, and compare the weight to the one that came in."""
    return Finding(distance(package.without(moved(package, "pissa")).weight, base().weight))


def work(package: TodayPackage) -> Finding:
    """Divide the multiplications for each stored token by those of the absorbed order."""
    return Finding(package.per_stored_token() / 139_264)


def few_samples(package: TodayPackage) -> Finding:
    """Cut a weight for fewer inputs than these have numbers, and say by how much the outputs miss the least error."""
    w, x, k = normal(M, N), normal(N // 2, N, seed=5), 8
    found, wanted = package.cut(w, x, k).double(), x.double() @ w.double().T
    if int(torch.linalg.matrix_rank(found, rtol=1e-5)) > k:
        return Finding(float("inf"), f"the cut has a rank above {k}")
    least = torch.linalg.svdvals(wanted)[k:].norm() / wanted.norm()
    return Finding(float(distance(x.double() @ found.T, wanted) / least - 1))


def delta(package: TodayPackage) -> Finding:
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
    return Finding(distance(package.delta(q, k, v, beta, log_decay), torch.stack(outputs, dim=2)))


def sent(package: TodayPackage) -> Finding:
    """Measure the share of a gradient's numbers that is sent in the first 20 steps, with the defaults."""
    return Finding(package.share_sent())


LINES = (
    Line("lora", "LoRA is W + sBA, merged or not", EXACT, maps_like("lora")),
    Line("rslora", "rsLoRA is, with the root of r", EXACT, maps_like("rslora")),
    Line("dora", "DoRA divides by the lengths of rows", EXACT, maps_like("dora")),
    Line("average", "averaged adapters are the mean update", EXACT, average),
    Line("base", "taken off, PiSSA gives the old weight back", EXACT, base_back),
    Line("work", "a stored latent costs the absorbed order", 2.0, work),
    Line("delta", "chunks are the recurrence", EXACT, delta),
    Line("samples", "cut for fewer samples than features", 0.01, few_samples),
    Line("sent", "gradients are compressed at once", 0.5, sent),
)
TODAY = Family("today_contract", ADAPTERS, LINES)
__all__ = ["LINES", "TODAY", "Ours"]
