"""Counts of stored numbers and of multiplications, against published counts and products that are
made.
"""

import re

import pytest

from lowrank_tutor.caches import LatentCost, kv_cache_numbers, latent_cost


@pytest.mark.parametrize(
    ("config", "numbers"),
    [
        ({"layers": 32, "heads": 32, "width": 128}, 262_144),  # Llama-2-7B
        ({"layers": 95, "groups": 8, "width": 128}, 194_560),  # DeepSeek-67B
        (
            {"layers": 60, "latent": 512, "rotary": 64},
            34_560,
        ),  # DeepSeek-V2: its Table 9 gives 34.6K
        ({"layers": 61, "latent": 512, "rotary": 64, "index": 128}, 42_944),  # DeepSeek-V3.2
        ({"layers": 2, "groups": 1, "width": 4, "index": 3}, 22),
        ({"layers": 2, "groups": 1, "width": 4, "heads": 8}, 16),  # as read_config returns it
    ],
)
def test_counts_by_hand(config, numbers):
    assert kv_cache_numbers(**config) == numbers


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
        (
            {"groups": 2, "latent": 3},
            "heads, groups or latent must be given, one of the three, got groups, latent",
        ),
        (
            {"latent": 3, "width": 4},
            "width must be None with a latent, which stands for keys and values, got 4",
        ),
        (
            {"groups": 2, "width": 4, "rotary": 1},
            "rotary must be 0 without a latent: the keys themselves are rotated",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            kv_cache_numbers(1, **options)
