"""The cut spectrum: exact and randomized factors, their error, and where to cut through noise."""

import itertools
import math
import re
import tracemalloc

import mpmath
import numpy as np
import pytest
import scipy.sparse
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import orthonormal, with_spectrum
from numpy.random import default_rng
from scipy.sparse.linalg import aslinearoperator
from sklearn.decomposition import TruncatedSVD

from lowrank_tutor import svd
from lowrank_tutor.svd import (
    SVD,
    best_rank_k,
    fix_signs,
    hard_threshold,
    randomized_svd,
    relative_error,
    tail_error,
    truncated_svd,
)

SHAPES = [(1, 1), (1, 6), (6, 1), (5, 5), (9, 4), (4, 9)]
spectra = st.lists(st.just(0.0) | st.floats(1e-12, 1e3), min_size=1, max_size=6).map(lambda s: sorted(s, reverse=True))


def assert_is_svd(result, tolerance=2e-14):
    """Orthonormal factors, a spectrum that does not rise, and the largest entry of each left vector positive."""
    assert isinstance(result, SVD)
    u, s, vt = result
    k = s.size
    np.testing.assert_allclose(u.T @ u, np.eye(k), atol=tolerance)
    np.testing.assert_allclose(vt @ vt.T, np.eye(k), atol=tolerance)
    assert (s >= 0).all()
    assert (s[1:] <= s[:-1]).all()
    largest = np.abs(u).max(axis=0)
    assert (u.max(axis=0) >= largest * (1 - 1e-3)).all()


# truncated_svd


@pytest.mark.parametrize("shape", SHAPES)
def test_the_truncated_svd_agrees_with_numpy_at_every_rank(shape):
    a = default_rng(0).standard_normal(shape)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    for k in range(1, min(shape) + 1):
        result = truncated_svd(a, k)
        assert_is_svd(result)
        assert [x.shape for x in result] == [(shape[0], k), (k,), (k, shape[1])]
        np.testing.assert_allclose(result.s, s[:k], rtol=1e-13)
        np.testing.assert_allclose((result.u * result.s) @ result.vt, (u[:, :k] * s[:k]) @ vt[:k], atol=1e-13)


def test_the_truncated_svd_agrees_with_scikit_learn():
    a = with_spectrum([5, 4, 2, 1], 12, 7)
    judge = TruncatedSVD(2, algorithm="arpack").fit(a)
    result = truncated_svd(a, 2)
    np.testing.assert_allclose(result.s, judge.singular_values_, rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(result.vt * judge.components_, axis=1)), 1, rtol=1e-12)


def test_the_hand_worked_two_by_two_comes_out_exactly():
    exact = sorted(sympy.Matrix([[3, 0], [4, 5]]).singular_values(), reverse=True)
    u, s, vt = truncated_svd([[3, 0], [4, 5]], 2)
    np.testing.assert_allclose(s, [float(x) for x in exact], rtol=1e-15)
    np.testing.assert_allclose(s, [math.sqrt(45), math.sqrt(5)], rtol=1e-15)
    np.testing.assert_allclose(u, np.array([[1, 3], [3, -1]]) / math.sqrt(10), atol=1e-15)
    np.testing.assert_allclose(vt, np.array([[1, 1], [1, -1]]) / math.sqrt(2), atol=1e-15)


@settings(deadline=None)
@given(spectra)
def test_the_chosen_spectrum_comes_back(s):
    a = with_spectrum(s, 8, 7)
    np.testing.assert_allclose(truncated_svd(a, len(s)).s, s, atol=1e-14 * max(s[0], 1e-300) * 10)


def test_a_zero_matrix_has_zero_singular_values_and_orthonormal_factors():
    result = truncated_svd(np.zeros((4, 3)), 2)
    assert_is_svd(result)
    np.testing.assert_array_equal(result.s, [0, 0])


def test_negating_a_matrix_negates_only_the_right_vectors():
    a = default_rng(0).standard_normal((6, 4))
    plus, minus = truncated_svd(a, 3), truncated_svd(-a, 3)
    np.testing.assert_allclose(minus.u, plus.u, atol=1e-14)
    np.testing.assert_allclose(minus.vt, -plus.vt, atol=1e-14)


def test_the_result_is_a_copy_that_does_not_keep_the_full_factors_alive():
    result = truncated_svd(np.eye(5), 1)
    assert all(x.base is None for x in result)


@pytest.mark.parametrize("function", [truncated_svd, randomized_svd])
@pytest.mark.parametrize(
    ("given_type", "result_type"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (bool, np.float64),
    ],
)
def test_factors_come_in_the_precision_of_the_input(function, given_type, result_type):
    a = (default_rng(0).standard_normal((40, 30)) > 0).astype(given_type)
    result = function(a, 2, oversample=1, power_iterations=2) if function is randomized_svd else function(a, 2)
    assert {x.dtype for x in result} == {np.dtype(result_type)}
    assert result.s[0] == pytest.approx(np.linalg.norm(a.astype(float), 2), rel=1e-3)
    assert_is_svd(result, 50 * float(np.finfo(result_type).eps))


