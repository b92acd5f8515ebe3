"""Parts against scikit-learn, SciPy, plain loops, and numbers worked by hand."""

import math
import re

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import fresh
from sklearn import decomposition
from sklearn.datasets import load_digits
from sklearn.decomposition._nmf import _initialize_nmf

from lowrank_tutor.family import nmf, nonnegative
from lowrank_tutor.pca import PCA
from lowrank_tutor.svd import best_rank_k, relative_error, tail_error

DIGITS = load_digits().data


@pytest.fixture(scope="module")
def judged():
    """Return a function for the lower of scikit-learn's two squared errors."""

    def error(x, k):
        models = (
            decomposition.NMF(k, init=init, solver="cd", tol=1e-5, max_iter=50_000, random_state=0)
            for init in ("nndsvda", "random")
        )
        return min(model.fit(x).reconstruction_err_ ** 2 for model in models)

    return error


TABLES = {
    "digits": DIGITS[:400],
    "uniform": fresh(1).random((50, 40)),
    "exponential": fresh(2).exponential(size=(60, 30)),
    "sparse": fresh(3).random((40, 50)) * (fresh(4).random((40, 50)) < 0.3),
    "nearly rank 5": np.abs(fresh(5).random((60, 5)) @ fresh(6).random((5, 40)) + 0.1 * fresh(7).random((60, 40))),
}


@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("name", TABLES)
def test_the_squared_error_is_within_two_percent_of_scikit_learn(judged, name, k):
    x = TABLES[name]
    found = nmf(x, k, rng=fresh())
    assert found.converged
    assert found.error**2 <= 1.02 * judged(x, k)
    assert found.error == pytest.approx(np.linalg.norm(x - found.w @ found.h), rel=1e-9)
    assert (found.w >= 0).all()
    assert (found.h >= 0).all()


def test_all_the_digits_in_ten_parts(judged):
    found = nmf(DIGITS, 10, rng=fresh())
    assert found.error**2 <= 1.02 * judged(DIGITS, 10)


@settings(max_examples=25)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000), st.integers(1, 4))
def test_the_error_never_rises_and_is_that_of_the_factors(n, d, seed, starts):
    x = fresh(seed).random((n, d)) * (fresh(seed + 1).random((n, d)) < 0.7)
    k = 1 + seed % min(n, d)
    found = nmf(x, k, rng=fresh(seed), starts=starts)
    assert (np.diff(found.errors) <= 0).all()
    assert found.error == found.errors[-1] == pytest.approx(np.linalg.norm(x - found.w @ found.h), rel=1e-6, abs=1e-14)
    assert found.error >= tail_error(np.linalg.svd(x, compute_uv=False), k) - 1e-12  # the SVD may be negative
    lengths, weights = np.linalg.norm(found.h, axis=1), np.linalg.norm(found.w, axis=0)
    np.testing.assert_allclose(lengths[weights > 0], 1, rtol=1e-12)
    np.testing.assert_array_equal(lengths[weights == 0], 0)
    assert (np.diff(weights) <= 1e-12).all()


def test_each_sweep_leads_from_where_the_last_one_stopped():
    x = TABLES["exponential"]
    errors = nmf(x, 4, starts=1).errors
    for sweeps in (1, 2, 5, 40):
        found = nmf(x, 4, starts=1, max_sweeps=sweeps)
        assert not found.converged
        np.testing.assert_allclose(found.errors, errors[: sweeps + 1], rtol=1e-12)
        assert np.linalg.norm(x - found.w @ found.h) == pytest.approx(errors[sweeps], rel=1e-12)


def test_the_sweeps_are_those_of_plain_loops():
    x = fresh(3).random((7, 5))
    w, h = _initialize_nmf(x, 3, init="nndsvd")
    errors = [np.linalg.norm(x - w @ h)]
    for _ in range(4):
        for factor, mate, table in ((w, h.T, x), (h.T, w, x.T)):  # each has the parts for columns
            for j in range(3):
                others = sum(np.outer(factor[:, i], mate[:, i]) for i in range(3) if i != j)
                for row in range(len(factor)):
                    best = (table - others)[row] @ mate[:, j] / (mate[:, j] @ mate[:, j])
                    factor[row, j] = max(best, 0)
        errors.append(np.linalg.norm(x - w @ h))
    found = nmf(x, 3, starts=1, max_sweeps=4)
    np.testing.assert_allclose(found.errors, errors, rtol=1e-9)
    np.testing.assert_allclose(found.w @ found.h, w @ h, rtol=1e-9)


