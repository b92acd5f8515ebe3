"""Attention: a NumPy judge of its explorer, and what the storyteller says."""

import numpy as np
import pytest
import torch
from chapters import softmax

from lowrank_tutor import storyteller
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.figures.storyteller import counted


def head_rank(_chapter, *, layer, head, rank):
    """Cut by projections onto left singular vectors, and count the answers word by word."""
    sums, right = np.zeros(4), []

    def attend(q, k, v):
        n = q.shape[2]
        p = np.array(
            [
                softmax(np.where(np.tri(n) > 0, a @ b.T / 4, -np.inf))
                for a, b in zip(q[0], k[0], strict=True)
            ]
        )
        lead = np.linalg.eigh(p[head - 1] @ p[head - 1].T)[1][:, -rank:]
        cut = np.tril(lead @ (lead.T @ p[head - 1]))
        missed, values = cut - p[head - 1], v[0, head - 1]
        for place, x in enumerate((missed, p[head - 1], missed @ values, p[head - 1] @ values)):
            sums[place] += np.linalg.norm(x) ** 2
        p[head - 1] = cut
        return (p @ v[0])[None]

    for story in storyteller.stories(60, rng=1)[:40]:
        ids = [storyteller.encode(story.words)]
        attends = [attend if i == layer else storyteller.exact for i in (1, 2)]
        likeliest = storyteller.forward(ids, attend=attends)[0].argmax(axis=1)
        for i, job in enumerate(story.jobs):
            if job:
                said, wanted = storyteller.WORDS[likeliest[i - 1]], story.words[i]
                kinds = [storyteller.KINDS[kind] for kind in ("do", "does") if job == "agreement"]
                right.append(
                    said == wanted or any(said in kind and wanted in kind for kind in kinds)
                )
    return {
        "table": np.sqrt(sums[0] / sums[1]),
        "output": np.sqrt(sums[2] / sums[3]),
        "right": np.mean(right),
    }


EXPLORERS = {"head-rank": head_rank}


@pytest.mark.parametrize("size", [0.01, 0.5, 3.0])
def test_softmax_error(size):
    """No two rows come further apart than their logits; two equal weights come as far, nearly, by a
    small error.
    """
    g = np.random.default_rng(0)
    x = g.normal(scale=3, size=(500, 12))
    y = x + size * g.choice([-1, 1], size=x.shape)
    assert np.abs(softmax(x) - softmax(y)).sum(axis=1).max() <= size
    x, y = np.array([[0.0, 0.0]]), np.array([[size, -size]])
    assert np.abs(softmax(x) - softmax(y)).sum() == pytest.approx(np.tanh(size))


@pytest.mark.parametrize(
    ("cut", "error", "note", "color"),
    [
        (None, 0, "do", "gold"),
        (storyteller.sheets(6), 0.28, "la", "gold"),
        (storyteller.window(22), 0.29, "do", "black"),
    ],
)
def test_two_questions(cut, error, note, color):
    tune = "re la fa so mi do"
    words = f"<s> Ada wears gold . Ben wears red . {tune} . again : {tune} . Ada wears"
    ids = [storyteller.encode(words)]
    said = storyteller.forward(ids, attend=cut)[0].argmax(axis=1)
    assert [storyteller.WORDS[said[at]] for at in (words.split().index("again") + 6, -1)] == [
        note,
        color,
    ]
    exact, used = storyteller.tables(ids), storyteller.tables(ids, attend=cut)
    assert round(np.linalg.norm(used - exact) / np.linalg.norm(exact), 2) == error


