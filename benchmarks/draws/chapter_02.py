"""Chapter 2: the best cut of a signal of five layers, in fresh noise."""

import numpy as np

from lowrank_tutor.svd import hard_threshold

SIZES = (60, 45, 32, 22, 14)


def draw(seed: int) -> dict[str, float]:
    """Return, for each noise, the k with the least error against the signal; at noise 3 also two errors and the rule.

    Noise that is turned is noise, so where the five layers point makes no difference.
    """
    z = np.random.default_rng(seed).standard_normal((80, 60))
    signal = np.zeros((80, 60))
    signal[range(5), range(5)] = SIZES
    numbers: dict[str, float] = {}
    for noise in (0.5, 1.25, 2, 2.5, 3):
        u, s, vt = np.linalg.svd(signal + noise * z, full_matrices=False)
        cuts = [(u[:, :k] * s[:k]) @ vt[:k] for k in range(1, 13)]
        errors = [float(np.linalg.norm(cut - signal) / np.linalg.norm(signal)) for cut in cuts]
        numbers[f"best k at noise {noise:g}"] = 1 + int(np.argmin(errors))
    numbers |= {"error at noise 3, 1 layer": errors[0], "error at noise 3, 2 layers": errors[1]}
    return numbers | {"layers that the rule keeps at noise 3": int((s > hard_threshold(s, 80, 60, noise=3.0)).sum())}
