"""The attention of six words: PyTorch finds the same, and two rows come out by hand."""

import math

import numpy as np
import pytest
import torch

from lowrank_tutor.sentence import W_K, W_Q, W_V, WORDS, X, attention


def test_attention_by_pytorch():
    q, k, v = (
        torch.tensor(X, dtype=torch.float64) @ torch.tensor(w, dtype=torch.float64)
        for w in (W_Q, W_K, W_V)
    )
    weights, values = attention()
    heard = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(weights @ values, heard, rtol=1e-12)


def test_rows_by_hand():
    weights, _ = attention()
    np.testing.assert_allclose(
        weights[WORDS.index("the")], np.full(6, 1 / 6)
    )  # it asks for nothing
    creatures = np.array([0, 2, 0, 1, 0, 1])
    powers = np.exp(4 * creatures / math.sqrt(2))  # "slept" asks for (0, 2) W_Q = (4, 0)
    np.testing.assert_allclose(weights[WORDS.index("slept")], powers / powers.sum())


def test_large_numbers_do_not_overflow():
    assert np.isfinite(attention(np.full((2, 2), 1e3))[0]).all()


def test_width_is_two():
    with pytest.raises(ValueError, match=r"^x must have shape \(n, 2\), got shape \(1, 3\)$"):
        attention([[1, 2, 3]])
