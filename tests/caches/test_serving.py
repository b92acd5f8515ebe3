"""What is read from configurations, and what fits on cards: budgets by hand, the table of models, and bad input."""

import datetime
import json
import math
import re
from importlib.resources import files

import pytest
from chapters import ROOT

from lowrank_tutor._gpus import Gpu
from lowrank_tutor.caches import Model, published_caches, read_config, serve

# Configurations as files config.json have them, of models that the table has not, and nonsense with
# its sentence.
PASTED = json.loads((ROOT / "tests" / "configurations.json").read_text("utf-8"))
CONFIGS = {name: each["config"] for name, each in PASTED["configs"].items()}
KEPT = {  # growing, fixed beyond 2**17 tokens
    "one head a key": (32 * 2 * 4096, 0), "groups": (32 * 2 * 8 * 128, 0),
    "every layer a window": (0, 32 * 2 * 8 * 128 * 4096),
    "three windows in four": (8 * 2 * 8 * 128, 24 * 2 * 8 * 128 * 4096), "experts": (32 * 2 * 8 * 128, 0),
    "latents": (61 * 576, 0), "an index, one key for two": (4 * 40 + 2 * 3, 0),
    "states": (2 * 2 * 2 * 256, 6 * 32 * 128 * 64), "letters": (2 * 2 * 32, 2 * 8 * 16 * 64),
    "other values, shared layers": (2 * 4 * 320, 2 * 2 * 320 * 100),
    "one vector for four": (128 + 32 + 4, 3 * 128 * 512),
    "one group for all": (32 * 2 * 64, 0), "groups by another name": (60 * 2 * 8 * 64, 0),
    "widths by another name": (28 * 2 * 4 * 96, 0),
}  # fmt: skip
GIB = 2**30
N = 2**17
ROWS = json.loads(files("lowrank_tutor").joinpath("data/models.json").read_text("utf-8"))["rows"]
PUBLISHED = {  # growing, fixed: multiplied out
    "Llama-3-70B": (80 * 2 * 1024, 0), "MiniMax-M2": (62 * 2 * 1024, 0), "MiniMax-M3": (60 * 2 * 512 + 57 * 128, 0),
    "Qwen3-8B": (36 * 2 * 1024, 0), "Llama-4-Scout": (12 * 2 * 1024, 36 * 2 * 1024 * 8192),
    "Olmo-3-7B": (8 * 2 * 4096, 24 * 2 * 4096 * 4096), "GLM-5": (78 * (512 + 64 + 128), 0),
    "Mistral-Large-4": (72 * (512 + 64 + 128), 0), "Hy4-preview": (78 * 576 + 21 * 128, 0),
    "DeepSeek-V3.2": (61 * (512 + 64 + 128), 0), "DeepSeek-V3": (61 * 576, 0), "Mistral-Small-4": (36 * 320, 0),
    "gpt-oss-120b": (18 * 2 * 512, 18 * 2 * 512 * 128), "Gemma-3-27B": (10 * 2 * 2048, 52 * 2 * 2048 * 1024),
    "Gemma-4-26B-A4B": (5 * 2 * 1024, 25 * 2 * 2048 * 1024), "Qwen3-Next-80B": (12 * 2 * 512, 36 * 32 * 128 * 128),
    "Qwen3.5-35B-A3B": (10 * 2 * 512, 30 * 32 * 128 * 128),
    "Qwen3.8-Flash-Next": (12 * (2 * 512 + 128 // 4), 36 * 48 * 128 * 128),
    "Olmo-Hybrid-7B": (8 * 2 * 3840, 24 * 30 * 96 * 192), "Kimi-Linear-48B": (7 * 576, 20 * 32 * 128 * 128),
    "Kimi-K3": (24 * 576, 69 * 96 * 128 * 128), "GLM-5.3-Flash": (11 * (512 + 128 // 4), 34 * 64 * 128 * 128),
    "Ling-3.0-Flash": (7 * 576, 35 * 32 * 128 * 128), "Nemotron-H-8B": (4 * 2 * 1024, 24 * 128 * 64 * 128),
    "DeepSeek-V4-Flash": (21 * 160 + 20 * 4, 43 * 512 * 128),
}  # fmt: skip


def test_published_caches():
    assert {name: each[:2] for name, each in published_caches().items()} == PUBLISHED


def test_rows_are_recent():
    """A row older than 120 days is looked at again, or its words say of which day it is."""
    today = datetime.datetime.now(datetime.UTC).date()
    old = [
        row["name"]
        for row in ROWS
        if (today - datetime.date.fromisoformat(row["checked"])).days > 120
        and "as of" not in row["keeps"]
    ]
    assert not old, (
        f'compare {old} with their sources, then run: python -m measure.models "{" ".join(old)}"'
    )


@pytest.mark.filterwarnings("ignore")
def test_rows_are_those_of_classes():
    transformers = pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    from measure.models import read_row

    for row in ROWS:
        if transformers.__version__ in row["source"]:
            assert read_row(row) == row, row["name"]


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(name):
    model, (growing, fixed) = read_config(CONFIGS[name]), KEPT[name]
    kept = [serve(model, billions=2000, n=n).cache * GIB / 2 for n in (N, N + 1024)]
    assert kept == [N * growing + fixed, (N + 1024) * growing + fixed]
    assert model.unknown == (("mamba_chunks_kept",) if name == "letters" else ())


def test_experts():
    assert read_config(CONFIGS["experts"])[2:4] == (32 * 8 * 3 * 4096 * 14336 / 1e9, 0.25)
    assert read_config(CONFIGS["latents"])[2:4] == (60 * 384 * 3 * 7168 * 2048 / 1e9, 8 / 384)


# Model, card, cards, options; billions of weights on a card, numbers of a chat on it, and chats.
BUDGETS = [
    ("Qwen3-8B", "RTX 5090", 1, {"n": 88_000}, 8.19, 88_000 * 73_728, 1),
    ("Qwen3-8B", "RTX 5090", 1, {"n": 89_000}, 8.19, 89_000 * 73_728, 0),
    ("Qwen3-8B", "T4", 2, {"split": "data", "weight_bits": 8, "n": 8192}, 8.19, 8192 * 73_728, 2 * 4),
    ("Llama-3-70B", "H200", 8, {}, 70.55 / 8, N * 163_840 // 8, 20),
    ("Llama-3-70B", "H200", 16, {}, 70.55 / 16, N * 163_840 // 8, 22),
    ("Llama-3-70B", "H100", 1, {"weight_bits": 4, "cache_bits": 8}, 70.55, N * 163_840, 1),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8}, 671.03 / 8, N * 35_136, 4),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8, "split": "data"}, 653.91 / 8 + 17.12, N * 35_136, 8 * 2),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8, "split": "tokens"}, 671.03 / 8, N * 35_136 // 8, 35),
    ("gpt-oss-120b", "H100", 4, {"split": "tokens"}, 116.83 / 4, 18 * 1024 * (N // 4) + 18 * 1024 * 32, 12),
    ("Qwen3-Next-80B", "H100", 4, {}, 79.67 / 4, 12 * 512 * N + 36 * 8 * 128 * 128, 20),
    ("GLM-5", "B200", 8, {"weight_bits": 8, "cache_bits": 8}, 743.91 / 8, N * 54_912, 9),
    ("one head a key", "H100", 4, {}, 7 / 4, N * 32 * 2 * 1024, 4),
    ("groups", "RTX 4090", 3, {"n": 32_768}, 8 / 3, 32_768 * 32 * 2 * 3 * 128, 10),
    ("every layer a window", "L4", 1, {}, 7.2, 32 * 2048 * 4096, 14),
    ("three windows in four", "L4", 1, {}, 8, 8 * 2048 * N + 24 * 2048 * 4096, 1),
    ("experts", "A100", 8, {"split": "data", "n": 4096}, 45.097 / 8 + 1.603, 4096 * 65_536, 8 * 41),
    ("latents", "B200", 16, {"weight_bits": 4}, 1026 / 16, N * 35_136, 14),
    ("an index, one key for two", "T4", 1, {"n": 1000}, 0.5, 1000 * 166, 41_325),
    ("states", "T4", 16, {"n": 1024}, 4 / 16, 1024 * 2 * 512 + 6 * 2 * 128 * 64, 6_199),
    ("other values, shared layers", "V100", 4, {"n": 64}, 2 / 4, 64 * 2 * 320 + 64 * 2 * 320, 83_740),
    ("one vector for four", "V100", 2, {"n": 1000, "split": "tokens"}, 1 / 2,
     3 * 64 * 512 + 125 * 640 + 4 * 512, 38_036),
]  # fmt: skip


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: " ".join(map(str, budget[:3])))
def test_budgets_by_hand(budget):
    name, gpu, cards, options, billions, kept, chats = budget
    pasted = name in CONFIGS
    options = options | {"billions": PASTED["configs"][name]["billions"] if pasted else None}
    served = serve(read_config(CONFIGS[name]) if pasted else name, gpu, cards=cards, **options)
    bits = {16: 16, 8: 8.5, 4: 4.5}[options.get("weight_bits", 16)]
    assert served.weights * GIB == pytest.approx(billions * bits / 8 * 1e9, rel=2e-4)
    assert served.cache * GIB == kept * options.get("cache_bits", 16) / 8
    assert served.chats == chats
    assert f"{chats:,} in all" in served.lines[2]


def test_measured_split():
    """On eight B200, vLLM had 7.7 times as much cache with data as with tensor parallelism (its issue 51454)."""
    options = {
        "model": "DeepSeek-V4-Flash",
        "gpu": "B200",
        "cards": 8,
        "cache_bits": 8,
        "share": 0.95,
    }
    ratios = [
        serve(**options, split="data", weight_bits=bits).chats
        / serve(**options, weight_bits=bits).chats
        for bits in (8, 4)
    ]
    assert ratios == pytest.approx([7.6, 7.8], abs=0.05)


def test_speed_by_hand():
    """Memory sets the pace of one chat, operations that of many."""
    part = {"layers": 2, "groups": 2, "width": 4, "heads": 8}
    index = [
        {"layers": 1, "latent": 6, "rotary": 2, "heads": 4, "chosen": 10},
        {"layers": 1, "index": 3, "heads": 5},
    ]
    state = {"layers": 2, "state": 32, "heads": 4}
    experts = Model((part,), 10, 8, 0.25)
    for model, gpu, chats, seconds in (
        (Model((part,), 1), Gpu(1e30, 1e9, 2.5e9, (1, 0), ""), 156, (2e9 + 156 * 3_200_000) / 1e9),
        (
            Model((part,), 1),
            Gpu(1e12, 1e30, 2.5e9, (1, 0), ""),
            156,
            156 * (2e9 + 2 * 2 * 8 * 8 * 50_000) / 1e12,
        ),
        (
            Model(tuple(index), 1),
            Gpu(1e30, 1e9, 2.002e9, (1, 0), ""),
            1,
            (2e9 + 2 * (80 + 150_000)) / 1e9,
        ),
        (
            Model(tuple(index), 1),
            Gpu(1.0, 1e30, 2.002e9, (1, 0), ""),
            1,
            2e9 + 2 * 4 * 10 * 14 + 2 * 5 * 150_000,
        ),
        (
            Model((state,), 1),
            Gpu(1e30, 1e9, 2e9 + 300, (1, 0), ""),
            2,
            (2e9 + 2 * 2 * 2 * 64) / 1e9,
        ),
        (
            experts,
            Gpu(1e30, 1e9, 20e9 + 7e6, (1, 0), ""),
            2,
            (4e9 + 16e9 * 7 / 16 + 2 * 3_200_000) / 1e9,
        ),
        (
            experts,
            Gpu(1.0, 1e30, 20e9 + 7e6, (1, 0), ""),
            2,
            2 * (2 * 4e9 + 2 * 2 * 8 * 8 * 50_000),
        ),
    ):
        served = serve(model, gpu, n=50_000 if "state" not in model.parts[0] else 1, share=1.0)
        assert served.chats == chats
        assert served.tokens_per_second == pytest.approx(chats / seconds, rel=1e-9)


def test_bad_input():
    for text, message in PASTED["nonsense"].items():
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
            read_config(json.loads(text))
    model = read_config(CONFIGS["experts"])
    for options, message in (
        ({}, "billions must be given, for a configuration does not count the weights, got None"),
        ({"billions": 45}, "billions must be 45.10 (its experts) or more, got 45.0"),
        ({"billions": 50, "weight_bits": 5}, "weight_bits must be 16, 8 or 4, got 5"),
        ({"billions": 50, "share": 1.1}, "share must be above 0 and at most 1, got 1.1"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            serve(model, **options)
    assert math.isfinite(serve(model, billions=50, share=1).tokens_per_second)
