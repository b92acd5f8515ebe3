r"""Score pairs of vectors by $s^\top W h$, with the matrix replaced by two thin factors.

Chapter ``book/05-bilinear-scoring.md``. Letters: ``s`` is a query (d2,), ``h`` a key (d1,), and
``w`` (d2, d1) holds the weight of each product of their numbers; ``u`` (k, d2) and ``v`` (k, d1)
are its factors, $W \approx U^\top V$; ``k`` is the rank kept. In `fit_factors`, which factors a
table of scores without any vectors, the factors are upright: (n, k) and (m, k).

``ReducedRankAttention`` needs PyTorch; the rest needs only NumPy, and importing this module does
not import torch.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.bilinear.scores import (
    Factors,
    Fit,
    factorize,
    fit_factors,
    reduced_rank_score,
    score,
    score_error,
)

if TYPE_CHECKING:
    from lowrank_tutor.bilinear.layer import ReducedRankAttention

__all__ = [
    "Factors", "Fit", "ReducedRankAttention", "factorize", "fit_factors", "reduced_rank_score",
    "score", "score_error",
]  # fmt: skip

__getattr__, __dir__ = on_demand(__name__, "layer")
