"""The published peaks of graphics cards, in numbers that need no PyTorch; `lowrank_tutor.roofline` says how."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Gpu(NamedTuple):
    """The published peaks of a card, and where to check them.

    ``flops`` are operations a second in dense products of half-precision numbers, summed in
    float32; ``bandwidth`` is bytes a second between memory and processors, ``memory`` bytes,
    ``capability`` CUDA's compute capability.
    """

    flops: float
    bandwidth: float
    memory: float
    capability: tuple[int, int]
    source: str


FIND_GPU = ": gpu_named(name, bytes of memory) finds its name, and a Gpu of your own goes too"
GPUS: Mapping[str, Gpu] = MappingProxyType({
    "T4": Gpu(65e12, 320e9, 16e9, (7, 5), "T4 datasheet (t4-tensor-core-datasheet-951643): FP16/FP32. It says 300 GB/s,"
              " but 256 bits of memory at 10 Gbit/s give 320; the larger stands here, so no program beats the floor"),
    "V100": Gpu(125e12, 900e9, 16e9, (7, 0), "V100 datasheet (volta-v100-datasheet-update-us-1165301-r5): SXM2, 16 GB"),
    "L4": Gpu(121e12, 300e9, 24e9, (8, 9), "L4 datasheet (l4-datasheet-2595652): half of 242, the rate with sparsity"),
    "A100": Gpu(312e12, 1555e9, 40e9, (8, 0), "A100 datasheet (nvidia-a100-datasheet-us-nvidia-1758950): SXM, 40 GB"),
    "RTX 4090": Gpu(165.2e12, 1008e9, 24e9, (8, 9),
                    "Ada GPU architecture (nvidia-ada-gpu-architecture): FP16 summed in FP32; in FP16 twice that"),
    "H100": Gpu(989e12, 3350e9, 80e9, (9, 0),
                "H100 datasheet (nvidia-tensor-core-gpu-datasheet): SXM, half of 1,979, the rate with sparsity"),
    "H200": Gpu(989e12, 4800e9, 141e9, (9, 0),
                "H200 datasheet (hpc-datasheet-sc23): SXM, half of 1,979, the rate with sparsity"),
    "RTX 5090": Gpu(209.5e12, 1792e9, 32e9, (12, 0), "RTX Blackwell GPU architecture (nvidia-rtx-blackwell-gpu-"
                    "architecture): FP16 summed in FP32. The 838 often quoted are summed in FP16, with sparsity"),
    "RTX PRO 6000": Gpu(503.8e12, 1792e9, 96e9, (12, 0), "RTX PRO 6000 Blackwell Workstation Edition datasheet: FP16"
                        " summed in FP32, half of 1,008, the rate with sparsity; its Max-Q edition has lower peaks"),
    "B200": Gpu(2250e12, 7700e9, 180e9, (10, 0), "HGX B200 datasheet: half of 4,500, the rate with sparsity. Others"
                " say 8,000 GB/s, but 8 Gbit/s for each of the 7,680 bits that its driver reports make 7,680 GB/s"),
    "MI355X": Gpu(2516.6e12, 8192e9, 288e9, (9, 5), "AMD Instinct MI355X datasheet: half of 5,033, the rate with"
                  " sparsity. It says 8 TB/s; 8,192 bits at 8 Gbit/s make 8,192 GB/s. PyTorch reports (9, 5)"),
})  # fmt: skip
