"""The grid of a GPU on a CPU: stand-ins for the compiler, graphs and packages take every branch."""

import contextlib
import functools
import itertools
import json
import sys
import types

import pytest
import torch
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, create_mask

from measure.harness import wall_clock
from measure.speed import linformer_gpu
from measure.speed.linformer_gpu import EXACT, GROUPED, LATENT, LINEAR, MIXED, STATE, WAYS, WINDOW, Case
from measure.speed.linformer_methods import MODES

# Warnings are errors in these tests, and inside the compiler too: one speaks of the window's stand-in.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute")
BENCH = types.SimpleNamespace(device=torch.device("cpu"), clock=wall_clock)


def flex(q, k, v, block_mask):
    return functional.scaled_dot_product_attention(q, k, v, create_mask(block_mask.mask_mod, 1, 1, 640, 640, "cpu"))


def chunk_linear_attn(q, k, v, scale, normalize):
    assert (scale, normalize) == (1.0, False)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return ((q @ k.mT).tril() @ v).transpose(1, 2), None


@pytest.fixture
def card(monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(linformer_gpu, "flex_attention", flex)
    monkeypatch.setattr(linformer_gpu, "LAYERS", 1)
    monkeypatch.setitem(sys.modules, "fla.ops.linear_attn", types.SimpleNamespace(chunk_linear_attn=chunk_linear_attn))
    monkeypatch.setattr(torch.cuda, "Stream", lambda: types.SimpleNamespace(wait_stream=lambda _other: None))
    monkeypatch.setattr(torch.cuda, "current_stream", torch.cuda.Stream)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "graph", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: types.SimpleNamespace(replay=lambda: None))


def test_window_blocks():
    ours = linformer_gpu.near_blocks(1024, "cpu")
    theirs = create_block_mask(ours.mask_mod, None, None, 1024, 1024, device="cpu")
    assert torch.equal(ours.to_dense(), theirs.to_dense())
    assert torch.equal(ours.full_kv_num_blocks, theirs.full_kv_num_blocks)
    assert ours.shape == theirs.shape


def measure(method, series, mode="forward"):
    return linformer_gpu.measure(Case(series, mode, 128, 2, 640), method, BENCH, torch.float32, repeats=2)


PLACES = list(itertools.product((EXACT, MIXED, WINDOW, LINEAR), ("attention", "layer"), MODES))
PLACES += [(method, "encoder", "forward+backward") for method in (EXACT, MIXED)]
PLACES += [(method, "decode", "forward") for method in (GROUPED, LATENT, STATE)]


@pytest.mark.parametrize(("method", "series", "mode"), PLACES)
def test_every_way(method, series, mode, card):
    rows, failures = measure(method, series, mode)
    assert [failure["error"] for failure in failures] == []
    assert [row["way"] for row in rows] == list(WAYS)
    assert all(row["off"] < 1e-4 and (row["peak_bytes"] is None) == WAYS[row["way"]][1] for row in rows)


@pytest.mark.parametrize("series", ["attention", "layer"])
def test_wrong_results_are_not_timed(series, card, monkeypatch):
    real = functional.scaled_dot_product_attention
    monkeypatch.setattr(functional, "scaled_dot_product_attention", lambda *parts: 1.1 * real(*parts))
    rows, (failure,) = measure(EXACT, series)
    assert rows == []
    assert failure["error"].startswith("ArithmeticError: off by 0.")


def test_missing_package(card, monkeypatch):
    monkeypatch.setitem(sys.modules, "fla.ops.linear_attn", None)
    rows, (failure,) = measure(LINEAR, "attention")
    assert rows == []
    assert "ModuleNotFoundError" in failure["error"]


def test_grid_resumes(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(linformer_gpu, "measure", lambda case, method, *_: seen.append((case, method)) or ([], []))
    todo, path, meta = linformer_gpu.cases()[-2:], tmp_path / "grid.json", {"gpu": {"name": "A"}, "versions": {}}
    grid = functools.partial(linformer_gpu.grid, path, BENCH, dtype=torch.float32)
    assert [grid(meta, todo=todo[:1]), grid(meta, todo=todo, seconds=-1), grid(meta, todo=todo)] == [0, 3, 0]
    assert seen == list(itertools.product(todo, (GROUPED, LATENT, STATE)))
    assert json.loads(path.read_text())["done"] == [[*case, method] for case, method in seen]
    with pytest.raises(ValueError, match="must be a record of this gpu"):
        grid(meta | {"gpu": {"name": "B"}}, todo=todo)
