"""The storyteller: its language, its answers, its twin in NumPy, and cuts judged by plain loops."""

import base64
import json
import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch

import lowrank_tutor
from lowrank_tutor import storyteller as st
from lowrank_tutor.attention import linear_attention
from lowrank_tutor.storyteller.language import LONGEST

HELD_OUT = 31_337  # no seed of the training or of a record
DIRECTIONS = np.random.default_rng(1).standard_normal((24, 16))
CUTS = {
    "sheets": st.sheets(3), "window": st.window(4), "means": st.means(3),
    "features": st.features(DIRECTIONS),
    "projected": st.projected(DIRECTIONS[:6]), "signs": st.signs(DIRECTIONS), "top": st.top(2),
    "bits": st.bits(2),
    "index": st.index(2, DIRECTIONS[:3]), "unusual": st.unusual(4),
}  # fmt: skip


def test_stories_hold_what_they_promise():
    told = st.stories(800, rng=HELD_OUT)
    assert max(len(story.words) for story in told) <= LONGEST
    assert all(
        len(story.words) == len(story.jobs) and set(story.words) <= {*st.WORDS} for story in told
    )
    assert {job for story in told for job in story.jobs} == {"", *st.JOBS}
    for facts in (2, 8):
        for words, _ in st.stories(30, facts=facts, rng=facts):
            assert (
                len(
                    {
                        name
                        for name, verb in pairwise(words)
                        if verb in ("wears", "has") and name != "who"
                    }
                )
                == facts
            )
    assert st.stories(3, rng=5) == st.stories(3, rng=5)


def test_answers_follow_from_stories():
    """The generator marks what follows; `answer` finds it from the words alone, and nothing where
    nothing follows.
    """
    for words, jobs in st.stories(400, rng=HELD_OUT):
        for i, job in enumerate(jobs):
            word, found = st.answer(words[:i])
            if job:
                assert found == job
                assert word == words[i] or job == "agreement"
            else:
                assert found in ("", "copy"), (
                    "the second note of a tune follows from the first, but is not asked"
                )


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("Ada wears red . Ada wears", ("red", "far fact")),
        ("Ada wears red . now Ada wears pink . Ada wears", ("pink", "new fact")),
        ("Ada wears red . now Ada wears", ("", "")),
        ("Ben wears", ("", "")),
        ("Ada has milk . Ben has tea . who has tea ?", ("Ben", "who")),
        ("it rained . it snowed . it rained . mostly it", ("rained", "most")),
        ("it rained . it snowed . mostly it", ("", "")),
        ("the old cats near the dog", ("sleep", "agreement")),
        ("the old cat near the dogs", ("sleeps", "agreement")),
        ("the bees ate because", ("they", "reference")),
        ("the bees ate because they were", ("hungry", "reason")),
        ("do re mi fa . again : do re", ("mi", "copy")),
    ],
)
def test_answers_by_hand(story, expected):
    assert st.answer(story) == expected


def test_grade_by_hand():
    told = [st.Story(("<s>", "Ada", "wears", "red"), ("", "", "", "far fact"))] * 3
    told += [st.Story(("<s>", "cats", "sleep"), ("", "", "agreement"))]

    def always(word, ids, attend=None):
        return np.eye(len(st.WORDS))[np.full(np.shape(ids), st.WORDS.index(word))]

    assert st.grade(partial(always, "red"), told) == {"agreement": 0, "far fact": 1}
    assert st.grade(partial(always, "run"), told) == {"agreement": 1, "far fact": 0}, (
        "any verb of the right number"
    )
    assert st.grade(partial(always, "runs"), told) == {"agreement": 0, "far fact": 0}


def test_model_does_every_job():
    right = st.grade(st.forward, st.stories(60, rng=HELD_OUT))
    assert set(right) == {*st.JOBS}
    assert min(right.values()) >= 0.97


def test_weights_are_small_and_eight_bits():
    data = lowrank_tutor.__path__[0] + "/data/storyteller_weights.json"
    with open(data, "rb") as file:
        text = file.read()
    assert len(text) <= 200_000
    record = json.loads(text)
    numbers = np.frombuffer(base64.b64decode(record["numbers"]), np.int8)
    assert numbers.size == sum(math.prod(shape) for shape in record["shapes"].values()) == 95_616
    for row in st.trained_weights()["layers.1.down.weight"]:
        steps = row / (np.abs(row).max() / 127)
        assert steps == pytest.approx(np.rint(steps), abs=1e-3)
    st.trained_weights().clear()
    with pytest.raises(ValueError, match="read-only"):
        st.trained_weights()["norm.weight"][0] = 0


@pytest.mark.parametrize("name", ["none", *CUTS])
def test_twin_is_the_model(name):
    model, cut = st.load(), CUTS.get(name)
    for words in [*(story.words for story in st.stories(6, rng=HELD_OUT)), ["<s>", "Ada"], ["<s>"]]:
        ids = model.encode(words)
        ours = model(ids, attend=cut).detach().numpy()
        assert st.forward(ids.numpy(), attend=cut) == pytest.approx(ours, abs=1e-4)
    if cut is None:
        assert model.tables(ids).numpy() == pytest.approx(st.tables(ids), abs=1e-5)


