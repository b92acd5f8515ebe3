"""Caches and adapters: what the chapter computes for its figures, and the models that it reads."""

import math
import re
import sys
import types
from unittest import mock

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, code_cells
from torch import distributed, nn

from lowrank_tutor.caches import LoraLinear, power_step

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("08-")]
(LOADER,) = [cell.source for cell in code_cells(CHAPTER) if "AutoTokenizer" in cell.source]


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


EXPLORERS = {}


@pytest.mark.parametrize(("r", "batch"), [(1, 1), (8, 64), (128, 8)])
def test_first_steps(chapter, r, batch):
    """The steps that the figure scales are those of PyTorch's optimizers on the package's layer."""
    squares = []
    for tokens, errors, a in chapter["draws"][:4]:
        x, row = tokens[:batch], []
        for optimizer in (torch.optim.SGD, torch.optim.Adam):
            layer = LoraLinear(nn.Linear(128, 128, bias=False, dtype=torch.float64), r)  # alpha is r, so s is 1
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


class KeysAndValues(nn.Module):
    """A layer with 3 groups of width 4, as `transformers` lays its weights out, which returns what it stores."""

    head_dim = 4

    def __init__(self):
        super().__init__()
        self.k_proj, self.v_proj = nn.Linear(16, 12, bias=False), nn.Linear(16, 12, bias=False)

    def forward(self, hidden_states):
        return torch.cat([self.k_proj(hidden_states), self.v_proj(hidden_states)], dim=2), None


def tail(table, k):
    s = np.linalg.svd(table, compute_uv=False)
    return math.sqrt((s[k:] ** 2).sum() / (s**2).sum())


def shares(printed):
    return [[int(share) for share in re.findall(r"(\d+)%", line)] for line in printed.splitlines()[1:]]


def test_report_of_a_model(chapter, capsys):
    """Where the output is keys and values themselves, the errors are tails of spectra that NumPy finds."""
    torch.manual_seed(0)
    layer, cuts = KeysAndValues(), (4, 12, 16)
    x = (torch.randn(1, 40, 16) @ torch.diag(torch.arange(1.0, 17) ** -1)).repeat(2, 1, 1)
    weights = [part.weight.detach().double().numpy() for part in (layer.k_proj, layer.v_proj)]
    both = np.concatenate([part / np.linalg.norm(part) for part in weights])
    moment, tokens = (x[0].T @ x[0]) / 40, x[0].double().numpy()
    found = [chapter["misses"](layer, {"hidden_states": x}, k, moment) for k in cuts]
    stored = [tokens @ part.T for part in weights]
    sizes = np.repeat([np.linalg.norm(part) for part in stored], 12)  # keys and values count alike
    u, s, vt = np.linalg.svd(np.concatenate(stored, axis=1) / sizes, full_matrices=False)
    least = [off((u[:, :k] * s[:k]) @ vt[:k] * sizes, np.concatenate(stored, axis=1)) for k in cuts]
    assert found == pytest.approx(least, abs=1e-5)
    chapter["report"](layer, {"hidden_states": x}, cuts)
    shown = capsys.readouterr().out
    assert shown.startswith("latents of (4, 12, 16) numbers, in place of 24\n")
    of_weights, plain, best = shares(shown)
    assert of_weights == [round(100 * tail(both, k)) for k in cuts]
    assert best == pytest.approx([100 * share for share in found], abs=2)  # one percent of all directions is added
    assert best[0] < plain[0]
    assert plain[2] == best[2] == 0


@pytest.mark.parametrize("reason", [ImportError, OSError])
def test_missing_package_or_network(chapter, capsys, monkeypatch, reason):
    peer = types.ModuleType("transformers")
    peer.AutoModelForCausalLM = types.SimpleNamespace(from_pretrained=mock.Mock(side_effect=reason("no such thing")))
    peer.AutoTokenizer = None
    monkeypatch.setitem(sys.modules, "transformers", peer)
    exec(LOADER, dict(chapter))
    assert capsys.readouterr().out.startswith("This needs the package transformers and a network:")


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
