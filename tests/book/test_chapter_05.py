"""Chapter 5: its explorers by Cholesky factors and integers, its tables of scores, and a trained
model's scores.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from lowrank_tutor.bilinear import factorize, score_error
from lowrank_tutor.figures.storyteller import CUTS, TALES, counted, measured
from lowrank_tutor.sentence import W_K, W_Q


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


def pairs_lost(n):
    """Count pairs that a third document beats; products of two 16-bit numbers are exact here."""
    t = np.linspace(-1, 1, n)
    powers = np.float16(t[:, None] ** np.arange(1, 5)).astype(float)
    lost = 0
    for pair in itertools.combinations(range(n), 2):
        a, b = t[[*pair]]
        query = [2 * a * b * (a + b), -((a + b) ** 2) - 2 * a * b, 2 * (a + b), -1]
        scores = powers @ np.float16(query).astype(float)
        lost += min(scores[[*pair]]) <= max(np.delete(scores, pair))
    return lost


EXPLORERS = {
    "document-ranking": document_ranking,
}


def test_table_of_the_six_words(chapter):
    assert (chapter["pairs"] == np.array(W_Q) @ np.transpose(W_K)).all()


def test_pairs_lost():
    assert next(n for n in range(5, 20) if pairs_lost(n)) == 13


def test_four_documents():
    """The scores worked by hand."""
    t = np.arange(1, 5)
    queries = np.array([[2 * j, -1] for j in t])
    table = queries @ [t, t**2]
    assert table.tolist() == [[1, 0, -3, -8], [3, 4, 3, 0], [5, 8, 9, 8], [7, 12, 15, 16]]
    assert np.linalg.matrix_rank(table) == 2


def found_by_some_query(points, m):
    """Count the sets of m points that a plane separates from the others, by linear programs."""
    count = 0
    for first in itertools.combinations(range(len(points)), m):
        sides = np.where(np.isin(np.arange(len(points)), first), -1.0, 1.0)[:, None]
        rows = sides * np.c_[points, np.ones(len(points))]  # every score on its side, by 1 at least
        free = [(None, None)] * rows.shape[1]
        count += (
            linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(points)), bounds=free).status == 0
        )
    return count


@pytest.mark.parametrize(("n", "m"), [(3, 1), (6, 2), (7, 2), (9, 3)])
def test_fewest_numbers(n, m):
    """2m numbers find every set; with one number less no points do, on the curve or drawn."""
    curve = np.linspace(-1, 1, n)[:, None] ** np.arange(1, 2 * m + 1)
    every = math.comb(n, m)
    assert found_by_some_query(curve, m) == every
    drawn = np.random.default_rng(0).standard_normal((5, n, 2 * m - 1))
    assert all(found_by_some_query(points, m) < every for points in (curve[:, :-1], *drawn))


def test_best_three_settle(chapter):
    """From k = 28 on with W cut, and from 5 on with the best factors, the order is right."""
    order = np.argsort(-chapter["truth"])[:3]
    for way, first in (("cut of W", 28), ("best for scores", 5)):
        wrong = []
        for k, factors in chapter["ways"].items():
            u, v = factors[way]
            scores = chapter["documents"] @ (chapter["query"] @ u.T @ v)
            if not np.array_equal(np.argsort(-scores)[:3], order):
                wrong.append(k)
        assert min(k for k in chapter["ranks"] if k > max(wrong)) == first


def test_covariance_triples_the_error(chapter):
    w, moments = chapter["W"], chapter["moments"]
    covariance = moments | {"s_moment": moments["s_moment"] - 1}
    errors = [score_error(w, *factorize(w, 8, **used), **moments) for used in (moments, covariance)]
    assert 2.5 < errors[1] / errors[0] < 3.5


def test_scores_of_model():
    """It says red at every rank, although the shares of right answers are those that the page
    names.
    """
    said = [measured(TALES["far fact"], "scores", k)["says"] for k in CUTS["scores"].settings]
    assert set(said) == {"red"}
    shares = [counted()["scores"][k]["answered"] for k in (1, 4, 8)]
    assert [round(share, 2) for share in shares[:2]] == [0.5, 0.87]
    assert shares[2] > 0.99


def test_whose_queries(chapter):
    assert round(chapter["asks"].mean(), 2) == 0.12
    judged = {use: [chapter["judged"](use, k) for k in chapter["RANKS"]] for use in chapter["USES"]}
    off, right = ({use: pairs[3][i] for use, pairs in judged.items()} for i in (0, 1))
    assert off["all words"] < off["cut of W"] == pytest.approx(0.39, abs=0.005)
    assert off["words that ask"] == pytest.approx(0.42, abs=0.005)
    assert right["all words"] == pytest.approx(0.8, abs=0.02)
    assert right["words that ask"] == pytest.approx(0.9, abs=0.005)
    best = [max(judged, key=lambda use: judged[use][i][1]) for i in range(6)]
    assert best == ["cut of W"] * 3 + ["words that ask"] * 3


def test_learned_factors(chapter):
    """Descent on scores comes near the best factors; no factors do better."""
    best = document_ranking(chapter, k=8)["best"]
    assert best < chapter["learned"] < 2 * best
