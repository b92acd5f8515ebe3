"""Layers, sums, arrows and shadows: the pictures of chapters 1 and 2 hold the numbers that they are made from."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from lowrank_tutor import plotting
from lowrank_tutor.plotting.style import ORANGE, TEAL

PHOTO = np.random.default_rng(0).random((12, 9))
U, S, VT = np.linalg.svd(PHOTO, full_matrices=False)


def test_each_sum_is_below_its_layer_with_the_error_that_numpy_finds():
    figure = plotting.layers_and_sums(U, S, VT, [1, 3])
    for above, below, k in zip(figure.axes[:2], figure.axes[2:], (1, 3), strict=True):
        approx = (U[:, :k] * S[:k]) @ VT[:k]
        np.testing.assert_allclose(above.images[0].get_array(), S[k - 1] * np.outer(U[:, k - 1], VT[k - 1]))
        np.testing.assert_allclose(below.images[0].get_array(), approx)
        assert below.texts[0].get_text() == f"error {np.linalg.norm(PHOTO - approx) / np.linalg.norm(PHOTO):.0%}"


def test_what_lies_above_a_level_is_counted_in_the_title():
    ax = plotting.above_level([4.0, 2.0, 1.0, 0.5], 1.0, title="four", lowest=0.1).axes[0]
    assert ax.get_title(loc="left") == "four: 2 count"  # a value on the level does not
    assert [list(line.get_xdata()) for line in ax.lines[:2]] == [[1, 2], [3, 4]]
    low, high = ax.get_ylim()
    assert low < 0.5 < 4.0 < high


def test_the_numbers_kept_are_filled_and_the_last_stands_out():
    numbers = np.array([3.0, -2.0, 1.0, 0.5])
    bars, image = plotting.numbers_and_direction(numbers, np.arange(64.0) - 32, 2).axes
    assert {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in bars.patches} == pytest.approx(
        {1: 3.0, 2: -2.0, 3: 1.0, 4: 0.5}
    )
    assert [bar.get_facecolor()[:3] for bar in bars.patches] == [to_rgb(c) for c in (TEAL, ORANGE, "white", "white")]
    np.testing.assert_array_equal(image.images[0].get_array().ravel(), np.arange(64.0) - 32)


def test_a_gray_picture_keeps_the_scale_that_it_is_given():
    (image,) = plotting.gray_picture(PHOTO, (-1, 2), "cut").axes[0].images
    np.testing.assert_array_equal(image.get_array(), PHOTO)
    assert image.get_clim() == (-1, 2)


def test_a_cut_of_noise_shows_what_it_has_wrong_the_threshold_and_the_best_cut():
    errors = [1.0, 0.7, 0.4, 0.5]
    before, after, spectrum, curve = plotting.noise_cut(PHOTO, PHOTO + 1, 2 * PHOTO, S, errors, 1, 0.5)
    images = [ax.images[0] for ax in (*before.axes, *after.axes)]
    for image, expected in zip(images, (PHOTO, PHOTO + 1, 2 * PHOTO, PHOTO), strict=True):
        np.testing.assert_allclose(image.get_array(), expected)
    assert len({image.get_clim() for image in images}) == 1
    kept, dropped, level = spectrum.axes[0].lines
    assert (len(kept.get_xdata()), len(dropped.get_xdata())) == ((S > 0.5).sum(), (S <= 0.5).sum())
    assert set(level.get_ydata()) == {0.5}
    ax = curve.axes[0]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["least at 2"]
    np.testing.assert_allclose(ax.lines[-1].get_data(), [[1], [0.7]])


def test_the_net_holds_every_arrow_of_its_plane():
    first, second = np.array([1.0, 0, 1]), np.array([0, 1.0, 1])
    ax = plotting.arrows_in_space({"a": first, "b": second, "c": 2 * first + second}).axes[0]
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c"]
    (net,) = (c for c in ax.collections if len(c.get_facecolor()) and not hasattr(c, "_segments3d"))
    corners = np.concatenate(net._vec[:3].T.reshape(-1, 1, 3)) if hasattr(net, "_vec") else net._faces.reshape(-1, 3)
    np.testing.assert_allclose(corners @ np.cross(first, second), 0, atol=1e-12)  # all in the plane
    assert corners.max() > 2  # and as far out as the longest arrow


def test_the_shadow_is_the_nearest_point_of_the_line():
    w, x = np.array([0.8, 0.6]), np.array([2.0, 4.0])
    ax = plotting.shadow(w, x).axes[0]
    line, upright, corner = (np.array(drawn.get_data()).T for drawn in ax.lines)
    tip, foot = upright
    np.testing.assert_array_equal(tip, x)
    np.testing.assert_allclose(foot, [3.2, 2.4])
    assert (tip - foot) @ w == pytest.approx(0)
    np.testing.assert_allclose(line @ [-w[1], w[0]], 0, atol=1e-12)
    assert np.linalg.norm(corner[1] - corner[0]) == pytest.approx(0.22)
