"""Shortened vectors: what is fitted, the record, and a short run."""

import json
import sys

import numpy as np
import torch
from torch.nn import functional as F

from measure.harness import DATA
from measure.training import embeddings as study
from measure.training.converted_encoder import Page


def test_ways_by_hand():
    """Four documents on the second and third of four axes: two principal axes tell them apart, two numbers but half."""
    found = torch.eye(4)[[1, 2, 1, 2]] * torch.tensor([1.0, 1, -1, -1])[:, None] + torch.tensor(
        [0, 0, 0, 0.5]
    )
    shares = study.shortened(2, F.normalize(found), F.normalize(found), F.normalize(found), 0)
    assert shares["PCA"] == 1
    assert shares["truncation"] == 0.5


def test_training_by_prefixes():
    """A nested encoder knows its pages by their first eight numbers."""
    pages = [
        Page("", "", f"{word} {word}s", f"{word}s and {word}")
        for word in ("cat", "dog", "owl", "fox")
    ]
    model = study.train(
        2 * pages, (8, 384), 0, steps=60, size=4
    )  # words that stand on one page are not learned
    asked, found = (
        model([study.words(text) for text in each])
        for each in zip(*[page[2:] for page in pages], strict=True)
    )
    assert study.first(asked[:, :8], found[:, :8]) == 1
    assert study.words("It's Q_2 or 3.") == ["it", "s", "q", "2", "or", "3"]


def test_record():
    rows = json.loads((DATA / "embeddings.json").read_text(encoding="utf-8"))["rows"]
    assert [(row["encoder"], row["seed"]) for row in rows] == [
        (name, seed) for seed in range(study.SEEDS) for name in ("plain", "nested")
    ]
    plain, nested = rows[::2], rows[1::2]
    for k in ("64", "32"):
        cut = [np.mean([row[k]["truncation"] for row in each]) for each in (plain, nested)]
        assert (
            cut[0]
            < cut[1]
            < min(np.mean([row[k]["PCA"] for row in each]) for each in (plain, nested))
        )
    assert all(row["256"]["signs"] > max(row["32"].values()) for row in rows)


def test_short_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["embeddings", "--short"])
    assert study.main() == 0
    assert capsys.readouterr().out.count("'encoder'") == 3