@pytest.mark.parametrize("function", [truncated_svd, randomized_svd])
@pytest.mark.parametrize("scale", [1e-74, 1e74])
def test_tiny_and_huge_entries_are_as_good(function, scale):
    a = with_spectrum(1 / np.arange(1.0, 41), 50, 40)
    expected = function(a, 3, rng=default_rng(0)) if function is randomized_svd else function(a, 3)
    result = function(a * scale, 3, rng=default_rng(0)) if function is randomized_svd else function(a * scale, 3)
    np.testing.assert_allclose(result.s / scale, expected.s, rtol=1e-13)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-11, 1e11])
def test_tiny_and_huge_single_precision_is_as_good(scale):
    a = with_spectrum(1 / np.arange(1.0, 41), 50, 40).astype(np.float32)
    expected, result = (
        randomized_svd(a, 3, rng=default_rng(0)),
        randomized_svd(a * np.float32(scale), 3, rng=default_rng(0)),
    )
    np.testing.assert_allclose(result.s / np.float32(scale), expected.s, rtol=1e-5)
    np.testing.assert_allclose(result.u, expected.u, atol=1e-4)


def test_a_very_tall_matrix_needs_no_square_one_of_its_height():
    assert truncated_svd(np.ones((1_000_000, 2)), 1).u.shape == (1_000_000, 1)


# fix_signs


def test_the_largest_entry_of_each_column_becomes_positive():
    vectors = np.array([[3.0, -3.0, 0.0, 1.0], [-4.0, 2.0, 0.0, 2.0]])
    signs = fix_signs(vectors)
    np.testing.assert_array_equal(signs, [-1, -1, 1, 1])
    assert signs.dtype == np.float64
    assert fix_signs(vectors.astype(np.float32)).dtype == np.float32


def test_of_equally_large_entries_the_first_decides_whatever_the_rounding():
    for noise in (-1e-12, 0, 1e-12):
        np.testing.assert_array_equal(fix_signs(np.array([[1.0], [-1.0 + noise]])), [1])
        np.testing.assert_array_equal(fix_signs(np.array([[-1.0], [1.0 + noise]])), [-1])
    np.testing.assert_array_equal(fix_signs(np.array([[1.0], [-1.0 - 1e-6]])), [-1])  # not equally large


@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        ([1.0], ValueError, "vectors must be a non-empty matrix (two axes), got shape (1,)"),
        (np.zeros((0, 3)), ValueError, "vectors must be a non-empty matrix (two axes), got shape (0, 3)"),
        ([[1.0, np.nan]], ValueError, "vectors must be finite, got nan"),
        (None, TypeError, "vectors must be an array of real numbers, got None"),
    ],
)
def test_bad_vectors_are_refused(vectors, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        fix_signs(vectors)


# best_rank_k, tail_error


@settings(deadline=None)
@given(spectra, st.data())
def test_the_error_of_the_best_approximation_is_the_tail_of_the_spectrum(s, data):
    k = data.draw(st.integers(1, len(s)))
    a = with_spectrum(s, 8, 7)
    rest = a - best_rank_k(a, k)
    assert np.linalg.norm(rest) == pytest.approx(tail_error(s, k), abs=2e-14 * s[0])
    assert np.linalg.norm(rest, 2) == pytest.approx(tail_error(s, k, norm="spectral"), abs=2e-14 * s[0])


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_no_matrix_of_rank_k_is_nearer(k, seed):
    rng = default_rng(seed)
    a = with_spectrum([5, 4, 3, 2, 1], 8, 7)
    other = best_rank_k(a, k) + 0.01 * rng.standard_normal((8, 7))
    other = rng.standard_normal((8, k)) @ rng.standard_normal((k, 7)) if seed % 2 else best_rank_k(other, k)
    s = [5, 4, 3, 2, 1]
    assert np.linalg.norm(a - other) >= tail_error(s, k) - 1e-12
    assert np.linalg.norm(a - other, 2) >= tail_error(s, k, "spectral") - 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_the_best_approximation_of_full_rank_is_the_matrix(shape):
    a = default_rng(0).standard_normal(shape)
    np.testing.assert_allclose(best_rank_k(a, min(shape)), a, atol=1e-14)


def test_dropping_the_largest_instead_of_the_smallest_is_worse():
    """Contrast: it is the largest singular values that must stay."""
    a = np.diag([3.0, 2.0, 1.0])
    np.testing.assert_allclose(best_rank_k(a, 2), np.diag([3.0, 2.0, 0.0]), atol=1e-15)
    assert relative_error(np.diag([0.0, 2.0, 1.0]), a) > relative_error(best_rank_k(a, 2), a)


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 3), (100, 19)])
def test_the_identity_leaves_the_square_root_of_one_minus_k_over_n(n, k):
    assert relative_error(best_rank_k(np.eye(n), k), np.eye(n)) == pytest.approx(math.sqrt(1 - k / n), rel=1e-14)


