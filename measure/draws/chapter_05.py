"""Chapter 5: scores of other tables, and tables that are learned from other scores."""

import numpy as np
import torch

from lowrank_tutor.bilinear import ReducedRankAttention


def draw(seed: int) -> dict[str, float]:
    """Return the errors of the scores at rank 8, and how far from the true table each way of learning ends."""
    return scores_missed(np.random.default_rng(seed)) | distances(torch.Generator().manual_seed(seed))


def scores_missed(rng: np.random.Generator) -> dict[str, float]:
    """Return the errors of the scores at rank 8: by W cut, by the best factors, and through two PCAs."""
    w = rng.standard_normal((48, 40)) / np.sqrt(np.arange(1, 41))
    mix_s, mix_h = (rng.standard_normal((n, n)) / np.arange(1, n + 1) for n in (48, 40))
    left, right = np.linalg.cholesky(mix_s @ mix_s.T + 1).T, np.linalg.cholesky(mix_h @ mix_h.T)
    u, sizes, vt = np.linalg.svd(w)
    sigma = np.linalg.svd(left @ w @ right, compute_uv=False)
    lost = left @ (w - (u[:, :8] * sizes[:8]) @ vt[:8]) @ right
    x, y = 1 + rng.standard_normal((200, 48)) @ mix_s.T, rng.standard_normal((300, 40)) @ mix_h.T
    table = x @ w @ y.T
    rebuilt = through_pca(x) @ w @ through_pca(y).T
    return {
        "scores, W cut": float(np.linalg.norm(lost) / np.linalg.norm(sigma)),
        "scores, best factors": float(np.linalg.norm(sigma[8:]) / np.linalg.norm(sigma)),
        "scores, through PCA": float(np.linalg.norm(rebuilt - table) / np.linalg.norm(table)),
    }


def through_pca(data: np.ndarray) -> np.ndarray:
    """Rebuild data from 8 principal components."""
    mean = data.mean(axis=0)
    axes = np.linalg.svd(data - mean, full_matrices=False)[2][:8]
    return np.asarray(mean + (data - mean) @ axes.T @ axes)


def distances(generator: torch.Generator) -> dict[str, float]:
    """Return the distance from a true table of rank 2, by factors, by the full table and with two penalties."""
    truth = torch.randn(24, 2, generator=generator) @ torch.randn(2, 24, generator=generator) / 24
    s, h = torch.randn(2, 500, 24, generator=generator)
    y = (s @ truth * h).sum(1) + 0.5 * torch.randn(500, generator=generator)
    size, x = truth.norm(), torch.einsum("ni,nj->nij", s, h).flatten(1).double()
    tables = {f"distance, rank {k}": learned(s, h, y, k, generator) for k in (1, 2, 4, 8)}
    tables |= {"distance, full table": learned(s, h, y, None, generator)}
    penalties = (15, 30, 60, 120)
    misfits = [torch.dist(x[400:] @ penalized(x[:400], y[:400].double(), p).flatten(), y[400:]) for p in penalties]
    tables |= {"distance, nuclear norm": penalized(x, y.double(), penalties[int(np.argmin(misfits))])}
    u, values, vt = torch.linalg.svd(x, full_matrices=False)
    ridges = [vt.T @ (values / (values**2 + r) * (u.T @ y.double())) for r in np.geomspace(1, 1e5, 61)]
    tables |= {
        "distance, best ridge": min(ridges, key=lambda table: torch.dist(table, truth.flatten()).item()).view(24, 24)
    }
    return {name: float(torch.dist(table, truth) / size) for name, table in tables.items()}


def learned(
    s: torch.Tensor, h: torch.Tensor, y: torch.Tensor, k: int | None, generator: torch.Generator
) -> torch.Tensor:
    """Fit a table to scores by 250 steps of Adam: by factors of rank ``k``, or as a whole."""
    layer = ReducedRankAttention(24, 24, k, generator=generator) if k else None
    full = torch.nn.Parameter(torch.zeros(24, 24))
    optimizer = torch.optim.Adam(layer.parameters() if layer else [full], 0.03)
    for _ in range(250):
        w = layer.u.T @ layer.v if layer else full
        loss = ((s @ w * h).sum(1) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return w.detach()


def penalized(x: torch.Tensor, y: torch.Tensor, penalty: float, steps: int = 150) -> torch.Tensor:
    """Fit a table with a penalty on its nuclear norm: go down the gradient, then lower all singular values."""
    step = 1 / torch.linalg.matrix_norm(x, 2) ** 2
    table = ahead = torch.zeros(24, 24, dtype=torch.float64)
    for t in range(steps):
        slope = (x.T @ (x @ ahead.flatten() - y)).view(24, 24)
        u, sigma, vt = torch.linalg.svd(ahead - step * slope)
        new = (u * (sigma - step * penalty).clamp(min=0)) @ vt
        table, ahead = new, new + t / (t + 3) * (new - table)
    return table
