"""Draw chapter 6 again: heads of nearly full rank, what a cut of the logits does, and the error of Performer."""

import math

import numpy as np
import torch

from lowrank_tutor.attention import attention_weights, orthogonal_features, performer_attention, softmax_attention
from lowrank_tutor.svd import relative_error, truncated_svd

SHARPNESS, RHOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (0.0, 0.5, 0.9, 0.99, 0.999)


def draw(seed: int) -> dict[str, float]:
    """Return the numbers of one seed."""
    g = torch.Generator().manual_seed(seed)
    return _heads(g) | _performer(g)


def _heads(g: torch.Generator) -> dict[str, float]:
    noise = torch.randn(256, 32, generator=g, dtype=torch.float64)
    w_q, w_k, w_v = torch.randn(3, 32, 32, generator=g, dtype=torch.float64) / math.sqrt(32)
    high, cuts = 0, {}
    for rho in RHOS:
        x = noise.clone()
        for i in range(1, 256):
            x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * noise[i]
        for sharpness in SHARPNESS:
            p = attention_weights((sharpness * x @ w_q)[None, None], (x @ w_k)[None, None])[0, 0].numpy()
            s = np.linalg.svd(p, compute_uv=False)
            high += (s > 1e-6 * s[0]).sum() >= 0.9 * 256
            if sharpness in (0.25, 16.0) and rho in (0.0, 0.999):
                u, s, vt = truncated_svd(p, 16)
                values = (x @ w_v).numpy()
                cuts[sharpness, rho] = relative_error((u * s) @ (vt @ values), p @ values)
            if (sharpness, rho) == (1.0, 0.9):
                logits = _logits(x @ w_q, x @ w_k, x @ w_v)
    return {
        "positions with nine tenths of full rank": high,
        "cut to rank 16, tokens alike": cuts[0.25, 0.999],
        "cut to rank 16, tokens alike, sharp": cuts[16.0, 0.999],
        "cut to rank 16, independent": cuts[16.0, 0.0],
        "cut to rank 16, independent, not sharp": cuts[0.25, 0.0],
    } | logits


def _logits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, float]:
    logits = q @ k.mT / math.sqrt(32)
    u, s, vh = torch.linalg.svd(logits)
    cut = (u[:, :16] * s[:16]) @ vh[:16]
    moved = (cut.softmax(1) - logits.softmax(1)).abs().sum(1)
    return {
        "logits cut to rank 16, share of the bound": float((moved / (cut - logits).abs().amax(1)).median()),
        "logits cut to rank 16, output": relative_error(cut.softmax(1) @ v, logits.softmax(1) @ v),
    }


def _performer(g: torch.Generator) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for d in (16, 64):
        draws = [orthogonal_features(256, d, generator=g, dtype=torch.float64) for _ in range(4)]
        q, k, v = torch.randn(3, 1, 1, 128, d, generator=g, dtype=torch.float64)
        for size in (0.25, 0.5, 0.75, 1.0):
            exact = softmax_attention(size * q, size * k, v)[0, 0]
            off = [relative_error(performer_attention(size * q, size * k, v, features=w)[0, 0], exact) for w in draws]
            numbers[f"Performer, width {d}, size {size:g}"] = float(np.mean(off))
            numbers[f"mean of values, width {d}, size {size:g}"] = relative_error(v[0, 0].mean(0).expand(128, d), exact)
    return numbers
