"""Johnson-Lindenstrauss: its explorers, tables and exercises, judged by NumPy and SciPy."""

import functools
import math

import numpy as np
import pytest
from chapters import CHAPTERS
from scipy.spatial.distance import pdist
from scipy.stats import chi2, norm

from lowrank_tutor.exercises import check

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("04-")]


def failure(k, eps):
    return chi2.sf(k * (1 + eps), k) + chi2.cdf(k * (1 - eps), k)


def jl_shadows(chapter, *, k):
    """The squared lengths of the projections onto the line of x, by the matrix of that projection."""
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


@functools.cache
def least_rows(n, eps, delta=0.05):
    """By bisection on the exact law, with SciPy's tails."""
    low, high = 1, 2**20  # too few; enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if n * (n - 1) / 2 * failure(middle, eps) <= delta else (middle, high)
    return high


EXPLORERS = {"jl-distortion": jl_distortion, "jl-shadows": jl_shadows}


def test_fast_map_keeps_distances(chapter):
    x = np.random.default_rng(4).uniform(size=(40, 512))
    for project in (chapter["by_gauss"], chapter["by_cosines"]):
        change = (pdist(project(x, 256)) / pdist(x)) ** 2 - 1
        assert abs(change.mean()) < 0.1
        assert 0.1 < np.abs(change).max() < 0.5
    assert pdist(chapter["by_cosines"](x, 512)) == pytest.approx(pdist(x)), "with all of its entries it is a rotation"


def test_rows_by_the_exact_law(chapter):
    exact = chapter["asked"]["exact law"]
    assert exact == [least_rows(n, eps) for n, eps in chapter["cases"]]
    assert chapter["promised"] == least_rows(512, 0.1)
    assert chapter["chances"] == pytest.approx([failure(k, 0.1) for k in chapter["ks_tried"]])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ex-jl-hundred", [math.ceil(math.log(990_000) * 1500 / 13), least_rows(100, 0.2, 0.01)]),
        ("ex-jl-twice", [2 * math.log(4) / (0.01 / 2 - 0.001 / 3), 4]),
        ("ex-jl-orthogonal", [0, math.sqrt(1 / 400), 2 * norm.sf(2)]),
        ("ex-jl-adversary", 1000 - np.linalg.matrix_rank(np.random.default_rng(0).standard_normal((400, 1000)))),
        ("ex-jl-kappa", [np.linalg.norm(np.eye(400)), np.linalg.norm(np.full((400, 400), 1 / 400)), 402]),
    ],
)
def test_exercises_by_other_means(name, answer):
    assert check(name, answer)
