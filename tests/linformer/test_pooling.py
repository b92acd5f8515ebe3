"""Averages of windows, against NumPy's means."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from linformers import array

from lowrank_tutor.linformer import pooling_projection


@given(st.integers(1, 12), st.integers(1, 12))
def test_pooling_averages_windows(k, window):
    pooling, x = pooling_projection(k, k * window), np.random.default_rng(0).standard_normal(k * window)
    assert pooling.shape == (k, k * window)
    assert pooling.dtype == torch.float32
    np.testing.assert_allclose(array(pooling) @ x, x.reshape(k, window).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(pooling.sum(dim=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 8), "k must divide max_len = 8, got 3"),
        ((0, 8), "k must be between 1 and max_len = 8, got 0"),
        ((9, 8), "k must be between 1 and max_len = 8, got 9"),
        ((2, 10**30), f"max_len must give a matrix of at most 2**40 numbers, got 2 times {10**30}"),
        ((1, 0), "max_len must be at least 1, got 0"),
    ],
)
def test_bad_windows(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pooling_projection(*arguments)


def test_window_size_bounds():
    assert pooling_projection(8, 8).tolist() == torch.eye(8).tolist()
    assert pooling_projection(1, 8).tolist() == [[0.125] * 8]
