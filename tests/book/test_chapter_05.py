"""Chapter 5: its explorers by Cholesky factors and integers, and its tables of scores."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS
from scipy.optimize import linprog

from lowrank_tutor.sentence import W_K, W_Q

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("05-")]


def scores_missed(w, left, right, m):
    """Return the relative error of the scores, for the moments left left^T and right right^T."""
    return np.linalg.norm(left.T @ (w - m) @ right) / np.linalg.norm(left.T @ w @ right)


def least_missed(w, left, right, k):
    spectrum = np.linalg.svd(left.T @ w @ right, compute_uv=False)
    return np.sqrt(np.sum(spectrum[k:] ** 2) / np.sum(spectrum**2))


def cut_of(w, k):
    u, s, vt = np.linalg.svd(w)
    return (u[:, :k] * s[:k]) @ vt[:k]


def roots(chapter):
    """Return Cholesky factors of the second moments of queries and documents."""
    return [np.linalg.cholesky(chapter["moments"][name]) for name in ("s_moment", "h_moment")]


def document_ranking(chapter, *, k):
    """Weigh the scores by Cholesky factors, where the package uses roots of another kind."""
    w, (left, right) = chapter["W"], roots(chapter)
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


def pairs_found(_chapter, *, n):
    """Multiply out each pair of squares in exact fractions, and round only then."""
    t = [Fraction(2 * i - (n - 1), n - 1) for i in range(n)]
    margins, lost = [], 0
    for a, b in itertools.combinations(t, 2):
        s = [2 * a * b * (a + b), -((a + b) ** 2) - 2 * a * b, 2 * (a + b), Fraction(-1)]
        margins.append(min((x - a) ** 2 * (x - b) ** 2 for x in t if x not in (a, b)))
        stored = [Fraction(float(np.float16(float(it)))) for it in s]
        scores = {x: sum(c * Fraction(float(np.float16(float(x**i)))) for i, c in enumerate(stored, 1)) for x in t}
        lost += min(scores[a], scores[b]) <= max(score for x, score in scores.items() if x not in (a, b))
    return {"lost": lost, "margin": float(min(margins))}


def ball(_chapter, *, v):
    """In u + v and u - v, whose steps do not mix: one grows by 1 + rate, the other shrinks by 1 - rate."""
    along, across = 1 + v, 1 - v
    for _ in range(80):
        rate = 0.1 * (1 - (along**2 - across**2) / 4)
        along, across = along * (1 + rate), across * (1 - rate)
    u_end, v_end = (along + across) / 2, (along - across) / 2
    return {"u_end": u_end, "v_end": v_end, "J": (1 - u_end * v_end) ** 2 / 2}


EXPLORERS = {
    "document-ranking": document_ranking,
    "where-w-looks": where_w_looks,
    "pairs-found": pairs_found,
    "ball": ball,
}


def test_table_of_the_six_words(chapter):
    assert (chapter["pairs"] == np.array(W_Q) @ np.transpose(W_K)).all()


def test_four_documents():
    """The scores worked by hand, and every set of k documents on the moment curve."""
    t = np.arange(1, 5)
    queries = np.array([[2 * j, -1] for j in t])
    table = queries @ [t, t**2]
    assert table.tolist() == [[1, 0, -3, -8], [3, 4, 3, 0], [5, 8, 9, 8], [7, 12, 15, 16]]
    assert np.linalg.matrix_rank(table) == 2
    for n, k in ((7, 2), (8, 3)):
        points = [[x**i for i in range(1, 2 * k + 1)] for x in range(n)]
        for wanted in itertools.combinations(range(n), k):
            s = -np.poly1d(np.repeat(wanted, 2), r=True)
            best = np.argsort(-(np.array(points) @ s.coeffs[-2::-1]))[:k]
            assert sorted(best.tolist()) == list(wanted)


def found_by_some_query(points, m):
    """Count the sets of m points that a plane separates from the others, by linear programs."""
    count = 0
    for first in itertools.combinations(range(len(points)), m):
        sides = np.where(np.isin(np.arange(len(points)), first), -1.0, 1.0)[:, None]
        rows = sides * np.c_[points, np.ones(len(points))]  # every score on its side, by 1 at least
        free = [(None, None)] * rows.shape[1]
        count += linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(points)), bounds=free).status == 0
    return count


@pytest.mark.parametrize(("n", "m"), [(3, 1), (6, 2), (7, 2), (9, 3)])
def test_fewest_numbers(n, m):
    """2m numbers find every set; with one number less no points do, on the curve or drawn."""
    curve = np.linspace(-1, 1, n)[:, None] ** np.arange(1, 2 * m + 1)
    every = math.comb(n, m)
    assert found_by_some_query(curve, m) == every
    drawn = np.random.default_rng(0).standard_normal((5, n, 2 * m - 1))
    assert all(found_by_some_query(points, m) < every for points in (curve[:, :-1], *drawn))


def in_place(chapter, k):
    """Count the three best documents in their places, with W cut and with the factors made for scores."""
    documents, query, truth = chapter["documents"], chapter["query"], chapter["truth"]
    order = np.argsort(-truth)[:3]
    a, b = roots(chapter)
    best = np.linalg.solve(a.T, cut_of(a.T @ chapter["W"] @ b, k)) @ np.linalg.inv(b)
    return [int((np.argsort(-(documents @ (query @ m)))[:3] == order).sum()) for m in (cut_of(chapter["W"], k), best)]


def test_best_three_settle(chapter):
    kept = {k: in_place(chapter, k) for k in chapter["ranks"]}
    first = [min(k for k in kept if all(kept[j][way] == 3 for j in kept if j >= k)) for way in (0, 1)]
    assert first == [28, 5]


def test_moments_beat_covariances(chapter):
    w, (a, b) = chapter["W"], chapter["moments"].values()

    def error(weight):
        left, right = np.linalg.cholesky(weight), np.linalg.cholesky(b)
        u, s, vt = np.linalg.svd(left.T @ w @ right)
        m = np.linalg.solve(left.T, (u[:, :8] * s[:8]) @ vt[:8]) @ np.linalg.inv(right)
        missed = w - m
        return np.sqrt(np.trace(missed.T @ a @ missed @ b) / np.trace(w.T @ a @ w @ b))

    assert error(a) < 0.5 * error(a - 1) < 0.5 * error(np.eye(48))


def test_table_of_scores_cut(chapter):
    table, u, v = chapter["table"], chapter["u"], chapter["v"]
    s = np.linalg.svd(table, compute_uv=False)
    missed = np.linalg.norm(table - (chapter["X"] @ u.T) @ (chapter["Y"] @ v.T).T)
    assert missed == pytest.approx(np.sqrt(np.sum(s[8:] ** 2)), rel=1e-9)
