"""Draw chapter 8 again: cuts, rounded keys, and groups of old tokens."""

import math

import numpy as np
import torch

from lowrank_tutor.bilinear import factorize, score_error
from lowrank_tutor.rank import numerical_rank
from lowrank_tutor.states import window_attention
from lowrank_tutor.svd import relative_error

attend = torch.nn.functional.scaled_dot_product_attention


def draw(seed: int) -> dict[str, float]:
    """Return the numbers of one seed."""
    g = torch.Generator().manual_seed(seed)
    return _rotated(g) | _cuts(g) | _scores(g) | _rounded(g) | _windows(g)


def _normal(g: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def _rotated(g: torch.Generator) -> dict[str, float]:
    """Rank of 48 rotated keys of rank 8 and 64 numbers, by rounding and at 1%, for three bases."""
    keys = _normal(g, 1, 48, 64) @ _normal(g, 64, 8) @ _normal(g, 4, 8, 16)
    plane = torch.view_as_complex(keys.unflatten(2, (8, 2)))
    numbers: dict[str, float] = {}
    for base in (100, 10_000, 500_000):
        angles = torch.arange(48.0)[:, None] / base ** (torch.arange(8) / 8)
        turned = (
            torch.view_as_real(plane * torch.exp(1j * angles))
            .flatten(2)
            .transpose(0, 1)
            .flatten(1)
            .numpy()
        )
        numbers[f"rank after rotation, base {base}"] = numerical_rank(turned)
        numbers[f"rank at 1% after rotation, base {base}"] = numerical_rank(turned, rtol=0.01)
    return numbers


def _cuts(g: torch.Generator) -> dict[str, float]:
    """Errors of the outputs of a table cut to rank 8 or 2: medians of 50 tables, because those of one scatter."""
    cuts = [_cut(g) for _ in range(50)]
    return {name: float(np.median([cut[name] for cut in cuts])) for name in cuts[0]}


def _cut(g: torch.Generator) -> dict[str, float]:
    table = _normal(g, 32, 32).numpy()
    moment = np.diag(np.arange(1, 33.0) ** -2)
    whole = score_error(table, 0 * table[:1], 0 * table[:1], s_moment=moment)

    def off(k: int, known: np.ndarray | None) -> float:
        return score_error(table, *factorize(table, k, s_moment=known), s_moment=moment) / whole

    return {
        "quarter of the rank, no decay": score_error(table, *factorize(table, 8))
        / float(np.linalg.norm(table)),
        "quarter of the rank, plain cut": off(8, None),
        "quarter of the rank, for the inputs": off(8, moment),
        "rank 2, for the inputs": off(2, moment),
    }


def _scores(g: torch.Generator) -> dict[str, float]:
    """Error of the scores of a head of width 32 whose keys are cut to rank 8; queries and keys are made of tokens."""
    w_q, w_k = (_normal(g, 64, 32).numpy() for _ in range(2))
    a = np.diag(np.arange(1, 65.0) ** -2)
    b = w_q.T @ a @ w_q
    nothing = np.zeros((1, 64)), np.zeros((1, 32))
    whole = score_error(w_k, *nothing, s_moment=a, h_moment=b)
    known = {"neither": {}, "tokens": {"s_moment": a}, "both": {"s_moment": a, "h_moment": b}}
    return {
        f"scores, cut for {name}": score_error(
            w_k, *factorize(w_k, 8, **moments), s_moment=a, h_moment=b
        )
        / whole
        for name, moments in known.items()
    }


def _rounded(g: torch.Generator) -> dict[str, float]:
    """Errors of scores, less their mean over the keys, when keys with two large entries are rounded."""
    queries, keys = _normal(g, 64, 32), _normal(g, 256, 32)
    keys[:, :2] += 20

    def scores(keys: torch.Tensor) -> torch.Tensor:
        products = queries @ keys.T
        return products - products.mean(dim=1, keepdim=True)

    numbers: dict[str, float] = {}
    for name, dim in (("token", 1), ("entry", 0)):
        low, high = keys.amin(dim, keepdim=True), keys.amax(dim, keepdim=True)
        for bits in (8, 4, 2):
            step = (high - low) / (2**bits - 1)
            rounded = low + step * ((keys - low) / step).round()
            numbers[f"{bits} bits, a scale for each {name}"] = relative_error(
                scores(rounded), scores(keys)
            )
    return numbers


def _windows(g: torch.Generator) -> dict[str, float]:
    noise, maps = _normal(g, 128, 32), _normal(g, 3, 32, 32) / math.sqrt(32)
    x = noise.clone()
    for i in range(1, 128):
        x[i] = 0.95 * x[i - 1] + math.sqrt(1 - 0.95**2) * noise[i]
    q, k, v = ((x @ w)[None, None] for w in maps)
    exact = attend(q, k, v, is_causal=True)[0, 0]
    band = torch.ones(128, 128).tril().bool() & ~torch.ones(128, 128).tril(-16).bool()
    numbers = {
        f"groups of 8, {name}": relative_error(
            window_attention(q, k, v, window=16, m=8, votes=votes)[0, 0], exact
        )
        for name, votes in (("m votes", True), ("one vote", False))
    }
    return numbers | {"last 16 alone": relative_error(attend(q, k, v, attn_mask=band)[0, 0], exact)}