def keys_by_loops(name, q, k, i):
    """The keys that word i compares itself with, by place; the groups of `means` have one for each
    of their words.
    """
    seen = range(i + 1)
    if name == "window":
        return {j: k[j] for j in seen if j > i - 4}
    if name in ("top", "index"):
        w = np.eye(16) if name == "top" else DIRECTIONS[:3]
        return {j: k[j] for j in sorted(seen, key=lambda j: -(w @ q[i]) @ (w @ k[j]))[:2]}
    if name == "unusual":
        far = {j: -np.linalg.norm(k[j] - k[: j + 1].mean(axis=0)) for j in seen[:-2]}
        return {j: k[j] for j in [*sorted(far, key=far.get)[:2], *seen[-2:]]}
    if name == "projected":
        return {j: DIRECTIONS[:6].T @ (DIRECTIONS[:6] @ k[j]) / 6 for j in seen}
    if name == "signs":
        sides = {
            j: sum(w if w @ k[j] >= 0 else -w for w in DIRECTIONS) / len(DIRECTIONS) for j in seen
        }
        return {
            j: math.sqrt(math.pi / 2) * np.linalg.norm(k[j]) * side for j, side in sides.items()
        }
    if name == "bits":
        steps = {j: np.ptp(k[j]) / 3 for j in seen}
        return {j: k[j].min() + np.round((k[j] - k[j].min()) / steps[j]) * steps[j] for j in seen}
    if name == "means" and i > 1:
        groups = [range(g * (i + 1) // 3, (g + 1) * (i + 1) // 3) for g in range(3)]
        return {j: k[list(group)].mean(axis=0) for group in groups for j in group}
    return {j: k[j] for j in seen}


def table_by_loops(name, q, k):
    """The table of a small head, word by word, from what the docstrings say."""
    table = np.zeros((len(q), len(q)))
    for i in range(len(q)):
        powers = {j: math.exp(q[i] @ key / 4) for j, key in keys_by_loops(name, q, k, i).items()}
        if name == "features":
            rows = [np.exp(DIRECTIONS @ x / 2 - x @ x / 8) for x in (q[i], *k)]
            powers = {j: rows[0] @ rows[1 + j] for j in range(i + 1)}
        for j, power in powers.items():
            table[i, j] = power / sum(powers.values())
    if name == "sheets":
        u, s, vt = np.linalg.svd(table)
        table = np.tril(sum(s[i] * np.outer(u[:, i], vt[i]) for i in range(3)))
    return table


@pytest.mark.parametrize("name", CUTS)
def test_cuts_by_loops(name):
    q, k = np.random.default_rng(2).standard_normal((2, 9, 16)) * 1.5
    assert CUTS[name].table(q, k) == pytest.approx(table_by_loops(name, q, k), abs=1e-10)


def test_cuts_that_keep_all_are_exact():
    q, k, v = np.random.default_rng(3).standard_normal((3, 2, 4, 12, 16))
    whole = 4 * np.eye(16)  # (4 I)^T (4 I) / 16 = I
    for cut in (st.sheets(12), st.window(12), st.means(12), st.top(12), st.projected(whole)):
        assert cut(q, k, v) == pytest.approx(st.exact(q, k, v), abs=1e-12)
    assert st.bits(16)(q, k, v) == pytest.approx(st.exact(q, k, v), abs=1e-3)


def test_scores_and_latents_are_cut_to_their_rank():
    weights = st.trained_weights()
    ids = [st.encode(st.stories(1, rng=HELD_OUT)[0].words)]
    assert st.forward(ids, weights=st.cut_scores(weights, 16)) == pytest.approx(
        st.forward(ids), abs=1e-7
    )
    assert st.forward(ids, weights=st.cut_latents(weights, 64)) == pytest.approx(
        st.forward(ids), abs=1e-7
    )
    cut = st.cut_scores(weights, 5)
    for layer in ("layers.0", "layers.1"):
        for head in range(4):
            rows = slice(16 * head, 16 * head + 16)
            before, after = (
                w[f"{layer}.q.weight"][rows].T @ w[f"{layer}.k.weight"][rows]
                for w in (weights, cut)
            )
            s = np.linalg.svd(before, compute_uv=False)
            assert np.linalg.matrix_rank(after, tol=1e-8) == 5
            assert np.linalg.norm(before - after) == pytest.approx(np.linalg.norm(s[5:]))
    both = [
        np.concatenate([w["layers.1.k.weight"], w["layers.1.v.weight"]])
        for w in (weights, st.cut_latents(weights, 9))
    ]
    s = np.linalg.svd(both[0], compute_uv=False)
    assert np.linalg.norm(both[0] - both[1]) == pytest.approx(np.linalg.norm(s[9:]))
    axis = np.zeros((64, 64))
    axis[7, 7] = 1  # inputs along one axis alone: one number is enough
    one = st.cut_latents(weights, 1, {"layers.0": axis, "layers.1": axis})
    assert one["layers.0.v.weight"][:, 7] == pytest.approx(weights["layers.0.v.weight"][:, 7])
    assert np.delete(one["layers.0.v.weight"], 7, axis=1) == pytest.approx(0)


def test_training_repeats_and_learns():
    ids = torch.tensor([st.encode(st.stories(1, rng=HELD_OUT)[0].words)])

    def loss(steps, seed):
        logits = st.train(steps, rng=seed)(ids)
        return torch.nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:]).item()

    before = torch.get_rng_state()
    assert loss(2, 1) == loss(2, 1) != loss(2, 2)
    assert loss(20, 1) < loss(1, 1) - 0.5
    assert torch.equal(torch.get_rng_state(), before)


def test_attention_of_ones_own():
    """Three lines of a notebook: any function of q, k, and v, for all layers or one for each."""
    told, model = st.stories(8, rng=HELD_OUT), st.load()
    alone = st.grade(model, told, attend=lambda q, k, v: linear_attention(q, k, v, causal=True))
    assert alone["far fact"] < 0.7
    exact = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True)
    assert st.grade(model, told, attend=[exact, st.exact]) == st.grade(model, told)
