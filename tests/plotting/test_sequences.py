"""Tables with words and boxes to scale: each entry, word and side where it belongs."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from lowrank_tutor import plotting
from lowrank_tutor.plotting.style import WIDTH

WORDS = ("the", "cat", "slept")
P = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])


def rectangles(figure):
    """Position and size of each filled box, in inches: (left, bottom, width, height)."""
    (ax,) = figure.axes
    return [(*p.get_xy(), p.get_width(), p.get_height()) for p in ax.patches if isinstance(p, Rectangle) and p.fill]


def test_a_table_shows_its_entries_under_its_words_on_one_scale_for_all():
    first, second = plotting.grids(("P", P, WORDS[1:], WORDS), ("half", P / 2, WORDS[1:], WORDS)).axes
    for ax, entries in ((first, P), (second, P / 2)):
        np.testing.assert_array_equal(ax.images[0].get_array(), entries)
        assert ax.images[0].get_clim() == (0, 1)
        assert [t.get_text() for t in ax.get_xticklabels()][:3] == list(WORDS)
    assert [t.get_text() for t in first.get_yticklabels()][:2] == list(WORDS[1:])
    assert "".join(t.get_text() for t in second.get_yticklabels()) == "", "the words of the rows stand once"


def test_entries_are_written_where_they_are_not_zero():
    (ax,) = plotting.grids(("P", P, WORDS[1:], WORDS), written=True).axes
    assert {t.get_position(): t.get_text() for t in ax.texts} == {
        (0, 0): ".20", (1, 0): ".30", (2, 0): ".50", (1, 1): "1.00"
    }  # fmt: skip


def test_borders_hidden_columns_and_notes_are_in_their_places():
    (ax,) = plotting.grids(("P", P, WORDS[1:], WORDS), borders=(2,), hidden=(0, 1), notes=("one", "two")).axes
    assert [line.get_xdata()[0] for line in ax.lines] == [1.5]
    assert [patch.get_x() for patch in ax.patches] == [-0.5, 0.5]
    assert [(t.get_text(), t.get_position()[1]) for t in ax.texts] == [("one", 0), ("two", 1)]


def test_boxes_keep_one_scale_in_all_lines_and_a_middle_in_each():
    lines = {"one": [("A", ("m", 2), ("n", 12)), "", ("B", ("n", 12), ("d", 4))], "two": [("C", ("m", 6), ("d", 4))]}
    a, b, c = rectangles(plotting.boxes(lines))
    unit = a[2] / 12
    assert [round(side / unit, 6) for box in (a, b, c) for side in box[2:]] == [12, 2, 4, 12, 4, 6]
    assert a[1] + a[3] / 2 == pytest.approx(b[1] + b[3] / 2)
    assert a[0] + a[2] < b[0], "they do not overlap"
    assert b[0] + b[2] < WIDTH
    assert c[1] + c[3] < b[1], "the second line stands below the first"


@pytest.mark.parametrize(
    ("way", "matrices"),
    [((False, False, False), 12), ((True, False, False), 6), ((True, True, False), 3), ((True, True, True), 1)],
)
def test_blocks_of_every_way_of_sharing_cover_the_same_places(way, matrices):
    blocks = rectangles(plotting.sharing({"way": way}, layers=3, heads=2))
    assert len(blocks) == matrices
    apart = {left for left, _, _, _ in rectangles(plotting.sharing({"way": (True, True, False)}, layers=3, heads=2))}
    assert min(left for left, _, _, _ in blocks) == pytest.approx(min(apart))
    if not way[2]:
        assert sum(width * height for _, _, width, height in blocks) == pytest.approx(12 * 0.36**2)
