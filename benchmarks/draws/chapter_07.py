"""Draw the sampled numbers of chapter 7 again: mixtures of tokens whose neighbors correlate by rho."""

import math

import torch

from lowrank_tutor.attention import attention_weights, softmax_attention
from lowrank_tutor.linformer import linformer_attention, pooling_projection

N, D = 128, 32


def draw(seed: int) -> dict[str, float]:
    """Return the errors of averages and of random mixtures, whole and where a window is cut, and what learning gains.

    Parameters
    ----------
    seed : int

    Returns
    -------
    dict
        Relative errors of the output, in percent; and the numbers of random mixtures that beat zero.
    """
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(3, D, D, generator=g) / D**0.5
    found = {}
    for rho in (0.0, 0.9, 0.95):
        parts = heads(rho, w, g)
        found[f"averages, k = 16, rho {rho:g}"] = off(parts, pooling_projection(16, N))
        for k in (16, N):
            found[f"random, k = {k}, rho {rho:g}"] = off(parts, torch.randn(k, N, generator=g) / N**0.5)
    parts = heads(0.95, w, g)
    for real in (12, 20):
        for rule in ("sum", "norm"):
            found[f"{real} real tokens, {rule} rule"] = off(parts, pooling_projection(16, N), real, rule)
    found |= learned(0.95, 300, w, g)
    for n in (256, 1024):
        x, weights = torch.randn(n, 64, generator=g), torch.randn(3, 64, 64, generator=g) / 8
        q, k, v = ((x @ part)[None, None] for part in weights)
        P = attention_weights(q, k)[0, 0]
        for name, values in (("own", v[0, 0]), ("other", torch.randn(n, 64, generator=g))):
            kappa = P.norm() * values.norm() / (P @ values).norm()
            found[f"k that beats zero, n = {n}, {name} values"] = 1 + kappa.item() ** 2
    return found | learned(0.0, 300, w, g)


def learned(rho: float, steps: int, w: torch.Tensor, g: torch.Generator) -> dict[str, float]:
    """Return the errors of both starts before and after so many steps."""
    test, found = heads(rho, w, g, batch=64), {}
    starts = {"averages": pooling_projection(16, N), "random": torch.randn(16, N, generator=g) / N**0.5}
    for name, start in starts.items():
        found[f"{name} before, rho {rho:g}"] = off(test, start)
        found[f"{name} after {steps:,} steps, rho {rho:g}"] = off(test, learn(start, rho, w, g, steps))
    return found


def heads(rho: float, w: torch.Tensor, g: torch.Generator, batch: int = 1) -> list[torch.Tensor]:
    """Return queries, keys and values (batch, 1, N, D) of random tokens."""
    age = torch.arange(N)[:, None] - torch.arange(N)  # token i is the sum of rho^(i - j) times the noise of token j
    fading = torch.where(age >= 0, rho ** age.clamp(min=0), 0.0) * math.sqrt(1 - rho**2)
    fading[:, 0] /= math.sqrt(1 - rho**2)  # the first token is noise alone
    x = fading @ torch.randn(batch, N, D, generator=g)
    return [(x @ part)[:, None] for part in w]


def off(parts: list[torch.Tensor], e: torch.Tensor, real: int = N, rule: str | None = None) -> float:
    """Return the relative error against exact attention on the real tokens, in percent."""
    mask = (torch.arange(N) < real).expand(len(parts[0]), -1)
    exact = softmax_attention(*(part[:, :, :real] for part in parts))
    q, k, v = parts
    out = linformer_attention(q[:, :, :real], k, v, e, token_mask=mask, rule=rule)
    return 100 * ((out - exact).norm() / exact.norm()).item()


def learn(e: torch.Tensor, rho: float, w: torch.Tensor, g: torch.Generator, steps: int) -> torch.Tensor:
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


if __name__ == "__main__":  # what 3,000 steps gain: about a minute for each seed, so not a part of the record
    for seed in range(1000, 1006):
        generator = torch.Generator().manual_seed(seed)
        tables = torch.randn(3, D, D, generator=generator) / D**0.5
        print(seed, learned(0.95, 3000, tables, generator), flush=True)
