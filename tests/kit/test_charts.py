"""Figures hold the numbers that they are given, in their places, and leave no trace behind."""

import copy
import itertools
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from looks import check_fit, figures, rendered
from matplotlib.figure import Figure

from lowrank_tutor.kit import charts
from lowrank_tutor.kit.charts import style
from lowrank_tutor.kit.environment import PAGE_VARIABLE

PHOTO = np.random.default_rng(0).random((12, 9))
S = np.linalg.svd(PHOTO, compute_uv=False)
DIGITS = np.random.default_rng(2).integers(0, 17, (4, 64))
SIX = ("the", "cat", "slept", "it", "was", "lexicographically")
WEIGHTS = np.full((6, 6), 0.1) + 0.4 * np.eye(6)
WORDS, P = SIX[:3], np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])


@charts.styled
def on_a_sheet(images, **look):
    fig, ax = charts.sheet(3.6, 1.0)
    charts.draw_row(ax, images, (0.1, -0.3), 0.6, **look)
    return fig


@charts.styled
def on_a_panel(*tip, **look):
    fig, ax = charts.panel(3, 3)
    charts.arrow(ax, tip, **look)
    ax.set(xlim=(-3, 3), ylim=(-3, 3))
    return fig


CALLS = {
    "arrow": lambda: on_a_panel(1, 2, color=charts.TEAL, name="x"),
    "boxes": lambda: charts.boxes(
        {"a line": [("A", ("m", 2), ("n", 3)), "=", ("B", ("m", 2), ("n", 3))]}
    ),
    "curves": lambda: charts.curves([1, 2, 3], {"exact": [3, 2, 1], "bound": [3, 3, 2]}, at=2),
    "draw_row": lambda: on_a_sheet(DIGITS, title="digits"),
    "equation": lambda: charts.equation([[1, 2], [3, 4.5]], "=", [[1], [2]], "@", [[1, -2]]),
    "grids": lambda: charts.grids(("P", np.eye(2), ("cat", "slept"), ("cat", "slept"))),
    "picture": lambda: charts.picture(PHOTO, "rank 9", below=0.25, vmin=0, vmax=2),
    "word_maps": lambda: charts.word_maps(
        {"logits": 8 * WEIGHTS, "weights": WEIGHTS}, SIX, decimals=2
    ),
}


def texts(figure):
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text()]


def only_axes(name):
    """The axes of a call's panels, which have one each."""
    return [ax for figure in figures(CALLS[name]()) for ax in figure.axes]


def data(line):
    return np.transpose(line.get_data()).tolist()


@pytest.mark.parametrize("name", CALLS)
def test_figures_leave_no_trace(name):
    before = copy.deepcopy(dict(mpl.rcParams))
    panels = figures(CALLS[name]())
    assert (plt.get_fignums(), dict(mpl.rcParams)) == ([], before)
    check_fit(panels)


@pytest.mark.parametrize(("said", "shown"), [("1", [Figure, Figure]), ("0", [dict])])
def test_panels_show_themselves(said, shown, monkeypatch):
    """A page takes the figures one by one, a notebook in one row."""
    monkeypatch.setenv(PAGE_VARIABLE, said)
    seen = []
    monkeypatch.setattr("IPython.display.display", lambda what, **_: seen.append(type(what)))
    style.Panels((CALLS["curves"](), CALLS["picture"]()))._ipython_display_()
    assert seen == shown


# Refusals

