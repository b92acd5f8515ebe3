"""Make averages of windows, a compression with nothing to learn.

Chapter ``book/07-linformer.md``.
"""

import torch

from lowrank_tutor._checks import check_integer
from lowrank_tutor.linformer.costs import check_numbers


def pooling_projection(k: int, max_len: int) -> torch.Tensor:
    r"""Make the matrix that averages windows of max_len / k tokens, a compression with nothing to learn.

    Where a mask or a short sequence hides a part of a window, the window gives the mean of its real tokens, and its
    weight is multiplied by their share (the sum rule): a half-filled window counts half. An empty one takes no part.

    Parameters
    ----------
    k : int
        Number of windows; it must divide ``max_len``.
    max_len : int
        Number of tokens.

    Returns
    -------
    Tensor, shape (k, max_len)

    Examples
    --------
    >>> pooling_projection(k=2, max_len=4).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]

    References
    ----------
    Wang et al. (2020), arXiv:2006.04768, section 4, "general projections".
    """
    max_len = check_integer(max_len, "max_len", 1)
    k = check_integer(k, "k", 1, max_len, "max_len")
    check_numbers("max_len", k, max_len)
    if max_len % k:
        raise ValueError(f"k must divide max_len = {max_len}, got {k}")
    window = max_len // k
    return torch.eye(k).repeat_interleave(window, dim=1) / window
