"""Principal components, against scikit-learn and against the covariance matrix."""

import re
import sys
import tracemalloc
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import with_spectrum
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from lowrank_tutor.pca import PCA
from lowrank_tutor.svd import best_rank_k, tail_error, truncated_svd

ATTRIBUTES = ["mean_", "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"]


def cloud(n, d, seed=0):
    """Draw points that spread differently along each axis, away from the origin."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.arange(1, d + 1) + 5


def agree(n, d, k, *, atol, atol_of_projections):
    """Compare all that PCA finds, and what it makes of points old and new, with scikit-learn's full decomposition."""
    x, new = cloud(n, d), cloud(4, d, seed=1)
    ours, judge = PCA(k).fit(x), decomposition.PCA(k, svd_solver="full").fit(x)
    for name in ATTRIBUTES:
        np.testing.assert_allclose(getattr(ours, name), getattr(judge, name), rtol=1e-10, atol=atol)
    z = ours.transform(new)
    for found, wanted in (
        (z, judge.transform(new)),
        (PCA(k).fit_transform(x), judge.transform(x)),
        (ours.inverse_transform(z), judge.inverse_transform(z)),
    ):
        np.testing.assert_allclose(found, wanted, atol=atol_of_projections)


@pytest.mark.parametrize(
    ("n", "d", "k"), [(2, 1, 1), (2, 5, 1), (20, 6, 1), (20, 6, 3), (20, 6, 6), (5, 9, 4), (9, 9, 2)]
)
def test_everything_agrees_with_scikit_learn(n, d, k):
    agree(n, d, k, atol=1e-13, atol_of_projections=1e-12)


def test_the_digits_agree_with_scikit_learn():
    x = load_digits().data
    ours, judge = PCA(10).fit(x), decomposition.PCA(10, svd_solver="full").fit(x)
    for name in ATTRIBUTES:
        np.testing.assert_allclose(getattr(ours, name), getattr(judge, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.transform(x), judge.transform(x), atol=1e-9)


def test_the_axes_are_the_eigenvectors_of_the_covariance_matrix():
    x = cloud(40, 5)
    pca = PCA(5).fit(x)
    values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    np.testing.assert_allclose(pca.explained_variance_, values[::-1], rtol=1e-12)
    np.testing.assert_allclose(np.abs(pca.components_ @ vectors[:, ::-1]), np.eye(5), atol=1e-12)


def test_three_points_on_a_line_come_out_as_by_hand():
    pca = PCA(2).fit([[0, 0], [1, 2], [2, 4]])
    np.testing.assert_array_equal(pca.mean_, [1, 2])
    np.testing.assert_allclose(pca.components_[0], np.array([1, 2]) / np.sqrt(5), rtol=1e-15)
    np.testing.assert_allclose(pca.explained_variance_, [5, 0], atol=1e-15)  # 10 / (3 - 1)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [1, 0], atol=1e-15)
    np.testing.assert_allclose(pca.singular_values_, [np.sqrt(10), 0], atol=1e-15)
    np.testing.assert_allclose(pca.transform([[3, 6]]), [[2 * np.sqrt(5), 0]], atol=1e-14)


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 6), st.integers(0, 100))
def test_all_axes_lose_nothing_and_explain_everything(n, d, seed):
    x = cloud(n, d, seed)
    pca = PCA(min(n, d))
    z = pca.fit_transform(x)
    np.testing.assert_allclose(pca.inverse_transform(z), x, atol=1e-12)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(z, pca.transform(x), atol=1e-12)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(min(n, d)), atol=1e-13)


@pytest.mark.parametrize("k", [1, 3])
def test_reconstruction_is_the_best_rank_k_of_the_centered_points(k):
    x = cloud(30, 6)
    pca = PCA(k).fit(x)
    rebuilt = pca.inverse_transform(pca.transform(x))
    mean = x.mean(axis=0)
    np.testing.assert_allclose(rebuilt, best_rank_k(x - mean, k) + mean, atol=1e-12)
    s = np.linalg.svd(x - mean, compute_uv=False)
    assert np.linalg.norm(x - rebuilt) == pytest.approx(tail_error(s, k), rel=1e-12)


