"""Caches and adapters: the chapter's figures, its small adapter, and PyTorch's own hook."""

import math
from unittest import mock

import numpy as np
import pytest
import torch
from chapters import CHAPTERS
from torch import distributed, nn

from lowrank_tutor.caches import LoraLinear, power_step

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("08-")]


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def two_spectra(chapter, *, decay, k):
    """Cut by eigenvectors, not by an SVD."""
    weights, inputs = chapter["TABLE"], np.diag(np.arange(1, 33) ** -float(decay))

    def cut(table):
        axes = np.linalg.eigh(table.T @ table)[1][:, -k:]
        return table @ axes @ axes.T

    outputs = inputs @ weights
    return {"plain": off(inputs @ cut(weights), outputs), "weighted": off(cut(outputs), outputs)}


def equal_steps(chapter, *, optimizer, factor, tokens):
    """The update has the factor, and for descent so has its gradient."""
    unscaled = chapter["moved"][int(optimizer == "Adam"), chapter["BATCHES"].index(tokens)].tolist()
    steps = []
    for r, step in zip((1, 2, 4, 8, 16, 32, 64, 128), unscaled, strict=True):
        alpha_r = 1 / (math.sqrt(r) if "√" in factor else r)
        steps.append(step * (alpha_r if optimizer == "Adam" else alpha_r * alpha_r))
    return {"ratio": max(steps) / min(steps)}


def muon(_chapter, *, rounds):
    """Multiply a matrix with these singular values, and decompose the result."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 10)))[0] for size in (12, 10))
    g = left @ np.diag([math.sqrt(0.75) * 0.5**i for i in range(10)]) @ right.T
    for _ in range(rounds):
        square = g @ g.T
        g = 3.4445 * g - 4.7750 * square @ g + 2.0315 * square @ square @ g
    s = np.linalg.svd(g, compute_uv=False)
    return {"ratio": s[0] / s[-1]}


EXPLORERS = {"two-spectra": two_spectra, "equal-steps": equal_steps, "muon": muon}


@pytest.mark.parametrize(("r", "batch"), [(1, 1), (8, 64), (128, 8)])
def test_first_steps(chapter, r, batch):
    """The steps that the figure scales are those of PyTorch's optimizers on the package's layer."""
    squares = []
    for tokens, errors, a in chapter["draws"][:4]:
        x, row = tokens[:batch], []
        for optimizer in (torch.optim.SGD, torch.optim.Adam):
            layer = LoraLinear(nn.Linear(128, 128, bias=False, dtype=torch.float64), r)  # alpha is r: the factor is 1
            layer.a.data.copy_(a[:r])
            (layer(x) * errors[:batch]).sum().backward()
            optimizer([layer.b], lr=0.01).step()
            row.append(float((x @ layer.update().T / 0.01).detach().square().mean()))
        squares.append(row)
    with mock.patch.dict(chapter["first_steps"].__globals__, draws=chapter["draws"][:4]):
        steps = chapter["first_steps"](r, batch)
    assert steps.tolist() == pytest.approx(np.sqrt(np.mean(squares, axis=0)), rel=1e-5)


def test_scores_by_both_moments(chapter):
    """The least error of each kind, by NumPy's SVD of the turned table."""
    a, b, w = (chapter[name].numpy() for name in ("MOMENT", "QUERY_MOMENT", "W_K"))
    root_a, root_b = np.sqrt(a), np.linalg.cholesky(b)

    def cut(m):
        u, s, vt = np.linalg.svd(m, full_matrices=False)
        return (u[:, :8] * s[:8]) @ vt[:8]

    def error(m):
        return off(root_a @ m @ root_b, root_a @ w @ root_b)

    for_keys = np.linalg.solve(root_a, cut(root_a @ w))
    for_scores = np.linalg.solve(root_a, cut(root_a @ w @ root_b)) @ np.linalg.inv(root_b)
    assert chapter["of_scores"] == pytest.approx([error(m) for m in (cut(w), for_keys, for_scores)], rel=1e-6)


def test_shrunken_adapter(chapter):
    """The small adapter is the best approximation of the product, by NumPy's SVD of all of it."""
    b, a, keep = chapter["B"].numpy(), chapter["A"].numpy(), chapter["keep"]
    u, s, vt = np.linalg.svd(b @ a, full_matrices=False)
    best = (u[:, :keep] * s[:keep]) @ vt[:keep]
    found = (chapter["small_B"] @ chapter["small_A"]).numpy()
    np.testing.assert_allclose(found, best, atol=1e-10 * s[0])
    assert off(best, b @ a) <= 0.05 < math.sqrt((s[keep - 1 :] ** 2).sum() / (s**2).sum())


@pytest.fixture
def alone(tmp_path):
    """A group of one process, in which the hook does what it does among many."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_pytorch_hook_steps(alone):
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    torch.manual_seed(0)
    layer = nn.Linear(24, 16, bias=False)
    model = nn.parallel.DistributedDataParallel(layer)
    state = power.PowerSGDState(None, matrix_approximation_rank=3, start_powerSGD_iter=2)
    assert power.PowerSGDState(None).start_powerSGD_iter == 1000
    model.register_comm_hook(state, power.powerSGD_hook)
    for step in range(6):
        x = torch.randn(40, 24)
        raw = torch.autograd.grad((x @ layer.weight.T).square().mean(), layer.weight)[0]
        owed = next(iter(state.error_dict.values())).view(16, 24).clone() if state.error_dict else 0
        guess = next(iter(state.q_memory_dict.values())).view(24, 3).clone() if state.q_memory_dict else None
        model.zero_grad()
        model(x).square().mean().backward()
        if guess is None or step < 3:  # the first guess is drawn inside
            continue
        p, q = power_step(raw + owed, guess)
        torch.testing.assert_close(layer.weight.grad, p @ q.T, rtol=1e-4, atol=1e-6)
