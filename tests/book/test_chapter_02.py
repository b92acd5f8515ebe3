"""SVD and PCA: its explorers, tables and exercises, judged by NumPy alone."""

import numpy as np
import pytest

from lowrank_tutor.figures.storyteller import TALES, measured


def digits_cut(chapter, *, k):
    """PCA by the eigenvalues of the covariance matrix: another way than the chapter's SVD."""
    return {"relative_error": np.sqrt(max(0, 1 - explained(chapter["X"])[k - 1]))}


def explained(x):
    """The variance explained by 1, 2, ... axes."""
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    return np.cumsum(variances) / variances.sum()


def noise_cut(chapter, *, noise, k):
    signal = chapter["signal"]
    drawn = np.random.default_rng(1).standard_normal((80, 60))
    u, s, vt = np.linalg.svd(signal + noise * drawn, full_matrices=False)
    error = np.linalg.norm(u[:, :k] @ np.diag(s[:k]) @ vt[:k] - signal) / np.linalg.norm(signal)
    return {"error_against_signal": error, "above_threshold": np.sum(s > threshold(noise))}


def threshold(noise):
    """The formula of Gavish and Donoho for a table of 80 by 60."""
    beta = 60 / 80
    factor = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    return factor * np.sqrt(80) * noise


def test_threshold_of_the_figure(chapter):
    """It keeps the best number of sheets at every noise but the last."""
    for noise in chapter["noises"]:
        cuts = [noise_cut(chapter, noise=noise, k=k) for k in range(1, 61)]
        best = 1 + np.argmin([each["error_against_signal"] for each in cuts])
        assert (best == cuts[0]["above_threshold"]) == (noise < 3), noise


def closing_gap(chapter, *, a):
    """The angle by the formula of the text, and the sine allowed: 0.01 over the distance to the
    other eigenvalue.
    """
    apart = a / 2 + np.sqrt(a**2 / 4 + 0.01**2)
    return {
        "turned": np.degrees(np.arctan2(0.02, a)) / 2,
        "at_most": np.degrees(np.arcsin(0.01 / apart)),
    }


EXPLORERS = {"digits-cut": digits_cut, "closing-gap": closing_gap, "noise-cut": noise_cut}


def test_bound_on_directions():
    """Davis-Kahan, for every direction of random symmetric matrices."""
    rng = np.random.default_rng(0)
    for size in 10 ** rng.uniform(-3, 0, 60):
        a, change = (x + x.T for x in rng.standard_normal((2, 6, 6)))
        (s, v), (sh, vh) = np.linalg.eigh(a), np.linalg.eigh(a + size * change)
        for i in range(6):
            gap = np.abs(np.delete(sh, i) - s[i]).min()
            sine = np.sqrt(max(0, 1 - (v[:, i] @ vh[:, i]) ** 2))
            assert sine <= size * np.linalg.norm(change, 2) / gap + 1e-7


def test_axes_of_two_halves(chapter):
    assert chapter["cosines"][[0, 3, 5, 8]].round(2).tolist() == [0.93, 0.97, 0.95, 0.65]
    assert [round(chapter["nearest"][i], 1) for i in (0, 5)] == [15.3, 7.2]
    assert np.argmax(chapter["cosines"]) == np.argmax(chapter["nearest"]) == 3


def test_numbers_to_read_digits(chapter):
    assert chapter["enough"] == 5


def test_four_sheets_of_each_head(chapter):
    errors = chapter["four"]
    assert (np.argmin(errors) + 1, np.argmax(errors) + 1) == (3, 6)
    assert [round(errors[head - 1], 2) for head in (3, 6)] == [0.21, 0.48]


def test_two_cuts_forget_other_things(chapter):
    sheets, window, spared = chapter["right"].values()
    assert [
        round(chapter["tables_off_by"](way), 2) for way in list(chapter["ways"].values())[:2]
    ] == [0.43, 0.95]
    assert sheets["copy"] < 0.3 < spared["copy"] - 0.6 < 0.4
    assert window["copy"] == 1
    assert window["far fact"] < 0.2 < 0.8 < sheets["far fact"]


CUTS = [("sheets", 2, "black", 0.5), ("sheets", 3, "red", 0.4)]
CUTS += [("window", 16, "white", 0.35), ("window", 20, "red", 0.24)]


@pytest.mark.parametrize(("cut", "k", "says", "error"), CUTS)
def test_where_red_is_lost(cut, k, says, error):
    seen = measured(TALES["far fact"], cut, k)
    assert (seen["says"], round(seen["table_error"], 2)) == (says, error)
