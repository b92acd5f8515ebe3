"""Caches: the chapter's figures, what it cuts, rounds, and drops, and the keys that stand still."""

import math

import numpy as np
import pytest
import torch
from chapters import share

from lowrank_tutor import storyteller
from lowrank_tutor.caches import kv_cache_numbers
from lowrank_tutor.figures.storyteller import TALES, counted, measured
from lowrank_tutor.storyteller.model import causal_attention
from measure.training.storyteller_cuts import short_stories


def four_caches(chapter, *, tokens, keep):
    """Count by the package: a model of one layer, for each of the rows that stay."""
    rows = min(tokens, 6) if keep == "the newest 6" else tokens
    one = {"heads": 16, "width": 8}, {"groups": 2, "width": 8}, {"groups": 1, "width": 8}
    counts = [kv_cache_numbers(1, **how) for how in (*one, {"latent": 32, "rotary": 4})]
    return dict(zip(("MHA", "GQA", "MQA", "MLA"), (rows * each for each in counts), strict=True))


def test_three_cuts_at_twelve(chapter):
    """By eigenvectors, not an SVD: the cut for the answers' use answers best, but isn't nearest."""
    weights, inputs, found = dict(storyteller.trained_weights()), chapter["INPUTS"], {}
    for cut in chapter["cuts"]:
        missed, size, cut_weights = 0.0, 0.0, dict(weights)
        for i in range(2):
            names = [f"layers.{i}.{part}.weight" for part in "kv"]
            both = np.concatenate([weights[name] for name in names])
            moment = np.eye(64) if cut == "plain" else chapter["cuts"][cut][f"layers.{i}"]
            axes = np.linalg.eigh(both @ moment @ both.T)[1][:, -12:]
            changed = axes @ axes.T @ both
            missed += ((inputs[i] @ (changed - both).T) ** 2).sum()
            size += ((inputs[i] @ both.T) ** 2).sum()
            cut_weights |= dict(zip(names, np.split(changed, 2), strict=True))
        found[cut] = math.sqrt(missed / size), share(chapter["told"], weights=cut_weights)
        mine = (
            chapter["off_by"](inputs, 12, cut),
            chapter["right_by_job"](12, cut)["all"],
        )
        assert mine == pytest.approx(found[cut], abs=1e-6), cut
    by_use = found["as answers use it"]
    assert by_use[1] == max(right for _, right in found.values())
    assert by_use[0] > min(error for error, _ in found.values())


EXPLORERS = {"four-caches": four_caches}


@pytest.fixture(scope="module")
def short():
    """The 200 stories that the live figure counts."""
    return short_stories()


def test_storyteller_in_few_bits(short):
    """Scales of KIVI, no large entries, and weights in fewer bits than they are stored in."""

    assert [round(counted()["bits"][k]["answered"], 2) for k in (2, 3)] == [0.96, 1]
    assert measured(TALES["far fact"], "bits", 1)["says"] == "soup"

    keys = []
    for story in short[:40]:
        storyteller.forward(
            [storyteller.encode(story.words)],
            attend=lambda q, k, v: keys.append(k[0]) or storyteller.exact(q, k, v),
        )
    for layer in (keys[::2], keys[1::2]):
        sizes = np.sqrt((np.concatenate(layer, axis=1) ** 2).mean(axis=1))
        assert sizes.max() < 2 * np.median(sizes)


def test_freedoms(chapter):
    """A mean and a scale are different ills."""
    plain, centered, turned, divided, by_entry = zip(*chapter["by_ill"].values(), strict=True)
    assert min(plain[0], *by_entry, *centered[:2], divided[0], divided[2], turned[0]) > 0.95
    assert max(plain[1:] + turned[1:] + centered[2:] + divided[1:2]) < 0.8
    assert [round(plain[i], 2) for i in (1, 2)] == [0.75, 0.4]


