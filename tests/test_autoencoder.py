"""Autoencoders against loops and PyTorch's own L-BFGS; tests/contracts compare them with PCA."""

import copy
import math

import numpy as np
import pytest
import torch

from lowrank_tutor.autoencoder import Autoencoder

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # two are slower on small matrices


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def network(d, k, hidden=None, seed=0, dtype=torch.float64, **options):
    return Autoencoder(d, k, hidden, generator=seeded(seed), dtype=dtype, **options)


def points(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=seeded(seed), dtype=dtype)


def helix(n, seed, noise=0.05):
    """Draw points along a bent line, with the same noise in every coordinate."""
    t = 2 * torch.rand(n, generator=seeded(seed), dtype=torch.float64) - 1
    x = torch.stack((torch.cos(math.pi * t), torch.sin(math.pi * t), t), dim=1)
    return x + noise * points(*x.shape, seed=seed + 1000)


def by_hand(model, x):
    """Encode and decode the points with NumPy, from the state alone."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}

    def side(name, z):
        if f"{name}.weight" in state:
            return z @ state[f"{name}.weight"].T
        bent = np.tanh(z @ state[f"{name}.0.weight"].T + state[f"{name}.0.bias"])
        return bent @ state[f"{name}.2.weight"].T + state[f"{name}.2.bias"]

    codes = side("encoder", x.numpy() - state["mean"])
    return codes, side("decoder", codes) + state["mean"]


# What it computes


@pytest.mark.parametrize("hidden", [None, 2, 7])
def test_numpy_agrees(hidden):
    model, x = network(5, 2, hidden), points(6, 5)
    with torch.no_grad():  # draw what starts at zero too, so that leaving it out shows
        for i, value in enumerate([model.mean, *model.parameters()]):
            value.copy_(points(*value.shape, seed=i + 1))
        codes, back = by_hand(model, x)
        assert codes.shape == (6, 2)
        for found, judge in (
            (model.encode(x), codes),
            (model(x), back),
            (model.decode(torch.tensor(codes)), back),
            (torch.cat([model(x[i : i + 1]) for i in range(6)]), back),
        ):
            np.testing.assert_allclose(found, judge, atol=1e-13)
        assert model(x[:0]).shape == (0, 5)


@pytest.mark.parametrize("hidden", [None, 300])
def test_mirrored_start(hidden):
    model = network(400, 200, hidden)
    state = model.state_dict()
    names = [("encoder.weight", "decoder.weight")]
    if hidden:
        names = [("encoder.0.weight", "decoder.2.weight"), ("encoder.2.weight", "decoder.0.weight")]
        assert all(
            state[f"{side}.{i}.bias"].count_nonzero() == 0
            for side in ("encoder", "decoder")
            for i in (0, 2)
        )
    for there, back in names:
        assert torch.equal(state[there].T, state[back])
        assert state[there].data_ptr() != state[back].data_ptr()
        assert abs(state[there].std() * math.sqrt(state[there].shape[1]) - 1) < 0.02


# Training


@pytest.mark.parametrize("hidden", [None, 4])
def test_losses_are_measured(hidden):
    x = helix(80, 0)
    model = network(3, 1, hidden)
    before = copy.deepcopy(model)
    before.mean.copy_(x.mean(dim=0))
    losses = model.fit(x, steps=25)
    assert (losses.shape, losses.dtype, losses.requires_grad) == ((26,), torch.float64, False)
    for network_then, loss in ((before, losses[0]), (model, losses[-1])):
        _, back = by_hand(network_then, x)
        np.testing.assert_allclose(loss, np.square(back - x.numpy()).sum() / 80, rtol=1e-12)
    assert (losses.diff() <= 1e-15).all()
    again = model.fit(x, steps=5)  # goes on from there
    assert again[0] == losses[-1]
    assert again[-1] < again[0] or hidden is None  # which has arrived
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("hidden", [None, 4])
def test_steps_are_lbfgs_iterations(hidden):
    """Compare with five iterations in a single call of the optimizer."""
    x = helix(80, 0)
    one, other = network(3, 1, hidden), network(3, 1, hidden)
    one.fit(x, steps=5)
    other.mean.copy_(x.mean(dim=0))
    optimizer = torch.optim.LBFGS(
        other.parameters(), max_iter=5, max_eval=1000, line_search_fn="strong_wolfe"
    )

    def share():
        optimizer.zero_grad()
        loss = (other(x) - x).square().sum() / (x - other.mean).square().sum()
        loss.backward()
        return loss

    optimizer.step(share)
    for mine, judged in zip(one.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), judged.detach(), rtol=1e-9, atol=1e-12)


def test_fit_is_deterministic():
    x = points(30, 4).requires_grad_()
    state = torch.random.get_rng_state()
    one, two = network(4, 2, 3), network(4, 2, 3)
    with torch.no_grad():
        losses = one.fit(x, steps=20)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(losses, two.fit(x, steps=20))
    assert torch.equal(one(x), two(x))
    assert x.grad is None
