"""First steps of low-rank updates: each is that of PyTorch's optimizers on the package's layer."""

import numpy as np
import pytest
import torch

from lowrank_tutor.caches import LoraLinear
from lowrank_tutor.figures import equal_steps

RANKS, BATCHES, SIZE = (1, 2, 4, 8, 16, 32, 64, 128), (1, 40), 128
OPTIMIZERS = {"descent": torch.optim.SGD, "Adam": torch.optim.Adam}


def moved(optimizer, r, batch, **settings):
    """How far one step moves the outputs of a batch: root mean square over six draws."""
    squares = []
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        x, errors = (torch.randn(batch, SIZE, generator=g, dtype=torch.float64) for _ in range(2))
        layer = LoraLinear(torch.nn.Linear(SIZE, SIZE, bias=False, dtype=torch.float64), r, generator=g, **settings)
        (layer(x) * errors).sum().backward()
        OPTIMIZERS[optimizer]([layer.b], lr=1e-3).step()
        squares.append(float((x @ layer.update().T).detach().square().mean()))
    return np.sqrt(np.mean(squares))


@pytest.fixture(scope="module")
def one():
    """By default alpha is r, so that the factor is 1."""
    steps = [[[moved(name, r, batch) for r in RANKS] for batch in BATCHES] for name in OPTIMIZERS]
    return equal_steps(*steps, BATCHES)


@pytest.fixture(scope="module")
def hand(show, one):
    return show(one)


def test_all_states_match_optimizers(hand, one):
    choices = one.data["choices"]
    states = [
        {"optimizer": optimizer, "scaling": scaling, "tokens": tokens}
        for optimizer in OPTIMIZERS
        for scaling in choices["scaling"]
        for tokens in BATCHES
    ]

    def judge(seen):
        optimizer, scaling, tokens = seen.call("state").values()
        expected = np.array([moved(optimizer, r, tokens, alpha=8, scaling=scaling) for r in RANKS])
        lengths = np.array(seen.call("table")["lengths"])
        assert lengths / lengths[3] == pytest.approx(expected / expected[3], rel=1e-5)
        assert seen.shown() == {"ratio": pytest.approx(expected.max() / expected.min(), rel=1e-5)}

    hand.tour(states, judge)


def test_switches(hand, one):
    hand.set(**one.state)
    assert hand.shown()["ratio"] > 50
    hand.figure.get_by_label("Adam").check()
    hand.said("about equal")
    assert hand.shown()["ratio"] < 1.5
    hand.figure.get_by_label("\N{GREEK SMALL LETTER ALPHA}/√r").check()
    hand.said("longer first step")
    hand.figure.get_by_label("40", exact=True).check()
    assert hand.call("state") == {"optimizer": "Adam", "scaling": "alpha/sqrt(r)", "tokens": 40}


@pytest.mark.parametrize(
    "wrong",
    [
        {"descent": [[1] * 7]},
        {"adam": [[0] * 8]},
        {"adam": [[1] * 8] * 2},
        {"optimizer": "SGD"},
        {"scaling": "r"},
        {"tokens": 2},
        {"batches": [1.5]},
        {"batches": [0]},
    ],
    ids=str,
)
def test_bad_arguments(hand, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name} must "):
        equal_steps(**{"descent": [[1] * 8], "adam": [[1] * 8], "batches": [1], **wrong})
    if name in hand.call("state"):
        with pytest.raises(Exception, match="must be one of"):
            hand.call("set", wrong)
