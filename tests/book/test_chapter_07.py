"""Linformer: judges of what the chapter's explorer, curves and tables show, by NumPy alone."""

import math

import numpy as np
import pytest
from chapters import CHAPTERS, softmax

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("07-")]
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


def test_best_mixing(chapter):
    """No mixing of rank k near the best keeps more, and means of windows keep a little less."""
    gamma = 0.95 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    _, vectors = np.linalg.eigh(gamma)
    rng = np.random.default_rng(0)
    for k, best, means in zip(chapter["RANKS"], chapter["best"], chapter["means"], strict=True):
        own = vectors[:, -k:] @ vectors[:, -k:].T
        assert chapter["lost"](own) == pytest.approx(best)
        near = np.linalg.qr(vectors[:, -k:] + 0.01 * rng.standard_normal((N, k)))[0]
        assert best < chapter["lost"](near @ near.T)
        inside = gamma[: N // k, : N // k].mean()  # a window's mean has this variance
        assert means == pytest.approx(math.sqrt(1 - inside))
        assert 1 < means / best < math.pi / math.sqrt(6)


def test_hidden_tokens(chapter):
    """Zeros alone let every hidden token vote for the value zero; by the rules, padding changes nothing."""
    assert chapter["moved_by_padding"] == 0
    q, keys, values = (chapter[name][0, 0, :8].numpy() for name in ("q", "keys", "values"))
    powers = np.exp(q @ keys.T / math.sqrt(D))
    zeroed = powers / (powers.sum(axis=1, keepdims=True) + N - 8) @ values
    assert chapter["zeroed"].numpy() == pytest.approx(zeroed)


def test_rules_on_cut_windows(chapter):
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


def test_mixtures_hold_the_future(chapter):
    moved, dense, q = chapter["moved"], chapter["dense"].numpy(), chapter["q"][0, 0].numpy()
    weights = softmax(q @ (dense @ chapter["keys"][0, 0].numpy()).T / math.sqrt(D))
    assert moved[0, 0, 0].numpy() == pytest.approx(weights[0] @ dense[:, -1] * 10 * np.ones(D))
