"""Score with fewer numbers: what its explorers must read, by NumPy alone, and the numbers in its text."""

import numpy as np
import pytest
from chapters import CHAPTERS, run

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("05-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def bilinear_rank(chapter, *, k):
    """Scores are weighted by Cholesky factors here, where the package takes roots of another kind."""
    w, left, right = chapter["W"], np.linalg.cholesky(chapter["A"]), np.linalg.cholesky(chapter["B"])
    u, s, vt = np.linalg.svd(w)
    cut = w - (u[:, :k] * s[:k]) @ vt[:k]
    weighted = left.T @ w @ right
    spectrum = np.linalg.svd(weighted, compute_uv=False)
    return {
        "matrix_error": np.linalg.norm(cut) / np.linalg.norm(w),
        "score_error": np.linalg.norm(left.T @ cut @ right) / np.linalg.norm(weighted),
        "best_score_error": np.sqrt(np.sum(spectrum[k:] ** 2) / np.sum(spectrum**2)),
        "parameters": k * (48 + 40),
        "products": k * (48 + 40) + k,
    }


def score_by_hand(chapter, *, first, last):
    short = (2 * first + 2) * (3 - last)
    w = np.array([[2, -2], [1, -1]])
    return {"short_way": short, "long_way": np.array([first, 2]) @ w @ np.array([3, last])}


EXPLORERS = {"bilinear-rank": bilinear_rank, "score-by-hand": score_by_hand}


@pytest.fixture(scope="module")
def chapter():
    return run(CHAPTER).namespace


def test_the_smallest_example_scores_minus_four_by_both_routes():
    s, h, u, v = np.array([1, 2]), np.array([3, 4]), np.array([[2, 1]]), np.array([[1, -1]])
    assert (u @ s).tolist() == [4]
    assert (v @ h).tolist() == [-1]
    assert (u.T @ v).tolist() == [[2, -2], [1, -1]]
    assert s @ (u.T @ v) @ h == (u @ s) @ (v @ h) == -4
    assert "The score is $-4$ either way." in TEXT
    assert u.size + v.size == (u.T @ v).size == 4


def test_the_case_where_factors_save():
    s, h = np.array([1, 0, 2, -1, 1]), np.array([2, -1, 1, 3, 0])
    u, v = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]), np.array([[1, 1, 0, 0, 1], [0, 0, 1, -1, 0]])
    assert (u @ s) @ (v @ h) == s @ (u.T @ v) @ h == 6
    assert u.size + v.size == 20 < 25


def test_rank_one_cannot_score_as_a_diagonal_of_two_does():
    s, h, w = np.array([1, 2]), np.array([3, 4]), np.diag([2, 1])
    assert s @ w @ h == 14
    assert s @ np.diag([2, 0]) @ h == 6
    assert "the score is $2 \\cdot 3 + 2 \\cdot 4 = 14$" in TEXT


def test_moments_serve_the_scores_better_than_covariances_or_nothing(chapter):
    w, a, b = chapter["W"], chapter["A"], chapter["B"]

    def error(weight):
        left, right = np.linalg.cholesky(weight), np.linalg.cholesky(b)
        u, s, vt = np.linalg.svd(left.T @ w @ right)
        m = np.linalg.solve(left.T, (u[:, :8] * s[:8]) @ vt[:8]) @ np.linalg.inv(right)
        n = w - m
        return np.sqrt(np.trace(n.T @ a @ n @ b) / np.trace(w.T @ a @ w @ b))

    assert error(a) < 0.5 * error(a - 1) < 0.5 * error(np.eye(48))
    assert "the best factors miss the scores by 3%" in TEXT
    assert f"{error(a):.0%}" == "3%"


def test_the_table_of_scores_is_cut_where_its_own_spectrum_says(chapter):
    table, u, v = chapter["table"], chapter["u"], chapter["v"]
    s = np.linalg.svd(table, compute_uv=False)
    missed = np.linalg.norm(table - (chapter["X"] @ u.T) @ (chapter["Y"] @ v.T).T)
    assert missed == pytest.approx(np.sqrt(np.sum(s[8:] ** 2)), rel=1e-9)


