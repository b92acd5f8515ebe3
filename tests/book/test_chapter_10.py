"""States and theorems: layers, chunks, errors of states, trained states, and what models keep."""

import json
from importlib.resources import files

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from lowrank_tutor.figures import album

RECORD = json.loads(files("lowrank_tutor").joinpath("data/storyteller_designs.json").read_text())[
    "rows"
]


def past(chapter, *, words):
    """Singular values of at least 1% of the largest, in the block of later rows and earlier
    columns.
    """
    spectrum = np.linalg.svd(chapter["P"].numpy()[words:, :words], compute_uv=False)
    return {"rank": int((spectrum > 0.01 * spectrum[0]).sum())}


EXPLORERS = {"past": past}


def test_depth(chapter):
    """Without skips tokens are mixed by weights; with skips they are added."""
    layers = {
        way: sum(far > 1e-15 for far in chapter["apart"](*way)) for way in ((1, 0), (3, 0), (1, 1))
    }
    assert layers == {(1, 0): 4, (3, 0): 9, (1, 1): 13}
    assert [
        round(chapter["apart"](*way)[at], 2)
        for way, at in (((1, 0), 2), ((1, 1), 12), ((3, 1), 12))
    ] == [0.04, 0.66, 0.02]
    rows = json.loads(files("lowrank_tutor").joinpath("data/draws.json").read_text())["rows"]
    medians = {row["name"]: row["median"] for row in rows if row["chapter"] == "10"}
    assert round(medians["size 1, with skips, 12 layers"], 2) == 0.25


def test_past_fits(chapter):
    """The head's past has more than 16 directions from the 17th word on, until 24 are left."""
    above = [words for words in range(1, 71) if past(chapter, words=words)["rank"] > 16]
    assert (above[0], above[-1]) == (17, 71 - 24)


def test_chunks_match_single_steps(chapter):
    """Each gate shrinks a row of the state before its token is written."""
    g = torch.Generator().manual_seed(3)
    shapes = (5, 5), (9, 5), (9, 5), (9, 4), (9, 1), (9, 5)
    state, q, k, v, beta, a = (
        torch.rand(*shape, generator=g, dtype=torch.float64) for shape in shapes
    )
    state, k = state[:, :4], k / k.norm(dim=1, keepdim=True)
    out, new = (part.numpy() for part in chapter["chunked"](state, q, k, v, beta, a))
    state, q, k, v, beta, a = (part.numpy() for part in (state, q, k, v, beta, a))
    for t, key in enumerate(k):
        state = np.diag(a[t]) @ state
        state = (np.eye(5) - beta[t] * np.outer(key, key)) @ state + beta[t] * np.outer(key, v[t])
        np.testing.assert_allclose(out[t], state.T @ q[t], atol=1e-12)
    np.testing.assert_allclose(new, state, atol=1e-12)


def test_album(chapter):
    """Pictures that a sum and the delta rule give back."""
    pictures = load_digits().images[:64]
    found = [
        album(pictures, written=64, method=how).numbers["given_back"] for how in ("sum", "delta")
    ]
    assert found == [23, 17]


def test_errors_follow_the_theorem(chapter):
    found = chapter["found"]
    assert found["sum"] == pytest.approx(found["sum, by the theorem"], abs=0.17)
    assert found["best state"][:2] == pytest.approx([0, 0], abs=1e-9)


def test_learned_states():
    """The delta rule learns before attention, a sum never does; a sum below attention is enough."""
    runs = {(row["design"], row["step"]): row["answered"] for row in RECORD if row["seed"] == 0}
    assert runs["delta", 600] == pytest.approx(0.95, abs=0.005)
    assert runs["attention", 1200] == pytest.approx(0.97, abs=0.005)
    assert runs["attention", 900] < 0.9
    (end,) = [row for row in RECORD if (row["design"], row["step"]) == ("linear", 1800)]
    assert round(100 * end["job_far_fact"]) == 27
    assert max(runs["linear", step] for step in range(300, 1801, 300)) < 0.7
    whole = ("attention", "delta", "linear, then attention")
    assert min(runs[design, 1800] for design in whole) > 0.99


def test_layers_of_models(chapter):
    """Windows, states, index, others, and what these keep: read from configurations by hand."""
    layers = chapter["layers"]
    assert layers["Kimi-Linear-48B"] == (0, 20, 0, 7, "latents")
    assert layers["Gemma-3-27B"] == (52, 0, 0, 10, "keys and values")
    assert layers["DeepSeek-V3.2"] == (0, 0, 61, 61, "latents")
    assert layers["DeepSeek-V4-Flash"] == (2, 0, 21, 41, "latents")
    assert not {"Qwen3-Coder-30B", "DeepSeek-V3"} & set(layers)
    having = [chapter["having"](chapter[name]) for name in ("window", "state", "index")]
    assert having == [3, 1, 2]


def test_recall(chapter):
    """One layer of attention is enough; states, trained for longer, stay far below 64 pairs."""
    meta, rows = json.loads(
        files("lowrank_tutor").joinpath("data/recall.json").read_text()
    ).values()
    right = {}
    for row in [
        *meta["longer"],
        *(row for row in rows if row["design"] not in ("linear", "delta")),
    ]:
        if row["rate"] == meta["rates"][row["design"]]:
            right.setdefault(row["design"], []).append(row["test"])
    most = {name: max(np.mean(shares, axis=0) * meta["loads"]) for name, shares in right.items()}
    assert (round(most["delta"]), round(most["linear"]), meta["steps"]) == (33, 29, 600)
    assert {row["steps"] for row in meta["longer"]} == {3 * meta["steps"]}
    for name in ("latents", *(design for design in right if ", then " in design)):
        assert np.min(right[name]) > 0.999, name
        assert meta["kept"][name][-1] < 0.54 * meta["kept"]["attention"][-1], name
    who = {
        (row["design"], row["seed"]): round(100 * row["job_who"])
        for row in RECORD
        if row["step"] == 1800
    }
    below, above = "window, then attention", "attention, then window"
    assert [who[run] for run in (("attention", 0), (below, 0), (below, 1), (above, 0))] == [
        100,
        28,
        87,
        30,
    ]
