"""TODO: say what this module is for. Measure how much of a matrix its first sheets hold.

Chapter ``book/NN-topic.md``. Letters: ``a`` is (m, n), and ``k`` the number of sheets kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lowrank_tutor._checks import as_matrix, check_rank

__all__ = ["topic"]
__dir__ = __all__.copy  # completion offers no more than that


def topic(a: ArrayLike, k: int) -> float:
    r"""TODO: Return the share of the squared Frobenius norm that the first k sheets hold.

    $\sum_{i \le k} \sigma_i^2 / \|A\|_F^2$.

    Parameters
    ----------
    a : array_like, shape (m, n)
        Not all zeros.
    k : int
        From 1 to ``min(m, n)``.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError
        If ``a`` holds only zeros, or ``k`` is out of range.

    Examples
    --------
    >>> topic([[4, 0], [0, 3]], k=1)
    0.64

    References
    ----------
    TODO: cite the source of the formula.
    """
    matrix = as_matrix(a, "a")
    k = check_rank(k, matrix.shape)
    if not matrix.any():
        raise ValueError("a must have a nonzero entry, got zeros alone")
    shares = np.linalg.svd(matrix / np.abs(matrix).max(), compute_uv=False) ** 2
    return float(shares[:k].sum() / shares.sum())
