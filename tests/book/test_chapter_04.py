"""Johnson-Lindenstrauss: its explorers, tables and exercises, judged by NumPy and SciPy."""

import math

import numpy as np
import pytest
from chapters import share
from scipy.spatial.distance import pdist
from scipy.stats import chi2
from sklearn.random_projection import SparseRandomProjection

from lowrank_tutor import storyteller


def failure(k, eps):
    return chi2.sf(k * (1 + eps), k) + chi2.cdf(k * (1 - eps), k)


def jl_shadows(chapter, *, k):
    """The squared lengths of the projections onto the line of x, by the matrix that projects."""
    onto = np.outer(chapter["x_unit"], chapter["x_unit"])
    feet = np.random.default_rng(2237).standard_normal((128, 2))[:k] @ onto
    return {"mean": np.mean(feet[:, 0] ** 2 + feet[:, 1] ** 2)}


def jl_distortion(chapter, *, k):
    """Draw the same maps once more, and measure the distances with SciPy."""
    rng, points = np.random.default_rng(0), chapter["X"]
    for size in chapter["ks"]:
        projection = rng.standard_normal((size, 2000)) / np.sqrt(size)
        if size == k:
            break
    change = (pdist(points @ projection.T) / pdist(points)) ** 2 - 1
    return {
        "share_beyond": np.mean(np.abs(change) > 0.3),
        "expected": failure(k, 0.3),
        "worst_pair": np.abs(change).max(),
    }


def ada_or_ben(chapter, *, way, k):
    """Draw the maps once more; the spread by the theorems' formulas, and the words from other code
    for the cuts.
    """
    keys, query = chapter["keys"], chapter["query"]
    blue, rng = keys[chapter["story"].index("blue")], np.random.default_rng(k)
    scores, says = [], []

    def attend(q, key, v):
        if way == "numbers":
            inner = (q @ rows.T) @ np.swapaxes(key @ rows.T, -1, -2)
        else:
            norms = np.linalg.norm(key, axis=-1)[..., None, :]
            inner = (
                math.sqrt(math.pi / 2)
                * norms
                * ((q @ rows.T) @ np.swapaxes(np.sign(key @ rows.T), -1, -2))
            )
        logits = inner / k / 4
        logits[..., np.triu(np.ones(logits.shape[-2:], dtype=bool), 1)] = -np.inf
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True) @ v

    for _ in range(100):
        rows = rng.standard_normal((k, 16))
        sides = (
            rows @ blue
            if way == "numbers"
            else np.sign(rows @ blue) * math.sqrt(math.pi / 2 * (blue @ blue))
        )
        scores.append(sides @ (rows @ query) / k)
        logits = storyteller.forward([storyteller.encode(chapter["story"])], attend=attend)
        says.append(storyteller.WORDS[logits[0, -1].argmax()])
    squares, product = (blue @ blue) * (query @ query), (blue @ query) ** 2
    variance = squares + product if way == "numbers" else math.pi / 2 * squares - product
    shares = {word: says.count(word) / 100 for word in ("red", "blue")}
    return {"law": math.sqrt(variance / k), "spread": np.std(scores), **shares}


EXPLORERS = {
    "jl-distortion": jl_distortion,
    "jl-shadows": jl_shadows,
    "ada-or-ben": ada_or_ben,
}


def test_rival_of_red(chapter):
    """What the page says of 64 signs: blue stays below red, and most failing heads look at the
    start of the story.
    """
    story, (scores, says) = chapter["story"], chapter["found"]["signs", 64]
    red, start, blue = (story.index(word) for word in ("red", "<s>", "blue"))
    assert (scores[:, blue] < scores[:, red]).all()
    wrong = np.array(says) != "red"
    assert wrong.sum() == 8
    assert "blue" not in says
    assert np.mean(scores[wrong].argmax(axis=1) == start) > 0.5
    exact = chapter["keys"] @ chapter["query"]
    assert exact[red] - exact[start] == pytest.approx(1.6, abs=0.05)
    assert {
        chapter["ninety_five"],
        *(k for k in chapter["few"] if chapter["counts"]["signs", k] > 0.97),
    } == {
        32,
        64,
        256,
    }


def test_bits_answer_more_than_signs(chapter):
    """At 80 bits a key."""
    assert chapter["counts"]["signs", 64] == pytest.approx(0.975, abs=5e-4)
    assert chapter["counts"]["bits", 3] == 1


def test_another_map_fails():
    """With this map of 32 numbers, fewer than 95% of the answers are right."""
    cut = storyteller.projected(np.random.default_rng(2).standard_normal((32, 16)))
    assert share(storyteller.stories(60, rng=2_000_001), attend=cut) < 0.95


@pytest.mark.parametrize(("density", "spread"), [("auto", 0.31), (1 / 3, 0.045)])
def test_sparse_maps(density, spread):
    """The squared lengths of the images of vectors with one nonzero entry."""
    columns = (
        SparseRandomProjection(1000, density=density, random_state=0)
        .fit(np.zeros((1, 10_000)))
        .components_
    )
    assert abs(columns.power(2).sum(axis=0).std() - spread) < 0.005


def test_rows_asked_for(chapter):
    assert chapter["promised"] == 2797
    assert 45 * failure(64, 0.5) == pytest.approx(0.28, abs=0.005)  # ten points
