"""What the layer hands to PyTorch."""

import pytest
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
