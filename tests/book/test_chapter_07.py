"""Linformer: project the sequence: what its explorers must read, by NumPy alone, and the numbers in its text."""

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


def test_nothing_is_lost_by_whole_averages(chapter):
    assert linformer_error(chapter, k=N, rho=0.9)["averages"] == pytest.approx(0, abs=1e-12)


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
    assert (exact[slept, cat], short[slept, 0]) == pytest.approx((0.89, 0.67), abs=0.005)
    assert (windows @ keys)[1] == pytest.approx((windows @ keys)[2]), "no query can tell the two windows apart"
    off = np.linalg.norm(short @ windows @ values - exact @ values) / np.linalg.norm(exact @ values)
    assert off == pytest.approx(0.50, abs=0.005)


def test_the_three_tokens_by_hand():
    """The numbers beside the worked example, from their definitions."""
    q = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [2, 0, 0, 0]])
    keys = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]])
    logits = q @ keys.T / 2
    assert logits[0].tolist() == [1, 1, 0]
    exact = softmax(logits)
    short = softmax(q @ (np.array([[0.5, 0.5, 0], [0, 0, 1]]) @ keys).T / 2)
    assert exact[0, :2].sum() == pytest.approx(2 * math.e / (2 * math.e + 1))
    assert short[0, 0] == pytest.approx(math.e / (math.e + 1))


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


def test_kappa_grows_like_the_root_of_n_for_other_values_and_hardly_in_self_attention(chapter):
    own, other = np.transpose([kappa_of_self_attention(n) for n in (256, 512, 1024)])
    assert other == pytest.approx(np.sqrt([257, 513, 1025]), rel=0.05)
    assert own[2] / own[0] < 1.35 < 1.9 < other[2] / other[0]
    for shown in (1 + own**2, np.array(chapter["own"])):
        assert (shown > 90).all()
        assert (shown < 180).all()
    assert chapter["unrelated"] == pytest.approx([257, 513, 1025], rel=0.12)


def test_both_rules_are_exact_where_the_popular_ones_are_not(chapter):
    popular = [name for name in chapter["lines"] if name.startswith("zeros")]
    assert max(chapter["lines"]["either rule"]) < 1e-12
    assert len(popular) == 2
    for name in popular:
        assert min(chapter["lines"][name][:-1]) > 0.02
        assert chapter["lines"][name][-1] < 1e-12, "nothing is hidden there"
    assert chapter["lines"]["zeros"][0] == pytest.approx(0.91, abs=0.005)
    assert chapter["moved_by_padding"] == 0


def test_the_rules_on_cut_windows(chapter):
    """By NumPy: means of the real tokens of each window, which votes with their number; and means times a root."""
    q, keys, values = (part[0, 0].numpy() for part in chapter["heads"](0.95))
    for real in chapter["cuts"]:
        counts = np.array([min(max(real - start, 0), 8) for start in range(0, N, 8)])
        kept = counts > 0
        means = [
            np.array([x[8 * i : 8 * i + c].mean(axis=0) for i, c in enumerate(counts) if c]) for x in (keys, values)
        ]
        exact = softmax(q[:real] @ keys[:real].T / math.sqrt(D)) @ values[:real]
        for name, size in (("sum rule", 1), ("norm rule", np.sqrt(counts[kept] / 8)[:, None])):
            logits = q[:real] @ (size * means[0]).T / math.sqrt(D) + np.log(counts[kept] / 8)
            off = np.linalg.norm(softmax(logits) @ (size * means[1]) - exact) / np.linalg.norm(exact)
            assert chapter["by_rule"][name][real - 1] == pytest.approx(off, abs=1e-10), (name, real)


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


