"""Linformer: project the sequence: what its explorers must read, by NumPy alone, and the numbers in its text."""

import itertools
import json
import math
from importlib.resources import files

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, softmax

from lowrank_tutor.attention import softmax_cost
from lowrank_tutor.byhand.sentence import W_K, W_Q, W_V, WORDS, X
from lowrank_tutor.linformer import LinformerSelfAttention, linformer_cost

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("07-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
N, D = 128, 32


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


EXPLORERS = {"linformer-error": linformer_error}


def test_the_errors_in_the_text_are_those_of_the_explorer(chapter):
    close, independent = (linformer_error(chapter, k=16, rho=rho) for rho in (0.95, 0.0))
    assert f"16 averages of 8 tokens each are off by {close['averages']:.1%}" in TEXT
    assert f"With independent tokens they are off by {independent['averages']:.0%}" in TEXT
    assert min(close["random"], independent["random"]) > 1, "worse than answering zero"
    verdict = f"miss by {close['averages']:.1%} at correlation 0.95, and by {independent['averages']:.0%} at 0."
    assert verdict in TEXT
    nothing_compressed = linformer_error(chapter, k=N, rho=0.9)
    assert f"By {nothing_compressed['random']:.0%}. (Drag $k$ to 128.)" in TEXT
    assert nothing_compressed["averages"] == pytest.approx(0, abs=1e-12)


def test_rank_32_suffices_for_all_tokens_and_16_does_not(chapter):
    for rho in (0.0, 0.5, 0.8, 0.9, 0.95, 0.99):
        assert linformer_error(chapter, k=32, rho=rho)["least"] < 1e-12
        assert linformer_error(chapter, k=16, rho=rho)["least"] > 1e-5


def test_the_sentence_through_windows():
    """Each number of the first section, from the words' own numbers and the definitions."""
    x, w_q, w_k, w_v = (np.array(part, dtype=float) for part in (X, W_Q, W_K, W_V))
    q, keys, values = x @ w_q, x @ w_k, x @ w_v
    exact = softmax(q @ keys.T / math.sqrt(2))
    windows = np.kron(np.eye(3), [[0.5, 0.5]])
    short = softmax(q @ (windows @ keys).T / math.sqrt(2))
    cat, slept = WORDS.index("cat"), WORDS.index("slept")
    assert f"puts {exact[slept, cat]:.2f} of its weight on" in TEXT
    assert f"gives it only {short[slept, 0]:.2f}, half of it" in TEXT
    assert f"gets {short[slept, 0] / 2:.2f} where it had {exact[slept, cat]:.2f}" in TEXT
    assert (windows @ keys)[1] == pytest.approx((windows @ keys)[2]), "no query can tell the two windows apart"
    off = np.linalg.norm(short @ windows @ values - exact @ values) / np.linalg.norm(exact @ values)
    assert f"Altogether the output is off by {off:.0%}" in TEXT


def test_the_three_tokens_by_hand():
    """The numbers beside the worked example, from their definitions."""
    q = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]])
    keys = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]])
    logits = q @ keys.T / 2
    assert logits[0].tolist() == [1, 1, 0]
    assert logits[2].tolist() == [2, 0, 0]
    exact = softmax(logits)
    short = softmax(q @ (np.array([[0.5, 0.5, 0], [0, 0, 1]]) @ keys).T / 2)
    assert exact[0, :2].sum() == pytest.approx(2 * math.e / (2 * math.e + 1))
    assert short[0, 0] == pytest.approx(math.e / (math.e + 1))
    assert f"2e/(2e + 1) = {exact[0, :2].sum():.3f}$" in TEXT
    assert f"e/(e + 1) = {short[0, 0]:.3f}$" in TEXT


def kappa_of_self_attention(n, d=64, draws=3):
    """The ratio of the theorem, by plain NumPy, for random weights and independent tokens."""
    rng, found = np.random.default_rng(1), []
    for _ in range(draws):
        x, (w_q, w_k, w_v) = rng.standard_normal((n, d)), rng.standard_normal((3, d, d)) / np.sqrt(d)
        p = softmax((x @ w_q) @ (x @ w_k).T / np.sqrt(d))
        v, other = x @ w_v, rng.standard_normal((n, d))
        found.append([np.sqrt((p**2).sum() * (v**2).sum() / ((p @ v) ** 2).sum()) for v in (v, other)])
    return np.mean(found, axis=0)


def test_kappa_is_small_where_values_are_alike_though_of_mean_zero():
    """So the text's "about n" needs entries that are independent of each other, too."""
    p = np.random.default_rng(3).dirichlet(np.ones(256), 256)
    same = np.ones((256, 1)) * np.random.default_rng(4).standard_normal(64)
    assert (np.linalg.norm(p) * np.linalg.norm(same) / np.linalg.norm(p @ same)) ** 2 < 3 < 256
    assert "If the entries of $V$ are independent, know nothing of $P$ and have mean zero and variance 1" in TEXT