def test_words_dropped(chapter):
    """Evict head by head, in plain loops."""
    shares = {
        name: [round(right, 2) for right in each] for name, each in chapter["by_policy"].items()
    }
    assert shares["unusual keys"] == [0.84, 0.99, 1]
    assert [shares["most heard so far"][0], shares["newest"][0]] == [0.43, 0.47]
    assert round(counted()["top"][6]["answered"], 3) == 0.998
    story = chapter["told"][0].words[:20]
    exact = storyteller.tables([storyteller.encode(story)])[0, 0]
    cuts = storyteller.tables([storyteller.encode(story)], attend=chapter["most_heard"](8))[0, 0]
    for table, cut in zip(exact, cuts, strict=True):
        kept, heard = [], np.zeros(20)
        for i, row in enumerate(table):
            kept.append(i)
            row = np.array([row[j] if j in kept else 0 for j in range(20)])
            heard += row / row.sum()
            np.testing.assert_allclose(cut[i], row / row.sum(), atol=1e-9)
            if len(kept) > 7:
                kept.remove(min(kept, key=lambda j: heard[j]))


def test_words_chosen_by_an_index():
    """As many words as the text says are the fewest for nine right answers in ten."""
    for cut, words, rounded in (("index", 10, 0.92), ("top", 4, 0.96)):
        answered = {k: row["answered"] for k, row in counted()[cut].items() if k}
        assert min(k for k, right in answered.items() if right >= 0.9) == words, cut
        assert round(answered[words], 2) == rounded


def test_index_by_hand(chapter):
    assert chapter["shares"].tolist() == pytest.approx([3 / 4, 1 / 4])
    assert [chapter["whole"] - chapter["latents"], chapter["latents"]] == [61 * 128, 61 * 576]
    assert chapter["fewer"] == pytest.approx(576 * 131_072 / (128 * 131_072 + 576 * 2048))


def test_use_of_words(chapter):
    """The use of the words of a story, one story at a time."""
    model = storyteller.load()
    starts = np.cumsum([0, *(len(story.words) for story in chapter["lessons"])])
    for i in (0, 7, 150):
        story, made, total = chapter["lessons"][i], [], 0

        def attend(q, k, v, made=made):
            made.append((k, v))
            return causal_attention(q, k, v)

        ids = storyteller.encode(story.words)
        logits = model([ids], attend=attend)[0].double()
        for at, sign in zip(
            chapter["place"][chapter["story"] == i],
            chapter["signs"][chapter["story"] == i],
            strict=True,
        ):
            assert story.jobs[at]
            row, word = logits[at - 1], ids[at]
            total += sign * (row[word] - torch.cat([row[:word], row[word + 1 :]]).logsumexp(0))
        slopes = torch.autograd.grad(total, [each for pair in made for each in pair])
        sizes = [slope.square().sum(dim=(0, 1, 3)) for slope in slopes]
        wanted = torch.stack([sizes[0] + sizes[1], sizes[2] + sizes[3]]).double()
        torch.testing.assert_close(
            chapter["use"][:, starts[i] : starts[i + 1]], wanted, rtol=1e-2, atol=1e-5
        )


def test_whose_use(chapter):
    """What the page says of the three cuts."""
    right = {
        n: [chapter["right_by_job"](n, cut)["all"] for cut in chapter["cuts"]]
        for n in (8, 12, 16, 20, 24)
    }
    errors = {
        n: [chapter["off_by"](chapter["INPUTS"], n, cut) for cut in chapter["cuts"]] for n in right
    }
    assert all(max(each) == each[2] for each in right.values())
    assert all(min(each) == each[1] for each in errors.values())
    assert [right[n][1] < right[n][0] for n in right] == [True, True, True, False, False]
    whole, *which = zip(*chapter["errors"].values(), strict=True)
    assert whole[1] == min(whole)
    assert all(each[1] == max(each) for each in which)
    assert (
        share(chapter["told"], weights=storyteller.cut_latents(storyteller.trained_weights(), 32))
        == 1
    )
