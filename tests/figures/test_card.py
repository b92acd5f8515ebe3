"""What fits on cards: the script's counts are the package's, for the whole table and for what readers paste."""

import json
import re

import numpy as np
import pytest
from chapters import ROOT

from lowrank_tutor._gpus import GPUS
from lowrank_tutor.caches import published_caches, read_config, serve
from lowrank_tutor.figures import card

FIGURE = card
PASTED = json.loads((ROOT / "tests" / "configurations.json").read_text("utf-8"))
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def test_states_match_package(hand):
    """Every model of the table and every configuration, with other settings each time, number for number."""
    rng = np.random.default_rng(0)
    pasted = {
        name: each | {"pasted": json.dumps(each["config"])}
        for name, each in PASTED["configs"].items()
    }
    pasted = {
        name: {part: each[part] for part in ("pasted", "billions")} for name, each in pasted.items()
    }
    states = [
        {"model": name if name not in pasted else "pasted", **pasted.get(name, {}), "gpu": str(rng.choice(list(GPUS))),
         "cards": int(rng.integers(1, 17)), "split": split, "n": 2**10 * int(rng.integers(1, 1025)),
         "weight_bits": int(rng.choice([16, 8, 4])), "cache_bits": int(rng.choice([16, 8, 4])),
         "share": int(rng.integers(50, 101))}
        for name in (*published_caches(), *pasted) for split in ("tensor", "data", "tokens")
    ]  # fmt: skip

    def judge(seen):
        state = dict(seen.call("state"))
        name, text, billions, share = (
            state.pop(part) for part in ("model", "pasted", "billions", "share")
        )
        model = (
            read_config(json.loads(text)) if name == "pasted" else published_caches()[name].model
        )
        served = serve(
            model, **state, share=share / 100, billions=billions if name == "pasted" else None
        )
        shown, table = seen.shown(), seen.call("table")
        assert [shown["weights"], shown["cache"], shown["chats"]] == pytest.approx(served[:3])
        assert shown["speed"] == pytest.approx(served.tokens_per_second, abs=1)
        for line, own in zip(table["lines"], served.lines[:4], strict=True):
            assert NUMBER.sub("#", line) == NUMBER.sub("#", own)
            values = (
                [float(word.replace(",", "")) for word in NUMBER.findall(each)]
                for each in (line, own)
            )
            assert next(values) == pytest.approx(next(values), abs=0.011)
        assert table["unknown"] == list(model.unknown)
        assert served.lines[4:] == (
            f"not read, though they may matter: {', '.join(model.unknown)}",
        ) * bool(model.unknown)
        assert sorted(map(sorted_items, table["parts"])) == sorted(map(sorted_items, model.parts))

    hand.tour(states, judge)


def sorted_items(part):
    return sorted(part.items())


def test_paste(hand):
    """Nonsense gets its sentence, loses nothing, and runs nothing; a configuration is counted."""
    hand.set(model="DeepSeek-V3", gpu="H200", weight_bits=8)
    hand.figure.get_by_text("Paste a config.json").click()
    area, size = hand.figure.locator("textarea"), hand.figure.get_by_label("weights, in billions")
    before = hand.call("state")
    size.fill("8")
    for text, message in {"not { json <b>": "config must be JSON", **PASTED["nonsense"]}.items():
        area.fill(text)
        hand.button("Read it").click()
        assert hand.said(message.split(", got")[0])
        assert (area.input_value(), hand.call("state")) == (text, before)
    assert hand.figure.locator("img[src=x], b").count() == 0
    config = PASTED["configs"]["letters"]["config"]
    area.fill(json.dumps(config))
    size.fill("many")
    hand.button("Read it").click()
    hand.said("billions must be")
    size.fill("1")
    hand.button("Read it").click()
    hand.said("Fields that may matter, and are not counted: mamba_chunks_kept.")
    assert hand.call("state")["model"] == "pasted"
    hand.figure.get_by_label("model", exact=True).select_option("Kimi-K3")
    hand.figure.get_by_label("card", exact=True).select_option("T4")
    hand.said("The weights alone are too large.")
    hand.figure.get_by_role("radio", name="by tokens").check()
    assert (hand.call("state")["gpu"], hand.call("state")["split"]) == ("T4", "tokens")
