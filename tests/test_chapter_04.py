"""Bound the error: what its explorers must read, by NumPy and SciPy alone, and the numbers in its text."""

import math
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS, run
from scipy.spatial.distance import pdist
from scipy.stats import chi2

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("04-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def failure(k, eps):
    return chi2.sf(k * (1 + eps), k) + chi2.cdf(k * (1 - eps), k)


def jl_failure(chapter, *, k, eps):
    return {"exact": failure(k, eps), "bound": 2 * math.exp(-k / 2 * (eps**2 / 2 - eps**3 / 3))}


def jl_distortion(chapter, *, k):
    """Draw the same points and maps once more, and measure the distances with SciPy."""
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(60, 2000))
    for size in chapter["ks"]:
        projection = rng.standard_normal((size, 2000)) / np.sqrt(size)
        if size == k:
            break
    change = (pdist(points @ projection.T) / pdist(points)) ** 2 - 1
    at_eps = jl_failure(chapter, k=k, eps=0.3)
    return {"share_beyond": np.mean(np.abs(change) > 0.3), **at_eps, "worst_pair": np.abs(change).max()}


EXPLORERS = {"jl-distortion": jl_distortion, "jl-failure": jl_failure}


@pytest.fixture(scope="module")
def chapter():
    return run(CHAPTER).namespace


def test_ten_points_by_hand():
    assert Fraction(1, 2) ** 2 / 2 - Fraction(1, 2) ** 3 / 3 == Fraction(1, 8) - Fraction(1, 24) == Fraction(1, 12)
    assert 10 * 9 / 2 == 45
    assert f"{24 * math.log(90 * 20):.1f}" == "179.9"
    assert r"24 \ln 1800 \approx 179.9$. Hence 180" in TEXT


def test_a_hundred_points_by_hand():
    eps = Fraction(1, 5)
    assert eps**2 / 2 - eps**3 / 3 == Fraction(1, 50) - Fraction(1, 375) == Fraction(13, 750)
    assert 100 * 99 * 100 == 990_000
    assert f"{1500 / 13 * math.log(990_000):.2f}" == "1592.94"


def test_the_sparse_projection_by_hand():
    r, x, y = np.array([[1, 0, -1], [0, 1, 0]]), np.array([3, 1, 1]), np.array([1, 2, 1])
    assert (r @ x).tolist() == [2, 1]
    assert (r @ y).tolist() == [0, 2]
    difference = x - y
    assert difference @ difference == 5
    assert Fraction(3, 2) * int((r @ difference) @ (r @ difference)) == Fraction(15, 2)  # 3/2 of it is the distortion
    assert x @ y == 6
    assert Fraction(3, 2) * int((r @ x) @ (r @ y)) == 3


def test_ten_percent_once_in_a_hundred_takes_about_1300_directions():
    assert failure(1300, 0.1) > 0.01 > failure(1350, 0.1)
    assert "It takes about 1,330" in TEXT
    assert failure(1330, 0.1) < 0.01 < failure(1320, 0.1)


def test_scikit_learn_truncates_a_million_points():
    eps = 0.5
    assert f"{4 * math.log(10**6) / (eps**2 / 2 - eps**3 / 3):.2f}" == "663.14"
    chances = [n * (n - 1) / 2 * failure(k, e) for n, k, e in ((1000, 5920, 0.1), (10**6, 663, 0.5))]
    assert [f"{chances[0]:.1%}", f"{chances[1]:.2%}"] == ["3.8%", "0.05%"]
    assert "at most 3.8% and 0.05%" in TEXT


def test_the_bound_asks_for_seven_times_the_dimensions_there_are(chapter):
    pairs = 512 * 511 / 2
    k = next(k for k in range(5000, 6000) if pairs * failure(k, 0.1) <= 0.05)
    assert k == chapter["min_dim"](512, 0.1)
    assert round(k / 768) == 7


def test_the_guarantee_is_above_the_worst_pair_and_that_above_the_median(chapter):
    guarantee, worst, median = (np.array(chapter["lines"][name]) for name in ("guarantee", "worst pair", "median pair"))
    assert (guarantee > worst).all()
    assert (worst > 3 * median).all()


def test_zero_mean_values_are_worse_than_nothing_at_every_k_and_a_mean_helps(chapter):
    """The ratio of the expectations is (n + 1)/k for independent values of mean 0, whatever the weights are."""
    rng, n, k = np.random.default_rng(0), 512, 256
    p = chapter["P"]
    squares = []
    for mean in (0, 1):
        v = mean + rng.standard_normal((n, 64))
        exact = np.sum(p**2) * np.sum(v**2) + np.sum((p @ v) ** 2)
        squares.append(exact / k / np.sum((p @ v) ** 2))
    assert squares[0] == pytest.approx((n + 1) / k, rel=0.1)
    assert squares[0] > 1 > 5 * squares[1]
