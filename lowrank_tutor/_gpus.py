"""The published peaks of graphics cards, in numbers that need no PyTorch; `lowrank_tutor.roofline` says how."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


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


FIND_GPU = ": gpu_named(name, bytes of memory) finds its name, and a Gpu of your own goes too"
GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        "T4": Gpu(
            65e12,
            320e9,
            16e9,
            (7, 5),
            "T4 datasheet (t4-tensor-core-datasheet-951643): FP16/FP32. It says 300 GB/s,"
            " but 256 bits of memory at 10 Gbit/s give 320; the larger stands here, so no program beats the floor",
        ),
        "V100": Gpu(
            125e12,
            900e9,
            16e9,
            (7, 0),
            "V100 datasheet (volta-v100-datasheet-update-us-1165301-r5): SXM2, 16 GB",
        ),
        "L4": Gpu(
            121e12,
            300e9,
            24e9,
            (8, 9),
            "L4 datasheet (l4-datasheet-2595652): half of 242, the rate with sparsity",
            242e12,
        ),
        "A100": Gpu(
            312e12,
            1555e9,
            40e9,
            (8, 0),
            "A100 datasheet (nvidia-a100-datasheet-us-nvidia-1758950): SXM, 40 GB",
        ),
        "A100 80GB": Gpu(
            312e12,
            2039e9,
            80e9,
            (8, 0),
            "A100 datasheet (nvidia-a100-datasheet-us-nvidia-1758950): SXM, 80 GB",
        ),
        "L40S": Gpu(
            362.05e12,
            864e9,
            48e9,
            (8, 9),
            "L40S datasheet: half of 733 and 1,466, the rates with sparsity",
            733e12,
        ),
        "RTX 4090": Gpu(
            165.2e12,
            1008e9,
            24e9,
            (8, 9),
            "Ada GPU architecture (nvidia-ada-gpu-architecture): FP16 summed in FP32; in FP16 twice that",
            330.3e12,
        ),
        "H100": Gpu(
            989e12,
            3350e9,
            80e9,
            (9, 0),
            "H100 datasheet (nvidia-tensor-core-gpu-datasheet): SXM, half of 1,979, the rate with sparsity",
            1979e12,
        ),
        "H200": Gpu(
            989e12,
            4800e9,
            141e9,
            (9, 0),
            "H200 datasheet (hpc-datasheet-sc23): SXM, half of 1,979, the rate with sparsity",
            1979e12,
        ),
        "RTX 5090": Gpu(
            209.5e12,
            1792e9,
            32e9,
            (12, 0),
            "RTX Blackwell GPU architecture (nvidia-rtx-blackwell-gpu-"
            "architecture): FP16 summed in FP32. The 838 often quoted are summed in FP16, with sparsity",
            419e12,
            1676e12,
        ),
        "RTX PRO 6000": Gpu(
            503.8e12,
            1792e9,
            96e9,
            (12, 0),
            "RTX PRO 6000 Blackwell Workstation Edition datasheet: FP16"
            " summed in FP32, half of 1,008, the rate with sparsity; its Max-Q edition has lower peaks",
            1007.6e12,
            2015.2e12,
        ),
        "B200": Gpu(
            2250e12,
            7700e9,
            180e9,
            (10, 0),
            "HGX B200 datasheet: half of 4,500, the rate with sparsity. Others"
            " say 8,000 GB/s, but 8 Gbit/s for each of the 7,680 bits that its driver reports make 7,680 GB/s",
            4500e12,
            9000e12,
        ),
        "GB200": Gpu(
            2500e12,
            8000e9,
            186e9,
            (10, 0),
            "Blackwell datasheet, as a copy had it on November 28, 2026: one of 72"
            " GPUs of the NVL72, half of 5,000, 10,000, and 20,000, the rates with sparsity",
            5000e12,
            10e15,
        ),
        "MI300X": Gpu(
            1307.4e12,
            5325e9,
            192e9,
            (9, 4),
            "AMD Instinct MI300X datasheet. It says 5.3 TB/s; 8,192 bits at 5.2"
            " Gbit/s make 5,325 GB/s",
            2614.9e12,
        ),
        "MI355X": Gpu(
            2516.6e12,
            8192e9,
            288e9,
            (9, 5),
            "AMD Instinct MI355X datasheet: half of 5,033, the rate with"
            " sparsity. It says 8 TB/s; 8,192 bits at 8 Gbit/s make 8,192 GB/s. PyTorch reports (9, 5)",
            5033e12,
            10066e12,
        ),
    }
)
