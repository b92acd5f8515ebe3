"""TODO: test the module against a judge that shares no code with it, numbers by hand, properties and bad input."""

import numpy as np
import pytest

from lowrank_tutor.topic import topic

RNG = np.random.default_rng(0)
A = RNG.standard_normal((7, 5))


@pytest.mark.parametrize(
    ("a", "k", "share"), [([[4, 0], [0, 3]], 1, 0.64), ([[1, 2], [2, 4]], 1, 1), (np.eye(10), 3, 0.3)]
)
def test_by_hand(a, k, share):
    assert topic(a, k) == pytest.approx(share)


@pytest.mark.parametrize("k", range(1, 6))
def test_eigenvalues(k):
    values = np.linalg.eigvalsh(A.T @ A)[::-1]
    assert topic(A, k) == pytest.approx(values[:k].sum() / np.trace(A.T @ A))


@pytest.mark.parametrize("scale", [1e-70, -3, 1e70])
def test_scale(scale):
    assert topic(scale * A, 2) == pytest.approx(topic(A, 2))


@pytest.mark.parametrize(
    ("a", "k", "words"),
    [
        (np.zeros((2, 2)), 1, "a must have a nonzero entry, got zeros alone"),
        (A, 0, r"k must be between 1 and min\(m, n\) = 5, got 0"),
        (A, 6, r"k must be between 1 and min\(m, n\) = 5, got 6"),
    ],
)
def test_bad_input(a, k, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        topic(a, k)
