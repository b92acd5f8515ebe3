"""Draw chapter 4 again: the rows that a random map needs to beat the answer zero, for normal factors."""

import numpy as np


def draw(seed: int) -> dict[str, float]:
    """Return 1 + kappa^2 for two normal factors, and the relative error at k = 100 if 1 is added to all entries."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((50, 400)), rng.standard_normal((400, 8))
    first, second = (
        np.linalg.norm(p) ** 2 * np.linalg.norm(q) ** 2 / np.linalg.norm(p @ q) ** 2
        for p, q in ((a, b), (a + 1, b + 1))
    )
    return {"rows to beat zero": float(1 + first), "error with 1 added": float(np.sqrt((1 + second) / 100))}
