"""SVD and PCA: its explorers, tables and exercises, judged by NumPy alone."""

import numpy as np
import pytest
from chapters import CHAPTERS
from sklearn.neighbors import NearestNeighbors

from lowrank_tutor import storyteller
from lowrank_tutor.kit.questions import check

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("02-")]


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
    """It keeps the best number of sheets at every noise but the last, where a singular value lies
    close to it.
    """
    for noise in chapter["noises"]:
        noisy = chapter["signal"] + noise * np.random.default_rng(1).standard_normal((80, 60))
        u, s, vt = np.linalg.svd(noisy, full_matrices=False)
        gained = (
            2 * s * np.einsum("mi,mn,in->i", u, chapter["signal"], vt) - s**2
        )  # what each sheet takes off
        best = np.argmax(np.cumsum(gained)) + 1
        assert (best == np.sum(s > threshold(noise))) == (noise < 3), noise
    assert 0 < threshold(3) - s[best - 1] < 1


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


def test_turns_by_hand():
    assert [round(closing_gap(None, a=a)["turned"], 1) for a in (1, 0.1, 0.01, 0)] == [
        0.6,
        5.7,
        31.7,
        45,
    ]


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


def axes_of(x):
    return np.linalg.eigh(np.cov(x, rowvar=False))[1][:, ::-1]


def test_axes_of_two_halves(chapter):
    x = chapter["X"]
    cosines = abs(np.sum(axes_of(x[::2]) * axes_of(x[1::2]), axis=0))[:10]
    assert chapter["cosines"] == pytest.approx(cosines, abs=1e-6)
    assert cosines[[0, 3, 5, 8]].round(2).tolist() == [0.93, 0.97, 0.95, 0.65]
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    gaps = [min(abs(np.delete(variances, i) - variances[i])) for i in range(10)]
    assert chapter["nearest"] == pytest.approx(gaps)
    assert np.argmax(cosines) == np.argmax(gaps) == 3
    assert (gaps[0], variances[0]) == pytest.approx((15.3, 179), abs=0.1)
    assert (gaps[5], variances[5]) == pytest.approx((7.2, 59), abs=0.2)


def test_axes_for_variance_share(chapter):
    shares = explained(chapter["X"])
    needed = [
        1 + next(i for i, share in enumerate(shares) if share >= goal) for goal in chapter["goals"]
    ]
    assert needed == chapter["needed"]


@pytest.mark.parametrize("k", [4, 5, 64])
def test_nearest_digits(chapter, k):
    axes = np.linalg.eigh(np.cov(chapter["X"], rowvar=False))[1]
    places = chapter["X"] @ axes[:, ::-1][:, :k]
    nearest = NearestNeighbors(n_neighbors=1).fit(places).kneighbors(return_distance=False)[:, 0]
    right = np.mean(chapter["shown"][nearest] == chapter["shown"])
    assert chapter["read_right"](k) == pytest.approx(right, abs=2 / 1797)  # a tie or two
    assert (right >= 0.9) == (k >= chapter["enough"])


def test_uncentered_directions(chapter):
    """The first one points at the mean digit."""
    x = chapter["X"]
    values, vectors = np.linalg.eigh(x.T @ x)
    mean = x.mean(axis=0)
    assert abs(vectors[:, -1] @ mean) > 0.99 * np.linalg.norm(mean)
    assert chapter["first"] == pytest.approx(values[-1] / np.sum(x**2))


def test_four_sheets_of_each_head(chapter):
    gram = np.linalg.eigvalsh(chapter["heads"] @ chapter["heads"].swapaxes(1, 2))
    errors = np.sqrt(gram[:, :-4].sum(axis=1) / gram.sum(axis=1))
    assert chapter["four"] == pytest.approx(errors)
    assert (errors.argmin() + 1, errors.argmax() + 1) == (3, 6)
    assert errors[[2, 5]].round(2).tolist() == [0.21, 0.48]


def test_two_cuts_forget_other_things(chapter):
    sheets, window, spared = chapter["right"].values()
    assert [
        round(chapter["tables_off_by"](way), 2) for way in list(chapter["ways"].values())[:2]
    ] == [0.43, 0.95]
    assert sheets["copy"] < 0.3 < spared["copy"] - 0.6 < 0.4
    assert window["copy"] == 1
    assert window["far fact"] < 0.2 < 0.8 < sheets["far fact"]


@pytest.mark.parametrize(
    ("attend", "says", "error"),
    [
        (storyteller.sheets(2), "black", 0.50),
        (storyteller.sheets(3), "red", 0.40),
        (storyteller.window(16), "white", 0.35),
        (storyteller.window(20), "red", 0.24),
    ],
    ids=("2 sheets", "3 sheets", "window of 16", "window of 20"),
)
def test_where_red_is_lost(chapter, attend, says, error):
    story = chapter["story"]
    chances = storyteller.next_words(story, attend=attend)
    assert max(chances, key=chances.get) == says
    heads = storyteller.tables([storyteller.encode(story)], attend=attend)[0].reshape(8, 23, 23)
    assert np.linalg.norm(heads - chapter["heads"]) / np.linalg.norm(
        chapter["heads"]
    ) == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ex-svd-hand", np.sqrt(np.roots([1, -3, 1]))),  # of A^T A = (1 1; 1 2)
    ],
)
def test_exercises_by_other_means(name, answer):
    assert check(name, answer)