@settings(deadline=None)
@given(spectra.filter(lambda s: s[0] > 1e-3), st.data())
def test_no_spectrum_is_harder_than_the_flat_one(s, data):
    k = data.draw(st.integers(0, len(s)))
    assert tail_error(s, k) / tail_error(s, 0) <= math.sqrt(1 - k / len(s)) + 1e-15


def test_tail_errors_have_these_values():
    s = [3.0, 2.0, 1.0]
    assert [tail_error(s, k) for k in range(4)] == [math.sqrt(14), math.sqrt(5), 1.0, 0.0]
    assert [tail_error(s, k, "spectral") for k in range(4)] == [3.0, 2.0, 1.0, 0.0]
    assert tail_error([0], 0) == tail_error([0.0, 0.0], 1) == 0.0
    assert tail_error(np.float32([4, 3]), np.int64(0)) == 5.0
    assert {type(tail_error(s, k, norm)) for k in (1, 3) for norm in ("fro", "spectral")} == {float}


@pytest.mark.parametrize("scale", [1e-75, 1e74])
def test_tail_errors_of_tiny_and_huge_spectra_do_not_overflow(scale):
    assert tail_error([9 * scale, 4 * scale, 3 * scale], 1) == pytest.approx(5 * scale, rel=1e-15)
    assert tail_error([9 * scale, 4 * scale, 3 * scale], 1, "spectral") == 4 * scale


def test_a_tail_far_below_the_largest_singular_value_does_not_vanish():
    assert tail_error([1.0, 4e-200, 3e-200], 1) == pytest.approx(5e-200, rel=1e-15)


# relative_error


@pytest.mark.parametrize(("norm", "order"), [("fro", "fro"), ("spectral", 2)])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_relative_error_agrees_with_numpy(shape, norm, order):
    exact, approx = default_rng(0).standard_normal((2, *shape))
    expected = np.linalg.norm(approx - exact, order) / np.linalg.norm(exact, order)
    assert relative_error(approx, exact, norm) == pytest.approx(expected, rel=1e-14)
    assert relative_error(exact, exact, norm) == 0.0
    assert relative_error(np.zeros(shape), exact, norm) == pytest.approx(1.0, rel=1e-15)
    assert type(relative_error(approx, exact, norm)) is float


def test_the_frobenius_norm_is_the_default():
    assert relative_error(np.zeros((2, 2)), np.diag([4, 3])) == 1.0
    assert relative_error(np.diag([4, 0]), np.diag([4, 3])) == 0.6
    assert relative_error(np.diag([4, 0]), np.diag([4, 3]), "spectral") == 0.75


@pytest.mark.parametrize("scale", [1e-74, 1e75])
def test_relative_errors_of_tiny_and_huge_matrices_do_not_overflow(scale):
    exact = np.array([[1.0, 1.0], [1.0, 1.0]]) * scale
    for norm in ("fro", "spectral"):
        assert relative_error(-exact, exact, norm) == pytest.approx(2.0, rel=1e-12)
        assert relative_error(exact / 2, exact, norm) == pytest.approx(0.5, rel=1e-12)


def test_scales_far_apart_are_compared_truly():
    assert relative_error([[1e75]], [[1e-75]]) == pytest.approx(1e150, rel=1e-12)
    assert relative_error([[1e-75]], [[1e75]]) == 1.0


def test_single_precision_is_compared_in_double():
    exact = np.ones((300, 300), dtype=np.float32)
    assert relative_error(np.nextafter(exact, np.float32(2)), exact) == pytest.approx(2.0**-23, rel=1e-14)


