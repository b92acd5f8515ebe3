r"""Bound the time and memory of attention on a graphics card, and plan runs that fit.

Page ``book/measured.md``; ``measure.speed.linformer`` uses the same code. Queries, keys and values
are given: ``batch`` sequences of ``n`` tokens, ``heads`` heads, each of width ``d`` (a model is
``heads`` times ``d`` wide), in half precision, two bytes a number. With ``k``, keys and values are
first mixed to k rows (Linformer, E = F), k at most n; without it attention is exact.

A card can do only so many operations a second, and move only so many bytes a second between memory
and processors. Any program needs at least the larger of operations / (operations a second) and
bytes / (bytes a second): the **roofline**. At best each input is read once and each output written
once. Clear the cache before you compare a time with a floor.

The peaks are those of the makers' datasheets, which were not read in the original. On 2026-11-22
(RTX 4090, RTX 5090 and B200: 2026-11-25; RTX PRO 6000 and MI355X: 2026-11-27) each number was
compared with the datasheet as others quote it (for A100, H100, V100 and L4 that is NVIDIA's own
TensorRT-LLM, ``tensorrt_llm/auto_parallel/config.py``), and computed again from the numbers of
processors, their clock, and the width and clock of the memory (``tests/test_roofline.py``). Where
the two differ, ``source`` says so.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch.backends.cuda import SDPAParams, can_use_efficient_attention, can_use_flash_attention

from lowrank_tutor._checks import (
    check_bool,
    check_integer,
    check_real,
)
from lowrank_tutor._gpus import GPUS, Gpu, as_gpu
from lowrank_tutor._tensors import check_attention_inputs, check_device, each_head

__all__ = [
    "GPUS", "Floor", "Gpu", "Trial", "attention_bytes", "fused_backends", "gpu_crossover",
    "gpu_floor", "gpu_named", "half_type", "trials",
]  # fmt: skip

HALF = 2  # bytes of a number in half precision
# Bytes for each weight that is written out. PyTorch holds 9 at a time: logits and weights in
# float32, and a mask. They were counted on a CPU, which takes the same steps; the other 3 leave
# room.
WRITTEN_OUT = 12
RESERVE = 0.8  # share of the free memory that a plan may use: kernels need some of their own


def gpu_named(name: str, memory: float) -> str | None:
    """Find a card in ``GPUS``; return None for any other, whose peaks may be higher.

    ``torch.cuda.get_device_name()`` gives the name and ``torch.cuda.mem_get_info()[1]`` the bytes
    of memory, which tell an A100 with 80 GB, whose memory is faster, from the one with 40 GB.

    >>> gpu_named("NVIDIA A100-SXM4-40GB", 42.4e9), gpu_named("NVIDIA A100-SXM4-80GB", 85e9)
    ('A100', None)
    """
    memory = check_real(memory, "memory", "a number of bytes, 0 or more", 0)
    words = re.split(r"[^A-Za-z0-9]+", name)
    # Another card has the same name before these words: a faster memory, or fewer processors.
    other = {"NVL", "D", "Laptop", "Max"} & set(words)
    cards = [known for known in GPUS if f" {known} " in f" {' '.join(words)} "]
    if other or not cards or memory > 1.1 * GPUS[cards[0]].memory:
        return None
    return cards[0]


class Floor(NamedTuple):
    """The least time a card can take, and the counts behind it.

    It says which wall sets the time, "compute" or "memory". ``flops`` are the operations in the
    matrix products, ``moved_bytes`` what must be read or written at least.
    """

    seconds: float
    wall: str
    flops: int
    moved_bytes: int


def gpu_floor(
    n: int, d: int, heads: int, gpu: str | Gpu, *, k: int | None = None, batch: int = 1
) -> Floor:
    r"""Return the least time of attention with Q, K and V given, on a card.

    The card is one of ``GPUS`` or a `Gpu` of your own. With ``d`` the width of one head (``dim //
    heads``), and D = ``heads`` times ``d``, exact attention takes $4 n^2 D$ operations and moves $4
    n D$ numbers. Linformer takes $8 n k D$ operations and moves $4 n D + n k + 4 k D$ numbers: E is
    read, and the mixed keys and values are written and read again. Softmax is left out, which only
    lowers the floor. Source: Williams, Waterman and Patterson (2009), "Roofline", Communications of
    the ACM 52(4).

    >>> exact = gpu_floor(16384, 64, 8, "T4")
    >>> print(f"{1000 * exact.seconds:.1f} ms, {exact.wall}")
    8.5 ms, compute
    """
    n, batch = check_integer(n, "n"), check_integer(batch, "batch")
    width = check_integer(d, "d") * check_integer(heads, "heads")
    card = as_gpu(gpu)
    if k is None:
        flops, moved = 4 * batch * n**2 * width, 4 * batch * n * width
    else:
        k = check_integer(k, "k", 1, n, "n")
        flops, moved = 8 * batch * n * k * width, 4 * batch * (n + k) * width + n * k
    walls = {"compute": flops / card.flops, "memory": HALF * moved / card.bandwidth}
    wall = max(walls, key=lambda name: walls[name])
    return Floor(walls[wall], wall, flops, HALF * moved)


def gpu_crossover(k: int, d: int, heads: int, gpu: str | Gpu, *, batch: int = 1) -> int:
    """Return the least number of tokens from which Linformer's floor is the lower one.

    The other floor is that of exact attention, and the number is above k. With fewer tokens, mixing
    and reading E cost more than they save.

    >>> gpu_crossover(256, 64, 8, "T4")
    624
    """
    low = high = check_integer(k, "k")

    def pays(n: int) -> bool:
        mixed, exact = (gpu_floor(n, d, heads, gpu, k=rank, batch=batch) for rank in (k, None))
        return mixed.seconds < exact.seconds

    while not pays(high):
        low, high = high, 2 * high
    # Exact attention grows like n or n squared, Linformer like n: once it pays it always does.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def half_type(device: torch.device | str) -> torch.dtype:
    """Return the type to attend in.

    It is bfloat16 on a GPU from compute capability 8.0 on, else float16; float32 on a CPU. Below
    8.0 PyTorch's fused kernels do not take bfloat16, and attention in bfloat16 is written out.
    """
    place = check_device(device)
    if place is None or place.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.get_device_capability(place) >= (8, 0) else torch.float16


def fused_backends(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[str, ...]:
    """Ask PyTorch which fused kernels, "flash" or "efficient", take these tensors.

    The tensors are (batch, heads, n, d), on a GPU. Without such a kernel the weights are written
    out. On a CPU, which has kernels of its own, the answer is empty.
    """
    check_attention_inputs(q, k, v)
    if q.device.type != "cuda":
        return ()
    k, v = (each_head(part, q.shape[1]) for part in (k, v))
    asked = SDPAParams(q, k, v, None, 0.0, False, False)
    ways = {"flash": can_use_flash_attention, "efficient": can_use_efficient_attention}
    return tuple(name for name, can_use in ways.items() if can_use(asked))


def attention_bytes(
    n: int,
    d: int,
    heads: int,
    *,
    k: int | None = None,
    fused: bool = True,
    batch: int = 1,
) -> int:
    """Return the bytes that attention takes, Q, K, V and the result among them.

    Unfused, each weight takes 12 more. ``d`` is the width of one head (``dim // heads``), and a
    number takes two bytes.

    >>> attention_bytes(16384, 64, 8) / 1e9, attention_bytes(16384, 64, 8, fused=False) / 1e9
    (0.067633152, 25.837436928)
    """
    n, batch = check_integer(n, "n"), check_integer(batch, "batch")
    d, heads = check_integer(d, "d"), check_integer(heads, "heads")
    length = n if k is None else check_integer(k, "k", 1, n, "n")
    # Plus one float32 a query, the logarithm of its sum.
    attention = 4 * batch * heads * n * (HALF * d + 1)
    if k is not None:
        attention += HALF * (n * length + 2 * batch * heads * length * d)
    if not check_bool(fused, "fused"):
        attention += WRITTEN_OUT * batch * heads * n * length
    return attention


class Trial(NamedTuple):
    """Which of the two attentions to run at a length, and a note on what is left out and why."""

    n: int
    exact: bool
    linformer: bool
    note: str


def trials(
    lengths: Iterable[int],
    d: int,
    heads: int,
    k: int,
    *,
    free: float = math.inf,
    fused: bool = True,
) -> list[Trial]:
    """Choose what to run at each length, within four fifths of the ``free`` bytes.

    ``torch.cuda.mem_get_info()[0]`` tells how many are free,
    `fused_backends` whether attention is fused.

    >>> for trial in trials((4096, 16384), 64, 8, 256, free=15e9, fused=False):
    ...     print(trial.n, trial.exact, trial.note)
    4096 True
    16384 False n = 16384: exact attention left out, it needs 25.8 GB of 12.0 GB
    """
    k = check_integer(k, "k")
    if free != math.inf:
        free = check_real(free, "free", "a number of bytes, 0 or more", 0)
    room = RESERVE * free

    def trial(n: int) -> Trial:
        n = check_integer(n, "lengths")
        needs = {
            name: attention_bytes(n, d, heads, k=rank, fused=fused)
            for name, rank in (("exact attention", None), ("Linformer", k))
        }
        out = [
            f"{name} left out, it needs {size / 1e9:.1f} GB"
            for name, size in needs.items()
            if size > room
        ]
        note = f"n = {n}: {' and '.join(out)} of {room / 1e9:.1f} GB" if out else ""
        exact, linformer = (size <= room for size in needs.values())
        return Trial(n, exact, linformer, note)

    return [trial(n) for n in lengths]
