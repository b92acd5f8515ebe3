"""Ratings with gaps against loops, least squares, and the SVD of full tables."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from matrices import fresh

from lowrank_tutor.factorization import factorize_ratings


def ratings_of(n, m, k, share=0.4):
    """Draw a table of rank k and a mask of what is observed of it."""
    rng = fresh(0)
    table = rng.standard_normal((n, k)) @ rng.standard_normal((k, m))
    return table, rng.random((n, m)) < share


def objective(table, seen, p, q, penalty):
    """Add up the squared errors, entry by entry, and the penalty."""
    misses = sum((table[i, j] - p[i] @ q[j]) ** 2 for i, j in np.argwhere(seen))
    return misses + penalty * (sum(row @ row for row in p) + sum(row @ row for row in q))


def half_step_by_loops(q, table, seen, penalty):
    """Solve a least-squares problem for each row, with the penalty as k more equations."""
    k = q.shape[1]
    rows = []
    for row, mine in zip(table, seen, strict=True):
        a = np.vstack([[q[j] for j in np.flatnonzero(mine)], math.sqrt(penalty) * np.eye(k)])
        b = np.concatenate([[row[j] for j in np.flatnonzero(mine)], np.zeros(k)])
        rows.append(np.linalg.lstsq(a, b, rcond=None)[0])
    return np.array(rows)


@pytest.mark.parametrize("penalty", [0.0, 1e-7, 0.1, 3.0])
def test_descent_by_loops(penalty):
    """A large penalty falls to the real one; then one sweep more, row by row."""
    table, seen = ratings_of(12, 9, 2, share=0.3)
    seen[:, 0] = seen[0] = True
    r = np.where(seen, table, 0)
    u, s, vt = np.linalg.svd(r * seen.size / seen.sum(), full_matrices=False)
    signs = np.sign(
        u[np.abs(u).argmax(axis=0), np.arange(len(s))]
    )  # the largest entry of each u is positive
    q = (signs * np.sqrt(s) * vt.T)[:, :3]
    q = q + 0.01 * np.sqrt((q**2).mean()) * fresh(5).standard_normal((9, 3))
    falling = [10 ** (-1 - 2 * step / 9) * s[0] for step in range(10)]
    penalties = [large for large in falling if large > penalty] + [penalty]
    for large in penalties:
        p = half_step_by_loops(q, r, seen, large)
        q = half_step_by_loops(p, r.T, seen.T, large)
    losses = [objective(table, seen, p, q, penalty)]
    p = half_step_by_loops(q, r, seen, penalty)
    q = half_step_by_loops(p, r.T, seen.T, penalty)
    losses.append(objective(table, seen, p, q, penalty))
    found = factorize_ratings(
        table, seen, 3, regularization=penalty, rng=fresh(5), tolerance=0, max_sweeps=1
    )
    np.testing.assert_allclose(found.losses, losses, rtol=1e-6)
    np.testing.assert_allclose(found.c, p, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.f, q.T, rtol=1e-5, atol=1e-7)


def test_unknown_rows_are_nan():
    table, seen = ratings_of(20, 15, 2, share=0.6)
    seen[4] = False
    seen[:, [0, 7]] = False
    result = factorize_ratings(table, seen, 2, rng=fresh())
    rows, columns = np.arange(20) != 4, ~np.isin(np.arange(15), [0, 7])
    np.testing.assert_array_equal(np.isnan(result.estimates), ~np.outer(rows, columns))
    rest = factorize_ratings(table[rows][:, columns], seen[rows][:, columns], 2, rng=fresh())
    np.testing.assert_array_equal(result.c[rows], rest.c)
    np.testing.assert_array_equal(result.f[:, columns], rest.f)
    np.testing.assert_array_equal(result.losses, rest.losses)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_new_rows(penalty):
    table, seen = ratings_of(60, 20, 3, share=0.6)
    seen[:50, 7] = seen[59] = False
    seen[59, 7] = seen[58, 2] = True
    result = factorize_ratings(table[:50], seen[:50], 3, regularization=penalty, rng=fresh())
    new = np.where(seen, table, np.nan)[50:]
    c = result.transform(new)
    known = seen[50:59] & (np.arange(20) != 7)  # a column that no old row rated says nothing
    judge = half_step_by_loops(np.nan_to_num(result.f.T), table[50:59], known, penalty)
    np.testing.assert_allclose(c[:9], judge, atol=1e-8)
    assert np.isnan(c[9]).all()
    np.testing.assert_array_equal(result.transform(table[50:], seen[50:]), c)
    np.testing.assert_array_equal(
        result.transform(scipy.sparse.coo_array(np.where(seen, table, 0)[50:])), c
    )
    if not penalty:
        np.testing.assert_allclose((c @ result.f)[:9, :7], table[50:59, :7], atol=1e-8)


def test_memory_grows_with_ratings():
    known = scipy.sparse.random(3000, 200, 0.02, rng=fresh(), format="coo")
    tracemalloc.start()
    factorize_ratings(known, None, 32, rng=0, max_sweeps=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 15e6  # with a matrix (k, k) for each row at once, 25 MB


@pytest.mark.parametrize("unit", [1e-20, 0.01, 1e20])
def test_default_fits_any_unit(unit):
    """By default a quarter of the root mean square; daily returns of a hundredth would not survive
    a penalty of 1.

    Far from zero, half the standard deviation. Contrast: with a quarter of the root mean square
    only means were left.
    """
    table, seen = ratings_of(30, 20, 2)
    usual, scaled = (factorize_ratings(x, seen, k=2, rng=0) for x in (table, table * unit))
    assert usual.regularization == pytest.approx(np.sqrt(np.mean(table[seen] ** 2)) / 4, rel=1e-12)
    np.testing.assert_allclose(
        scaled.estimates, usual.estimates * unit, rtol=1e-6, atol=1e-9 * unit
    )
    nothing = factorize_ratings(table * unit, seen, 2, regularization=100 * unit)
    np.testing.assert_allclose(nothing.estimates, 0, atol=1e-9 * unit)
    far = factorize_ratings(table + 50, seen, 3, rng=0)
    assert far.regularization == pytest.approx(table[seen].std() / 2, rel=1e-12)
    assert np.std(far.estimates - table) < 0.5 * np.std(table)


def test_tolerance_and_sweeps_stop():
    table, seen = ratings_of(30, 20, 3)
    table = table + fresh(3).standard_normal(table.shape)
    for tolerance in (1e-2, 1e-4, 1e-6):
        losses = factorize_ratings(
            table, seen, 3, rng=fresh(), tolerance=tolerance, max_sweeps=5000
        ).losses
        share = -np.diff(losses) / losses[:-1]
        assert share[-1] <= tolerance
        assert (share[:-1] > tolerance).all()
    hurried = factorize_ratings(table, seen, 3, rng=fresh(), tolerance=0, max_sweeps=3)
    assert hurried.converged is False
    assert len(hurried.losses) == 4