def test_kappa_grows_like_the_root_of_n_for_other_values_and_hardly_in_self_attention(chapter):
    own, other = np.transpose([kappa_of_self_attention(n) for n in (256, 512, 1024)])
    assert other == pytest.approx(np.sqrt([257, 513, 1025]), rel=0.05)
    assert own[2] / own[0] < 1.35 < 1.9 < other[2] / other[0]
    for shown in (1 + own**2, np.array(chapter["own"])):
        assert (shown > 90).all()
        assert (shown < 180).all()
    assert "from $k$ of roughly 100 to 170 on; with others, from about $n$." in TEXT
    assert chapter["unrelated"] == pytest.approx([257, 513, 1025], rel=0.12)


def test_the_norm_rule_is_exact_where_the_popular_rules_are_not(chapter):
    lines = chapter["lines"]
    assert max(lines["norm rule"]) < 1e-12
    for rule in ("zeros alone", "zeros, rescaled"):
        assert min(lines[rule][:-1]) > 0.02
        assert lines[rule][-1] < 1e-12, "nothing is hidden there"
    assert f"off by up to {max(lines['zeros alone']):.0%}".replace("%", " percent") in TEXT
    assert f"zeroing alone is off by {lines['zeros alone'][0]:.0%}: {N - 8} empty rows vote" in TEXT
    assert chapter["moved_by_padding"] == 0


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


def test_what_learning_gains(chapter):
    off = {(rho, start): (before, after) for rho, start, before, after in chapter["runs"]}
    before, after = off[0.95, "averages"]
    assert 0.045 < after < before < 0.07, "they begin at 6% and gain a little"
    before, after = off[0.95, "random"]
    assert after == pytest.approx(0.12, abs=0.015)
    assert before > 1
    for start, at_first in (("averages", 0.84), ("random", 1.75)):
        before, after = off[0.0, start]
        assert before == pytest.approx(at_first, abs=0.03)
        assert after == pytest.approx(0.775, abs=0.01), "77% to 78%"


def test_half_a_window():
    assert (1 + 0.5 * math.sqrt(0.5)) / 1.5 == pytest.approx(0.90, abs=0.005)
    assert "= 0.90\\,c$" in TEXT


def test_the_count_of_matrices_for_twelve_layers():
    sizes = {"dim": 64, "heads": 4, "max_len": 512, "k": 32}
    shared = torch.nn.Parameter(torch.zeros(32, 512))
    for matrices, way in ((24, {"sharing": "headwise"}), (12, {}), (1, {"projection": shared})):
        layers = torch.nn.ModuleList(LinformerSelfAttention(**sizes, **way) for _ in range(12))
        learned = sum(p.numel() for p in layers.parameters())
        assert learned == 12 * (4 * 64**2 + 64) + matrices * 32 * 512
    assert "288 for 12 layers of 12 heads" in TEXT
    for counted in ("(*headwise*: 24)", "(*key-value*, $E = F$: 12)", "(*layerwise*: 1)"):
        assert counted in TEXT


@pytest.mark.parametrize("values", [np.eye(100)[:, :1], np.eye(100)])
def test_one_output_for_all_queries_needs_the_epsilon_of_the_exercise(values):
    """The center of the least ball around the rows of V, found by many starts, over the norm of V."""
    rng, n = np.random.default_rng(0), 100
    known = {1: 0.5, n: math.sqrt(1 - 1 / n) / math.sqrt(n)}[values.shape[1]]
    center = {1: np.full(1, 0.5), n: np.full(n, 1 / n)}[values.shape[1]]
    for size in (0, 1e-3, 1e-2, 0.1, 1):
        for _ in range(20):
            output = center + size * rng.standard_normal(center.shape) / math.sqrt(center.size)
            least = np.linalg.norm(values - output, axis=1).max() / np.linalg.norm(values)
            assert least >= known - 1e-12
    assert np.linalg.norm(values - center, axis=1).max() / np.linalg.norm(values) == pytest.approx(known)
    assert "\\sqrt{99}/100 = 0.0995$" in TEXT


def test_each_entry_of_the_tables_of_costs():
    n, width, k, heads = 1024, 512, 256, 8
    d = width // heads
    exact = [2 * 2 * n * width * width, 2 * 2 * n * width * width, heads * 2 * 2 * n * n * d]
    assert exact == [4 * n * width**2, 4 * n * width**2, 4 * n**2 * width]
    ours = [4 * n * width**2, 2 * k * n * width + 2 * 2 * k * width * width, heads * 2 * 2 * n * k * d]
    assert ours == [4 * n * width**2, 2 * n * k * width + 4 * k * width**2, 4 * n * k * width]
    assert sum(exact) == softmax_cost(n, width, heads).flops
    assert sum(ours) == linformer_cost(n, width, heads, k).flops
    assert linformer_cost(n, width, heads, k).parameters == 4 * width**2 + width + k * n


