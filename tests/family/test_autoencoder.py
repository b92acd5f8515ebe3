"""The linear autoencoder finds the plane of PCA, the bent one follows curves, and each against loops and NumPy."""

import copy
import math
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import with_spectrum
from sklearn.datasets import load_digits

from lowrank_tutor import family
from lowrank_tutor.family import Autoencoder
from lowrank_tutor.pca import PCA


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Small matrices are slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def network(d, k, hidden=None, seed=0, dtype=torch.float64, **options):
    return Autoencoder(d, k, hidden, generator=seeded(seed), dtype=dtype, **options)


def points(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=seeded(seed), dtype=dtype)


def digits(dtype=torch.float64):
    return torch.tensor(load_digits().data / 16, dtype=dtype)


def curve(kind, n, seed, noise=0.05):
    """Points along a bent line, or a cloud that is not bent, with the same noise in every coordinate."""
    t = 2 * torch.rand(n, generator=seeded(seed), dtype=torch.float64) - 1
    line = {
        "parabola": (t, t**2),
        "arc": (torch.cos(2 * t), torch.sin(2 * t)),
        "helix": (torch.cos(math.pi * t), torch.sin(math.pi * t), t),
    }[kind]
    x = torch.stack(line, dim=1)
    return x + noise * points(*x.shape, seed=seed + 1000)


def cloud(n, seed):
    return points(n, 5, seed=seed) * torch.tensor([2.0, 1.0, 0.7, 0.5, 0.3], dtype=torch.float64) + 1


def mean_square(model, x):
    with torch.no_grad():
        return (model(x) - x).square().sum(dim=1).mean().item()


def pca_mean_square(train, test, k):
    """The same for PCA, in NumPy."""
    pca = PCA(k).fit(train.numpy())
    rest = test.numpy() - pca.inverse_transform(pca.transform(test.numpy()))
    return np.square(rest).sum(axis=1).mean()


def principal(x):
    """The variances along the principal axes, divisor n, largest first, and the axes, one a column."""
    centered = x.double().numpy() - x.double().numpy().mean(axis=0)
    variances, axes = np.linalg.eigh(centered.T @ centered / len(x))
    return variances[::-1], axes[:, ::-1]


def left_out(x, k):
    """The variances that PCA leaves out, added up."""
    return principal(x)[0][k:].sum()


def angle(columns, x, k):
    """The largest principal angle to the plane of PCA, in degrees, by way of its sine."""
    axes = principal(x)[1][:, :k]
    q = np.linalg.qr(columns.detach().double().numpy())[0]
    return math.degrees(math.asin(min(1, np.linalg.norm(q - axes @ (axes.T @ q), 2))))


