"""Tokens that drift together: places and distances are NumPy's."""

import numpy as np
import pytest

from lowrank_tutor.figures import drift

SIZES = (0.5, 3.0)
rng = np.random.default_rng(0)
TOKENS = rng.standard_normal((2, 2, 5, 6, 4)) * np.array([1, 0.5, 0.1, 1e-3, 1e-9])[:, None, None] + 1.0


@pytest.fixture(scope="module")
def hand(show):
    return show(drift(TOKENS, SIZES))


def test_states_match_numpy(hand):
    for at, size in enumerate(SIZES):
        _, _, directions = np.linalg.svd(TOKENS[at, 0, 0] - TOKENS[at, 0, 0].mean(0))
        for layers in (0, 1.3, 3, 4):
            shown = hand.set(layers=layers, size=size)
            low, share = int(layers), layers - int(layers)
            for panel, name in enumerate(("alone", "skips")):
                distances, places = [], []
                for layer in (low, min(4, low + 1)):
                    tokens = TOKENS[at, panel, layer]
                    from_mean = np.array([token - sum(tokens) / 6 for token in tokens])
                    distances.append(np.sqrt((from_mean**2).sum() / (tokens**2).sum()))
                    places.append(from_mean @ directions[:2].T / np.sqrt((tokens**2).sum()) * np.sqrt(6))
                assert shown[name] == pytest.approx(distances[0], rel=5e-3)
                found = np.array(hand.call("table")["dots"][panel])
                turned = found * np.sign((found * places[0]).sum(0))  # a direction has no sign
                assert turned == pytest.approx((1 - share) * places[0] + share * places[1], abs=3e-3)


def test_play_runs_to_the_end(hand):
    hand.set(layers=0, size=0.5)
    hand.figure.get_by_role("button", name="Play").click()
    hand.page.wait_for_function("(f) => f.instrument.state().layers === 4", arg=hand.figure.element_handle())
    hand.figure.get_by_label("layers", exact=True).fill("2")
    assert hand.call("state")["layers"] == 2
    hand.figure.get_by_label("3", exact=True).check()
    assert hand.call("state")["size"] == 3


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"layers": 5}, "layers"),
        ({"layers": -1}, "layers"),
        ({"size": 1.0}, "size"),
        ({"tokens": TOKENS[:1]}, "tokens"),
        ({"tokens": TOKENS[:, :, :1]}, "tokens"),
        ({"tokens": TOKENS * np.inf}, "tokens"),
    ],
)
def test_bad_arguments(hand, wrong, name):
    with pytest.raises(ValueError, match=f"^{name} must "):
        drift(**{"tokens": TOKENS, "sizes": SIZES, **wrong})
    if name != "tokens":
        with pytest.raises(Exception, match="must be"):
            hand.call("set", wrong)
