"""NMF against scikit-learn, SciPy, plain loops, and conditions of optimality."""

import math

import numpy as np
import pytest
from matrices import fresh
from sklearn.datasets import load_digits

from lowrank_tutor.nmf import nmf

UNIFORM = fresh(1).random((50, 40))


def svd_start(x, k):
    """Keep the heavier half of each singular pair, the positive or the negative one."""
    u, s, vt = np.linalg.svd(x)
    c, f = np.zeros((len(x), k)), np.zeros((k, x.shape[1]))
    for i in range(k):
        halves = [(np.maximum(sign * u[:, i], 0), np.maximum(sign * vt[i], 0)) for sign in (1, -1)]
        left, right = max(
            halves, key=lambda half: np.linalg.norm(half[0]) * np.linalg.norm(half[1])
        )
        c[:, i], f[i] = math.sqrt(s[i]) * left, math.sqrt(s[i]) * right
    return c, f


@pytest.mark.parametrize("seed", range(2))
def test_sweeps_by_loops(seed):
    x = fresh(seed).random((7, 5)) ** 3
    c, f = svd_start(x, 3)
    errors = [np.linalg.norm(x - c @ f)]
    for _ in range(4):
        for factor, mate, table in ((c, f.T, x), (f.T, c, x.T)):  # parts are columns of each
            for j in 3 * [0, 1, 2]:
                others = sum(np.outer(factor[:, i], mate[:, i]) for i in range(3) if i != j)
                for row in range(len(factor)):
                    best = (table - others)[row] @ mate[:, j] / (mate[:, j] @ mate[:, j])
                    factor[row, j] = max(best, 0)
        errors.append(np.linalg.norm(x - c @ f))
    found = nmf(x, 3, starts=1, max_sweeps=4)
    np.testing.assert_allclose(found.errors, errors, rtol=1e-9)
    np.testing.assert_allclose(found.c @ found.f, c @ f, rtol=1e-9)


def test_pure_rows_identify_parts():
    parts = np.zeros((3, 9))
    parts[0, :4], parts[1, 4:6], parts[2, 6:] = 0.5, math.sqrt(0.5), math.sqrt(1 / 3)
    amounts = np.vstack([fresh().random((20, 3)), np.eye(3)]) * [9, 3, 1]
    c, f, _, converged, _ = nmf(amounts @ parts, 3, rng=fresh(), tolerance=1e-9)
    assert converged
    np.testing.assert_allclose(f, parts, atol=1e-5)
    np.testing.assert_allclose(c, amounts, atol=1e-4)


def test_more_starts_never_worse():
    """On digits, the start from the SVD falls behind in its first sweeps and ends best."""
    digits = load_digits().data[:600]
    assert nmf(digits, 10, rng=0, starts=3).error <= nmf(digits, 10, starts=1).error
    table = fresh(0).random((20, 15))
    errors = [nmf(table, 6, rng=0, starts=starts, tolerance=1e-6).error for starts in (1, 2, 5, 8)]
    assert errors == sorted(errors, reverse=True)


def test_generator_decides():
    x = UNIFORM[:20]
    one, same = (nmf(x, 6, rng=fresh(4), tolerance=1e-5) for _ in range(2))
    np.testing.assert_array_equal(one.c, same.c)
    x = fresh(2).random((20, 15))
    others = {nmf(x, 6, rng=seed, starts=4, tolerance=1e-5).error for seed in range(4)}
    assert len(others) > 1  # equal where the best start is one of the two from the SVD
    drawn = {nmf(x, 6, starts=2, tolerance=1e-5).error for _ in range(2)}
    assert len(drawn) == 1  # which are not random


def test_tolerance_stops_the_descent():
    x = UNIFORM
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


def test_converged_flag():
    x = fresh().random((40, 5)) @ fresh(1).random((5, 30))
    hurried = nmf(x, 5, rng=fresh(), max_sweeps=20)
    assert hurried.converged is False
    assert len(hurried.errors) == 21
    assert hurried.error > 2 * nmf(x, 5, rng=fresh()).error
    # the brief trials of the starts, 200 sweeps each, count
    assert len(nmf(x, 5, rng=fresh(), tolerance=0, max_sweeps=200).errors) == 201
    assert len(nmf(x, 5, rng=fresh(), tolerance=0, max_sweeps=201).errors) == 202


def test_bounds():
    result = nmf(np.ones((3, 4)), 3, starts=1, tolerance=0.999, max_sweeps=1)
    assert result.c.shape == (3, 3)
    assert nmf([[-0.0, 1.0]], 1).error == 0
    for tiny, parts in ((4e-15, 1), (1e-14, 2)):  # 20 eps of the heaviest are rounding
        assert np.count_nonzero(nmf(np.diag([1, tiny]), 2, rng=0).f.any(axis=1)) == parts
