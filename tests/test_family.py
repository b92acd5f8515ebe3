"""Discriminants, parts and ratings, against scikit-learn, SciPy, plain loops, and numbers worked by hand."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import BAD_MATRICES, NoArray, with_spectrum
from sklearn import decomposition
from sklearn.datasets import load_digits
from sklearn.decomposition._nmf import _initialize_nmf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lowrank_tutor import family
from lowrank_tutor.family import factorize_ratings, lda, nmf
from lowrank_tutor.pca import PCA
from lowrank_tutor.svd import best_rank_k, relative_error, tail_error


def fresh(seed=0):
    return np.random.default_rng(seed)


def groups(sizes, d, seed=0):
    """Draw classes of the given sizes, each round a center of its own, with one shape of spread."""
    rng = fresh(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centers = 2 * rng.standard_normal((len(sizes), d))
    x = centers[labels] + rng.standard_normal((len(labels), d)) @ rng.standard_normal((d, d))
    order = rng.permutation(len(labels))
    return x[order], labels[order]


def covariances(x, labels):
    """The covariances within and between, written out as sums over points and classes."""
    d = x.shape[1]
    within, between, mean = np.zeros((d, d)), np.zeros((d, d)), x.mean(axis=0)
    for label in set(labels.tolist()):
        mine = x[labels == label]
        for point in mine:
            within += np.outer(point - mine.mean(axis=0), point - mine.mean(axis=0)) / len(x)
        between += len(mine) / len(x) * np.outer(mine.mean(axis=0) - mean, mine.mean(axis=0) - mean)
    return within, between


DIGITS, DIGIT = load_digits(return_X_y=True)
# Two classes of four points: variance 1/2 along the first coordinate and 2 along the second.
CROSS = np.array([[-1.0, 0], [1, 0], [0, -2], [0, 2]])
CROSSES, SIDES = np.vstack([CROSS, CROSS + np.array([10, 0])]), np.repeat(["left", "right"], 4)


# linear discriminant analysis


@pytest.mark.parametrize(
    ("sizes", "d"),
    [((9, 9), 1), ((9, 5), 2), ((20, 5, 8), 4), ((6, 7, 8, 9, 10), 3), ((30,) * 6, 9), ((40, 1, 12), 3), ((4, 5), 20)],
)
def test_axes_shares_and_classes_agree_with_scikit_learn(sizes, d):
    x, labels = groups(sizes, d)
    new = 3 * fresh(1).standard_normal((200, d))
    k = min(len(sizes) - 1, d)
    ours, judge = lda(x, labels, k), LinearDiscriminantAnalysis(solver="svd").fit(x, labels)
    flip = np.sign(np.sum(ours.axes * judge.scalings_[:, :k], axis=0))
    np.testing.assert_allclose(ours.axes, judge.scalings_[:, :k] * flip, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.ratio, judge.explained_variance_ratio_, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ours.project(new), judge.transform(new)[:, :k] * flip, atol=1e-10)
    np.testing.assert_array_equal(ours.classify(new), judge.predict(new))
    np.testing.assert_allclose(ours.mean, x.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(ours.centers, judge.means_, atol=1e-13)
    np.testing.assert_allclose(ours.priors, judge.priors_, rtol=1e-15)
    np.testing.assert_array_equal(ours.classes, judge.classes_)


@pytest.mark.parametrize("k", [1, 4, 9])
def test_the_digits_with_their_constant_pixels_agree_with_scikit_learn(k):
    assert (DIGITS.min(axis=0) == DIGITS.max(axis=0)).any()
    ours, judge = lda(DIGITS, DIGIT, k), LinearDiscriminantAnalysis(solver="svd").fit(DIGITS, DIGIT)
    np.testing.assert_allclose(np.abs(ours.axes), np.abs(judge.scalings_[:, :k]), atol=1e-11)
    np.testing.assert_allclose(ours.ratio, judge.explained_variance_ratio_[:k], rtol=1e-10)
    if k == 9:
        np.testing.assert_array_equal(ours.classify(DIGITS), judge.predict(DIGITS))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_fewer_axes_classify_as_scikit_learn_does_in_the_space_they_span(k):
    x, labels = groups((30, 10, 25, 20), 5)
    found = lda(x, labels, k)
    z = found.project(x)
    np.testing.assert_array_equal(found.classify(x), LinearDiscriminantAnalysis().fit(z, labels).predict(z))
    if k == 1:  # and not as its own predict does, which uses all the axes whatever it was asked for
        judge = LinearDiscriminantAnalysis(n_components=1).fit(x, labels)
        assert (found.classify(x) != judge.predict(x)).any()


def test_the_axes_solve_the_generalized_eigenproblem():
    x, labels = groups((12, 20, 9, 15), 5)
    within, between = covariances(x, labels)
    values, vectors = scipy.linalg.eigh(between, within)
    found = lda(x, labels, 3)
    np.testing.assert_allclose(np.abs(found.axes.T @ within @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(found.axes.T @ between @ found.axes, np.diag(values[::-1][:3]), atol=1e-9)
    np.testing.assert_allclose(found.ratio, values[::-1][:3] / values.sum(), rtol=1e-9)


@settings(max_examples=40)
@given(st.lists(st.integers(2, 8), min_size=2, max_size=5), st.integers(1, 4), st.integers(0, 1000))
def test_the_covariance_within_is_the_identity_and_the_shares_fall(sizes, d, seed):
    x, labels = groups([size + d for size in sizes], d, seed)
    k = min(len(sizes) - 1, d)
    found = lda(x, labels, k)
    within, _ = covariances(found.project(x), labels)
    np.testing.assert_allclose(within, np.eye(k), atol=1e-8)
    assert (np.diff(found.ratio) <= 0).all()
    assert found.ratio.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_array_equal(found.axes.max(axis=0), np.abs(found.axes).max(axis=0))


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_another_basis_and_origin_change_nothing_but_signs(seed):
    x, labels = groups((9, 12, 10), 3, seed)
    change = with_spectrum([5, 2, 0.5], 3, 3, seed)
    here, there = lda(x, labels, 2), lda(x @ change + [7, -8, 9], labels, 2)
    z = there.project(x @ change + [7, -8, 9])
    np.testing.assert_allclose(np.abs(z), np.abs(here.project(x)), atol=1e-8)
    np.testing.assert_allclose(there.ratio, here.ratio, atol=1e-10)


def test_two_crosses_come_out_as_by_hand():
    found = lda(CROSSES, SIDES, 1)
    np.testing.assert_allclose(found.axes, [[math.sqrt(2)], [0]], atol=1e-15)
    np.testing.assert_array_equal(found.ratio, [1])
    np.testing.assert_array_equal(found.mean, [5, 0])
    np.testing.assert_array_equal(found.centers, [[0, 0], [10, 0]])
    np.testing.assert_array_equal(found.classes, ["left", "right"])
    np.testing.assert_array_equal(found.priors, [0.5, 0.5])
    np.testing.assert_allclose(found.project([[6, 3]]), [[math.sqrt(2)]], rtol=1e-15)
    np.testing.assert_array_equal(found.classify([[4.999, 9], [5.001, -9]]), ["left", "right"])


def test_the_larger_class_moves_the_border_by_log_3_over_20():
    """Three times as many on the left: the border lies at 5 + log(3) / (10 / variance) = 5.0549."""
    found = lda(np.vstack([CROSS, CROSS, CROSSES]), np.repeat(["left", "right"], [12, 4]), 1)
    border = 5 + math.log(3) / 20
    np.testing.assert_array_equal(found.classify([[border - 1e-6, 0], [border + 1e-6, 0]]), ["left", "right"])


def test_the_widest_axis_is_not_the_one_that_tells_the_classes_apart():
    """Contrast: PCA follows the spread, LDA the classes."""
    rng = fresh()
    labels = np.repeat([0, 1], 100)
    x = rng.standard_normal((200, 2)) * [10, 1] + labels[:, np.newaxis] * [0, 5]
    axis = lda(x, labels, 1).axes[:, 0]
    assert abs(axis[1]) / np.linalg.norm(axis) > 0.999
    assert abs(PCA(1).fit(x).components_[0, 0]) > 0.99
    along = {name: [z[labels == c].mean() for c in (0, 1)] for name, z in (("pca", x[:, 0]), ("lda", x @ axis))}
    assert abs(np.diff(along["lda"])[0]) > 4
    assert abs(np.diff(along["pca"])[0]) / 10 < 1


def test_the_line_between_the_centers_is_not_the_axis():
    """Contrast: where the classes lean, joining the centers classifies worse than whitening first."""
    rng = fresh()
    labels = np.repeat([0, 1], 200)
    x = rng.standard_normal((400, 2)) @ np.array([[3, 2.9], [0, 0.5]]) + labels[:, np.newaxis] * [2, 0]
    found = lda(x, labels, 1)
    joined = np.diff(found.centers, axis=0)[0]
    nearest = (x - found.centers.mean(axis=0)) @ joined > 0
    assert (found.classify(x) == labels).mean() > 0.97
    assert (nearest == labels).mean() < 0.75


def test_a_coordinate_that_is_constant_in_each_class_is_dropped_even_if_it_tells_all():
    x, labels = groups((9, 8, 7), 3)
    plain = lda(x, labels, 2)
    for column in (np.zeros(24), np.full(24, 0.1), 1e9 * labels + 0.1):
        found = lda(np.column_stack([x[:, :1], column, x[:, 1:]]), labels, 2)
        np.testing.assert_array_equal(found.axes[1], [0, 0])
        np.testing.assert_allclose(found.axes[[0, 2, 3]], plain.axes, atol=1e-12)
        np.testing.assert_allclose(found.ratio, plain.ratio, atol=1e-12)


@pytest.mark.parametrize(("noise", "kept"), [(1e-5, False), (1e-2, True)])
def test_a_direction_with_a_ten_thousandth_of_the_spread_counts_as_null(noise, kept):
    x, labels = groups((30, 30, 30), 2)
    twin = x[:, :1] + noise * x[:, :1].std() * fresh(5).standard_normal((90, 1))
    doubled = np.column_stack([x, twin])
    found, judge = lda(doubled, labels, 2), LinearDiscriminantAnalysis(solver="svd").fit(doubled, labels)
    np.testing.assert_allclose(np.abs(found.axes), np.abs(judge.scalings_), rtol=1e-6)
    difference = np.abs(found.axes[0] - found.axes[2]).max()
    assert (difference > 1) == kept  # twins share what belongs to both, unless what sets them apart is real


def test_the_share_is_zero_where_the_centers_coincide():
    found = lda(np.vstack([CROSS, 2 * CROSS]), SIDES, 1)
    np.testing.assert_array_equal(found.ratio, [0])
    within, _ = covariances(found.project(np.vstack([CROSS, 2 * CROSS])), SIDES)
    assert within[0, 0] == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["b"] * 4 + ["a"] * 4, "U"),
        (np.array(["b"] * 4 + ["ant"] * 4, dtype=object), "U"),
        ([True] * 4 + [False] * 4, "b"),
        ([7] * 4 + [-7] * 4, "i"),
        (np.repeat(np.uint8([9, 3]), 4), "u"),
        (np.repeat([1.5, 0.5], 4), "f"),
    ],
)
def test_labels_come_back_as_they_went_in(labels, kind):
    found = lda(CROSSES, labels, 1)
    assert found.classes.dtype.kind == kind
    np.testing.assert_array_equal(found.classify(CROSSES), labels)
    np.testing.assert_array_equal(found.classes, sorted(set(np.asarray(labels).tolist())))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_tiny_and_huge_points_have_the_same_coordinates(scale):
    x, labels = groups((9, 8, 7), 3)
    units = np.array([scale, 1, 1 / scale])  # each coordinate in another unit
    one, other = lda(x, labels, 2), lda(x * units, labels, 2)
    np.testing.assert_allclose(np.abs(other.axes * units[:, np.newaxis]), np.abs(one.axes), rtol=1e-9)
    np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-9)
    np.testing.assert_allclose(other.mean / units, one.mean, rtol=1e-12)
    np.testing.assert_array_equal(other.classify(x * units), one.classify(x))


def test_points_beyond_the_floats_are_refused():
    with pytest.raises(ValueError, match=r"^x must be large enough for its axes to fit float64, got smaller ones$"):
        lda(CROSSES * 1e-310, SIDES, 1)
    with pytest.raises(ValueError, match=r"^x must be large enough for its axes to fit float32, got smaller ones$"):
        lda(np.float32(CROSSES * 1e-40), SIDES, 1)
    found = lda(CROSSES, SIDES, 1)
    with pytest.raises(
        ValueError, match=r"^x must be small enough for its coordinates to fit float64, got larger ones$"
    ):
        found.project([[1.7e308, 0]])
    with pytest.raises(ValueError, match=r"^x must be small enough for its scores to fit float64, got larger ones$"):
        found.classify([[1.2e308, 0]])


def test_points_farther_off_than_any_float_are_refused_without_a_warning():
    """Their differences are infinite, and infinity times zero, or less infinity, is not a number."""
    constant = lda(np.column_stack([CROSSES, np.full(8, -1.7e308)]), SIDES, 1)
    with pytest.raises(ValueError, match="coordinates"):
        constant.project([[0, 0, 1.7e308]])
    three = lda(np.vstack([CROSS + np.array(c) for c in ([10, -10], [-10, 10], [10, 10])]), np.repeat([0, 1, 2], 4), 2)
    for angle in range(16):
        with pytest.raises(ValueError, match=r"coordinates|scores"):
            three.classify([[1e308 * math.cos(angle), 1e308 * math.sin(angle)]])


def test_many_points_need_no_square_matrix_of_their_number():
    x = np.arange(300_000.0).reshape(-1, 1)
    assert lda(x, np.arange(300_000) % 2, 1).axes.shape == (1, 1)
    found = factorize_ratings(np.ones((300_000, 2)), np.ones((300_000, 2), bool), 1, regularization=1e6, max_sweeps=1)
    assert found.p.shape == (300_000, 1)


@pytest.mark.parametrize(("given_type", "result_type"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_discriminants_come_in_the_precision_of_the_input(given_type, result_type):
    x, labels = groups((20, 15, 30), 4)
    x = (10 * x).astype(given_type)
    x.flags.writeable = False
    before = x.copy()
    found, judge = lda(x, labels, 2), lda(x.astype(float), labels, 2)
    arrays = (found.axes, found.ratio, found.mean, found.centers, found.project(x))
    assert {array.dtype for array in arrays} == {np.dtype(result_type)}
    np.testing.assert_allclose(found.axes, judge.axes, rtol=1e-5, atol=1e-6)
    assert (found.classify(x) == judge.classify(x)).mean() > 0.98
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a"] * 7, ValueError, "labels must be one for each of the 8 points, got shape (7,)"),
        (["a"] * 9, ValueError, "labels must be one for each of the 8 points, got shape (9,)"),
        (np.zeros((8, 1), int), ValueError, "labels must be one for each of the 8 points, got shape (8, 1)"),
        (3, ValueError, "labels must be one for each of the 8 points, got shape ()"),
        (["a"] * 8, ValueError, "labels must name at least two classes, got one, a"),
        ([0.0] * 7 + [np.nan], ValueError, "labels must be finite, got nan"),
        ([0.0] * 7 + [np.inf], ValueError, "labels must be finite, got inf"),
        (["a"] * 7 + [None], TypeError, "labels must be a vector of numbers or strings, got dtype object"),
        ([1j] * 8, TypeError, "labels must be a vector of numbers or strings, got dtype complex128"),
        ([[1], [2, 3]], ValueError, "labels must be a vector of numbers or strings, got a ragged sequence"),
        (
            np.ma.masked_equal([0, 0, 0, 1, 1, 1, 1, 2], 2),
            TypeError,
            "labels must be an array without a mask, got a masked array",
        ),
    ],
)
def test_bad_labels_are_refused(labels, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        lda(CROSSES, labels, 1)


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (0, ValueError, "k must be between 1 and the number of classes - 1 = 2, got 0"),
        (3, ValueError, "k must be between 1 and the number of classes - 1 = 2, got 3"),
        (1.0, TypeError, "k must be an integer, got 1.0"),
        (True, TypeError, "k must be an integer, got True"),
    ],
)
def test_more_axes_than_classes_less_one_are_refused(k, error, message):
    x, labels = groups((5, 6, 7), 4)
    assert lda(x, labels, 2).axes.shape == (4, 2)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        lda(x, labels, k)


def test_more_axes_than_directions_are_refused():
    x, labels = groups((5, 6, 7), 1)
    assert lda(x, labels, 1).axes.shape == (1, 1)
    message = "k must be at most the number of directions in which classes spread = {}, got {}"
    with pytest.raises(ValueError, match=f"^{re.escape(message.format(1, 2))}$"):
        lda(np.column_stack([x, x]), labels, 2)
    with pytest.raises(ValueError, match=f"^{re.escape(message.format(0, 1))}$"):
        lda(CROSSES, np.arange(8), 1)  # each class a single point


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_what_is_no_matrix_has_no_discriminants(case):
    value, error, message = BAD_MATRICES[case]
    for call in (lambda: lda(value, SIDES, 1), lambda: lda(CROSSES, SIDES, 1).project(value)):
        with pytest.raises(error, match=f"^{re.escape(message.format('x'))}$"):
            call()


def test_points_with_another_number_of_columns_are_refused():
    found = lda(CROSSES, SIDES, 1)
    for method in (found.project, found.classify):
        with pytest.raises(ValueError, match=r"^x must have 2 columns, got shape \(3, 1\)$"):
            method(np.ones((3, 1)))


# descent


def test_descent_stops_when_a_sweep_gains_no_more_than_enough():
    """Losses 16, 8, 4, 2, 1, ...: the gains are 8, 4, 2, 1."""

    def descend(share, sweeps):
        return family._descend(lambda p, q: (p / 2, q), lambda p, q: p[0], (np.array([16.0]), None), share, sweeps)

    stopped = descend(lambda before: 2.0, 9)
    assert (stopped.losses, stopped.settled, stopped.factors[0][0]) == ([16, 8, 4, 2], True, 2)
    assert descend(lambda before: 1.999, 9).losses == [16, 8, 4, 2, 1]
    assert descend(lambda before: before / 2, 9).losses == [16, 8]  # told the loss before the sweep
    cut = descend(lambda before: 0.0, 2)
    assert (cut.losses, cut.settled, cut.factors[0][0]) == ([16, 8, 4], False, 4)
    none = descend(lambda before: 0.0, 0)
    assert (none.losses, none.settled, none.factors[0][0]) == ([16], False, 16)


@pytest.mark.parametrize("factor", [1.0, 1.5, np.nan])
def test_descent_keeps_what_it_had_where_a_sweep_does_not_help(factor):
    start = (np.array([3.0]), None)
    found = family._descend(lambda p, q: (p * factor, q), lambda p, q: p[0], start, lambda _: 0.0, 5)
    assert (found.factors, found.losses, found.settled) == (start, [3.0], True)


# non-negative matrix factorization


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
    np.testing.assert_array_equal(family._update_columns(w, xh, hh), [[2, 1], [0, 2]])
    np.testing.assert_array_equal(w, np.ones((2, 2)))
    at_once = np.maximum(w + (xh - w @ hh) / np.diag(hh), 0)  # contrast: all columns from the old ones
    assert at_once[0, 1] == 1.5


def test_a_single_column_is_updated_to_the_solution_of_nnls():
    x, h = fresh().standard_normal((6, 4)), fresh(1).random((1, 4))
    w = family._update_columns(np.ones((6, 1)), x @ h.T, h @ h.T)
    np.testing.assert_allclose(w[:, 0], [scipy.optimize.nnls(h.T, row)[0][0] for row in x], atol=1e-14)


def test_a_part_of_no_size_is_left_alone():
    hh = np.diag([0.0, 1e-201, 4.0])
    w = family._update_columns(np.ones((2, 3)), np.full((2, 3), 8.0), hh)
    np.testing.assert_array_equal(w, [[1, 1, 2]] * 2)


@pytest.mark.parametrize("shape", [(8, 5), (5, 8)])
def test_the_starts_are_those_that_are_named(shape):
    x = fresh().random(shape)
    starts = family._nmf_starts(x, 3, fresh(1))
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
    w, h = next(family._nmf_starts(x, 4, fresh()))
    np.testing.assert_allclose(w @ h, np.linalg.multi_dot(_initialize_nmf(x, 4, init="nndsvd")), atol=1e-7)


def test_more_starts_find_a_lower_error():
    x = fresh(11).random((30, 30))
    errors = [nmf(x, 12, rng=fresh(1), starts=starts).error for starts in (1, 3, 12)]
    assert max(errors[1:]) < errors[0] * 0.999
    assert nmf(x, 12, starts=2).error == nmf(x, 12, starts=2).error  # the first two are not random


def test_the_best_after_a_few_sweeps_is_not_always_the_best_in_the_end(monkeypatch):
    monkeypatch.setattr(family, "_BRIEFLY", 1)
    errors = {}
    for followed in (1, 2):
        monkeypatch.setattr(family, "_FOLLOWED", followed)
        errors[followed] = np.array([nmf(fresh(seed).random((20, 15)), 6, rng=fresh()).error for seed in range(6)])
    assert (errors[2] <= errors[1]).all()
    assert (errors[2] < 0.999 * errors[1]).any()


def test_the_generator_decides_everything():
    x = TABLES["uniform"]
    one, same = (nmf(x, 8, rng=fresh(4)) for _ in range(2))
    np.testing.assert_array_equal(one.w, nmf(x, 8, rng=fresh(4), starts=5, tolerance=1e-8).w)
    np.testing.assert_array_equal(one.w, same.w)
    np.testing.assert_array_equal(one.h, same.h)
    others = {nmf(x, 15, rng=fresh(seed), tolerance=1e-5).error for seed in range(8)}
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
    ordered_w, ordered_h = family._by_weight(w, h)  # weights 5 sqrt(2), 10, 0, 0
    np.testing.assert_allclose(ordered_w, [[6, 5, 0, 0], [8, 5, 0, 0]], rtol=1e-15)
    np.testing.assert_allclose(ordered_h, [[0, 1], [0.6, 0.8], [0, 0], [0, 0]], rtol=1e-15)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-300, 2.0**300, 2.0**1000])
def test_tiny_and_huge_matrices_have_the_same_parts(scale):
    x = fresh().random((20, 9))
    one, other = nmf(x, 3, rng=fresh()), nmf(x * scale, 3, rng=fresh())
    np.testing.assert_allclose(other.h, one.h, atol=1e-5)
    np.testing.assert_allclose(other.w / scale, one.w, atol=1e-5)
    assert other.error / scale == pytest.approx(one.error, rel=1e-6)
    assert other.converged


def test_errors_beyond_the_largest_float_are_refused():
    x = np.array([[1.7e308, 0], [0, 1.7e308]])
    assert nmf(x, 2, rng=fresh()).error == 0
    with pytest.raises(ValueError, match=r"^x must be small enough for its errors to fit float64, got larger ones$"):
        nmf(1.7e308 * np.eye(4), 1, rng=fresh())
    with pytest.raises(ValueError, match=r"^x must be small enough for its factors to fit float32, got larger ones$"):
        nmf(np.float32(3e38) * np.ones((4, 4), np.float32), 1)


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
    with pytest.raises(ValueError, match=r"^x must be non-negative, got -1e-300$"):
        nmf([[0.0, -1e-300]], 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be between 1 and min(m, n) = 3, got 0"),
        ({"k": 4}, ValueError, "k must be between 1 and min(m, n) = 3, got 4"),
        ({"k": 1.0}, TypeError, "k must be an integer, got 1.0"),
        ({"rng": 0}, TypeError, "rng must be a numpy.random.Generator or None, got 0"),
        ({"starts": 0}, ValueError, "starts must be at least 1, got 0"),
        ({"starts": True}, TypeError, "starts must be an integer, got True"),
        ({"tolerance": -1e-9}, ValueError, "tolerance must be at least 0 and below 1, got -1e-09"),
        ({"tolerance": 1}, ValueError, "tolerance must be at least 0 and below 1, got 1.0"),
        ({"tolerance": "no"}, TypeError, "tolerance must be a real number, got 'no'"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be at least 1, got 0"),
        ({"max_sweeps": 2.5}, TypeError, "max_sweeps must be an integer, got 2.5"),
    ],
)
def test_bad_settings_of_nmf_are_refused(arguments, error, message):
    x = np.ones((3, 4))
    assert nmf(x, 3, starts=1, tolerance=0.999, max_sweeps=1).w.shape == (3, 3)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        nmf(x, **({"k": 1} | arguments))


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_what_is_no_matrix_has_no_parts(case):
    value, error, message = BAD_MATRICES[case]
    with pytest.raises(error, match=f"^{re.escape(message.format('x'))}$"):
        nmf(value, 1)


# ratings


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
@pytest.mark.parametrize(("n", "m"), [(60, 50), (100, 80)])
def test_a_table_of_rank_4_comes_back_from_two_fifths_of_it(n, m, kind):
    for seed in range(6):
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
    for _ in range(300):
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
    np.testing.assert_allclose(family._half_step(q, r, seen, 1.0)[:, 0], [3 / 2, 11 / 6, 8 / 5], rtol=1e-15)
    np.testing.assert_allclose(family._half_step(q, r, seen, 0.0)[:, 0], [3, 11 / 5, 2], rtol=1e-15)


@pytest.mark.parametrize("penalty", [0.0, 1e-30, 1e-12, 1e-7, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_a_half_step_is_a_ridge_regression_for_each_row(k, penalty):
    rng = fresh(k)
    q, seen = rng.standard_normal((9, k)), rng.random((30, 9)) < 0.5
    seen[~seen.any(axis=1), 0] = True
    r = np.where(seen, rng.standard_normal((30, 9)), 0)
    assert k < 6 or seen.sum(axis=1).min() < k  # rows with fewer ratings than unknowns
    p = family._half_step(q, r, seen.astype(float), penalty)
    np.testing.assert_allclose(p, half_step_by_loops(q, r, seen, penalty), rtol=1e-6, atol=1e-7)


def test_both_ways_to_solve_agree_where_they_meet():
    """The penalty that parts them is 1e-8 of the squares of q."""
    q, seen = fresh().standard_normal((9, 2)), np.ones((4, 9))
    r = fresh(1).standard_normal((4, 9))
    border = 1e-8 * np.square(q).sum()
    at_once, by_row = (family._half_step(q, r, seen, border * factor) for factor in (1.001, 0.999))
    np.testing.assert_allclose(at_once, by_row, rtol=1e-7)


def test_of_many_solutions_the_shortest_is_taken():
    q = np.array([[3.0, 4]])
    p = family._half_step(q, np.array([[25.0]]), np.ones((1, 1)), 0.0)
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
    found = family._ratings_start(r, seen.astype(float), 3, penalty, fresh(5))
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
    tiny = factorize_ratings(table * 2.0**-900, seen, 2, regularization=1e200, rng=fresh())
    np.testing.assert_array_equal(tiny.estimates, 0)


def test_a_penalty_helps_where_the_ratings_are_few_and_noisy():
    table, seen = ratings_of(40, 30, 2, seed=3)
    noisy = table + fresh(8).standard_normal(table.shape)
    errors = [
        relative_error(factorize_ratings(noisy, seen, 6, regularization=penalty, rng=fresh()).estimates, table)
        for penalty in (0, 5)
    ]
    assert errors[1] < 0.6
    assert errors[0] > 2 * errors[1]


@pytest.mark.parametrize("scale", [4.0**-120, 4.0**-60, 4.0**60, 4.0**120])
def test_tiny_and_huge_ratings_with_a_penalty_to_match_have_the_same_factors(scale):
    table, seen = ratings_of(20, 15, 2, share=0.6)
    one = factorize_ratings(table, seen, 2, regularization=0.5, rng=fresh())
    other = factorize_ratings(table * scale, seen, 2, regularization=0.5 * scale, rng=fresh())
    np.testing.assert_allclose(other.p, one.p * math.sqrt(scale), rtol=1e-5, atol=1e-5 * math.sqrt(scale))
    np.testing.assert_allclose(other.estimates, one.estimates * scale, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(other.losses[-1], one.losses[-1] * scale**2, rtol=1e-6)


def test_ratings_whose_loss_no_float_holds_are_refused():
    table, seen = ratings_of(9, 8, 2)
    with pytest.raises(
        ValueError, match=r"^ratings must be small enough for its losses to fit float64, got larger ones$"
    ):
        factorize_ratings(table * 1e160, seen, 1)


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
        ([[True], [True, False]], ValueError, "observed must be a rectangular array of bools, got a ragged sequence"),
        (np.ma.masked_all((3, 4), bool), TypeError, "observed must be an array without a mask, got a masked array"),
    ],
)  # fmt: skip
def test_bad_masks_are_refused(observed, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        factorize_ratings(np.ones((3, 4)), observed, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_known_rating_that_is_not_finite_is_refused(value):
    table = np.ones((3, 4))
    table[1, 2] = value
    assert factorize_ratings(table, np.isfinite(table), 1).converged
    with pytest.raises(ValueError, match=f"^ratings must be finite where observed, got {value}$"):
        factorize_ratings(table, np.ones((3, 4), bool), 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": 0}, ValueError, "k must be between 1 and min(m, n) = 3, got 0"),
        ({"k": 4}, ValueError, "k must be between 1 and min(m, n) = 3, got 4"),
        ({"k": 1.0}, TypeError, "k must be an integer, got 1.0"),
        ({"regularization": -1e-9}, ValueError, "regularization must be finite and at least 0, got -1e-09"),
        ({"regularization": np.inf}, ValueError, "regularization must be finite and at least 0, got inf"),
        ({"regularization": np.nan}, ValueError, "regularization must be finite and at least 0, got nan"),
        ({"regularization": None}, TypeError, "regularization must be a real number, got None"),
        ({"rng": 0}, TypeError, "rng must be a numpy.random.Generator or None, got 0"),
        ({"tolerance": -1e-9}, ValueError, "tolerance must be at least 0 and below 1, got -1e-09"),
        ({"tolerance": 1}, ValueError, "tolerance must be at least 0 and below 1, got 1.0"),
        ({"tolerance": True}, TypeError, "tolerance must be a real number, got True"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be at least 1, got 0"),
        ({"max_sweeps": 2.5}, TypeError, "max_sweeps must be an integer, got 2.5"),
    ],
)
def test_bad_settings_of_ratings_are_refused(arguments, error, message):
    table, seen = np.ones((3, 4)), np.ones((3, 4), bool)
    assert factorize_ratings(table, seen, 3, regularization=0, tolerance=0.999, max_sweeps=1).p.shape == (3, 3)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        factorize_ratings(table, seen, **({"k": 1} | arguments))


# Not among them: what is empty or not finite, which depends on the mask.
@pytest.mark.parametrize(
    "case", [case for case in BAD_MATRICES if "must be finite" not in BAD_MATRICES[case][2] and "no " not in case]
)
def test_what_is_no_matrix_holds_no_ratings(case):
    value, error, message = BAD_MATRICES[case]
    with pytest.raises(error, match=f"^{re.escape(message.format('ratings'))}$"):
        factorize_ratings(value, [[True]], 1)
    with pytest.raises(ValueError, match=r"^ratings must be a rectangular array of real numbers, got NoArray\(\)$"):
        factorize_ratings(NoArray(), [[True]], 1)
    with pytest.raises(ValueError, match=r"^observed must mark at least one rating as known, got none$"):
        factorize_ratings(np.zeros((0, 3)), np.zeros((0, 3), bool), 1)


# the module


def test_torch_is_imported_only_for_the_autoencoder():
    code = (
        "import sys, lowrank_tutor.family as f; f.nmf([[1]], 1); f.factorize_ratings([[1]], [[True]], 1); "
        "assert 'torch' not in sys.modules; f.Autoencoder; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_public_names_of_the_family_are_there():
    assert all(hasattr(family, name) for name in family.__all__)
    assert set(family.__all__) <= set(dir(family))
    assert family.Autoencoder.__module__ == "lowrank_tutor.family"
    with pytest.raises(AttributeError, match=r"^module 'lowrank_tutor\.family' has no attribute 'Nothing'$"):
        _ = family.Nothing
