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


def kappa_of_self_attention(n, d=64, draws=3):
    """The ratio of thm-prv, by plain NumPy, for random weights and independent tokens."""
    rng, found = np.random.default_rng(1), []
    for _ in range(draws):
        x, (w_q, w_k, w_v) = rng.standard_normal((n, d)), rng.standard_normal((3, d, d)) / np.sqrt(d)
        p = np.exp((x @ w_q) @ (x @ w_k).T / np.sqrt(d))
        p /= p.sum(axis=1, keepdims=True)
        v, other = x @ w_v, rng.standard_normal((n, d))
        found.append([np.sqrt((p**2).sum() * (v**2).sum() / ((p @ v) ** 2).sum()) for v in (v, other)])
    return np.mean(found, axis=0)


def test_kappa_grows_like_the_root_of_n_for_other_values_and_hardly_in_self_attention():
    own, other = np.transpose([kappa_of_self_attention(n) for n in (256, 512, 1024)])
    assert other == pytest.approx(np.sqrt([257, 513, 1025]), rel=0.05)
    assert own[2] / own[0] < 1.35 < 1.9 < other[2] / other[0]
    assert (1 + own**2 > 90).all()
    assert (1 + own**2 < 180).all()
    assert "from $k$ of roughly 100 to 170 on" in TEXT


def test_the_error_of_a_product_is_the_law_that_the_theorem_states():
    """A mean over thousands of draws pins the constant."""
    rng = np.random.default_rng(2)
    a, b, k = rng.standard_normal((3, 8)), rng.standard_normal((8, 2)), 4
    r = rng.standard_normal((20_000, k, 8)) / np.sqrt(k)
    errors = ((a @ r.transpose(0, 2, 1) @ (r @ b) - a @ b) ** 2).sum(axis=(1, 2))
    kappa = np.linalg.norm(a) * np.linalg.norm(b) / np.linalg.norm(a @ b)
    assert errors.mean() == pytest.approx((1 + kappa**2) / k * np.linalg.norm(a @ b) ** 2, rel=0.03)


def test_every_vector_of_a_space_keeps_its_length_as_the_theorem_says():
    """The share of draws within the bound for t = 0.1 and k = 400 is at least 1 - 2 exp(-2), and in fact near 1."""
    rng, r, k, t = np.random.default_rng(3), 16, 400, 0.1
    s = np.linalg.svd(rng.standard_normal((300, k, r)) / np.sqrt(k), compute_uv=False)
    within = (s.max(axis=1) <= 1 + np.sqrt(r / k) + t) & (s.min(axis=1) >= 1 - np.sqrt(r / k) - t)
    assert within.mean() > 1 - 2 * math.exp(-k * t**2 / 2)
    assert s.max() > 1 + 0.8 * np.sqrt(r / k), "and the root of r/k is needed"


def test_the_map_by_cosines_keeps_distances_as_the_gaussian_one_does(chapter):
    x = np.random.default_rng(4).uniform(size=(40, 512))
    for project in (chapter["by_gauss"], chapter["by_cosines"]):
        change = (pdist(project(x, 256)) / pdist(x)) ** 2 - 1
        assert abs(change.mean()) < 0.1
        assert 0.1 < np.abs(change).max() < 0.5
    whole = chapter["by_cosines"](x, 512)
    assert pdist(whole) == pytest.approx(pdist(x)), "with all of its entries it is a rotation"


def test_the_tail_falls_as_far_as_the_text_says():
    for eps, top in ((0.9, 300), (0.5, 1200), (0.2, 3000), (0.1, 8000)):
        k = np.arange(1, top + 1)
        assert (np.diff(chi2.sf(k * (1 + eps), k) + chi2.cdf(k * (1 - eps), k)) < 0).all()
    assert "up to $k = 300$, 1,200, 3,000 and 8,000" in TEXT
