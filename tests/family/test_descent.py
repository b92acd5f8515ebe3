"""The loop that two factorizations share, on losses written down by hand."""

import numpy as np
import pytest

from lowrank_tutor.family.descent import Descent, descend


def halve(begun, enough, max_sweeps):
    """Descend by losses of 16, 8, 4, 2, 1, ..., with gains of 8, 4, 2, 1."""
    return descend(begun, lambda p, q: (p / 2, q), lambda p, q: p[0], enough, max_sweeps)


START = Descent((np.array([16.0]), None), [16.0])


def test_stops_at_small_gains():
    stopped = halve(START, lambda before: 2.0, 9)
    assert (stopped.losses, stopped.loss, stopped.settled, stopped.factors[0][0]) == ([16, 8, 4, 2], 2, True, 2)
    assert halve(START, lambda before: 1.999, 9).losses == [16, 8, 4, 2, 1]
    assert halve(START, lambda before: before / 2, 9).losses == [16, 8]  # told the loss before the sweep


def test_continues_and_counts_sweeps():
    none = halve(START, lambda before: 0.0, 0)
    assert (none.losses, none.settled, none.factors[0][0]) == ([16], False, 16)
    cut = halve(START, lambda before: 0.0, 2)
    assert (cut.losses, cut.settled, cut.factors[0][0]) == ([16, 8, 4], False, 4)
    further = halve(cut, lambda before: 0.0, 3)
    assert (further.losses, further.settled, further.factors[0][0]) == ([16, 8, 4, 2], False, 2)
    assert (START.losses, cut.losses) == ([16], [16, 8, 4])


@pytest.mark.parametrize("factor", [1.0, 1.5, np.nan])
def test_useless_sweep_is_dropped(factor):
    found = descend(START, lambda p, q: (p * factor, q), lambda p, q: p[0], lambda _: 0.0, 5)
    assert (found.factors, found.losses, found.settled) == (START.factors, [16.0], True)
