"""The page *A real model*: its sentences hold in the stored study, or in every draw of it."""

import json
from importlib.resources import files

import numpy as np
import pytest

STUDY = json.loads(files("lowrank_tutor").joinpath("data/real_model.json").read_text("utf-8"))
TEXTS = ("prose", "code", "help")


def more(cut, setting, text, length=256):
    """More loss than uncut, by draw."""
    rows = [
        row
        for row in STUDY["rows"]
        if (row["cut"], row["setting"], row["text"]) == (cut, setting, text)
        and row["length"] == length
    ]
    assert [row["seed"] for row in rows] == list(range(len(rows))) != []
    return np.array([row["loss"] - row["uncut"] for row in rows])


SINK = ("window and first 4", 32)
# Cuts of which the first loses less, in every draw and on each set of texts, and by how much.
ORDERED = [
    (SINK, ("sheets", 8), 1.5),
    (SINK, ("bits", 3), 0),
    (("bits", 3), ("sheets", 16), 0),
    (SINK, ("window", 32), 1),
    (("window and first 1", 32), ("window", 32), 1),
    (("keys before rotation", 64), ("values", 64), 0),
    (("keys before rotation", 32), ("values", 32), 0),
    (("bits, shifted", 3), ("bits", 3), 0),
    (("bits, keys by channel", 3), ("bits", 3), 0),
    (("feed-forward, for inputs", 0.9), ("feed-forward, plain", 0.9), 5),
    (("window and first 4", 8), ("sheets", 8), 1),
    (("window and first 4", 16), ("sheets", 16), 0.9),
]


@pytest.mark.parametrize(("less", "greater", "by"), ORDERED, ids=str)
def test_order_in_every_draw(less, greater, by):
    for text in TEXTS:
        first, second = more(*less, text), more(*greater, text)
        rows = [r for r in STUDY["rows"] if (r["cut"], r["setting"]) in (less, greater)]
        if len({row["pieces"] for row in rows}) > 1:
            first, second = first.mean(), second.mean()
        assert (second - first > by).all(), text


def test_other_sentences():
    right = {(row["cut"], row["setting"]): row["right"] for row in STUDY["jobs"]}
    assert min(right["none", None].values()) >= 0.9
    sheets, window = right["sheets", 8], right["window and first 4", 8]
    assert sheets["copy"] > 0.75 > 0.05 >= window["copy"]
    assert sheets["new fact"] > window["new fact"] + 0.5
    assert [right[cut, 16]["new fact"] for cut in ("sheets", "window and first 4")] == [0.95, 0.31]
    for cut, setting, short, long in (
        ("sheets", 32, [0.7, 1.3, 1.0], [2.3, 3.1, 2.8]),
        ("bits", 3, [0.6, 0.9, 0.8], [0.7, 0.8, 0.8]),
        ("window and first 4", 32, [0.4, 0.6, 0.5], [0.6, 0.8, 0.6]),
    ):
        for length, costs in ((256, short), (1024, long)):
            found = [round(more(cut, setting, text, length).mean(), 1) for text in TEXTS]
            assert found == costs, (cut, length)
    for text in TEXTS:
        shifted, by_channel = (
            more(f"bits, {cut}", 3, text).mean() / more("bits", 3, text).mean()
            for cut in ("shifted", "keys by channel")
        )
        assert 0.4 < shifted < 0.6
        assert by_channel < 1 / 3
        keys, values = (more(cut, 64, text).mean() for cut in ("keys before rotation", "values"))
        assert values > 5 * keys
        assert abs(more("one vector off all keys", None, text)).max() < 1e-3
        others = [name for name in TEXTS if name != text]
        own = more("feed-forward, for inputs", 0.9, text).mean()
        foreign = [more(f"feed-forward, for inputs of {name}", 0.9, text).mean() for name in others]
        assert own < min(foreign) < max(foreign) < more("feed-forward, plain", 0.9, text).mean() / 2