def test_different_shapes_and_a_zero_matrix_are_refused():
    with pytest.raises(ValueError, match=r"^approx must be of exact's shape \(2, 2\), got \(1, 2\)$"):
        relative_error(np.ones((1, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"^exact must be non-zero, got a zero matrix$"):
        relative_error(np.ones((2, 2)), np.zeros((2, 2)))


# randomized_svd

I = np.arange(1.0, 201)  # noqa: E741
SPECTRA = {
    "power": 1 / I,
    "slow power": 1 / np.sqrt(I),
    "flat": np.ones(200),
    "repeated": np.r_[np.ones(8), np.full(192, 0.5)],
    "in groups": np.repeat(1 / np.arange(1.0, 21), 10),
    "steep": np.logspace(-1, -16, 200),
    "cliff": np.r_[np.logspace(-1, -16, 16), np.zeros(184)],
    "rank below k": np.r_[3.0, 2.0, 1.0, np.zeros(197)],
    "rank k": np.r_[1 / I[:8], np.zeros(192)],
    "rank above the block": np.r_[1 / I[:40], np.zeros(160)],
}


@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (200, 200)])
@pytest.mark.parametrize("name", SPECTRA)
def test_on_every_spectrum_the_randomized_error_is_the_optimum_to_four_digits(name, shape):
    a = with_spectrum(SPECTRA[name], *shape)
    s = np.linalg.svd(a, compute_uv=False)
    result = randomized_svd(a, 8, rng=default_rng(0))
    assert_is_svd(result)
    error = np.linalg.norm(a - (result.u * result.s) @ result.vt)
    floor = 2e-14 * s[0]
    assert error <= tail_error(s, 8) * (1 + 1e-4) + floor
    assert (result.s <= s[:8] + floor).all()
    np.testing.assert_allclose(result.s, s[:8], rtol=2e-3, atol=floor)


def test_small_singular_values_survive_that_a_gram_matrix_loses():
    """Contrast: from a.T @ a nothing below 1e-8 of the largest can be read."""
    s = 10.0 ** -np.arange(16)
    a = with_spectrum(np.r_[s, np.zeros(184)], 300, 200)
    u, values, vt = randomized_svd(a, 12, rng=default_rng(0))
    np.testing.assert_allclose(values, s[:12], rtol=1e-3)
    gram = np.sqrt(np.abs(np.linalg.eigvalsh(a.T @ a)[::-1]))[:12]
    assert np.abs(gram / s[:12] - 1).max() > 1
    assert np.linalg.norm(a - (u * values) @ vt) < 1.1e-12


def test_each_power_iteration_brings_the_error_down_and_so_does_oversampling():
    s = 1 / np.sqrt(I)
    a = with_spectrum(s, 300, 200)

    def excess(**settings):
        u, values, vt = randomized_svd(a, 8, rng=default_rng(0), **settings)
        return np.linalg.norm(a - (u * values) @ vt) / tail_error(s, 8) - 1

    by_power = [excess(power_iterations=q, oversample=4) for q in range(5)]
    assert all(later < earlier / 2 for earlier, later in itertools.pairwise(by_power))
    assert excess(power_iterations=1, oversample=10) < excess(power_iterations=1, oversample=0) / 2
    assert excess() == excess(power_iterations=3, oversample=10)


def test_a_block_krylov_space_beats_plain_power_iteration_at_equal_products():
    """Contrast: keeping the last block only, of the same random start."""
    s = 1 / np.sqrt(I)
    a = with_spectrum(s, 300, 200)
    u, values, vt = randomized_svd(a, 8, rng=default_rng(0))
    block = a @ default_rng(0).standard_normal((200, 18))
    for _ in range(3):
        block = a @ (a.T @ np.linalg.qr(block)[0])
    q = np.linalg.qr(block)[0]
    power = np.linalg.norm(a - q @ best_rank_k(q.T @ a, 8)) / tail_error(s, 8) - 1
    krylov = np.linalg.norm(a - (u * values) @ vt) / tail_error(s, 8) - 1
    assert krylov < power / 10


def test_the_bases_hold_exactly_the_krylov_space_of_musco_and_musco():
    a = with_spectrum(1 / I[:60], 80, 60)
    left, core, right = svd._krylov_bases(a, 4, 2, default_rng(0))
    left, right = np.hstack(left), np.hstack(right)
    x = np.linalg.qr(default_rng(0).standard_normal((60, 4)))[0]
    blocks = [a @ x, a @ (a.T @ (a @ x)), a @ (a.T @ (a @ (a.T @ (a @ x))))]
    span = np.linalg.qr(np.hstack(blocks))[0]
    assert left.shape == (80, 12)
    assert right.shape == (60, 16)
    assert np.linalg.norm(left - span @ (span.T @ left)) < 1e-10
    for basis in (left, right):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-14)
    np.testing.assert_allclose(core, left.T @ a @ right, atol=1e-14)
    np.testing.assert_allclose(core @ right.T, left.T @ a, atol=1e-14)  # right holds all of a.T @ left


