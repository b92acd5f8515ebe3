"""The figures show what they are given, the right numbers in the right panel, and leave no trace behind."""

import copy
import itertools
from importlib.resources import as_file, files

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from lowrank_tutor import plotting
from lowrank_tutor.plotting import style

PHOTO = np.random.default_rng(0).random((12, 9))
U, S, VT = np.linalg.svd(PHOTO, full_matrices=False)
A = np.array([[3.0, 0], [4, 5]])
POINTS = np.random.default_rng(1).standard_normal((20, 2))
DIGITS = np.random.default_rng(2).integers(0, 17, (4, 64))
GAPS = np.where(DIGITS > 8, DIGITS, np.nan)
ROWS = [
    {"spectrum": spectrum, "method": method, "time": time, "excess": excess}
    for spectrum in ("flat", "steep")
    for method, time, excess in (("ours", 0.1, 1e-20), ("theirs", 0.2, 1e-3))
]


def at_rank(k):
    return (U[:, :k] * S[:k]) @ VT[:k]


# One call of every public function; a function without one fails below.
CALLS = {
    "attention_cut": lambda: plotting.attention_cut(
        np.eye(4), np.full((4, 4), 0.25), (1, 2, 4), {"windows": [0.6, 0.3, 0.0], "least": [0.2, 0.1, 0.0]}, at=2
    ),
    "spectra_and_errors": lambda: plotting.spectra_and_errors(
        {"logits": [2.0, 1.0, 0.0], "softmax": [3.0, 1.0, 0.1]}, (1, 2), {"cut": [0.4, 0.1]}
    ),
    "photo_cut": lambda: plotting.photo_cut(PHOTO, at_rank(3), S, 3),
    "spectrum": lambda: plotting.spectrum(S, 3),
    "equation": lambda: plotting.equation([[1, 2], [3, 4.5]], "=", [[1], [2]], "@", [[1, 2]]),
    "ellipse": lambda: plotting.ellipse(A, *np.linalg.svd(A)),
    "digits_cut": lambda: plotting.digits_cut(DIGITS, DIGITS / 2, np.full(64, 1 / 64), 10),
    "images": lambda: plotting.images({"PCA": DIGITS - 3.0, "NMF": DIGITS}),
    "images_and_curves": lambda: plotting.images_and_curves(
        {"digits": DIGITS, "gaps": GAPS},
        (1, 2, 4),
        {"PCA": [0.9, 0.5, 0.1], "LDA": [0.9, np.nan, 0.8]},
        at=4,
        ylim=(0, 1),
    ),
    "spectrum_cut": lambda: plotting.spectrum_cut(S, 3),
    "denoise_cut": lambda: plotting.denoise_cut(S, np.linspace(1, 0.2, 10), 3, 0.5),
    "cloud": lambda: plotting.cloud(POINTS, {"PCA": ([0, 0], [1, 2]), "raw": ([1, 1], [0, 1])}),
    "histogram": lambda: plotting.histogram([0.1, 0.2, 0.2, 5.0], law=([0, 0.5, 1], [1, 1, 1]), marks=(0.3,)),
    "curves": lambda: plotting.curves([1, 2, 3], {"exact": [3, 2, 1], "bound": [3, 3, 2]}, at=2),
    "trade_off": lambda: plotting.trade_off(ROWS, "time", "excess", floor=1e-15, labels=("seconds", "excess")),
}
each_call = pytest.mark.parametrize("name", CALLS)


