"""States and theorems: layers, errors of states, and the weights of groups."""

import math

import numpy as np
import pytest
from chapters import CHAPTERS, softmax

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("09-")]


def test_layers_act_on_tokens(chapter):
    """Without skips tokens are mixed by weights; with skips they are added."""
    first, maps = chapter["first"].numpy(), chapter["maps"].numpy()
    for size in chapter["sizes"]:
        for skip in (0, 1):
            tokens, after = first, chapter["after_layers"](size, skip).numpy()
            for layer, (w_q, w_k, w_v) in enumerate(size * maps):
                np.testing.assert_allclose(after[layer], tokens, rtol=1e-6, atol=1e-6)
                tokens = skip * tokens + softmax(tokens @ w_q @ (tokens @ w_k).T / math.sqrt(32)) @ tokens @ w_v


def test_errors_follow_the_theorem(chapter):
    found = chapter["found"]
    assert found["sum"] == pytest.approx(found["sum, by the theorem"], abs=0.1)
    assert found["best state"][:2] == pytest.approx([0, 0], abs=1e-9)


def test_votes_of_groups(chapter):
    one, many = (chapter["seen"][votes].double().numpy() for votes in (False, True))
    assert one[:, 0] / one[:, 8] == pytest.approx(1 / 4), "four times as pale"
    assert many == pytest.approx(np.array([[(j <= i) / (i + 1) for j in range(12)] for i in range(8, 12)]))
