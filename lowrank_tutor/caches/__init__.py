r"""Latents in place of keys and values, compressed layers, updates and gradients of low rank.

Chapters ``book/08-caches.md`` and ``book/09-adapters.md``. A token ``x`` leaves a **latent** $c =
W_{DKV}^\top x$ of ``d_c`` numbers, from which each head, or group of heads, makes its key and its
value, $W_{UK}^\top c$ and $W_{UV}^\top c$, of ``d_h`` numbers each. ``r`` is the rank of an update
$\tfrac{\alpha}{r} B A$ of a weight $W$ (m, n).

The counting functions need no PyTorch, and importing this module imports none.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.caches.configs import Model, read_config
from lowrank_tutor.caches.counts import LatentCost, kv_cache_numbers, latent_cost
from lowrank_tutor.caches.serving import PublishedCache, Served, published_caches, serve

if TYPE_CHECKING:
    from lowrank_tutor.caches.cuts import compress, input_moments, rank_report
    from lowrank_tutor.caches.latent import Latent, latent_attention, latent_from_heads
    from lowrank_tutor.caches.lora import (
        LoraLinear,
        inject_lora,
        load_lora,
        lora_state,
        merge_lora,
        without_lora,
    )
    from lowrank_tutor.caches.steps import newton_schulz, power_step

__all__ = [
    "Latent", "LatentCost", "LoraLinear", "Model", "PublishedCache", "Served", "compress",
    "inject_lora", "input_moments", "kv_cache_numbers", "latent_attention", "latent_cost",
    "latent_from_heads", "load_lora", "lora_state", "merge_lora", "newton_schulz", "power_step",
    "published_caches", "rank_report", "read_config", "serve", "without_lora",
]  # fmt: skip

__getattr__, __dir__ = on_demand(__name__, "cuts", "latent", "lora", "steps")
