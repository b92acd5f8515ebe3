"""Chapter 5: scores of other tables."""

import numpy as np


def draw(seed: int) -> dict[str, float]:
    """Return the errors of the scores at rank 8: by W cut, and by the best factors."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((48, 40)) / np.sqrt(np.arange(1, 41))
    mix_s, mix_h = (rng.standard_normal((n, n)) / np.arange(1, n + 1) for n in (48, 40))
    left, right = np.linalg.cholesky(mix_s @ mix_s.T + 1).T, np.linalg.cholesky(mix_h @ mix_h.T)
    u, sizes, vt = np.linalg.svd(w)
    sigma = np.linalg.svd(left @ w @ right, compute_uv=False)
    lost = left @ (w - (u[:, :8] * sizes[:8]) @ vt[:8]) @ right
    return {
        "scores, W cut": float(np.linalg.norm(lost) / np.linalg.norm(sigma)),
        "scores, best factors": float(np.linalg.norm(sigma[8:]) / np.linalg.norm(sigma)),
    }
