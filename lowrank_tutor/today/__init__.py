r"""What must a model keep, and what must it learn anew? A latent in place of keys, an update of low rank, a short past.

Chapters ``book/08-caches.md`` and, for `window_attention`, ``book/09-states.md``. Letters: a token ``x``
(batch, n, dim) leaves a **latent** $c = W_{DKV}^\top x$ of ``d_c`` numbers, from which each head makes its key and its
value, $W_{UK}^\top c$ and $W_{UV}^\top c$, of ``d_h`` numbers each. ``r`` is the rank of an update $s B A$ of a weight
$W$ (m, n). In `window_attention` ``m`` old tokens are one.

What only counts needs no PyTorch, and importing this module imports none.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.today.cache import LatentCost, kv_cache_numbers, latent_cost

if TYPE_CHECKING:
    from lowrank_tutor.today.latent import Latent, latent_attention, latent_from_heads
    from lowrank_tutor.today.lora import INITS, SCALINGS, LoraLinear
    from lowrank_tutor.today.windows import window_attention

__all__ = [
    "INITS",
    "SCALINGS",
    "Latent",
    "LatentCost",
    "LoraLinear",
    "kv_cache_numbers",
    "latent_attention",
    "latent_cost",
    "latent_from_heads",
    "window_attention",
]

__getattr__, __dir__ = on_demand(
    __name__,
    INITS="today.lora",
    SCALINGS="today.lora",
    Latent="today.latent",
    LoraLinear="today.lora",
    latent_attention="today.latent",
    latent_from_heads="today.latent",
    window_attention="today.windows",
)