def by_loops(model, x):
    """Codes and points, one at a time, from the state alone."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    mean, codes, back = state["mean"], [], []
    for point in x.numpy():
        z = point - mean
        for side, out in (("encoder", codes), ("decoder", back)):
            if f"{side}.weight" in state:
                z = np.array([sum(row * z) for row in state[f"{side}.weight"]])
            else:
                first = np.array([sum(row * z) for row in state[f"{side}.0.weight"]])
                bent = np.array([math.tanh(number) for number in first + state[f"{side}.0.bias"]])
                second = np.array([sum(row * bent) for row in state[f"{side}.2.weight"]])
                z = second + state[f"{side}.2.bias"]
            out.append(z if side == "encoder" else mean + z)
    return np.array(codes), np.array(back)


# What it computes


@pytest.mark.parametrize("hidden", [None, 2, 7])
def test_a_network_is_its_loops(hidden):
    model, x = network(5, 2, hidden), points(6, 5)
    with torch.no_grad():  # all that starts at zero is drawn, so that leaving it out is seen
        for i, value in enumerate([model.mean, *model.parameters()]):
            value.copy_(points(*value.shape, seed=i + 1))
    codes, back = by_loops(model, x)
    assert codes.shape == (6, 2)
    np.testing.assert_allclose(model.encode(x).detach(), codes, atol=1e-13)
    np.testing.assert_allclose(model(x).detach(), back, atol=1e-13)
    np.testing.assert_allclose(model.decode(torch.tensor(codes)).detach(), back, atol=1e-13)
    one_by_one = torch.cat([model(x[i : i + 1]) for i in range(6)])
    np.testing.assert_allclose(model(x).detach(), one_by_one.detach(), atol=1e-14)
    assert model(x[:0]).shape == (0, 5)


def test_a_projection_by_hand():
    model = network(2, 1)
    model.load_state_dict(
        {
            "mean": torch.tensor([1.0, 1.0]),
            "encoder.weight": torch.tensor([[1.0, 2.0]]),
            "decoder.weight": torch.tensor([[2.0], [3.0]]),
        }
    )
    assert model.encode(torch.tensor([[4.0, 0.0]], dtype=torch.float64)).tolist() == [[1.0]]
    assert model(torch.tensor([[4.0, 0.0]], dtype=torch.float64)).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize("hidden", [None, 300])
def test_the_decoder_starts_as_the_mirror_image_of_the_encoder_and_shares_nothing_with_it(hidden):
    model = network(400, 200, hidden)
    state = model.state_dict()
    names = [("encoder.weight", "decoder.weight")]
    if hidden:
        names = [("encoder.0.weight", "decoder.2.weight"), ("encoder.2.weight", "decoder.0.weight")]
        assert all(state[f"{side}.{i}.bias"].count_nonzero() == 0 for side in ("encoder", "decoder") for i in (0, 2))
    for there, back in names:
        assert torch.equal(state[there].T, state[back])
        assert state[back].is_contiguous()
        assert state[there].data_ptr() != state[back].data_ptr()
        assert abs(state[there].std() * math.sqrt(state[there].shape[1]) - 1) < 0.02
    assert torch.equal(model.mean, torch.zeros(400, dtype=torch.float64))


def test_of_one_number_too_nothing_is_shared():
    model = network(3, 1, 1)
    pointers = [parameter.data_ptr() for parameter in model.parameters()]
    assert len(set(pointers)) == len(pointers)
    model = network(3, 1)
    with torch.no_grad():
        model.encoder.weight.zero_()
    assert model.decoder.weight.count_nonzero() == 3


def test_how_many_numbers_are_learned():
    assert sum(parameter.numel() for parameter in network(64, 5).parameters()) == 2 * 64 * 5
    bent = sum(parameter.numel() for parameter in network(64, 5, 32).parameters())
    assert bent == 2 * (64 * 32 + 32 * 5) + 32 + 5 + 32 + 64


# Training


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_the_linear_one_finds_the_plane_of_pca_in_digits(k, dtype):
    x = digits(dtype)
    model = network(64, k, dtype=dtype, seed=k)
    losses = model.fit(x, steps=100)
    assert angle(model.decoder.weight, x, k) < 1
    assert left_out(x, k) * (1 - 1e-5) < losses[-1] < left_out(x, k) * (1 + 1e-3)
    np.testing.assert_allclose(model.mean, x.mean(dim=0), rtol=1e-6)
    pca = PCA(k).fit(x.numpy())
    np.testing.assert_allclose(model(x).detach(), pca.inverse_transform(pca.transform(x.numpy())), atol=0.05)


@settings(max_examples=20)
@given(st.integers(2, 8), st.data())
def test_the_linear_one_finds_the_plane_of_pca_in_any_cloud(d, data):
    k = data.draw(st.integers(1, d))
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    spectrum = np.concatenate([rng.uniform(2, 4, k), rng.uniform(0, 1, d - k)])
    x = with_spectrum(np.sort(spectrum)[::-1], 3 * d, d, seed=seed)
    x = torch.tensor(x - x.mean(axis=0) + rng.uniform(-10, 10, d))
    model = network(d, k, seed=seed)
    loss = model.fit(x, steps=80)[-1].item()
    spread = left_out(x, 0)
    assert left_out(x, k) - 1e-9 * spread < loss < left_out(x, k) + 1e-4 * spread
    assert angle(model.decoder.weight, x, k) < 1


def test_it_finds_the_plane_but_not_the_axes_in_it():
    x = cloud(500, 0)
    axes = PCA(2).fit(x.numpy()).components_
    model, other = network(5, 2, seed=0), network(5, 2, seed=1)
    model.fit(x)
    other.fit(x)
    cosines = axes @ np.linalg.qr(model.decoder.weight.detach().numpy())[0]
    np.testing.assert_allclose(cosines @ cosines.T, np.eye(2), atol=1e-5)  # one plane
    unit = model.decoder.weight.detach() / model.decoder.weight.detach().norm(dim=0)
    assert np.abs(axes @ unit.numpy()).max() < 0.99  # no column is an axis
    assert abs(np.corrcoef(model.encode(x).detach().numpy().T)[0, 1]) > 0.1  # PCA's coordinates are uncorrelated
    assert (model.decoder.weight - other.decoder.weight).abs().max() > 0.1
    np.testing.assert_allclose(model(x).detach(), other(x).detach(), atol=1e-2)


def test_it_projects_at_a_right_angle_where_the_points_spread_and_knows_nothing_elsewhere():
    x = cloud(500, 0)
    model = network(5, 2)
    model.fit(x)
    axes = PCA(2).fit(x.numpy()).components_
    np.testing.assert_allclose((model.decoder.weight @ model.encoder.weight).detach(), axes.T @ axes, atol=0.01)
    x[:, 4] = 7  # no spread along the last coordinate
    model = network(5, 2)
    start = model.encoder.weight.detach().clone()
    model.fit(x)
    np.testing.assert_allclose(model.encoder.weight.detach()[:, 4], start[:, 4], atol=1e-12)
    np.testing.assert_allclose(model.decoder.weight.detach()[4], 0, atol=1e-3)
    assert (model.encoder.weight - start)[:, :4].abs().max() > 0.1


def test_an_invertible_mixture_of_the_codes_changes_nothing():
    x = cloud(50, 0)
    model = network(5, 2)
    model.fit(x, steps=20)
    before, codes = model(x).detach(), model.encode(x).detach()
    mix = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    with torch.no_grad():
        model.encoder.weight.copy_(torch.linalg.solve(mix, model.encoder.weight))
        model.decoder.weight.copy_(model.decoder.weight @ mix)
    np.testing.assert_allclose(model(x).detach(), before, atol=1e-12)
    assert (model.encode(x) - codes).abs().max() > 0.1


@pytest.mark.parametrize("hidden", [None, 6])
def test_where_nothing_must_be_left_out_nothing_is(hidden):
    x = cloud(60, 0)
    assert network(5, 5, hidden).fit(x)[-1] < 2e-3 * left_out(x, 0)
    flat = points(60, 2) @ points(2, 5, seed=1) + 3
    model = network(5, 2)
    assert model.fit(flat)[-1] < 1e-9 * left_out(flat, 0)
    np.testing.assert_allclose(model(flat).detach(), flat, atol=1e-3)


def test_the_mean_is_needed():
    """The best plane through the origin is another one."""
    x = cloud(500, 0) + 5
    model = network(5, 1)
    model.fit(x)
    assert angle(model.decoder.weight, x, 1) < 1
    through_origin = torch.linalg.svd(x, full_matrices=False)[2][:1].T
    assert angle(through_origin, x, 1) > 30


@pytest.mark.parametrize("power", [-60, -10, 10, 60])
def test_the_linear_one_finds_the_same_in_every_unit(power):
    x = cloud(60, 0)
    one, other = network(5, 2), network(5, 2)
    losses = one.fit(x, steps=30)
    assert torch.equal(other.fit(x * 2.0**power, steps=30), losses * 4.0**power)
    assert torch.equal(one.decoder.weight, other.decoder.weight)


@pytest.mark.parametrize("hidden", [None, 4])
def test_the_losses_are_what_they_are_called(hidden):
    x = curve("helix", 80, 0)
    model = network(3, 1, hidden)
    before = copy.deepcopy(model)
    before.mean.copy_(x.mean(dim=0))
    losses = model.fit(x, steps=25)
    assert losses.shape == (26,)
    assert losses.dtype == torch.float64
    assert not losses.requires_grad
    for network_then, loss in ((before, losses[0]), (model, losses[-1])):
        _, back = by_loops(network_then, x)
        np.testing.assert_allclose(loss, np.square(back - x.numpy()).sum() / 80, rtol=1e-12)
    assert (losses.diff() <= 1e-15).all()
    assert (losses.diff()[:6] < 0).all()
    again = model.fit(x, steps=5)  # goes on from there
    assert again[0] == losses[-1]
    assert again[-1] < again[0] or hidden is None  # which has arrived
    assert model.fit(x, steps=0).tolist() == [again[-1].item()]
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("hidden", [None, 4])
def test_a_step_is_one_iteration_of_the_whole_descent(hidden):
    """The same five iterations in a single call of the optimizer, which stops nowhere in between."""
    x = curve("helix", 80, 0)
    one, other = network(3, 1, hidden), network(3, 1, hidden)
    one.fit(x, steps=5)
    other.mean.copy_(x.mean(dim=0))
    optimizer = torch.optim.LBFGS(other.parameters(), max_iter=5, max_eval=1000, line_search_fn="strong_wolfe")

    def share():
        optimizer.zero_grad()
        loss = (other(x) - x).square().sum() / (x - other.mean).square().sum()
        loss.backward()
        return loss

    optimizer.step(share)
    for mine, judged in zip(one.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach(), judged.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("hidden", [None, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_never_rises(hidden, dtype):
    losses = network(3, 1, hidden, dtype=dtype).fit(curve("helix", 100, 0).to(dtype), steps=150)
    assert losses.dtype == dtype
    assert (losses.diff() <= 1e-6 * losses[1:]).all()


def test_points_that_coincide_are_given_back():
    x = torch.tensor([[1.0, 2.0, 3.0]]).expand(4, 3)
    for hidden in (None, 3):
        model = network(3, 2, hidden, dtype=torch.float32)
        assert model.fit(x, steps=20).tolist() == [0.0] * 21
        assert torch.equal(model(x), x)
    alone = network(3, 2)
    assert alone.fit(points(1, 3)).shape == (201,)


def test_fit_draws_nothing_and_changes_nothing_else():
    x = points(30, 4).requires_grad_()
    kept = x.detach().clone()
    state = torch.random.get_rng_state()
    one, two = network(4, 2, 3), network(4, 2, 3)
    assert torch.equal(torch.random.get_rng_state(), state)
    with torch.no_grad():
        losses = one.fit(x, steps=20)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(losses, two.fit(x, steps=20))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert x.grad is None
    assert torch.equal(x, kept)
    assert losses[-1] < losses[0]


def test_without_a_generator_the_global_one_draws():
    one, two = Autoencoder(4, 2), Autoencoder(4, 2)
    assert one.encoder.weight.dtype == one.mean.dtype == torch.float32
    assert not torch.equal(one.encoder.weight, two.encoder.weight)
    torch_state = torch.random.get_rng_state()
    three = Autoencoder(4, 2)
    torch.random.set_rng_state(torch_state)
    assert torch.equal(Autoencoder(4, 2).encoder.weight, three.encoder.weight)


# Where bending pays, and where it does not


@pytest.mark.parametrize(("kind", "floor"), [("parabola", 0.0025), ("arc", 0.0025), ("helix", 0.005)])
def test_on_a_curve_the_bent_one_beats_pca_by_far(kind, floor):
    """What is left is the noise across the curve: its variance of 0.0025 in each direction but one."""
    train, test = curve(kind, 400, 0), curve(kind, 2000, 1)
    model = network(train.shape[1], 1, 16)
    model.fit(train, steps=300)
    straight = pca_mean_square(train, test, 1)
    assert straight > 20 * floor
    assert mean_square(model, test) < straight / 15
    assert 0.9 * floor < mean_square(model, test) < 1.2 * floor
    linear = network(train.shape[1], 1)
    linear.fit(train)
    np.testing.assert_allclose(mean_square(linear, test), straight, rtol=1e-3)


@pytest.mark.parametrize("seed", [0, 1])
def test_on_a_cloud_that_is_not_bent_the_bent_one_gains_nothing(seed):
    train, test = cloud(400, 10 * seed), cloud(4000, 10 * seed + 1)
    model = network(5, 1, 8, seed=seed)
    learned = model.fit(train)[-1]
    straight = pca_mean_square(train, test, 1)
    assert straight < mean_square(model, test) < 1.05 * straight
    assert 0.95 * left_out(train, 1) < learned


def test_of_few_digits_the_bent_one_learns_the_noise():
    x = digits()
    order = np.random.default_rng(0).permutation(len(x))
    train, test = x[order[:50]], x[order[1000:]]
    model = network(64, 2, 32)
    learned = model.fit(train)[-1]
    assert learned < left_out(train, 2) / 1.5
    assert mean_square(model, test) > 1.2 * pca_mean_square(train, test, 2)


def test_of_many_digits_it_learns_what_holds_for_others():
    x = digits(torch.float32)
    order = np.random.default_rng(0).permutation(len(x))
    train, test = x[order[:1200]], x[order[1200:]]
    model = network(64, 2, 32, dtype=torch.float32)
    learned = model.fit(train)[-1]
    assert learned < mean_square(model, test) < 0.85 * pca_mean_square(train, test, 2)


# As a module


@pytest.mark.parametrize("hidden", [None, 4])
def test_the_state_survives_a_round_trip_and_a_copy_and_a_pickle(hidden):
    model, x = network(5, 2, hidden), points(9, 5)
    model.fit(x, steps=5)
    names = ["mean", "encoder.weight", "decoder.weight"]
    if hidden:
        names = [
            "mean",
            *(f"{s}.{i}.{part}" for s in ("encoder", "decoder") for i in (0, 2) for part in ("weight", "bias")),
        ]
    assert list(model.state_dict()) == names
    other = Autoencoder(5, 2, hidden, dtype=torch.float64)
    other.load_state_dict(model.state_dict())
    # A pickle made before the class had a file of its own names the room.
    old = pickle.dumps(model, protocol=2).replace(b"lowrank_tutor.family.autoencoder\n", b"lowrank_tutor.family\n")
    assert b"family.autoencoder" not in old
    for same in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), pickle.loads(old)):
        assert torch.equal(same(x), model(x))
        assert type(same) is Autoencoder
    assert (model.d, model.k, model.hidden) == (5, 2, hidden)
    assert f"d=5, k=2, hidden={hidden}" in repr(model)


def test_it_can_be_made_without_memory():
    for hidden in (None, 4):
        model = Autoencoder(5, 2, hidden, device="meta")
        assert {value.device.type for value in model.state_dict().values()} == {"meta"}
        assert model(torch.empty(3, 5, device="meta")).shape == (3, 5)
    with pytest.raises(ValueError, match=r"^x must be on the device of the autoencoder, meta, got cpu$"):
        model(torch.empty(3, 5))


def test_the_gradient_reaches_the_points():
    model, x = network(4, 2, 3), points(5, 4).requires_grad_()
    assert torch.autograd.gradcheck(model, (x,))


# Bad input


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 1), "d must be at least 1, got 0"),
        ((2, 0), "k must be between 1 and d = 2, got 0"),
        ((10**30, 1), f"d must be below 2**31, got {10**30}"),
        ((2, 3), "k must be between 1 and d = 2, got 3"),
        ((4, 3, 2), "hidden must be at least 3, got 2"),
    ],
)
def test_sizes_that_make_no_network_are_refused(sizes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Autoencoder(*sizes)


def test_the_bounds_themselves_are_allowed():
    assert network(1, 1)(points(3, 1)).shape == (3, 1)
    assert network(3, 3, 3)(points(3, 3)).shape == (3, 3)
    assert network(3, 2, 40).encode(points(3, 3)).shape == (3, 2)


def test_a_network_of_whole_numbers_is_refused():
    with pytest.raises(TypeError, match=r"^dtype must be a floating-point type, got torch\.int64$"):
        Autoencoder(2, 1, dtype=torch.int64)


X = points(6, 3)
TYPE = "must be of the type of the autoencoder, torch.float64, got"


@pytest.mark.parametrize(
    ("method", "argument", "error", "message"),
    [
        ("forward", X[0], ValueError, "x must have shape (n, 3), got shape (3,)"),
        ("forward", X.numpy(), TypeError, "x must be a tensor, got ndarray"),
        ("forward", X.float(), TypeError, f"x {TYPE} torch.float32"),
        ("encode", X[:, :2], ValueError, "x must have shape (n, 3), got shape (6, 2)"),
        ("decode", X, ValueError, "z must have shape (n, 2), got shape (6, 3)"),
        ("fit", X[:, :2], ValueError, "x must have shape (n, 3), got shape (6, 2)"),
        ("fit", X[:0], ValueError, "x must hold at least one point, got shape (0, 3)"),
        ("fit", X.where(X != X[2, 1], torch.nan), ValueError, "x must be finite, got nan"),
        (
            "fit",
            X * 1e200,
            ValueError,
            "x must be small enough for its squares to fit torch.float64, got a spread of inf",
        ),
    ],
)
def test_points_that_do_not_fit_are_refused(method, argument, error, message):
    model = network(3, 2)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        getattr(model, method)(argument)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_fewer_steps_than_none_are_refused():
    with pytest.raises(ValueError, match=r"^steps must be at least 0, got -1$"):
        network(3, 1).fit(X, steps=-1)


@pytest.mark.parametrize(("value", "shown"), [(math.nan, "nan"), (1e200, "inf")])
@pytest.mark.parametrize("steps", [0, 3])
def test_parameters_without_a_finite_loss_are_refused(value, shown, steps):
    model = network(3, 1)
    with torch.no_grad():
        model.decoder.weight.fill_(value)
    with pytest.raises(ValueError, match=f"^parameters must give a finite loss, got {shown} after 0 steps$"):
        model.fit(X, steps=steps)


# The room


def test_the_autoencoder_is_fetched_on_demand_and_the_rest_needs_no_torch():
    code = """
import sys
sys.modules["torch"] = None  # importing it fails
from lowrank_tutor import family
assert family.nmf([[1]], 1).error + family.factorize_ratings([[0]], [[True]], 1).estimates == 0
assert set(family.__all__) <= set(dir(family))
try:
    family.Autoencoder
except ImportError:
    sys.exit(23)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 23
    assert family.Autoencoder is Autoencoder
    with pytest.raises(AttributeError, match=r"^module 'lowrank_tutor\.family' has no attribute 'Nothing'$"):
        _ = family.Nothing
