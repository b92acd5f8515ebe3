"""Matrix rank: its explorer and what the text says of it, judged by NumPy alone."""

import numpy as np

from lowrank_tutor.figures.parts.sample_pictures import grays
from lowrank_tutor.rank import stable_rank


def one_sheet(chapter, *, k):
    """The first k sheets by the eigenvectors of the Gram matrix: the table times the projection
    onto them.
    """
    weights = chapter["weights"]
    rows = np.linalg.eigh(weights.T @ weights)[1][:, ::-1][:, :k]
    total = weights @ rows @ rows.T
    return {
        "weight": total[-1, chapter["story"].index("red")],
        "relative_error": np.linalg.norm(total - weights) / np.linalg.norm(weights),
    }


EXPLORERS = {"one-sheet": one_sheet}


def test_sheets_of_a_head(chapter):
    """Which words the sheets are about, and that twelve of them leave 5% and save nothing."""
    left, _, right = np.linalg.svd(chapter["weights"])
    story = chapter["story"]
    for sheet, listens, to_whom in ((1, 0, 0), (2, 18, 15), (5, 22, 3)):
        assert (abs(left[:, sheet - 1]).argmax(), abs(right[sheet - 1]).argmax()) == (
            listens,
            to_whom,
        )
    assert [story[i] for i in (0, 18, 15, 22, 3)] == ["<s>", "was", "slept", "wears", "red"]
    errors = [one_sheet(chapter, k=k)["relative_error"] for k in (11, 12)]
    assert errors[1] < 0.05 < errors[0]
    assert 12 * (23 + 23) > np.count_nonzero(np.tri(23)) == 276


def sheets_for_5_percent(picture, degrees):
    s = np.linalg.svd(grays(picture, degrees), compute_uv=False)
    return np.sum(np.sqrt(np.cumsum(s[::-1] ** 2)[::-1]) / np.linalg.norm(s) > 0.05)


def test_sheets_of_tilted_windows(chapter):
    assert chapter["needed"] == [
        sheets_for_5_percent("window", degrees) for degrees in chapter["degrees"]
    ]
    needed = [sheets_for_5_percent("window", degrees) for degrees in range(46)]
    assert np.flatnonzero(needed == np.max(needed)).tolist() == [37, 38]
    assert max(needed) == 59
    assert np.linalg.matrix_rank(grays("window", 2)) == 41


def test_stable_rank_of_the_photograph(chapter):
    assert round(stable_rank(chapter["photo"]), 2) == 1.33
