"""Chapter 5: its explorers by Cholesky factors and integers, its tables of scores, and a trained
model's scores.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS
from scipy.optimize import linprog

from lowrank_tutor import storyteller
from lowrank_tutor.figures.storyteller import CUTS, TALES, counted, measured
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


def pairs_lost(n):
    """Multiply out each pair of squares in exact fractions, and round only then."""
    t = [Fraction(2 * i - (n - 1), n - 1) for i in range(n)]
    lost = 0
    for a, b in itertools.combinations(t, 2):
        s = [2 * a * b * (a + b), -((a + b) ** 2) - 2 * a * b, 2 * (a + b), Fraction(-1)]
        stored = [Fraction(float(np.float16(float(it)))) for it in s]
        scores = {
            x: sum(c * Fraction(float(np.float16(float(x**i)))) for i, c in enumerate(stored, 1))
            for x in t
        }
        lost += min(scores[a], scores[b]) <= max(
            score for x, score in scores.items() if x not in (a, b)
        )
    return lost


EXPLORERS = {
    "document-ranking": document_ranking,
}


def test_table_of_the_six_words(chapter):
    assert (chapter["pairs"] == np.array(W_Q) @ np.transpose(W_K)).all()


def test_pairs_lost():
    assert next(n for n in range(5, 20) if pairs_lost(n)) == 13


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


def in_place(chapter, k):
    """Count the three best documents in their places, with W cut and with the factors made for
    scores.
    """
    documents, query, truth = chapter["documents"], chapter["query"], chapter["truth"]
    order = np.argsort(-truth)[:3]
    a, b = roots(chapter)
    best = np.linalg.solve(a.T, cut_of(a.T @ chapter["W"] @ b, k)) @ np.linalg.inv(b)
    return [
        int((np.argsort(-(documents @ (query @ m)))[:3] == order).sum())
        for m in (cut_of(chapter["W"], k), best)
    ]


def test_best_three_settle(chapter):
    kept = {k: in_place(chapter, k) for k in chapter["ranks"]}
    first = [
        min(k for k in kept if all(kept[j][way] == 3 for j in kept if j >= k)) for way in (0, 1)
    ]
    assert first == [28, 5]


def test_moments_beat_covariances(chapter):
    w, (a, b) = chapter["W"], chapter["moments"].values()

    def error(weight):
        left, right = np.linalg.cholesky(weight), np.linalg.cholesky(b)
        u, s, vt = np.linalg.svd(left.T @ w @ right)
        m = np.linalg.solve(left.T, (u[:, :8] * s[:8]) @ vt[:8]) @ np.linalg.inv(right)
        missed = w - m
        return np.sqrt(np.trace(missed.T @ a @ missed @ b) / np.trace(w.T @ a @ w @ b))

    assert 2.5 < error(a - 1) / error(a) < 3.5
    assert error(a - 1) < error(np.eye(48))


def share_right(told, **options):
    model = functools.partial(storyteller.forward, weights=options.pop("weights", None))
    right = storyteller.grade(model, told, **options)
    asked = {job: sum(story.jobs.count(job) for story in told) for job in right}
    return sum(right[job] * asked[job] for job in right) / sum(asked.values())


def test_scores_of_model():
    """It says red at every rank, although the shares of right answers are those that the page
    names.
    """
    said = [measured(TALES["far fact"], "scores", k)["says"] for k in CUTS["scores"].settings]
    assert set(said) == {"red"}
    shares = [counted()["scores"][k]["answered"] for k in (1, 4, 8)]
    assert [round(share, 2) for share in shares[:2]] == [0.5, 0.87]
    assert shares[2] > 0.99


@pytest.mark.parametrize("k", [2, 4])
def test_plain_cut_of_model(chapter, k):
    """The moments of the weights give the cut of W itself, here that of the weights."""
    cut = storyteller.cut_scores(storyteller.trained_weights(), k)
    assert chapter["judged"]("cut of W", k)[1] == pytest.approx(
        share_right(chapter["told"], weights=cut), abs=1e-9
    )


@pytest.fixture(scope="module")
def cuts_of_model():
    """Cuts to rank 4 by Cholesky factors of moments of other stories, for all words and for those
    that ask.
    """
    q, k, asks = ([], []), ([], []), []
    for story in storyteller.stories(120, rng=7):
        asks += [*map(bool, story.jobs[1:]), False]

        def hear(layer):
            def attend(*qkv):
                q[layer].append(qkv[0][0])
                k[layer].append(qkv[1][0])
                return storyteller.exact(*qkv)

            return attend

        storyteller.forward([storyteller.encode(story.words)], attend=[hear(0), hear(1)])

    def cut(chosen):
        attends = []
        for layer in (0, 1):
            queries, keys = np.concatenate(q[layer], 1)[:, chosen], np.concatenate(k[layer], 1)
            a, b = (np.linalg.cholesky(x.swapaxes(1, 2) @ x / x.shape[1]) for x in (queries, keys))
            middle = np.array([cut_of(left.T @ right, 4) for left, right in zip(a, b, strict=True)])
            table = np.linalg.inv(a.swapaxes(1, 2)) @ middle @ np.linalg.inv(b)
            attends.append(lambda q, k, v, table=table: storyteller.exact(q @ table, k, v))
        return attends

    return cut(np.ones(len(asks), bool)), cut(np.array(asks)), np.mean(asks)


def test_whose_queries(chapter, cuts_of_model):
    """On other stories, too, the cut for all words is worse than the plain cut, and that for words
    that ask better.
    """
    for_all, for_asking, share = cuts_of_model
    assert round(share, 2) == round(chapter["asks"].mean(), 2) == 0.12
    told = storyteller.stories(100, rng=8)
    plain = share_right(told, weights=storyteller.cut_scores(storyteller.trained_weights(), 4))
    assert (
        share_right(told, attend=for_all) + 0.02
        < plain
        < share_right(told, attend=for_asking) - 0.02
    )
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
