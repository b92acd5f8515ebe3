"""Draw matrices with a chosen spectrum."""

import numpy as np


def fresh(seed=0):
    """Return a new generator for each call."""
    return np.random.default_rng(seed)


def orthonormal(m, k, rng):
    """Draw k orthonormal columns of length m."""
    return np.linalg.qr(rng.standard_normal((m, k)))[0]


def with_spectrum(s, m, n, seed=0):
    """Draw an (m, n) matrix with the singular values s and random singular vectors."""
    rng = np.random.default_rng(seed)
    s = np.asarray(s, dtype=np.float64)
    return (orthonormal(m, s.size, rng) * s) @ orthonormal(n, s.size, rng).T
