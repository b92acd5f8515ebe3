"""How does a layer take the place of exact attention? PyTorch keeps three matrices as one; here they are three.

Chapter ``book/07-linformer.md``.
"""

from collections.abc import Iterable

import torch
from torch import nn

_WAYS_OUT = {
    "key_padding_mask": "token_mask=~key_padding_mask says the same",
    "src_key_padding_mask": "token_mask=~src_key_padding_mask says the same",
    "attn_mask": "there are no n by n weights, and LinformerEncoderLayer goes where PyTorch's encoder layer stood",
    "key": "keys and values both come from one sequence",
    "value": "keys and values both come from one sequence",
    "need_weights": "there are no n by n weights to return",
    "is_causal": "each compressed key mixes all tokens, the future too",
}


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


def refuse_calls_of_mha(count: int, options: Iterable[str], sequences: tuple[str, ...]) -> None:
    """Refuse a call that ``nn.MultiheadAttention`` would take: so many tensors, or options of its own."""
    taken = " and ".join(sequences)
    if count > len(sequences):
        raise TypeError(f"tensors must be {taken}, and masks go by name, got {count}: {_WAYS_OUT['key']}")
    for name in options:
        if name in _WAYS_OUT:
            raise TypeError(f"options must be token_mask or causal, got {name}: {_WAYS_OUT[name]}")
