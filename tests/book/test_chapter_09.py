"""States and theorems: NumPy judges of its explorers and of the weights of groups."""

import math

import numpy as np
import pytest
from chapters import CHAPTERS, softmax

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("09-")]


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def delta_state(k, v):
    state = np.zeros((k.shape[1], v.shape[1]))
    for key, value in zip(k, v, strict=True):
        state = state + np.outer(key, value - key @ state)
    return state


def memory(chapter, *, t, d):
    """Shares of values that are nearest to what their keys read; the newest eighth alone, too."""
    hits = np.zeros((2, t))
    for keys, values in chapter["pairs"][d]:
        k, v = keys[:t].numpy(), values[:t].numpy()
        for row, state in zip(hits, (k.T @ v, delta_state(k, v)), strict=True):
            away = np.linalg.norm((k @ state)[:, None] - v, axis=2)
            row += (away.argmin(axis=1) == np.arange(t)) / 20
    plain, rule = hits
    return {
        "plain_sum": plain.mean(),
        "delta_rule": rule.mean(),
        "newest": rule[-t // 8 :].mean(),
        "cache": d * d / (2 * d),  # a key and a value of d numbers each
    }


def recall(chapter, *, t, d):
    squares = np.zeros(4)
    for keys, values in chapter["pairs"][d][:8]:
        k, v = keys[:t].numpy(), values[:t].numpy()
        states = (k.T @ v, delta_state(k, v), np.linalg.lstsq(k, v, rcond=None)[0])
        squares += np.array([*(off(k @ state, v) for state in states), off(softmax(40 * k @ k.T) @ v, v)]) ** 2 / 8
    names = ("plain_sum", "delta_rule", "best_state", "softmax")
    return {**dict(zip(names, np.sqrt(squares), strict=True)), "theorem": math.sqrt((t - 1) / d)}


def collapse(chapter, *, layers, size):
    def distance(skip, start):
        x, drawn = start[0].numpy(), start[1]
        for maps in drawn[:layers]:
            w_q, w_k, w_v = size * maps.numpy()
            x = skip * x + softmax(x @ w_q @ (x @ w_k).T / math.sqrt(32)) @ x @ w_v
        return off(np.tile(x.mean(axis=0), (32, 1)), x)

    alone, skips = ([distance(skip, start) for start in chapter["starts"]] for skip in (0, 1))
    fifth = 4  # of ten numbers torch takes the lower of the two in the middle
    return {"alone": sorted(alone)[fifth], "slowest": max(alone), "skips": sorted(skips)[fifth]}


def window_error(chapter, *, m, rho):
    x = chapter["noise"].numpy().copy()
    for i in range(1, 128):
        x[i] = rho * x[i - 1] + math.sqrt(1 - rho**2) * chapter["noise"][i].numpy()
    q, k, v = (x @ w.numpy() for w in chapter["maps"])

    def attend(groups_of, vote):
        out = np.zeros((128, 32))
        for i in range(128):
            groups = max(0, (i + 1 - 16) // groups_of)
            old = groups * groups_of
            seen = [[p[:old].reshape(groups, groups_of, 32).mean(axis=1), p[old : i + 1]] for p in (k, v)]
            keys, values = (np.concatenate(part) for part in seen)
            added = np.r_[np.full(groups, vote), np.zeros(i + 1 - old)]
            out[i] = (softmax((q[i] @ keys.T / math.sqrt(32) + added)[None]) @ values)[0]
        return out

    groups = sum(end + 16 <= 128 for end in range(m, 129, m))  # whole ones that end before the last 16
    later = np.triu(np.full((128, 128), -np.inf), 1)
    far = np.where(np.tri(128, k=-16) > 0, -np.inf, 0)
    logits = q @ k.T / math.sqrt(32) + later
    exact = softmax(logits) @ v
    return {
        "votes": off(attend(m, math.log(m)), exact),
        "one": off(attend(m, 0.0), exact),
        "alone": off(softmax(logits + far) @ v, exact),
        "kept": (groups + 128 - groups * m) / 128,
    }


EXPLORERS = {"memory": memory, "recall": recall, "collapse": collapse, "window-error": window_error}


def test_large_tokens_stay_apart(chapter):
    larger = [chapter["unlike"](10 * tokens, drawn, 1.0, 0)[7] for tokens, drawn in chapter["starts"]]
    assert max(larger) > 0.1 > 1e-14 > chapter["alike"][1.0]["its slowest draw"][7]


def test_votes_of_groups(chapter):
    one, many = (chapter["seen"][votes].double().numpy() for votes in (False, True))
    assert one[:, 0] / one[:, 8] == pytest.approx(1 / 4), "four times as pale"
    assert many == pytest.approx(np.array([[(j <= i) / (i + 1) for j in range(12)] for i in range(8, 12)]))
