"""Shadows, pairs, classes and the map of dimensions needed: the pictures of chapters 3 and 4 hold their numbers."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from lowrank_tutor import plotting
from lowrank_tutor.plotting.style import ORANGE

ARROWS = np.random.default_rng(0).standard_normal((5, 2))
UNIT = np.array([0.6, 0.8])


def test_each_shadow_is_the_point_of_the_line_that_is_nearest_to_its_arrow():
    ax = plotting.shadows(ARROWS, UNIT, reach=3.0).axes[0]
    (feet,) = [line for line in ax.lines if line.get_color() == ORANGE and line.get_marker() == "o"]
    np.testing.assert_allclose(np.transpose(feet.get_data()), ARROWS @ np.outer(UNIT, UNIT))


def test_bars_are_cut_at_the_top_and_their_mean_is_not():
    ax = plotting.mean_of_bars([1.0, 2.0, 9.0], truth=1, title="three", top=5).axes[0]
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 5]
    assert [line.get_ydata()[0] for line in ax.lines] == [4, 1]
    assert [t.get_text() for t in ax.texts] == ["9.0"]


def test_a_pair_whose_square_has_changed_by_eps_lies_on_a_dashed_line():
    ax = plotting.pairs([1.0, 2.0], [1.0, 2 * np.sqrt(1.3)], eps=0.3).axes[0]
    upper = max((line for line in ax.lines if line.get_linestyle() == "--"), key=lambda line: line.get_ydata()[1])
    x, y = upper.get_data()
    assert np.interp(2.0, x, y) == pytest.approx(2 * np.sqrt(1.3))


def test_the_map_is_gray_where_as_many_dimensions_are_needed_as_there_are():
    ax = plotting.dimensions_needed([10, 100], [0.1, 0.5], [[900, 2000], [64, 65]], available=65).axes[0]
    gray = {patch.get_xy() for patch in ax.patches if isinstance(patch, Rectangle)}
    assert gray == {(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5)}  # 64 of 65 would do
    assert sorted(t.get_text() for t in ax.texts) == sorted(["900", "2,000", "64", "65"])


def test_the_line_of_a_threshold_is_where_the_axis_gives_it():
    ax = plotting.classes_and_axes([[0, 2], [1, 1]], [[3, 2], [4, 1]], {"w": ([1, 2], 5.5), "d": ([1, 0], 2.0)}).axes[0]
    for line, axis, threshold in zip(ax.lines[2:], ([1, 2], [1, 0]), (5.5, 2.0), strict=True):
        np.testing.assert_allclose(np.transpose(line.get_data()) @ axis, threshold)
    assert [t.get_text() for t in ax.texts if t.get_text()] == ["w", "d"]


def test_what_a_number_adds_is_white_where_it_adds_nothing():
    digits = np.random.default_rng(1).integers(0, 17, (6, 64))
    (ax,) = plotting.digits_and_blocks(digits, digits / 2, digits[:2] - 8.0, most=9).axes
    assert len(ax.images) == 6 + 6 + 2
    for image in ax.images[-2:]:
        low, high = image.get_clim()
        assert low == -high < 0


def test_the_chosen_line_stands_out_and_carries_the_point():
    ax = plotting.one_of_several(
        [1, 2], {"PCA": [3, 2], "NMF": [4, 3]}, chosen="NMF", at=2, title="", ylim=(0, 5)
    ).axes[0]
    pca, nmf, point = ax.lines
    assert nmf.get_linewidth() > pca.get_linewidth()
    assert [float(c[0]) for c in point.get_data()] == [2, 3]
    assert to_rgb(point.get_color()) == to_rgb(nmf.get_color())
