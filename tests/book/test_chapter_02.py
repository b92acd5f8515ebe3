"""SVD and PCA: cut the spectrum: what its explorers must read, by NumPy alone, and the numbers in its text."""

import re

import numpy as np
import pytest
from chapters import CHAPTERS

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("02-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def digits_cut(chapter, *, k):
    """PCA by the eigenvalues of the covariance matrix: another way than the chapter's SVD."""
    x = chapter["X"]
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    explained = variances[:k].sum() / variances.sum()
    return {"variance_explained": explained, "relative_error": np.sqrt(max(0, 1 - explained))}


def spectrum_cut(chapter, *, decay, k):
    i = np.arange(1, 65)
    return {"relative_error": np.sqrt(np.sum(i[k:] ** (-2.0 * decay)) / np.sum(i ** (-2.0 * decay)))}


def noise_cut(chapter, *, noise, k):
    signal = chapter["S"]
    u, s, vt = np.linalg.svd(signal + noise * chapter["Z"], full_matrices=False)
    error = np.linalg.norm(u[:, :k] @ np.diag(s[:k]) @ vt[:k] - signal) / np.linalg.norm(signal)
    beta = 60 / 80
    factor = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    return {"error_against_signal": error, "above_threshold": np.sum(s > factor * np.sqrt(80) * noise)}


EXPLORERS = {"digits-cut": digits_cut, "spectrum-cut": spectrum_cut, "noise-cut": noise_cut}


def test_the_digits_need_as_many_components_as_the_text_says(chapter):
    x = chapter["X"]
    assert x.shape == (1797, 64)
    assert "1,797 digits" in TEXT
    explained = [digits_cut(chapter, k=k)["variance_explained"] for k in range(1, 65)]
    needed = [1 + next(i for i, share in enumerate(explained) if share >= goal) for goal in (0.5, 0.9, 0.95, 0.99)]
    assert needed == [5, 21, 29, 41]
    assert (x == 0).all(axis=0).sum() == 3  # "three pixels are blank"
    assert np.linalg.matrix_rank(x - x.mean(axis=0)) == 61  # "It takes 61 to have them exactly"


def test_without_centering_the_first_direction_takes_seven_tenths(chapter):
    x = chapter["X"]
    share = np.linalg.eigvalsh(x.T @ x)[-1] / np.sum(x**2)
    assert round(share, 2) == 0.70
    assert "takes 70% of the sum of squares" in TEXT
    first = np.linalg.eigh(x.T @ x)[1][:, -1]
    mean = x.mean(axis=0) / np.linalg.norm(x.mean(axis=0))
    assert abs(first @ mean) > 0.99  # "the first direction points at the mean"


def test_the_two_by_two_example_by_hand():
    # A^T A = (25 20; 20 25) has the eigenvalues 45 and 5.
    a = np.array([[3, 0], [4, 5]])
    assert (a.T @ a).tolist() == [[25, 20], [20, 25]]
    s = np.linalg.svd(a, compute_uv=False)
    assert s == pytest.approx([3 * np.sqrt(5), np.sqrt(5)], rel=1e-14)
    assert sorted(np.linalg.eigvals(a)) == [3, 5]
    assert s.prod() == pytest.approx(15)
    assert "approx 6.71" in TEXT
    assert "approx 2.24" in TEXT


@pytest.mark.parametrize("decay", [0, 2])
def test_an_eighth_of_the_rank_loses_what_the_text_says(chapter, decay):
    lost = 100 * spectrum_cut(chapter, decay=decay, k=8)["relative_error"]
    assert f"{lost:.1f}" == re.search(rf"t \$\\alpha = {decay}\$ (?:the error|it) is (\d+\.\d)%", TEXT)[1]


def test_the_answers_of_the_exercises_by_other_means():
    squares = np.array([25, 16, 9, 4, 1])
    assert squares.sum() == 55
    assert f"{np.sqrt(5 / 55):.3f}" == "0.302"
    assert (f"{50 / 55:.1%}", f"{41 / 55:.1%}") == ("90.9%", "74.5%")
    golden = (1 + np.sqrt(5)) / 2
    assert np.roots([1, -3, 1]) == pytest.approx([golden**2, golden**-2])  # of A^T A = (1 1; 1 2)
    assert 100 * np.sqrt(1797 * 64) == pytest.approx(33_900, rel=1e-3)
    assert f"{np.sqrt(0.1):.1%}" == "31.6%"
    assert 4 / np.sqrt(3) * np.sqrt(1000) == pytest.approx(73.0, abs=0.05)
    assert 2 * np.sqrt(1000) == pytest.approx(63.2, abs=0.05)


def test_noise_cut_fits_its_axis(chapter):
    np.testing.assert_allclose(np.linalg.svd(chapter["S"], compute_uv=False)[:6], [60, 45, 32, 22, 14, 0], atol=1e-12)
    for noise in chapter["noises"]:
        assert max(noise_cut(chapter, noise=noise, k=k)["error_against_signal"] for k in range(1, 13)) < 1.8


def test_the_second_layer_of_the_example_has_the_size_of_the_dropped_singular_value(chapter):
    np.testing.assert_allclose(chapter["A1"], [[1.5, 1.5], [4.5, 4.5]])
    assert np.sqrt(1.5**2 + 1.5**2 + 0.5**2 + 0.5**2) == pytest.approx(np.sqrt(5))


def test_sixteen_layers_of_the_portrait_leave_a_tenth(chapter):
    s = np.linalg.svd(chapter["portrait"], compute_uv=False)
    errors = [np.sqrt(np.sum(s[k:] ** 2) / np.sum(s**2)) for k in (1, 16)]
    assert "fall from {:.0%} to {:.0%}".format(*errors) in TEXT


def test_the_threshold_of_a_square_matrix_is_four_over_root_three():
    beta = 1
    assert np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1))) == pytest.approx(
        4 / np.sqrt(3)
    )
    assert r"= 4/\sqrt3$" in TEXT
