"""The figures show what they are given, the right numbers in the right panel, and leave no trace behind."""

import copy
import functools
import itertools
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from lowrank_tutor import plotting
from lowrank_tutor.plotting import style
from lowrank_tutor.sphinxext import PAGE_VARIABLE

PHOTO = np.random.default_rng(0).random((12, 9))
U, S, VT = np.linalg.svd(PHOTO, full_matrices=False)
A = np.array([[3.0, 0], [4, 5]])
POINTS = np.random.default_rng(1).standard_normal((20, 2))
DIGITS = np.random.default_rng(2).integers(0, 17, (4, 64))
GAPS = np.where(DIGITS > 8, DIGITS, np.nan)
SIX = ("the", "cat", "slept", "it", "was", "lexicographically")
WEIGHTS = np.full((6, 6), 0.1) + 0.4 * np.eye(6)


def at_rank(k):
    return (U[:, :k] * S[:k]) @ VT[:k]


# One call of every public function; a function without one fails below.
CALLS = {
    "attention_cut": lambda: plotting.attention_cut(
        np.eye(4), np.full((4, 4), 0.25), (1, 2, 4), {"windows": [0.6, 0.3, 0.0], "least": [0.2, 0.1, 0.0]}, at=2
    ),
    "boxes": lambda: plotting.boxes({"a line": [("A", ("m", 2), ("n", 3)), "=", ("B", ("m", 2), ("n", 3))]}),
    "grids": lambda: plotting.grids(("P", np.eye(2), ("cat", "slept"), ("cat", "slept")), hidden=[1], notes=["a", "b"]),
    "sharing": lambda: plotting.sharing({"each its own": (False, False, False), "layerwise": (True, True, True)}),
    "weights_spectra_and_errors": lambda: plotting.weights_spectra_and_errors(
        np.eye(4), {"scores": [2.0, 1.0, 0.0], "weights": [3.0, 1.0, 0.1]}, (1, 2), {"P cut": [0.4, 0.1]}
    ),
    "weights_and_curves": lambda: plotting.weights_and_curves(
        [0.2, 0.8], [0.1, 1.9], (1, 10), {"Performer": [0.4, 0.1]}, at=10, highest=1.6, ylim=(0.01, 1)
    ),
    "bars": lambda: plotting.bars(
        {"exact": 2.0, "no attention at all": 3.2}, {"exact": 0.1, "no attention at all": 0.0}
    ),
    "by_name": lambda: plotting.by_name(
        ("1", "2", "full"),
        {"truth": [0.9, 0.2, 1.2], "misfit": [0.8, 0.4, 0.0]},
        spreads={"truth": [0.1] * 3},
        ylim=(0, 2),
    ),
    "word_maps": lambda: plotting.word_maps({"logits": 8 * WEIGHTS, "weights": WEIGHTS}, SIX, decimals=2),
    "word_points": lambda: plotting.word_points({"one": [[1, 0], [0.99, 0], [0, 1]], "two": -np.eye(3, 2)}, SIX[:3]),
    "rankings": lambda: plotting.rankings([3.0, 1.0, 2.0], {"cut": [1.0, 2.0, 3.0], "best": [3.0, 1.0, 2.0]}, first=2),
    "clouds": lambda: plotting.clouds({"s": (POINTS, {"cut": [1, 0], "best": [1, 2]}), "h": (POINTS, {})}, reach=4),
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
    "noise_cut": lambda: plotting.noise_cut(PHOTO, PHOTO + 1, at_rank(3), S, np.linspace(1, 0.2, 10), 3, 0.5),
    "layers_and_sums": lambda: plotting.layers_and_sums(U, S, VT, [1, 2, 3]),
    "above_level": lambda: plotting.above_level(S, 0.5, title="the photograph", lowest=0.01),
    "numbers_and_direction": lambda: plotting.numbers_and_direction(POINTS[:, 0], DIGITS[0], 3),
    "gray_picture": lambda: plotting.gray_picture(PHOTO, (0, 1), "64 kept"),
    "arrows_in_space": lambda: plotting.arrows_in_space({"$b_1$": [1, 0, 1], "b": [0, 1, 1], "$b_1 + b$": [1, 1, 2]}),
    "shadow": lambda: plotting.shadow([0.8, 0.6], [2, 4]),
    "cloud": lambda: plotting.cloud(POINTS, {"PCA": ([0, 0], [1, 2]), "raw": ([1, 1], [0, 1])}),
    "dots": lambda: plotting.dots({"first": 1.0, "yours": 30.0}, marked="yours", marks={"80 GB": 74.5}, xlabel="GiB"),
    "histogram": lambda: plotting.histogram([0.1, 0.2, 0.2, 5.0], law=([0, 0.5, 1], [1, 1, 1]), marks=(0.3,)),
    "curves": lambda: plotting.curves([1, 2, 3], {"exact": [3, 2, 1], "bound": [3, 3, 2]}, at=2),
    "rooflines": lambda: plotting.rooflines(
        [512, 1024, 65536],
        {"exact": [(0.004, "memory"), (0.02, "compute"), (80, "compute")], "k = 1024": [(0.004, "memory")] * 3},
        at=1024,
        measured={"exact": [(1024, 0.1), (65536, 500)], "k = 1024": [(1024, 0.2), (65536, float("nan"))]},
        reported=("paper, V100", {1024: 1.5, 65536: 14}),
        title="V100: least time, ms",
    ),
    "shadows": lambda: plotting.shadows(POINTS[:5], [0.6, 0.8], reach=3),
    "mean_of_bars": lambda: plotting.mean_of_bars([1, 2, 9], truth=1, title="squares", top=5),
    "pairs": lambda: plotting.pairs([1.0, 2.0, 3.0], [1.1, 1.8, 3.0], eps=0.3),
    "dimensions_needed": lambda: plotting.dimensions_needed(
        [10, 100], [0.1, 0.5], [[900, 2000], [64, 65]], available=65
    ),
    "classes_and_axes": lambda: plotting.classes_and_axes(
        POINTS[:9], POINTS[9:] + 2, {"w": ([1, 1], 2), "d": ([1, 0], 1)}
    ),
    "digits_and_blocks": lambda: plotting.digits_and_blocks(DIGITS, DIGITS / 2, DIGITS[:2] - 8.0, most=9),
    "one_of_several": lambda: plotting.one_of_several(
        [1, 2], {"PCA": [3, 2], "NMF": [4, 3]}, chosen="NMF", at=2, title="error", ylim=(0, 5)
    ),
}
each_call = pytest.mark.parametrize("name", CALLS)


