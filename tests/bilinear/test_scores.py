"""Bilinear scores and their factors against loops, SciPy's optimizers, and PyTorch's gradients."""

import math
import re

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import fresh, with_spectrum

from lowrank_tutor.bilinear import (
    factorize,
    fit_factors,
    reduced_rank_score,
    score,
    score_error,
)
from lowrank_tutor.svd import best_rank_k, tail_error


def moment(d, r=None, seed=0, mean=1.0):
    """Return a second moment (d, d) of rank r, of vectors that do not average to zero."""
    rng = fresh(seed)
    r = d if r is None else r
    x = (rng.standard_normal((4 * d, r)) + mean) @ rng.standard_normal((r, d))
    return x.T @ x / len(x)


def squared_error(w, m, a, b):
    """Return E (s^T (W - M) h)^2 from the moments, as sums over all coordinates."""
    e = w - m
    return float(np.einsum("ij,kl,ik,jl->", e, e, a, b))


# scores

MATCH = "w must have a row for each column of u and a column for each column of v, got shapes "
ZERO = "be positive semidefinite, got a zero on its diagonal in a row that is not zero"


def test_scores_by_hand():
    s, h, u, v = [1, 2], [3, 4], [[2, 1]], [[1, -1]]
    w = np.array(u).T @ v
    np.testing.assert_array_equal(w, [[2, -2], [1, -1]])
    assert score(s, w, h) == reduced_rank_score(s, u, v, h) == -4.0
    assert isinstance(score(s, w, h), float)
    assert isinstance(reduced_rank_score(s, u, v, h), float)
    w = [[3, 0], [4, 5]]
    assert score([1, 2], w, [3, 4]) == 73
    assert reduced_rank_score([1, 2], *factorize(w, 1), [3, 4]) == pytest.approx(73.5, rel=1e-14)


