"""The cut spectrum: exact and randomized factors, their error, and where to cut through noise."""

import itertools
import math
import tracemalloc

import mpmath
import numpy as np
import pytest
import scipy.sparse.linalg
from matrices import with_spectrum
from numpy.random import default_rng

from lowrank_tutor.svd import (
    SVDResult,
    best_rank_k,
    choose_rank,
    fix_signs,
    hard_threshold,
    noise_edge,
    randomized_svd,
    relative_error,
    tail_error,
    truncated_svd,
)

SHAPES = [(1, 6), (5, 5), (9, 4), (4, 9)]
NORMS = ("fro", "spectral")
I = np.arange(1.0, 201)  # noqa: E741


def product(factors):
    return (factors.u * factors.s) @ factors.vt


def assert_is_svd(result, tolerance=2e-14):
    """Orthonormal factors, a spectrum that does not rise, and the largest entry of each left vector
    positive.
    """
    assert isinstance(result, SVDResult)
    u, s, vt = result
    np.testing.assert_allclose(u.T @ u, np.eye(s.size), atol=tolerance)
    np.testing.assert_allclose(vt @ vt.T, np.eye(s.size), atol=tolerance)
    assert (s >= 0).all()
    assert (s[1:] <= s[:-1]).all()
    assert (u.max(axis=0) >= np.abs(u).max(axis=0) * (1 - 1e-3)).all()


# Exact factors


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_agrees_at_every_rank(shape):
    a = default_rng(0).standard_normal(shape)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    for k in range(1, min(shape) + 1):
        result = truncated_svd(a, k)
        assert_is_svd(result)
        assert all(x.base is None for x in result)  # copies, so that the full factors can be freed
        np.testing.assert_allclose(result.s, s[:k], rtol=1e-13)
        np.testing.assert_allclose(product(result), (u[:, :k] * s[:k]) @ vt[:k], atol=1e-13)


def test_by_hand():
    u, s, vt = truncated_svd([[3, 0], [4, 5]], 2)
    np.testing.assert_allclose(s, [math.sqrt(45), math.sqrt(5)], rtol=1e-15)
    np.testing.assert_allclose(u, np.array([[1, 3], [3, -1]]) / math.sqrt(10), atol=1e-15)
    np.testing.assert_allclose(vt, np.array([[1, 1], [1, -1]]) / math.sqrt(2), atol=1e-15)
    a = np.diag([3.0, 2.0, 1.0])
    np.testing.assert_allclose(best_rank_k(a, 2), np.diag([3.0, 2.0, 0.0]), atol=1e-15)


def test_tall_matrix_fits_memory():
    assert truncated_svd(np.ones((1_000_000, 2)), 1).u.shape == (1_000_000, 1)
    result = truncated_svd(np.zeros((30, 20)), 8)
    assert_is_svd(result)
    assert not result.s.any()


def test_signs():
    vectors = np.array([[3.0, -3.0, 0.0, 1.0], [-4.0, 2.0, 0.0, 2.0]], dtype=np.float32)
    np.testing.assert_array_equal(fix_signs(vectors), [-1, -1, 1, 1])
    assert fix_signs(vectors).dtype == np.float32
    for rounding in (-1e-12, 0, 1e-12):  # of equally large entries the first decides
        np.testing.assert_array_equal(
            fix_signs([[1.0, -1.0], [-1.0 + rounding, 1.0 + rounding]]), [1, -1]
        )
    np.testing.assert_array_equal(fix_signs([[1.0], [-1.0 - 1e-6]]), [-1])  # not equally large


# Errors


def test_tail_errors_by_hand():
    s = [3.0, 2.0, 1.0]
    assert [tail_error(s, k) for k in range(4)] == [math.sqrt(14), math.sqrt(5), 1.0, 0.0]
    assert [tail_error(s, k, "spectral") for k in range(4)] == [3.0, 2.0, 1.0, 0.0]
    assert {type(tail_error(s, k, norm)) for k in (1, 3) for norm in NORMS} == {float}
    for unit in (1e-200, 1e74):
        s = [9e74, 4 * unit, 3 * unit]
        assert tail_error(s, 1) == pytest.approx(5 * unit, rel=1e-15)


def test_relative_errors_by_hand():
    exact = np.diag([4, 3])
    assert relative_error(np.zeros((2, 2)), exact) == 1.0
    assert relative_error(np.diag([4, 0]), exact) == 0.6  # Frobenius by default
    assert relative_error(np.diag([4, 0]), exact, "spectral") == 0.75
    for scale, norm in itertools.product((1e-74, 1e75), NORMS):
        ones = scale * np.ones((2, 2))
        assert relative_error(-ones, ones, norm) == pytest.approx(2.0, rel=1e-12)
    assert relative_error([[1e75]], [[1e-75]]) == pytest.approx(1e150, rel=1e-12)
    assert relative_error(np.float32([[1e-38]]), [[1]]) == 1.0  # in float64


