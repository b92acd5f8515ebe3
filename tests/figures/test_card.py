"""What fits on cards: the script's counts are the package's, for the whole table and for what readers paste."""

import json
import re

import numpy as np
import pytest
from chapters import ROOT

from lowrank_tutor._gpus import GPUS, Gpu
from lowrank_tutor.caches import published_caches, read_config, serve
from lowrank_tutor.caches.serving import CACHE_BITS, WEIGHT_BITS
from lowrank_tutor.figures import card

FIGURE = card
PASTED = json.loads((ROOT / "tests" / "configurations.json").read_text("utf-8"))
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def test_states_match_package(hand):
    """Every model of the table and every configuration, with other settings each time, number for number."""
    rng = np.random.default_rng(0)
    pasted = {
        name: {"pasted": json.dumps(each["config"]), "billions": each["billions"]}
        for name, each in PASTED["read"].items()
    }
    own = [48, 864, 362]
    states = [
        {"model": name if name not in pasted else "pasted", **pasted.get(name, {}), "own": own,
         "gpu": str(rng.choice([*GPUS, "own"])), "cards": int(rng.integers(1, 17)), "split": split,
         "n": 2**10 * int(rng.integers(1, 1025)), "weight_bits": float(rng.choice(WEIGHT_BITS)),
         "cache_bits": int(rng.choice(CACHE_BITS)), "share": int(rng.integers(50, 101)),
         "other": int(rng.integers(0, 9)) / 2}
        for name in (*published_caches(), *pasted) for split in ("tensor", "data", "tokens")
    ]  # fmt: skip

    def judge(seen):
        state = dict(seen.call("state"))
        name, text, billions, share, gpu, (memory, bandwidth, flops) = map(
            state.pop, ("model", "pasted", "billions", "share", "gpu", "own")
        )
        row = published_caches().get(name)
        model, total = (row.model, None) if row else (read_config(json.loads(text)), billions)
        if gpu == "own":
            gpu = Gpu(1e12 * flops, 1e9 * bandwidth, 1e9 * memory, (0, 0), "")
        served = serve(model, gpu, **state, share=share / 100, billions=total)
        shown, table = seen.shown(), seen.call("table")
        assert [shown["weights"], shown["cache"], shown["chats"]] == pytest.approx(served[:3])
        assert shown["speed"] == pytest.approx(served.tokens_per_second, abs=1)
        for line, counted in zip(table["lines"], served.lines, strict=True):
            assert NUMBER.sub("#", line) == NUMBER.sub("#", counted)
            found, right = (
                [float(word.replace(",", "")) for word in NUMBER.findall(each)]
                for each in (line, counted)
            )
            assert found == pytest.approx(right, abs=0.011)
        assert sorted(map(sorted_items, table["parts"])) == sorted(map(sorted_items, model.parts))

    hand.tour(states, judge)


def sorted_items(part):
    return sorted(part.items())


def test_paste(hand):
    """What is refused gets its sentence, loses nothing, and runs nothing; a configuration is counted."""
    hand.set(model="DeepSeek-V3", gpu="H200", weight_bits=8)
    hand.figure.get_by_text("Paste a config.json").click()
    area, size = hand.figure.locator("textarea"), hand.figure.get_by_label("weights, in billions")
    before = hand.call("state")
    size.fill("8")
    for text, message in [["not { json <b>", "config must be JSON"], *PASTED["refused"]]:
        area.fill(text)
        hand.button("Read it").click()
        hand.said(message)
        assert (area.input_value(), hand.call("state")) == (text, before)
    assert hand.figure.locator("img[src=x], b").count() == 0
    area.fill(json.dumps(PASTED["read"]["states"]["config"]))
    size.fill("many")
    hand.button("Read it").click()
    hand.said("billions must be")
    size.fill("4")
    hand.button("Read it").click()
    hand.said("The pasted model")
    assert {part.get("state") for part in hand.call("table")["parts"]} == {32 * 128 * 64, None}
    for name, number in {"layers": 32, "groups": 8, "width": 128}.items():
        hand.figure.get_by_label(name, exact=True).fill(str(number))
    hand.button("Enter them").click()
    hand.said("The pasted model")
    assert hand.call("table")["parts"] == [{"layers": 32, "groups": 8, "width": 128, "heads": 8}]
    hand.figure.get_by_label("model", exact=True).select_option("DeepSeek-V3.2")
    hand.figure.get_by_label("card", exact=True).select_option("T4")
    hand.said("The weights alone are too large.")
    hand.figure.get_by_role("radio", name="by tokens").check()
    assert (hand.call("state")["gpu"], hand.call("state")["split"]) == ("T4", "tokens")
    hand.figure.get_by_label("card", exact=True).select_option("own")
    hand.figure.get_by_label("memory, GB").fill("1000")
    hand.button("Use this card").click()
    hand.said("Chats of")
    assert hand.call("state")["own"] == [1000, 2039, 312]
