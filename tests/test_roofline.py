"""The roofline of a graphics card and the plan made from it, against hand counts, loops and
simulated cards.
"""

import itertools

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lowrank_tutor import roofline
from lowrank_tutor.linformer import linformer_cost
from lowrank_tutor.roofline import (
    GPUS,
    fused_backends,
    gpu_floor,
    gpu_named,
    half_type,
)
from measure.memory import peak_bytes


def test_floor_by_counts():
    card = GPUS["T4"]
    for n, d, heads, k, batch in itertools.product(
        (256, 65536), (32, 128), (1, 8), (None, 16, 256), (1, 4)
    ):
        floor = gpu_floor(n, d, heads, "T4", k=k, batch=batch)
        scores = averages = 2 * n * (k or n) * d  # operations of one head
        mixing = 2 * 2 * (k or 0) * n * d  # E K and E V
        numbers = (
            4 * n * d + 4 * (k or 0) * d
        )  # Q, K, V, the result; mixtures of keys and values, written and read
        operations = batch * heads * (scores + averages + mixing)
        moved = 2 * (batch * heads * numbers + n * (k or 0))  # E is shared
        assert (floor.flops, floor.moved_bytes) == (operations, moved)
        assert floor.wall == (
            "compute" if operations / card.flops >= moved / card.bandwidth else "memory"
        )


def test_floor_matches_layer_cost():
    assert gpu_floor(64, 8, 2, "T4") == gpu_floor(64, 8, 2, GPUS["T4"])
    n, d, heads, k = 1024, 64, 8, 128
    width = d * heads
    layer = linformer_cost(n, dim=width, heads=heads, k=k).flops
    linear = (
        4 * n * width**2 + 4 * k * width**2
    )  # queries and output; keys and values, of which there are k
    compressed = 2 * n * k * width  # a layer mixes the tokens once, for keys and values together
    assert gpu_floor(n, d, heads, "T4", k=k).flops == layer - linear + compressed


@pytest.mark.parametrize(
    ("capability", "dtype"),
    [((7, 0), "float16"), ((7, 5), "float16"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")],
)
def test_half_type_by_capability(capability, dtype, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    assert half_type("cuda") == half_type(torch.device("cuda", 1)) == getattr(torch, dtype)
    assert half_type("cpu") == torch.float32


@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize("efficient", [True, False])
def test_fused_backends_on_simulated_card(flash, efficient, monkeypatch):
    monkeypatch.setattr(roofline, "can_use_flash_attention", lambda _asked: flash)
    monkeypatch.setattr(roofline, "can_use_efficient_attention", lambda _asked: efficient)
    q = torch.zeros(1, 1, 2, 8)
    assert fused_backends(q, q, q) == ()  # a CPU is not asked
    asked = []
    monkeypatch.setattr(roofline, "SDPAParams", lambda *settings: asked.append(settings[3:]))
    monkeypatch.setattr(roofline, "check_attention_inputs", lambda *tensors: None)

    class OnCard:
        device, shape = torch.device("cuda"), (1, 1, 2, 8)

    named = tuple(name for name, yes in (("flash", flash), ("efficient", efficient)) if yes)
    assert fused_backends(OnCard(), OnCard(), OnCard()) == named
    assert asked == [(None, 0.0, False, False)]  # no mask, no dropout, not causal, no groups


def test_written_out_bytes_hold():
    """On a CPU, which takes the same steps, PyTorch keeps logits and weights in float32, and a
    mask; 2.4 no float32.
    """
    q, k, v = torch.zeros(3, 1, 4, 256, 16, dtype=torch.float16)

    def attend():
        with sdpa_kernel(SDPBackend.MATH):
            functional.scaled_dot_product_attention(q, k, v)

    held = peak_bytes(attend, torch.device("cpu")) / (4 * 256**2)
    assert round(held) == (4 if torch.__version__.startswith("2.4.") else 9)
    assert held < roofline.WRITTEN_OUT


# Processors, products with their addition that each does in a tick, million ticks a second; bits at
# a time from the memory, and how many gigabits a second each of them carries; gigabytes;
# capability. From NVIDIA's descriptions of each architecture, and for the B200 from what its driver
# reports.
BUILT = {
    "T4": (40, 512, 1590, 256, 10.0, 16, (7, 5)),
    "V100": (80, 512, 1530, 4096, 1.754, 16, (7, 0)),
    "L4": (58, 512, 2040, 192, 12.5, 24, (8, 9)),
    "A100": (108, 1024, 1410, 5120, 2.43, 40, (8, 0)),
    "RTX 4090": (128, 256, 2520, 384, 21.0, 24, (8, 9)),
    "H100": (132, 2048, 1830, 5120, 5.24, 80, (9, 0)),
    "H200": (132, 2048, 1830, 6144, 6.25, 141, (9, 0)),
    "RTX 5090": (170, 256, 2407, 512, 28.0, 32, (12, 0)),
    "RTX PRO 6000": (188, 512, 2617, 512, 28.0, 96, (12, 0)),
    "A100 80GB": (108, 1024, 1410, 5120, 3.186, 80, (8, 0)),
    "L40S": (142, 512, 2490, 384, 18.0, 48, (8, 9)),
    "MI300X": (304, 1024, 2100, 8192, 5.2, 192, (9, 4)),
    "B200": (148, 4096, 1860, 7680, 7.992, 180, (10, 0)),
    "MI355X": (256, 2048, 2400, 8192, 8.0, 288, (9, 5)),
}


@pytest.mark.parametrize("name", BUILT)
def test_peaks_from_hardware(name):
    (processors, products, million_ticks, bits, gigabits, gigabytes, capability), card = (
        BUILT[name],
        GPUS[name],
    )
    assert 2 * processors * products * million_ticks * 1e6 == pytest.approx(card.flops, rel=5e-3)
    assert bits / 8 * gigabits * 1e9 == pytest.approx(card.bandwidth, rel=5e-3)
    assert (card.memory, card.capability) == (gigabytes * 1e9, capability)


@pytest.mark.parametrize(
    ("name", "memory", "found"),
    [
        ("Tesla V100-SXM2-16GB", 16.9e9, "V100"),
        ("NVIDIA H100 80GB HBM3", 85.0e9, "H100"),
        ("NVIDIA H200", 150.1e9, "H200"),
        ("NVIDIA GeForce RTX 4090", 25.4e9, "RTX 4090"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", 25.4e9, None),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 102e9, None),
        ("AMD Instinct MI355X", 309e9, "MI355X"),
        ("NVIDIA GB200", 198e9, "GB200"),
        ("Tesla V100S-PCIE-32GB", 34e9, None),  # these have a faster memory, or more processors
        ("NVIDIA A100-SXM4-80GB", 85e9, None),
        ("NVIDIA H100 NVL", 84e9, None),
        ("NVIDIA L40S", 48.3e9, "L40S"),
    ],
)
def test_gpu_named(name, memory, found):
    assert gpu_named(name, memory) == found
