"""A table with gaps, against loops, least squares, the SVD of full tables, and numbers worked by hand."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import fresh, with_spectrum
from sklearn.datasets import load_digits

from lowrank_tutor.family import factorize_ratings, ratings
from lowrank_tutor.svd import best_rank_k, relative_error

DIGITS = load_digits().data


def ratings_of(n, m, k, share=0.4, seed=0, kind="normal"):
    """Draw a table of rank k and a mask of what is observed of it."""
    rng = fresh(seed)
    if kind == "positive":
        table = rng.random((n, k)) @ rng.random((k, m))
    elif kind == "far from zero":
        table = rng.standard_normal((n, k - 1)) @ rng.standard_normal((k - 1, m)) + 5
    else:
        table = rng.standard_normal((n, k)) @ rng.standard_normal((k, m))
    return table, rng.random((n, m)) < share


def objective(table, seen, p, q, penalty):
    """The sum over what is observed, entry by entry, and the penalty."""
    misses = sum((table[i, j] - p[i] @ q[j]) ** 2 for i, j in np.argwhere(seen))
    return misses + penalty * (sum(row @ row for row in p) + sum(row @ row for row in q))


def half_step_by_loops(q, table, seen, penalty):
    """One least-squares problem for each row, the penalty as k more equations."""
    k = q.shape[1]
    rows = []
    for row, mine in zip(table, seen, strict=True):
        a = np.vstack([[q[j] for j in np.flatnonzero(mine)], math.sqrt(penalty) * np.eye(k)])
        b = np.concatenate([[row[j] for j in np.flatnonzero(mine)], np.zeros(k)])
        rows.append(np.linalg.lstsq(a, b, rcond=None)[0])
    return np.array(rows)


@pytest.mark.parametrize("kind", ["normal", "positive", "far from zero"])
@pytest.mark.parametrize(("n", "m", "tables"), [(60, 50, 6), (100, 80, 2)])  # the smaller are harder
def test_a_table_of_rank_4_comes_back_from_two_fifths_of_it(n, m, tables, kind):
    for seed in range(tables):
        table, seen = ratings_of(n, m, 4, seed=seed, kind=kind)
        found = factorize_ratings(table, seen, 4, regularization=0, rng=fresh(seed))
        assert relative_error(found.estimates, table) < 1e-9
        assert found.converged


def test_without_the_falling_penalty_the_gaps_run_away():
    """Contrast: on this table plain alternation from the same start fits what it sees and is lost elsewhere."""
    table, seen = ratings_of(60, 50, 4, seed=2, kind="positive")
    r = np.where(seen, table, 0)
    _, s, vt = np.linalg.svd(r / seen.mean(), full_matrices=False)
    q = vt[:4].T * np.sqrt(s[:4])
    for _ in range(100):
        p = half_step_by_loops(q, r, seen, 0)
        q = half_step_by_loops(p, r.T, seen.T, 0)
    assert relative_error(seen * (p @ q.T), r) < 0.05
    assert relative_error(p @ q.T, table) > 1


def test_zeros_in_the_gaps_are_no_ratings():
    """Contrast: the SVD of the table with zeros for what is not known misses what is."""
    table, seen = ratings_of(60, 50, 4)
    assert relative_error(best_rank_k(np.where(seen, table, 0), 4), table) > 0.5
    assert relative_error(best_rank_k(np.where(seen, table, 0) / seen.mean(), 4), table) > 0.3


def test_one_half_step_comes_out_as_by_hand():
    q = np.array([[1.0], [2]])
    r = np.array([[3.0, 0], [3, 4], [0, 4]])
    seen = np.array([[1.0, 0], [1, 1], [0, 1]])
    # 3 / (1 + 1), (3 + 8) / (5 + 1), 8 / (4 + 1)
    np.testing.assert_allclose(ratings._half_step(q, r, seen, 1.0)[:, 0], [3 / 2, 11 / 6, 8 / 5], rtol=1e-15)
    np.testing.assert_allclose(ratings._half_step(q, r, seen, 0.0)[:, 0], [3, 11 / 5, 2], rtol=1e-15)


@pytest.mark.parametrize("penalty", [0.0, 1e-30, 1e-12, 1e-7, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_half_step_is_a_ridge_regression_for_each_row(k, penalty):
    rng = fresh(k)
    q, seen = rng.standard_normal((9, k)), rng.random((30, 9)) < 0.5
    seen[~seen.any(axis=1), 0] = True
    r = np.where(seen, rng.standard_normal((30, 9)), 0)
    assert k < 6 or seen.sum(axis=1).min() < k  # rows with fewer ratings than unknowns
    p = ratings._half_step(q, r, seen.astype(float), penalty)
    np.testing.assert_allclose(p, half_step_by_loops(q, r, seen, penalty), rtol=1e-6, atol=1e-7)


def test_both_ways_to_solve_agree_where_they_meet():
    """The penalty that parts them is 1e-8 of the squares of q."""
    q, seen = fresh().standard_normal((9, 2)), np.ones((4, 9))
    r = fresh(1).standard_normal((4, 9))
    border = 1e-8 * np.square(q).sum()
    at_once, by_row = (ratings._half_step(q, r, seen, border * factor) for factor in (1.001, 0.999))
    np.testing.assert_allclose(at_once, by_row, rtol=1e-7)


def test_of_many_solutions_the_shortest_is_taken():
    q = np.array([[3.0, 4]])
    p = ratings._half_step(q, np.array([[25.0]]), np.ones((1, 1)), 0.0)
    np.testing.assert_allclose(p, [[3, 4]], rtol=1e-14)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 2000.0])
def test_the_start_is_that_of_plain_loops(penalty):
    table, seen = ratings_of(12, 9, 2, share=0.7)
    seen[:, 0] = seen[0] = True
    r = np.where(seen, table, 0)
    _, s, vt = np.linalg.svd(r * seen.size / seen.sum(), full_matrices=False)
    q = vt[:3].T * np.sqrt(s[:3])
    q = q + 0.01 * np.sqrt((q**2).mean()) * fresh(5).standard_normal((9, 3))
    falling = [10 ** (-1 - 2 * step / 9) * s[0] for step in range(10)]
    penalties = [large for large in falling if large > penalty] + [penalty]
    assert len(penalties) == {0.0: 11, 2000.0: 1}.get(penalty, len(penalties))
    assert penalty != 0.1 or 2 < len(penalties) < 11
    for large in penalties:
        p = half_step_by_loops(q, r, seen, large)
        q = half_step_by_loops(p, r.T, seen.T, large)
    found = ratings._start(r, seen.astype(float), 3, penalty, fresh(5))
    np.testing.assert_allclose(found[0], p, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], q, rtol=1e-6, atol=1e-9)


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(2, 8), st.sampled_from([0, 0.01, 1, 30]), st.integers(0, 1000))
def test_the_objective_never_rises_and_is_that_of_the_factors(n, m, penalty, seed):
    table, seen = ratings_of(n, m, 2, share=0.8, seed=seed)
    seen[np.arange(n), np.arange(n) % m] = seen[np.arange(m) % n, np.arange(m)] = True
    found = factorize_ratings(table, seen, 1 + seed % 2, regularization=penalty, rng=fresh(seed))
    assert (np.diff(found.losses) <= 0).all()
    expected = objective(table, seen, found.p, found.q, penalty)
    assert found.losses[-1] == pytest.approx(expected, rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_at_the_end_no_factor_wants_to_move(penalty):
    table, seen = ratings_of(20, 15, 3)
    seen[:, 0] = seen[0] = True
    table = table + 0.3 * fresh(9).standard_normal(table.shape)
    p, q, _, converged = factorize_ratings(
        table, seen, 2, regularization=penalty, rng=fresh(), tolerance=1e-14, max_sweeps=20_000
    )
    assert converged
    residual = seen * (p @ q.T - table)
    np.testing.assert_allclose(residual @ q + penalty * p, 0, atol=1e-5)
    np.testing.assert_allclose(residual.T @ p + penalty * q, 0, atol=1e-5)


def test_a_full_table_is_cut_and_its_singular_values_lowered_by_the_penalty():
    """Golden: sigma = sqrt(45), sqrt(5); with lambda = sqrt(5) two thirds of the best rank 1 remain, and J = 30."""
    table = [[3, 0], [4, 5]]
    found = factorize_ratings(
        table, np.ones((2, 2), bool), 1, regularization=math.sqrt(5), rng=fresh(), tolerance=1e-15
    )
    np.testing.assert_allclose(found.estimates, [[1, 1], [3, 3]], rtol=1e-6)
    assert found.losses[-1] == pytest.approx(30, rel=1e-12)
    plain = factorize_ratings(table, np.ones((2, 2), bool), 1, regularization=0, rng=fresh(), tolerance=1e-15)
    np.testing.assert_allclose(plain.estimates, best_rank_k(table, 1), rtol=1e-6)
    assert plain.losses[-1] == pytest.approx(5, rel=1e-12)


@pytest.mark.parametrize("penalty", [0, 1.5, 4.5])
def test_of_a_full_table_the_estimate_is_the_lowered_svd(penalty):
    table = with_spectrum([9, 5, 3, 1], 12, 8)
    found = factorize_ratings(
        table, np.ones((12, 8), bool), 3, regularization=penalty, rng=fresh(), tolerance=1e-14, max_sweeps=5000
    )
    u, s, vt = np.linalg.svd(table, full_matrices=False)
    np.testing.assert_allclose(found.estimates, (u[:, :3] * np.maximum(s[:3] - penalty, 0)) @ vt[:3], atol=2e-4)


@pytest.mark.parametrize("penalty", [0, 0.5])
def test_what_stands_in_the_gaps_is_never_read(penalty):
    table, seen = ratings_of(20, 15, 2, share=0.6)
    results = [
        factorize_ratings(np.where(seen, table, junk), seen, 2, regularization=penalty, rng=fresh())
        for junk in (0.0, 1e3, np.nan, np.inf, -np.inf, 1e308)
    ]
    for other in results[1:]:
        for one, same in zip(results[0][:3], other[:3], strict=True):
            np.testing.assert_array_equal(one, same)
    assert not np.array_equal(results[0].p, factorize_ratings(table + seen, seen, 2, rng=fresh()).p)


@pytest.mark.parametrize("penalty", [0, 0.5])
def test_a_row_or_column_of_which_nothing_is_known_is_nan_and_moves_nothing(penalty):
    table, seen = ratings_of(20, 15, 2, share=0.6)
    seen[4] = False
    seen[:, [0, 7]] = False
    found = factorize_ratings(table, seen, 2, regularization=penalty, rng=fresh())
    rows, columns = np.arange(20) != 4, ~np.isin(np.arange(15), [0, 7])
    np.testing.assert_array_equal(np.isnan(found.p), np.repeat(~rows[:, np.newaxis], 2, axis=1))
    np.testing.assert_array_equal(np.isnan(found.q), np.repeat(~columns[:, np.newaxis], 2, axis=1))
    np.testing.assert_array_equal(np.isnan(found.estimates), ~np.outer(rows, columns))
    rest = factorize_ratings(table[rows][:, columns], seen[rows][:, columns], 2, regularization=penalty, rng=fresh())
    np.testing.assert_array_equal(found.p[rows], rest.p)
    np.testing.assert_array_equal(found.q[columns], rest.q)
    np.testing.assert_array_equal(found.losses, rest.losses)


def test_many_rows_need_no_square_matrix_of_their_number():
    found = factorize_ratings(np.ones((300_000, 2)), np.ones((300_000, 2), bool), 1, regularization=1e6, max_sweeps=1)
    assert found.p.shape == (300_000, 1)


def test_one_known_rating_is_enough():
    seen = np.zeros((3, 4), bool)
    seen[1, 2] = True
    found = factorize_ratings(np.full((3, 4), 6.0), seen, 3, regularization=0, rng=fresh())
    np.testing.assert_allclose(found.estimates[1, 2], 6, rtol=1e-12)
    assert np.isnan(found.estimates).sum() == 11
    shrunk = factorize_ratings(np.full((3, 4), 6.0), seen, 1, regularization=2, rng=fresh(), tolerance=0)
    np.testing.assert_allclose(shrunk.estimates[1, 2], 4, rtol=1e-6)  # the penalty lowers the singular value 6 by 2


def test_a_table_of_zeros_is_estimated_as_zeros():
    for penalty in (0, 1):
        found = factorize_ratings(np.zeros((4, 3)), np.eye(4, 3, dtype=bool), 2, regularization=penalty)
        np.testing.assert_array_equal(found.estimates[:3], np.zeros((3, 3)))
        np.testing.assert_array_equal(found.losses, [0])
        assert found.converged


def test_a_huge_penalty_leaves_nothing():
    table, seen = ratings_of(9, 8, 2, share=0.8)
    for penalty in (1e6, 1e300, 1.7e308):
        found = factorize_ratings(table, seen, 2, regularization=penalty, rng=fresh())
        np.testing.assert_allclose(found.estimates, 0, atol=1e-6)
        assert found.losses[-1] == pytest.approx(np.square(table[seen]).sum(), rel=1e-9)


def test_a_penalty_helps_where_the_ratings_are_few_and_noisy():
    table, seen = ratings_of(40, 30, 2, seed=3)
    noisy = table + fresh(8).standard_normal(table.shape)
    errors = [
        relative_error(factorize_ratings(noisy, seen, 6, regularization=penalty, rng=fresh()).estimates, table)
        for penalty in (0, 5)
    ]
    assert errors[1] < 0.6
    assert errors[0] > 2 * errors[1]


@pytest.mark.parametrize("scale", [4.0**-120, 4.0**120])
def test_tiny_and_huge_ratings_with_a_penalty_to_match_have_the_same_factors(scale):
    table, seen = ratings_of(20, 15, 2, share=0.6)
    one = factorize_ratings(table, seen, 2, regularization=0.5, rng=fresh())
    other = factorize_ratings(table * scale, seen, 2, regularization=0.5 * scale, rng=fresh())
    np.testing.assert_allclose(other.p, one.p * math.sqrt(scale), rtol=1e-5, atol=1e-5 * math.sqrt(scale))
    np.testing.assert_allclose(other.estimates, one.estimates * scale, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(other.losses[-1], one.losses[-1] * scale**2, rtol=1e-6)


@pytest.mark.parametrize(("given_type", "result_type"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_factors_come_in_the_precision_of_the_input(given_type, result_type):
    table, seen = ratings_of(20, 15, 2, share=0.6)
    table = (10 * table).astype(given_type)
    before = table.copy(), seen.copy()
    table.flags.writeable = seen.flags.writeable = False
    found, judge = (factorize_ratings(x, seen, 2, rng=fresh()) for x in (table, table.astype(float)))
    assert found.p.dtype == found.q.dtype == found.estimates.dtype == result_type
    assert found.losses.dtype == np.float64
    assert found.converged is True
    np.testing.assert_allclose(found.estimates, judge.estimates, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(table, before[0])
    np.testing.assert_array_equal(seen, before[1])


def test_the_generator_decides_the_factors():
    table, seen = ratings_of(20, 15, 2, share=0.6)
    one, same, other = (factorize_ratings(table, seen, 2, rng=fresh(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.p, same.p)
    assert not np.array_equal(one.p, other.p)
    np.testing.assert_allclose(one.estimates, other.estimates, atol=0.3)
    assert not np.array_equal(factorize_ratings(table, seen, 2).p, factorize_ratings(table, seen, 2).p)


def test_a_large_table_settles_where_the_whole_svd_would_have_begun():
    table, known = ratings_of(620, 530, 3, share=0.2, kind="far from zero")
    found = factorize_ratings(table, known, 3, regularization=0.1, rng=0)
    assert found.converged
    assert relative_error(found.estimates, table) < 0.01


def test_the_tolerance_and_the_number_of_sweeps_end_the_search():
    table, seen = ratings_of(30, 20, 3)
    table = table + fresh(3).standard_normal(table.shape)
    for tolerance in (1e-2, 1e-4, 1e-6):
        losses = factorize_ratings(table, seen, 3, rng=fresh(), tolerance=tolerance, max_sweeps=5000).losses
        share = -np.diff(losses) / losses[:-1]
        assert share[-1] <= tolerance
        assert (share[:-1] > tolerance).all()
    hurried = factorize_ratings(table, seen, 3, rng=fresh(), tolerance=0, max_sweeps=3)
    assert hurried.converged is False
    assert len(hurried.losses) == 4
    default = factorize_ratings(table, seen, 3, rng=fresh())
    told = factorize_ratings(table, seen, 3, regularization=1.0, rng=fresh(), tolerance=1e-3)
    np.testing.assert_array_equal(default.p, told.p)


def test_half_the_pixels_give_the_other_half_better_than_their_means():
    seen = fresh().random(DIGITS.shape) < 0.5
    found = factorize_ratings(DIGITS, seen, 10, regularization=30, rng=fresh())
    known = ~np.isnan(found.estimates)
    hidden = known & ~seen
    means = np.where(seen, DIGITS, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    ours = np.linalg.norm((found.estimates - DIGITS)[hidden])
    assert ours < 0.9 * np.linalg.norm((means - DIGITS)[hidden])
    assert ours / np.linalg.norm(DIGITS[hidden]) == pytest.approx(0.43, abs=0.02)


BOOLS = "observed must be an array of bools (True marks a known rating), got dtype "


@pytest.mark.parametrize(
    ("observed", "error", "message"),
    [
        (np.ones((3, 4)), TypeError, BOOLS + "float64"),
        (np.ones((3, 4), int), TypeError, BOOLS + "int64"),
        (None, TypeError, BOOLS + "object"),
        (np.ones((4, 3), bool), ValueError, "observed must be of the shape of ratings (3, 4), got (4, 3)"),
        (np.ones(4, bool), ValueError, "observed must be of the shape of ratings (3, 4), got (4,)"),
        (np.zeros((3, 4), bool), ValueError, "observed must mark at least one rating as known, got none"),
        ([[True], []], ValueError, "observed must be a rectangular array of bools, got [[True], []]"),
        (np.ma.masked_all((3, 4), bool), TypeError, "observed must be an array without a mask, got a masked array"),
    ],
)  # fmt: skip
def test_bad_masks_are_refused(observed, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        factorize_ratings(np.ones((3, 4)), observed, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "ratings must be finite where observed, got nan"),
        (-np.inf, "ratings must be finite where observed, got -inf"),
        (-1e80, "ratings must have a largest absolute entry between 1e-75 and 1e+75, got 1e+80: change the unit"),
    ],
)
def test_what_may_stand_in_a_gap_is_refused_as_a_rating(value, message):
    table, seen = np.ones((3, 4)), np.ones((3, 4), bool)
    table[1, 2], seen[1, 2] = value, False
    assert factorize_ratings(table, seen, 1).converged
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        factorize_ratings(table, np.ones((3, 4), bool), 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be between 1 and min(m, n) = 3, got 0"),
        ({"k": 4}, ValueError, "k must be between 1 and min(m, n) = 3, got 4"),
        ({"regularization": -1e-9}, ValueError, "regularization must be finite and at least 0, got -1e-09"),
        ({"regularization": np.inf}, ValueError, "regularization must be finite and at least 0, got inf"),
        ({"rng": "0"}, TypeError, "rng must be a numpy.random.Generator, a seed (an integer) or None, got '0'"),
        ({"tolerance": -1e-9}, ValueError, "tolerance must be at least 0 and below 1, got -1e-09"),
        ({"tolerance": 1}, ValueError, "tolerance must be at least 0 and below 1, got 1.0"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be at least 1, got 0"),
    ],
)
def test_bad_settings_of_ratings_are_refused(arguments, error, message):
    table, seen = np.ones((3, 4)), np.ones((3, 4), bool)
    assert factorize_ratings(table, seen, 3, regularization=0, tolerance=0.999, max_sweeps=1).p.shape == (3, 3)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        factorize_ratings(table, seen, **({"k": 1} | arguments))


def test_what_is_not_a_table_of_ratings_is_refused():
    with pytest.raises(ValueError, match=r"^ratings must be a matrix \(two axes\), got shape \(1,\)$"):
        factorize_ratings([1.0], [True], 1)
    with pytest.raises(ValueError, match=r"^observed must mark at least one rating as known, got none$"):
        factorize_ratings(np.zeros((0, 3)), np.zeros((0, 3), bool), 1)