@pytest.mark.parametrize(
    ("spectrum", "left_blocks", "right_blocks"),
    [
        (np.ones(60), 1, 1),  # a.T @ a x is x again
        (np.r_[np.ones(3), np.zeros(57)], 1, 2),  # one product already spans the range
        (np.r_[np.ones(20), np.full(40, 0.5)], 2, 2),
        (1 / I[:60], 4, 5),
    ],
)
def test_steps_end_where_they_bring_nothing_new(spectrum, left_blocks, right_blocks):
    a = with_spectrum(spectrum, 80, 60)
    left, _, right = svd._krylov_bases(a, 5, 3, default_rng(0))
    assert (len(left), len(right)) == (left_blocks, right_blocks)
    assert {block.shape for block in left} | {block.shape for block in right} == {(80, 5), (60, 5)}


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e7, 1e9, 1e15, np.inf])
def test_the_fast_orthonormal_basis_is_as_good_as_householders(condition):
    s = np.geomspace(1, 1 / condition, 6) if condition < np.inf else np.r_[1.0, np.zeros(5)]
    y = with_spectrum(s, 90, 6)
    q = svd._orthonormal(y)
    np.testing.assert_allclose(q.T @ q, np.eye(6), atol=5e-15)
    np.testing.assert_allclose(q @ (q.T @ y), y, atol=5e-15)


def test_a_dependent_block_is_left_to_householder(monkeypatch):
    asked = []
    real = np.linalg.qr
    leaning = with_spectrum(np.geomspace(1, 1e-5, 4), 30, 4)
    monkeypatch.setattr(np.linalg, "qr", lambda y: asked.append(y) or real(y))
    svd._orthonormal(default_rng(0).standard_normal((30, 4)))
    svd._orthonormal(leaning)
    assert asked == []
    svd._orthonormal(np.ones((30, 4)))
    assert len(asked) == 1


def test_new_directions_are_orthonormal_to_all_old_ones_even_where_little_is_new():
    rng = default_rng(0)
    basis = orthonormal(90, 6, rng)
    blocks = [basis[:, :3], basis[:, 3:]]
    y = blocks[1] @ rng.standard_normal((3, 3)) + 1e-9 * rng.standard_normal((90, 3))
    lean, q = svd._new_directions(y, blocks)
    np.testing.assert_array_equal(lean, blocks[1].T @ y)
    assert np.abs(basis.T @ q).max() < 1e-15
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-14)
    assert svd._new_directions(blocks[1] @ rng.standard_normal((3, 3)), blocks)[1] is None
    assert svd._new_directions(np.zeros((90, 3)), blocks)[1] is None


@pytest.mark.parametrize("shape", SHAPES)
def test_where_the_blocks_are_as_wide_as_the_matrix_the_result_is_exact(shape):
    a = default_rng(0).standard_normal(shape)
    for k in (1, min(shape)):
        for got, expected in zip(randomized_svd(a, k), truncated_svd(a, k), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(50, 24), (24, 50)])
def test_the_randomized_way_begins_just_below_the_width_of_the_matrix(shape, monkeypatch):
    seen = []
    real = svd._krylov_bases
    monkeypatch.setattr(svd, "_krylov_bases", lambda *arguments: seen.append(arguments[1:3]) or real(*arguments))
    a = default_rng(0).standard_normal(shape)
    randomized_svd(a, 2, oversample=4, power_iterations=3)  # 6 * 4 = 24
    randomized_svd(a, 2, oversample=2, power_iterations=5)  # 4 * 6 = 24
    assert seen == []
    randomized_svd(a, 1, oversample=4, power_iterations=3)
    randomized_svd(a, 2, oversample=21, power_iterations=0)
    assert seen == [(5, 3), (23, 0)]


def test_the_block_starts_on_the_short_side(monkeypatch):
    seen = []
    real = svd._krylov_bases
    monkeypatch.setattr(svd, "_krylov_bases", lambda a, *more: seen.append(a.shape) or real(a, *more))
    for shape in ((60, 50), (50, 60), (50, 50)):
        randomized_svd(np.ones(shape), 1, oversample=1)
    assert seen == [(60, 50), (60, 50), (50, 50)]


def test_a_wide_matrix_is_done_as_well_as_its_transpose():
    a = with_spectrum(1 / I, 300, 200)
    tall, wide = randomized_svd(a, 8, rng=default_rng(0)), randomized_svd(a.T, 8, rng=default_rng(0))
    np.testing.assert_allclose(wide.s, tall.s, rtol=1e-12)
    np.testing.assert_allclose((wide.u * wide.s) @ wide.vt, ((tall.u * tall.s) @ tall.vt).T, atol=1e-10)


@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
def test_a_zero_matrix_has_zero_singular_values_in_the_randomized_way_too(shape):
    result = randomized_svd(np.zeros(shape), 8)
    assert_is_svd(result)
    np.testing.assert_array_equal(result.s, np.zeros(8))


def test_no_oversampling_and_no_power_iteration_still_finds_an_exact_rank():
    a = with_spectrum([3, 2, 1], 60, 50)
    u, s, vt = randomized_svd(a, 3, oversample=0, power_iterations=0, rng=default_rng(0))
    np.testing.assert_allclose(s, [3, 2, 1], rtol=1e-13)
    np.testing.assert_allclose((u * s) @ vt, a, atol=1e-13)