TWO = [1.0, 2.0]
REFUSED = {
    "arrow": lambda bad: on_a_panel(*bad, color="black"),
    "curves": lambda bad: charts.curves(TWO, {"a": bad}),
    "curves, x": lambda bad: charts.curves(bad, {"a": TWO}),
    "equation": lambda bad: charts.equation([bad], "=", [TWO]),
    "grids": lambda bad: charts.grids(("a", [bad], ["p"], ["x", "y"])),
    "picture": lambda bad: charts.picture([bad], "a"),
    "word_maps": lambda bad: charts.word_maps({"a": [TWO, bad]}, ["p", "q"], decimals=2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_undrawable_numbers(name):
    gap = [np.nan, np.nan] if name == "curves" else [1, np.nan]  # lines may have gaps
    for bad in (gap, [1, np.inf], [1, 1j]):
        with pytest.raises(
            (TypeError, ValueError), match=r"^[\w\[\]' ]+ must (be|have|hold) .*got "
        ):
            REFUSED[name](bad)
    assert plt.get_fignums() == []


MESSAGES = {
    "lines must be a dict with at least one name, got {}": lambda: charts.curves(TWO, {}),
    "lines['a'] must have shape (2,), got (3,)": lambda: charts.curves(TWO, {"a": [1, 2, 3]}),
    "at must be one of the abscissas x, got 3": lambda: charts.curves(TWO, {"a": TWO}, at=3),
    "parts must have shape (any, any), got (2,)": lambda: charts.equation(TWO),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_messages(message):
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}$"):
        MESSAGES[message]()


def test_curves_mark_the_slider():
    lines = {"exact": [3, 2, np.nan], "far": [99, 99, 99]}
    ax = charts.curves([1, 2, 3], lines, at=2, scale=("log", "linear"), ylim=(0, 5)).axes[0]
    upright, exact, _, *marks = ax.lines
    assert data(exact) == [[1, 3], [2, 2], [2, 2]]  # as many points as ever
    assert [(mark.get_marker(), data(mark)) for mark in marks] == [
        ("o", [[2, 2]]),
        ("^", [[2, 5]]),
    ]  # beyond the axes
    assert list(upright.get_xdata()) == [2, 2]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_pictures_keep_their_scale():
    figure = CALLS["picture"]()
    (image,) = figure.axes[0].images
    np.testing.assert_array_equal(image.get_array(), PHOTO)
    assert image.get_clim() == (0, 2)
    assert figure.get_gid() == "photograph"
    box = figure.axes[0].get_position()
    assert box.height * figure.get_figheight() == pytest.approx(
        12 / 9 * box.width * figure.get_figwidth()
    )


def test_equations_show_entries_and_signs():
    shown = texts(CALLS["equation"]())
    minus = "\N{MINUS SIGN}"
    assert sorted(shown) == sorted(
        ["1", "2", "3", "4.5", "=", "1", "2", "1", f"{minus}2"]
    )  # mathematics writes no @
    small = charts.equation(
        [[3, -4e-16]], "+", [[1e-3, 1e-11]]
    )  # what rounding leaves of a zero is one
    assert texts(small) == ["3", "0", "+", "0.001", f"1e{minus}11"]
    assert [ax.images[0].get_clim()[1] for ax in small.axes if ax.images] == pytest.approx(
        [4.8, 4.8]
    )


def test_word_maps_have_own_scales():
    logits, weights = only_axes("word_maps")
    assert [ax.images[0].get_clim() for ax in (logits, weights)] == [(0, 4.0), (0, 0.5)]
    assert [text.get_text() for text in weights.get_yticklabels()] == list(SIX)
    assert [(text.get_text(), text.get_color()) for text in weights.texts[:2]] == [
        ("0.50", "white"),
        ("0.10", "black"),
    ]


def test_grids_share_a_scale():
    axes = charts.grids(
        ("P", P, WORDS[1:], WORDS), ("half", P / 2, WORDS[1:], WORDS), written=True
    ).axes
    for ax, entries in zip(axes, (P, P / 2), strict=False):
        np.testing.assert_array_equal(ax.images[0].get_array(), entries)
        assert ax.images[0].get_clim() == (0, 1)
    assert [text.get_text() for text in axes[0].texts if text.get_text()] == [
        ".20", ".30", ".50", "1.00"
    ]  # fmt: skip


def test_boxes_share_a_scale():
    (ax,) = CALLS["boxes"]().axes
    sizes = [(box.get_width(), box.get_height()) for box in ax.patches if box.fill]
    assert [height / width for width, height in sizes] == pytest.approx([2 / 3] * 2)


# Words and points, at the extremes of explorers

RANKS, NAMES = 2 ** np.arange(8), ("averages of windows", "random mixtures", "least at this rank")
LINES = dict(
    zip(NAMES, (np.geomspace(1, 1e-3, 8), np.full(8, 3.6), np.geomspace(1e-3, 1, 8)), strict=True)
)
NARROW = {"width": 2.1, "height": 2.6, "left": 0.4, "right": 0.1}
SCALES = [(("linear", "linear"), (0, 1.2)), (("log", "log"), (3e-3, 2))]


@pytest.mark.parametrize(("scale", "ylim"), SCALES)
@pytest.mark.parametrize("room", [{}, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("at", [1, 128])
def test_words_keep_apart(at, room, scale, ylim):
    """They stand within the figure, and meet none of each other; names of lines stand beside the
    axes.
    """
    figure = charts.curves(
        RANKS, LINES, at=at, scale=scale, ylim=ylim, xlabel="k", title="relative error", **room
    )
    rendered(figure)
    (ax,), sheet = figure.axes, figure.bbox
    assert ax.texts
    boxes = [word.get_window_extent() for word in (ax._left_title, *ax.texts)]
    assert not any(box.overlaps(ax.get_window_extent()) for box in boxes)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(sheet.x0 <= box.x0 and box.x1 <= sheet.x1 and box.y1 <= sheet.y1 for box in boxes)
