"""Bilinear scores and their factors against loops, SciPy's optimizers, and PyTorch's gradients."""

import math

import numpy as np
import pytest
import torch
from matrices import fresh

from lowrank_tutor.bilinear import (
    factorize,
    fit_factors,
    reduced_rank_score,
    score,
    score_error,
)


def moment(d, r=None, seed=0, mean=1.0):
    """Return a second moment (d, d) of rank r, of vectors that do not average to zero."""
    rng = fresh(seed)
    r = d if r is None else r
    x = (rng.standard_normal((4 * d, r)) + mean) @ rng.standard_normal((r, d))
    return x.T @ x / len(x)


# scores


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
    ("s_shape", "h_shape"), [((4, 3), (2, 5)), ((1, 3), (2, 5)), ((2, 3), (2, 2, 5))]
)
def test_no_silent_broadcasting(s_shape, h_shape):
    s, h = np.ones(s_shape), np.ones(h_shape)
    for function, matrices in (
        (score, [np.ones((3, 5))]),
        (reduced_rank_score, [np.ones((1, 3)), np.ones((1, 5))]),
    ):
        with pytest.raises(
            ValueError,
            match=r"^s and h must have the same leading axes, or one of them be a single",
        ):
            function(s, *matrices, h)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score([1, 2], np.ones((3, 2)), [1, 2]), r"s must have shape \(\.\.\., 3\)"),
        (lambda: reduced_rank_score([1], [[1]], [[1]], [1, 2]), r"h must have shape \(\.\.\., 1\)"),
        (lambda: reduced_rank_score([1], [[1], [2]], [[1]], [1]), r"v must have shape \(2, d1\)"),
        (
            lambda: score_error(np.ones((2, 3)), [[1.0]], [[1.0, 2.0, 3.0]]),
            r"w must have shape \(1, 3\)",
        ),
        *(
            (
                lambda name=name, bad=bad: factorize(np.eye(2), 1, **{name: bad}),
                f"{name} must {rule}",
            )
            for name in ("s_moment", "h_moment")
            for bad, rule in (
                (np.eye(3), "have shape"),
                ([[1e8, 0.5], [0.4, 1e-8]], "be symmetric and positive semidefinite, got"),
                ([[1, 0], [0, -1e-9]], "be symmetric and positive semidefinite, got"),
                ([[4, 2.1], [2.1, 1]], "be symmetric and positive semidefinite, got"),
                ([[1, 1], [1, 0]], "be symmetric and positive semidefinite, got"),
            )
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


# the best factors


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


# learned factors


def test_one_gradient_step():
    target = 9 * fresh().standard_normal((4, 3))
    start = fit_factors(target, 2, steps=0, rng=fresh(5))
    drawn = fresh(5)  # Gaussian, with a norm near a tenth of the root of the target's
    for x, length in ((start.u, 4), (start.v, 3)):
        size = math.sqrt(np.linalg.norm(target, 2)) / 10 / (math.sqrt(length) + math.sqrt(2))
        np.testing.assert_allclose(x, size * drawn.standard_normal((length, 2)), rtol=1e-12)
    rate = 1 / (2 * np.linalg.norm(target, 2))
    step = fit_factors(target, 2, steps=1, rng=fresh(5))
    u, v = (torch.tensor(x, requires_grad=True) for x in start[:2])
    loss = 0.5 * (torch.tensor(target) - u @ v.T).square().sum()
    loss.backward()
    assert start.losses.tolist() == pytest.approx([loss.item()], rel=1e-14)
    np.testing.assert_allclose(step.u, start.u - rate * u.grad.numpy(), atol=1e-13)
    np.testing.assert_allclose(step.v, start.v - rate * v.grad.numpy(), atol=1e-13)