def test_the_same_generator_state_gives_the_same_result_and_another_a_different_one():
    a = default_rng(0).standard_normal((80, 60))
    one, same, other = (randomized_svd(a, 2, oversample=1, rng=default_rng(seed)) for seed in (1, 1, 2))
    for x, y in zip(one, same, strict=True):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(one.u, other.u)
    assert not np.array_equal(randomized_svd(a, 2, oversample=1).u, randomized_svd(a, 2, oversample=1).u)


def test_numpys_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    randomized_svd(np.eye(60), 2)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# hard_threshold


def judged_median(beta):
    """Find the median of the Marchenko-Pastur law by quadrature of its density in 30 digits."""
    with mpmath.workdps(30):
        beta = mpmath.mpf(beta)
        low, high = (1 - mpmath.sqrt(beta)) ** 2, (1 + mpmath.sqrt(beta)) ** 2

        def density(t):
            return mpmath.sqrt((high - t) * (t - low)) / (2 * mpmath.pi * beta * t)

        def surplus(x):
            return mpmath.quad(density, [low, x]) - mpmath.mpf(1) / 2

        return mpmath.findroot(surplus, (low + (high - low) / 4, low + (high - low) / 2), solver="anderson")


@pytest.mark.parametrize(("m", "n"), [(4, 4), (2, 4), (4, 3), (1, 10), (1, 1000)])
def test_both_thresholds_agree_with_quadrature(m, n):
    beta = mpmath.mpf(min(m, n)) / max(m, n)
    factor = mpmath.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + mpmath.sqrt(beta**2 + 14 * beta + 1)))
    s = np.arange(min(m, n), 0.0, -1)
    expected = factor / mpmath.sqrt(judged_median(beta)) * np.median(s)
    assert hard_threshold(s, m, n) == pytest.approx(float(expected), rel=1e-12)
    assert hard_threshold(s, m, n, noise=0.3) == pytest.approx(float(factor * mpmath.sqrt(max(m, n))) * 0.3, rel=1e-14)


@pytest.mark.parametrize(
    ("beta", "omega", "places"), [((1, 20), 1.5194, 3e-4), ((1, 2), 2.1711, 3e-4), ((1, 1), 2.8582, 3e-4)]
)
def test_the_factors_are_those_in_the_papers_table(beta, omega, places):
    m, n = beta
    assert hard_threshold([1.0] * m, m, n) == pytest.approx(omega, abs=places)


def test_for_a_square_matrix_the_factor_is_four_over_the_root_of_three():
    assert hard_threshold([1.0], 1, 1, noise=1) == pytest.approx(4 / math.sqrt(3), rel=1e-15)
    assert hard_threshold([3, 2, 1, 0], 4, 4, noise=1.0) == pytest.approx(8 / math.sqrt(3), rel=1e-15)
    assert type(hard_threshold([1.0], 1, 1, noise=1)) is type(hard_threshold([1.0], 1, 1)) is float


def test_a_very_flat_shape_has_the_limits_of_beta_zero():
    assert hard_threshold([1.0], 1, 10**12) == pytest.approx(math.sqrt(2), rel=1e-5)
    assert hard_threshold([1.0], 2**53, 1, noise=1) == pytest.approx(math.sqrt(2) * 2**26.5, rel=1e-12)


def test_no_noise_cuts_nothing_and_a_spectrum_of_zeros_gives_zero():
    assert hard_threshold([2.0, 1.0], 2, 2, noise=0) == 0.0
    assert hard_threshold([0.0, 0.0], 2, 2) == 0.0


@pytest.mark.parametrize("scale", [1e-74, 1e74])
def test_thresholds_scale_with_the_data(scale):
    s = np.array([5.0, 3.0, 2.0, 1.0])
    assert hard_threshold(s * scale, 4, 6) == pytest.approx(hard_threshold(s, 4, 6) * scale, rel=1e-12)
    assert hard_threshold(s, 4, 6, noise=scale) == pytest.approx(hard_threshold(s, 4, 6, noise=1) * scale, rel=1e-12)


def test_noise_is_taken_up_to_the_size_of_the_largest_entries():
    assert hard_threshold([1.0], 1, 1, noise=math.nextafter(1e75, 0)) == pytest.approx(4e75 / math.sqrt(3), rel=1e-14)
    with pytest.raises(ValueError, match=r"^noise must be at least 0 and below 1e75, got 1e\+75$"):
        hard_threshold([1.0], 1, 1, noise=1e75)


