"""Project the sequence: what its explorers must read, by NumPy alone, and the numbers in its text."""

import itertools
import json
import math
from importlib.resources import files

import numpy as np
import pytest
from chapters import CHAPTERS, run

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("07-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
N, D = 128, 32


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def tokens(noise, rho):
    x = noise.copy()
    for i in range(1, N):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * noise[i]
    return x


def linformer_error(chapter, *, k, rho):
    x = tokens(chapter["noise"].numpy(), rho)
    q, keys, values = (x @ chapter[name].numpy() for name in ("W_q", "W_k", "W_v"))
    exact = softmax(q @ keys.T / math.sqrt(D)) @ values

    def off(short_keys, short_values):
        return np.linalg.norm(softmax(q @ short_keys.T / math.sqrt(D)) @ short_values - exact) / np.linalg.norm(exact)

    windows = (part.reshape(k, N // k, D).mean(axis=1) for part in (keys, values))
    e = chapter["mixtures"][k].numpy()
    spectrum = np.linalg.svd(exact, compute_uv=False)
    return {
        "averages": off(*windows),
        "random": off(e @ keys, e @ values),
        "least": math.sqrt((spectrum[k:] ** 2).sum() / (spectrum**2).sum()),
        "work": 8 * N * k * D / (4 * N * N * D),
        "weights": N * k / N**2,
    }


def linformer_time(chapter, *, n, k):
    data = json.loads((files("lowrank_tutor") / "data" / "linformer_cpu.json").read_text(encoding="utf-8"))

    def best(method, kept):
        (row,) = (
            row
            for row in data["rows"]
            if (row["series"], row["mode"], row["method"], row["n"], row["k"]) == ("module", "forward", method, n, kept)
        )
        return row["time_median"] * 1000

    found = {"exact": best("exact, fused", None), "linformer": best("linformer", k)}
    found |= {"linformer_pytorch": best("linformer-pytorch kv", k)}
    found |= {"ours": best("lowrank_tutor E = F", k), "ours_two": best("lowrank_tutor E != F", k)}
    return {**found, "gain": found["exact"] / found["ours"]}


EXPLORERS = {"linformer-error": linformer_error, "linformer-time": linformer_time}


@pytest.fixture(scope="module")
def chapter():
    return run(CHAPTER).namespace


def test_the_errors_in_the_text_are_those_of_the_explorer(chapter):
    close, independent = (linformer_error(chapter, k=16, rho=rho) for rho in (0.95, 0.0))
    assert f"16 averages of 8 tokens are off by {close['averages']:.1%}" in TEXT
    assert f"With independent tokens they are off by {independent['averages']:.0%}" in TEXT
    assert min(close["random"], independent["random"]) > 1, "worse than answering zero"


def test_rank_32_suffices_for_all_tokens_and_16_does_not(chapter):
    for rho in (0.0, 0.5, 0.8, 0.9, 0.95, 0.99):
        assert linformer_error(chapter, k=32, rho=rho)["least"] < 1e-12
        assert linformer_error(chapter, k=16, rho=rho)["least"] > 1e-5


def test_the_three_tokens_by_hand():
    """The numbers that the worked examples of the page show, from their definitions."""
    q = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]])
    keys = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]])
    values = np.array([[2.0, 0], [0, 4], [2, 0]])
    p, e = softmax(q @ keys.T / 2), math.e
    exact = [
        [(2 + 2 * e) / (1 + 2 * e), 4 * e / (1 + 2 * e)],
        [(2 + 2 * e) / (2 + e), 4 / (2 + e)],
        [(2 + 2 * e**2) / (2 + e**2), 4 / (2 + e**2)],
    ]
    assert p @ values == pytest.approx(np.array(exact))
    mix = np.array([[0.5, 0.5, 0], [0, 0, 1]])
    short = softmax(q @ (mix @ keys).T / 2)
    assert short @ mix @ values == pytest.approx(
        np.array([[(2 + e) / (1 + e), 2 * e / (1 + e)], [(1 + 2 * e) / (1 + e), 2 / (1 + e)]])[[0, 1, 0]]
    )
    assert f"{short[0, 0]:.3f} of the weight instead of {p[0, :2].sum():.3f}" in TEXT


def test_the_memory_of_one_heads_weights():
    assert round(65536**2 * 4 / 1e9) == 17
    assert "one head's $P$ in 32-bit numbers fills 17 GB" in TEXT


def test_the_norm_rule_is_exact_where_the_popular_rules_are_not(chapter):
    lines = chapter["lines"]
    assert max(lines["norm rule"]) < 1e-12
    for rule in ("zeros alone", "zeros, times root of n / real"):
        assert min(lines[rule][:-1]) > 0.02
        assert lines[rule][-1] < 1e-12, "nothing is hidden there"
    assert f"off by up to {max(lines['zeros alone']):.0%}".replace("%", " percent") in TEXT


def test_the_whole_layer_saves_from_304_tokens_on():
    width, k = 512, 256

    def saves(n):
        return 4 * n * width**2 + 6 * n * k * width + 4 * k * width**2 < 8 * n * width**2 + 4 * n**2 * width

    assert saves(304)
    assert not saves(303)
    assert -64 + math.sqrt(64**2 + 2**17) == pytest.approx(303.7, abs=0.05)
    assert -288 + math.sqrt(288**2 + 768 * 128) == pytest.approx(137.7, abs=0.05)


