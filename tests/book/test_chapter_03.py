"""Chapter 3: its explorers by NumPy and scikit-learn, and the order of its methods."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

from lowrank_tutor import storyteller
from lowrank_tutor.nmf import nmf


def norm(x):
    return np.sqrt(np.sum(np.square(x)))


def told_right(old, labels, new, truth):
    """Return the share of points nearest to the mean of their own class, measured by the covariance
    within classes.
    """
    classes, shares = np.unique(labels, return_counts=True)
    means = np.stack([old[labels == c].mean(axis=0) for c in classes])
    within = sum(
        (old[labels == c] - m).T @ (old[labels == c] - m)
        for c, m in zip(classes, means, strict=True)
    )
    steps = new[:, None] - means[None]  # (points, classes, k)
    squares = np.einsum("pck,kl,pcl->pc", steps, np.linalg.inv(within / len(old)), steps)
    return np.mean(classes[np.argmin(squares / 2 - np.log(shares / len(old)), axis=1)] == truth)


def family_reconstruction(chapter, *, method, k):
    """Judge PCA by NumPy, LDA by scikit-learn, and the others by the digits that they made."""
    x, new, labels = chapter["X"], chapter["X_new"], chapter["y"]
    mean = x.mean(axis=0)
    old_numbers, new_numbers, made = chapter["kept"][method, k]
    if method == "PCA":
        v = np.linalg.svd(x - mean, full_matrices=False)[2][:k].T
        old_numbers, new_numbers, made = (
            (x - mean) @ v,
            (new - mean) @ v,
            mean + (new - mean) @ v @ v.T,
        )
    if method == "LDA":
        lda = LinearDiscriminantAnalysis(n_components=k).fit(x, labels)
        old_numbers, new_numbers = lda.transform(x), lda.transform(new)
        made = LinearRegression().fit(old_numbers, x).predict(new_numbers)
    return {
        "error": norm(made - new) / norm(new - mean),
        "told": told_right(old_numbers, labels, new_numbers, chapter["y_new"]),
    }


def completion_error(chapter, *, k, penalty):
    digits, shown = chapter["X"][:500], chapter["half"][:500]
    miss = chapter["filled"][k, penalty] - digits
    return {
        "known": norm(miss[shown]) / norm(digits[shown]),
        "hidden": norm(miss[~shown]) / norm(digits[~shown]),
    }


def who_asks_whom(chapter, *, way, sheet):
    """Take the SVD by eigenvectors; a part is judged by the errors, of the page's parts and of the
    package's best.
    """
    head, story = (
        storyteller.tables([storyteller.encode(chapter["story"])])[0, 1, 3],
        chapter["story"],
    )
    c, f = chapter["SHEETS"][way]
    if way == "SVD":
        f = np.linalg.eigh(head.T @ head)[1][:, ::-1].T[:5]
        f *= np.where(f.max(axis=1) > -f.min(axis=1), 1, -1)[:, None]
        c = head @ f.T
    else:
        assert min(c.min(), f.min()) >= 0
        best = nmf(head, 5, rng=0)
        assert norm(c @ f - head) == pytest.approx(norm(best.c @ best.f - head), rel=1e-3)
    return {
        "asks": story[np.abs(c[:, sheet - 1]).argmax()],
        "answers": story[f[sheet - 1].argmax()],
        "error": norm(c @ f - head) / norm(head),
    }


EXPLORERS = {
    "family-reconstruction": family_reconstruction,
    "who-asks-whom": who_asks_whom,
    "completion-error": completion_error,
}


def test_order_of_methods(chapter):
    """By theorem PCA is ahead of LDA and NMF on the digits it was fitted to; on new ones they could
    win.
    """
    for k in chapter["KS"]:
        errors = {method: chapter["off"][method][k - 1] for method in chapter["FAMILY"]}
        assert errors["autoencoder"] < errors["PCA"] < min(errors["LDA"], errors["NMF"])
    told = {method: chapter["told"][method, 9] for method in chapter["FAMILY"]}
    assert max(told, key=told.get) == "LDA"


def test_subjects_of_sheets(chapter):
    subjects = [who_asks_whom(chapter, way="only add", sheet=sheet) for sheet in range(1, 6)]
    assert [(each["asks"], each["answers"]) for each in subjects[2:]] == [
        ("was", "slept"), ("wears", "wears"), ("wears", "red"),
    ]  # fmt: skip
    assert [each["answers"] for each in subjects[:2]] == ["<s>", "."]
    c, f = chapter["SHEETS"]["only add"]
    overlaps = (c.T @ c) * (f @ f.T)
    sizes = np.sqrt(overlaps.diagonal())
    assert (
        np.sort((overlaps / sizes / sizes[:, None]).ravel())[-6] < 0.1
    )  # five sheets with themselves, and the rest
    c, f = chapter["SHEETS"]["SVD"]
    has, slept = (chapter["story"].index(word) for word in ("has", "slept"))
    assert c[has, 2] * f[2, slept] < -0.1


def test_another_start(chapter):
    """From seed 0 no part answers mostly red."""
    c, f = chapter["multiply"](seed=0)
    assert norm(c @ f - chapter["head"]) / norm(chapter["head"]) == pytest.approx(0.33, abs=0.005)
    assert chapter["story"].index("red") not in f.argmax(axis=1)


def test_liked_ratings_bias_estimates(chapter):
    ratings = chapter["ratings"]
    fit = chapter["factorize_ratings"](ratings, ratings > 3, 5, regularization=1)
    assert np.nanmean((fit.estimates - ratings)[ratings <= 3]) > 0.7


def test_network_needs_data(chapter):
    straight, bending = chapter["straight"], chapter["bending"]
    assert straight[0] < bending[0]
    assert bending[-1] < straight[-1] - 0.1
