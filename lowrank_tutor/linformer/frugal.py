"""How does a layer attend with no more memory than its input and result? It makes the queries where the result will be.

Chapter ``book/07-linformer.md``; letters as in ``linformer``. One block of rows after another becomes the result, and
overwrites its queries. That is right only where nobody looks at them afterwards: no gradient, no hook, no compiler.
"""

import itertools
import math
from collections.abc import Iterator

import torch
from torch import nn

from lowrank_tutor._tensors import is_autocast, is_transformed
from lowrank_tutor.linformer.attention import attend, join_heads, split_heads

# At most so many rows of the result are made at once. A GPU needs more to be busy.
BLOCK_ROWS = {"cpu": 2048}
OTHER_BLOCK_ROWS = 16384


def can_overwrite(x: torch.Tensor, to_q: nn.Module, to_out: nn.Module) -> bool:
    """Whether memory may be used twice: nothing looks on, and both linear layers are exactly as they were made."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or is_autocast(x.device):
        return False
    if is_transformed() or type(x) is not torch.Tensor:
        return False
    return _is_as_made(to_q, x) and _is_as_made(to_out, x)


def attend_in_place(
    x: torch.Tensor,
    to_q: nn.Linear,
    to_out: nn.Linear,
    keys: torch.Tensor,
    values: torch.Tensor,
    log_shares: torch.Tensor | None,
    token_mask: torch.Tensor | None,
    dropout: float,
) -> torch.Tensor:
    """Let tokens (batch, n, D) look at keys and values (batch, heads, k, d), and return what ``to_out`` makes of it."""
    batch, n, dim = x.shape
    result = x.new_empty(x.shape)
    _linear_into(result.view(-1, dim), x.reshape(-1, dim), to_q)
    for some, rows in _blocks(batch, n, x.device):
        block = result[some, rows]  # queries still
        added = None if log_shares is None else log_shares[some]
        mixed = join_heads(attend(split_heads(block, keys.shape[1]), keys[some], values[some], added, dropout))
        _linear_into(block.view(-1, dim), mixed.reshape(-1, dim), to_out)
        del mixed  # before the next block is made
    return result if token_mask is None else result.masked_fill_(~token_mask[:, :, None], 0)


def _linear_into(out: torch.Tensor, rows: torch.Tensor, linear: nn.Linear) -> None:
    if linear.bias is None:
        torch.mm(rows, linear.weight.T, out=out)
    else:
        torch.addmm(linear.bias, rows, linear.weight.T, out=out)


def _blocks(batch: int, n: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, n) rows into blocks of one size, for a short last one would be slow: several sequences or a part."""
    most = BLOCK_ROWS.get(device.type, OTHER_BLOCK_ROWS)
    most = min(max(math.ceil(batch * n / 2), most // 2), most)
    rows = math.ceil(n / math.ceil(n / most))
    return itertools.product(_slices(batch, max(1, most // n)), _slices(n, rows))


def _slices(total: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, total, step))


def _is_as_made(linear: nn.Module, x: torch.Tensor) -> bool:
    """Whether a linear layer is D to D, with a bias or without, and its weights are all there is to it.

    No subclass, adapter, parametrization or hook, and no weights of another kind, such as quantized ones.
    """
    if type(linear) is not nn.Linear:
        return False
    if linear._forward_hooks or linear._forward_pre_hooks or "forward" in vars(linear):
        return False
    dim = x.shape[2]
    sizes: list[tuple[torch.Tensor, tuple[int, ...]]] = [(linear.weight, (dim, dim))]
    if linear.bias is not None:
        sizes.append((linear.bias, (dim,)))
    return all(type(it) is nn.Parameter and it.shape == size and it.dtype == x.dtype for it, size in sizes)