def rendered(figure):
    """Draw, so that whatever matplotlib complains about is heard, and return the pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def texts(figure):
    return [t.get_text() for t in figure.findobj(mpl.text.Text) if t.get_text()]


def figures(drawn):
    """The figures of what a function has drawn: one, or several panels."""
    return drawn if isinstance(drawn, plotting.Panels) else (drawn,)


@functools.cache
def drawn(name):
    """The figures of a call, for tests that only look."""
    return figures(CALLS[name]())


@functools.cache
def pixels_of(name):
    """And how they look."""
    return [rendered(figure) for figure in drawn(name)]


def only_axes(panels):
    """The axes of panels that have one each."""
    return [figure.axes[0] for figure in panels]


HELPERS = {"Panels", "legend_above", "panel", "photograph", "styled"}


def test_every_public_function_is_tried():
    assert {*CALLS, *HELPERS} == set(plotting.__all__)


@each_call
def test_it_returns_figures_that_draw_without_a_complaint(name):
    assert all(isinstance(figure, Figure) for figure in drawn(name))
    assert min(pixels.std() for pixels in pixels_of(name)) > 5  # not an empty sheet


@each_call
def test_it_leaves_no_figure_open_and_nobodys_settings_changed(name):
    before = copy.deepcopy(dict(mpl.rcParams))
    CALLS[name]()
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


PHONE = 328  # pixels that a phone of 360 gives a figure
PIXELS_AN_INCH = 72  # at least: explore.css and book.css give that much to each panel that fits into a line


@each_call
def test_its_type_can_be_read_on_a_phone(name):
    for figure in drawn(name):
        width = figure.get_size_inches()[0]
        shown = min(PHONE, PIXELS_AN_INCH * width)
        smallest = min(t.get_fontsize() for t in figure.findobj(mpl.text.Text) if t.get_text())
        assert smallest / 72 * shown / width >= 9


@each_call
def test_its_panels_stand_side_by_side_on_a_wide_page_and_no_word_is_cut(name):
    assert sum(figure.get_size_inches()[0] for figure in drawn(name)) <= 6.31
    for pixels in pixels_of(name):
        assert tuple(pixels[0, 0]) == (255, 255, 255, 255)
        for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
            assert (edge == 255).all()


@each_call
def test_two_calls_make_the_same_picture(name):
    for one, other in zip(pixels_of(name), figures(CALLS[name]()), strict=True):
        np.testing.assert_array_equal(one, rendered(other))


def test_photographs_say_so_and_line_art_does_not():
    marked = {name: [figure.get_gid() == "photograph" for figure in drawn(name)] for name in CALLS}
    assert marked.pop("photo_cut") == marked.pop("attention_cut") == [True, True, False]
    assert marked.pop("layers_and_sums") == marked.pop("gray_picture") == [True]
    assert marked.pop("weights_spectra_and_errors") == [True, False, False]
    assert not any(itertools.chain(*marked.values()))


def test_styled_keeps_a_functions_name_and_words():
    assert plotting.photo_cut.__name__ == "photo_cut"
    assert plotting.photo_cut.__doc__.startswith("Show a rank-``k`` photograph")


@pytest.mark.parametrize(
    ("said", "resolutions"), [("1", [style.PHOTOGRAPH_DPI] * 2 + [style.PAGE_DPI]), ("0", [120] * 3)]
)
def test_a_page_gets_two_pixels_for_each_that_it_shows_and_a_person_the_usual(monkeypatch, said, resolutions):
    """By one more dot an inch a page knows a photograph."""
    monkeypatch.setenv(PAGE_VARIABLE, said)
    assert [figure.dpi for figure in CALLS["photo_cut"]()] == resolutions


def test_an_error_while_drawing_gives_the_settings_back():
    before = copy.deepcopy(dict(mpl.rcParams))
    with pytest.raises(ValueError, match="lines must be at most 5, got 8"):
        plotting.curves([1, 2], {str(i): [1, 2] for i in range(8)})
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == []


TWO, SQUARE = [1.0, 2.0], np.eye(2)
IMAGES = np.ones((2, 64))
REFUSED = {
    "above_level": lambda bad: plotting.above_level(bad, 1, title="", lowest=0.1),
    "arrows_in_space": lambda bad: plotting.arrows_in_space({"a": [1, 0, 0], "b": bad}),
    "attention_cut": lambda bad: plotting.attention_cut(SQUARE, [bad, TWO], TWO, {"a": TWO}, at=1),
    "bars": lambda bad: plotting.bars({"a": bad[1]}),
    "bars, spreads": lambda bad: plotting.bars({"a": 1}, {"a": bad[1]}),
    "by_name": lambda bad: plotting.by_name(["p", "q"], {"a": bad}, ylim=(0, 3)),
    "classes_and_axes": lambda bad: plotting.classes_and_axes([TWO], [bad], {}),
    "cloud": lambda bad: plotting.cloud([bad]),
    "cloud, arrows": lambda bad: plotting.cloud([TWO], {"a": (TWO, bad)}),
    "clouds": lambda bad: plotting.clouds({"a": ([bad], {})}, reach=1),
    "curves": lambda bad: plotting.curves(TWO, {"a": bad}),
    "curves, x": lambda bad: plotting.curves(bad, {"a": TWO}),
    "digits_and_blocks": lambda bad: plotting.digits_and_blocks(IMAGES, IMAGES, [bad * 32], most=2),
    "digits_cut": lambda bad: plotting.digits_cut(IMAGES, IMAGES, bad, 1),
    "dimensions_needed": lambda bad: plotting.dimensions_needed(TWO, TWO, [TWO, bad], available=3),
    "dots": lambda bad: plotting.dots({"a": bad[1]}),
    "ellipse": lambda bad: plotting.ellipse(SQUARE, SQUARE, bad, SQUARE),
    "equation": lambda bad: plotting.equation([bad], "=", [TWO]),
    "gray_picture": lambda bad: plotting.gray_picture([bad], (0, 1), "a"),
    "grids": lambda bad: plotting.grids(("a", [bad], ["p"], ["x", "y"])),
    "histogram": lambda bad: plotting.histogram(bad, law=(TWO, TWO)),
    "images_and_curves": lambda bad: plotting.images_and_curves({"a": IMAGES}, bad, {"a": TWO}, at=1, ylim=(0, 1)),
    "layers_and_sums": lambda bad: plotting.layers_and_sums(SQUARE, bad, SQUARE, [1]),
    "mean_of_bars": lambda bad: plotting.mean_of_bars(bad, truth=1, title="a", top=2),
    "noise_cut": lambda bad: plotting.noise_cut([TWO], [bad], [TWO], [1], [1, 0], 1, 0.5),
    "numbers_and_direction": lambda bad: plotting.numbers_and_direction(bad, IMAGES[0], 1),
    "one_of_several": lambda bad: plotting.one_of_several(TWO, {"a": bad}, chosen="a", at=1, title="", ylim=(0, 1)),
    "pairs": lambda bad: plotting.pairs(TWO, bad, eps=0.1),
    "photo_cut": lambda bad: plotting.photo_cut([bad], [TWO], [1], 1),
    "rankings": lambda bad: plotting.rankings(TWO, {"a": bad}),
    "rooflines": lambda bad: plotting.rooflines(bad, {}),
    "shadow": lambda bad: plotting.shadow([1, 0], bad),
    "shadows": lambda bad: plotting.shadows([bad], [1, 0], reach=1),
    "spectrum": plotting.spectrum,
    "spectrum_cut": lambda bad: plotting.spectrum_cut(bad, 1),
    "weights_and_curves": lambda bad: plotting.weights_and_curves(
        TWO, bad, TWO, {"a": TWO}, at=1, highest=1, ylim=(1, 2)
    ),
    "weights_spectra_and_errors": lambda bad: plotting.weights_spectra_and_errors(SQUARE, {"a": bad}, TWO, {"a": TWO}),
    "word_maps": lambda bad: plotting.word_maps({"a": [TWO, bad]}, ["p", "q"]),
    "word_points": lambda bad: plotting.word_points({"a": [bad]}, ["p"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_cannot_be_drawn_are_refused(name):
    gap = [np.nan, np.nan] if name in ("curves", "one_of_several") else [1, np.nan]  # a line may have one
    for bad in (gap, [1, np.inf], [1, 1j], ["a", "b"], [1, None]):
        with pytest.raises((TypeError, ValueError), match=r"^[\w\[\]' ]+ must (be|have|hold) .*got "):
            REFUSED[name](bad)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.curves(TWO, {}), "lines must be a dict with at least one name, got {}"),
        (
            lambda: plotting.by_name(["p"], {str(i): [1] for i in range(6)}, ylim=(0, 1)),
            "lines must be at most 5, got 6",
        ),
        (lambda: plotting.cloud(np.ones((4, 2)), labels=range(4)), "classes must be at most 3, got 4"),
        (lambda: plotting.curves(TWO, {"a": TWO}, at=np.nan), "at must be finite, got nan"),
        (
            lambda: plotting.curves(TWO, {"a": TWO}, ylim=(1, 0)),
            "ylim must be two rising numbers, or None for an end, got (1, 0)",
        ),
        (lambda: plotting.spectrum_cut(TWO, -1), "k must be a count, at least 0, got -1"),
        (lambda: plotting.cloud(np.ones((4, 2)), labels=[1]), "labels must have shape (4,), got (1,)"),
        (lambda: plotting.shadow([1, 1], TWO), "w must have length 1, got length 1.41421"),
        (lambda: plotting.dots({"a": 0.0}), "values must be positive, got {'a': 0.0}"),
        (lambda: plotting.bars({"a": 1, "b": 2}, {"a": 1}), "spreads must have the names of means, a, b, got a"),
        (lambda: plotting.spectrum_cut(TWO, 3), "k must be between 0 and len(s) = 2, got 3"),
        (lambda: plotting.arrows_in_space({"a": [1, 0, 0]}), "vectors must be at least two, got 1"),
    ],
)
def test_what_would_be_drawn_wrongly_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}$"):
        call()


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
        (lambda k: plotting.noise_cut(PHOTO, PHOTO, at_rank(k), S, np.linspace(1, 0.2, 10), k, 0.5), range(10)),
        (lambda k: plotting.above_level(S, S[k] / 2, title="s", lowest=1e-3), range(9)),
        (lambda k: plotting.numbers_and_direction(POINTS[:, 0], DIGITS[0], k), range(1, 20)),
    ],
)
def test_frames_of_a_slider_have_one_size_at_both_ends_and_between(draw, positions):
    pictures = [[rendered(figure) for figure in figures(draw(k))] for k in positions]
    assert len({tuple(p.shape for p in panels) for panels in pictures}) == 1
    for one, other in itertools.pairwise(pictures):
        assert any((a != b).any() for a, b in zip(one, other, strict=True))


def test_a_photograph_stands_beside_what_is_left_out():
    approx = at_rank(2)
    left, middle, right = only_axes(plotting.photo_cut(PHOTO, approx, S, 2))
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
        for figure in plotting.photo_cut(flat, (u[:, :k] * s[:k]) @ vt[:k], s, k):
            rendered(figure)
        for figure in plotting.photo_cut(flat, flat, [1, 0, 0, 0, 0], k):
            rendered(figure)


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
    assert sorted(shown) == sorted(["1", "2", "3", "4.5", "=", "1", "2", "1", "2"])  # mathematics writes no @


def test_an_equation_writes_what_rounding_leaves_of_a_zero_as_zero():
    assert texts(plotting.equation([[3, -4e-16]], "+", [[1e-3, 1e-11]])) == [
        "3",
        "0",
        "+",
        "0.001",
        "1e\N{MINUS SIGN}11",
    ]


def test_an_equation_names_its_matrices_and_keeps_its_colors():
    def drawn(last, **more):
        return plotting.equation([[1, -2]], "@", [[3], [last]], names=("U", "s"), **more)

    assert {"U", "s", "\N{MINUS SIGN}2"} <= set(texts(drawn(4)))
    limits = [[ax.images[0].get_clim() for ax in drawn(last, limit=5).axes if ax.images] for last in (1, 9)]
    assert limits[0] == limits[1] == [(-8, 8), (-8, 8)]
    assert drawn(1).axes[0].images[0].get_clim() != drawn(9).axes[0].images[0].get_clim()


def test_the_circle_becomes_the_ellipse_of_the_matrix():
    u, s, vt = np.linalg.svd(A)
    before, after = only_axes(plotting.ellipse(A, u, s, vt))
    circle, ellipse = (np.array(ax.lines[0].get_data()) for ax in (before, after))
    np.testing.assert_allclose(np.linalg.norm(circle, axis=0), 1)
    np.testing.assert_allclose(ellipse, A @ circle)
    np.testing.assert_allclose(np.linalg.norm(ellipse, axis=0).max(), s[0], rtol=1e-3)
    tips = [t.xy for t in after.texts if t.get_text()]
    np.testing.assert_allclose(tips, (u * s).T)


def test_digits_stand_above_their_approximations():
    approx = DIGITS / 2
    explained = np.linspace(2, 0, 64) / 64
    pictures, beside = plotting.digits_cut(DIGITS, approx, explained, 10)
    (ax,), (curve,) = pictures.axes, beside.axes
    np.testing.assert_array_equal([image.get_array().ravel() for image in ax.images], np.vstack([DIGITS, approx]))
    above, below = np.split(np.array([image.get_extent() for image in ax.images]), 2)
    np.testing.assert_allclose(above[:, :2], below[:, :2])
    assert below[:, 3].max() < above[:, 2].min()
    _, upto, point = curve.lines
    np.testing.assert_allclose(point.get_data(), [[10], [explained[:10].sum()]])
    assert len(upto.get_xdata()) == 11
    assert "from 10 numbers each" in texts(pictures)


def test_the_error_curve_of_a_spectrum_is_numpys():
    left, right = only_axes(plotting.spectrum_cut(S, 4))
    curve, point = right.lines
    expected = [np.linalg.norm(PHOTO - at_rank(k)) / np.linalg.norm(PHOTO) for k in range(10)]
    np.testing.assert_allclose(curve.get_ydata(), expected, atol=1e-12)
    np.testing.assert_allclose(point.get_data(), [[4], [expected[4]]])
    assert [bar.get_height() for bar in left.patches] == pytest.approx(S)
    assert len({bar.get_facecolor() for bar in left.patches[:4]}) == 1
    assert left.patches[3].get_facecolor() != left.patches[4].get_facecolor()


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
    (ax,) = CALLS["images"]().axes
    first, second = (text.get_position()[1] for text in ax.texts)
    assert [text.get_text() for text in ax.texts] == ["PCA", "NMF"]
    for image, pixels, row in zip(ax.images, [*(DIGITS - 3.0), *DIGITS], [first] * 4 + [second] * 4, strict=True):
        np.testing.assert_array_equal(image.get_array(), pixels.reshape(8, 8))
        assert image.get_clim() == (pixels.min(), pixels.max())
        left, right, low, high = image.get_extent()
        assert low < row < high
        assert high - low == pytest.approx(right - left)
    assert plotting.images({"one": DIGITS}, scale=(0, 20)).axes[0].images[0].get_clim() == (0, 20)


def test_images_beside_curves_share_one_scale_and_mark_the_k():
    pictures, beside = CALLS["images_and_curves"]()
    (ax,), (panel,) = pictures.axes, beside.axes
    assert [image.get_clim() for image in ax.images] == [(0, 16)] * 8
    shown = ax.images[4].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.isnan(GAPS[0]).reshape(8, 8))
    assert [line.get_label() for line in panel.lines[:2]] == ["PCA", "LDA"]
    assert [(float(x[0]), float(y[0])) for x, y in (line.get_data() for line in panel.lines[2:])] == [
        (4, 0.1), (4, 0.8)
    ]  # fmt: skip
    assert panel.get_ylim() == (0, 1)


def test_a_histogram_counts_what_lies_beyond_the_law_at_its_ends():
    ax = plotting.histogram([-9.0, 0.5, 0.5, 9.0], law=([0, 1], [1, 1]), marks=(0.3,)).axes[0]
    heights = np.array([bar.get_height() for bar in ax.patches])
    shares = heights / heights.sum()
    assert shares[[0, -1]] == pytest.approx([0.25, 0.25])
    assert shares.max() == pytest.approx(0.5)
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--"]
    words = [t.get_text() for t in ax.get_xticklabels()]
    assert (words[0], words[-1]) == ("\N{LESS-THAN OR EQUAL TO} 0", "\N{GREATER-THAN OR EQUAL TO} 1")
    within = plotting.histogram([0.5], law=([0, 1], [1, 1])).axes[0]
    assert [t.get_text() for t in within.get_xticklabels()][::5] == ["0", "1"]


def test_curves_mark_where_the_slider_stands_on_each_line():
    ax = plotting.curves([1, 2, 3], {"exact": [3, 2, 1], "bound": [3, 3, 2]}, at=2, scale=("log", "linear")).axes[0]
    points = [line.get_xydata().tolist() for line in ax.lines if len(line.get_xdata()) == 1]
    assert points == [[[2, 2]], [[2, 3]]]
    assert list(ax.lines[0].get_xdata()) == [2, 2]  # the line from top to bottom
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["exact", "bound"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_a_map_of_words_is_dark_where_its_own_table_is_large_and_says_the_numbers():
    logits, weights = only_axes(CALLS["word_maps"]())
    assert [ax.images[0].get_clim()[1] for ax in (logits, weights)] == [4.0, 0.5]
    assert [t.get_text() for t in weights.get_yticklabels()] == list(SIX)
    assert [t.get_text() for t in weights.texts][:2] == ["0.50", "0.10"]


def test_words_in_one_place_share_a_name():
    one, two = only_axes(CALLS["word_points"]())
    assert [t.get_text() for t in one.texts] == ["the, cat", "slept"]
    assert [t.get_text() for t in two.texts] == list(SIX[:3])


def test_a_ranking_joins_the_true_place_of_each_item_with_the_place_found():
    cut, best = only_axes(CALLS["rankings"]())
    assert sorted(line.get_ydata().tolist() for line in cut.lines) == [[0, 2], [1, 0], [2, 1]]
    assert all(len(set(line.get_ydata())) == 1 for line in best.lines)
    kept = [line.get_color() for line in best.lines if line.get_ydata()[0] < 2]
    assert kept == [style.TEAL, style.TEAL]


def test_clouds_show_directions_as_lines_through_the_origin():
    ax, _ = only_axes(CALLS["clouds"]())
    _, _, best = ax.lines
    np.testing.assert_allclose(best.get_xydata().sum(axis=0), 0, atol=1e-12)
    assert best.get_ydata()[1] == pytest.approx(2 * best.get_xdata()[1])


def test_bars_have_intervals_and_numbers_only_as_long_as_they_are():
    ax = CALLS["bars"]().axes[0]
    assert [bar.get_width() for bar in ax.patches] == [2.0, 3.2]
    assert [t.get_text() for t in ax.texts] == ["2.00", "3.20"]
    segment = ax.collections[0].get_segments()[0]
    assert segment[:, 0] == pytest.approx([1.9, 2.1])


def test_names_at_the_ends_of_lines_keep_apart_even_where_lines_meet():
    lines = {name: [0.0, height] for name, height in (("a", 1.0), ("b", 1.0), ("c", 0.98), ("d", 0.0))}
    ax = plotting.by_name(("x", "y"), lines, ylim=(0, 2)).axes[0]
    heights = {t.get_text(): t.xy[1] for t in ax.texts}
    assert np.diff(sorted(heights.values())).min() > 0.14
    assert heights["d"] == 0


def test_an_estimate_above_the_axis_is_an_arrow_at_its_edge():
    ax = only_axes(CALLS["weights_and_curves"]())[0]
    inside, above = ax.lines[:2]
    assert inside.get_xydata().tolist() == [[0, 0.1]]
    assert (above.get_marker(), above.get_xydata().tolist()) == ("^", [[1, 1.6]])


# Words and points, over the positions of explorers at their extremes

RANKS = (1, 2, 4, 8, 16, 32, 64, 128)
FALLING, ZERO, FAR = np.geomspace(1, 1e-3, 8), np.zeros(8), np.full(8, 3.6)
NAMES = ("averages of windows", "random mixtures", "least at this rank")
MANY = ("PCA", "NMF", "autoencoder", "LDA", "half hidden")
EXTREMES = {
    **{f"curves at {at}, {scale}, {ylim}": functools.partial(
        plotting.curves, RANKS, dict(zip(NAMES, (FALLING, FAR, FALLING[::-1]), strict=True)),
        at=at, scale=scale, ylim=ylim, xlabel="k", title="relative error",
    ) for at in (1, 8, 128) for scale, ylim in (
        (("linear", "linear"), (0, 1.2)), (("log", "log"), (3e-3, 2)), (("log", "log"), (None, None)))},
    **{f"tolerance {t}": functools.partial(plotting.spectrum, [4, 2, 1, 1e-9, 0], level=4 * 10.0**-t)
       for t in (1, 8, 16)},
    **{f"attention at {k}": functools.partial(
        plotting.attention_cut, np.eye(128), np.eye(128), RANKS,
        dict(zip(NAMES, (FALLING, FAR, ZERO), strict=True)), at=k) for k in (1, 128)},
    "flat spectra": lambda: plotting.weights_spectra_and_errors(
        np.eye(9), {"scores": np.ones(256), "weights": np.ones(256)}, RANKS, {"P cut": FAR, "least": FALLING}),
    **{f"features at {m}": functools.partial(
        plotting.weights_and_curves, FALLING, FAR, RANKS, {"Performer": FAR, "plain mean": FALLING},
        at=m, highest=1.0, ylim=(3e-3, 3)) for m in (1, 128)},
    **{f"family at {k}": functools.partial(
        plotting.images_and_curves, dict.fromkeys(("a new digit", *MANY), DIGITS), RANKS,
        dict.fromkeys(MANY, FALLING), at=k, ylim=(0.1, 1.05)) for k in (1, 128)},
    **{f"noise {noise}, {k} kept": functools.partial(
        plotting.noise_cut, PHOTO, PHOTO, PHOTO, np.linspace(60, noise, 60), np.linspace(1, noise, 13), k, threshold)
       for noise in (0.01, 1.7, 3.0) for k in (1, 12) for threshold in (0.1, 59)},
    **{f"{level} of the largest": functools.partial(
        plotting.above_level, S, level * S[0], title="layers and noise", lowest=1e-3) for level in (1e-3, 0.99)},
    **{f"decay {decay}, {k} kept": functools.partial(plotting.spectrum_cut, np.arange(1.0, 65) ** -decay, k)
       for decay in (0.0, 2.0) for k in (0, 1, 64)},
    **{f"digits from {k}": functools.partial(plotting.digits_cut, DIGITS, DIGITS, np.full(64, 1 / 64), k)
       for k in (0, 64)},
}  # fmt: skip
extreme = pytest.mark.parametrize("name", EXTREMES)


@extreme
def test_no_word_meets_a_curve(name):
    """Words stand outside the axes, within the figure, and meet none of each other."""
    for figure in figures(EXTREMES[name]()):
        rendered(figure)
        for ax in (ax for ax in figure.axes if ax.lines):
            assert not [t.get_text() for t in ax.texts], "words among the data"
            inside, sheet = ax.get_window_extent(), figure.bbox
            words = [ax.get_legend()] if ax.get_legend() else []
            words += [title for title in (ax.title, ax._left_title, ax._right_title) if title.get_text()]
            boxes = [each.get_window_extent() for each in words]
            assert not any(box.overlaps(inside) for box in boxes)
            assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
            assert all(sheet.x0 <= box.x0 and box.x1 <= sheet.x1 and box.y1 <= sheet.y1 for box in boxes)


@extreme
def test_no_point_leaves_its_axes(name):
    """A point beyond them is an arrow at their edge that points there; none is cut in half."""
    for figure in figures(EXTREMES[name]()):
        for ax in figure.axes:
            low, high = ax.get_ylim()
            for point in (line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_markersize() == 7):
                assert low <= point.get_ydata()[0] <= high
                assert not point.get_clip_on()


def test_a_point_beyond_the_axes_is_an_arrow_that_points_there():
    lines = {"far": [9.0, 9.0], "here": [1.0, 1.0], "below": [1e-9, 1e-9]}
    ax = plotting.curves([1, 2], lines, at=2, scale=("linear", "log"), ylim=(1e-3, 5)).axes[0]
    points = [line for line in ax.lines if line.get_markersize() == 7]
    assert [(p.get_marker(), float(p.get_ydata()[0])) for p in points] == [("^", 5), ("o", 1), ("v", 1e-3)]


# Colors


def contrast_with_white(color):
    return 1.05 / (0.05 + luminance(to_rgb(color)))


def luminance(rgb):
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return np.dot(channels, [0.2126, 0.7152, 0.0722])


def test_colors_stand_out_on_a_dark_page_that_inverts_them():
    """As explore.css and book.css say: invert(1) hue-rotate(180deg), and screen over the page."""
    weights = np.array([0.213, 0.715, 0.072])  # of the filter's matrix; a half turn is 2 * gray - color
    page = np.array(to_rgb("#14181e"))

    def shown(color):
        inverted = 1 - np.array(to_rgb(color))
        turned = np.clip(2 * weights @ inverted - inverted, 0, 1)
        return 1 - (1 - turned) * (1 - page)

    def contrast(color):
        return (luminance(shown(color)) + 0.05) / (luminance(shown("white")) + 0.05)

    np.testing.assert_allclose(shown("white"), page)
    colors = [color for color, _ in style.LINES] + [style.GRAY, style.HIDDEN]
    assert min(map(contrast, colors)) >= 3
    assert min(map(contrast, (style.TEAL, style.ORANGE, "#2b2f33", "#4a4f55"))) >= 4.5


def test_colors_stand_out_from_white_and_lines_differ_in_more_than_color():
    with style.book_style():
        cycle = list(plt.rcParams["axes.prop_cycle"])
        words = [plt.rcParams[name] for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")]
    colors = [look["color"] for look in cycle] + [color for color, _ in style.LINES] + [style.HIDDEN]
    assert min(map(contrast_with_white, colors)) >= 3  # WCAG 2.1, 1.4.11
    assert min(map(contrast_with_white, [*words, style.TEAL, style.ORANGE])) >= 4.5  # WCAG 2.1, 1.4.3
    assert len({str(look["linestyle"]) for look in cycle}) == len(cycle)
    assert len({str(dashes) for _, dashes in style.LINES}) == len(style.LINES)
    assert contrast_with_white("#767676") == pytest.approx(4.54, abs=0.01)  # WCAG's own example


def test_dots_stand_at_their_numbers_each_in_the_row_of_its_name_and_the_marked_one_stands_out():
    fig = plotting.dots({"first": 1.0, "yours": 30.0}, marked="yours", marks={"80 GB": 74.5}, xlim=(0.1, 1e3))
    (ax,) = fig.axes
    *points, line = ax.lines
    assert [point.get_xydata().tolist() for point in points] == [[[1.0, 0.0]], [[30.0, 1.0]]]
    assert [to_rgb(point.get_color()) for point in points] == [to_rgb(style.TEAL), to_rgb(style.ORANGE)]
    assert set(line.get_xdata()) == {74.5}
    assert [text.get_text() for text in ax.texts] == ["80 GB"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "yours"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first name stands at the top"