@pytest.mark.parametrize("shape", [(200, 100), (100, 200), (150, 150)])
def test_the_threshold_separates_signal_from_noise_and_both_ways_agree(shape):
    noise = 0.1
    rng = default_rng(3)
    a = with_spectrum([12.0, 9.0, 6.0], *shape) + noise * rng.standard_normal(shape)
    s = np.linalg.svd(a, compute_uv=False)
    known, guessed = hard_threshold(s, *shape, noise=noise), hard_threshold(s, *shape)
    assert np.count_nonzero(s > known) == np.count_nonzero(s > guessed) == 3
    assert guessed == pytest.approx(known, rel=0.05)


def test_the_threshold_beats_keeping_all_that_stands_out_of_the_bulk():
    """Contrast: a direction just above the noise costs more than it brings."""
    n, noise = 150, 1.0
    signal = with_spectrum(np.r_[60.0, np.full(8, 1.25 * math.sqrt(n))], n, n)
    a = signal + noise * default_rng(4).standard_normal((n, n))
    s = np.linalg.svd(a, compute_uv=False)

    def error(threshold):
        return np.linalg.norm(best_rank_k(a, int(np.count_nonzero(s > threshold))) - signal)

    bulk = 2 * math.sqrt(n) * noise
    assert error(hard_threshold(s, n, n, noise=noise)) < error(bulk)


# bad input: one value an argument, since what else is refused stands in test_checks.py