def test_moving_all_points_moves_only_the_mean():
    x = cloud(30, 4)
    here, there = PCA(2).fit(x), PCA(2).fit(x + np.array([100, -200, 300, 0]))
    np.testing.assert_allclose(there.mean_ - here.mean_, [100, -200, 300, 0], atol=1e-12)
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-11)
    np.testing.assert_allclose(there.explained_variance_, here.explained_variance_, rtol=1e-11)


def test_without_centering_the_first_axis_is_the_mean_and_not_the_spread():
    """Contrast: the truncated SVD of a cloud far from the origin points at the cloud."""
    x = np.random.default_rng(0).standard_normal((200, 3)) * [3, 1, 1] + [0, 0, 50]
    assert abs(PCA(1).fit(x).components_[0, 0]) > 0.99
    assert abs(truncated_svd(x, 1).vt[0, 2]) > 0.99


def test_the_largest_entry_of_each_axis_is_positive():
    for seed in range(5):
        components = PCA(4).fit(cloud(20, 4, seed)).components_
        np.testing.assert_array_equal(components.max(axis=1), np.abs(components).max(axis=1))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e75, 3])
def test_points_that_all_coincide_have_no_variance_to_share(value):
    """The mean of equal numbers may miss them by a rounding; that must not count as variance."""
    x = np.full((7, 3), value)
    pca = PCA(2).fit(x)
    np.testing.assert_array_equal(pca.mean_, x[0])
    for name in ATTRIBUTES[2:]:
        np.testing.assert_array_equal(getattr(pca, name), [0, 0])
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-15)
    np.testing.assert_array_equal(pca.transform(x), np.zeros((7, 2)))


def test_a_constant_column_beside_a_spread_one_explains_nothing():
    x = np.column_stack([np.full(7, 0.1), np.arange(7.0)])
    pca = PCA(2).fit(x)
    assert pca.mean_[0] == 0.1
    np.testing.assert_array_equal(pca.explained_variance_ratio_, [1, 0])


def test_the_tolerance_for_a_constant_column_is_none():
    x = np.array([[1.0], [1.0], [np.nextafter(1, 2)]])
    assert PCA(1).fit(x).singular_values_[0] > 0


@pytest.mark.parametrize(("given_type", "result_type"), [(np.float32, np.float32), (np.int64, np.float64)])
def test_results_come_in_the_precision_of_the_input(given_type, result_type):
    x = (10 * cloud(20, 4)).astype(given_type)
    pca = PCA(2)
    z = pca.fit_transform(x)
    arrays = [z, pca.transform(x), pca.inverse_transform(z), *(getattr(pca, name) for name in ATTRIBUTES)]
    assert {array.dtype for array in arrays} == {np.dtype(result_type)}
    judge = decomposition.PCA(2, svd_solver="full").fit(x.astype(float))
    np.testing.assert_allclose(pca.explained_variance_, judge.explained_variance_, rtol=1e-5)


@pytest.mark.parametrize(("fitted", "given"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_where_two_precisions_meet_the_wider_one_holds(fitted, given):
    x = cloud(20, 4)
    z = PCA(2).fit(x.astype(fitted)).transform(x.astype(given))
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, PCA(2).fit_transform(x), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-74, 1e74])
def test_tiny_and_huge_points_keep_their_shares(scale):
    x = with_spectrum([3, 2, 1], 20, 5)
    one, scaled = PCA(2).fit(x), PCA(2).fit(x * scale)
    np.testing.assert_allclose(scaled.explained_variance_ratio_, one.explained_variance_ratio_, rtol=1e-12)
    np.testing.assert_allclose(scaled.components_, one.components_, atol=1e-13)
    np.testing.assert_allclose(scaled.mean_ / scale, one.mean_, atol=1e-14)
    np.testing.assert_allclose(scaled.singular_values_ / scale, one.singular_values_, rtol=1e-12)
    np.testing.assert_allclose(scaled.explained_variance_, one.explained_variance_ * scale * scale, rtol=1e-12)


def test_many_coordinates_need_no_square_matrix_of_their_number():
    x = cloud(3, 3000)  # that matrix would be 72 MB
    tracemalloc.start()
    try:
        PCA(2).fit(x)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_many_points_need_no_square_matrix_of_their_number():
    x = np.arange(2_000_000.0).reshape(-1, 2)
    assert PCA(1).fit_transform(x).shape == (1_000_000, 1)