def test_the_narrow_score_learns_the_truth_and_the_full_table_the_noise(chapter):
    """Over three seeds that the chapter does not use."""
    narrow, full = (np.array([chapter["learn"](k, seed) for seed in (10, 11, 12)]) for k in (2, None))
    assert narrow[:, 1].max() < 0.3
    assert full[:, 1].min() > 0.9
    assert full[:, 0].max() < 0.1 < narrow[:, 0].min()


def test_a_ridge_penalty_helps_the_full_table_as_much_as_the_text_says(chapter):
    torch, n, d = chapter["torch"], 500, 24
    best = []
    for seed in range(5):
        g = torch.Generator().manual_seed(seed)  # the draws of the chapter's learn()
        truth = torch.randn(d, 2, generator=g) @ torch.randn(2, d, generator=g) / d
        s, h = torch.randn(2, n, d, generator=g)
        y = (s @ truth * h).sum(1) + 0.5 * torch.randn(n, generator=g)
        x = (s[:, :, None] * h[:, None, :]).reshape(n, d * d).double().numpy()
        u, sizes, vt = np.linalg.svd(x, full_matrices=False)
        target = truth.flatten().double().numpy()
        found = [vt.T @ (sizes / (sizes**2 + r) * (u.T @ y.double().numpy())) for r in np.geomspace(1, 1e5, 61)]
        best.append(min(np.linalg.norm(w - target) for w in found) / np.linalg.norm(target))
    assert f"{np.mean(best):.0%}" == "62%"
    assert "at its best leaves about 62%" in TEXT


def test_a_nuclear_norm_nearly_finds_the_truth_without_being_told_the_rank(chapter):
    errors = {k: np.mean([chapter["learn"](k, seed)[1] for seed in range(5)]) for k in (2, 4, 8)}
    assert f"That is {chapter['off'].mean():.0%}, close to the {errors[2]:.0%} of factors" in TEXT
    assert f"({errors[4]:.0%} for 4, {errors[8]:.0%} for 8)" in TEXT
    assert errors[2] < chapter["off"].mean() < errors[4]


def test_lowering_singular_values_minimizes_the_penalized_fit(chapter):
    """With the identity for data one long step ends at the lowered spectrum; and no other matrix nearby is better."""
    rng = np.random.default_rng(0)
    target = rng.standard_normal((24, 24))
    m = chapter["penalized"](np.eye(576), target.ravel(), 3.0, steps=3)
    u, s, vt = np.linalg.svd(target)
    assert m == pytest.approx((u * np.maximum(s - 3, 0)) @ vt)

    def total(matrix):
        return np.sum((matrix - target) ** 2) / 2 + 3 * np.linalg.svd(matrix, compute_uv=False).sum()

    assert all(total(m) < total(m + 0.01 * rng.standard_normal(m.shape)) for _ in range(20))


def test_without_moments_the_scores_are_off_as_the_first_figure_says(chapter):
    assert f"{bilinear_rank(chapter, k=8)['score_error']:.3f}" == "0.710"
    assert bilinear_rank(chapter, k=1)["score_error"] > 1 > bilinear_rank(chapter, k=2)["score_error"]


def test_the_exercise_by_hand():
    s, h, u, v = np.array([2, -1]), np.array([1, 1, 2]), np.array([[1, 3]]), np.array([[2, 0, 1]])
    w = u.T @ v
    assert w.tolist() == [[2, 0, 1], [6, 0, 3]]
    assert (s @ w).tolist() == [-2, 0, -1]
    assert s @ w @ h == (u @ s) @ (v @ h) == -4


def test_a_million_documents():
    n = 10**6
    assert f"{768**2 + 768 * n:.1e}" == "7.7e+08"
    assert f"{768 * 64 + (768 * 64 + 64) * n:.1e}" == "4.9e+10"
    assert f"{768 * 64 + 64 * n:.1e}" == "6.4e+07"
