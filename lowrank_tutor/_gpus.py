"""The published peaks of graphics cards, in numbers that need no PyTorch.

They stand in ``data/gpus.json``, and `lowrank_tutor.roofline` explains them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from lowrank_tutor._checks import check_choice
from lowrank_tutor._data import read_data


class Gpu(NamedTuple):
    """The published peaks of a card, and where to check them.

    ``flops`` are operations a second in dense products of half-precision numbers, summed in
    float32; ``bandwidth`` is bytes a second between memory and processors, ``memory`` bytes,
    ``capability`` CUDA's compute capability. ``fp8`` and ``fp4`` are operations a second with
    numbers of 8 and of 4 bits, by the same source, or 0 where a card has no such products.
    """

    flops: float
    bandwidth: float
    memory: float
    capability: tuple[int, int]
    source: str
    fp8: float = 0.0
    fp4: float = 0.0


ROWS = read_data("gpus").items()
GPUS: Mapping[str, Gpu] = MappingProxyType(
    {name: Gpu(**row | {"capability": tuple(row["capability"])}) for name, row in ROWS}
)


def as_gpu(gpu: str | Gpu) -> Gpu:
    """Return a card of one's own, or that of a name in ``GPUS``."""
    return gpu if isinstance(gpu, Gpu) else GPUS[check_choice(gpu, "gpu", tuple(GPUS))]