def test_fitting_again_forgets_the_first_fit():
    x, y = cloud(20, 4), cloud(30, 6)
    pca = PCA(2).fit(x)
    assert pca.fit(y) is pca
    np.testing.assert_array_equal(pca.components_, PCA(2).fit(y).components_)


def test_a_refused_fit_leaves_the_first_one_as_it_was():
    pca = PCA(2).fit(cloud(20, 4))
    before = [getattr(pca, name).copy() for name in ATTRIBUTES]
    for refused in ([[0.0], [np.inf]], np.ones((5, 1))):
        with pytest.raises(ValueError, match=r"^(x|n_components) must be"):
            pca.fit(refused)
    for name, array in zip(ATTRIBUTES, before, strict=True):
        np.testing.assert_array_equal(getattr(pca, name), array)


def test_it_shows_its_setting():
    assert repr(PCA(3)) == "PCA(n_components=3)"
    assert PCA(np.int64(3)).n_components == 3


# bad input: one value an argument, since what else is refused stands in test_checks.py


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PCA(0), "n_components must be at least 1, got 0"),
        (lambda: PCA(1).fit([[np.nan]]), "x must be finite, got nan"),
        (lambda: PCA(1).fit_transform([[np.nan]]), "x must be finite, got nan"),
        (lambda: PCA(1).fit(cloud(5, 2)).transform([[1, np.nan]]), "x must be finite, got nan"),
        (lambda: PCA(1).fit(cloud(5, 2)).inverse_transform([[np.nan]]), "z must be finite, got nan"),
    ],
)
def test_each_argument_is_checked_under_its_name(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("shape", [(3, 9), (9, 3)])
def test_more_axes_than_points_or_coordinates_are_refused(shape):
    PCA(3).fit(np.ones(shape))
    with pytest.raises(ValueError, match=r"^n_components must be between 1 and min\(n, d\) = 3, got 4$"):
        PCA(4).fit(np.ones(shape))


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_a_single_point_has_no_variance(method):
    message = "x must be two points or more (variance divides by n - 1), got 1"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(PCA(1), method)([[1.0, 2.0]])


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_use_before_a_fit_is_refused(method):
    message = "PCA(n_components=2) must be fitted first: call fit(x), got no fit yet"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        getattr(PCA(2), method)(np.ones((3, 2)))


@pytest.mark.parametrize("loaded", [None, types.ModuleType("sklearn.exceptions")])
def test_where_scikit_learn_is_not_loaded_it_is_not_asked(loaded, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", loaded)
    with pytest.raises(ValueError, match=r"must be fitted first") as refused:
        PCA(2).transform(np.ones((3, 2)))
    assert refused.type is ValueError
    assert isinstance(PCA(2).fit_transform(cloud(20, 4)), np.ndarray)


def test_another_number_of_columns_is_refused():
    pca = PCA(2).fit(cloud(20, 4))
    with pytest.raises(ValueError, match=r"^x must have 4 columns, got shape \(3, 2\)$"):
        pca.transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"^z must have 2 columns, got shape \(3, 4\)$"):
        pca.inverse_transform(np.ones((3, 4)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_the_callers_array_is_never_changed(dtype):
    x = (10 * cloud(20, 4)).astype(dtype)
    before = x.copy()
    x.flags.writeable = False
    pca = PCA(2)
    z = pca.fit_transform(x)
    pca.inverse_transform(pca.transform(x))
    z.flags.writeable = False
    pca.inverse_transform(z)
    np.testing.assert_array_equal(x, before)
    assert not np.shares_memory(pca.mean_, x)


# many points of few coordinates: the scatter matrix in place of the points


@pytest.mark.parametrize(("n", "d", "k"), [(1000, 100, 10), (1000, 30, 30), (5000, 8, 8), (20, 2, 1), (20, 1, 1)])
def test_tall_data_agree_with_the_decomposition_of_the_points(n, d, k, monkeypatch):
    agree(n, d, k, atol=1e-10, atol_of_projections=1e-10)
    monkeypatch.setattr(np.linalg, "svd", None)  # a tall cloud with no tiny variance does without
    PCA(k).fit(cloud(n, d))


@pytest.mark.parametrize(("share", "by_scatter"), [(1.1e-5, True), (0.9e-5, False)])
def test_the_scatter_matrix_serves_while_the_least_variance_kept_is_1e_5_of_the_largest(share, by_scatter, monkeypatch):
    half = with_spectrum([1, 1, np.sqrt(share)], 100, 3)
    svd, asked = np.linalg.svd, []
    monkeypatch.setattr(np.linalg, "svd", lambda *a, **options: asked.append(a) or svd(*a, **options))
    PCA(3).fit(np.concatenate([half, -half]))  # of mean zero
    assert (asked == []) == by_scatter


def test_a_tiny_variance_is_found_from_the_points_themselves():
    """Contrast: the scatter matrix loses it. Its square is 1e-20 of the largest, below the rounding of the matrix."""
    x = with_spectrum([1e5, 1, 1e-5], 500, 3)
    x -= x.mean(axis=0)
    exact = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(PCA(3).fit(x).singular_values_, exact, rtol=1e-4)
    by_scatter = np.sqrt(np.abs(np.linalg.eigvalsh(x.T @ x)[0]))
    assert not np.isclose(by_scatter, exact[2], rtol=0.1)


def test_a_tall_cloud_far_from_the_origin_keeps_its_digits():
    """Contrast: the difference of two sums of squares, which serves nearer by, loses most of them."""
    half = with_spectrum([3, 2, 1], 100, 3)
    x = np.concatenate([half, -half]) + 2.0**20
    mean = x.mean(axis=0)
    squares = np.linalg.svd(x - mean, compute_uv=False) ** 2
    np.testing.assert_allclose(PCA(3).fit(x).singular_values_ ** 2, squares, rtol=1e-8)
    by_sums = np.linalg.eigvalsh(x.T @ x - len(x) * np.outer(mean, mean))[::-1]
    assert not np.allclose(by_sums, squares, rtol=1e-3)


@pytest.mark.parametrize("share", [1.0, 1e-2])
def test_float32_clouds_are_added_up_in_float64(share):
    x = (with_spectrum([3, 2, share], 400, 3) + 5).astype(np.float32)
    pca = PCA(3).fit(x)
    assert {getattr(pca, name).dtype for name in ATTRIBUTES} == {np.dtype(np.float32)}
    judge = decomposition.PCA(3, svd_solver="full").fit(x.astype(float))
    np.testing.assert_allclose(pca.singular_values_, judge.singular_values_, rtol=1e-4)


# as many axes as it takes


def test_a_share_that_is_met_exactly_is_not_yet_exceeded():
    """Half of the variance lies along the first axis, a quarter along each of the others, without a rounding."""
    points = np.repeat(np.vstack([np.eye(3), -np.eye(3)]), [10, 5, 5, 10, 5, 5], axis=0)
    assert PCA(0.499).fit(points).n_components_ == 1
    assert PCA(0.5).fit(points).n_components_ == 2


@pytest.mark.parametrize("n", [12, 200])
@pytest.mark.parametrize("wanted", [None, 0.5, 0.9, 0.999999, 1e-9])
def test_a_share_of_the_variance_and_all_axes_are_those_of_scikit_learn(n, wanted):
    x = cloud(n, 6)
    ours, judge = PCA(wanted).fit(x), decomposition.PCA(wanted, svd_solver="full").fit(x)
    assert ours.n_components_ == judge.n_components_
    np.testing.assert_allclose(ours.components_, judge.components_, atol=1e-10)
    assert PCA().fit(x).components_.shape == (6, 6)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (1.0, ValueError, "n_components must be above 0 and below 1, got 1.0"),
        (0.0, ValueError, "n_components must be above 0 and below 1, got 0.0"),
        (float("nan"), ValueError, "n_components must be above 0 and below 1, got nan"),
        (True, TypeError, "n_components must be an integer, got True"),
        ("mle", TypeError, "n_components must be an integer, got 'mle'"),
    ],
)
def test_another_setting_is_refused_when_it_is_made_and_when_it_is_set(value, error, message):
    for call in (lambda: PCA(value), lambda: PCA(1).set_params(n_components=value)):
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            call()


# inside scikit-learn


def test_scikit_learn_clones_it_and_finds_the_best_setting_in_a_pipeline():
    x, y = load_digits(return_X_y=True)
    x, y = x[:300], y[:300]
    pca = PCA(np.int64(3))
    assert clone(pca).get_params() == {"n_components": 3}
    pipe = make_pipeline(PCA(2), KNeighborsClassifier(3))
    grid = GridSearchCV(pipe, {"pca__n_components": [2, 20, 0.9]}, cv=2).fit(x, y)
    judge = make_pipeline(decomposition.PCA(2, svd_solver="full"), KNeighborsClassifier(3))
    theirs = GridSearchCV(judge, {"pca__n_components": [2, 20, 0.9]}, cv=2).fit(x, y)
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12)
    assert grid.best_estimator_[0].n_features_in_ == 64
    names = PCA(2).fit(x).get_feature_names_out()
    assert (list(names), names.dtype) == (["pca0", "pca1"], object)


