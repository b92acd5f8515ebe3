"""A cloud is dragged off the origin: both first directions are those of scikit-learn and NumPy."""

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lowrank_tutor.figures import cloud

FIGURE = cloud


def check(hand):
    points = np.array(hand.call("table")["points"])
    assert points.mean(axis=0) == pytest.approx(hand.call("state")["center"], abs=1e-9)
    pca = PCA(1).fit(points)
    values, vectors = np.linalg.eigh(points.T @ points)
    cosine = min(1.0, abs(pca.components_[0] @ vectors[:, 1]))
    shown = hand.shown()
    assert shown["apart"] == pytest.approx(math.degrees(math.acos(cosine)), abs=1e-5)
    assert shown["share_pca"] == pytest.approx(pca.explained_variance_ratio_[0])
    assert shown["share_raw"] == pytest.approx(values[1] / values.sum())
    return shown


def test_random_states(hand):
    rng = np.random.default_rng(0)
    hand.tour([{"center": rng.uniform(-8, 8, 2).tolist()} for _ in range(50)], check)


def test_drag_of_the_mean(hand):
    share = hand.set(center=[6, 3])["share_pca"]
    hand.drag("mean of the cloud", -60, 30)
    assert check(hand)["share_pca"] == pytest.approx(share)  # centered, it does not notice


def test_origin(hand):
    hand.button("origin").click()
    hand.settle()
    assert check(hand)["apart"] == pytest.approx(0, abs=1e-6)
    assert "changes nothing" in hand.said("nothing")
