"""Meet the family: what its explorers must read, by NumPy and scikit-learn, and the numbers in its text."""

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from chapters import CHAPTERS, run
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("03-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


def norm(x):
    return np.sqrt(np.sum(np.square(x)))


def family_reconstruction(chapter, *, k):
    """PCA by NumPy, LDA by scikit-learn; of the others the error is taken again from what they made."""
    x, new = chapter["X"], chapter["X_new"]
    mean, size = x.mean(axis=0), norm(new - x.mean(axis=0))
    v = np.linalg.svd(x - mean, full_matrices=False)[2][:k].T
    lda = LinearDiscriminantAnalysis(n_components=min(k, 9)).fit(x, chapter["y"])
    back = LinearRegression().fit(lda.transform(x), x)
    made = chapter["made"][k]
    return {
        "PCA": norm((new - mean) @ v @ v.T - (new - mean)) / size,
        "LDA": norm(back.predict(lda.transform(new)) - new) / size,
        "NMF": norm(made["NMF"] - new) / size,
        "autoencoder": norm(made["autoencoder"] - new) / size,
        "half_hidden": norm(made["half hidden"] - new) / size,
    }


def completion_error(chapter, *, k, penalty):
    digits, shown = chapter["X"][:500], chapter["half"][:500]
    miss = chapter["filled"][k, penalty] - digits
    return {"known": norm(miss[shown]) / norm(digits[shown]), "hidden": norm(miss[~shown]) / norm(digits[~shown])}


EXPLORERS = {"family-reconstruction": family_reconstruction, "completion-error": completion_error}


@pytest.fixture(scope="module")
def page():
    return run(CHAPTER)


@pytest.fixture(scope="module")
def chapter(page):
    return page.namespace


def test_the_new_digits_were_seen_by_no_fit(chapter):
    assert len(chapter["X"]) == 1200
    assert len(chapter["X_new"]) == 597
    both = np.concatenate([chapter["X"], chapter["X_new"]])
    assert np.array_equal(np.sort(both.sum(axis=1)), np.sort(chapter["digits"].data.sum(axis=1)))


def test_the_autoencoder_is_ahead_to_16_and_behind_at_32(chapter):
    ahead = {k: errors["autoencoder"] < errors["PCA"] for k, errors in chapter["off"].items()}
    assert all(ahead[k] for k in ahead if k <= 16)
    assert not ahead[32]
    assert "ahead of PCA up to $k = 16$, and behind at 32" in TEXT


def test_pca_is_the_best_of_the_linear_maps_on_its_own_digits_only_by_theorem(chapter):
    """On new ones NMF and LDA could win, and do not."""
    for errors in chapter["off"].values():
        assert errors["PCA"] < min(errors["NMF"], errors["LDA"])


def test_the_discriminant_by_hand():
    a, b = np.array([[0, 2], [1, 1], [3, 1], [4, 0]]), np.array([[3, 2], [4, 1], [6, 1], [7, 0]])
    within = sum((c - c.mean(axis=0)).T @ (c - c.mean(axis=0)) for c in (a, b))
    gap = b.mean(axis=0) - a.mean(axis=0)
    axis = np.linalg.solve(within, gap)
    np.testing.assert_allclose(axis / axis[0], [1, 2])
    middle = (a.mean(axis=0) + b.mean(axis=0)) / 2
    for direction, right in ((axis, 8), (gap, 6)):
        assert ((a - middle) @ direction < 0).sum() + ((b - middle) @ direction > 0).sum() == right
    assert "puts all eight points on their side; the difference of the means puts six" in TEXT


def test_one_multiplicative_round_by_hand():
    x, w, h = np.array([[0, 2], [0, 3], [3, 1]]), np.ones((3, 2)), np.array([[1.0, 2], [0, 2]])
    errors = [norm(x - w @ h) ** 2]
    h = h * (w.T @ x) / (w.T @ w @ h)
    errors.append(norm(x - w @ h) ** 2)
    w = w * (x @ h.T) / (w @ h @ h.T)
    errors.append(norm(x - w @ h) ** 2)
    np.testing.assert_allclose(errors, [20, 8, float(Fraction(95, 18))])
    assert "from 20 to 8, then to 95/18" in TEXT


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


def test_nine_axes_for_the_classes_know_them_better(page):
    lines = re.findall(r"k = (\d): LDA (\d+)%, of PCA's numbers (\d+)% right", page.printed)
    assert [int(k) for k, *_ in lines] == [1, 2, 5, 9]
    assert all(int(ours) > int(pca) for _, ours, pca in lines)
    assert int(lines[-1][1]) >= 95 > 93 >= int(lines[-1][2])


def test_parts_are_single_strokes_and_axes_are_not(chapter):
    parts = chapter["parts"].h
    assert (parts >= 0).all()
    assert (parts < 1e-9).mean() > 0.4
    assert (chapter["PCA"](8).fit(chapter["X"]).components_ < -0.05).mean() > 0.2


def test_texts_have_parts_without_minus_and_axes_with_it(page):
    assert page.printed.count("part:") == 6
    assert page.printed.count("minus:") == page.printed.count("plus: ") == 3


def test_the_hidden_error_is_a_u(chapter):
    hidden = {k: chapter["missed"][k, 1]["hidden"] for k in range(1, 21)}
    assert min(hidden, key=hidden.get) == 5
    assert min(hidden[k] for k in range(12, 21)) > 0.6 > max(hidden[k] for k in range(3, 12))
    assert f"{hidden[5]:.0%}" == "50%"
    flat = [chapter["missed"][k, 30]["hidden"] for k in range(10, 21)]
    assert max(flat) - min(flat) < 0.005
    assert f"{min(flat):.0%}" == "44%"
    assert chapter["missed"][5, 100]["hidden"] > 0.53
    known = [chapter["missed"][k, 1]["known"] for k in range(1, 21)]
    assert all(after < before for before, after in itertools.pairwise(known))


def test_the_best_rank_is_the_tastes_and_the_mean(page):
    lines = [line.split() for line in page.printed.splitlines() if "off on hidden ratings" in line]
    errors = {int(words[2].rstrip(":")): float(words[3]) for words in lines}
    assert min(errors, key=errors.get) == 5
    assert 0.5 < errors[5] < 0.65
    assert "person 7: [nan nan nan]" in page.printed


def test_the_linear_autoencoder_finds_the_plane_and_not_the_axes(page, chapter):
    plane = np.linalg.svd(chapter["X"] - chapter["X"].mean(axis=0), full_matrices=False)[2][:5]
    found = np.linalg.qr(chapter["linear"].decoder.weight.detach().numpy())[0]
    smallest = np.linalg.svd(plane @ found, compute_uv=False).min()
    assert np.rad2deg(np.arccos(min(smallest, 1))) < 1
    lines = re.findall(r"planes: ([\d.]+) degrees apart, at most; .* cosine ([\d.]+), at most", page.printed)
    assert len(lines) == 2
    assert all(float(angle) < 1 and float(cosine) < 0.99 for angle, cosine in lines)
    assert lines[0][1] != lines[1][1]


def test_the_parabola_is_followed_by_the_curve_and_not_by_the_line(chapter):
    curved = chapter["curved"]
    distance = {name: np.sqrt(((curved[:, None] - chapter[name][None]) ** 2).sum(axis=2)).min(axis=1).mean()
                for name in ("on_line", "on_curve")}  # fmt: skip
    assert distance["on_curve"] < 0.07 < 5 * distance["on_curve"] < distance["on_line"]


def test_a_network_pays_with_data(page):
    lines = [line for line in page.printed.splitlines() if " digits: PCA " in line]
    found = {int(w[0]): (float(w[3].rstrip(",")), float(w[5])) for w in (line.split() for line in lines)}
    assert found[100][0] < found[100][1]
    assert found[1200][1] < found[1200][0] - 0.1
