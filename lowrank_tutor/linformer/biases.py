r"""What becomes of the biases of keys and values when the sequence is compressed first? They count E1 times.

Chapter ``book/07-linformer.md``; letters as in ``linformer``. $E(XW + 1b) = (EX)W + (E1)b$: where row j of E adds up to
$(E1)_j$, so many biases go into mixture j. A rule for padding scales both terms alike, and only real tokens add up.
"""

import torch
from torch import nn


def bias_of(linear: nn.Module) -> torch.Tensor | None:
    """Return the bias of a linear layer, also of one that an adapter wraps or that quantization has packed."""
    bias = getattr(linear, "bias", None)
    if isinstance(bias, torch.Tensor):
        return bias
    packed = bias() if callable(bias) else None
    return packed if isinstance(packed, torch.Tensor) else None


def with_bias_of_mixtures(out: torch.Tensor, linear: nn.Module, counts: torch.Tensor) -> torch.Tensor:
    """Make (EX)W + b, the output (batch, k, D) of a linear layer, (EX)W + (E1)b; ``counts`` is E1, (batch, k, 1).

    The layer itself is called as it is, so that hooks, adapters and quantized weights act.
    """
    bias = bias_of(linear)
    return out if bias is None else out + ((counts - 1) * bias).to(out.dtype)