def test_at_the_end_no_entry_wants_to_move():
    """The conditions of Karush, Kuhn and Tucker: a gradient of zero, or an entry of zero that would have to fall."""
    x = TABLES["uniform"]
    w, h, _, converged = nmf(x, 3, rng=fresh(), tolerance=1e-13)
    assert converged
    for factor, slope in ((w, (w @ h - x) @ h.T), (h, w.T @ (w @ h - x))):
        assert slope.min() > -1e-4
        assert np.abs(slope[factor > 1e-3]).max() < 1e-4
    assert np.abs((best_rank_k(x, 3) - x) @ h.T).max() > 5e-3  # the SVD's optimum is another


@pytest.mark.parametrize("seed", range(4))
def test_an_exact_sum_of_five_parts_is_found(seed):
    rng = fresh(seed)
    x = rng.random((60, 5)) @ rng.random((5, 50))
    found = nmf(x, 5, rng=rng)
    assert relative_error(found.w @ found.h, x) < 1e-3
    clipped = np.maximum(PCA(4).fit(x).components_, 0)  # contrast: axes cannot just be clipped
    assert relative_error(np.maximum(x @ np.linalg.pinv(clipped), 0) @ clipped, x) > 0.02


def separate_parts():
    parts = np.zeros((3, 9))
    parts[0, :4], parts[1, 4:6], parts[2, 6:] = 0.5, math.sqrt(0.5), math.sqrt(1 / 3)
    return parts


def test_parts_come_back_one_by_one_where_some_rows_hold_only_one():
    amounts = np.vstack([fresh().random((20, 3)), np.eye(3)]) * [9, 3, 1]
    w, h, _, converged = nmf(amounts @ separate_parts(), 3, rng=fresh(), tolerance=1e-9)
    assert converged
    np.testing.assert_allclose(h, separate_parts(), atol=1e-5)
    np.testing.assert_allclose(w, amounts, atol=1e-4)


def test_parts_are_not_unique_where_every_row_holds_some_of_each():
    """Contrast: an exact factorization, and the parts found are mixtures of those that went in."""
    amounts = 1 + fresh().random((20, 3))
    x = amounts @ separate_parts()
    found = nmf(x, 3, rng=fresh())
    assert relative_error(found.w @ found.h, x) < 1e-3
    assert (found.h @ separate_parts().T).max(axis=1).min() < 0.9


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (4, 9), (9, 4), (1, 5)])
def test_as_many_parts_as_rows_or_columns_lose_nothing(shape):
    x = fresh().random(shape)
    found = nmf(x, min(shape), rng=fresh())
    assert found.error <= 1e-15
    np.testing.assert_allclose(found.w @ found.h, x, rtol=1e-13)


def test_one_part_is_that_of_the_svd():
    x = TABLES["uniform"]
    w, h, errors, _ = nmf(x, 1, rng=fresh())
    np.testing.assert_allclose(w @ h, best_rank_k(x, 1), rtol=1e-6)
    assert errors[-1] == pytest.approx(tail_error(np.linalg.svd(x, compute_uv=False), 1), rel=1e-12)


def test_columns_are_updated_as_by_hand():
    """With h = (1 0), (1 1): products hh = (1 1), (1 2), and xh = (x1, x1 + x2)."""
    hh = np.array([[1.0, 1], [1, 2]])
    w = np.ones((2, 2))
    xh = np.array([[3.0, 4], [0, 4]])  # of the rows (3, 1) and (0, 4)
    # Row 1: 1 + (3 - 2) / 1 = 2, then 1 + (4 - 4) / 2 = 1. Row 2: 1 + (0 - 2) / 1 < 0, then 1 + (4 - 2) / 2 = 2.
    np.testing.assert_array_equal(nonnegative._update_columns(w, xh, hh), [[2, 1], [0, 2]])
    np.testing.assert_array_equal(w, np.ones((2, 2)))
    at_once = np.maximum(w + (xh - w @ hh) / np.diag(hh), 0)  # contrast: all columns from the old ones
    assert at_once[0, 1] == 1.5


def test_a_single_column_is_updated_to_the_solution_of_nnls():
    x, h = fresh().standard_normal((6, 4)), fresh(1).random((1, 4))
    w = nonnegative._update_columns(np.ones((6, 1)), x @ h.T, h @ h.T)
    np.testing.assert_allclose(w[:, 0], [scipy.optimize.nnls(h.T, row)[0][0] for row in x], atol=1e-14)


def test_a_part_of_no_size_is_left_alone():
    hh = np.diag([0.0, 1e-201, 4.0])
    w = nonnegative._update_columns(np.ones((2, 3)), np.full((2, 3), 8.0), hh)
    np.testing.assert_array_equal(w, [[1, 1, 2]] * 2)


