"""Bilinear scoring: score with fewer numbers: what its explorers must read, and the numbers in its text."""

import numpy as np
import pytest
from chapters import CHAPTERS
from scipy.spatial.distance import pdist

from lowrank_tutor.bilinear import fit_factors
from lowrank_tutor.byhand.sentence import W_K, W_Q

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("05-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def scores_missed(w, left, right, m):
    """Root mean square of the missed scores, relative to that of all; the moments are left left^T and right right^T."""
    return np.linalg.norm(left.T @ (w - m) @ right) / np.linalg.norm(left.T @ w @ right)


def least_missed(w, left, right, k):
    spectrum = np.linalg.svd(left.T @ w @ right, compute_uv=False)
    return np.sqrt(np.sum(spectrum[k:] ** 2) / np.sum(spectrum**2))


def cut_of(w, k):
    u, s, vt = np.linalg.svd(w)
    return (u[:, :k] * s[:k]) @ vt[:k]


def document_ranking(chapter, *, k):
    """Scores are weighted by Cholesky factors here, where the package takes roots of another kind."""
    w, left, right = chapter["W"], np.linalg.cholesky(chapter["A"]), np.linalg.cholesky(chapter["B"])
    return {
        "cut": scores_missed(w, left, right, cut_of(w, k)),
        "best": least_missed(w, left, right, k),
        "numbers": k * (48 + 40),
    }


def where_w_looks(chapter, *, spread):
    w, left = np.diag([2.0, 1.0]), np.linalg.cholesky([[1, 0.6 * spread], [0.6 * spread, spread**2]])
    return {
        "cut": scores_missed(w, left, np.eye(2), np.diag([2.0, 0.0])),
        "best": least_missed(w, left, np.eye(2), 1),
    }


EXPLORERS = {"document-ranking": document_ranking, "where-w-looks": where_w_looks}


def in_place(chapter, k):
    """How many of the three best documents stand in their places, with W cut and with the factors made for scores."""
    documents, query, truth = chapter["documents"], chapter["query"], chapter["truth"]
    order = np.argsort(-truth)[:3]
    a, b = (np.linalg.cholesky(chapter[name]) for name in "AB")
    best = np.linalg.solve(a.T, cut_of(a.T @ chapter["W"] @ b, k)) @ np.linalg.inv(b)
    return [int((np.argsort(-(documents @ (query @ m)))[:3] == order).sum()) for m in (cut_of(chapter["W"], k), best)]


def test_the_best_three_stand_still_from_the_ranks_that_the_text_names(chapter):
    kept = {k: in_place(chapter, k) for k in chapter["ranks"]}
    first = [min(k for k in kept if all(kept[j][way] == 3 for j in kept if j >= k)) for way in (0, 1)]
    assert f"The best three do not settle before $k = {first[0]}$" in TEXT
    assert f"and $k = {first[1]}$ is enough" in TEXT
    assert first[0] * (48 + 40) > 48 * 40


def test_the_ten_documents_are_a_typical_draw(chapter):
    """Of 400 draws none is nearer to what they all do on average, as the comment in the cell says."""
    w, (a, b) = chapter["W"], (np.linalg.cholesky(chapter[name]) for name in "AB")
    ranks = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36)
    best = [np.linalg.solve(a.T, cut_of(a.T @ w @ b, k)) @ np.linalg.inv(b) for k in ranks]
    tables = np.array([[cut_of(w, k) for k in ranks], best])
    found = []
    for seed in range(400):
        draw = np.random.default_rng(seed)
        query = 1 + chapter["mix_s"] @ draw.standard_normal(48)
        documents = draw.standard_normal((10, 40)) @ chapter["mix_h"].T
        order = np.argsort(-(documents @ (query @ w)))[:3]
        scores = (query @ tables) @ documents.T  # (2, ranks, 10)
        found.append((np.argsort(-scores, axis=2)[..., :3] == order).sum(axis=2))
    distance = ((found - np.mean(found, axis=0)) ** 2).sum(axis=(1, 2))
    assert distance.argmin() == 16


def test_the_six_words_score_each_other_as_the_text_says(chapter):
    words = ["the", "cat", "slept", "it", "was", "tired"]
    numbers = np.array([[0, 0], [2, 0], [0, 2], [1, 0], [0, 1], [1, 1]])
    w = np.array([[0, 1], [2, 0]])
    assert chapter["pairs"].tolist() == w.tolist()
    assert (np.array(W_Q) @ np.array(W_K).T).tolist() == w.tolist(), "chapter 6 splits this table into two"
    assert list(chapter["WORDS"]) == words
    of = {(a, b): s @ w @ h for a, s in zip(words, numbers, strict=True) for b, h in zip(words, numbers, strict=True)}
    assert of["slept", "cat"] == 8
    assert of["slept", "was"] == 0
    assert max((of["it", b], b) for b in words) == (2, "slept")
    assert of["it", "was"] == of["it", "tired"] == 1
    assert sorted(((of["tired", b], b) for b in words), reverse=True)[:2] == [(4, "cat"), (3, "tired")]


