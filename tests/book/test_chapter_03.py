"""Chapter 3: its explorers by NumPy and scikit-learn, and the order of its methods."""

import numpy as np
import pytest
from chapters import CHAPTERS
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("03-")]


def norm(x):
    return np.sqrt(np.sum(np.square(x)))


def told_right(old, labels, new, truth):
    """Return the share of points nearest to the mean of their own class, measured by the covariance within classes."""
    classes, shares = np.unique(labels, return_counts=True)
    means = np.stack([old[labels == c].mean(axis=0) for c in classes])
    within = sum((old[labels == c] - m).T @ (old[labels == c] - m) for c, m in zip(classes, means, strict=True))
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
        old_numbers, new_numbers, made = (x - mean) @ v, (new - mean) @ v, mean + (new - mean) @ v @ v.T
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
    return {"known": norm(miss[shown]) / norm(digits[shown]), "hidden": norm(miss[~shown]) / norm(digits[~shown])}


def turn_the_axis(chapter, *, angle):
    """Take the ratio of quadratic forms, and compare each point with the two means."""
    axis, classes = np.array([np.cos(angle * np.pi / 180), np.sin(angle * np.pi / 180)]), (chapter["a"], chapter["b"])
    means = [points.mean(axis=0) for points in classes]
    t = sum((points - m).T @ (points - m) for points, m in zip(classes, means, strict=True))
    gap, scatter = (axis @ (means[1] - means[0])) ** 2, axis @ t @ axis
    away = [np.abs((points[:, None] - means) @ axis) for points in classes]  # (4, 2): from each mean
    right = sum(int((d[:, own] < d[:, 1 - own] - 1e-9).sum()) for own, d in enumerate(away))
    return {"gap": gap, "scatter": scatter, "ratio": gap / scatter, "right": right if gap > 1e-9 else 2}


def step_downhill(chapter, *, step, size):
    """Descend with slopes by central differences."""
    at = np.array([2.0, 0.0])
    for _ in range(step):
        nudges = 1e-6 * np.eye(2)
        at = at - size * np.array([(height(at + e) - height(at - e)) / 2e-6 for e in nudges])
    return {"f": at[0], "c": at[1], "height": height(at)}


def height(at):
    return (1 - at[0] * at[1]) ** 2


def parts_form(chapter, *, steps):
    c, f = chapter["factors"][steps]
    assert min(c.min(), f.min()) >= 0
    if steps:
        assert norm(chapter["X"] - c @ f) <= norm(chapter["X"] - np.matmul(*chapter["factors"][steps - 1]))
    return {"error": norm(chapter["X"] - c @ f) / norm(chapter["X"])}


def one_bent_number(chapter, *, number):
    """Apply the decoder's two layers by hand."""
    first, _, second = chapter["bent"].decoder
    (w1, b1), (w2, b2) = ([p.detach().numpy() for p in (layer.weight, layer.bias)] for layer in (first, second))
    x = chapter["curved"].mean(axis=0) + w2 @ np.tanh(w1 @ [number] + b1) + b2
    return {"first": x[0], "second": x[1]}


EXPLORERS = {
    "family-reconstruction": family_reconstruction,
    "turn-the-axis": turn_the_axis,
    "step-downhill": step_downhill,
    "parts-form": parts_form,
    "completion-error": completion_error,
    "one-bent-number": one_bent_number,
}


def test_new_digits_are_new(chapter):
    assert len(chapter["X"]) == 1200
    assert len(chapter["X_new"]) == 597
    both = np.concatenate([chapter["X"], chapter["X_new"]])
    assert np.array_equal(np.sort(both.sum(axis=1)), np.sort(load_digits().data.sum(axis=1)))


def test_order_of_methods(chapter):
    """By theorem PCA is ahead of LDA and NMF on the digits it was fitted to; on new ones they could win."""
    for k in chapter["KS"]:
        errors = {method: chapter["off"][method][k - 1] for method in chapter["FAMILY"]}
        assert errors["autoencoder"] < errors["PCA"] < min(errors["LDA"], errors["NMF"])
    told = {method: chapter["told"][method, 9] for method in chapter["FAMILY"]}
    assert max(told, key=told.get) == "LDA"


def test_three_classes(chapter):
    points, labels = chapter["three"].reshape(12, 2), np.repeat(range(3), 4)
    found = chapter["lda"](points, labels, 2)
    assert found.ratio == pytest.approx([4 / 7, 3 / 7])  # its share, of ratios 4 and 3
    assert found.axes.diagonal() == pytest.approx([0, 0])


def test_liked_ratings_bias_estimates(chapter):
    ratings = chapter["ratings"]
    fit = chapter["factorize_ratings"](ratings, ratings > 3, 5, regularization=1)
    assert np.nanmean((fit.estimates - ratings)[ratings <= 3]) > 0.7


def test_network_needs_data(chapter):
    straight, bending = chapter["straight"], chapter["bending"]
    assert straight[0] < bending[0]
    assert bending[-1] < straight[-1] - 0.1
