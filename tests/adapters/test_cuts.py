"""Cuts of layers and reports of models, against NumPy's spectra of weights and of outputs."""

import numpy as np
import pytest
import torch
from attentions import linear_of, tensors
from torch import nn

from lowrank_tutor.adapters import compress, input_moments, rank_report


def uneven(n, rows=(2, 20)):
    """Inputs whose coordinates shrink, with a mean far from zero."""
    (x,) = tensors((*rows, n), seed=5)
    return (x + 1) / torch.arange(1.0, n + 1) ** 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_pair_of_layers(dtype):
    """Two plain layers in the state of the first, which stays as it was."""
    linear, x = linear_of(6, 9, dtype=dtype).eval(), uneven(9).to(dtype)
    linear.weight.requires_grad_(False)
    before, random = linear.weight.clone(), torch.get_rng_state()
    for moment in (None, torch.eye(9, dtype=dtype)):
        down, up = both = compress(linear, 6, moment=moment)
        assert (down.weight.shape, up.weight.shape) == ((6, 9), (6, 6))
        assert {part.dtype for part in both.parameters()} == {dtype}
        learning = [part.requires_grad for part in (down.weight, up.weight, up.bias)]
        assert (both.training, learning) == (False, [False, False, True])
        assert torch.equal(up.bias, linear.bias)
        assert up.bias is not linear.bias
        error = 20 * torch.finfo(dtype).eps
        torch.testing.assert_close(both(x), linear(x), rtol=error, atol=error)
    assert torch.equal(linear.weight, before)
    assert torch.equal(torch.get_rng_state(), random)


class Twice(nn.Module):
    """A layer that is called by keyword, one in a box, and one that is never called."""

    def __init__(self):
        super().__init__()
        self.first, self.box = nn.Linear(4, 5), nn.ModuleList([nn.Linear(5, 3)])
        self.idle = nn.Linear(2, 2)

    def forward(self, x):
        return self.box[0](torch.relu(self.first(input=x)))


@pytest.mark.parametrize(
    ("names", "met"),
    [
        (None, {"first", "box.0"}),
        ("0", {"box.0"}),
        (["idle", "box.*"], {"box.0"}),
        ("f*t", {"first"}),
    ],
)
def test_moments_of_inputs(names, met):
    model, x = Twice().double(), uneven(4, (3, 7))
    with input_moments(model, names) as moments:
        for part in (x[:2], x[2, :0], x[2, 0], x[2, 1:]):  # also no row, and a single one
            model(part)
    model(100 * x)  # is not counted
    seen = {"first": x, "box.0": torch.relu(model.first(x)).detach()}
    assert set(moments) == met
    for name in met:
        rows = seen[name].reshape(-1, seen[name].shape[-1]).numpy()
        np.testing.assert_allclose(moments[name], rows.T @ rows / len(rows), rtol=1e-12)
    assert not any(part._forward_pre_hooks for part in model.modules())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_moments_in_half_precision(dtype):
    model, x = nn.Sequential(nn.Linear(4, 3)).bfloat16(), uneven(4).bfloat16()
    with input_moments(model, dtype=dtype) as moments:
        model(x)
    rows = x.double().reshape(-1, 4)
    torch.testing.assert_close(moments["0"], (rows.T @ rows / len(rows)).to(dtype))


def test_report_leaves_out_what_is_thin():
    model = nn.Sequential(nn.BatchNorm2d(8), nn.Linear(12, 6), nn.Linear(4, 1), nn.Embedding(9, 2))
    extra = {"extra": "words", "counts": torch.ones(4, 4).long(), "mask": torch.ones(1, 1, 4, 4)}
    report = rank_report(model)
    assert rank_report(model.state_dict() | extra) == report
    assert report["name"] == ["1.weight", "3.weight"]
    assert report["shape"] == ["(6, 12)", "(9, 2)"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_report_above_noise(dtype):
    """Of sheets in noise those that the law lets rise above it, of a weight of low rank all, and of
    zeros none.
    """
    rng = np.random.default_rng(3)
    sheets = [np.linalg.qr(rng.standard_normal((size, 4)))[0] for size in (200, 300)]
    noise = rng.standard_normal((200, 300)) / np.sqrt(300)
    low = (sheets[0] * [1, 0.5, 0.2, 0.1]) @ sheets[1].T
    planted = (
        noise + (sheets[0] * [3, 2, 1.6, 0.5]) @ sheets[1].T
    )  # visible from (200 / 300) ** 0.25 = 0.9 on
    weights = {
        "planted": planted,
        "turned": 1e-3 * planted.T,
        "noise": noise,
        "low": low,
        "zero": 0 * low,
    }
    report = rank_report({name: torch.tensor(w) for name, w in weights.items()}, dtype=dtype)
    assert dict(zip(report["name"], report["above noise"], strict=True)) == {
        "planted": 3, "turned": 3, "noise": 0, "low": 4, "zero": 0,
    }  # fmt: skip
