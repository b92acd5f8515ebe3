"""LDA against scikit-learn, SciPy, sums over points, and numbers worked by hand."""

import math
import re

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import fresh, with_spectrum
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from lowrank_tutor.lda import lda


def groups(sizes, d, seed=0):
    """Draw classes of the given sizes around centers of their own, with one shape of spread."""
    rng = fresh(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centers = 2 * rng.standard_normal((len(sizes), d))
    x = centers[labels] + rng.standard_normal((len(labels), d)) @ rng.standard_normal((d, d))
    order = rng.permutation(len(labels))
    return x[order], labels[order]


def covariances(x, labels):
    """Return the covariances within and between, as sums over points and classes."""
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


@pytest.mark.parametrize(
    ("sizes", "d"),
    [((9, 9), 1), ((9, 5), 2), ((20, 5, 8), 4), ((6, 7, 8, 9, 10), 3), ((30,) * 6, 9), ((40, 1, 12), 3), ((4, 5), 20)],
)
def test_agrees_with_scikit_learn(sizes, d):
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
    np.testing.assert_array_equal(ours.axes.max(axis=0), np.abs(ours.axes).max(axis=0))


@pytest.mark.parametrize("k", [1, 4, 9])
def test_digits_agree_with_scikit_learn(k):
    assert (DIGITS.min(axis=0) == DIGITS.max(axis=0)).any()
    ours, judge = lda(DIGITS, DIGIT, k), LinearDiscriminantAnalysis(solver="svd").fit(DIGITS, DIGIT)
    np.testing.assert_allclose(np.abs(ours.axes), np.abs(judge.scalings_[:, :k]), atol=1e-11)
    np.testing.assert_allclose(ours.ratio, judge.explained_variance_ratio_[:k], rtol=1e-10)
    if k == 9:
        np.testing.assert_array_equal(ours.classify(DIGITS), judge.predict(DIGITS))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_classify_uses_kept_axes(k):
    x, labels = groups((30, 10, 25, 20), 5)
    found = lda(x, labels, k)
    z = found.project(x)
    np.testing.assert_array_equal(found.classify(x), LinearDiscriminantAnalysis().fit(z, labels).predict(z))
    if k == 1:  # scikit-learn's own predict uses all axes, whatever it was asked for
        judge = LinearDiscriminantAnalysis(n_components=1).fit(x, labels)
        assert (found.classify(x) != judge.predict(x)).any()


def test_generalized_eigenproblem():
    x, labels = groups((12, 20, 9, 15), 5)
    within, between = covariances(x, labels)
    values, vectors = scipy.linalg.eigh(between, within)
    found = lda(x, labels, 3)
    np.testing.assert_allclose(np.abs(found.axes.T @ within @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(found.axes.T @ between @ found.axes, np.diag(values[::-1][:3]), atol=1e-9)
    np.testing.assert_allclose(found.ratio, values[::-1][:3] / values.sum(), rtol=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_invariant_under_affine_maps(seed):
    x, labels = groups((9, 12, 10), 3, seed)
    change = with_spectrum([5, 2, 0.5], 3, 3, seed)
    here, there = lda(x, labels, 2), lda(x @ change + [7, -8, 9], labels, 2)
    z = there.project(x @ change + [7, -8, 9])
    np.testing.assert_allclose(np.abs(z), np.abs(here.project(x)), atol=1e-8)
    np.testing.assert_allclose(there.ratio, here.ratio, atol=1e-10)


def test_two_crosses_by_hand():
    found = lda(CROSSES, SIDES, 1)
    np.testing.assert_allclose(found.axes, [[math.sqrt(2)], [0]], atol=1e-15)
    np.testing.assert_array_equal(found.ratio, [1])
    np.testing.assert_array_equal(found.mean, [5, 0])
    np.testing.assert_array_equal(found.centers, [[0, 0], [10, 0]])
    np.testing.assert_array_equal(found.classes, ["left", "right"])
    np.testing.assert_array_equal(found.priors, [0.5, 0.5])
    np.testing.assert_allclose(found.project([[6, 3]]), [[math.sqrt(2)]], rtol=1e-15)
    np.testing.assert_array_equal(found.classify([[4.999, 9], [5.001, -9]]), ["left", "right"])


def test_priors_move_the_border():
    """With three times as many on the left the border lies at 5 + log(3) / (10 / variance) = 5.0549."""
    found = lda(np.vstack([CROSS, CROSS, CROSSES]), np.repeat(["left", "right"], [12, 4]), 1)
    border = 5 + math.log(3) / 20
    np.testing.assert_array_equal(found.classify([[border - 1e-6, 0], [border + 1e-6, 0]]), ["left", "right"])


def test_constant_coordinates_are_dropped():
    x, labels = groups((9, 8, 7), 3)
    plain = lda(x, labels, 2)
    for column in (np.zeros(24), np.full(24, 0.1), 1e9 * labels + 0.1):
        found = lda(np.column_stack([x[:, :1], column, x[:, 1:]]), labels, 2)
        np.testing.assert_array_equal(found.axes[1], [0, 0])
        np.testing.assert_allclose(found.axes[[0, 2, 3]], plain.axes, atol=1e-12)
        np.testing.assert_allclose(found.ratio, plain.ratio, atol=1e-12)


@pytest.mark.parametrize(("noise", "kept"), [(1e-5, False), (1e-2, True)])
def test_threshold_of_null_directions(noise, kept):
    x, labels = groups((30, 30, 30), 2)
    twin = x[:, :1] + noise * x[:, :1].std() * fresh(5).standard_normal((90, 1))
    doubled = np.column_stack([x, twin])
    found, judge = lda(doubled, labels, 2), LinearDiscriminantAnalysis(solver="svd").fit(doubled, labels)
    np.testing.assert_allclose(np.abs(found.axes), np.abs(judge.scalings_), rtol=1e-6)
    difference = np.abs(found.axes[0] - found.axes[2]).max()
    assert (difference > 1) == kept  # twins share their weight unless their difference is real


def test_coinciding_centers_share_nothing():
    found = lda(np.vstack([CROSS, 2 * CROSS]), SIDES, 1)
    np.testing.assert_array_equal(found.ratio, [0])
    within, _ = covariances(found.project(np.vstack([CROSS, 2 * CROSS])), SIDES)
    assert within[0, 0] == pytest.approx(1, rel=1e-12)


STRINGS = getattr(np.dtypes, "StringDType", lambda: object)()  # NumPy has it from 2.0 on


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["b"] * 4 + ["a"] * 4, "U"),
        (np.array(["b"] * 4 + ["ant"] * 4, dtype=object), "U"),
        (np.array(["b"] * 4 + ["ant"] * 4, dtype=STRINGS), "U"),
        (np.array([b"b"] * 4 + [b"ant"] * 4), "S"),
        (np.array([b"b"] * 4 + [b"ant"] * 4, dtype=object), "S"),
        (np.array([7] * 4 + [-7] * 4, dtype=object), "i"),
        (np.array([7] * 4 + [0.5] * 4, dtype=object), "f"),
        ([True] * 4 + [False] * 4, "b"),
        ([7] * 4 + [-7] * 4, "i"),
        (np.repeat(np.uint8([9, 3]), 4), "u"),
        (np.repeat([1.5, 0.5], 4), "f"),
    ],
)
def test_labels_keep_their_type(labels, kind):
    found = lda(CROSSES, labels, 1)
    assert found.classes.dtype.kind == kind
    np.testing.assert_array_equal(found.classify(CROSSES), labels)
    np.testing.assert_array_equal(found.classes, sorted(set(np.asarray(labels).tolist())))


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_tiny_and_huge_points(scale):
    x, labels = groups((9, 8, 7), 3)
    units = np.array([scale, 1, 1 / scale])  # each coordinate in another unit
    one, other = lda(x, labels, 2), lda(x * units, labels, 2)
    np.testing.assert_allclose(np.abs(other.axes * units[:, np.newaxis]), np.abs(one.axes), rtol=1e-9)
    np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-9)
    np.testing.assert_allclose(other.mean / units, one.mean, rtol=1e-12)
    np.testing.assert_array_equal(other.classify(x * units), one.classify(x))


