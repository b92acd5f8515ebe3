"""Draw chapter 2 again: the best cut of a signal of five layers, in fresh noise."""

import numpy as np

from lowrank_tutor.svd import hard_threshold


def draw(seed: int) -> dict[str, float]:
    """Return the k with the least error for each noise.

    At noise 3 also two errors, and what the rule keeps.
    """
    z = np.random.default_rng(seed).standard_normal((80, 60))
    signal = (_waves(80, [1, 3, 2, 5, 4]) * [60, 45, 32, 22, 14]) @ _waves(60, [2, 1, 4, 3, 6]).T
    numbers: dict[str, float] = {}
    for noise in (0.5, 1.25, 2, 2.5, 3):
        u, s, vt = np.linalg.svd(signal + noise * z, full_matrices=False)
        cuts = [(u[:, :k] * s[:k]) @ vt[:k] for k in range(1, 13)]
        errors = [float(np.linalg.norm(cut - signal) / np.linalg.norm(signal)) for cut in cuts]
        numbers[f"best k at noise {noise:g}"] = 1 + int(np.argmin(errors))
    numbers |= {"error at noise 3, 1 layer": errors[0], "error at noise 3, 2 layers": errors[1]}
    return numbers | {
        "layers that the rule keeps at noise 3": int(
            (s > hard_threshold(s, 80, 60, noise=3.0)).sum()
        )
    }


def _waves(n: int, numbers: list[int]) -> np.ndarray:
    """Return orthonormal columns."""
    return np.sqrt(2 / n) * np.cos(np.outer(np.arange(n) + 0.5, numbers) * np.pi / n)
