"""States and theorems: layers, chunks, errors of states, and what models keep."""

import json
import math
from importlib.resources import files

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, softmax

from lowrank_tutor.figures import votes

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("09-")]


def drift(chapter, *, layers, size):
    """Without skips tokens are mixed by weights; with skips they are added."""
    apart = []
    for skip in (0, 1):
        x = chapter["first"].numpy()
        for w_q, w_k, w_v in size * chapter["maps"].numpy()[:layers]:
            x = skip * x + softmax(x @ w_q @ (x @ w_k).T / math.sqrt(32)) @ x @ w_v
        apart.append(np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x))
    return dict(zip(("alone", "skips"), apart, strict=True))


EXPLORERS = {"drift": drift}


def test_chunks_match_single_steps(chapter):
    """Each gate shrinks a row of the state before its token is written."""
    g = torch.Generator().manual_seed(3)
    shapes = (5, 5), (9, 5), (9, 5), (9, 4), (9, 1), (9, 5)
    state, q, k, v, beta, a = (torch.rand(*shape, generator=g, dtype=torch.float64) for shape in shapes)
    state, k = state[:, :4], k / k.norm(dim=1, keepdim=True)
    out, new = (part.numpy() for part in chapter["chunked"](state, q, k, v, beta, a))
    state, q, k, v, beta, a = (part.numpy() for part in (state, q, k, v, beta, a))
    for t, key in enumerate(k):
        state = np.diag(a[t]) @ state
        state = (np.eye(5) - beta[t] * np.outer(key, key)) @ state + beta[t] * np.outer(key, v[t])
        np.testing.assert_allclose(out[t], state.T @ q[t], atol=1e-12)
    np.testing.assert_allclose(new, state, atol=1e-12)


def test_errors_follow_the_theorem(chapter):
    found = chapter["found"]
    assert found["sum"] == pytest.approx(found["sum, by the theorem"], abs=0.1)
    assert found["best state"][:2] == pytest.approx([0, 0], abs=1e-9)


def test_best_groups():
    """With m votes, groups of 8 alone leave so few keys and an error below 5%."""
    numbers = {m: votes(m, "votes").numbers for m in range(1, 17)}
    keys = {m: found["seen"] for m, found in numbers.items() if found["error"] < 0.05}
    assert [m for m in keys if keys[m] <= 18] == [8]


def test_layers_match_counted_caches(chapter):
    rows = json.loads(files("lowrank_tutor").joinpath("data/published.json").read_text())["kv_caches"]["rows"]
    shown = {name.replace(" ", "-"): (row[0], row[2]) for name, row in chapter["layers"].items()}
    shared = set(rows) & set(shown) - {"DeepSeek-V4-Flash"}  # its layers keep two things each
    assert len(shared) == 5
    for name in shared:
        counts = [0, 0]
        for part in rows[name]["layers"]:
            counts["window" not in part and "state" not in part] += part["layers"]
        assert shown[name] == tuple(counts), name
