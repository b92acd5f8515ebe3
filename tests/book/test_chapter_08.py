"""Caches and adapters: what the chapter computes for its figures, and its script."""

import os
import re
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import torch
from chapters import CHAPTERS
from torch import distributed, nn

from lowrank_tutor.caches import LoraLinear, power_step

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("08-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
SCRIPT = re.search(r"compress\.py\n:class: dropdown\n\n```python\n(.*?)^```$", TEXT, re.M | re.S)[1]
PRINTED = re.search(r"what was compressed:\n\n```text\n(.*?)^```$", TEXT, re.M | re.S)[1]


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
    a, b, w = (chapter[name].numpy() for name in ("A", "B", "W_K"))
    root_a, root_b = np.sqrt(a), np.linalg.cholesky(b)

    def cut(m):
        u, s, vt = np.linalg.svd(m, full_matrices=False)
        return (u[:, :8] * s[:8]) @ vt[:8]

    def error(m):
        return off(root_a @ m @ root_b, root_a @ w @ root_b)

    for_keys = np.linalg.solve(root_a, cut(root_a @ w))
    for_scores = np.linalg.solve(root_a, cut(root_a @ w @ root_b)) @ np.linalg.inv(root_b)
    assert chapter["of_scores"] == pytest.approx([error(m) for m in (cut(w), for_keys, for_scores)], rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_shapes_in_transformers(chapter):
    transformers = pytest.importorskip("transformers", reason="pip install -r requirements-peers.txt (200 MB)")
    shapes, llama = chapter["SHAPES"], transformers.LlamaConfig()
    sizes = {"layers": llama.num_hidden_layers, "heads": llama.num_key_value_heads, "width": llama.head_dim}
    assert sizes == shapes["Llama-2-7B"]
    for name, shown in (("DeepseekV3", "DeepSeek-V3"), ("Mistral4", "Mistral-Small-4")):
        own = getattr(transformers, f"{name}Config")()
        sizes = {"layers": own.num_hidden_layers, "latent": own.kv_lora_rank, "rotary": own.qk_rope_head_dim}
        assert sizes == shapes[shown]


def test_script(tmp_path):
    (tmp_path / "compress.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "compress.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == PRINTED


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
