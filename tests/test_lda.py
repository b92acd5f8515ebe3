"""LDA against scikit-learn, SciPy, sums over points, and numbers worked by hand."""

import math

import numpy as np
import pytest

from lowrank_tutor.lda import lda

# Two classes of four points: variance 1/2 along the first coordinate and 2 along the second.
CROSS = np.array([[-1.0, 0], [1, 0], [0, -2], [0, 2]])
CROSSES, SIDES = np.vstack([CROSS, CROSS + np.array([10, 0])]), np.repeat(["left", "right"], 4)


def test_two_crosses_by_hand():
    found = lda(CROSSES, SIDES, 1)
    np.testing.assert_allclose(found.axes, [[math.sqrt(2)], [0]], atol=1e-15)
    np.testing.assert_array_equal(found.ratio, [1])
    np.testing.assert_array_equal(found.mean, [5, 0])
    np.testing.assert_array_equal(found.centers, [[0, 0], [10, 0]])
    np.testing.assert_array_equal(found.classes, ["left", "right"])
    np.testing.assert_array_equal(found.priors, [0.5, 0.5])
    np.testing.assert_allclose(found.project([[6, 3]]), [[math.sqrt(2)]], rtol=1e-15)
    np.testing.assert_array_equal(found.classify([[4.999, 9], [5.001, -9]]), ["left", "right"])


def test_priors_move_the_border():
    """With three times as many on the left the border lies at 5 + log(3) / (10 / variance) =
    5.0549.
    """
    found = lda(np.vstack([CROSS, CROSS, CROSSES]), np.repeat(["left", "right"], [12, 4]), 1)
    border = 5 + math.log(3) / 20
    np.testing.assert_array_equal(
        found.classify([[border - 1e-6, 0], [border + 1e-6, 0]]), ["left", "right"]
    )


def test_coinciding_centers_share_nothing():
    points = np.vstack([CROSS, 2 * CROSS])
    result = lda(points, SIDES, 1)
    np.testing.assert_array_equal(result.ratio, [0])
    within = result.project(points) - result.project(result.centers).repeat(4, axis=0)
    assert np.square(within).mean() == pytest.approx(1, rel=1e-12)


STRINGS = getattr(np.dtypes, "StringDType", lambda: object)()  # NumPy has it from 2.0 on


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["b"] * 4 + ["ant"] * 4, dtype=object), "U"),
        (np.array(["b"] * 4 + ["ant"] * 4, dtype=STRINGS), "U"),
        (np.array([b"b"] * 4 + [b"ant"] * 4, dtype=object), "S"),
        (np.array([7] * 4 + [-7] * 4, dtype=object), "i"),
        (np.array([7] * 4 + [0.5] * 4, dtype=object), "f"),
        ([True] * 4 + [False] * 4, "b"),
        ([7] * 4 + [-7] * 4, "i"),
        (np.repeat([1.5, 0.5], 4), "f"),
    ],
)
def test_labels_keep_their_type(labels, kind):
    found = lda(CROSSES, labels, 1)
    assert found.classes.dtype.kind == kind
    np.testing.assert_array_equal(found.classify(CROSSES), labels)
    np.testing.assert_array_equal(found.classes, sorted(set(np.asarray(labels).tolist())))
