"""Johnson-Lindenstrauss: bound the error: what its explorers must read, by NumPy and SciPy, and the text's numbers."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS
from scipy.spatial.distance import pdist
from scipy.stats import chi2

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("04-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
norm = np.linalg.norm


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
def least_rows(n, eps):
    """By bisection on the exact law, with SciPy's tails."""
    low, high = 1, 2**20  # too few; enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if n * (n - 1) / 2 * failure(middle, eps) <= 0.05 else (middle, high)
    return high


def jl_needed(chapter, *, d):
    needed = [least_rows(10**power, eps) for power in range(1, 7) for eps in (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)]
    return {"of_use": sum(k < d for k in needed)}


EXPLORERS = {"jl-distortion": jl_distortion, "jl-shadows": jl_shadows, "jl-needed": jl_needed}


def test_ten_points_by_hand():
    assert Fraction(1, 2) ** 2 / 2 - Fraction(1, 2) ** 3 / 3 == Fraction(1, 8) - Fraction(1, 24) == Fraction(1, 12)
    assert 10 * 9 / 2 == 45
    assert f"{24 * math.log(90 * 20):.1f}" == "179.9"
    assert r"24 \ln 1800 \approx 179.9$: 180 rows are enough" in TEXT


def test_a_hundred_points_by_hand():
    eps = Fraction(1, 5)
    assert eps**2 / 2 - eps**3 / 3 == Fraction(1, 50) - Fraction(1, 375) == Fraction(13, 750)
    assert 100 * 99 * 100 == 990_000
    assert f"{1500 / 13 * math.log(990_000):.2f}" == "1592.94"


def test_the_fast_map_keeps_distances_as_the_gaussian_one_does(chapter):
    x = np.random.default_rng(4).uniform(size=(40, 512))
    for project in (chapter["by_gauss"], chapter["by_cosines"]):
        change = (pdist(project(x, 256)) / pdist(x)) ** 2 - 1
        assert abs(change.mean()) < 0.1
        assert 0.1 < np.abs(change).max() < 0.5
    whole = chapter["by_cosines"](x, 512)
    assert pdist(whole) == pytest.approx(pdist(x)), "with all of its entries it is a rotation"


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
    assert "It takes about 1,330" in TEXT
    assert failure(1330, 0.1) < 0.01 < failure(1320, 0.1)


def test_the_bound_asks_for_seven_times_the_dimensions_there_are(chapter):
    pairs = 512 * 511 / 2
    k = next(k for k in range(5000, 6000) if pairs * failure(k, 0.1) <= 0.05)
    assert k == chapter["min_dim"](512, 0.1)
    assert round(k / 768) == 7
    assert f"To {k:,}. You may go *up*, to about seven times as many" in TEXT


def test_the_guarantee_is_above_the_worst_pair_and_that_above_the_median(chapter):
    guarantee, worst, median = (np.array(chapter["lines"][name]) for name in ("guarantee", "worst pair", "median pair"))
    assert (guarantee > worst).all()
    assert (worst > 3 * median).all()


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


def test_the_pages_are_sixty_points_of_which_none_is_off_by_30_percent_from_512_rows_on(chapter):
    assert chapter["X"].shape == (60, 2000)
    assert len(pdist(chapter["X"])) == 1770
    share = {k: np.mean(np.abs(change) > 0.3) for k, change in chapter["changes"].items()}
    assert 0.05 < share[64] < 0.15
    assert max(share[k] for k in share if k >= 512) == 0
    assert "At $k = 64$ about one squared distance in ten changes by more than 30%; at $k = 512$ none does" in TEXT


def test_of_45_pairs_eight_rows_throw_many_out_and_180_rows_none(chapter):
    """How many depends on Python's help pages, which change. Distances are added up coordinate by coordinate."""
    first, second = np.triu_indices(10, 1)
    before = ((chapter["ten"][first] - chapter["ten"][second]) ** 2).sum(axis=1)
    outside = {}
    for k in (8, 180):
        R = np.random.default_rng(0).standard_normal((k, 2000)) / math.sqrt(k)
        mapped = chapter["ten"] @ R.T
        after = ((mapped[first] - mapped[second]) ** 2).sum(axis=1)
        outside[k] = np.count_nonzero((after > 1.5 * before) | (after < 0.5 * before))
        title = chapter["before_and_after"](k).axes[0].get_title(loc="left")
        assert title == f"{k} rows: {outside[k]} of 45 outside"
    assert outside[8] >= 3
    assert outside[180] == 0
    assert "With 8 rows many pairs lie beyond the dashed lines" in TEXT


def test_the_exact_law_asks_for_fewer_rows_than_the_formula(chapter):
    formula, exact = (chapter["asked"][name] for name in ("formula (4.5)", "exact law"))
    assert exact == [least_rows(n, eps) for n, eps in chapter["cases"]]
    assert all(few < many for few, many in zip(exact, formula, strict=True))


def test_the_random_arrows_have_squared_shadows_of_mean_one(chapter):
    """Over many more of them than are drawn, in the plane and in fifty dimensions."""
    for d in (2, 50):
        x = np.random.default_rng(5).standard_normal(d)
        shadows = np.random.default_rng(6).standard_normal((40_000, d)) @ (x / norm(x))
        assert np.mean(shadows**2) == pytest.approx(1, abs=0.03)


def test_kappa_of_small_products():
    a = np.array([[1.0, 1.0]])
    for b, kappa in (([[1.0], [1.0]], 1), ([[1.0], [-0.9]], 19)):
        assert norm(a) * norm(b) / norm(a @ b) == pytest.approx(kappa, abs=0.05)