@pytest.mark.parametrize(
    ("s_shape", "h_shape", "result"),
    [
        ((3,), (5,), ()),
        ((3,), (4, 5), (4,)),
        ((4, 3), (5,), (4,)),
        ((4, 3), (4, 5), (4,)),
        ((2, 4, 3), (2, 4, 5), (2, 4)),
        ((3,), (2, 1, 5), (2, 1)),
    ],
)
def test_scores_by_loops(s_shape, h_shape, result):
    rng = fresh()
    s, h = rng.standard_normal(s_shape), rng.standard_normal(h_shape)
    u, v = rng.standard_normal((2, 3)), rng.standard_normal((2, 5))
    w = u.T @ v
    expected = np.zeros(result)
    for place in np.ndindex(result):
        one_s, one_h = s if s.ndim == 1 else s[place], h if h.ndim == 1 else h[place]
        expected[place] = sum(one_s[i] * w[i, j] * one_h[j] for i in range(3) for j in range(5))
    for scores in (score(s, w, h), reduced_rank_score(s, u, v, h)):
        assert np.shape(scores) == result
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("s_shape", "h_shape"), [((4, 3), (2, 5)), ((1, 3), (2, 5)), ((2, 3), (2, 2, 5)), ((2, 4, 3), (2, 2, 5))]
)
def test_no_silent_broadcasting(s_shape, h_shape):
    s, h = np.ones(s_shape), np.ones(h_shape)
    message = f"s and h must have the same leading axes, or one of them be a single vector, got shapes {s_shape} and "
    for function, matrices in ((score, [np.ones((3, 5))]), (reduced_rank_score, [np.ones((1, 3)), np.ones((1, 5))])):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}{re.escape(str(h.shape))}$"):
            function(s, *matrices, h)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score([1, 2], np.ones((3, 2)), [1, 2]), "s must be as long as w has rows, got shapes (2,) and (3, 2)"),
        (lambda: score([1, 2], np.ones((2, 3)), [1, 2]),
         "h must be as long as w has columns, got shapes (2,) and (2, 3)"),
        (lambda: reduced_rank_score([1, 2], [[1]], [[1]], [1]),
         "s must be as long as u has columns, got shapes (2,) and (1, 1)"),
        (lambda: reduced_rank_score([1], [[1]], [[1]], [1, 2]),
         "h must be as long as v has columns, got shapes (2,) and (1, 1)"),
        (lambda: reduced_rank_score([1], [[1], [2]], [[1]], [1]),
         "u and v must have equally many rows, got shapes (2, 1) and (1, 1)"),
        (lambda: score(1, [[1]], [1]), "s must be a vector or an array of vectors (at least one axis), got shape ()"),
        (lambda: score([1], [[1]], 1), "h must be a vector or an array of vectors (at least one axis), got shape ()"),
        (lambda: factorize(np.ones((2, 3)), 0), "k must be between 1 and min(d2, d1) = 2, got 0"),
        (lambda: factorize(np.ones((3, 2)), 3), "k must be between 1 and min(d2, d1) = 2, got 3"),
        (lambda: fit_factors(np.ones((2, 3)), 0), "k must be between 1 and min(m, n) = 2, got 0"),
        (lambda: fit_factors(np.ones((3, 2)), 3), "k must be between 1 and min(m, n) = 2, got 3"),
        (lambda: fit_factors(np.eye(2), 1, steps=-1), "steps must be at least 0, got -1"),
        (lambda: score_error(np.ones((2, 3)), [[1.0]], [[1.0, 2.0, 3.0]]), MATCH + "(2, 3), (1, 1) and (1, 3)"),
        (lambda: score_error(np.ones((2, 3)), [[1.0, 2.0]], [[1.0]]), MATCH + "(2, 3), (1, 2) and (1, 1)"),
        (lambda: score_error(np.ones((2, 3)), [[1.0, 2.0]], np.ones((2, 3))),
         "u and v must have equally many rows, got shapes (1, 2) and (2, 3)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("name", ["s_moment", "h_moment"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.eye(3), "be of shape (2, 2) to match w, got shape (3, 3)"),
        (np.ones((2, 3)), "be of shape (2, 2) to match w, got shape (2, 3)"),
        ([[1, 0.5], [0.4, 1]], "be symmetric, got 0.5 and 0.4 across the diagonal"),
        ([[1e8, 0.5], [0.4, 1e-8]], "be symmetric, got 0.5 and 0.4 across the diagonal"),
        ([[1, 0], [0, -1e-9]], "be positive semidefinite, got -1e-09 on its diagonal"),
        ([[1, 2], [2, 1]], "be positive semidefinite, got the eigenvalue -1 (at unit diagonal)"),
        ([[4, 2.1], [2.1, 1]], "be positive semidefinite, got the eigenvalue -0.05 (at unit diagonal)"),
        ([[1, 1], [1, 0]], ZERO),
        ([[0, 0], [1, 1]], ZERO),
        ([[0, 1], [0, 1]], ZERO),
    ],
)
def test_bad_moments_are_refused(name, bad, message):
    with pytest.raises(ValueError, match=f"^{name} must {re.escape(message)}$"):
        factorize(np.eye(2), 1, **{name: bad})


EYE, ROW = np.eye(2), [[1, 2]]
GOOD = {
    score: {"s": [1, 2], "w": EYE, "h": [1, 2]},
    reduced_rank_score: {"s": [1, 2], "u": ROW, "v": ROW, "h": [1, 2]},
    factorize: {"w": EYE, "k": 1, "s_moment": EYE, "h_moment": EYE},
    score_error: {"w": EYE, "u": ROW, "v": ROW, "s_moment": EYE, "h_moment": EYE},
    fit_factors: {"target": EYE, "k": 1},
}


@pytest.mark.parametrize(
    ("function", "name"), [(f, name) for f, given in GOOD.items() for name in given if name != "k"]
)
def test_nan_is_refused_by_name(function, name):
    bad = np.array(GOOD[function][name], dtype=float)
    bad.flat[-1] = np.nan
    with pytest.raises(ValueError, match=f"^{name} must be finite, got nan$"):
        function(**{**GOOD[function], name: bad})


