"""Counts of stored numbers and of multiplications, against published configurations and products that are made."""

import json
import re
from importlib.resources import files

import pytest

from lowrank_tutor.caches import LatentCost, kv_cache_numbers, latent_cost, published_caches


@pytest.mark.parametrize(
    ("config", "numbers"),
    [
        ({"layers": 32, "heads": 32, "width": 128}, 262_144),  # Llama-2-7B
        ({"layers": 95, "groups": 8, "width": 128}, 194_560),  # DeepSeek-67B
        ({"layers": 60, "latent": 512, "rotary": 64}, 34_560),  # DeepSeek-V2: its Table 9 gives 34.6K
        ({"layers": 61, "latent": 512, "rotary": 64, "index": 128}, 42_944),  # DeepSeek-V3.2
        ({"layers": 2, "groups": 1, "width": 4, "index": 3}, 22),
    ],
)
def test_counts_by_hand(config, numbers):
    assert kv_cache_numbers(**config) == numbers


PUBLISHED = {  # growing, fixed: multiplied out
    "Llama-3-70B": (80 * 2 * 1024, 0),
    "MiniMax-M2": (62 * 2 * 1024, 0),
    "GLM-5": (78 * (512 + 64 + 128), 0),
    "Gemma-3-27B": (10 * 2 * 2048, 52 * 2 * 2048 * 1024),
    "DeepSeek-V3": (61 * 576, 0),
    "gpt-oss-120b": (18 * 2 * 512, 18 * 2 * 512 * 128),
    "Qwen3-Next-80B": (12 * 2 * 512, 36 * 32 * 128 * 128),
    "Mistral-Small-4": (36 * 320, 0),
    "Kimi-Linear-48B": (7 * 576, 20 * 32 * 128 * 128),
    "DeepSeek-V4-Flash": (21 * 160 + 20 * 4, 43 * 512 * 128),
}


def test_published_caches():
    assert {name: each[:2] for name, each in published_caches().items()} == PUBLISHED


@pytest.mark.filterwarnings("ignore")
def test_published_shapes_in_transformers():
    """Where a source is a default of transformers, the layers say the same."""
    transformers = pytest.importorskip("transformers", reason="pip install transformers")
    rows = json.loads(files("lowrank_tutor").joinpath("data/published.json").read_text())["kv_caches"]["rows"]
    names = {"groups": "num_key_value_heads", "width": "head_dim", "latent": "kv_lora_rank"}
    names |= {"rotary": "qk_rope_head_dim", "index": "index_head_dim"}
    seen = 0
    for row in rows.values():
        kind = row["source"].rpartition("defaults of ")[2]
        if not kind.endswith("Config") or kind == row["source"]:
            continue
        own, seen = getattr(transformers, kind)(), seen + 1
        assert sum(part["layers"] for part in row["layers"]) == own.num_hidden_layers, kind
        full = row["layers"][0]
        assert {key: getattr(own, names[key]) for key in full if key in names} == {
            key: size for key, size in full.items() if key != "layers"
        }, kind
    assert seen == 4


@pytest.mark.parametrize(("absorb", "per_token"), [(True, 139_264), (False, 16_818_176)])
def test_cost_of_products(absorb, per_token):
    one, two = (latent_cost(n, 128, 128, 512, 64, absorb=absorb) for n in (1, 2))
    assert two.multiplications - one.multiplications == per_token
    assert (one.read, two.read) == (576, 1152)


LEAST = {"n": 1, "heads": 1, "d_h": 1, "d_c": 1, "d_rope": 0}


def test_bad_counts():
    assert latent_cost(**LEAST, absorb=True) == LatentCost(4, 1)
    for options, message in (
        ({}, "heads, groups or latent must be given, one of the three, got none"),
        ({"heads": 2, "latent": 3}, "heads, groups or latent must be given, one of the three, got heads, latent"),
        ({"latent": 3, "width": 4}, "width must be None with a latent, which stands for keys and values, got 4"),
        ({"groups": 2, "width": 4, "rotary": 1}, "rotary must be 0 without a latent: the keys themselves are rotated"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            kv_cache_numbers(1, **options)
