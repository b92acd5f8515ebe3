"""LDA, NMF and autoencoders: meet the family: its explorers by NumPy and scikit-learn, and the numbers in its text."""

import re
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("03-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def norm(x):
    return np.sqrt(np.sum(np.square(x)))


def told_right(old, labels, new, truth):
    """The share of points whose nearest class mean, by the covariance within the classes, is that of their own class.

    All numbers that are kept serve, so that the axes of LDA drop out.
    """
    classes, shares = np.unique(labels, return_counts=True)
    means = np.stack([old[labels == c].mean(axis=0) for c in classes])
    within = sum((old[labels == c] - m).T @ (old[labels == c] - m) for c, m in zip(classes, means, strict=True))
    steps = new[:, None] - means[None]  # (points, classes, k)
    squares = np.einsum("pck,kl,pcl->pc", steps, np.linalg.inv(within / len(old)), steps)
    return np.mean(classes[np.argmin(squares / 2 - np.log(shares / len(old)), axis=1)] == truth)


def family_reconstruction(chapter, *, method, k):
    """PCA by NumPy, LDA by scikit-learn; of the others the error is taken again from what they made."""
    x, new, labels = chapter["X"], chapter["X_new"], chapter["y"]
    mean = x.mean(axis=0)
    old_numbers, new_numbers, made, _ = chapter["kept"][method, k]
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


EXPLORERS = {"family-reconstruction": family_reconstruction, "completion-error": completion_error}


def test_the_new_digits_were_seen_by_no_fit(chapter):
    assert len(chapter["X"]) == 1200
    assert len(chapter["X_new"]) == 597
    both = np.concatenate([chapter["X"], chapter["X_new"]])
    assert np.array_equal(np.sort(both.sum(axis=1)), np.sort(chapter["digits"].data.sum(axis=1)))


def test_the_order_of_the_methods_on_new_digits_is_the_one_that_the_text_gives(chapter):
    """By theorem PCA is ahead of LDA and NMF on its own digits only; on new ones they could win, and do not."""
    for k in chapter["KS"]:
        errors = {method: chapter["off"][method][k - 1] for method in chapter["FAMILY"]}
        assert errors["autoencoder"] < errors["PCA"] < min(errors["LDA"], errors["NMF"])
    told = {method: chapter["told"][method, 9] for method in chapter["FAMILY"]}
    assert max(told, key=told.get) == "LDA"


def test_the_table_of_the_methods_holds_what_the_first_figure_reads_at_nine_numbers(chapter):
    rows = re.findall(r"^\| (\S+) \|.*\| (\d+)% \| (\d+)% \|", TEXT, re.M)
    assert [name for name, *_ in rows] == list(chapter["FAMILY"])
    for name, error, told in rows:
        assert f"{chapter['off'][name][8]:.0%}" == f"{error}%"
        assert f"{chapter['told'][name, 9]:.0%}" == f"{told}%"


def test_the_discriminant_by_hand(chapter):
    a, b = np.array([[0, 2], [1, 1], [3, 1], [4, 0]]), np.array([[3, 2], [4, 1], [6, 1], [7, 0]])
    within = sum((c - c.mean(axis=0)).T @ (c - c.mean(axis=0)) for c in (a, b))
    gap = b.mean(axis=0) - a.mean(axis=0)
    axis = np.linalg.solve(within, gap)
    np.testing.assert_allclose(axis / axis[0], [1, 2])
    middle = (a.mean(axis=0) + b.mean(axis=0)) / 2
    for direction, right in ((axis, 8), (gap, 6)):
        assert ((a - middle) @ direction < 0).sum() + ((b - middle) @ direction > 0).sum() == right
    assert "all eight points lie on their side" in TEXT
    assert "only six points are on their side" in TEXT
    for line, direction in zip(chapter["classes_and_axes"]().axes[0].lines[2:], ([1, 2], [1, 0]), strict=True):
        np.testing.assert_allclose(np.transpose(line.get_data()) @ direction, middle @ direction)


def test_one_multiplicative_round_by_hand():
    x, w, h = np.array([[0, 2], [0, 3], [3, 1]]), np.ones((3, 2)), np.array([[1.0, 2], [0, 2]])
    errors = [norm(x - w @ h) ** 2]
    h = h * (w.T @ x) / (w.T @ w @ h)
    errors.append(norm(x - w @ h) ** 2)
    w = w * (x @ h.T) / (w @ h @ h.T)
    errors.append(norm(x - w @ h) ** 2)
    np.testing.assert_allclose(errors, [20, 8, float(Fraction(95, 18))])
    assert "falls from 20 to 8" in TEXT
    assert "brings the error to 95/18" in TEXT


def test_the_wrong_order_of_the_fraction_raises_the_error():
    """The theorem's step upside down: the ratio of {eq}`eq-multiplicative` inverted."""
    rng = np.random.default_rng(0)
    x, w, h = rng.random((6, 5)), rng.random((6, 2)), rng.random((2, 5))
    ratio = (w.T @ x) / (w.T @ w @ h)
    assert norm(x - w @ (h * ratio)) < norm(x - w @ h) < norm(x - w @ (h / ratio))


def test_half_a_step_by_hand():
    q = np.array([[1, 0], [0, 1], [1, 1]])
    np.testing.assert_allclose(np.linalg.lstsq(q, [2, 3, 2], rcond=None)[0], [1, 2], atol=1e-14)
    np.testing.assert_allclose(np.linalg.solve(q[[0, 2]], [3, 5]), [3, 2], atol=1e-14)


def test_parts_are_single_strokes_and_axes_are_not(chapter):
    parts = chapter["parts"].h
    assert (parts >= 0).all()
    assert (parts < 1e-9).mean() > 0.4
    assert (chapter["PCA"](8).fit(chapter["X"]).components_ < -0.05).mean() > 0.2


def test_who_rated_nothing_gets_no_estimates(chapter):
    fit = chapter["factorize_ratings"](chapter["ratings"], chapter["known"], 5, regularization=1)
    assert np.isnan(fit.estimates[7]).all()
    assert not np.isnan(np.delete(fit.estimates, 7, axis=0)).any()


def test_estimates_from_liked_ratings_alone_come_out_too_high(chapter):
    ratings = chapter["ratings"]
    fit = chapter["factorize_ratings"](ratings, ratings > 3, 5, regularization=1)
    assert np.nanmean((fit.estimates - ratings)[ratings <= 3]) > 0.7
    assert "If people rate only what they like, the estimates come out too high." in TEXT


def test_the_linear_autoencoder_finds_the_plane_and_not_the_axes(chapter):
    plane = np.linalg.svd(chapter["X"] - chapter["X"].mean(axis=0), full_matrices=False)[2][:5]
    found = np.linalg.qr(chapter["linear"].decoder.weight.detach().numpy())[0]
    smallest = np.linalg.svd(plane @ found, compute_uv=False).min()
    assert np.rad2deg(np.arccos(min(smallest, 1))) < 1
    assert max(chapter["angles"]) < 1
    assert max(chapter["cosines"]) < 0.99
    assert chapter["cosines"][0] != pytest.approx(chapter["cosines"][1], abs=1e-3)


def test_the_parabola_is_followed_by_the_curve_and_not_by_the_line(chapter):
    curved = chapter["curved"]
    distance = {name: np.sqrt(((curved[:, None] - chapter[name][None]) ** 2).sum(axis=2)).min(axis=1).mean()
                for name in ("on_line", "on_curve")}  # fmt: skip
    assert distance["on_curve"] < 0.07 < 5 * distance["on_curve"] < distance["on_line"]


def test_a_network_pays_with_data(chapter):
    straight, bending = chapter["straight"], chapter["bending"]
    assert straight[0] < bending[0]
    assert bending[-1] < straight[-1] - 0.1
    assert bending == sorted(bending, reverse=True)