@pytest.mark.parametrize("shape", [(8, 5), (5, 8)])
def test_the_starts_are_those_that_are_named(shape):
    x = fresh().random(shape)
    starts = nonnegative._starts(x, 3, fresh(1))
    (w, h), (filled_w, filled_h), (own_w, own_h), (random_w, random_h), other = (next(starts) for _ in range(5))
    judge = np.linalg.multi_dot(_initialize_nmf(x, 3, init="nndsvd"))
    np.testing.assert_allclose(w @ h, judge, atol=1e-7)
    np.testing.assert_allclose(w[:, :1] @ h[:1], best_rank_k(x, 1), rtol=1e-12)
    level = math.sqrt(x.mean() / 3)
    for plain, filled in ((w, filled_w), (h, filled_h)):
        np.testing.assert_array_equal(filled, np.where(plain > level, plain, level))
    if shape[0] < shape[1]:
        own_w, own_h, x = own_h.T, own_w.T, x.T
    np.testing.assert_array_equal(own_h.sum(axis=0).round(), (own_h != 0).any(axis=0))  # rows of the identity
    assert sorted(np.unique(own_h)) == [0, 1]
    assert own_h.sum() == 3
    np.testing.assert_array_equal(own_w, x[:, own_h.argmax(axis=1)])
    assert random_w.shape == w.shape
    assert random_h.shape == h.shape
    assert min(random_w.min(), random_h.min()) >= 0
    assert not np.array_equal(other[0], random_w)
    many = [next(starts) for _ in range(300)]
    assert np.mean([a.mean() for a, _ in many]) == pytest.approx(level * math.sqrt(2 / math.pi), rel=0.05)
    assert np.mean([b.mean() for _, b in many]) == pytest.approx(level * math.sqrt(2 / math.pi), rel=0.05)


@pytest.mark.parametrize("seed", range(10))
def test_of_each_singular_pair_the_heavier_half_is_taken(seed):
    x = fresh(seed).random((4, 7)) ** 3
    w, h = next(nonnegative._starts(x, 4, fresh()))
    np.testing.assert_allclose(w @ h, np.linalg.multi_dot(_initialize_nmf(x, 4, init="nndsvd")), atol=1e-7)


def test_more_starts_find_a_lower_error():
    x = fresh(11).random((30, 30))
    errors = [nmf(x, 12, rng=fresh(1), starts=starts, tolerance=1e-6).error for starts in (1, 3, 12)]
    assert max(errors[1:]) < errors[0] * 0.999
    one, same = (nmf(x, 12, starts=2, tolerance=1e-6) for _ in range(2))
    assert one.error == same.error  # the first two are not random


def test_more_starts_never_end_worse(monkeypatch):
    """Of the digits, the start from the SVD falls behind in its first sweeps and ends best."""
    digits = load_digits().data
    assert nmf(digits, 10, rng=0, starts=3).error <= nmf(digits, 10, starts=1).error
    monkeypatch.setattr(nonnegative, "_TRIAL_SWEEPS", 20)  # trials that often mislead
    gains = []
    for seed in range(6):
        table = fresh(seed).random((20, 15))
        errors = [nmf(table, 6, rng=seed, starts=starts, tolerance=1e-6).error for starts in range(1, 9)]
        assert errors == sorted(errors, reverse=True)
        gains.append(errors[0] / errors[-1])
    assert max(gains) > 1.001


def test_the_generator_decides_everything():
    x = TABLES["uniform"]
    one, same = (nmf(x, 8, rng=fresh(4)) for _ in range(2))
    np.testing.assert_array_equal(one.w, nmf(x, 8, rng=fresh(4), starts=5, tolerance=1e-8).w)
    np.testing.assert_array_equal(one.w, same.w)
    np.testing.assert_array_equal(one.h, same.h)
    others = {nmf(x, 15, rng=fresh(seed), tolerance=1e-5).error for seed in range(3)}
    assert len(others) > 1  # equal where the best start is one of the two that are not random
    assert nmf(x, 8).error == pytest.approx(one.error, rel=0.02)


def test_a_zero_matrix_has_zero_parts():
    w, h, errors, converged = nmf(np.zeros((4, 3)), 2)
    np.testing.assert_array_equal(w, np.zeros((4, 2)))
    np.testing.assert_array_equal(h, np.zeros((2, 3)))
    np.testing.assert_array_equal(errors, [0])
    assert converged


def test_rows_and_columns_of_zeros_stay_zero():
    x = fresh().random((20, 9))
    x[3] = 0
    x[:, 4] = 0
    found = nmf(x, 4, rng=fresh())
    np.testing.assert_array_equal(found.w[3], 0)
    np.testing.assert_array_equal(found.h[:, 4], 0)
    rest = nmf(np.delete(np.delete(x, 3, axis=0), 4, axis=1), 4, rng=fresh())
    assert found.error == pytest.approx(rest.error, rel=0.02)


