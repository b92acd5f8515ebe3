r"""How do processes that each hold a part of a sequence come by the one compressed sequence? They add theirs up.

Chapter ``book/07-linformer.md``; the layer of ``linformer`` calls this where it has a process group. The columns of
$E = [E_1 \dots E_p]$ split like the tokens, and $EX = E_1 X_1 + \dots + E_p X_p$ has k rows, however long the sequence
is. Before that sum the processes tell each other how many tokens they hold, four integers each.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import distributed

from lowrank_tutor.linformer.norm_rule import RowSums

if TYPE_CHECKING:  # a build of PyTorch may lack it
    from torch.distributed import ProcessGroup


class Shard(NamedTuple):
    """Where the tokens of a process lie in the sequence.

    ``start`` tokens come before its own, ``total`` there are in all processes, and ``masked`` says whether any of these
    has a mask.
    """

    start: int
    total: int
    masked: bool


def check_process_group(value: object) -> "ProcessGroup | None":
    """Return ``value`` if it is None or a group that this process belongs to."""
    known = getattr(distributed, "ProcessGroup", ())  # no class matches where PyTorch was built without
    if value is None or isinstance(value, known):
        return value
    raise TypeError(
        f"process_group must be a torch.distributed.ProcessGroup that this process belongs to, got {value!r}"
    )


@contextmanager
def announce_refusal(group: "ProcessGroup", device: torch.device) -> Iterator[None]:
    """Tell the others if this process refuses its input, so that they need not wait for it until the timeout."""
    try:
        yield
    except (TypeError, ValueError):
        _gather(group, device, [0, 0, 0, 0])
        raise


def locate(group: "ProcessGroup | None", x: torch.Tensor, token_mask: torch.Tensor | None, max_len: int) -> Shard:
    """Say where the tokens (batch, n, dim) of this process lie; without a group they are the whole sequence.

    The order of the processes is that of the tokens, and n may differ from process to process. All of them refuse what
    one has refused, or what does not fit together.
    """
    batch, n = x.shape[:2]
    if group is None:
        return Shard(0, n, token_mask is not None)
    told = _gather(group, x.device, [1, batch, n, token_mask is not None])
    accepted, batches, counts, masked = (list(column) for column in zip(*told, strict=True))
    if not all(accepted):
        raise ValueError(f"x must fit the layer in every process, got a refusal in process {accepted.index(0)}")
    if len(set(batches)) > 1:
        raise ValueError(f"x must hold as many sequences in every process, got {', '.join(map(str, batches))}")
    if sum(counts) > max_len:
        raise ValueError(
            f"x must hold at most max_len = {max_len} tokens in all processes together, got"
            f" {' + '.join(map(str, counts))} = {sum(counts)}; cut it, or make the layer with a larger max_len"
        )
    return Shard(sum(counts[: group.rank()]), sum(counts), any(masked))


def add_up_shards(
    group: "ProcessGroup | None", mixed: list[torch.Tensor], sums_of_rows: list[RowSums]
) -> tuple[list[torch.Tensor], list[RowSums]]:
    """Return the mixtures and the sums over real tokens of all processes; without a group they are there already."""
    if group is None:
        return mixed, sums_of_rows
    sums = add_up(group, *mixed, *(each.real for each in sums_of_rows))
    real = sums[len(mixed) :]
    return list(sums[: len(mixed)]), [each._replace(real=it) for each, it in zip(sums_of_rows, real, strict=True)]


def add_up(group: "ProcessGroup", *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the sums of tensors over the processes, by one all-reduce of all their numbers, of the widest type.

    Each process goes on from the sums by itself, to a loss of its own; what the processes minimize together is the sum
    of the losses. A term therefore gets the sum of all the gradients that the processes have for the sums, by one more
    all-reduce of as many numbers. Each process must call ``backward``.
    """
    # With it each process has a gradient to ask for, also where neither its tokens nor its matrix do.
    anchor = torch.zeros((), requires_grad=True)
    sums: tuple[torch.Tensor, ...] = _Sum.apply(group, anchor, *tensors)  # type: ignore[no-untyped-call]
    return sums


class _Sum(torch.autograd.Function):
    """Forward the sum over the processes, backward the sum of the gradients over the processes."""

    @staticmethod
    def forward(
        ctx: Any, group: "ProcessGroup", anchor: torch.Tensor, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.group = group
        packed = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(packed, group=group)
        parts = torch.split(packed, [tensor.numel() for tensor in tensors])
        return tuple(part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, None, *add_up(ctx.group, *gradients)


def _gather(group: "ProcessGroup", device: torch.device, numbers: list[int]) -> list[list[int]]:
    """Return the integers of each process, in their order."""
    own = torch.tensor(numbers, device=device)
    told = [torch.empty_like(own) for _ in range(group.size())]
    distributed.all_gather(told, own, group=group)
    return [there.tolist() for there in told]
