"""What the layer hands to PyTorch, and its compiler."""

import pytest
import torch
from torch.nn import functional


@pytest.fixture
def calls(monkeypatch):
    """What is handed to PyTorch's kernel: a list of (q, k, v, options), call by call."""
    kernel, seen = functional.scaled_dot_product_attention, []

    def spy(q, k, v, **options):
        seen.append((q.detach().clone(), k, v, options))
        return kernel(q, k, v, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", spy)
    return seen


@pytest.fixture
def compiler():
    torch.compiler.reset()
    yield lambda function, **options: torch.compile(function, fullgraph=True, **options)
    torch.compiler.reset()
