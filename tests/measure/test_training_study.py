"""The texts of the training study: what of the held-out part repeats the other, by hand and as chapter 6 says it."""

import json
import platform
import re

import pytest
import torch
from chapters import ROOT

from measure.training.training_study import repeated, texts


def as_tensor(text):
    return torch.tensor(list(text.encode()))


def test_repeated_by_hand():
    share = repeated(as_tensor("abcdefgh"), as_tensor("xxabcdyyzabc"), 3)
    assert share == 7 / 12, "abcd, which holds two passages of three, and abc"
    assert repeated(as_tensor("abcdefgh"), as_tensor("xxabcdyyzabc"), 4) == 4 / 12
    assert repeated(as_tensor("abc"), as_tensor("abc"), 4) == 0


def test_repeated_share():
    data = ROOT / "lowrank_tutor" / "data" / "training_study.json"
    meta = json.loads(data.read_text(encoding="utf-8"))["meta"]
    if meta["text"] != f"pydoc_data.topics of Python {platform.python_version()}":
        pytest.skip(f"the study read the {meta['text']}, whose words change with the version")
    page = (ROOT / "book" / "06-attention.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"held-out text \((\d+)% of it repeats the training text\)", page)
    assert round(100 * repeated(*texts(), meta["sizes"]["n"])) == int(told)