def test_parts_are_ordered_by_weight_and_those_without_are_zero():
    w = np.array([[1.0, 3, 0, 5], [1, 4, 0, 5]])
    h = np.array([[3.0, 4], [0, 2], [6, 8], [0, 0]])
    ordered_w, ordered_h = nonnegative._by_weight(w, h)  # weights 5 sqrt(2), 10, 0, 0
    np.testing.assert_allclose(ordered_w, [[6, 5, 0, 0], [8, 5, 0, 0]], rtol=1e-15)
    np.testing.assert_allclose(ordered_h, [[0, 1], [0.6, 0.8], [0, 0], [0, 0]], rtol=1e-15)


@pytest.mark.parametrize("scale", [2.0**-240, 2.0**240])
def test_tiny_and_huge_matrices_have_the_same_parts(scale):
    x = fresh().random((20, 9))
    one, other = nmf(x, 3, rng=fresh()), nmf(x * scale, 3, rng=fresh())
    np.testing.assert_allclose(other.h, one.h, atol=1e-5)
    np.testing.assert_allclose(other.w / scale, one.w, atol=1e-5)
    assert other.error / scale == pytest.approx(one.error, rel=1e-6)
    assert other.converged


@pytest.mark.parametrize(("given_type", "result_type"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_parts_come_in_the_precision_of_the_input(given_type, result_type):
    x = (100 * TABLES["uniform"]).astype(given_type)
    x.flags.writeable = False
    before = x.copy()
    found, judge = nmf(x, 4, rng=fresh()), nmf(x.astype(float), 4, rng=fresh())
    assert found.w.dtype == found.h.dtype == result_type
    assert found.errors.dtype == np.float64
    assert isinstance(found.error, float)
    assert found.converged is True
    np.testing.assert_allclose(found.w @ found.h, judge.w @ judge.h, rtol=1e-4)
    np.testing.assert_array_equal(x, before)


def test_the_tolerance_says_how_far_to_go():
    x = TABLES["uniform"]
    size = np.linalg.norm(x)
    for tolerance in (1e-3, 1e-5, 1e-8):
        found = nmf(x, 4, starts=1, tolerance=tolerance)
        gains = -np.diff(found.errors) / size
        assert found.converged
        assert gains[-1] <= tolerance
        assert (gains[:-1] > tolerance).all()
    exact = nmf(x, 2, starts=1, tolerance=0, max_sweeps=100_000)
    assert exact.converged
    assert (np.diff(exact.errors) < 0).all()


def test_what_has_not_converged_says_so():
    x = fresh().random((40, 5)) @ fresh(1).random((5, 30))
    hurried = nmf(x, 5, rng=fresh(), max_sweeps=20)
    assert hurried.converged is False
    assert len(hurried.errors) == 21
    assert hurried.error > 2 * nmf(x, 5, rng=fresh()).error
    # The brief trials of the starts, 200 sweeps each, count.
    assert len(nmf(x, 5, rng=fresh(), tolerance=0, max_sweeps=200).errors) == 201
    assert len(nmf(x, 5, rng=fresh(), tolerance=0, max_sweeps=201).errors) == 202


def test_an_entry_below_zero_is_refused():
    assert nmf([[-0.0, 1.0]], 1).error == 0
    with pytest.raises(ValueError, match=r"^x must be non-negative, got -1e-12$"):
        nmf([[0.0, -1e-12]], 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be between 1 and min(m, n) = 3, got 0"),
        ({"k": 4}, ValueError, "k must be between 1 and min(m, n) = 3, got 4"),
        ({"rng": "0"}, TypeError, "rng must be a numpy.random.Generator, a seed (an integer) or None, got '0'"),
        ({"starts": 0}, ValueError, "starts must be at least 1, got 0"),
        ({"tolerance": -1e-9}, ValueError, "tolerance must be at least 0 and below 1, got -1e-09"),
        ({"tolerance": 1}, ValueError, "tolerance must be at least 0 and below 1, got 1.0"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be at least 1, got 0"),
    ],
)
def test_bad_settings_of_nmf_are_refused(arguments, error, message):
    x = np.ones((3, 4))
    assert nmf(x, 3, starts=1, tolerance=0.999, max_sweeps=1).w.shape == (3, 3)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        nmf(x, **({"k": 1} | arguments))


def test_a_table_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match=r"^x must be finite, got nan$"):
        nmf([[1.0, np.nan]], 1)