def test_a_change_of_the_last_value_reaches_the_first_token_through_every_mixture(chapter):
    moved, dense, q = chapter["moved"], chapter["dense"].numpy(), chapter["q"][0, 0].numpy()
    assert (np.abs(dense[:, -1]) > 0).all(), "every row meets the last token"
    weights = softmax(q @ (dense @ chapter["keys"][0, 0].numpy()).T / math.sqrt(D))
    assert moved[0, 0, 0].numpy() == pytest.approx(weights[0] @ dense[:, -1] * 10 * np.ones(D))
    assert abs(weights[0] @ dense[:, -1]) > 0.01


def test_learning_helps_where_neighbors_are_alike(chapter):
    learned = chapter["learn"](chapter["mixtures"][16].float(), 0.95)
    parts = chapter["fresh"](0.95, batch=32)
    exact = chapter["softmax_attention"](*parts)

    def off(e):
        return float((chapter["linformer_attention"](*parts, e) - exact).norm() / exact.norm())

    assert off(learned) < 0.2 < 1 < off(chapter["mixtures"][16].float())
    assert off(chapter["learn"](chapter["pooling_projection"](16, N), 0.95)) < off(chapter["pooling_projection"](16, N))


def test_half_a_window():
    assert (1 + 0.5 * math.sqrt(0.5)) / 1.5 == pytest.approx(0.90, abs=0.005)
    assert "= 0.90\\,c$" in TEXT


def test_the_count_of_matrices_for_twelve_layers():
    plain = 12 * (4 * 64**2 + 64)
    one = 32 * 512
    for matrices in (24, 12, 1):
        assert f"{plain + matrices * one:,}" in ("590,592", "393,984", "213,760")
    assert "288 for 12 layers of 12 heads" in TEXT


def test_what_the_measurement_shows_in_words(chapter):
    took, sizes = chapter["took"], chapter["SIZES"]

    def growth(method, k=256):
        ratios = [took[method, k, longer] / took[method, k, shorter] for shorter, longer in itertools.pairwise(sizes)]
        return f"{min(ratios[1:]):.1f} to {max(ratios[1:]):.1f}"  # from 1,024 on

    assert f"exact attention takes {growth('exact, fused', None)} times as long" in TEXT
    assert f"this book's layer {growth('lowrank_tutor E = F')} times" in TEXT
    for k, package in itertools.product((128, 256), ("linformer", "linformer-pytorch kv")):
        assert all(took["lowrank_tutor E = F", k, n] < 0.67 * took[package, k, n] for n in sizes[1:])
    alike = {n: took["lowrank_tutor E != F", 256, n] / took["linformer", 256, n] for n in sizes}
    told = f"{alike[512]:.0%} of its time at 512 tokens, {alike[1024]:.0%} at 1,024 and {alike[4096]:.0%} at 4,096"
    assert told in TEXT
    for row in chapter["meta"]["crossovers"]:
        if row["mode"] == "forward" and row["method"] == "lowrank_tutor E = F":
            assert row["measured"] > row["by_operations"]


def test_the_papers_table_three():
    """Each row of the page: n, and for each k below n the two numbers; a few of them by name."""
    rows = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0].isdigit():
            rows[int(cells[0])] = [tuple(map(float, cell.split(","))) for cell in cells[1:] if cell]
    assert sorted(rows) == [2**i for i in range(9, 17)]
    assert [len(row) for _, row in sorted(rows.items())] == [2, 3, 4, 5, 5, 5, 5, 5]
    assert rows[512] == [(1.5, 1.7), (1.3, 1.5)]
    assert rows[65536][0] == (20, 60)
    assert rows[16384][-1] == (3.3, 8)


def published(name):
    data = json.loads((files("lowrank_tutor") / "data" / "published.json").read_text(encoding="utf-8"))
    return data[name]["rows"]


def test_the_tables_of_the_long_range_arena_are_those_of_their_papers():
    first, second = published("long_range_arena_2021"), published("nystromformer_2021")
    for task in ("ListOps", "Text", "Retrieval", "Image", "Pathfinder"):
        numbers = [run[model][task] for run in (first, second) for model in ("Transformer", "Linformer")]
        assert f"| {task} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |" in TEXT
    gaps = [{t: run["Linformer"][t] - run["Transformer"][t] for t in run["Linformer"]} for run in (first, second)]
    assert sum(gap < 0 for gap in gaps[0].values()) == 4
    assert {t for t, gap in gaps[0].items() if gap > 0} == {"Pathfinder"}
    assert gaps[1]["Pathfinder"] < 0
    assert sum(abs(gaps[1][t]) < 0.4 for t in ("ListOps", "Retrieval", "Image")) == 3
    assert gaps[1]["Text"] < -9


def test_all_six_rows_with_k_256_are_told():
    means = published("linformer_table_2")
    assert f"is {means['RoBERTa-base']:.2f} for RoBERTa-base" in TEXT
    for n in (512, 1024):
        three = [means[f"n = {n}, {sharing}"] for sharing in ("none", "key-value", "layerwise")]
        assert "{:.2f}, {:.2f} and {:.2f} at $n = {}$".format(*three, n) in TEXT
