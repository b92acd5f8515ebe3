"""States and theorems: layers, chunks, errors of states, trained states, and what models keep."""

import json
import math
from importlib.resources import files

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, softmax

from lowrank_tutor import storyteller
from lowrank_tutor.figures.storyteller import TALES, counted

RECORD = json.loads(files("lowrank_tutor").joinpath("data/storyteller_designs.json").read_text())["rows"]
(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("10-")]


def past(chapter, *, words):
    """Singular values of at least 1% of the largest, in the block of later rows and earlier columns."""
    spectrum = np.linalg.svd(chapter["P"].numpy()[words:, :words], compute_uv=False)
    return {"rank": int((spectrum > 0.01 * spectrum[0]).sum())}


EXPLORERS = {"past": past}


def test_depth(chapter):
    """Without skips tokens are mixed by weights; with skips they are added."""
    for name, (size, skip) in chapter["ways"].items():
        x = chapter["first"].numpy()
        for w_q, w_k, w_v in size * chapter["maps"].numpy()[:2]:
            x = skip * x + softmax(x @ w_q @ (x @ w_k).T / math.sqrt(32)) @ x @ w_v
        distance = np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x)
        assert chapter["apart"](size, skip)[2] == pytest.approx(distance), name
    layers = {way: sum(far > 1e-15 for far in chapter["apart"](*way)) for way in ((1, 0), (3, 0), (1, 1))}
    assert layers == {(1, 0): 4, (3, 0): 9, (1, 1): 13}


def test_past_fits(chapter):
    """The head's past has more than 16 directions from the 17th word on, until 24 are left."""
    above = [words for words in range(1, 71) if past(chapter, words=words)["rank"] > 16]
    assert (above[0], above[-1]) == (17, 71 - 24)


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


def test_groups():
    """By the twin: a group's mean logit, its size as votes, and the newest 8 words one by one."""
    story = storyteller.encode("<s> " + TALES["far fact"])

    def cut(m, votes):
        def table(q, k):
            shared = np.zeros((*q.shape[:-1], q.shape[-2]))
            for i in range(q.shape[-2]):
                old = max(0, i - 7) // m * m
                starts = np.array([*range(0, old, m), *range(old, i + 1)])
                sizes = np.diff([*starts, i + 1])
                scores = np.add.reduceat(q[..., i, None, :] @ k[..., : i + 1, :].swapaxes(-1, -2) / 4, starts, axis=-1)
                powers = np.exp(scores[..., 0, :] / sizes) * (sizes if votes > 1 else 1)
                weights = powers / powers.sum(axis=-1, keepdims=True)
                shared[..., i, : i + 1] = np.repeat(weights / sizes, sizes, axis=-1)
            return shared

        return storyteller.Cut(table)

    rows = [row for row in RECORD if row["task"] == "groups"]
    assert len(rows) == 7
    for row in rows:
        chances = storyteller.next_words(
            [storyteller.WORDS[word] for word in story], attend=cut(row["m"], row["votes"])
        )
        assert max(chances, key=chances.get) == row["says"], row


def test_words_chosen_by_an_index():
    """As many words as the text says are the fewest for nine right answers in ten."""
    for cut, words, share in (("index", 10, 0.92), ("top", 4, 0.96)):
        answered = {k: row["answered"] for k, row in counted()[cut].items() if k}
        assert min(k for k, right in answered.items() if right >= 0.9) == words, cut
        assert round(answered[words], 2) == share


def test_index_by_hand_and_in_glm_5(chapter):
    assert chapter["weights"].tolist() == pytest.approx([3 / 4, 1 / 4])
    rows = json.loads(files("lowrank_tutor").joinpath("data/models.json").read_text())["rows"]
    (layers,) = [row["layers"] for row in rows if row["name"] == "GLM-5"]
    assert [(each["layers"], each.get("latent"), each.get("index")) for each in layers] == [
        (78, 512, None),
        (78, None, 128),
    ]
    assert [chapter["whole"] - chapter["latents"], chapter["latents"]] == [78 * 128, 78 * 576]
    assert chapter["fewer"] == pytest.approx(576 * 131_072 / (128 * 131_072 + 576 * 2048))


def test_learned_states():
    """The delta rule learns before attention, a sum never does; a sum below attention is enough."""
    runs = {
        (row["design"], row["step"]): row["answered"]
        for row in RECORD
        if row["task"] == "write" and row["facts"] == 8 and row["seed"] == 0
    }
    assert runs["delta", 600] == pytest.approx(0.95, abs=0.005)
    assert runs["attention", 1200] == pytest.approx(0.97, abs=0.005)
    assert runs["attention", 900] < 0.9
    (facts,) = [
        row["job_far_fact"]
        for row in RECORD
        if row["task"] == "write" and row["design"] == "linear" and row["facts"] == 8 and row["step"] == 1800
    ]
    assert round(100 * facts) == 27
    tales = {(row["design"], row["sentences"]): row["says"] for row in RECORD if row["task"] == "tale"}
    assert [tales["linear", 1], tales["delta", 2], tales["delta", 3], tales["attention", 3]] == [
        "black",
        "red",
        "pink",
        "pink",
    ]
    assert max(runs["linear", step] for step in range(300, 1801, 300)) < 0.7
    assert min(runs[design, 1800] for design in ("attention", "delta", "linear, then attention")) > 0.99


def test_layers_of_models(chapter):
    """Windows, states, index, others, and what these keep: read from configurations by hand."""
    layers = chapter["layers"]
    assert layers["Kimi-K3"] == (0, 69, 0, 24, "latents")
    assert layers["Gemma-3-27B"] == (52, 0, 0, 10, "keys and values")
    assert layers["GLM-5.3-Flash"] == (0, 34, 11, 11, "latents")
    assert layers["DeepSeek-V4-Flash"] == (2, 0, 21, 41, "latents")
    assert not {"MiniMax-M2", "DeepSeek-V3"} & set(layers)
    assert sum(bool(row[1] or row[2]) for row in layers.values()) == 15
    assert sum(bool(row[0]) for row in layers.values()) == 6


def test_recall(chapter):
    """One layer of attention is enough; states, trained for longer, stay far below 64 pairs."""
    meta, rows = json.loads(files("lowrank_tutor").joinpath("data/recall.json").read_text()).values()
    right = {}
    for row in [*meta["longer"], *(row for row in rows if row["design"] not in ("linear", "delta"))]:
        if row["rate"] == meta["rates"][row["design"]]:
            right.setdefault(row["design"], []).append(row["test"])
    most = {name: max(np.mean(shares, axis=0) * meta["loads"]) for name, shares in right.items()}
    assert (round(most["delta"]), round(most["linear"]), meta["steps"]) == (33, 29, 600)
    assert {row["steps"] for row in meta["longer"]} == {3 * meta["steps"]}
    for name in ("latents", *(design for design in right if ", then " in design)):
        assert np.min(right[name]) > 0.999, name
        assert meta["kept"][name][-1] < 0.54 * meta["kept"]["attention"][-1], name
    for name, shares in right.items():
        assert chapter["shares"][name].mean(dim=0).tolist() == pytest.approx(np.mean(shares, axis=0)), name
    who = {
        (row["design"], row["seed"]): round(100 * row["job_who"])
        for row in RECORD
        if row["task"] == "write" and (row["facts"], row["step"]) == (8, 1800)
    }
    below, above = "window, then attention", "attention, then window"
    assert [who[run] for run in (("attention", 0), (below, 0), (below, 1), (above, 0))] == [100, 28, 87, 30]
