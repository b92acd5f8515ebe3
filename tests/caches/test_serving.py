"""What is read from configurations, and what fits on cards: budgets by hand, the table of models,
and bad input.
"""

import datetime
import json
import math
import re
from importlib.resources import files

import pytest
import torch
from chapters import ROOT

from lowrank_tutor._gpus import Gpu
from lowrank_tutor.caches import Model, published_caches, read_config, serve
from lowrank_tutor.caches.configs import TYPES
from lowrank_tutor.caches.serving import stored

# Configurations as files config.json have them, with the numbers that grow with each token, fixed
# ones beyond 2**18 tokens, and those of states; and others with the sentence that refuses them.
PASTED = json.loads((ROOT / "tests" / "configurations.json").read_text("utf-8"))
READ = {name: each["config"] for name, each in PASTED["read"].items()}
GIB = 2**30
N = 2**17
ROWS = json.loads(files("lowrank_tutor").joinpath("data/models.json").read_text("utf-8"))["rows"]
PUBLISHED = {  # growing, fixed: multiplied out
    "Llama-3-70B": (80 * 2 * 1024, 0), "Qwen3-Coder-30B": (48 * 2 * 512, 0),
    "DeepSeek-V3.2": (61 * (512 + 64 + 128), 0), "DeepSeek-V3": (61 * 576, 0),
    "gpt-oss-120b": (18 * 2 * 512, 18 * 2 * 512 * 128),
    "Gemma-3-27B": (10 * 2 * 2048, 52 * 2 * 2048 * 1024),
    "Kimi-Linear-48B": (7 * 576, 20 * 32 * 128 * 128),
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
    from measure.models import read_row

    for row in ROWS:
        assert read_row(row) == row, row["name"]


TINY = {"num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 32,
        "moe_intermediate_size": 16, "vocab_size": 40, "sliding_window": 5,
        "layer_types": None, "num_experts_per_tok": 2, "pad_token_id": 0}  # fmt: skip
FAMILIES = {name: family for family in TYPES["families"] for name in family["types"]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*FAMILIES} - {"by hand", "kimi_k2"}))
def test_types_are_those_of_classes(name):
    """A class's own dict is read, and a model of it keeps as many numbers of 12 tokens as are
    counted.
    """
    import transformers

    own = transformers.AutoConfig.for_model(
        name, **{"num_experts_per_tok": 6} if name == "deepseek_v2" else {}
    )
    fields = json.loads(json.dumps(own.to_dict()))
    model = read_config(fields)
    assert sum(part["layers"] for part in model.parts) >= own.num_hidden_layers
    if any({"latent", "state"} & {*part} for part in model.parts):
        return  # the classes keep these in full; they are counted by hand above
    changes = {field: value for field, value in TINY.items() if field in {*fields, "head_dim"}}
    tiny = transformers.AutoConfig.for_model(name, **changes)
    made = transformers.AutoModelForCausalLM.from_config(tiny).eval()
    with torch.no_grad():
        cache = made(torch.arange(12)[None]).past_key_values
    held = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    fields = tiny.to_dict()
    if fields.get("sliding_window"):
        fields["sliding_window"] -= 1  # the class drops what the next token won't read
    assert sum(stored(part, 12) for part in read_config(fields).parts) == held


@pytest.mark.parametrize("name", READ)
def test_configs(name):
    model = read_config(READ[name])
    growing, fixed, states = (
        sum(math.prod(map(int, product.split("*"))) for product in kept.split("+"))
        for kept in PASTED["read"][name]["kept"]
    )
    for n in (2**18, 2**18 + 1024):
        assert sum(stored(part, n) for part in model.parts) == n * growing + fixed
        kept = serve(model, "H200", billions=2000, n=n, cache_bits=8).cache * GIB
        assert kept == n * growing + fixed + states


def test_experts():
    found = {name: read_config(READ[name])[2:] for name in READ}
    assert found["a window that is null"] == (32 * 8 * 3 * 4096 * 14336 / 1e9, 0.25)
    assert found["latents"] == (60 * 384 * 3 * 7168 * 2048 / 1e9, 8 / 384)
    assert found["states and latents"] == (3 * 8 * 3 * 64 * 32 / 1e9, 0.25)
    assert found["llama"] == (0, 1)


