r"""Can a sequence of n tokens be read as k? Compress keys and values along it before any query meets them.

Chapter ``book/07-linformer.md``. Letters: ``x`` (batch, n, D) are tokens, ``q``, ``k``, ``v`` queries, keys and values
(batch, heads, n, d); ``e`` and ``f`` (k, n) compress the keys and the values along the sequence, and $e_j$ is row j
of ``e``. Where a mask or a short sequence hides tokens, let $s_j$ be the share of the row that lies on real tokens, by
sums of $|e_{ji}|$ where no entry of the row is negative (the **sum rule** of the chapter), else by sums of squares (the
**norm rule**). What is left of row j is divided by $s_j$ or by $\sqrt{s_j}$, which gives it its sum or its length back,
and its weight is multiplied by $s_j$: a row that meets no real token takes no part. With two matrices the smaller share
counts. A learned ``e`` keeps to one rule; ``linformer.norm_rule`` says why.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.linformer.attention import linformer_attention
    from lowrank_tutor.linformer.costs import linformer_cost
    from lowrank_tutor.linformer.cross import LinformerCrossAttention
    from lowrank_tutor.linformer.encoder import LinformerEncoderLayer
    from lowrank_tutor.linformer.layer import LinformerSelfAttention
    from lowrank_tutor.linformer.pooling import pooling_projection

__all__ = [
    "LinformerCrossAttention",
    "LinformerEncoderLayer",
    "LinformerSelfAttention",
    "linformer_attention",
    "linformer_cost",
    "pooling_projection",
]
