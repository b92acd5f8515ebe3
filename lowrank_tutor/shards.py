"""Split a sequence over processes: each compresses its own tokens, and one sum joins the results.

Page ``book/use-linformer.md``. The columns of E split like the tokens of X, and EX, the sum of the products of their
parts, has k rows, however long the sequence is. So one all-reduce of kD numbers for each sequence and matrix joins the
results (k more where tokens are hidden), and one more in ``backward``. Before it, each process sends the others 18
numbers, by which all go on or all refuse the batch, for example because their layers differ in settings, type, autocast
or weights (by more than rounding errors). An error after the sum leaves the processes out of step: end them, or make
new groups. If a process does not arrive, the others raise a ``RuntimeError`` after the group's timeout.

Every process makes the same layer, after ``init_process_group``, from one seed or ``state_dict``; it passes in its own
tokens and mask, and gets their rows of the result. The loss is the sum over all processes. The gradient of the tokens
is complete. That of the parameters is a part, to be added up once a step, by an all-reduce of each ``grad`` or by
``DistributedDataParallel``, which divides by the number of processes. Every process must call ``backward``, for several
losses in the same order, which cannot be checked. Each process draws its own dropout.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import distributed

from lowrank_tutor._tensors import is_autocast

__all__ = ["add_up", "announce_refusal", "check_process_group", "locate"]
__dir__ = __all__.copy  # completion offers no more than that

_SETTINGS = ("dtype", "autocast", "rule", "batch size", "dim", "heads", "k", "max_len", "matrices", "bias")
_WORDS = (None, torch.float64, torch.float32, torch.float16, torch.bfloat16, "norm", "sum")  # sent as -1, -2, ...
_left: list[Any] = []  # groups in which this process abandoned a batch that the others finished


def check_process_group(value: object) -> Any:
    """Return ``value`` if it is None or a group that this process belongs to."""
    if value is None or isinstance(value, getattr(distributed, "ProcessGroup", ())):  # some builds have no such class
        return value
    raise TypeError(f"process_group must be a torch.distributed.ProcessGroup with this process in it, got {value!r}")


@contextmanager
def announce_refusal(layer: Any) -> Iterator[None]:
    """Tell the other processes of an error, so that they refuse the batch too.

    Once all have agreed on a batch, it is too late to tell them: they finish it, and the group must not be used again.
    """
    if layer.process_group in _left:
        raise RuntimeError("process_group must be a new one after an error in the middle of a batch, got the old one")
    layer._exchange = "ahead"
    try:
        yield
    except Exception:
        if layer._exchange == "ahead":
            with suppress(RuntimeError):  # the others are gone
                _gather(layer, [0] * (3 + len(_SETTINGS)), torch.zeros(5, dtype=torch.float64, device=layer.e.device))
        elif layer._exchange == "agreed":
            _left.append(layer.process_group)
        raise


def locate(layer: Any, x: torch.Tensor, token_mask: torch.Tensor | None, biased: bool) -> tuple[int, int, bool]:
    """Return the number of tokens before those of this process, that of all, and whether any process has a mask."""
    batch, n = x.shape[:2]
    autocast = torch.get_autocast_dtype(x.device.type) if is_autocast(x.device) else None
    words = (-1 - _WORDS.index(it) for it in (layer.e.dtype, autocast, layer.rule))
    sizes = (batch, layer.dim, layer.heads, layer.k, layer.max_len, 1 if layer.f is None else 2, biased)
    numbers, weights = _gather(layer, [1, n, token_mask is not None, *words, *sizes], _weigh(layer))
    accepted, counts, masked, *settings = numbers.T.tolist()
    if not all(accepted):
        raise ValueError(f"x must fit the layer in every process, got a refusal in process {accepted.index(0)}")
    shown = [[str(it if it >= 0 else _WORDS[-1 - it]) for it in values] for values in settings]
    unlike = [f"{name} = {', '.join(it)}" for name, it in zip(_SETTINGS, shown, strict=True) if len(set(it)) > 1]
    if unlike:
        raise ValueError(f"layer and batch size must be the same in every process, got {' and '.join(unlike)}")
    # Different processors round differently, by 3e-7 after 300 steps of AdamW, so two thirds of the digits count.
    bound = min(torch.finfo(layer.e.dtype).eps ** (2 / 3), 0.004) * weights[0, 0].nan_to_num(0, 0).item()
    alike = weights.isclose(weights[:1], rtol=0, atol=bound, equal_nan=True).all(dim=1).tolist()
    if not all(alike):
        way = "start from one seed or state_dict, and add up the gradients of all processes before each step"
        raise ValueError(
            f"layer must have the same weights in all processes, got others in process {alike.index(False)}: {way}"
        )
    if sum(counts) > layer.max_len:
        found = f"{' + '.join(map(str, counts))} = {sum(counts)}"
        raise ValueError(f"x must hold at most max_len = {layer.max_len} tokens in all processes together, got {found}")
    layer._exchange = "agreed"
    return sum(counts[: layer.process_group.rank()]), sum(counts), any(masked)


def _weigh(layer: Any) -> torch.Tensor:
    """Reduce the weights to five numbers: the norm of all first rows and columns, and four weighted sums of them."""
    tensors = (it.detach() for it in (*layer.parameters(), *layer.buffers()) if it.ndim and it.is_floating_point())
    plain = (it for it in tensors if type(it) is torch.Tensor)  # no quantized ones
    edges = torch.cat([part.flatten() for it in plain for part in (it[0], it[..., 0])]).double()
    turns = torch.outer(*(torch.arange(n, device=edges.device).double() for n in (4, len(edges)))).cos()
    return torch.cat([torch.linalg.vector_norm(edges)[None], (turns * edges).sum(dim=1)])


def _gather(layer: Any, numbers: list[Any], weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Exchange numbers and weights, and return both with a row for each process."""
    own = torch.cat([weights.new_tensor(numbers), weights])
    told = [torch.empty_like(own) for _ in range(layer.process_group.size())]
    layer._exchange = "told"
    distributed.all_gather(told, own, group=layer.process_group)
    rows = torch.stack(told).cpu()
    return rows[:, : len(numbers)].long(), rows[:, len(numbers) :]


def add_up(group: "distributed.ProcessGroup", *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Add up tensors over the processes, by one all-reduce of all their numbers in the widest type.

    The processes minimize the sum of their losses, so ``backward`` adds up their gradients by another all-reduce.
    """
    return _Sum.apply(group, torch.zeros((), requires_grad=True), *tensors)  # type: ignore[no-any-return, no-untyped-call]


class _Sum(torch.autograd.Function):
    """Add up over the processes, forward and backward; ``anchor`` makes every process take part in ``backward``."""

    @staticmethod
    def forward(ctx: Any, group: Any, anchor: torch.Tensor, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.group = group
        packed = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(packed, group=group)
        parts = torch.split(packed, [tensor.numel() for tensor in tensors])
        return tuple(part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, None, *add_up(ctx.group, *gradients)