def test_the_count_of_matrices_for_twelve_layers():
    sizes = {"dim": 64, "heads": 4, "max_len": 512, "k": 32}
    shared = torch.nn.Parameter(torch.zeros(32, 512))
    for matrices, way in ((24, {"sharing": "headwise"}), (12, {}), (1, {"projection": shared})):
        layers = torch.nn.ModuleList(LinformerSelfAttention(**sizes, **way) for _ in range(12))
        learned = sum(p.numel() for p in layers.parameters())
        assert learned == 12 * (4 * 64**2 + 64) + matrices * 32 * 512


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


def test_what_the_measurement_shows(chapter):
    took, meta = chapter["took"], chapter["bench"]["meta"]
    (row,) = (
        row
        for row in meta["crossovers"]
        if (row["mode"], row["k"], row["method"]) == ("forward", 256, "lowrank_tutor E = F")
    )
    assert (row["measured"], row["by_operations"]) == (324, 304)
    gain = {n: took["exact, fused", None, n] / took["lowrank_tutor E = F", 256, n] for n in (512, 4096)}
    assert gain == pytest.approx({512: 1.3, 4096: 5.8}, abs=0.05)
    backward = {
        row["method"]: row["time_median"]
        for row in chapter["bench"]["rows"]
        if (row["series"], row["mode"], row["n"]) == ("module", "forward+backward", 4096) and row["k"] in (None, 256)
    }
    assert backward["exact, fused"] / backward["lowrank_tutor E = F"] == pytest.approx(6.2, abs=0.05)


def stored(name):
    return json.loads((files("lowrank_tutor") / "data" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_study_in_the_verdict():
    ends = {}
    for row in stored("training_study")["rows"]:
        ends.setdefault(row["kind"], []).append(row["curve"][-1][1])
    ends = {kind: np.array(losses) for kind, losses in ends.items()}
    windows, slow = (ends[f"linformer k=32 {kind}"] for kind in ("averages, not learned", "from averages, E slow"))
    assert (windows - slow).mean() == pytest.approx(0.04, abs=0.005)
    assert math.hypot(windows.std(ddof=1), slow.std(ddof=1)) / 3**0.5 == pytest.approx(0.02, abs=0.005)
    gained = ends["linformer k=32 random, not learned"] - ends["linformer k=32"]
    assert abs(gained.mean()) < gained.std(ddof=1), "nothing that three seeds could show"
    assert ends["linformer k=32 from averages"].mean() > windows.mean() + 0.4
    from_random = [kind for kind in ends if kind.startswith("linformer") and "averages" not in kind]
    between = ends["none"].mean() - ends["exact"].mean()
    assert windows.mean() < min(ends[kind].mean() for kind in from_random) - 0.25 * between


def test_the_trained_encoder_in_the_verdict():
    data = stored("attention_spectra")
    ranks = data["meta"]["ranks"]
    missed = [row["pooled"][ranks.index(64)] for row in data["rows"] if row["n"] == 256]
    assert (min(missed), max(missed)) == pytest.approx((0.41, 0.64), abs=0.005)
    cut = {(row["layer"], row["n"]): np.mean(row["cut"], axis=0) for row in data["rows"]}

    def needed(layer, n, error):  # the rank, by interpolation in its logarithm
        return np.interp(-error, -cut[layer, n], np.log(ranks[: len(cut[layer, n])]))

    for error, (least, most), last in ((0.1, (0.77, 0.95), 0.5), (0.2, (0.53, 0.93), 0.37)):
        *five, sixth = ((needed(i, 512, error) - needed(i, 128, error)) / math.log(4) for i in range(1, 7))
        assert (min(five), max(five)) == pytest.approx((least, most), abs=0.02)
        assert sixth == pytest.approx(last, abs=0.02)


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


def test_the_scores_in_the_papers_second_table():
    means = published("linformer_table_2")
    six = [means[f"n = {n}, {sharing}"] for n in (512, 1024) for sharing in ("none", "key-value", "layerwise")]
    assert (means["RoBERTa-base"], min(six), max(six)) == (92.25, 91.83, 92.30)
