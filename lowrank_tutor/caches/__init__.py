r"""What a model keeps of earlier tokens: counts, latents in place of keys and values, and budgets.

Chapter ``book/08-caches.md``. A token ``x`` leaves a **latent** $c = W_{DKV}^\top x$ of ``d_c``
numbers, from which each head, or group of heads, makes its key and its value, $W_{UK}^\top c$ and
$W_{UV}^\top c$, of ``d_h`` numbers each.

The counting functions need no PyTorch, and importing this module imports none.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.caches.configs import Model, read_config
from lowrank_tutor.caches.counts import LatentCost, kv_cache_numbers, latent_cost
from lowrank_tutor.caches.serving import PublishedCache, Served, published_caches, serve

if TYPE_CHECKING:
    from lowrank_tutor.caches.latent import Latent, latent_attention, latent_from_heads

__all__ = [
    "Latent", "LatentCost", "Model", "PublishedCache", "Served", "kv_cache_numbers",
    "latent_attention", "latent_cost", "latent_from_heads", "published_caches", "read_config",
    "serve",
]  # fmt: skip

__getattr__, __dir__ = on_demand(__name__, "latent")
