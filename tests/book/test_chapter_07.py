"""Linformer: judges of what the chapter's explorer, curves and tables show, by NumPy alone."""

import math

import numpy as np
import pytest
from chapters import softmax

from lowrank_tutor.figures.storyteller import TALES, after, counted, measured
from lowrank_tutor.figures.windows import BORDERS, WORDS, through

N, D = 128, 32


def tokens(noise, rho):
    x = noise.copy()
    for i in range(1, N):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * noise[i]
    return x


def linformer_error(chapter, *, k, rho):
    x = tokens(chapter["noise"].numpy(), rho)
    q, keys, values = (x @ chapter[name].numpy() for name in ("W_q", "W_k", "W_v"))
    exact = softmax(q @ keys.T / math.sqrt(D)) @ values

    def off(short_keys, short_values):
        return np.linalg.norm(
            softmax(q @ short_keys.T / math.sqrt(D)) @ short_values - exact
        ) / np.linalg.norm(exact)

    windows = (part.reshape(k, N // k, D).mean(axis=1) for part in (keys, values))
    e = chapter["mixtures"][k].numpy()
    spectrum = np.linalg.svd(exact, compute_uv=False)
    return {
        "averages": off(*windows),
        "random": off(e @ keys, e @ values),
        "least": math.sqrt((spectrum[k:] ** 2).sum() / (spectrum**2).sum()),
    }


EXPLORERS = {"linformer-error": linformer_error}


def test_averages_of_a_story():
    """What the text says of the figures: which averages say red, how far off the tables are, and
    how many answers.
    """
    said = {k: measured(TALES["far fact"], "means", k) for k in (8, 16, 20)}
    assert [said[k]["says"] for k in said] == ["red", "white", "red"]
    assert [round(100 * said[k]["table_error"]) for k in (8, 16)] == [41, 22]
    assert (
        measured(TALES["far fact"], "window", 20)["right"]
        > 0.99
        > 0.2
        > measured(TALES["far fact"], "window", 16)["right"]
    )
    assert [round(100 * counted()[cut][16]["answered"]) for cut in ("means", "window")] == [81, 72]
    six, three = (after(WORDS, attend=through(borders)) for borders in (BORDERS, [0, 3, 4]))
    assert [round(100 * one["table_error"]) for one in (six, three)] == [73, 76]
    assert six["says"] == "gray"
    assert three["right"] > 0.995


def test_real_neighbors(chapter):
    """In a trained encoder keys correlate by about 0.5, values by 0.2; there averages are far off,
    as the text says.
    """
    rows = [row for row in chapter["stored"]("attention_spectra")["rows"] if row["n"] == 256]
    keys, values = (np.mean([row[name] for row in rows]) for name in ("keys_alike", "values_alike"))
    assert (round(keys, 2), round(values, 2)) == (0.49, 0.23)
    assert round(np.mean(chapter["real_text"]), 1) == 0.5
    assert [
        round(100 * chapter["found"][rho]["averages"][i]) for rho, i in ((0.5, 5), (0.99, 1))
    ] == [22, 8]


def test_best_mixing(chapter):
    """No mixing of rank k near the best keeps more, and means of windows keep a little less."""
    gamma = 0.95 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    _, vectors = np.linalg.eigh(gamma)
    rng = np.random.default_rng(0)
    for k, best, means in zip(chapter["RANKS"], chapter["best"], chapter["means"], strict=True):
        own = vectors[:, -k:] @ vectors[:, -k:].T
        assert chapter["lost"](own) == pytest.approx(best)
        near = np.linalg.qr(vectors[:, -k:] + 0.01 * rng.standard_normal((N, k)))[0]
        assert best < chapter["lost"](near @ near.T)
        inside = gamma[: N // k, : N // k].mean()  # a window's mean has this variance
        assert means == pytest.approx(math.sqrt(1 - inside))
        assert 1 < means / best < math.pi / math.sqrt(6)