NAN = [[1.0, math.nan]]
FACTORS = [truncated_svd, best_rank_k, randomized_svd]
WHOLE = "9007199254740992"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((lambda f=f: f(NAN, 1), ValueError, "a must be finite, got nan") for f in FACTORS),
        *(
            (lambda f=f: f(np.ones((2, 3)), 3), ValueError, "k must be between 1 and min(m, n) = 2, got 3")
            for f in FACTORS
        ),
        (lambda: randomized_svd(np.eye(3), 1, oversample=-1), ValueError, "oversample must be at least 0, got -1"),
        (
            lambda: randomized_svd(np.eye(3), 1, power_iterations=-1),
            ValueError,
            "power_iterations must be at least 0, got -1",
        ),
        (
            lambda: randomized_svd(np.eye(3), 1, rng="0"),
            TypeError,
            "rng must be a numpy.random.Generator, a seed (an integer) or None, got '0'",
        ),
        (lambda: tail_error([1, 2], 0), ValueError, "s must be non-increasing, got 1.0 before 2.0"),
        (lambda: tail_error([2, 1], -1), ValueError, "k must be between 0 and len(s) = 2, got -1"),
        (lambda: tail_error([2, 1], 3), ValueError, "k must be between 0 and len(s) = 2, got 3"),
        (lambda: tail_error([2, 1], 1, "nuc"), ValueError, 'norm must be "fro" or "spectral", got \'nuc\''),
        (lambda: relative_error(NAN, [[1, 1]]), ValueError, "approx must be finite, got nan"),
        (lambda: relative_error([[1, 1]], NAN), ValueError, "exact must be finite, got nan"),
        (lambda: relative_error([[1]], [[1]], 2), TypeError, 'norm must be "fro" or "spectral", got 2'),
        (lambda: hard_threshold([-1], 1, 1), ValueError, "s must be non-negative, got -1.0"),
        (lambda: hard_threshold([1], 0, 1), ValueError, f"m must be between 1 and 2**53 = {WHOLE}, got 0"),
        (
            lambda: hard_threshold([1], 2**53 + 1, 1),
            ValueError,
            f"m must be between 1 and 2**53 = {WHOLE}, got {2**53 + 1}",
        ),
        (lambda: hard_threshold([1], 1, 0), ValueError, f"n must be between 1 and 2**53 = {WHOLE}, got 0"),
        (
            lambda: hard_threshold([1], 1, 2**53 + 1),
            ValueError,
            f"n must be between 1 and 2**53 = {WHOLE}, got {2**53 + 1}",
        ),
        (lambda: hard_threshold([1], 2, 2), ValueError, "s must hold all min(m, n) = 2 singular values, got 1"),
        (lambda: hard_threshold([1, 1, 1], 2, 3), ValueError, "s must hold all min(m, n) = 2 singular values, got 3"),
        (lambda: hard_threshold([1], 1, 1, -0.1), ValueError, "noise must be at least 0 and below 1e75, got -0.1"),
    ],
)
def test_each_argument_is_checked_under_its_name(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_the_callers_array_is_never_changed(dtype):
    a = (100 * default_rng(0).standard_normal((60, 50))).astype(dtype)
    before = a.copy()
    a.flags.writeable = False
    for result in (truncated_svd(a, 2), (best_rank_k(a, 2),), randomized_svd(a, 2)):
        assert not any(np.shares_memory(x, a) for x in result)
    relative_error(a, a)
    s = np.array([2, 1], dtype=dtype)
    s.flags.writeable = False
    tail_error(s, 1)
    hard_threshold(s, 2, 2)
    np.testing.assert_array_equal(a, before)


def sparse_matrix(m=300, n=200, share=0.02, seed=0):
    """Mostly zeros, with a few strong directions among them."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.random((m, 6)) < 0.15, rng.random((n, 6)) < 0.15
    strong = (rows * [9, 7, 5, 4, 3, 2]) @ columns.T
    return scipy.sparse.csr_matrix(strong + (rng.random((m, n)) < share) * rng.standard_normal((m, n)))


KINDS = ["csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "csr_array", "coo_array"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [False, True])
def test_a_sparse_matrix_has_the_factors_of_the_dense_one(kind, wide):
    a = sparse_matrix().T if wide else sparse_matrix()
    given = getattr(scipy.sparse, kind)(a)
    for k, powers in ((6, 3), (40, 3)):  # by the blocks, and where these would be as wide as the matrix
        u, s, vt = randomized_svd(given, k, power_iterations=powers, rng=1)
        dense = randomized_svd(a.toarray(), k, power_iterations=powers, rng=1)
        np.testing.assert_allclose(s, dense.s, rtol=1e-10)
        np.testing.assert_allclose((u * s) @ vt, (dense.u * dense.s) @ dense.vt, atol=1e-8)
        error = np.linalg.norm((u * s) @ vt - a.toarray())
        assert error <= 1.01 * tail_error(np.linalg.svd(a.toarray())[1], k)
        assert error**2 == pytest.approx(np.square(a.data).sum() - np.square(s).sum(), rel=1e-10), "as the text says"


@pytest.mark.parametrize("wide", [False, True])
def test_linear_operators(wide):
    a = sparse_matrix().T if wide else sparse_matrix()
    centered = a - a.mean(axis=0)  # dense, and never written down by the operator
    ones, mean = np.ones((a.shape[0], 1)), np.asarray(a.mean(axis=0))
    operator = aslinearoperator(a) - aslinearoperator(ones) @ aslinearoperator(mean)
    for k in (6, 60):
        expected = randomized_svd(centered, k, rng=1).s
        np.testing.assert_allclose(randomized_svd(operator, k, rng=1).s, expected, rtol=1e-9)


def test_sparse_precision():
    a = sparse_matrix()
    assert randomized_svd(a.astype(np.float32), 3, rng=0).u.dtype == np.float32
    assert randomized_svd(a.astype(np.int64), 3, rng=0).u.dtype == np.float64
    assert randomized_svd(aslinearoperator(a.astype(np.float32)), 3, rng=0).u.dtype == np.float32


BAD = sparse_matrix()
BAD.data[7] = np.nan


@pytest.mark.parametrize(
    ("a", "k", "error", "message"),
    [
        (BAD, 3, ValueError, "a must be finite, got nan"),
        (aslinearoperator(BAD), 3, ValueError, "a must be finite, got a product that is not"),
        (aslinearoperator(BAD), 60, ValueError, "a must be finite, got nan"),
        (sparse_matrix() * 1j, 3, TypeError, "a must be a matrix of real numbers, got dtype complex128"),
        (
            aslinearoperator(sparse_matrix() * 1j),
            3,
            TypeError,
            "a must be an operator on float32 or float64, got dtype complex128",
        ),
        (scipy.sparse.csr_array((0, 3)), 3, ValueError, "a must be a matrix with rows and columns, got shape (0, 3)"),
        (sparse_matrix(), 201, ValueError, "k must be between 1 and min(m, n) = 200, got 201"),
    ],
)
def test_sparse_refusals(a, k, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        randomized_svd(a, k)


def test_a_sparse_matrix_takes_the_memory_of_its_bases_and_half_as_much_again():
    a = scipy.sparse.random(4000, 2000, 0.002, format="csr", rng=default_rng(0))
    tracemalloc.start()
    randomized_svd(a, 10, oversample=10, power_iterations=3, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bases = 8 * 20 * (4 * 4000 + 5 * 2000 + 4 * 2000)  # four blocks on the left, five on the right, and four images
    assert peak < 1.5 * bases
    assert bases < 0.1 * 8 * 4000 * 2000


def test_zeros_alone_are_a_matrix_in_sparse_form_too():
    assert randomized_svd(scipy.sparse.csr_matrix((30, 20)), 2, rng=0).s.tolist() == [0, 0]


def test_a_seed_gives_the_numbers_of_its_generator():
    a = sparse_matrix().toarray()
    for one, other in zip(randomized_svd(a, 3, rng=5), randomized_svd(a, 3, rng=np.random.default_rng(5)), strict=True):
        np.testing.assert_array_equal(one, other)
