"""Attention: ask how low the rank is: what its explorers must read, by NumPy alone, and the numbers in its text."""

import json
import math
import re
from importlib.resources import files

import numpy as np
import pytest
from chapters import CHAPTERS, softmax
from scipy.special import iv

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("06-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
N, D = 256, 32


def attention_rank(chapter, *, sharpness, rho):
    x = chapter["noise"].numpy().copy()
    for i in range(1, N):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * chapter["noise"].numpy()[i]
    q, keys, values = (x @ chapter[name].numpy() for name in ("W_q", "W_k", "W_v"))
    logits = sharpness * q @ keys.T / math.sqrt(D)
    p = softmax(logits)
    u, s, vt = np.linalg.svd(p)
    return {
        "logits": np.linalg.matrix_rank(logits, tol=1e-10 * np.linalg.norm(logits, 2)),
        "softmax": (s > 1e-6 * s[0]).sum(),
        "cut": np.linalg.norm(((u[:, 16:] * s[16:]) @ vt[16:]) @ values) / np.linalg.norm(p @ values),
    }


def performer_error(chapter, *, m, length):
    """The features without any shift, which double precision allows for entries as small as these."""
    q, keys, values = (part[0, 0].numpy() for part in chapter["base"])
    q, keys = length * q, length * keys
    exact = softmax(q @ keys.T / math.sqrt(16)) @ values

    def features(x, w):
        x = x / 16**0.25
        return np.exp(x @ w.T - (x**2).sum(axis=1, keepdims=True) / 2)

    errors = []
    for draw in chapter["draws"]:
        weights = features(q, draw.numpy()[:m]) @ features(keys, draw.numpy()[:m]).T
        result = weights / weights.sum(axis=1, keepdims=True) @ values
        errors.append(np.linalg.norm(result - exact) / np.linalg.norm(exact))
    return {
        "performer": np.mean(errors),
        "mean": np.linalg.norm(values.mean(axis=0) - exact) / np.linalg.norm(exact),
    }


EXPLORERS = {"attention-rank": attention_rank, "performer-error": performer_error}


SIX = {"the": (0, 0), "cat": (2, 0), "slept": (0, 2), "it": (1, 0), "was": (0, 1), "tired": (1, 1)}


def test_attention_in_one_sentence_by_hand(chapter):
    """Entry by entry, in plain Python."""
    asked = {word: (2 * b, a) for word, (a, b) in SIX.items()}  # times ((0, 1), (2, 0))
    weights = {}
    for word, (q1, q2) in asked.items():
        powers = {other: math.exp((q1 * a + q2 * b) / math.sqrt(2)) for other, (a, b) in SIX.items()}
        weights[word] = {other: power / sum(powers.values()) for other, power in powers.items()}
    assert list(chapter["WORDS"]) == list(SIX)
    table = np.array([list(row.values()) for row in weights.values()])
    np.testing.assert_allclose(chapter["weights"], table)
    values = np.array([(2 * a, b) for a, b in SIX.values()])
    np.testing.assert_allclose(chapter["output"], table @ values)
    assert asked["slept"] == (4, 0)
    assert "*Slept* asks $(0, 2) W_Q = (4, 0)$" in TEXT
    assert max(weights["it"], key=weights["it"].get) == "slept"
    assert f"so *slept* gets most, {weights['it']['slept']:.2f}." in TEXT
    assert set(weights["the"].values()) == {1 / 6}
    assert 0.88 < weights["slept"]["cat"] < 0.9  # "nearly nine tenths"


def test_the_cost_in_words():
    assert round(65_536**2 * 4 / 1e9) == 17
    assert "fills 17 GB" in TEXT


def test_softmax_of_rank_one_logits_is_invertible():
    """Exactly: a determinant of three distinct points and keys, with rational powers."""
    x, y = np.array([0.0, 1.0, 2.5]), np.array([-1.0, 0.5, 2.0])
    assert abs(np.linalg.det(softmax(np.outer(x, y)))) > 1e-3
    repeated = np.outer([0.0, 1.0, 1.0], y)
    assert np.linalg.matrix_rank(softmax(repeated)) == 2, "equal points make equal rows"


def test_the_spread_of_one_weight_is_what_the_theorem_says():
    rng = np.random.default_rng(0)
    x, y = np.array([0.3, -0.2]), np.array([0.1, 0.4])
    w = rng.standard_normal((400_000, 2))
    estimates = np.exp(w @ (x + y) - (x @ x + y @ y) / 2)
    assert estimates.mean() == pytest.approx(np.exp(x @ y), rel=0.005)
    spread = math.sqrt(math.expm1(((x + y) ** 2).sum()))
    assert estimates.std() / np.exp(x @ y) == pytest.approx(spread, rel=0.02)


def test_features_needed():
    wanted = math.expm1(2 * math.sqrt(64)) / 0.1**2  # d = 64, entries of size 1: |x + y|^2 is about 2 sqrt(d)
    assert 0.85e9 < wanted < 0.95e9  # "nearly a billion"


def test_the_row_of_weights_beside_the_curve_is_the_one_that_is_estimated(chapter):
    q, keys, _ = (part[0, 0].numpy() for part in chapter["base"])
    true = softmax(0.5 * q[:1] @ (0.5 * keys).T / 4)[0]
    row = chapter["performer_error"](m=4096, length=0.5)[0].axes[0]
    np.testing.assert_allclose([bar.get_height() for bar in row.patches], true[:24], rtol=1e-6)
    points = row.lines[0].get_ydata()
    assert np.abs(points - true[:24]).max() < 0.1 * true.max()


def test_linear_attention_by_hand():
    features = {"query": 1.0, "keys": [1.0, 3.0]}  # elu(0) + 1; elu(0) + 1 and elu(2) + 1
    weights = np.array(features["keys"]) * features["query"]
    weights /= weights.sum()
    assert weights.tolist() == [0.25, 0.75]
    assert weights @ [4.0, 8.0] == 7
    assert "\\tfrac14 \\cdot 4 + \\tfrac34 \\cdot 8 = 7" in TEXT


def test_two_tokens_by_hand():
    """The exercise: softmax listens to its query, linear attention of width 1 does not."""
    keys, values = np.array([-math.log(2), 1.0]), np.array([0.0, 5.0])
    by_softmax = [np.exp(q * keys) @ values / np.exp(q * keys).sum() for q in (1, 2)]
    assert "$5e/(\\tfrac12 + e) = {:.2f}$. For 2 it is $5e^2/(\\tfrac14 + e^2) = {:.2f}$".format(*by_softmax) in TEXT
    features = np.where(keys > 0, keys + 1, np.exp(keys))
    assert [(q + 1) * features @ values / ((q + 1) * features.sum()) for q in (1, 2)] == pytest.approx([4, 4])


def test_the_trained_encoder_in_words():
    data = json.loads((files("lowrank_tutor") / "data" / "attention_spectra.json").read_text(encoding="utf-8"))
    rows = {row["layer"]: row for row in data["rows"] if row["n"] == 256}
    at = data["meta"]["ranks"].index(64)
    cut = {layer: np.array(row["cut"])[:, at] for layer, row in rows.items()}
    mean = {layer: cuts.mean() for layer, cuts in cut.items()}
    assert min(mean, key=mean.get) == 6
    assert mean[6] < 0.1 * min(mean[layer] for layer in range(1, 6))
    assert mean[1] < min(mean[2], mean[3])
    over = sum((cuts > 0.5).sum() for cuts in cut.values())
    assert over == 4
    assert f"four of the 72 are still off by more than half, one of layer 1 by {cut[1].max():.0%}" in TEXT
    assert f"misses by {100 * mean[6]:.1f}% to {max(mean.values()):.0%}, averages" in TEXT
    pooled = [row["pooled"][at] for row in rows.values()]
    assert f"averages of windows by {min(pooled):.0%} to {max(pooled):.0%}" in TEXT
    drawn = [row["drawn"][at] for row in rows.values()]
    assert f"random mixtures by {min(drawn):.0%} to {max(drawn):.0%}, more than answering zero" in TEXT
    assert math.sqrt(256 / 64) == 2
    assert "{prf:ref}`thm-prv` says about $\\sqrt{n/k}$, here 200%" in TEXT
    features = [row["performer"] for row in rows.values()]
    assert f"Performer with 256 features by {min(features):.0%} to {max(features):.0%}" in TEXT
    assert data["meta"]["features"] == 256
    blind = [row["mean_of_values"] for row in rows.values()]
    assert f"the mean of all values by {100 * min(blind):.0f} to {100 * max(blind):.0f} percent" in TEXT
    assert data["meta"]["heads"] == {"number": 12, "width": 32}
    assert len(data["meta"]["topics"]) == 24


def test_the_error_of_the_cut_grows_with_n_at_a_fixed_rank_and_not_at_a_fixed_share():
    data = json.loads((files("lowrank_tutor") / "data" / "attention_spectra.json").read_text(encoding="utf-8"))
    ranks = data["meta"]["ranks"]
    cut = {(row["layer"], row["n"]): np.mean(row["cut"], axis=0) for row in data["rows"]}

    def line(layer, rank):
        return [cut[layer, n][ranks.index(rank or n // 4)] for n in (128, 256, 512)]

    for layer in range(1, 7):
        fixed, share = line(layer, 64), line(layer, None)
        assert fixed[0] < fixed[1] < fixed[2]
        assert fixed[2] > 2 * fixed[0]
        assert share[2] < share[0], "or falls"
        assert fixed[2] / fixed[0] > 2 * share[0] / share[2], "it falls much less than the other grows"

    def growth(layer, error):
        """The exponent with which the rank grows that reaches an error: straight lines through logarithms of ranks."""
        first, last = (np.interp(-error, -cut[layer, n], np.log2(ranks[: len(cut[layer, n])])) for n in (128, 512))
        return (last - first) / 2

    for error, layers, low, high in ((0.1, 5, 0.76, 0.96), (0.2, 6, 0.37, 0.93)):
        found = [growth(layer, error) for layer in range(1, layers + 1)]
        assert low <= min(found) <= max(found) <= high
    assert growth(6, 0.1) == pytest.approx(0.5, abs=0.02)


def degree(B, tolerance):
    """The least p for which the Chebyshev series of exp on [-B, B], cut after p, leaves at most tolerance over exp(B).

    It leaves no more than twice the sum of the modified Bessel functions I_j(B) over all j > p.
    """
    left = 2 * np.cumsum(iv(np.arange(200, 0, -1), B))[::-1]
    return int(np.argmax(left * math.exp(B) <= tolerance))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_rank_is_at_most_what_the_theorem_says(d):
    rng = np.random.default_rng(d)
    q, keys = rng.standard_normal((2, 300, d))
    logits = q @ keys.T / math.sqrt(d)
    s = np.linalg.svd(softmax(logits), compute_uv=False)
    assert s[0] >= 1 - 1e-12
    for tolerance in (1e-2, 1e-5, 1e-9):
        p = degree(np.ptp(logits, axis=1).max() / 2, tolerance)
        assert (s > tolerance).sum() <= math.comb(p + d, d)


def test_the_bound_beside_each_rank_is_above_it_and_says_nothing_from_width_2_on(chapter):
    """The least degree at which Taylor's remainder is small enough, by sums of the series itself."""
    counted = chapter["counted"]
    ranks, bounds = ([counted[f"d = {d}, {what}"] for d in (1, 2, 3, 4)] for what in ("rank of P", "bound"))
    assert all(rank <= bound for rank, bound in zip(ranks, bounds, strict=True))
    assert bounds[1:] == [512, 512, 512]
    assert f"For width 1 it allows {bounds[0]}, and from width 2 on all 512." in TEXT
    for B in (1.0, 8.0, 11.0):
        for p in (20, 60):
            rest = math.fsum(B**j / math.factorial(j) for j in range(p + 1, p + 100))
            assert rest <= math.exp(B) * B ** (p + 1) / math.factorial(p + 1)


def test_the_training_study_in_words():
    data = json.loads((files("lowrank_tutor") / "data" / "training_study.json").read_text(encoding="utf-8"))
    runs = {}
    for row in data["rows"]:
        runs.setdefault(row["kind"], []).append([loss for _, loss in row["curve"]])
    assert {len(each) for each in runs.values()} == {3}, "three seeds each"
    assert data["meta"]["slow_rate_of_e"] == 1 / 20
    assert f"read {data['meta']['sizes']['n']} bytes" in TEXT
    last = {kind: np.mean([run[-1] for run in each]) for kind, each in runs.items()}
    spread = {kind: np.std([run[-1] for run in each], ddof=1) for kind, each in runs.items()}
    assert f"$\\ln 256 = {math.log(256):.2f}$" in TEXT
    assert math.exp(-last["exact"]) > 1 / 5
    assert f"with {last['exact']:.2f} nats a byte; no attention ends at {last['none']:.2f}." in TEXT
    slow, stays = last["linformer k=32 from averages, E slow"], last["linformer k=32 averages, not learned"]
    assert f"Nearest, at {slow:.2f}, comes a Linformer" in TEXT
    assert f"averages left as they are come to {stays:.2f}." in TEXT
    assert [slow, stays] == sorted(last.values())[1:3]
    started = ("linformer k=32 from averages, E slow", "linformer k=32 averages, not learned")
    drawn = "linformer k=32 random, not learned"
    learned = [loss for kind, loss in last.items() if "linformer" in kind and kind not in (*started, drawn)]
    assert len(learned) == 7
    assert f"ends between {min(learned):.2f} and {max(learned):.2f}; drawn once" in TEXT
    assert f"never learned, at {last[drawn]:.2f}." in TEXT
    assert f"Linear attention comes to {last['linear']:.2f}; Performer to {last['performer m=128']:.2f} with" in TEXT
    assert f"{last['performer m=128 redrawn']:.2f} with features redrawn" in TEXT
    assert f"and {last['performer-ReLU m=128 redrawn']:.2f} with their ReLU features" in TEXT
    assert max(spread.values()) < 0.1
    assert min(learned) - stays > 4 * max(spread.values()), "the order that the text tells is beyond the spread"
    assert slow - last["exact"] > 4 * max(spread.values())


def test_averages_lead_for_a_while():
    data = json.loads((files("lowrank_tutor") / "data" / "training_study.json").read_text(encoding="utf-8"))
    steps = np.arange(100, 2001)

    def loss(kind):
        runs = [row["curve"] for row in data["rows"] if row["kind"] == kind]
        measured, losses = np.mean(runs, axis=0).T
        return np.interp(steps, measured, losses)

    kinds = averages, exact = "linformer k=32 averages, not learned", "exact"
    (until,) = re.findall(r"averages are even or ahead until step (\d+) ", TEXT)
    assert steps[loss(averages) < loss(exact)].max() == pytest.approx(int(until), abs=5)
    ends = []
    for pick in (min, np.median, max):
        seconds = {kind: pick(data["meta"]["seconds_of_a_step"][kind]) * steps for kind in kinds}
        later = np.interp(seconds[exact], seconds[averages], loss(averages)) > loss(exact)
        ends.append(seconds[exact][later & (steps > 500)].min())
    about, low, high = map(int, re.search(r"lead for about (\d+) seconds \((\d+) to (\d+), as", TEXT).groups())
    assert ends[1] == pytest.approx(about, abs=2)
    assert low < min(ends) < max(ends) < high
    assert max(ends) - min(ends) > 0.5 * (high - low)
