"""Principal components, against scikit-learn and against the covariance matrix."""

import itertools
import tracemalloc

import numpy as np
import pytest
from matrices import with_spectrum
from sklearn import decomposition
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from lowrank_tutor.factorization import factorize_ratings
from lowrank_tutor.lda import lda
from lowrank_tutor.nmf import nmf
from lowrank_tutor.pca import PCA

ATTRIBUTES = [
    "mean_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
]


def cloud(n, d, seed=0):
    """Draw points that spread differently along each axis, away from the origin."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.arange(1, d + 1) + 5


def test_line_by_hand():
    pca = PCA(2).fit([[0, 0], [1, 2], [2, 4]])
    np.testing.assert_array_equal(pca.mean_, [1, 2])
    np.testing.assert_allclose(pca.components_[0], np.array([1, 2]) / np.sqrt(5), rtol=1e-15)
    np.testing.assert_allclose(pca.explained_variance_, [5, 0], atol=1e-15)  # 10 / (3 - 1)
    np.testing.assert_allclose(pca.explained_variance_ratio_, [1, 0], atol=1e-15)
    np.testing.assert_allclose(pca.singular_values_, [np.sqrt(10), 0], atol=1e-15)
    np.testing.assert_allclose(pca.transform([[3, 6]]), [[2 * np.sqrt(5), 0]], atol=1e-14)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e75])
@pytest.mark.parametrize("n", [7, 40])
def test_coinciding_points(n, value):
    """The mean of equal numbers may miss them by a rounding; that must not count as variance."""
    x = np.full((n, 3), value)
    pca = PCA(2).fit(x)
    np.testing.assert_array_equal(pca.mean_, x[0])
    for name in ATTRIBUTES[2:]:
        np.testing.assert_array_equal(getattr(pca, name), [0, 0])
    np.testing.assert_array_equal(pca.transform(x), np.zeros((n, 2)))
    line = PCA(2).fit(np.column_stack([x[:, 0], np.arange(n)]))
    np.testing.assert_array_equal(line.explained_variance_ratio_, [1, 0])


def test_memory_of_few_points():
    x = cloud(3, 3000)  # a matrix of 3000 x 3000 would be 72 MB
    tracemalloc.start()
    try:
        PCA(2).fit(x)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
    assert PCA(1).fit_transform(np.arange(2_000_000.0).reshape(-1, 2)).shape == (1_000_000, 1)


@pytest.mark.parametrize(("share", "by_scatter"), [(1.1e-5, True), (0.9e-5, False)])
def test_when_scatter_matrix_serves(share, by_scatter, monkeypatch):
    half = with_spectrum([1, 1, np.sqrt(share)], 100, 3)
    svd, asked = np.linalg.svd, []
    monkeypatch.setattr(
        np.linalg, "svd", lambda *a, **options: asked.append(a) or svd(*a, **options)
    )
    PCA(3).fit(np.concatenate([half, -half]))  # of mean zero
    assert (asked == []) == by_scatter


# Half of the variance lies along the first axis, and a quarter along each of the others.
HALVES = np.repeat(np.vstack([np.eye(3), -np.eye(3)]), [10, 5, 5, 10, 5, 5], axis=0)


@pytest.mark.parametrize(
    ("points", "share", "k"),
    [
        (HALVES, 0.499, 1),
        (HALVES, 0.5, 2),
        *((np.eye(n), 0.5, n // 2 + 1) for n in (5, 7, 9, 11, 41)),
        *((np.eye(n, dtype=np.float32), 0.5, n // 2 + 1) for n in (5, 7, 9, 11, 41)),
        (np.repeat(np.eye(13), 30, axis=0), 0.75, 10),
        (list(itertools.product((-1, 1), repeat=4)), 0.5, 3),
        (np.ones((4, 3)), 0.9, 3),  # none exceeds it
    ],
)
def test_share_must_be_exceeded(points, share, k):
    assert PCA(share).fit(points).n_components_ == k


def test_fitting_again():
    x, y = cloud(20, 4), cloud(30, 6)
    pca = clone(PCA(np.int64(2))).fit(x)
    assert pca.fit(y) is pca
    for refused in ([[0.0], [np.inf]], np.ones((5, 1))):  # and the fit stays as it was
        with pytest.raises(ValueError, match=r"^(x|n_components) must be"):
            pca.fit(refused)
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(pca, name), getattr(PCA(2).fit(y), name))


# Those of scikit-learn's checks that PCA fails, as its docstring says: most of them ask for other
# words.
FAILED = {
    "check_complex_data", "check_dtype_object",
    "check_estimators_empty_data_messages", "check_estimators_nan_inf", "check_fit2d_1sample",
    "check_fit2d_predict1d", "check_n_features_in_after_fitting",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pca", [PCA(), PCA(1, whiten=True)], ids=repr)
def test_scikit_learn_checks(pca):
    results = check_estimator(pca, on_fail=None, on_skip=None)
    assert {each["check_name"] for each in results if each["status"] == "failed"} <= FAILED
    assert sum(each["status"] == "passed" for each in results) >= 30


@pytest.mark.parametrize(("dtype", "slack"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_whitening(dtype, slack):
    x = cloud(300, 4).astype(dtype)
    ours = PCA(3, whiten=True).fit(x)
    judge = decomposition.PCA(3, whiten=True, svd_solver="full").fit(x)
    z = ours.transform(x)
    assert z.dtype == dtype
    np.testing.assert_allclose(z, judge.transform(x), atol=slack)
    np.testing.assert_allclose(ours.inverse_transform(z), judge.inverse_transform(z), atol=slack)


class Table(np.ndarray):
    """Points with names of columns, as in pandas."""

    columns = ("height", "weight", "age")


def test_names_of_columns():
    x = cloud(20, 3)
    table, swapped = x.view(Table), x[:, ::-1].view(Table)
    swapped.columns = Table.columns[::-1]
    pca = PCA(2).fit(table)
    np.testing.assert_array_equal(pca.transform(table), pca.transform(x))
    with pytest.raises(
        ValueError,
        match=r"^x must have the columns \['height', 'weight', 'age'\] in this order, got \['a",
    ):
        pca.transform(swapped)
    make_pipeline(pca).fit(x).transform(swapped)


NAMED = np.abs(cloud(20, 3)).view(Table)
FITS = {
    "lda": lda(NAMED, [0, 1] * 10, 1).predict,
    "nmf": nmf(NAMED, 2, rng=0).transform,
    "ratings": factorize_ratings(NAMED, NAMED > 0, 2, rng=0).transform,
}


@pytest.mark.parametrize("fit", FITS)
def test_names_in_other_fits(fit):
    swapped = NAMED[:, ::-1].copy()
    swapped[0, 0] = swapped[0, 0] if fit != "ratings" else np.nan  # it refuses a table without gaps
    FITS[fit](np.array(swapped))
    FITS[fit](swapped)
    swapped.columns = Table.columns[::-1]
    with pytest.raises(
        ValueError,
        match=r"^(x|ratings) must have the columns \['height', 'weight', 'age'\] in this",
    ):
        FITS[fit](swapped)
    swapped.columns = range(3)  # the numbers that a table without names has
    FITS[fit](swapped)
