"""Draw chapter 9 again: averaged adapters, merged updates, and a first step."""

import math

import torch

from lowrank_tutor.svd import relative_error


def draw(seed: int) -> dict[str, float]:
    """Return the numbers of one seed."""
    g = torch.Generator().manual_seed(seed)
    return _adapters(g) | _first_step(g)


def _normal(g: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def _adapters(g: torch.Generator) -> dict[str, float]:
    b1, a1, b2, a2 = (_normal(g, *shape) for shape in [(96, 4), (4, 96)] * 2)
    numbers = {
        "averaged factors": relative_error((b1 + b2) @ (a1 + a2) / 4, (b1 @ a1 + b2 @ a2) / 2)
    }
    w, b, a = (torch.randn(*shape, generator=g) for shape in [(1024, 1024), (1024, 8), (8, 1024)])
    base, product, own = w.bfloat16().float(), b @ a, torch.linalg.qr(a.T).Q
    for size in (1e-3, 1e-2):
        update = product * (size * w.norm() / product.norm())
        arrived = (base + update).bfloat16().float() - base
        numbers[f"merged update of {size:g}, error"] = relative_error(arrived, update)
        numbers[f"merged update of {size:g}, error on its inputs"] = relative_error(
            arrived @ own, update @ own
        )
    return numbers


def _first_step(g: torch.Generator) -> dict[str, float]:
    """How much larger Adam's first step is at rank 128 than at rank 8, with the root; one token."""
    squares = {8: 0.0, 128: 0.0}
    for _ in range(12):
        token, error = _normal(g, 1, 128), _normal(g, 1, 128)
        a = (2 * torch.rand(128, 128, generator=g, dtype=torch.float64) - 1) / math.sqrt(128)
        for r in squares:
            seen = token @ a[:r].T
            squares[r] += float((seen @ (error.T @ seen).sign().T / math.sqrt(r)).square().mean())
    return {"Adam with the root, 128 against 8": math.sqrt(squares[128] / squares[8])}
