"""Ask how low the rank is: what its explorers must read, by NumPy alone, and the numbers in its text."""

import json
import math
from importlib.resources import files

import numpy as np
import pytest
from chapters import CHAPTERS, run

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("06-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
N, D = 256, 32


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def attention_rank(chapter, *, sharpness, rho):
    x = chapter["noise"].numpy().copy()
    for i in range(1, N):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * chapter["noise"].numpy()[i]
    q, keys, values = (x @ chapter[name].numpy() for name in ("W_q", "W_k", "W_v"))
    logits = sharpness * q @ keys.T / math.sqrt(D)
    p = softmax(logits)
    u, s, vt = np.linalg.svd(p)
    spectrum = np.linalg.svd(p @ values, compute_uv=False)
    return {
        "logits": np.linalg.matrix_rank(logits, tol=1e-10 * np.linalg.norm(logits, 2)),
        "softmax": (s > 1e-6 * s[0]).sum(),
        "cut": np.linalg.norm(((u[:, 16:] * s[16:]) @ vt[16:]) @ values) / np.linalg.norm(p @ values),
        "least": math.sqrt((spectrum[16:] ** 2).sum() / (spectrum**2).sum()),
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
        "one_weight": math.sqrt(math.expm1(2 * math.sqrt(16) * length**2) / m),
    }


EXPLORERS = {"attention-rank": attention_rank, "performer-error": performer_error}


@pytest.fixture(scope="module")
def chapter():
    return run(CHAPTER).namespace


def test_the_logits_have_rank_32_everywhere_and_softmax_nearly_full_rank_in_most_places(chapter):
    places = [(s, rho) for s in chapter["SHARPNESS"] for rho in chapter["RHOS"]]
    found = [attention_rank(chapter, sharpness=s, rho=rho) for s, rho in places]
    assert {f["logits"] for f in found} == {32}
    assert np.mean([f["softmax"] > 0.94 * N for f in found]) > 0.5
    high = sum(f["softmax"] >= 0.9 * N for f in found)
    assert f"nine tenths of full rank or more in {high} of the {len(places)} positions" in TEXT
    lost = {place: 1 - f["softmax"] / N for place, f in zip(places, found, strict=True)}
    assert max(lost, key=lost.get) == (0.25, 0.999)  # soft, and tokens alike
    assert 0.72 < max(lost.values()) < 0.78  # "three quarters"
    assert 0.4 < max(share for (s, _), share in lost.items() if s == 16) < 0.43  # "a little more than two fifths"
    assert min(f["cut"] for f in found) < 1e-3
    assert max(f["cut"] for f in found) > 0.5


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


def test_performer_in_numbers(chapter):
    soft, long = (performer_error(chapter, m=256, length=length) for length in (0.5, 1.0))
    assert f"At spread 0.5, 256 features miss by {soft['performer']:.0%}." in TEXT
    assert f"At spread 1 they miss by {long['performer']:.0%}" in TEXT
    assert f"looks at no query at all, misses by {long['mean']:.0%}" in TEXT


def test_linear_attention_by_hand():
    features = {"query": 1.0, "keys": [1.0, 3.0]}  # elu(0) + 1; elu(0) + 1 and elu(2) + 1
    weights = np.array(features["keys"]) * features["query"]
    weights /= weights.sum()
    assert weights.tolist() == [0.25, 0.75]
    assert weights @ [4.0, 8.0] == 7
    assert "\\tfrac14 \\cdot 4 + \\tfrac34 \\cdot 8 = 7" in TEXT


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
    assert f"four of the 72 heads are still off by more than half, one of layer 1 by {cut[1].max():.0%}" in TEXT
    pooled = [row["pooled"][at] for row in rows.values()]
    assert f"averages of windows miss by {min(pooled):.0%} to {max(pooled):.0%}" in TEXT
    assert min(row["drawn"][at] for row in rows.values()) > 1
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
        assert max(share) < 1.2 * min(share) or share[2] < share[0]
    told = "from {:.0%} to {:.0%} and {:.0%} in layer 2".format(*line(2, 64))
    assert told in TEXT
    assert "it stays where it was: {:.0%}, {:.0%}, {:.0%}.".format(*line(2, None)) in TEXT
    performer = [row["performer"] for row in data["rows"] if row["n"] == 256]
    assert f"misses these outputs by {min(performer):.0%} to {max(performer):.0%}" in TEXT


def cut_series(B, p, x):
    """The Chebyshev series of exp on [-B, B] after degree p, by NumPy's own interpolation at many nodes."""
    series = np.polynomial.Chebyshev.interpolate(np.exp, 200, domain=[-B, B])
    return series.truncate(p + 1)(x)


@pytest.mark.parametrize("B", [0.5, 2.0, 7.0])
def test_the_degree_leaves_no_more_than_the_tolerance_and_is_the_least_by_its_bound(chapter, B):
    tolerance, x = 1e-6, np.linspace(-B, B, 1001)
    p = chapter["degree"](B, tolerance)
    assert np.abs(cut_series(B, p, x) - np.exp(x)).max() * math.exp(B) <= tolerance * 1.001
    assert np.abs(cut_series(B, p - 1, x) - np.exp(x)).max() * math.exp(B) > tolerance / 3


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_rank_is_at_most_what_the_theorem_says(chapter, d):
    rng = np.random.default_rng(d)
    q, keys = rng.standard_normal((2, 300, d))
    logits = q @ keys.T / math.sqrt(d)
    s = np.linalg.svd(softmax(logits), compute_uv=False)
    assert s[0] >= 1 - 1e-12
    for tolerance in (1e-2, 1e-5, 1e-9):
        p = chapter["degree"](np.ptp(logits, axis=1).max() / 2, tolerance)
        assert (s > tolerance).sum() <= math.comb(p + d, d)


def test_the_training_study_in_words():
    data = json.loads((files("lowrank_tutor") / "data" / "training_study.json").read_text(encoding="utf-8"))
    runs = {}
    for row in data["rows"]:
        runs.setdefault(row["kind"], []).append(np.array(row["curve"]))
    assert {len(each) for each in runs.values()} == {3}, "three seeds each"
    last = {kind: np.mean([run[-1, 2] for run in each]) for kind, each in runs.items()}
    budget = min(run[-1, 1] for kind, each in runs.items() if kind != "none" for run in each)
    then = {kind: np.mean([np.interp(budget, run[:, 1], run[:, 2]) for run in each]) for kind, each in runs.items()}
    averages = "linformer k=64 averages, not learned"
    assert f"with {last['exact']:.2f} nats a byte; a model without attention ends at {last['none']:.2f}." in TEXT
    assert f"in the {budget:.0f} seconds" in TEXT
    assert f"they come to {then[averages]:.2f} and exact attention to {then['exact']:.2f}" in TEXT
    learned = [loss for kind, loss in last.items() if kind.startswith("linformer") and "not learned" not in kind]
    assert len(learned) == 5
    assert f"between {min(learned):.2f} and {max(learned):.2f};" in TEXT
    assert f"never learned ends at {last['linformer k=64 random, not learned']:.2f}" in TEXT
    assert f"Linear attention comes to {last['linear']:.2f}, Performer to {last['performer m=128']:.2f};" in TEXT
    spread = [np.std([run[-1, 2] for run in each], ddof=1) for each in runs.values()]
    assert max(spread) < 0.15, "the order that the text tells is beyond the spread between seeds"


def test_the_short_version_tells_windows_from_random_mixtures(chapter):
    attend, windows, drawn = (chapter[name] for name in ("linformer_attention", "windows", "drawn"))
    averages, random = (chapter["train"](lambda q, k, v, e=e: attend(q, k, v, e), steps=300) for e in (windows, drawn))
    assert averages < random
