"""Linformer over several processes: each compresses its own tokens, and one sum joins the results.

Page ``book/use-linformer.md``. The columns of E split like the tokens of X, and EX, the sum of the
products of their parts, has k rows, however long the sequence is. So one all-reduce of kD numbers
for each sequence and matrix joins the results (k more where tokens are hidden), and one more in
``backward``.
"""

from typing import Any

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, distributed

from lowrank_tutor._tensors import bias_of, check_tokens, is_autocast, zero_hidden
from lowrank_tutor.linformer import LinformerSelfAttention

__all__ = ["ShardedLinformer"]

SETTINGS = (
    "dtype",
    "autocast",
    "rule",
    "batch size",
    "dim",
    "heads",
    "k",
    "max_len",
    "matrices",
    "bias",
)
# What is no number is sent as its place in this list, from -1 down.
WORDS = (None, torch.float64, torch.float32, torch.float16, torch.bfloat16, "norm", "sum")


class ShardedLinformer(LinformerSelfAttention):
    """`LinformerSelfAttention` of one sequence that is split over the processes of a group.

    Each process makes the same layer, after ``init_process_group``, from one seed or
    ``state_dict``. It passes in its own consecutive tokens, at least one, in the order of the
    processes, and gets their rows of the result. Before the sum, the processes compare 18 numbers,
    by which all go on or all refuse the batch, for example because their layers differ in settings,
    type, autocast, or weights (by more than rounding errors). An error elsewhere, such as in a
    hook, leaves the others waiting until the group's timeout.

    The loss is the sum over all processes. The gradient of the tokens is complete. That of the
    parameters is a part, to be added up once a step, by an all-reduce of each ``grad`` or by
    ``DistributedDataParallel``, which divides by the number of processes. Every process must call
    ``backward``, for several losses in the same order, which cannot be checked. Each process draws
    its own dropout.

    Parameters
    ----------
    dim, heads, max_len, k, **options
        As in `LinformerSelfAttention`; ``max_len`` bounds the tokens of all processes together.
    process_group : torch.distributed.ProcessGroup
        The processes, this one among them. A group can be neither pickled nor copied, nor can a
        layer that has one.
    """

    process_group: Any

    def __init__(
        self, dim: int, heads: int, max_len: int, k: int, *, process_group: Any, **options: Any
    ) -> None:
        super().__init__(dim, heads, max_len, k, **options)
        if not isinstance(
            process_group, getattr(distributed, "ProcessGroup", ())
        ):  # some builds have no such class
            rule = "a torch.distributed.ProcessGroup with this process in it"
            raise TypeError(f"process_group must be {rule}, got {process_group!r}")
        self.process_group = process_group

    def forward(
        self, x: Tensor, *, token_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Attend from this process's tokens (batch, n, dim) to the mixtures of all; see `LinformerSelfAttention`."""
        refusal = None
        try:
            check_tokens(self, x, token_mask, causal)
        except (TypeError, ValueError) as error:
            refusal = error
        start, padded = self._agree(x, token_mask, refusal)
        x = zero_hidden(x, token_mask)
        mixed, sums = self._mix(x, token_mask, start, padded)
        added = _add_up(self.process_group, *mixed, *(kept for kept, _, _ in sums))
        sums = [
            (kept, total, by)
            for kept, (_, total, by) in zip(added[len(mixed) :], sums, strict=True)
        ]
        out = self._attend(x, *self._compress(list(added[: len(mixed)]), sums))
        return out if token_mask is None else out.masked_fill(~token_mask[:, :, None], 0)

    def _agree(
        self, x: Tensor, token_mask: Tensor | None, refusal: Exception | None
    ) -> tuple[int, bool]:
        """Compare notes, and return how many tokens come before this process's, and whether any are hidden.

        All processes raise an error if one of them has to refuse its tokens, or if their layers
        differ.
        """
        if refusal is not None:
            self._gather(
                [0] * (3 + len(SETTINGS)), torch.zeros(5, dtype=torch.float64, device=self.e.device)
            )
            raise refusal
        batch, n = x.shape[:2]
        autocast = torch.get_autocast_dtype(x.device.type) if is_autocast(x.device) else None
        places = (-1 - WORDS.index(word) for word in (self.e.dtype, autocast, self.rule))
        sizes = (batch, self.dim, self.heads, self.k, self.max_len, 1 if self.f is None else 2)
        notes = [1, n, token_mask is not None, *places, *sizes, bias_of(self.to_k) is not None]
        numbers, weights = self._gather(notes, _weigh(self))
        accepted, counts, masked, *settings = numbers.T.tolist()
        if not all(accepted):
            raise ValueError(
                f"x must fit the layer in every process, got a refusal in process {accepted.index(0)}"
            )
        texts = [
            [str(value if value >= 0 else WORDS[-1 - value]) for value in values]
            for values in settings
        ]
        unlike = [
            f"{name} = {', '.join(text)}"
            for name, text in zip(SETTINGS, texts, strict=True)
            if len(set(text)) > 1
        ]
        if unlike:
            raise ValueError(
                f"layer and batch size must be the same in every process, got {' and '.join(unlike)}"
            )
        # Different processors round differently, by 3e-7 after 300 steps of AdamW, so two thirds of
        # the digits count.
        bound = (
            min(torch.finfo(self.e.dtype).eps ** (2 / 3), 0.004)
            * weights[0, 0].nan_to_num(0, 0).item()
        )
        alike = weights.isclose(weights[:1], rtol=0, atol=bound, equal_nan=True).all(dim=1).tolist()
        if not all(alike):
            way = "start from one seed or state_dict, and add up the gradients of all processes before each step"
            rule = f"the same weights in all processes, got others in process {alike.index(False)}"
            raise ValueError(f"layer must have {rule}: {way}")
        if sum(counts) > self.max_len:
            got = f"{' + '.join(map(str, counts))} = {sum(counts)}"
            raise ValueError(
                f"x must hold at most max_len = {self.max_len} tokens in all processes, got {got}"
            )
        return sum(counts[: self.process_group.rank()]), any(masked) or sum(counts) < self.max_len

    def _gather(self, notes: list[Any], weights: Tensor) -> tuple[Tensor, Tensor]:
        """Exchange notes and weights, and return both with a row for each process."""
        own = torch.cat([weights.new_tensor(notes), weights])
        rows = [torch.empty_like(own) for _ in range(self.process_group.size())]
        distributed.all_gather(rows, own, group=self.process_group)
        gathered = torch.stack(rows).cpu()
        return gathered[:, : len(notes)].long(), gathered[:, len(notes) :]


def _weigh(layer: torch.nn.Module) -> Tensor:
    """Reduce the weights to five numbers: the norm of all first rows and columns, and four weighted sums of them."""
    tensors = (part.detach() for part in (*layer.parameters(), *layer.buffers()) if part.ndim)
    plain = (
        part for part in tensors if part.is_floating_point() and type(part) is Tensor
    )  # no quantized ones
    edges = torch.cat(
        [edge.flatten() for part in plain for edge in (part[0], part[..., 0])]
    ).double()
    turns = torch.outer(
        *(torch.arange(n, device=edges.device).double() for n in (4, len(edges)))
    ).cos()
    return torch.cat([torch.linalg.vector_norm(edges)[None], (turns * edges).sum(dim=1)])


def _add_up(group: "distributed.ProcessGroup", *tensors: Tensor) -> tuple[Tensor, ...]:
    """Add up tensors over the processes, by one all-reduce of all their numbers in the widest type.

    The processes minimize the sum of their losses, so ``backward`` adds up their gradients by
    another all-reduce.
    """
    return _Sum.apply(group, torch.zeros((), requires_grad=True), *tensors)  # type: ignore[no-any-return, no-untyped-call]


class _Sum(torch.autograd.Function):
    """Add up over the processes, forward and backward; ``anchor`` makes every process take part in ``backward``."""

    @staticmethod
    def forward(ctx: Any, group: Any, anchor: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        packed = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(packed, group=group)
        parts = torch.split(packed, [tensor.numel() for tensor in tensors])
        return tuple(
            part.view(tensor.shape).to(tensor.dtype)
            for part, tensor in zip(parts, tensors, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_add_up(ctx.group, *gradients)
