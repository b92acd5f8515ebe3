"""The numbers that were drawn again: every chapter's record is complete, and three new seeds agree
with it.
"""

import json

import pytest
from chapters import ROOT

from measure.draws.__main__ import CHAPTERS, SEEDS, drawn_again

RECORD = json.loads((ROOT / "lowrank_tutor" / "data" / "draws.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_new_seeds_agree(chapter):
    known = {row["name"]: row for row in RECORD["rows"] if row["chapter"] == chapter}
    new = {row["name"]: row for row in drawn_again(chapter, range(7, 10))}
    assert list(new) == list(known)
    for name, row in new.items():
        width = known[name]["largest"] - known[name]["least"]
        low, high = known[name]["least"] - width / 2, known[name]["largest"] + width / 2
        assert low <= row["median"] <= high, (name, row, known[name])


def test_record_has_seeds():
    assert RECORD["meta"]["seeds"] == [SEEDS[0], SEEDS[-1]]
    assert len(SEEDS) >= 20
