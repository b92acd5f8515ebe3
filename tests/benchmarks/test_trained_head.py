"""The sentence of chapter 6 was never trained on, and its heads follow a rule."""

import json

import numpy as np

from benchmarks import trained_head
from benchmarks.harness import DATA


def test_sentences_held_out():
    found = trained_head.texts()
    words = [*found.vocabulary, "?", "?"]
    train, held_out = (f" {' '.join(words[i] for i in part)} " for part in (found.train, found.held_out))
    assert found.sentences
    for sentence in found.sentences:
        assert f" {' '.join(sentence)} " not in train
        assert f" {' '.join(sentence)} " not in held_out


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
