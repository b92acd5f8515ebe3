"""The sentence that chapter 6 shows was never trained on, and no head was chosen for its looks."""

import json

import numpy as np
import torch

from benchmarks import trained_head
from benchmarks.harness import DATA


def test_sentence_choice():
    short, twice = "One two three four five six.", "The cat and the dog ran over many green hills."
    marked, shown = (
        "It has a comma, so that it is not of plain words.",
        "It says only what a plain sentence can say here.",
    )
    text = f"Begin. {short} {twice} {marked} {shown} {shown} End."
    assert trained_head.sentences_of(text) == [shown[:-1].lower().split()]


def test_sentences_held_out():
    found = trained_head.texts()
    words = [*found.vocabulary, "?", "?"]
    train, held_out = (f" {' '.join(words[i] for i in part)} " for part in (found.train, found.held_out))
    assert found.sentences
    for sentence in found.sentences:
        assert f" {' '.join(sentence)} " not in train
        assert f" {' '.join(sentence)} " not in held_out


def test_hidden_share():
    data = torch.arange(500) % trained_head.WORDS
    x, shown, chosen = trained_head.draw(data, 32, 200, torch.Generator().manual_seed(0))
    assert not (shown != x)[~chosen].any()
    assert abs(chosen.float().mean() - trained_head.CHOSEN) < 0.02
    assert abs((shown == trained_head.MASK)[chosen].float().mean() - trained_head.HIDDEN) < 0.04


def test_heads_follow_rule():
    data = json.loads((DATA / "trained_head.json").read_text(encoding="utf-8"))
    meta, entropy = data["meta"], np.array(data["meta"]["entropy"])
    assert [row["layer"] for row in data["rows"]] == [1, trained_head.LAYERS]
    for row in data["rows"]:
        assert entropy[row["layer"] - 1].argmin() == row["head"] - 1
        np.testing.assert_allclose(np.sum(row["weights"], axis=1), 1, atol=1e-3)
        assert np.shape(row["weights"]) == (len(meta["sentence"]),) * 2
    assert len(meta["sentence"]) <= 12
    assert trained_head.PRONOUNS & set(meta["sentence"])
    assert meta["validation"]["loss"] < meta["validation"]["loss_by_frequency"]