@pytest.mark.parametrize(("given_type", "result_type"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_precision_of_the_input(given_type, result_type):
    x, labels = groups((20, 15, 30), 4)
    x = (10 * x).astype(given_type)
    x.flags.writeable = False  # so that changes would fail
    found, judge = lda(x, labels, 2), lda(x.astype(float), labels, 2)
    arrays = (found.axes, found.ratio, found.project(x))
    assert {array.dtype for array in arrays} == {np.dtype(result_type)}
    np.testing.assert_allclose(found.axes, judge.axes, rtol=1e-5, atol=1e-6)
    assert (found.classify(x) == judge.classify(x)).mean() > 0.98


FOUND, (THREE, LABELS), (LINE, OF_LINE) = lda(CROSSES, SIDES, 1), groups((5, 6, 7), 4), groups((5, 6, 7), 1)
ONE_EACH, WORDS = "labels must be one for each of the 8 points", "labels must be a vector of numbers or strings"
DIRECTIONS = "k must be at most the number of directions in which classes spread"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lda(CROSSES, ["a"] * 7, 1), ValueError, ONE_EACH + ", got shape (7,)"),
        (lambda: lda(CROSSES, ["a"] * 9, 1), ValueError, ONE_EACH + ", got shape (9,)"),
        (lambda: lda(CROSSES, np.zeros((8, 1), int), 1), ValueError, ONE_EACH + ", got shape (8, 1)"),
        (lambda: lda(CROSSES, ["a"] * 8, 1), ValueError, "labels must name at least two classes, got one, a"),
        (lambda: lda(CROSSES, [0.0] * 7 + [np.nan], 1), ValueError, "labels must be finite, got nan"),
        (lambda: lda(CROSSES, ["a"] * 7 + [None], 1), TypeError, WORDS + ", got dtype object"),
        (lambda: lda(CROSSES, np.array([1, "1"] * 4, dtype=object), 1), TypeError, WORDS + ", got dtype object"),
        (lambda: lda(CROSSES, np.array([2**63 + 1, -1] * 4, dtype=object), 1), TypeError, WORDS + ", got dtype object"),
        (lambda: lda(CROSSES, [1j] * 8, 1), TypeError, WORDS + ", got dtype complex128"),
        (lambda: lda(CROSSES, [[1], [2, 3]], 1), ValueError, WORDS + ", got [[1], [2, 3]]"),
        (lambda: lda(CROSSES, np.ma.masked_equal([0] * 7 + [2], 2), 1), TypeError,
         "labels must be an array without a mask, got a masked array"),
        (lambda: lda(THREE, LABELS, 0), ValueError, "k must be between 1 and the number of classes - 1 = 2, got 0"),
        (lambda: lda(THREE, LABELS, 3), ValueError, "k must be between 1 and the number of classes - 1 = 2, got 3"),
        (lambda: lda(np.column_stack([LINE, LINE]), OF_LINE, 2), ValueError, DIRECTIONS + " = 1, got 2"),
        (lambda: lda(CROSSES, np.arange(8), 1), ValueError, DIRECTIONS + " = 0, got 1"),  # a point a class
        (lambda: lda([[1.0, np.nan]], SIDES, 1), ValueError, "x must be finite, got nan"),
        (lambda: FOUND.project([[1.0, np.nan]]), ValueError, "x must be finite, got nan"),
        (lambda: FOUND.project(np.ones((3, 1))), ValueError, "x must have 2 columns, got shape (3, 1)"),
        (lambda: FOUND.classify(np.ones((3, 1))), ValueError, "x must have 2 columns, got shape (3, 1)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call()


def test_scatter_matrix_shortcut(monkeypatch):
    rng = fresh()
    labels = rng.integers(0, 4, 2000)
    x = rng.standard_normal((2000, 5)) * [1, 2, 3, 4, 5] + rng.standard_normal((4, 5))[labels] * 3
    found = lda(x, labels, 3)
    monkeypatch.setattr("lowrank_tutor.lda._TALL", 10**9)
    judge = lda(x, labels, 3)
    np.testing.assert_allclose(found.axes, judge.axes, atol=1e-10)
    np.testing.assert_allclose(found.ratio, judge.ratio, atol=1e-12)