def test_what_the_measurement_shows_in_words(chapter):
    took, sizes, meta = chapter["took"], chapter["SIZES"], chapter["bench"]["meta"]

    def growth(method, k=256):
        ratios = [took[method, k, longer] / took[method, k, shorter] for shorter, longer in itertools.pairwise(sizes)]
        return f"{min(ratios[1:]):.1f} to {max(ratios[1:]):.1f}"  # from 1,024 on

    assert f"exact attention takes {growth('exact, fused', None)} times as long" in TEXT
    assert f"this book's layer {growth('lowrank_tutor E = F')} times" in TEXT
    (row,) = (
        row
        for row in meta["crossovers"]
        if (row["mode"], row["k"], row["method"]) == ("forward", 256, "lowrank_tutor E = F")
    )
    assert f"from {row['measured']} tokens on, where operations say {row['by_operations']}" in TEXT
    assert f"two cores of a CPU ({meta['machine']['cpu']})" in TEXT
    gain = {n: took["exact, fused", None, n] / took["lowrank_tutor E = F", 256, n] for n in sizes}
    assert f"{gain[4096]:.1f} times faster than exact attention at 4,096 tokens" in TEXT
    assert f"and {gain[512]:.1f} times at 512" in TEXT


def stored(name):
    return json.loads((files("lowrank_tutor") / "data" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_verdict_says_of_the_study_what_its_data_say():
    ends = {}
    for row in stored("training_study")["rows"]:
        ends.setdefault(row["kind"], []).append(row["curve"][-1][1])
    drawn = np.mean(ends["linformer k=32 random, not learned"])
    windows = np.mean(ends["linformer k=32 averages, not learned"])
    learned = np.mean(ends["linformer k=32"])
    nothing, exact = np.mean(ends["none"]), np.mean(ends["exact"])
    spoiled = np.mean(ends["linformer k=32 from averages"]) - windows
    assert f"gained {drawn - learned:.2f} nats on a random start, and lost {spoiled:.2f} on averages." in TEXT
    assert "gained next to nothing, and spoiled averages" in TEXT
    assert 0 < drawn - learned < 0.1 * (nothing - exact)
    slow = np.mean(ends["linformer k=32 from averages, E slow"])
    assert "an $E$ that starts from them and learns slowly" in TEXT
    assert slow < windows
    assert "averages of windows did far better than any $E$ that started at random" in TEXT
    from_random = [kind for kind in ends if kind.startswith("linformer") and "averages" not in kind]
    assert windows < min(np.mean(ends[kind]) for kind in from_random) - 0.25 * (nothing - exact)


def test_the_verdict_says_of_the_trained_encoder_what_its_data_say():
    data = stored("attention_spectra")
    at = [rank for rank in data["meta"]["ranks"] if rank < 256].index(64)
    missed = [row["pooled"][at] for row in data["rows"] if row["n"] == 256]
    assert f"in that trained encoder, averages missed by {min(missed):.0%} to {max(missed):.0%}." in TEXT
    at = data["meta"]["ranks"].index(64)
    cut = {(row["layer"], row["n"]): np.mean(row["cut"], axis=0)[at] for row in data["rows"]}
    assert all(cut[layer, 128] < cut[layer, 256] < cut[layer, 512] for layer in range(1, 7)), "more as n grew"


def test_the_papers_table_three():
    """The rows of the page, against the paper's numbers: length, then how many times faster for k = 128, 256, 1024."""
    for row in ("512 | 1.5 | 1.3 | ", "4,096 | 3.4 | 3.2 | 2.2", "65,536 | 20 | 18 | 14"):
        assert f"| {row.strip()} |" in TEXT.replace("| |", "|  |").replace("|  |", "| |")


def published(name):
    return stored("published")[name]["rows"]


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
    assert [round(-gap["Text"]) for gap in gaps] == [10, 9], "about ten points in both"


def test_all_six_rows_with_k_256_are_told():
    means = published("linformer_table_2")
    assert f"reaches {means['RoBERTa-base']:.2f}, a mean score" in TEXT
    for n in (512, 1024):
        three = [means[f"n = {n}, {sharing}"] for sharing in ("none", "key-value", "layerwise")]
        assert "{:.2f}, {:.2f} and {:.2f} at $n = {}$".format(*three, n) in TEXT
        assert min(three) > means["RoBERTa-base"] - 0.5
    assert "The paper's came within half a point of RoBERTa." in TEXT
