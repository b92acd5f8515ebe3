"""Must every token look at every token? Softmax attention, the exact judge; and two that add up in another order.

Chapters ``book/07-linformer.md`` and ``book/06-attention.md``. Letters: ``q`` (batch, heads, n_queries, d) are the
queries, ``k`` (batch, heads, n_keys, d) the keys, ``v`` (batch, heads, n_keys, d_v) the values; ``n`` is the number
of tokens where queries and keys are equally many. P is the matrix of weights, a row for each query.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.attention.gpu import (
        GPUS,
        Floor,
        Gpu,
        Trial,
        attention_bytes,
        fused_backends,
        gpu_crossover,
        gpu_floor,
        gpu_named,
        half_type,
        trials,
    )
    from lowrank_tutor.attention.kernel import linear_attention, orthogonal_features, performer_attention
    from lowrank_tutor.attention.softmax import Cost, attention_weights, softmax_attention, softmax_cost

__all__ = [
    "GPUS",
    "Cost",
    "Floor",
    "Gpu",
    "Trial",
    "attention_bytes",
    "attention_weights",
    "fused_backends",
    "gpu_crossover",
    "gpu_floor",
    "gpu_named",
    "half_type",
    "linear_attention",
    "orthogonal_features",
    "performer_attention",
    "softmax_attention",
    "softmax_cost",
    "trials",
]
