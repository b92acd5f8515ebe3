"""Checks and masks for tensors, with the same messages in every module that uses PyTorch.

Only shapes, types and devices are checked, never values: that would make a GPU wait, and break
``torch.compile``.
"""

import contextlib
import reprlib
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lowrank_tutor._checks import check_bool, check_integer, check_shape

# What a call leaves for the tokens that come next.
State: TypeAlias = tuple[Tensor, ...] | list[Tensor]


def check_plain(name: str, value: object) -> Tensor:
    """Return ``value`` if it is a dense tensor, neither nested nor sparse."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.is_nested or value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got a nested or a sparse one")
    return value


def check_tensor(name: str, value: object, axes: tuple[str | int, ...]) -> Tensor:
    """Return ``value`` if it is a tensor with these axes, as in `check_shape`."""
    tensor = check_plain(name, value)
    check_shape(name, tensor, axes)
    return tensor


def check_same_device_and_dtype(
    name: str, value: Tensor, reference_name: str, reference: Tensor
) -> None:
    """Refuse a tensor whose device or type differs from a reference's.

    Autocast mixes all types but ``float64``.
    """
    if value.device != reference.device:
        raise ValueError(
            f"{name} must be on the device of {reference_name}, {reference.device}, "
            f"got {value.device}"
        )
    types = {value.dtype, reference.dtype}
    mixed = value.dtype.is_floating_point and is_autocast(value.device)
    if len(types) > 1 and (torch.float64 in types or not mixed):
        raise TypeError(
            f"{name} must be of the type of {reference_name}, {reference.dtype}, got {value.dtype}"
        )


def check_like(
    name: str,
    value: object,
    axes: tuple[str | int, ...],
    reference_name: str,
    reference: Tensor,
) -> Tensor:
    """Return ``value`` if it is a tensor with these axes, and a reference's device and type."""
    tensor = check_tensor(name, value, axes)
    check_same_device_and_dtype(name, tensor, reference_name, reference)
    return tensor


def check_floating(name: str, value: Tensor) -> None:
    """Refuse a tensor of integers, bools, complex numbers, or numbers too short to multiply."""
    if not value.dtype.is_floating_point or torch.finfo(value.dtype).bits < 16:
        raise TypeError(
            f"{name} must be of a floating-point type of at least 16 bits, got {value.dtype}"
        )


def check_own_methods(name: str, module: nn.Module, kind: type[nn.Module], *methods: str) -> None:
    """Refuse a subclass that computes in a way of its own.

    Its numbers mean something else in another layer.
    """
    for method in methods:
        if getattr(type(module), method) is not getattr(kind, method):
            raise TypeError(
                f"{name} must compute as a torch.nn.{kind.__name__} does, "
                f"got {type(module).__name__} with {method} of its own"
            )


def check_linear(linear: object) -> Tensor:
    """Return the weight of a linear layer if its numbers can be added to.

    Packed weights have their own types.
    """
    if not isinstance(linear, nn.Linear):
        raise TypeError(
            "linear must be a torch.nn.Linear, as of weight.T and bias of a Conv1D, "
            f"got {type(linear).__name__}"
        )
    check_own_methods("linear", linear, nn.Linear, "forward")
    weight = linear.weight
    if type(weight) not in (Tensor, nn.Parameter):
        raise TypeError(f"linear.weight must be a plain tensor, got {type(weight).__name__}")
    check_floating("linear.weight", weight)
    return weight


def check_dtype(dtype: torch.dtype | None) -> torch.dtype:
    """Return a floating-point type of at least 16 bits; without one, torch's default."""
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize > 1):
        raise TypeError(f"dtype must be a floating-point type of at least 16 bits, got {dtype}")
    return dtype


def check_device(value: object) -> torch.device | None:
    """Return a device, or None for torch's default."""
    if value is None:
        return None
    with contextlib.suppress(RuntimeError):
        if isinstance(value, str | torch.device):
            return torch.device(value)
    raise ValueError(f'device must be a torch.device, a name such as "cpu" or None, got {value!r}')


def check_generator(generator: object) -> torch.Generator | None:
    """Return a generator, or None for torch's global one."""
    if generator is None or isinstance(generator, torch.Generator):
        return generator
    raise TypeError(f"generator must be a torch.Generator or None, got {type(generator).__name__}")


