"""Find singular vectors from the product of a matrix and its transpose, which costs less than a decomposition.

Only ``svd`` and ``pca`` use it.
"""

import contextlib
from collections.abc import Callable

import numpy as np

from lowrank_tutor._checks import FloatArray

_SAFE = 1e-8  # the least square, as a share of the largest, that is trusted: half of its digits are right


def orthonormal(y: FloatArray) -> FloatArray:
    """Return orthonormal columns, (m, b), whose span contains the columns of ``y``.

    Two passes of Cholesky QR (Yamamoto and others 2015, ETNA 44, 306-326) are several times faster than Householder QR.
    The first squares the condition number, so its result is checked before the second.
    """
    q = y
    with contextlib.suppress(np.linalg.LinAlgError):
        for _ in range(2):
            gram = q.T @ q
            defect = np.abs(gram - np.eye(gram.shape[0], dtype=y.dtype)).max()
            if defect < 8 * np.finfo(y.dtype).eps:
                return q
            q = q @ np.linalg.inv(np.linalg.cholesky(gram)).T
            if defect < 0.1:
                return q
    return np.linalg.qr(y)[0]


def by_gram(a: FloatArray, count: Callable[[FloatArray], int]) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return the leading singular vectors and values, u (m, k), s (k,), vt (k, n), or None if squares hide them.

    ``count`` says how many, given the squares of all singular values, largest first. The eigenvectors of the smaller of
    ``a.T @ a`` and ``a @ a.T`` are found in a fraction of the time, but have lost as many digits as
    ``s[0] / s[k - 1]`` has. One step of subspace iteration, there and back, restores the digits: it shrinks the errors
    relative to the rest.
    """
    tall = a if a.shape[0] >= a.shape[1] else a.T
    wider = tall.astype(np.float64, copy=False)
    squares, vectors = np.linalg.eigh(wider.T @ wider)
    k = count(np.maximum(squares[::-1], 0))
    if not squares[-k] > _SAFE * squares[-1]:
        return None
    q = orthonormal(tall @ vectors[:, -k:].astype(a.dtype))
    image = tall.T @ q
    p = orthonormal(image)
    w, s, zt = np.linalg.svd(image.T @ p)
    u, v = q @ w, p @ zt.T
    return (u, s, v.T) if tall is a else (v, s, u.T)
