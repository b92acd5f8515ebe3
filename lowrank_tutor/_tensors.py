"""Is this tensor what the layer expects? One line says so, in the same words for every attention of the book.

No chapter: ``attention``, ``linformer`` and the layer of ``bilinear`` share these checks and masks. Only shapes, types
and devices are looked at, never values: that would make a GPU wait, and break ``torch.compile``.
"""

import contextlib

import torch
from torch.autograd import forward_ad

from lowrank_tutor._checks import check_integer


def check_plain(name: str, value: object) -> torch.Tensor:
    """Return ``value`` if it is a tensor that holds its numbers side by side: not nested, not sparse."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.is_nested:
        raise TypeError(f"{name} must be a plain tensor, got a nested one: pad it, and mark what is real by a mask")
    if value.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got layout {value.layout}: .to_dense() makes one")
    return value


def check_tensor(name: str, value: object, axes: tuple[str | int, ...]) -> torch.Tensor:
    """Return ``value`` if it is a tensor with these axes: a name allows any size, a number only that one."""
    tensor = check_plain(name, value)
    if tensor.ndim != len(axes) or any(
        size != axis for size, axis in zip(tensor.shape, axes, strict=True) if isinstance(axis, int)
    ):
        raise ValueError(f"{name} must have shape ({', '.join(map(str, axes))}), got shape {shape_of(tensor)}")
    return tensor


def check_not_meta(name: str, value: torch.Tensor) -> None:
    """Refuse a tensor without numbers where its numbers are needed, and not only its shape."""
    if value.is_meta:
        raise TypeError(f"{name} must hold numbers, got a meta tensor")


def check_same_device_and_dtype(name: str, value: torch.Tensor, reference_name: str, reference: torch.Tensor) -> None:
    """Refuse a tensor on another device or of another type than a reference; autocast takes any floating-point type."""
    if value.device != reference.device:
        raise ValueError(f"{name} must be on the device of {reference_name}, {reference.device}, got {value.device}")
    if value.dtype != reference.dtype and not (value.dtype.is_floating_point and is_autocast(value.device)):
        raise TypeError(f"{name} must be of the type of {reference_name}, {reference.dtype}, got {value.dtype}")


def check_dtype(dtype: torch.dtype | None) -> torch.dtype:
    """Return a floating-point type; without one, torch's default."""
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating-point type, got {dtype}")
    if torch.finfo(dtype).bits < 16:
        raise TypeError(f"dtype must have at least 16 bits, in which PyTorch can draw and multiply, got {dtype}")
    return dtype


def check_device(value: object) -> torch.device | None:
    """Return a device, or None for torch's default."""
    if value is None or isinstance(value, torch.device):
        return value
    with contextlib.suppress(RuntimeError):
        if isinstance(value, str):
            return torch.device(value)
    found = repr(value) if isinstance(value, str) else type(value).__name__
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f'device must be a torch.device, a name such as "cpu" or None, got {found}')


def check_generator(generator: object) -> torch.Generator | None:
    """Return what draws: a generator, or None for torch's global one; say how a seed becomes one."""
    if generator is None or isinstance(generator, torch.Generator):
        return generator
    way = f": torch.Generator().manual_seed({generator}) makes one" if isinstance(generator, int) else ""
    raise TypeError(f"generator must be a torch.Generator or None, got {type(generator).__name__}{way}")


def check_token_mask(token_mask: object, keys: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """Return ``token_mask`` if it is a bool tensor of this shape, on the device of ``keys``."""
    if not isinstance(token_mask, torch.Tensor) or token_mask.dtype != torch.bool:
        found = token_mask.dtype if isinstance(token_mask, torch.Tensor) else type(token_mask).__name__
        raise TypeError(f"token_mask must be a bool tensor (True marks a real token), got {found}")
    check_plain("token_mask", token_mask)
    if token_mask.shape != shape:
        raise ValueError(f"token_mask must have shape (batch, n_keys) = {shape}, got shape {shape_of(token_mask)}")
    if token_mask.device != keys.device:
        raise ValueError(f"token_mask must be on the device of the keys, {keys.device}, got {token_mask.device}")
    return token_mask


def check_heads(heads: object, dim: int) -> int:
    """Return the number of heads, which must divide the width."""
    number = check_integer(heads, "heads", 1)
    if dim % number:
        raise ValueError(f"heads must divide dim = {dim}, got {number}")
    return number


def check_attention_inputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Refuse queries, keys and values whose shapes, types or devices do not match."""
    check_tensor("q", q, ("batch", "heads", "n_queries", "d"))
    if check_plain("k", k).ndim == 4 and 0 < k.shape[1] < q.shape[1] and q.shape[1] % k.shape[1] == 0:
        raise ValueError(
            f"k must have a head for each of the {q.shape[1]} of q, got {k.shape[1]}:"
            f" k.repeat_interleave({q.shape[1] // k.shape[1]}, dim=1), and v likewise, gives each its own"
        )
    check_tensor("k", k, (*q.shape[:2], "n_keys", q.shape[3]))
    check_tensor("v", v, (*k.shape[:3], "d_v"))
    if 0 in k.shape[2:]:
        raise ValueError(f"k must hold at least one token of at least one number, got shape {shape_of(k)}")
    check_same_device_and_dtype("k", k, "q", q)
    check_same_device_and_dtype("v", v, "q", q)
    if not q.dtype.is_floating_point:
        raise TypeError(f"q must be of a floating-point type, got {q.dtype}")


def zero_hidden(x: torch.Tensor, token_mask: torch.Tensor | None) -> torch.Tensor:
    """Put zeros where a token is hidden: even a NaN there reaches neither output nor gradient.

    ``x`` is (batch, n, width) or (batch, heads, n, width), ``token_mask`` (batch, n).
    """
    if token_mask is None:
        return x
    hidden = ~token_mask[:, :, None]
    return x.masked_fill(hidden if x.ndim == 3 else hidden[:, None], 0)


def softmax_mask(token_mask: torch.Tensor) -> torch.Tensor:
    """Turn which keys count, (batch, n_keys), into a mask for the softmax, (batch, 1, 1, n_keys), with no empty row.

    Where no key counts, all do: their values are zeros by then, and an average of zeros is zero, not NaN.
    """
    return (token_mask | ~token_mask.any(dim=1, keepdim=True))[:, None, None, :]


def is_autocast(device: torch.device) -> bool:
    """Say whether autocast is on for a device; the meta device has none, and torch refuses to tell."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def is_transformed() -> bool:
    """Say whether vmap or another transform of torch.func, or forward-mode differentiation, is under way.

    PyTorch has no public question for either.
    """
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def is_exporting() -> bool:
    """Say whether torch.export is under way; a PyTorch too old to tell is not."""
    return hasattr(torch.compiler, "is_exporting") and torch.compiler.is_exporting()


def without_autocast(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Let products stay in the type of their factors: long sums need more than the 8 bits of bfloat16."""
    return torch.autocast(device.type, enabled=False) if is_autocast(device) else contextlib.nullcontext()


def shape_of(value: torch.Tensor) -> tuple[int, ...]:
    """Return the shape as a plain tuple, which reads better in a message."""
    return tuple(value.shape)