# Model, card, cards, options; billions of weights on a card, bytes of a chat on it, and chats.
BUDGETS = [
    ("Llama-3-70B", "H200", 8, {}, 70.55 / 8, 2 * N * 163_840 // 8, 20),
    ("Llama-3-70B", "H200", 16, {}, 70.55 / 16, 2 * N * 163_840 // 8, 22),
    ("Llama-3-70B", "H100", 1, {"weight_bits": 4.5, "cache_bits": 8}, 70.55, N * 163_840, 1),
    ("Llama-3-70B", "H100", 1, {"weight_bits": 4.5, "cache_bits": 8, "other": 12.0}, 70.55,
     N * 163_840, 0),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8}, 671.03 / 8, 2 * N * 35_136, 4),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8, "split": "data"}, 653.91 / 8 + 17.12,
     2 * N * 35_136, 8 * 3),
    ("DeepSeek-V3", "H200", 8, {"weight_bits": 8, "split": "tokens"}, 671.03 / 8,
     2 * N * 35_136 // 8, 39),
    ("DeepSeek-V3.2", "B200", 8, {"weight_bits": 8, "cache_bits": 8}, 671.88 / 8, N * 42_944, 14),
    ("gpt-oss-120b", "H100", 4, {"split": "tokens"}, 116.83 / 4,
     2 * (18 * 1024 * (N // 4) + 18 * 1024 * 32), 12),
    ("gpt-oss-120b", "H100", 1, {"weight_bits": 4.25, "n": 32_768}, 116.83,
     2 * 18 * 1024 * (32_768 + 128), 9),
    ("Kimi-Linear-48B", "H100", 4, {"cache_bits": 8}, 49.12 / 4,
     7 * 576 * N + 2 * 20 * 8 * 128 * 128, 91),
    ("Qwen3-Coder-30B", "RTX 5090", 1, {"weight_bits": 4.5, "n": 2**18}, 30.53, 2 * 2**18 * 49_152,
     0),
    ("by hand", "RTX 4090", 3, {"n": 32_768}, 8 / 3, 2 * 32_768 * 32 * 2 * 3 * 128, 10),
    ("every layer a window", "L4", 1, {}, 7.2, 2 * 32 * 2048 * 4096, 14),
    ("a window that is null", "A100", 8, {"split": "data", "n": 4096}, 45.097 / 8 + 1.603,
     2 * 4096 * 65_536, 8 * 41),
    ("latents", "B200", 16, {"weight_bits": 4.5}, 1026 / 16, 2 * N * 35_136, 14),
    ("states", "T4", 16, {"n": 1024, "cache_bits": 4}, 4 / 16,
     1024 * 2 * 256 + 2 * 6 * 2 * 128 * 64, 19_725),
    ("one vector for four", "V100", 2, {"n": 1000, "split": "tokens"}, 1 / 2,
     2 * (3 * 64 * 512 + 125 * 640 + 4 * 512), 38_036),
]  # fmt: skip


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: " ".join(map(str, budget[:3])))
def test_budgets_by_hand(budget):
    name, gpu, cards, options, billions, kept, chats = budget
    model = name if name in PUBLISHED else read_config(READ[name])
    total = PASTED["read"].get(name, {}).get("billions")
    served = serve(model, gpu, cards=cards, billions=total, **options)
    bits = options.get("weight_bits", 16)
    assert served.weights * GIB == pytest.approx(billions * bits / 8 * 1e9, rel=2e-4)
    assert served.cache * GIB == kept
    assert served.chats == chats
    assert f"{chats:,} in all" in served.lines[2]


def card(flops, bandwidth, memory, **more):
    return Gpu(flops, bandwidth, memory, (1, 0), "", **more)


def test_speed_by_hand():
    """Memory sets the pace of one chat, operations that of many."""
    part = {"layers": 2, "groups": 2, "width": 4, "heads": 8}
    index = [
        {"layers": 1, "latent": 6, "rotary": 2, "heads": 4, "chosen": 10},
        {"layers": 1, "index": 3, "heads": 5},
    ]
    plain, chosen = Model((part,), 1), Model(tuple(index), 1)
    state, experts = (
        Model(({"layers": 2, "state": 32, "heads": 4},), 1),
        Model((part,), 10, 8, 0.25),
    )
    attended = 2 * 2 * 8 * 8 * 50_000
    eight, four = {"weight_bits": 8}, {"weight_bits": 4.5, "cache_bits": 8}
    for model, gpu, options, chats, seconds in (
        (plain, card(1e30, 1e9, 2.5e9), {}, 156, (2e9 + 156 * 3_200_000) / 1e9),
        (plain, card(1e12, 1e30, 2.5e9), {}, 156, 156 * (2e9 + attended) / 1e12),
        (chosen, card(1e30, 1e9, 2.002e9), {}, 1, (2e9 + 2 * (80 + 150_000)) / 1e9),
        (chosen, card(1.0, 1e30, 2.002e9), {}, 1, 2e9 + 2 * 4 * 10 * 14 + 2 * 5 * 150_000),
        (state, card(1e30, 1e9, 2e9 + 300), {}, 2, (2e9 + 2 * 2 * 2 * 64) / 1e9),
        (experts, card(1e30, 1e9, 20e9 + 7e6), {}, 2,
         (4e9 + 16e9 * 7 / 16 + 2 * 3_200_000) / 1e9),
        (experts, card(1.0, 1e30, 20e9 + 7e6), {}, 2, 2 * (2 * 4e9 + attended)),
        # products of weights and of the cache, each at its format's peak
        (plain, card(1.0, 1e30, 2.5e9, fp8=2.0), eight, 468, 468 * (2e9 / 2 + attended)),
        (plain, card(1.0, 1e30, 2.5e9, fp8=2.0, fp4=4.0), four, 1210,
         1210 * (2e9 / 4 + attended / 2)),
    ):  # fmt: skip
        n = 50_000 if "state" not in model.parts[0] else 1
        served = serve(model, gpu, n=n, share=1.0, **options)
        assert served.chats == chats
        assert served.tokens_per_second == pytest.approx(chats / seconds, rel=1e-9)


def test_bad_input():
    for text, message in PASTED["refused"]:
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
            read_config(json.loads(text))
    model = read_config(READ["a window that is null"])
    for options, message in (
        ({}, "billions must be given, for a configuration does not count the weights, got None"),
        ({"billions": 45}, "billions must be 45.10 (its experts) or more, got 45"),
        ({"billions": 50, "weight_bits": 5}, "weight_bits must be 16, 8, 4.5, or 4.25, got 5"),
        ({"billions": 50, "share": 1.1}, "share must be above 0 and at most 1, got 1.1"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            serve(model, **options)
    assert math.isfinite(serve(model, billions=50, share=1).tokens_per_second)
