"""Use Linformer in your model: the page's cells run in their order, and do what it says of them."""

import math

import pytest
import torch
from chapters import ROOT, run


@pytest.fixture(scope="module")
def page():
    ran = run(ROOT / "book" / "use-linformer.md")
    return ran.namespace | {"printed": ran.printed}


def test_training(page):
    """A hundred steps teach the task, which no token can know alone."""
    assert isinstance(page["models"]["exact"].encoder.layers[0].self_attn, torch.nn.MultiheadAttention)
    x, real, above = page["batch"](64, torch.Generator().manual_seed(1))
    for name, model in page["models"].items():
        with torch.no_grad():
            assert ((model(x, real) > 0) == above)[real].float().mean() > 0.95, name
    assert page["by_sign"] == pytest.approx(0.5 + math.asin(1 / math.sqrt(5)) / math.pi, abs=0.03)


def test_padding(page):
    assert page["n"] < 128, "the first sequence is padded, so the comparison means something"
    assert (page["alone"] - page["padded"]).abs().max() < 1e-4


def test_other_cells(page):
    assert "saved and loaded: largest difference 0.0\n" in page["printed"]
    assert page["mixed"].shape == (2, 10, 32)
    assert page["moved"] < 1e-5
    assert page["taken"].resized(80)(page["x50"]).shape == (2, 50, 32)
    assert "1 matrix for 6 layers" in page["printed"]
    assert "e" not in dict(page["fixed"].named_parameters())
    assert "x must hold between 1 and max_len = 256 tokens, got 300" in page["printed"]
    assert "causal must be False, got True" in page["printed"]
