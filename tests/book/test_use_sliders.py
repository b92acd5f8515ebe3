"""Use the sliders in your own book: a judge of its slider, and the sentence that goes with it."""

import numpy as np
from chapters import ROOT, run

PAGE = ROOT / "book" / "use-sliders.md"


def oscillator(_page, *, zeta):
    """The first turn after the start is half a period later, and as far below rest as the readout
    says.
    """
    w = (1 - zeta**2) ** 0.5
    half = np.pi / w
    height = np.exp(-zeta * half) * (np.cos(w * half) + zeta / w * np.sin(w * half))
    return {"period": 2 * half, "overshoot": -height}


EXPLORERS = {"oscillator": oscillator}


def test_sentence():
    explorer = run(PAGE).explorers["oscillator"]
    sentence = "with damping 0.2. It swings 52.7% beyond rest, with a period of 6.41 s."
    assert explorer.sentence(zeta=0.2).endswith(sentence)
    assert explorer.plays == "zeta"