def test_the_small_case_keeps_the_product_with_the_smaller_weight():
    root, w = np.diag([1.0, 3.0]), np.diag([2.0, 1.0])
    best = np.linalg.inv(root) @ cut_of(root @ w, 1)
    np.testing.assert_allclose(best, np.diag([0, 1]), atol=1e-12)
    assert np.sum((root @ (w - best)) ** 2) == pytest.approx(4)
    assert np.sum((root @ (w - np.diag([2, 0]))) ** 2) == pytest.approx(9)
    assert "is $9 \\cdot 1 = 9$; without $2 s_1 h_1$ it is $2^2 \\cdot 1 = 4$" in TEXT


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


def test_moments_serve_the_scores_better_than_covariances_or_nothing(chapter):
    w, a, b = chapter["W"], chapter["A"], chapter["B"]

    def error(weight):
        left, right = np.linalg.cholesky(weight), np.linalg.cholesky(b)
        u, s, vt = np.linalg.svd(left.T @ w @ right)
        m = np.linalg.solve(left.T, (u[:, :8] * s[:8]) @ vt[:8]) @ np.linalg.inv(right)
        n = w - m
        return np.sqrt(np.trace(n.T @ a @ n @ b) / np.trace(w.T @ a @ w @ b))

    assert error(a) < 0.5 * error(a - 1) < 0.5 * error(np.eye(48))


def test_the_table_of_scores_is_cut_where_its_own_spectrum_says(chapter):
    table, u, v = chapter["table"], chapter["u"], chapter["v"]
    s = np.linalg.svd(table, compute_uv=False)
    missed = np.linalg.norm(table - (chapter["X"] @ u.T) @ (chapter["Y"] @ v.T).T)
    assert missed == pytest.approx(np.sqrt(np.sum(s[8:] ** 2)), rel=1e-9)


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


def test_over_the_pass_one_walk_falls_to_zero_and_the_other_rises(chapter):
    u = chapter["u_walk"]
    down, up = (np.asarray(walk) for walk in chapter["walks"].values())
    for walk, v in ((down, u), (up, -u)):
        np.testing.assert_allclose(walk, [np.linalg.norm([[1 - a * b]]) ** 2 / 2 for a, b in zip(u, v, strict=True)])
    top = int(np.abs(u).argmin())
    assert down[top] == up[top] == 0.5
    near = (abs(u) < 1) & (u != u[top])
    assert down[near].max() < 0.5 < up[near].min()


def test_small_starts_fix_distances(chapter):
    """Descent keeps U^T U - V^T V, here nearly zero: the balanced factors are unique up to a rotation."""
    target = chapter["S"]
    left, sizes, _ = np.linalg.svd(target)
    for seed in range(10, 13):
        fit = fit_factors(target, 2, rng=seed)
        np.testing.assert_allclose(fit.u @ fit.v.T, cut_of(target, 2), atol=1e-4)
        np.testing.assert_allclose(pdist(fit.u), pdist(left[:, :2] * np.sqrt(sizes[:2])), atol=0.02)


def test_gradient_flow_keeps_balance():
    rng = np.random.default_rng(0)
    u, v, target = rng.standard_normal((5, 2)), rng.standard_normal((4, 2)), rng.standard_normal((5, 4))
    rest = u @ v.T - target
    du, dv = -rest @ v, -rest.T @ u
    np.testing.assert_allclose(du.T @ u + u.T @ du, dv.T @ v + v.T @ dv)


def test_the_exercise_by_hand():
    s, h, u, v = np.array([2, -1]), np.array([1, 1, 2]), np.array([[1, 3]]), np.array([[2, 0, 1]])
    w = u.T @ v
    assert w.tolist() == [[2, 0, 1], [6, 0, 3]]
    assert (s @ w).tolist() == [-2, 0, -1]
    assert s @ w @ h == (u @ s) @ (v @ h) == -4


def test_queries_along_one_axis_need_one_row():
    root, w = np.diag([0.0, 1.0]), np.diag([2.0, 1.0])  # A is its own root, and B is I
    assert np.sum((root @ (w - np.diag([0.0, 1.0]))) ** 2) == 0
    assert np.sum((root @ (w - cut_of(w, 1))) ** 2) == pytest.approx(1)


def test_a_million_documents():
    n = 10**6
    assert f"{768**2 + 768 * n:.1e}" == "7.7e+08"
    assert f"{768 * 64 + (768 * 64 + 64) * n:.1e}" == "4.9e+10"
    assert f"{768 * 64 + 64 * n:.1e}" == "6.4e+07"
