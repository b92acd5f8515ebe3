"""States and theorems: what its explorers must read, by NumPy alone, and the numbers in its text."""

import math

import numpy as np
import pytest
from chapters import CHAPTERS, code_cells, softmax

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("09-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def delta_state(k, v):
    state = np.zeros((k.shape[1], v.shape[1]))
    for key, value in zip(k, v, strict=True):
        state = state + np.outer(key, value - key @ state)
    return state


def memory(chapter, *, t, d):
    """Shares of values that are nearest to what their keys read; the newest eighth alone, too."""
    hits = np.zeros((2, t))
    for keys, values in chapter["pairs"][d]:
        k, v = keys[:t].numpy(), values[:t].numpy()
        for row, state in zip(hits, (k.T @ v, delta_state(k, v)), strict=True):
            away = np.linalg.norm((k @ state)[:, None] - v, axis=2)
            row += (away.argmin(axis=1) == np.arange(t)) / 20
    plain, rule = hits
    return {
        "plain_sum": plain.mean(),
        "delta_rule": rule.mean(),
        "newest": rule[-t // 8 :].mean(),
        "cache": d * d / (2 * d),  # a key and a value of d numbers each
    }


def recall(chapter, *, t, d):
    squares = np.zeros(4)
    for keys, values in chapter["pairs"][d][:8]:
        k, v = keys[:t].numpy(), values[:t].numpy()
        states = (k.T @ v, delta_state(k, v), np.linalg.lstsq(k, v, rcond=None)[0])
        squares += np.array([*(off(k @ state, v) for state in states), off(softmax(40 * k @ k.T) @ v, v)]) ** 2 / 8
    names = ("plain_sum", "delta_rule", "best_state", "softmax")
    return {**dict(zip(names, np.sqrt(squares), strict=True)), "theorem": math.sqrt((t - 1) / d)}


def collapse(chapter, *, layers, size):
    def distance(skip, start):
        x, drawn = start[0].numpy(), start[1]
        for maps in drawn[:layers]:
            w_q, w_k, w_v = size * maps.numpy()
            x = skip * x + softmax(x @ w_q @ (x @ w_k).T / math.sqrt(32)) @ x @ w_v
        return off(np.tile(x.mean(axis=0), (32, 1)), x)

    alone, skips = ([distance(skip, start) for start in chapter["starts"]] for skip in (0, 1))
    fifth = 4  # of ten numbers torch takes the lower of the two in the middle
    return {"alone": sorted(alone)[fifth], "slowest": max(alone), "skips": sorted(skips)[fifth]}


def window_error(chapter, *, m, rho):
    x = chapter["noise"].numpy().copy()
    for i in range(1, 128):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * chapter["noise"][i].numpy()
    q, k, v = (x @ w.numpy() for w in chapter["maps"])

    def attend(groups_of, vote):
        out = np.zeros((128, 32))
        for i in range(128):
            groups = max(0, (i + 1 - 16) // groups_of)
            old = groups * groups_of
            seen = [[p[:old].reshape(groups, groups_of, 32).mean(axis=1), p[old : i + 1]] for p in (k, v)]
            keys, values = (np.concatenate(part) for part in seen)
            added = np.r_[np.full(groups, vote), np.zeros(i + 1 - old)]
            out[i] = (softmax((q[i] @ keys.T / math.sqrt(32) + added)[None]) @ values)[0]
        return out

    groups = sum(end + 16 <= 128 for end in range(m, 129, m))  # whole ones that end before the last 16
    later = np.triu(np.full((128, 128), -np.inf), 1)
    far = np.where(np.tri(128, k=-16) > 0, -np.inf, 0)
    logits = q @ k.T / math.sqrt(32) + later
    exact = softmax(logits) @ v
    return {
        "votes": off(attend(m, math.log(m)), exact),
        "one": off(attend(m, 0.0), exact),
        "alone": off(softmax(logits + far) @ v, exact),
        "kept": (groups + 128 - groups * m) / 128,
    }


EXPLORERS = {"memory": memory, "recall": recall, "collapse": collapse, "window-error": window_error}


def test_recall_in_words(chapter):
    found = recall(chapter, t=16, d=32)
    assert found["softmax"] < 1e-6
    assert recall(chapter, t=32, d=32)["best_state"] < 1e-6 < 0.5 < recall(chapter, t=48, d=32)["best_state"]


def test_every_state_with_the_delta_rule_errs_less_than_the_sum(chapter):
    for d in chapter["WIDTHS"]:
        lines = chapter["recalled"][d]
        assert all(delta <= plain for delta, plain in zip(lines["delta rule"], lines["sum"], strict=True))


def test_the_second_pair_takes_from_the_first():
    keys = np.array([[1, 0], [0.6, 0.8]])
    assert keys @ delta_state(keys, np.array([[5.0], [0.0]])) == pytest.approx(np.array([[16 / 5], [0]]))


def test_a_chunk_of_steps_is_one_matrix(chapter):
    assert chapter["off"] < 1e-13


def test_blocks_below_the_diagonal(chapter):
    assert list(chapter["ranks"].values()) == [1, 32, 4]
    block = chapter["softmax"][32:, :32].numpy()
    assert np.linalg.matrix_rank(block) == 32
    assert np.linalg.matrix_rank(block, tol=0.01 * np.linalg.norm(block, 2)) <= max(chapter["near"].values()) < 32


def test_the_softmax_bottleneck(chapter):
    assert [np.linalg.matrix_rank(part) for part in chapter["tables"].values()] == chapter["of_words"] == [8, 9, 100]


def test_collapse_in_words(chapter):
    """Alone, small weights make tokens alike within seven layers in all draws, large ones not; skips hinder both."""
    for size in (0.5, 1.0):
        assert chapter["alike"][size]["its slowest draw"][7] < 1e-15
    assert chapter["alike"][3.0]["its slowest draw"][7] > 0.1
    larger = [chapter["unlike"](10 * tokens, drawn, 1.0, 0)[7] for tokens, drawn in chapter["starts"]]
    assert max(larger) > 0.1, "ten times as large they stay apart longer"
    small, middle, large = (chapter["alike"][size]["with skips"] for size in chapter["SIZES"])
    assert small[0] > small[12] > middle[12] > 0.1, "still apart, though they draw together"
    assert 0 < large[12] < middle[12]


def test_one_vote_makes_old_tokens_pale(chapter):
    one, many = (chapter["seen"][votes].double().numpy() for votes in (False, True))
    assert one[:, 0] / one[:, 8] == pytest.approx(1 / 4), "four times as pale"
    assert many == pytest.approx(np.array([[(j <= i) / (i + 1) for j in range(12)] for i in range(8, 12)]))


def test_centered_logarithms_have_rank_n_minus_one():
    p = softmax(np.random.default_rng(0).standard_normal((6, 6)))
    centered = np.log(p) - np.log(p).mean(axis=1, keepdims=True)
    assert np.linalg.matrix_rank(centered) == 5
    assert softmax(centered) == pytest.approx(p)


@pytest.mark.filterwarnings("ignore")
def test_the_table_is_that_of_the_settings_in_transformers():
    transformers = pytest.importorskip("transformers", reason="pip install -r requirements-peers.txt (200 MB)")
    config = {
        name: getattr(transformers, f"{name}Config")()
        for name in ("DeepseekV3", "DeepseekV32", "DeepseekV4", "Qwen3Next", "Jamba", "KimiLinear")
    }
    older, newer = config["DeepseekV3"], config["DeepseekV32"]
    for name in ("num_hidden_layers", "kv_lora_rank", "qk_rope_head_dim"):
        assert getattr(older, name) == getattr(newer, name)
    assert "| the same, and a small key by which a new token chooses the 2,048 that it reads |" in TEXT
    assert newer.index_topk == 2048
    assert config["DeepseekV4"].index_topk == 512
    assert (config["DeepseekV4"].sliding_window, {*config["DeepseekV4"].compress_rates.values()}) == (128, {4, 128})
    assert "a gated delta-rule state in 36 layers, keys and values in 12" in TEXT
    kinds = [*config["Qwen3Next"].layer_types]
    assert (kinds.count("linear_attention"), kinds.count("full_attention")) == (36, 12)
    assert "a state in 28 layers, keys and values in 4" in TEXT
    kinds = config["Jamba"].layers_block_type
    assert (kinds.count("mamba"), kinds.count("attention")) == (28, 4)
    assert "a state in three of four layers, latents in the rest" in TEXT
    kinds = config["KimiLinear"].layer_types
    assert kinds.count("linear_attention") / kinds.count("full_attention") == pytest.approx(3, abs=0.6)


def test_the_shown_code_has_the_cells_it_needs():
    assert sum("explore(" in cell.source for cell in code_cells(CHAPTER)) == len(EXPLORERS)