# Randomized factors


def test_passes_keep_weak_directions():
    """Contrast: without orthonormal columns in between, the passes lose them."""
    steep = with_spectrum(0.5 ** I[:60], 80, 60)
    careless = steep @ default_rng(0).standard_normal((60, 20))
    for _ in range(8):
        careless = steep @ (steep.T @ careless)
    kept = np.linalg.qr(careless)[0].T @ steep
    lost = 1 - np.linalg.norm(kept, axis=0) / np.linalg.norm(steep, axis=0)
    assert lost.max() > 1e-9
    np.testing.assert_allclose(randomized_svd(steep, 10, rng=0).s, 0.5 ** I[:10], rtol=1e-12)


# Sparse matrices and linear operators


def sparse_matrix():
    return scipy.sparse.random_array((300, 200), density=0.02, rng=default_rng(0)).tocsr()


@pytest.mark.parametrize("kind", ["coo", "lil", "csr"])
def test_sparse_matrices_stay_sparse(kind):
    a = sparse_matrix()
    single = a.astype(np.float32)
    for same in (single, scipy.sparse.linalg.aslinearoperator(single)):
        assert randomized_svd(same, 3, rng=0).u.dtype == np.float32
    large = scipy.sparse.random(4000, 2000, 0.002, random_state=0).asformat(kind)
    tracemalloc.start()
    randomized_svd(large, 10, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 4000 * 2000


# The threshold


def judged_median(beta):
    """Find the median of the Marchenko-Pastur law by quadrature of its density in 30 digits."""
    with mpmath.workdps(30):
        beta = mpmath.mpf(beta)
        low, high = (1 - mpmath.sqrt(beta)) ** 2, (1 + mpmath.sqrt(beta)) ** 2

        def surplus(x):
            density = lambda t: mpmath.sqrt((high - t) * (t - low)) / (2 * mpmath.pi * beta * t)  # noqa: E731
            return mpmath.quad(density, [low, x]) - mpmath.mpf(1) / 2

        return mpmath.findroot(
            surplus, (low + (high - low) / 4, low + (high - low) / 2), solver="anderson"
        )


@pytest.mark.parametrize(("m", "n"), [(4, 4), (4, 3), (1, 10), (1, 1000)])
def test_thresholds_agree_with_quadrature(m, n):
    beta = mpmath.mpf(min(m, n)) / max(m, n)
    factor = mpmath.sqrt(
        2 * (beta + 1) + 8 * beta / (beta + 1 + mpmath.sqrt(beta**2 + 14 * beta + 1))
    )
    s = np.arange(min(m, n), 0.0, -1)
    expected = factor / mpmath.sqrt(judged_median(beta)) * np.median(s)
    assert hard_threshold(s, m, n) == pytest.approx(float(expected), rel=1e-12)
    assert noise_edge(s, m, n) == pytest.approx(
        float(expected * (1 + mpmath.sqrt(beta)) / factor), rel=1e-12
    )
    assert hard_threshold(s, m, n, noise=0.3) == pytest.approx(
        float(factor * mpmath.sqrt(max(m, n))) * 0.3, rel=1e-14
    )


@pytest.mark.parametrize(
    ("m", "n", "noise", "expected", "rel"),
    [
        (1, 20, None, 1.5194, 2e-4),  # the paper's table
        (1, 2, None, 2.1711, 2e-4),
        (1, 1, None, 2.8582, 2e-4),
        (1, 1, 1, 4 / math.sqrt(3), 1e-15),
        (1, 10**12, None, math.sqrt(2), 1e-5),  # beta near 0
        (2**53, 1, 1, math.sqrt(2) * 2**26.5, 1e-12),
        (1, 1, math.nextafter(1e75, 0), 4e75 / math.sqrt(3), 1e-14),
        (1, 1, 0, 0.0, 0),
    ],
)
def test_thresholds_by_hand(m, n, noise, expected, rel):
    found = hard_threshold([1.0], m, n, noise)
    assert found == pytest.approx(expected, rel=rel)
    assert type(found) is float


def test_edges_by_hand():
    for m, n in ((4, 9), (9, 4)):
        assert noise_edge([1.0] * 4, m, n, noise=0.5) == 0.5 * (2 + 3)
    assert hard_threshold([0.0, 0.0], 2, 2) == 0.0


# Stacks, and where to cut


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacks_are_loops(dtype):
    a, b = default_rng(0).standard_normal((2, 2, 3, 4, 6)).astype(dtype)
    a[..., 0] *= 1e3  # as each matrix has its own unit
    b[0, 0] = 0
    eps = np.finfo(dtype).eps
    calls = {
        **{f"part {i}": lambda a, b, i=i: truncated_svd(a, 3)[i] for i in range(3)},
        "best": lambda a, b: best_rank_k(a, 3),
        "zero": lambda a, b: truncated_svd(b, 3).s,
        "signs": lambda a, b: fix_signs(a),
        **{norm: lambda a, b, norm=norm: relative_error(b, a, norm) for norm in NORMS},
    }
    for name, call in calls.items():
        stack, loops = call(a, b), [call(a[i], b[i]) for i in np.ndindex(2, 3)]
        assert stack.shape[:2] == (2, 3), name
        assert stack.dtype == (np.float64 if name in NORMS else dtype), name
        loops = np.reshape(loops, stack.shape)
        np.testing.assert_allclose(stack, loops, rtol=20 * eps, atol=2e4 * eps, err_msg=name)
    assert truncated_svd(a.astype(np.float16), 3).u.dtype == np.float32


HALVES = [2.0**-i for i in range(6)]


@pytest.mark.parametrize(
    ("s", "rule", "k"),
    [
        ([5, 4, 3, 2, 1], {"energy": 50 / 55}, 3),
        ([5, 4, 3, 2, 1], {"energy": math.nextafter(1, 0)}, 5),
        ([1] * 10, {"energy": 0.9}, 9),  # though 1 - 0.9 is a little below 1/10
        ([1] * 12, {"error": 0.5}, 9),
        ([4, 3], {"error": 0.6}, 1),
        ([4, 3], {"error": math.nextafter(0.6, 0) - 1e-14}, 2),
        ([4, 3, 1e-100, 0], {"error": 0}, 3),
        ([1, 1e-170], {"error": 0}, 2),  # whose square is too small for a float
        ([3, 2], {"error": 0, "total": 13 + 1e-14}, 2),  # the rest is rounding
        (0.9 ** np.arange(1000), {"energy": 1 - 1e-12}, 132),
        (0.9 ** np.arange(1000), {"error": 1e-6}, 132),
        ([99, 14, 1, 1, 1], {"energy": 0.9999}, 4),  # though 1 - 0.9999 is a little below 1/10000
        ([0.7, 0.2, 0.1], {"energy": 0.9}, 1),  # no shares, though they sum to 1
        (np.float32([6.4e13, 1]), {"energy": 0.9}, 1),
        (HALVES, {"error": 0.5}, 1),
        (HALVES, {"gap": True}, 1),  # equal ratios: the first
        ([32, 16, 8 - 1e-12, 4, 2, 1], {"gap": True}, 1),  # also up to rounding
        ([4, 2, 1.9, 0.5], {"gap": True}, 1),  # the widest ratio stands at the middle
        ([9, 8, 1, 0.9], {"gap": True}, 2),
        ([9, 8, 1, 1e-17, 0], {"gap": True}, 3),  # what rounding leaves is no gap
        (np.float32([1, 0.5, 3e-8, 0]), {"gap": True}, 2),
        ([3, 2, 2, 1], {"threshold": 2}, 1),  # a value at the threshold does not count
        ([3, 2, 2, 1], {"threshold": 0}, 4),
        ([9, 1, 1, 1], {"threshold": [4, 6]}, 1),
        ([9, 1.1e-14, 1e-17, 0, 0], {"threshold": (5, 6)}, 1),  # no noise, and 54 eps of rounding
        ([9, 1.3e-14, 1e-17, 0, 0], {"threshold": (5, 6)}, 2),
        (np.float32([9, 6e-6, 1e-8, 0, 0]), {"threshold": (6, 5)}, 1),
        (np.float32([9, 7e-6, 1e-8, 0, 0]), {"threshold": (6, 5)}, 2),
        (
            [9, 8, 7, 2, 1, 0.2],
            {"gap": True},
            3,
        ),  # in the second half a ratio must be six times larger
        ([9, 8, 7, 6.5, 6, 0.2], {"gap": True}, 5),
        ([5, 4, 3], {"energy": 0.9, "total": 55}, 3),
        ([0, 0], {"error": 0.1, "total": 0}, 0),
        ([0, 0], {"energy": 0.9}, 0),
        ([7], {"energy": 0.1}, 1),
    ],
)
def test_rules_by_hand(s, rule, k):
    assert choose_rank(s, **rule) == k
    assert type(choose_rank(s, **rule)) is int
