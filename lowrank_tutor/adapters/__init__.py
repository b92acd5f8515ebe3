r"""Layers cut for their inputs, updates of low rank, and steps on a gradient.

Chapter ``book/09-adapters.md``. ``r`` is the rank of an update $\tfrac{\alpha}{r} B A$ of a weight
$W$ (m, n).
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch  # noqa: F401 (without it, the message names the extra)

from lowrank_tutor.adapters.cuts import compress, input_moments, rank_report
from lowrank_tutor.adapters.lora import (
    LoraLinear,
    inject_lora,
    load_lora,
    lora_state,
    merge_lora,
    without_lora,
)
from lowrank_tutor.adapters.steps import newton_schulz, power_step

__all__ = [
    "LoraLinear", "compress", "inject_lora", "input_moments", "load_lora", "lora_state",
    "merge_lora", "newton_schulz", "power_step", "rank_report", "without_lora",
]  # fmt: skip