def rendered(figure):
    """Draw, so that whatever matplotlib complains about is heard, and return the pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def texts(figure):
    return [t.get_text() for t in figure.findobj(mpl.text.Text) if t.get_text()]


def test_every_public_function_is_tried():
    assert {*CALLS, "styled"} == set(plotting.__all__)


@each_call
def test_it_returns_a_figure_that_draws_without_a_complaint(name):
    figure = CALLS[name]()
    assert isinstance(figure, Figure)
    assert rendered(figure).std() > 5  # not an empty sheet


@each_call
def test_it_leaves_no_figure_open_and_nobodys_settings_changed(name):
    before = copy.deepcopy(dict(mpl.rcParams))
    CALLS[name]()
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


@each_call
def test_it_keeps_to_the_width_of_the_page_and_to_white_paper(name):
    figure = CALLS[name]()
    assert figure.get_size_inches()[0] <= 7.01
    assert tuple(rendered(figure)[0, 0]) == (255, 255, 255, 255)


@each_call
def test_two_calls_make_the_same_picture(name):
    np.testing.assert_array_equal(rendered(CALLS[name]()), rendered(CALLS[name]()))


def test_styled_keeps_a_functions_name_and_words():
    assert plotting.photo_cut.__name__ == "photo_cut"
    assert plotting.photo_cut.__doc__.startswith("Show a rank-``k`` photograph")


def test_an_error_while_drawing_gives_the_settings_back():
    before = copy.deepcopy(dict(mpl.rcParams))
    with pytest.raises(ValueError, match="reshape"):
        plotting.digits_cut(np.ones((2, 63)), np.ones((2, 63)), [1.0], 1)
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "positions"),
    [
        (lambda k: plotting.photo_cut(PHOTO, at_rank(k), S, k), range(10)),
        (lambda k: plotting.spectrum(S, k), range(10)),
        (lambda k: plotting.digits_cut(DIGITS, DIGITS, np.full(64, 1 / 64), k), [0, 1, 64]),
        (lambda k: plotting.spectrum_cut(S, k), range(10)),
        (
            lambda k: plotting.attention_cut(np.eye(4), np.eye(4) / (k + 1), (1, 2, 4), {"e": [3, 2, 1]}, at=k),
            [1, 2, 4],
        ),
        (lambda k: plotting.denoise_cut(S, np.linspace(1, 0.2, 10), k, 0.5), range(10)),
    ],
)
def test_frames_of_a_slider_have_one_size_at_both_ends_and_between(draw, positions):
    pictures = [rendered(draw(k)) for k in positions]
    assert len({p.shape for p in pictures}) == 1
    assert all((a != b).any() for a, b in itertools.pairwise(pictures))


def test_a_photograph_stands_beside_what_is_left_out():
    approx = at_rank(2)
    left, middle, right = plotting.photo_cut(PHOTO, approx, S, 2).axes
    np.testing.assert_array_equal(left.images[0].get_array(), approx)
    np.testing.assert_array_equal(middle.images[0].get_array(), PHOTO - approx)
    assert left.get_title(loc="left") == "rank 2"
    assert left.images[0].get_clim() == (0, 1)
    assert middle.images[0].get_clim() == (-0.5, 0.5)
    kept = right.lines[0]
    np.testing.assert_array_equal(kept.get_ydata(), S[:2])
    assert right.lines[-1].get_xdata()[0] == 2.5  # the cut stands between the second value and the third


def test_a_photograph_of_low_rank_can_be_shown_too():
    flat = np.outer(np.linspace(0, 1, 6), np.linspace(0, 1, 5))
    u, s, vt = np.linalg.svd(flat, full_matrices=False)
    for k in range(6):
        rendered(plotting.photo_cut(flat, (u[:, :k] * s[:k]) @ vt[:k], s, k))
        rendered(plotting.photo_cut(flat, flat, [1, 0, 0, 0, 0], k))


def test_a_spectrum_splits_into_kept_and_not():
    ax = plotting.spectrum(S, 4).axes[0]
    kept, dropped, cut = ax.lines
    np.testing.assert_array_equal(kept.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_allclose(kept.get_ydata(), S[:4])
    np.testing.assert_array_equal(dropped.get_xdata(), np.arange(5, 10))
    assert cut.get_xdata()[0] == 4.5


def test_a_level_counts_what_lies_above_it():
    ax = plotting.spectrum([4.0, 2.0, 1.0, 0.0], level=1.0).axes[0]
    counted, not_counted, line = ax.lines
    assert list(counted.get_xdata()) == [1, 2]  # a value on the level does not count
    assert list(not_counted.get_xdata()) == [3, 4]
    assert list(line.get_ydata()) == [1.0, 1.0]


@pytest.mark.parametrize("s", [[1.0, 0.0], [0.0, 0.0], [1e-310, 0.0], [1e300]])
def test_zeros_and_extremes_have_a_place_on_the_logarithmic_axis(s):
    figure = plotting.spectrum(s, 1)
    rendered(figure)
    assert all((line.get_ydata() > 0).all() for line in figure.axes[0].lines[:2])


def test_an_equation_shows_every_entry_and_every_sign():
    shown = texts(CALLS["equation"]())
    assert sorted(shown) == sorted(["1", "2", "3", "4.5", "=", "1", "2", "@", "1", "2"])


def test_the_circle_becomes_the_ellipse_of_the_matrix():
    u, s, vt = np.linalg.svd(A)
    before, after = plotting.ellipse(A, u, s, vt).axes
    circle, ellipse = (np.array(ax.lines[0].get_data()) for ax in (before, after))
    np.testing.assert_allclose(np.linalg.norm(circle, axis=0), 1)
    np.testing.assert_allclose(ellipse, A @ circle)
    np.testing.assert_allclose(np.linalg.norm(ellipse, axis=0).max(), s[0], rtol=1e-3)
    tips = [t.xy for t in after.texts if t.get_text()]
    np.testing.assert_allclose(tips, (u * s).T)


def test_digits_stand_above_their_approximations():
    approx = DIGITS / 2
    explained = np.linspace(2, 0, 64) / 64
    figure = plotting.digits_cut(DIGITS, approx, explained, 10)
    *images, curve = figure.axes
    shown = [ax.images[0].get_array().ravel() for ax in images]
    np.testing.assert_array_equal(shown, np.vstack([DIGITS, approx]))
    _, upto, point = curve.lines
    np.testing.assert_allclose(point.get_data(), [[10], [explained[:10].sum()]])
    assert len(upto.get_xdata()) == 11
    assert "from 10 numbers each" in texts(figure)


def test_the_error_curve_of_a_spectrum_is_numpys():
    left, right = plotting.spectrum_cut(S, 4).axes
    curve, point = right.lines
    expected = [np.linalg.norm(PHOTO - at_rank(k)) / np.linalg.norm(PHOTO) for k in range(10)]
    np.testing.assert_allclose(curve.get_ydata(), expected, atol=1e-12)
    np.testing.assert_allclose(point.get_data(), [[4], [expected[4]]])
    assert [bar.get_height() for bar in left.patches] == pytest.approx(S)
    assert len({bar.get_facecolor() for bar in left.patches[:4]}) == 1
    assert left.patches[3].get_facecolor() != left.patches[4].get_facecolor()


def test_denoising_shows_the_threshold_and_the_best_cut():
    errors = np.array([1.0, 0.7, 0.4, 0.5, 0.6])
    left, right = plotting.denoise_cut(S, errors, 1, 0.5).axes
    assert list(left.lines[2].get_ydata()) == [0.5, 0.5]
    np.testing.assert_allclose(right.lines[1].get_data(), [[1], [0.7]])
    assert right.lines[2].get_xdata()[0] == 2
    assert "best k = 2" in texts(right.figure)


def test_a_cloud_has_its_points_its_arrows_and_the_origin():
    ax = CALLS["cloud"]().axes[0]
    np.testing.assert_array_equal(np.array(ax.lines[0].get_data()).T, POINTS)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["PCA", "raw"]
    arrows = [t for t in ax.texts if getattr(t, "arrow_patch", None)]
    assert [(tuple(a.xyann), tuple(a.xy)) for a in arrows] == [((0, 0), (1, 2)), ((1, 1), (1, 2))]


def test_a_cloud_with_labels_or_paths_shows_them_and_no_origin():
    which = np.arange(20) % 3
    ax = plotting.cloud(POINTS, labels=which).axes[0]
    for line, value in zip(ax.lines, range(3), strict=True):
        np.testing.assert_array_equal(np.array(line.get_data()).T, POINTS[which == value])
    assert len({line.get_marker() for line in ax.lines}) == 3
    assert not ax.texts
    ax = plotting.cloud(POINTS, paths={"line": POINTS[:5]}).axes[0]
    np.testing.assert_array_equal(np.array(ax.lines[1].get_data()).T, POINTS[:5])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["line"]
    assert not ax.texts


def test_images_stand_in_named_rows_each_on_its_own_scale():
    axes = CALLS["images"]().axes
    assert len(axes) == 8
    assert [ax.get_ylabel() for ax in axes] == ["PCA", "", "", "", "NMF", "", "", ""]
    for ax, image in zip(axes, [*(DIGITS - 3.0), *DIGITS], strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), image.reshape(8, 8))
        assert ax.images[0].get_clim() == (image.min(), image.max())
    assert plotting.images({"one": DIGITS}, scale=(0, 20)).axes[0].images[0].get_clim() == (0, 20)


def test_images_beside_curves_share_one_scale_and_mark_the_k():
    *images, panel = CALLS["images_and_curves"]().axes
    assert len(images) == 8
    assert {ax.images[0].get_clim() for ax in images} == {(0, 16)}
    shown = images[4].images[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.isnan(GAPS[0]).reshape(8, 8))
    assert [line.get_label() for line in panel.lines[::2]] == ["PCA", "LDA"]
    assert [(float(x[0]), float(y[0])) for x, y in (line.get_data() for line in panel.lines[1::2])] == [
        (4, 0.1), (4, 0.8)
    ]  # fmt: skip
    assert panel.get_ylim() == (0, 1)


def test_a_trade_off_has_a_panel_a_case_and_lifts_what_is_below_the_floor():
    figure = CALLS["trade_off"]()
    flat, steep, *spare = figure.axes
    assert (flat.get_title(loc="left"), steep.get_title(loc="left")) == ("flat", "steep")
    assert [float(line.get_ydata()[0]) for line in flat.lines] == [1e-15, 1e-3]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["ours", "theirs"]
    assert not any(ax.axison for ax in spare)


def test_a_histogram_counts_what_lies_beyond_the_law_at_its_ends():
    ax = plotting.histogram([-9.0, 0.5, 0.5, 9.0], law=([0, 1], [1, 1]), marks=(0.3,)).axes[0]
    heights = np.array([bar.get_height() for bar in ax.patches])
    shares = heights / heights.sum()
    assert shares[[0, -1]] == pytest.approx([0.25, 0.25])
    assert shares.max() == pytest.approx(0.5)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]


def test_curves_mark_where_the_slider_stands_on_each_line():
    ax = plotting.curves([1, 2, 3], {"exact": [3, 2, 1], "bound": [3, 3, 2]}, at=2, scale=("log", "linear")).axes[0]
    points = [line.get_xydata().tolist() for line in ax.lines if len(line.get_xdata()) == 1]
    assert points == [[[2, 2]], [[2, 3]]]
    assert list(ax.lines[0].get_xdata()) == [2, 2]  # the line from top to bottom
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["exact", "bound"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def contrast_with_white(color):
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 1.05 / (0.05 + np.dot(channels, [0.2126, 0.7152, 0.0722]))


def test_colors_stand_out_from_white_and_lines_differ_in_more_than_color():
    with as_file(files("lowrank_tutor.plotting") / "lowrank.mplstyle") as file, plt.style.context(file):
        cycle = list(plt.rcParams["axes.prop_cycle"])
        words = [plt.rcParams[name] for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")]
    colors = [look["color"] for look in cycle] + [color for color, _ in style.LINES] + [style.HIDDEN]
    assert min(map(contrast_with_white, colors)) >= 3  # WCAG 2.1, 1.4.11
    assert min(map(contrast_with_white, [*words, style.TEAL, style.ORANGE])) >= 4.5  # WCAG 2.1, 1.4.3
    assert len({str(look["linestyle"]) for look in cycle}) == len(cycle)
    assert len({str(dashes) for _, dashes in style.LINES}) == len(style.LINES)
    assert contrast_with_white("#767676") == pytest.approx(4.54, abs=0.01)  # WCAG's own example
