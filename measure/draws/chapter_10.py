"""Draw chapter 10 again: recall of states and depth with skips."""

import math

import torch
from sklearn.datasets import load_digits

from lowrank_tutor.states import linear_state, recall_error

unit = torch.nn.functional.normalize


def draw(seed: int) -> dict[str, float]:
    """Return the numbers of one seed."""
    g = torch.Generator().manual_seed(seed)
    return _recall(g) | _depth(g)


def _normal(g: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def _given_back(state: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Mark the keys that read something nearer to their own value than to any other."""
    return (torch.cdist(k @ state, v).argmin(dim=1) == torch.arange(len(v))).double()


def _recall(g: torch.Generator) -> dict[str, float]:
    pictures = torch.tensor(load_digits().images[:64].reshape(64, -1))
    k, v, few = unit(_normal(g, 64, 32), dim=1), pictures - pictures.mean(dim=0), slice(0, 16)
    plain, rule = linear_state(k, v), linear_state(k, v, delta=1.0)
    back = _given_back(rule, k, v)
    return {
        "64 pictures, sum": float(_given_back(plain, k, v).sum()),
        "64 pictures, sum, error": recall_error(plain, k, v),
        "64 pictures, delta rule": float(back.sum()),
        "64 pictures, delta rule, oldest eighth": float(back[:8].sum()),
        "64 pictures, delta rule, newest eighth": float(back[-8:].sum()),
        "64 pictures, delta rule, error of the oldest eighth": recall_error(rule, k[:8], v[:8]),
        "16 pictures, sum, error": recall_error(linear_state(k[few], v[few]), k[few], v[few]),
        "16 pictures, sum": float(_given_back(linear_state(k[few], v[few]), k[few], v[few]).sum()),
    }


def _depth(g: torch.Generator) -> dict[str, float]:
    """Return how far apart 32 tokens are after layers with skips and without.

    And after how many layers they are alike: of 10 draws.
    """
    numbers: dict[str, float] = {}
    starts = [(_normal(g, 32, 32), _normal(g, 12, 3, 32, 32) / math.sqrt(32)) for _ in range(10)]
    for size in (0.5, 1.0, 3.0):
        for skip, name in ((0, "alone"), (1, "with skips")):
            apart = []
            for tokens, drawn in starts:
                apart.append([])
                for maps in drawn:
                    w_q, w_k, w_v = size * maps
                    weights = torch.softmax(
                        (tokens @ w_q) @ (tokens @ w_k).T / math.sqrt(32), dim=1
                    )
                    tokens = skip * tokens + weights @ tokens @ w_v
                    apart[-1].append(float((tokens - tokens.mean(dim=0)).norm() / tokens.norm()))
            for layers in (12,) if skip else (2, 7):
                numbers[f"size {size:g}, {name}, {layers} layers"] = sorted(
                    each[layers - 1] for each in apart
                )[4]
            if not skip:
                numbers[f"size {size:g}, {name}, 7 layers, slowest of 10"] = max(
                    each[6] for each in apart
                )
                numbers[f"size {size:g}, {name}, layers until alike"] = sorted(
                    map(_layers_until_alike, apart)
                )[4]
    return numbers


def _layers_until_alike(apart: list[float]) -> int:
    """Return after how many layers a double cannot tell the tokens apart, or 13."""
    return next(
        (layer for layer, away in enumerate(apart, start=1) if away < 1e-15), len(apart) + 1
    )
