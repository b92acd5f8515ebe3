"""Draw chapter 8 again: the rank of rotated keys, and answers by way of an index."""

import numpy as np
import torch

from lowrank_tutor import storyteller
from lowrank_tutor.figures.budget import answers
from lowrank_tutor.rank import numerical_rank
from measure.training.storyteller_cuts import short_stories


def draw(seed: int) -> dict[str, float]:
    """Return the rank of 48 rotated keys, and the right answers if small keys choose 10 words."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    keys = normal(1, 48, 64) @ normal(64, 8) @ normal(4, 8, 16)
    plane = torch.view_as_complex(keys.unflatten(2, (8, 2)))
    angles = torch.arange(48.0)[:, None] / 100 ** (torch.arange(8) / 8)
    turned = torch.view_as_real(plane * torch.exp(1j * angles)).flatten(2)
    index = storyteller.index(10, np.random.default_rng(seed).standard_normal((4, 16)))
    return {
        "rank after rotation": numerical_rank(turned.transpose(0, 1).flatten(1).numpy()),
        "right by an index of 10 words": answers(None, short_stories(), index)["answered"],
    }
