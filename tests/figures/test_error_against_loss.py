"""The plane of error and loss: numbers are means of stored rows, and costs lie between them."""

import json
from importlib.resources import files

import numpy as np
import pytest

from lowrank_tutor.figures import error_against_loss

FIGURE = error_against_loss
STORED = json.loads(files("lowrank_tutor").joinpath("data/real_model.json").read_text("utf-8"))
ROWS = [row for row in STORED["rows"] if row["length"] == 256]
CUTS = ("sheets", "window", "window and first 4", "averages", "bits")
TEXTS = ("prose", "code", "help")


def mean(name, cut, setting, text):
    wanted = (cut, setting, text)
    found = [row[name] for row in ROWS if (row["cut"], row["setting"], row["text"]) == wanted]
    return float(np.mean(found))


def test_every_setting(hand):
    states = [
        {"cut": row["cut"], "setting": row["setting"], "text": row["text"]}
        for row in ROWS
        if row["cut"] in CUTS and row["seed"] == 0
    ]
    assert len({(state["cut"], state["text"]) for state in states}) == len(CUTS) * len(TEXTS)
    said = {(row["cut"], row["setting"]): row["text"] for row in STORED["continuations"]}

    def check(seen):
        state = {name: seen.call("state")[name] for name in ("cut", "setting", "text")}
        cut, setting, text = state.values()
        uncut = mean("loss", "none", None, text)
        error, loss = (mean(name, cut, setting, text) for name in ("error", "loss"))
        expected = {
            "error": pytest.approx(error, abs=1e-4),
            "loss": pytest.approx(loss, abs=1e-4),
        }
        assert seen.shown() == expected
        assert error_against_loss(**state).numbers == expected
        assert seen.call("table")["says"] == said[cut, setting]
        for other, cost in seen.call("table")["others"].items():
            rows = [row for row in ROWS if (row["cut"], row["text"]) == (other, text)]
            points = sorted(
                (mean("error", other, k, text), mean("loss", other, k, text))
                for k in {row["setting"] for row in rows}
            )
            x, y = np.transpose([(0, uncut), *points])
            assert cost == pytest.approx(np.interp(error, x, y) - uncut, abs=5e-3)

    hand.tour(states, check)
