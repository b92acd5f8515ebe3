"""Attention: NumPy judges of its explorers, of the sentence of six words and of the bound on the rank."""

import math

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, softmax
from scipy.special import iv

from lowrank_tutor.attention import attention_weights

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("06-")]
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


def performer_error(chapter, *, d, length):
    """The features without any shift, which double precision allows for entries as small as these."""
    q, keys, values = (part[0, 0].numpy() for part in chapter["base"][d])
    q, keys = length * q, length * keys
    exact = softmax(q @ keys.T / math.sqrt(d)) @ values

    def features(x, w):
        x = x / d**0.25
        return np.exp(x @ w.T - (x**2).sum(axis=1, keepdims=True) / 2)

    errors = []
    for draw in chapter["draws"][d]:
        weights = features(q, draw.numpy()[:256]) @ features(keys, draw.numpy()[:256]).T
        result = weights / weights.sum(axis=1, keepdims=True) @ values
        errors.append(np.linalg.norm(result - exact) / np.linalg.norm(exact))
    return {
        "performer": np.mean(errors),
        "mean": np.linalg.norm(values.mean(axis=0) - exact) / np.linalg.norm(exact),
    }


EXPLORERS = {"attention-rank": attention_rank, "performer-error": performer_error}

SIX = {"the": (0, 0), "cat": (2, 0), "slept": (0, 2), "it": (1, 0), "was": (0, 1), "tired": (1, 1)}


def test_six_words_by_hand(chapter):
    """Entry by entry, in plain Python."""
    table = []
    for a, b in SIX.values():  # the query is (a, b) times ((0, 1), (2, 0))
        powers = [math.exp((2 * b * c + a * d) / math.sqrt(2)) for c, d in SIX.values()]
        table.append([power / sum(powers) for power in powers])
    assert list(chapter["WORDS"]) == list(SIX)
    np.testing.assert_allclose(chapter["weights"], table)
    np.testing.assert_allclose(chapter["output"], np.array(table) @ [(2 * a, b) for a, b in SIX.values()])


def test_row_beside_performer_curve(chapter):
    q, keys, _ = (part[0, 0].numpy() for part in chapter["base"][16])
    true = softmax(0.25 * q[:1] @ (0.25 * keys).T / 4)[0]
    row = chapter["performer_error"](d=16, length=0.25)[0].axes[0]
    exact = next(line for line in row.lines if line.get_label() == "exact")
    np.testing.assert_allclose(exact.get_ydata(), true[:16], rtol=1e-6)
    estimated = next(line for line in row.lines if line.get_label() == "estimated")
    assert np.abs(estimated.get_ydata() - true[:16]).max() < 0.1 * true.max()


@pytest.mark.parametrize("size", [0.01, 0.5, 3.0])
def test_softmax_error(size):
    """No two rows come further apart than their logits; two equal weights come as far, nearly, by a small error."""
    g = np.random.default_rng(0)
    x = g.normal(scale=3, size=(500, 12))
    y = x + size * g.choice([-1, 1], size=x.shape)
    assert np.abs(softmax(x) - softmax(y)).sum(axis=1).max() <= size
    x, y = np.array([[0.0, 0.0]]), np.array([[size, -size]])
    assert np.abs(softmax(x) - softmax(y)).sum() == pytest.approx(np.tanh(size))


def degree(B, tolerance):
    """The least p for which the Chebyshev series of exp on [-B, B], cut after p, leaves at most tolerance over exp(B).

    It leaves no more than twice the sum of the modified Bessel functions I_j(B) over all j > p.
    """
    left = 2 * np.cumsum(iv(np.arange(200, 0, -1), B))[::-1]
    return int(np.argmax(left * math.exp(B) <= tolerance))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_polynomial_bounds_rank(d):
    q, keys = torch.randn(2, 1, 1, 300, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    p = attention_weights(q, keys)[0, 0].numpy()
    s = np.linalg.svd(p, compute_uv=False)
    assert s[0] >= 1 - 1e-12
    for tolerance in (1e-2, 1e-5, 1e-9):
        assert (s > tolerance).sum() <= math.comb(degree(np.ptp(np.log(p), axis=1).max() / 2, tolerance) + d, d)


def test_bounds_in_bars(chapter):
    counted = chapter["counted"]
    ranks, bounds = ([counted[f"d = {d}, {what}"] for d in (1, 2, 3, 4)] for what in ("rank of P", "bound"))
    assert all(rank <= bound for rank, bound in zip(ranks, bounds, strict=True))