# the best factors


@pytest.mark.parametrize("spectrum", [[5, 4, 3, 2, 1], [1, 1e-3, 1e-6, 1e-9, 0], [2, 2, 2, 2, 2]])
@pytest.mark.parametrize("shape", [(5, 5), (5, 8), (9, 5)])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_eckart_young_without_moments(spectrum, shape, k):
    w = with_spectrum(spectrum, *shape)
    u, v = factorize(w, k)
    assert u.shape == (k, shape[0])
    assert v.shape == (k, shape[1])
    assert abs(np.linalg.norm(w - u.T @ v) - tail_error(spectrum, k)) < 1e-12
    assert abs(score_error(w, u, v) - tail_error(spectrum, k)) < 1e-12
    np.testing.assert_array_equal(u.max(axis=1), np.abs(u).max(axis=1))
    kept = np.diag(spectrum[:k])  # shared evenly between the factors
    np.testing.assert_allclose(u @ u.T, kept, atol=1e-12)
    np.testing.assert_allclose(v @ v.T, kept, atol=1e-12)
    if spectrum[0] > spectrum[-1]:
        np.testing.assert_allclose(u.T @ v, best_rank_k(w, k), atol=1e-12)


@pytest.mark.parametrize("r_s", [2, 3, 5])
@pytest.mark.parametrize("r_h", [2, 4, 7])
@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_formula_with_moments(r_s, r_h, k):
    w, a, b = fresh().standard_normal((5, 7)), moment(5, r_s, seed=1), moment(7, r_h, seed=2)
    u, v = factorize(w, k, s_moment=a, h_moment=b)
    root_a, root_b = (scipy.linalg.sqrtm(m + 0j).real.astype(float) for m in (a, b))
    inverse_a, inverse_b = np.linalg.pinv(root_a, rcond=1e-6), np.linalg.pinv(root_b, rcond=1e-6)
    x = root_a @ w @ root_b
    np.testing.assert_allclose(u.T @ v, inverse_a @ best_rank_k(x, k) @ inverse_b, atol=1e-6)
    optimum = tail_error(np.linalg.svd(x, compute_uv=False), k)
    scale = np.linalg.norm(x)
    assert abs(score_error(w, u, v, s_moment=a, h_moment=b) - optimum) < 1e-6 * scale  # sqrtm has half the digits
    assert abs(squared_error(w, u.T @ v, a, b) - optimum**2) < 1e-12 * scale**2
    rank = min(k, r_s, r_h)
    s = np.diag(u @ a @ u.T)
    np.testing.assert_allclose(u @ a @ u.T, np.diag(s), atol=1e-10)
    np.testing.assert_allclose(v @ b @ v.T, np.diag(s), atol=1e-10)
    assert (s[:rank] > 1e-3).all()
    np.testing.assert_array_equal(u[rank:], 0)
    np.testing.assert_array_equal(v[rank:], 0)


@pytest.mark.parametrize(("d2", "d1", "k"), [(3, 3, 1), (3, 4, 2), (4, 2, 1)])
@pytest.mark.parametrize("rank", [None, 2])
def test_no_search_does_better(d2, d1, k, rank):
    w, a, b = fresh(4).standard_normal((d2, d1)), moment(d2, rank, seed=5), moment(d1, rank, seed=6)
    optimum = score_error(w, *factorize(w, k, s_moment=a, h_moment=b), s_moment=a, h_moment=b) ** 2
    scale = squared_error(w, 0 * w, a, b)

    def loss(x):
        u, v = x[: k * d2].reshape(k, d2), x[k * d2 :].reshape(k, d1)
        e = u.T @ v - w
        g = 2 * a @ e @ b / scale
        return np.sum(g * e) / 2, np.concatenate([(v @ g.T).ravel(), (u @ g).ravel()])

    found = [
        scipy.optimize.minimize(
            loss, fresh(seed).standard_normal(k * (d2 + d1)), jac=True, method="BFGS", options={"gtol": 1e-11}
        ).fun
        for seed in range(20)
    ]
    assert min(found) * scale >= optimum - 1e-12 * scale
    assert abs(min(found) * scale - optimum) < 1e-8 * scale