def check_token_mask(token_mask: object, keys: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse what is neither None nor a bool tensor of this shape, on the device of ``keys``."""
    if token_mask is None:
        return
    mask = check_tensor("token_mask", token_mask, shape)
    if mask.dtype != torch.bool:
        raise TypeError(f"token_mask must be bool, True for a real token, got {mask.dtype}")
    if mask.device != keys.device:
        raise ValueError(
            f"token_mask must be on the device of the keys, {keys.device}, got {mask.device}"
        )


def check_heads(heads: object, dim: int) -> int:
    """Return the number of heads if it divides the width."""
    number = check_integer(heads, "heads")
    if dim % number:
        raise ValueError(f"heads must divide dim = {dim}, got {number}")
    return number


def check_sizes(
    dim: object, heads: object, max_len: object, k: object
) -> tuple[int, int, int, int]:
    """Return the sizes of a layer, whose matrices are (dim, dim) and (k, max_len)."""
    width = check_integer(dim, "dim")
    longest = check_integer(max_len, "max_len")
    rank = check_integer(k, "k", 1, longest, "max_len")
    return width, check_heads(heads, width), longest, rank


def check_tokens(
    layer: Any,
    x: Tensor,
    token_mask: Tensor | None,
    causal: bool,
    name: str = "x",
    causal_name: str = "causal",
) -> None:
    """Refuse tokens that do not fit a layer, under the names that the caller has for them."""
    if check_bool(causal, causal_name):
        raise ValueError(
            f"{causal_name} must be False, "
            "got True: every compressed key mixes all tokens, the future too; use exact attention"
        )
    batch, n, _ = check_like(name, x, ("batch", "n", layer.dim), "the layer", layer.e).shape
    if not 1 <= n <= layer.max_len:
        raise ValueError(
            f"{name} must hold between 1 and max_len = {layer.max_len} tokens, "
            f"got {n}; make the layer with a larger max_len"
        )
    check_token_mask(token_mask, layer.e, (batch, n))


def bias_of(linear: nn.Module) -> Any:
    bias = getattr(linear, "bias", None)
    return bias() if callable(bias) else bias  # quantized layers have a method


def check_attention_inputs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    token_mask: object = None,
    *,
    causal: bool = False,
) -> None:
    """Refuse queries, keys and values that do not match each other or the mask.

    Query heads may share keys.
    """
    heads = check_tensor("q", q, ("batch", "heads", "n_queries", "d")).shape[1]
    shared = check_plain("k", k).ndim == 4 and k.shape[1] > 0 and heads % k.shape[1] == 0
    check_like("k", k, (q.shape[0], k.shape[1] if shared else heads, "n_keys", q.shape[3]), "q", q)
    check_like("v", v, (*k.shape[:3], "d_v"), "q", q)
    if 0 in k.shape[2:]:
        raise ValueError(
            f"k must hold at least one number of one token, got shape {tuple(k.shape)}"
        )
    check_floating("q", q)
    check_token_mask(token_mask, k, (k.shape[0], k.shape[2]))
    if check_bool(causal, "causal") and q.shape[2] != k.shape[2]:
        raise ValueError(
            f"q must hold as many tokens as k, {k.shape[2]}, where attention is causal, "
            f"got {q.shape[2]}"
        )


def each_head(part: Tensor, heads: int) -> Tensor:
    """Give heads what their group has: (batch, groups, n, width) to (batch, heads, n, width)."""
    if part.shape[1] == heads:
        return part
    return part[:, :, None].expand(-1, -1, heads // part.shape[1], -1, -1).flatten(1, 2)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Attend by PyTorch's kernels; heads may share keys and values, which have their groups."""
    k, v = (each_head(part, q.shape[1]) for part in (k, v))
    # Only PyTorch's plain kernel has forward-mode and second derivatives.
    plain = not torch.compiler.is_compiling() and is_transformed()
    with sdpa_kernel(SDPBackend.MATH) if plain else contextlib.nullcontext():
        out = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale
        )
    return out.to(q.dtype)  # under autocast too


def check_state(state: object, *shapes: tuple[str | int, ...]) -> list[Tensor]:
    """Return the tensors of a state if each has its shape."""
    if not isinstance(state, tuple | list) or len(state) != len(shapes):
        raise TypeError(
            f"state must be the {len(shapes)} tensors that return_state=True gives here, "
            f"got {reprlib.repr(state)}"
        )
    for i, (part, axes) in enumerate(zip(state, shapes, strict=True)):
        check_tensor(f"state[{i}]", part, axes)
    return list(state)


def check_causal(causal: object, state: object, return_state: object) -> None:
    """Refuse a ``causal`` and a ``return_state`` that are no bools, or do not agree.

    Only a causal form has a state.
    """
    stateful = check_bool(return_state, "return_state") or state is not None
    if not check_bool(causal, "causal") and stateful:
        raise ValueError("causal must be True where a state comes in or goes out, got False")


def zero_hidden(x: Tensor, token_mask: Tensor | None) -> Tensor:
    """Set hidden tokens to zero, so that even a NaN there reaches neither output nor gradient.

    ``x`` is (batch, n, width) or (batch, heads, n, width), ``token_mask`` (batch, n).
    """
    if token_mask is None:
        return x
    hidden = ~token_mask[:, :, None]
    return x.masked_fill(hidden if x.ndim == 3 else hidden[:, None], 0)


def softmax_mask(token_mask: Tensor, n_queries: int | None = None) -> Tensor:
    """Turn a token mask (batch, n_keys) into one for attention, no row of it empty.

    It is (batch, 1, 1, n_keys), or causal, (batch, 1, n_queries, n_keys), for the last tokens. A
    sequence without real tokens attends to all, a query that sees none to itself: these are hidden,
    so their values are zeros, and so is their average, which would be NaN without a key.
    """
    mask = (token_mask | ~token_mask.any(dim=1, keepdim=True))[:, None, None, :]
    if n_queries is not None:
        n_keys = mask.shape[3]
        before = mask.new_ones(n_queries, n_keys).tril(n_keys - n_queries)
        mask = mask & before
        own = before.triu(n_keys - n_queries)
        mask = mask | (~mask.any(dim=3, keepdim=True) & own)
    return mask


def is_autocast(device: torch.device) -> bool:
    """Return whether autocast is on for a device.

    For the meta device, which has none, torch would raise an error.
    """
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def is_transformed() -> bool:
    """Return whether a ``torch.func`` transform (vmap, say) or forward mode is running.

    PyTorch has no public function for either.
    """
    return (
        torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
    )


def is_exporting() -> bool:
    """Return whether ``torch.export`` is running; False in a PyTorch too old to say."""
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()


def without_autocast(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Switch autocast off: long sums need more than the 8 bits of bfloat16."""
    return (
        torch.autocast(device.type, enabled=False)
        if is_autocast(device)
        else contextlib.nullcontext()
    )
