"""The counts of words: of two texts by hand, and what the stored file promises to chapter 4."""

import json

import numpy as np
from chapters import ROOT

from measure.draws.help_words import PAGES, WORDS, counted


def test_counted_by_hand():
    texts = {"short": "b", "long": "A b, b; c1 a_b", "middle": "C a d"}
    known, rows = counted(texts, pages=2, words=3)
    assert known == ["a", "b", "c"], "b of the short text does not count; d comes after c"
    assert rows == [
        {"page": "long", "words": [0, 1, 2], "counts": [2, 3, 1]},
        {"page": "middle", "words": [0, 2], "counts": [1, 1]},
    ]


def test_stored_counts():
    path = ROOT / "lowrank_tutor" / "data" / "help_words.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    known, rows = stored["meta"]["words"].split(), stored["rows"]
    assert stored["meta"]["text"].endswith(stored["meta"]["versions"]["python"])
    assert len(set(known)) == len(known) == WORDS
    assert len({row["page"] for row in rows}) == len(rows) == PAGES
    total = np.zeros(WORDS, dtype=int)
    for row in rows:
        assert (np.diff(row["words"]) > 0).all(), row["page"]
        total[row["words"]] += row["counts"]
    assert (np.diff(total) <= 0).all(), "the most frequent word comes first"
    assert path.stat().st_size < 150_000