def test_error_of_all_pairs():
    """All pairs of two samples are independent draws, so that the moments give the error exactly."""
    rng = fresh(8)
    s = 1 + rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6))
    h = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 5)) - 2
    w, a, b = rng.standard_normal((6, 5)), s.T @ s / 30, h.T @ h / 40
    errors = {}
    for name, moments in {
        "moments": (a, b),
        "covariances": (np.cov(s.T, bias=True), np.cov(h.T, bias=True)),
        "none": (None, None),
    }.items():
        u, v = factorize(w, 2, s_moment=moments[0], h_moment=moments[1])
        errors[name] = math.sqrt(np.mean((s @ (w - u.T @ v) @ h.T) ** 2))
        assert score_error(w, u, v, s_moment=a, h_moment=b) == pytest.approx(errors[name], rel=1e-12)
    assert errors["moments"] < 0.9 * errors["covariances"]
    assert errors["moments"] < 0.9 * errors["none"]


@pytest.mark.parametrize("rank", [2, 5])
def test_different_units_change_nothing(rank):
    """Compare with s' = D s and W' = W D^-1, which give the same scores."""
    units = 10.0 ** np.array([-8, -4, 0, 4, 8])
    w, a, b = fresh(1).standard_normal((5, 7)), moment(5, rank, seed=2), moment(7, seed=3)
    u, v = factorize(w, 1, s_moment=a, h_moment=b)
    u_scaled, v_scaled = factorize(w / units[:, None], 1, s_moment=units[:, None] * a * units, h_moment=b)
    np.testing.assert_allclose(v_scaled * np.sign(v[0, 0] * v_scaled[0, 0]), v, rtol=1e-9)
    error = score_error(w, u, v, s_moment=a, h_moment=b)
    assert score_error(
        w / units[:, None], u_scaled, v_scaled, s_moment=units[:, None] * a * units, h_moment=b
    ) == pytest.approx(error, rel=1e-9)
    if rank == 5:
        np.testing.assert_allclose(np.abs(u_scaled * units), np.abs(u), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-70, 1e-40, 1e40, 1e70])
def test_tiny_and_huge_numbers(scale):
    w, a, b = with_spectrum([3, 2, 1], 4, 3), moment(4), moment(3, seed=1)
    plain = factorize(w, 2, s_moment=a, h_moment=b)
    product, error = plain.u.T @ plain.v, score_error(w, *plain, s_moment=a, h_moment=b)
    u, v = factorize(w * scale, 2, s_moment=a, h_moment=b)
    np.testing.assert_allclose((u / math.sqrt(scale)).T @ (v / math.sqrt(scale)), product, rtol=1e-11)
    assert score_error(w * scale, u, v, s_moment=a, h_moment=b) / scale == pytest.approx(error, rel=1e-11)
    u, v = factorize(w, 2, s_moment=a * scale, h_moment=b / scale)
    np.testing.assert_allclose(u.T @ v, product, rtol=1e-11)
    assert score_error(w, u, v, s_moment=a * scale, h_moment=b / scale) == pytest.approx(error, rel=1e-11)
    assert score_error(w, u, v, s_moment=a * scale, h_moment=b) == pytest.approx(error * math.sqrt(scale), rel=1e-11)


def test_zero_moments():
    w = fresh().standard_normal((3, 4))
    u, v = factorize(w, 3, s_moment=np.diag([1.0, 0.0, 4.0]))
    np.testing.assert_allclose(u.T @ v, w * [[1], [0], [1]], atol=1e-14)
    u, v = factorize(0 * w, 1)
    np.testing.assert_array_equal(u.T @ v, 0 * w)
    for moments in ({"s_moment": np.zeros((3, 3))}, {"h_moment": np.zeros((4, 4))}):
        u, v = factorize(w, 2, **moments)
        np.testing.assert_array_equal(u, np.zeros((2, 3)))
        np.testing.assert_array_equal(v, np.zeros((2, 4)))
        assert score_error(w, u, v, **moments) == 0.0
        assert score_error(w, u + 1, v + 1, **moments) == 0.0


