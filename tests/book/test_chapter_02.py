"""SVD and PCA: its explorers, tables and exercises, judged by NumPy alone."""

import numpy as np
import pytest
from chapters import CHAPTERS
from sklearn.neighbors import NearestNeighbors

from lowrank_tutor.kit.questions import check

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("02-")]


def digits_cut(chapter, *, k):
    """PCA by the eigenvalues of the covariance matrix: another way than the chapter's SVD."""
    return {"relative_error": np.sqrt(max(0, 1 - explained(chapter["X"])[k - 1]))}


def explained(x):
    """The variance explained by 1, 2, ... axes."""
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    return np.cumsum(variances) / variances.sum()


def product_parts(chapter, *, t):
    squares = [sigma ** (4 * t + 2) for sigma in (5, 4, 3, 2, 1)]
    return {"share": squares[0] / sum(squares)}


def noise_cut(chapter, *, noise, k):
    signal = chapter["signal"]
    drawn = np.random.default_rng(1).standard_normal((80, 60))
    u, s, vt = np.linalg.svd(signal + noise * drawn, full_matrices=False)
    error = np.linalg.norm(u[:, :k] @ np.diag(s[:k]) @ vt[:k] - signal) / np.linalg.norm(signal)
    return {"error_against_signal": error, "above_threshold": np.sum(s > threshold(noise))}


def threshold(noise):
    """The formula of Gavish and Donoho for a table of 80 by 60."""
    beta = 60 / 80
    factor = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    return factor * np.sqrt(80) * noise


def test_threshold_in_other_draws(chapter):
    """The table below the figure: the best k and what the threshold keeps, in the draw shown and in twenty others."""
    for noise, here, others in zip(chapter["noises"], chapter["here"], chapter["others"], strict=True):
        for seed, (best, rule) in zip([1, *range(1000, 1020)], [here, *others], strict=True):
            noisy = chapter["signal"] + noise * np.random.default_rng(seed).standard_normal((80, 60))
            u, s, vt = np.linalg.svd(noisy, full_matrices=False)
            gained = 2 * s * np.einsum("mi,mn,in->i", u, chapter["signal"], vt) - s**2  # what each sheet takes off
            assert best == np.argmax(np.cumsum(gained)) + 1, (noise, seed)
            assert rule == np.sum(s > threshold(noise)), (noise, seed)


EXPLORERS = {"digits-cut": digits_cut, "noise-cut": noise_cut, "product-parts": product_parts}


def test_axes_for_variance_share(chapter):
    shares = explained(chapter["X"])
    needed = [1 + next(i for i, share in enumerate(shares) if share >= goal) for goal in chapter["goals"]]
    assert needed == chapter["needed"]


@pytest.mark.parametrize("k", [4, 5, 64])
def test_nearest_digits(chapter, k):
    axes = np.linalg.eigh(np.cov(chapter["X"], rowvar=False))[1]
    places = chapter["X"] @ axes[:, ::-1][:, :k]
    nearest = NearestNeighbors(n_neighbors=1).fit(places).kneighbors(return_distance=False)[:, 0]
    right = np.mean(chapter["shown"][nearest] == chapter["shown"])
    assert chapter["read_right"](k) == pytest.approx(right, abs=2 / 1797)  # a tie or two
    assert (right >= 0.9) == (k >= chapter["enough"])


def test_uncentered_directions(chapter):
    """They point at the mean, and so does the first singular value of the digits."""
    for x in (chapter["points"], chapter["X"]):
        vector, mean = np.linalg.eigh(x.T @ x)[1][:, -1], x.mean(axis=0)
        assert abs(vector @ mean) > 0.99 * np.linalg.norm(mean)
    assert chapter["first"] == pytest.approx(np.linalg.eigvalsh(x.T @ x)[-1] / np.sum(x**2))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ex-svd-tail", [np.linalg.norm([2, 1]) / np.linalg.norm([5, 4, 3, 2, 1]), 2, 3]),
        ("ex-svd-hand", np.sqrt(np.roots([1, -3, 1]))),  # of A^T A = (1 1; 1 2)
    ],
)
def test_exercises_by_other_means(name, answer):
    assert check(name, answer)
