"""How do the weights of exact attention come into a layer? PyTorch keeps three matrices as one; here they are three.

Chapter ``book/07-linformer.md``.
"""

import torch
from torch import nn


def weights_of_mha(mha: object) -> dict[str, torch.Tensor]:
    """Return the tensors of an ``nn.MultiheadAttention`` under the names of a layer; refuse what is not D to D."""
    if not isinstance(mha, nn.MultiheadAttention):
        raise TypeError(f"mha must be a torch.nn.MultiheadAttention, got {type(mha).__name__}")
    if mha.in_proj_weight is None:
        widths = f"keys of width {mha.kdim} and values of width {mha.vdim}"
        raise ValueError(f"mha must have keys and values as wide as its queries, {mha.embed_dim}, got {widths}")
    if mha.bias_k is not None or mha.add_zero_attn:
        raise ValueError(
            "mha must attend to the tokens alone, got add_bias_kv or add_zero_attn, which add one that no mixture holds"
        )
    names = ("to_q", "to_k", "to_v")
    state = {f"{name}.weight": rows for name, rows in zip(names, mha.in_proj_weight.chunk(3), strict=True)}
    if mha.in_proj_bias is not None:
        state |= {f"{name}.bias": part for name, part in zip(names, mha.in_proj_bias.chunk(3), strict=True)}
    state["to_out.weight"] = mha.out_proj.weight
    if mha.out_proj.bias is not None:
        state["to_out.bias"] = mha.out_proj.bias
    return {name: tensor.detach() for name, tensor in state.items()}