@pytest.mark.parametrize(("given_type", "result"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_precision_of_the_matrix(given_type, result):
    w = (10 * fresh().standard_normal((4, 6))).astype(given_type)
    a = (100 * moment(4, seed=7)).astype(given_type)
    for factors in (factorize(w, 2), factorize(w, 2, s_moment=a)):
        assert {x.dtype for x in factors} == {np.dtype(result)}
    u, v = factorize(w, 2, s_moment=a)
    judge = factorize(w.astype(float), 2, s_moment=a.astype(float))
    np.testing.assert_allclose(u.T @ v, judge.u.T @ judge.v, rtol=1e-4, atol=1e-4)
    assert isinstance(score_error(w, u, v, s_moment=a), float)


def test_single_precision_moments():
    x = np.float32(fresh().standard_normal((500, 6)) @ fresh(1).standard_normal((6, 6)))
    a = np.einsum("ni,nj->ij", x, x)
    a[0, 1] *= np.float32(1 + 1e-6)
    assert factorize(np.ones((6, 2)), 1, s_moment=a).u.shape == (1, 6)
    with pytest.raises(ValueError, match="must be symmetric"):
        factorize(np.ones((6, 2)), 1, s_moment=a.astype(float))
    thin = np.float32(fresh().standard_normal((3, 6)))
    low = factorize(np.ones((6, 2)), 1, s_moment=thin.T @ thin)
    judge = factorize(np.ones((6, 2)), 1, s_moment=thin.astype(float).T @ thin.astype(float))
    np.testing.assert_allclose(low.u, judge.u, atol=1e-4)


def test_rounding_is_tolerated():
    a = np.ones((3, 3))
    a[0, 1] += 1e-9
    a[2, 2] -= 1e-9
    u, v = factorize(np.eye(3), 1, s_moment=a, h_moment=a)
    assert score_error(np.eye(3), u, v, s_moment=a, h_moment=a) < 1e-8
    for too_much in (a + np.diag([1e-6, 0], 1), a - np.diag([0, 0, 1e-6])):
        with pytest.raises(ValueError, match="s_moment must be"):
            factorize(np.eye(3), 1, s_moment=too_much)


# learned factors

TARGETS = {
    "numbers at random": (fresh().standard_normal((30, 20)), [1, 3, 10, 19]),
    "wide": (fresh(1).standard_normal((8, 25)), [2, 7]),
    "asymmetric similarity": (np.array([[1, 0.2, 0.1], [0.9, 1, 0.3], [0.2, 0.6, 1]]), [1, 2]),
    "halving": (with_spectrum(0.5 ** np.arange(8), 20, 15), [1, 2, 4]),
    "flat": (with_spectrum(np.ones(10), 10, 12), [1, 5, 9]),
    "nearly equal": (with_spectrum([1, 0.99, 0.98], 12, 12), [1, 2]),
    "two levels": (with_spectrum([1, 0.9, 0.1, 0.09], 12, 12), [1, 2, 3]),
    "a hundredth": (with_spectrum([1, 0.5, 0.01, 0.003], 12, 12), [2, 3]),
    "one row": (np.array([[1.0, 2.0]]), [1]),
    "huge": (1e60 * fresh().standard_normal((6, 5)), [2]),
    "tiny": (1e-60 * fresh().standard_normal((6, 5)), [2]),
}
CASES = [(name, k) for name, (_, ranks) in TARGETS.items() for k in ranks]


@pytest.mark.parametrize(("name", "k"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_descent_nears_optimum(name, k, seed):
    target = TARGETS[name][0]
    fit = fit_factors(target, k, rng=fresh(seed))
    optimum = tail_error(np.linalg.svd(target, compute_uv=False), k) ** 2 / 2
    start = np.linalg.norm(target) ** 2 / 2
    assert fit.losses[-1] == pytest.approx(
        np.linalg.norm(target - fit.u @ fit.v.T) ** 2 / 2, rel=1e-9, abs=1e-25 * start
    )
    assert optimum * (1 - 1e-12) - 1e-25 * start <= fit.losses[-1] <= 1.01 * optimum + 1e-12 * start
    assert fit.losses.shape == (2001,)
    assert (np.diff(fit.losses) <= 1e-14 * fit.losses[0]).all()
    assert fit.losses[0] == pytest.approx(start, rel=0.25)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(1, 6), st.data(), st.integers(0, 10**6))
def test_exact_rank_is_learned(n, m, data, seed):
    k = data.draw(st.integers(1, min(n, m)))
    target = with_spectrum(np.linspace(2, 1, k), n, m, seed)
    u, v, losses = fit_factors(target, k, rng=fresh(seed))
    assert losses[-1] < 1e-12 * losses[0]
    np.testing.assert_allclose(u @ v.T, target, atol=1e-5)


def test_one_gradient_step():
    target = fresh().standard_normal((4, 3))
    start = fit_factors(target, 2, steps=0, rng=fresh(5))
    rate = 1 / (2 * np.linalg.norm(target, 2))
    one = fit_factors(target, 2, steps=1, rng=fresh(5))
    u, v = (torch.tensor(x, requires_grad=True) for x in start[:2])
    loss = 0.5 * (torch.tensor(target) - u @ v.T).square().sum()
    loss.backward()
    assert start.losses.tolist() == pytest.approx([loss.item()], rel=1e-14)
    np.testing.assert_allclose(one.u, start.u - rate * u.grad.numpy(), atol=1e-14)
    np.testing.assert_allclose(one.v, start.v - rate * v.grad.numpy(), atol=1e-14)


def test_small_random_start():
    target = 9 * fresh().standard_normal((6, 5))
    u, v, losses = fit_factors(target, 2, steps=0, rng=fresh())
    drawn = fresh()  # Gaussian, with a norm near a tenth of the root of the target's
    for x, length in ((u, 6), (v, 5)):
        size = math.sqrt(np.linalg.norm(target, 2)) / 10 / (math.sqrt(length) + math.sqrt(2))
        np.testing.assert_allclose(x, size * drawn.standard_normal((length, 2)), rtol=1e-12)
    assert losses.shape == (1,)
    again, other = fit_factors(target, 2, steps=0, rng=fresh()), fit_factors(target, 2, steps=0, rng=fresh(1))
    np.testing.assert_array_equal(u, again.u)
    assert not np.allclose(u, other.u)
    assert not np.allclose(fit_factors(target, 2, steps=0).u, fit_factors(target, 2, steps=0).u)


def test_zero_target():
    u, v, losses = fit_factors(np.zeros((3, 2)), 1, steps=4)
    np.testing.assert_array_equal(u @ v.T, np.zeros((3, 2)))
    np.testing.assert_array_equal(losses, np.zeros(5))


# the caller


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arguments_are_left_alone(dtype):
    w, s, h, a = (
        (10 * fresh(i).standard_normal(shape)).astype(dtype) for i, shape in enumerate([(4, 3), (5, 4), (5, 3), (6, 4)])
    )
    a = (a.T @ a).astype(dtype)
    for x in (w, s, h, a):
        x.flags.writeable = False  # so that changes would fail
    score(s, w, h)
    u, v = factorize(w, 2, s_moment=a)
    score_error(w, u, v, s_moment=a)
    reduced_rank_score(s, u, v, h)
    learned = fit_factors(w, 1, steps=2)
    assert {learned.u.dtype, learned.v.dtype} == {np.dtype(np.float32 if dtype == np.float32 else np.float64)}
    assert learned.losses.dtype == np.float64
    for result in (u, v, *learned[:2]):
        assert not any(np.shares_memory(result, x) for x in (w, s, h, a))
