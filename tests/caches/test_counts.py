"""Numbers that are kept, against published configurations."""

import re

import pytest

from lowrank_tutor.caches import kv_cache_numbers

PUBLISHED = [
    ({"layers": 32, "heads": 32, "width": 128}, 262_144),  # Llama-2-7B
    ({"layers": 80, "groups": 8, "width": 128}, 163_840),  # Llama-2-70B
    ({"layers": 95, "groups": 8, "width": 128}, 194_560),  # DeepSeek-67B
    ({"layers": 60, "latent": 512, "rotary": 64}, 34_560),  # DeepSeek-V2: its Table 9 gives 34.6K
    ({"layers": 61, "latent": 512, "rotary": 64}, 35_136),  # DeepSeek-V3
    ({"layers": 36, "latent": 256, "rotary": 64}, 11_520),
    ({"layers": 1, "latent": 1}, 1),
    ({"layers": 1, "heads": 1, "width": 1}, 2),
]


@pytest.mark.parametrize(("config", "numbers"), PUBLISHED)
def test_the_cache_is_that_of_published_configurations(config, numbers):
    assert kv_cache_numbers(**config) == numbers


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "heads, groups or latent must be given, one of the three, got none"),
        ({"heads": 2, "latent": 3}, "heads, groups or latent must be given, one of the three, got heads, latent"),
        ({"latent": 3, "width": 4}, "width must be None with a latent, which stands for keys and values, got 4"),
        ({"groups": 2, "width": 4, "rotary": 1},
         "rotary must be 0 without a latent: the keys themselves are rotated, got 1"),
        ({"heads": 0, "width": 4}, "heads must be at least 1, got 0"),
        ({"heads": 1, "width": 0}, "width must be at least 1, got 0"),
        ({"latent": 1, "rotary": -1}, "rotary must be at least 0, got -1"),
        ({"layers": 0, "latent": 1}, "layers must be at least 1, got 0"),
    ],
)  # fmt: skip
def test_a_cache_that_cannot_be_meant_is_refused(config, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        kv_cache_numbers(**({"layers": 1} | config))


def test_a_width_is_needed_with_heads_and_numbers_are_whole():
    with pytest.raises(TypeError, match=r"^width must be an integer, got None$"):
        kv_cache_numbers(1, heads=2)
    with pytest.raises(TypeError, match=r"^latent must be an integer, got 2\.0$"):
        kv_cache_numbers(1, latent=2.0)