def test_opening():
    """What the counts of the figure say of sheets, a window, and one layer alone."""
    window, sheets = counted()["window"][16], counted()["sheets"][6]
    assert window["job_far_fact"] == pytest.approx(0.5, abs=0.03)
    assert window["job_reason"] == window["job_copy"] == 1
    assert sheets["job_far_fact"] == pytest.approx(0.91, abs=0.01)
    assert min(sheets, key=sheets.get) == "job_copy"
    alone = counted()["layers"][2]
    assert alone["job_far_fact"] == 1
    needs = {job: round(alone[f"job_{job}"], 2) for job in ("copy", "new_fact", "most")}
    assert needs == {"copy": 0.68, "new_fact": 0.45, "most": 0.39}
    assert min(share for name, share in alone.items() if name[4:] not in needs) > 0.8


def test_heads_and_jobs(chapter):
    """With one sheet each: which heads lose no answer, which job is whose, and two that stand in
    for each other.
    """
    one = {
        (layer, head): chapter["one_cut"](layer, head, 1)
        for layer in (1, 2)
        for head in (1, 2, 3, 4)
    }
    spared = [place for place, (right, *_) in one.items() if right["all"] >= 0.99]
    assert spared == [(1, 1), (1, 2), (2, 1), (2, 4)]
    off = [one[place][2] for place in spared]
    assert [round(min(off), 2), round(max(off), 2)] == [0.68, 0.96]
    assert round(one[2, 2][0]["who"], 1) == 0.4
    assert [place for place, (right, *_) in one.items() if right["copy"] < 0.9] == [(1, 3), (2, 3)]
    assert all(right["far fact"] > 0.97 for right, *_ in one.values())

    def both(q, k, v):
        p = storyteller.exact.table(q, k)
        u, s, vt = np.linalg.svd(p[0, 2:])
        p[0, 2:] = np.tril((u[..., :1] * s[:, None, :1]) @ vt[:, :1])
        return p @ v

    assert round(chapter["graded"]([storyteller.exact, both])["far fact"], 2) == 0.09


def test_table_of_cuts(chapter):
    """Which jobs survive, and which do not."""
    by_job = chapter["by_job"]
    for job in ("agreement", "reference"):
        assert min(right[job] for right in by_job.values()) > 0.93
    assert (
        max(by_job[name]["far fact"] for name in ("window of 16", "newest 8, and means of 4"))
        < 0.35
    )
    assert by_job["8 sheets of each table"]["copy"] < 0.5
    assert set(by_job["none"].values()) == {1}
    latents = by_job["latents of 16"]
    assert min(latents, key=latents.get) == "reason"


def test_growth(chapter):
    """Eight sheets answer less of longer stories, and a quarter as many as words nearly all."""
    fixed, shared = chapter["growth"].values()
    assert fixed == sorted(fixed, reverse=True)
    assert min(shared) > 0.97


def test_directions_of_a_head(chapter):
    assert chapter["fewest"] == {"where to look": 6, "what to bring": 3}
    every = {pair: shares[-1] for pair, shares in chapter["pairs"].items()}
    assert every == {"where to look": 1, "what to bring": 1}


def test_linear_storyteller(chapter):
    q, k, v = torch.randn(
        3, 1, 4, 20, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    torch.testing.assert_close(chapter["linear"](q, k, v), linear_attention(q, k, v, causal=True))
    right = chapter["right"]
    assert right["reference"] == 1
    assert all(0.55 < right[job] < 0.65 for job in ("agreement", "reason", "most"))
    assert all(right[job] < 0.3 for job in ("copy", "far fact", "new fact", "who"))


def test_features_needed(chapter):
    """The longest pairs are those of head 3 in layer 2."""
    middle = chapter["middle"]
    assert middle.argmax() == 6
    assert middle[:4].max() < middle[4:].min()
    assert np.expm1(middle[6]) / 0.01 == pytest.approx(4.8e11, rel=0.01)
    assert round(chapter["performer"][256], 1) == 0.6
    spared = counted()["features"][256]
    assert max(spared[f"job_{job}"] for job in ("far_fact", "new_fact", "who", "copy")) < 0.6
    assert min(spared[f"job_{job}"] for job in ("agreement", "reference", "reason", "most")) > 0.85