def test_scikit_learn_recognizes_what_is_not_fitted():
    with pytest.raises(NotFittedError, match=r"must be fitted first"):
        PCA(2).transform(np.ones((3, 2)))
    with pytest.raises(NotFittedError, match=r"must be fitted first"):
        PCA(2).get_feature_names_out()
    with pytest.raises(NotFittedError):
        check_is_fitted(PCA(2))
    check_is_fitted(PCA(2).fit(cloud(20, 4)))
    with pytest.raises(ValueError, match=r"^params must be n_components, got whiten$"):
        PCA(2).set_params(whiten=True)
    assert PCA(2).set_params(n_components=0.5).get_params() == {"n_components": 0.5}
    assert PCA(2).set_params().get_params() == {"n_components": 2}
    ours, theirs = get_tags(PCA(2)), get_tags(decomposition.PCA(2))
    assert (ours.estimator_type, ours.target_tags) == (theirs.estimator_type, theirs.target_tags)
    assert isinstance(ours.transformer_tags, type(theirs.transformer_tags))


class Frame:
    """As much of pandas' and of polars' data frame as counts here; neither is installed."""

    def __init__(self, data, columns=None, schema=None, index=None):
        self.data, self.columns, self.index = np.asarray(data), columns or schema, index

    def __array__(self, dtype=None, copy=None):
        return self.data


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_pipeline_gets_a_data_frame_when_it_asks_for_one(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, types.SimpleNamespace(DataFrame=Frame))
    x = Frame(cloud(20, 3), columns=list("abc"), index=range(5, 25))
    expected = PCA(2).fit_transform(x.data)
    pca = clone(make_pipeline(PCA(2)).set_output(transform=kind)[0])
    for z in (pca.fit_transform(x), pca.transform(x)):
        np.testing.assert_allclose(z.data, expected, atol=1e-12)
        assert (z.columns, z.index) == (["pca0", "pca1"], range(5, 25) if kind == "pandas" else None)
    assert pca.transform(x.data).index is None
    assert isinstance(pca.set_output(transform="default").transform(x), np.ndarray)
    assert isinstance(pca.set_output().transform(x), np.ndarray)
    everywhere = {"sklearn": types.SimpleNamespace(get_config=lambda: {"transform_output": kind})}
    monkeypatch.setitem(sys.modules, "sklearn", everywhere["sklearn"])
    assert isinstance(PCA(2).fit_transform(x), Frame)
    with pytest.raises(ValueError, match=r'^transform must be "default" or "pandas" or "polars", got \'arrow\'$'):
        pca.set_output(transform="arrow")


def test_columns_in_another_order_are_refused():
    x = cloud(20, 3)
    pca, again = PCA(2).fit(Frame(x, columns=["a", "b", "c"])), PCA(2)
    again.fit_transform(Frame(x, columns=["a", "b", "c"]))
    assert list(pca.feature_names_in_) == list(again.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"^x must have the columns of the fit in their order, \['a', 'b', 'c'\], got"):
        pca.transform(Frame(x[:, ::-1], columns=["c", "b", "a"]))
    pca.transform(x)  # columns without names, or with numbers for names, are taken as they come
    pca.transform(Frame(x, columns=[1, 2, 3]))
    for unnamed in (x, Frame(x, columns=["a", 2, 3])):  # one that is no word, and none are names
        assert not hasattr(pca.fit(unnamed), "feature_names_in_")
