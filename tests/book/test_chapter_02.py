"""SVD and PCA: its explorers, tables and exercises, judged by NumPy alone."""

import numpy as np
import pytest
from chapters import CHAPTERS

from lowrank_tutor.exercises import check

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("02-")]


def digits_cut(chapter, *, k):
    """PCA by the eigenvalues of the covariance matrix: another way than the chapter's SVD."""
    variances = np.linalg.eigvalsh(np.cov(chapter["X"], rowvar=False))[::-1]
    explained = variances[:k].sum() / variances.sum()
    return {"variance_explained": explained, "relative_error": np.sqrt(max(0, 1 - explained))}


def noise_cut(chapter, *, noise, k):
    signal = chapter["S"]
    drawn = np.random.default_rng(1).standard_normal((80, 60))
    u, s, vt = np.linalg.svd(signal + noise * drawn, full_matrices=False)
    error = np.linalg.norm(u[:, :k] @ np.diag(s[:k]) @ vt[:k] - signal) / np.linalg.norm(signal)
    beta = 60 / 80
    factor = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    return {"error_against_signal": error, "above_threshold": np.sum(s > factor * np.sqrt(80) * noise)}


EXPLORERS = {"digits-cut": digits_cut, "noise-cut": noise_cut}


def test_axes_for_variance_share(chapter):
    explained = [digits_cut(chapter, k=k)["variance_explained"] for k in range(1, 65)]
    needed = [1 + next(i for i, share in enumerate(explained) if share >= goal) for goal in chapter["goals"]]
    assert needed == chapter["needed"]
    assert chapter["every_direction"] == np.linalg.matrix_rank(chapter["X"] - chapter["X"].mean(axis=0))


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
