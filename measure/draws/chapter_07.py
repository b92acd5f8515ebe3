"""Chapter 7: mixtures of tokens whose neighbors correlate by rho."""

import math

import numpy as np
import torch

from lowrank_tutor.attention import attention_weights, softmax_attention
from lowrank_tutor.linformer import linformer_attention, pooling_projection

N, D, K = 128, 32, 16


def draw(seed: int) -> dict[str, float]:
    """Return the errors, in percent, of averages, random mixtures, and the best fixed ones.

    The last number is what learning gains.
    """
    g = torch.Generator().manual_seed(seed)
    w, numbers = torch.randn(3, D, D, generator=g) / D**0.5, {}
    for rho in (0.0, 0.9, 0.95):
        numbers[f"random, rho {rho:g}"] = off(
            heads(rho, w, g), torch.randn(K, N, generator=g) / N**0.5
        )
    place = np.arange(N)
    _, vectors = np.linalg.eigh(0.95 ** abs(place[:, None] - place))
    best = torch.from_numpy(vectors[:, -K:].T.copy()).float()
    q, k, v = parts = heads(0.95, w, g)
    weights, exact = attention_weights(q, k), softmax_attention(q, k, v)
    for name, e in (
        ("means of windows", pooling_projection(K, N) * (N / K) ** 0.5),
        ("the best mixing", best),
    ):
        numbers[f"{name}, values alone"] = (
            100 * ((weights @ (e.T @ (e @ v)) - exact).norm() / exact.norm()).item()
        )
    numbers["eigenvectors as E"] = off(parts, best * (K / N) ** 0.5)
    return numbers | learned(0.95, 300, w, g)


def learned(rho: float, steps: int, w: torch.Tensor, g: torch.Generator) -> dict[str, float]:
    """Return the errors of both starts before and after so many steps."""
    test, numbers = heads(rho, w, g, batch=64), {}
    starts = {
        "averages": pooling_projection(K, N),
        "random": torch.randn(K, N, generator=g) / N**0.5,
    }
    for name, start in starts.items():
        numbers[f"{name} before"] = off(test, start)
        numbers[f"{name} after {steps:,} steps"] = off(test, learn(start, rho, w, g, steps))
    return numbers


def heads(rho: float, w: torch.Tensor, g: torch.Generator, batch: int = 1) -> list[torch.Tensor]:
    """Return queries, keys and values (batch, 1, N, D) of random tokens."""
    age = torch.arange(N)[:, None] - torch.arange(
        N
    )  # token i is the sum of rho^(i - j) times the noise of token j
    fading = torch.where(age >= 0, rho ** age.clamp(min=0), 0.0) * math.sqrt(1 - rho**2)
    fading[:, 0] /= math.sqrt(1 - rho**2)  # the first token is noise alone
    x = fading @ torch.randn(batch, N, D, generator=g)
    return [(x @ part)[:, None] for part in w]


def off(parts: list[torch.Tensor], e: torch.Tensor) -> float:
    """Return the relative error against exact attention, in percent."""
    exact = softmax_attention(*parts)
    return 100 * ((linformer_attention(*parts, e) - exact).norm() / exact.norm()).item()


def learn(
    e: torch.Tensor, rho: float, w: torch.Tensor, g: torch.Generator, steps: int
) -> torch.Tensor:
    """Fit E to exact attention on fresh tokens, as the chapter does."""
    e = e.clone().requires_grad_()
    adam = torch.optim.Adam([e], lr=0.005)
    for _ in range(steps):
        q, k, v = heads(rho, w, g, batch=16)
        error = linformer_attention(q, k, v, e) - softmax_attention(q, k, v)
        adam.zero_grad()
        error.square().mean().backward()
        adam.step()
    return e.detach()
