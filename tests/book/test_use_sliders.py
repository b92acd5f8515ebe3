"""Use the sliders in your own book: what the page shows, and what it says."""

import numpy as np
from chapters import ROOT, run

from lowrank_tutor.explore.page import MAX_BYTES
from lowrank_tutor.explore.sliders import MAX_FRAMES, MAX_POSITIONS

PAGE = ROOT / "book" / "use-sliders.md"
TEXT = PAGE.read_text(encoding="utf-8")


def oscillator(_page, *, zeta):
    """The first turn after the start is half a period later, and as far below rest as the readout says."""
    w = (1 - zeta**2) ** 0.5
    half = np.pi / w
    height = np.exp(-zeta * half) * (np.cos(w * half) + zeta / w * np.sin(w * half))
    return {"period": 2 * half, "overshoot": -height}


EXPLORERS = {"oscillator": oscillator}


def test_the_sentence_is_written_as_the_page_writes_it():
    explorer = run(PAGE).explorers["oscillator"]
    sentence = "with damping 0.2. It swings 52.7% beyond rest, with a period of 6.41 s."
    assert explorer.sentence(zeta=0.2).endswith(sentence)
    assert explorer.plays == "zeta"


def test_limits_are_those_of_the_program():
    assert f"2 to {MAX_POSITIONS} positions" in TEXT
    assert f"at most {MAX_FRAMES} frames" in TEXT
    assert f"at most {MAX_BYTES:,} bytes" in TEXT
