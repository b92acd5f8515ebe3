"""Figures to take hold of, which compute in the reader's browser.

A film (:func:`lowrank_tutor.kit.sliders.explore`) shows what Python drew beforehand. In an
instrument anything can be dragged, and a reader's own data can come in. Each function returns an
:class:`~lowrank_tutor.kit.canvas.Instrument`, which shows itself as the last line of a cell: one
block of HTML that needs no kernel, no library and no network. Where no script runs, and in print, a
picture of its first state stands there. An argument out of its range raises ``ValueError`` or
``TypeError``.

A figure is ``name.py`` (a function that chooses data, computes the first state with NumPy, and has
the sentences that describe a state), ``name.js`` (what it computes, then its drawings and controls,
and last the function that joins them; ``instrument.js`` of the kit says what that returns), and
``tests/figures/test_name.py``. What several figures share, and what they compute at length, lies in
``parts``.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.figures.album import album
    from lowrank_tutor.figures.arrows import arrows
    from lowrank_tutor.figures.attend import attend
    from lowrank_tutor.figures.budget import budget
    from lowrank_tutor.figures.card import card
    from lowrank_tutor.figures.cloud import cloud
    from lowrank_tutor.figures.dice import dice
    from lowrank_tutor.figures.downhill import downhill
    from lowrank_tutor.figures.error_against_loss import error_against_loss
    from lowrank_tutor.figures.moving import moving
    from lowrank_tutor.figures.score import score
    from lowrank_tutor.figures.shadow import shadow
    from lowrank_tutor.figures.spectrum import spectrum
    from lowrank_tutor.figures.storyteller import storyteller
    from lowrank_tutor.figures.tilt import tilt
    from lowrank_tutor.figures.two_cuts import two_cuts
    from lowrank_tutor.figures.windows import windows

__all__ = [
    "album", "arrows", "attend", "budget", "card", "cloud", "dice", "downhill",
    "error_against_loss", "moving", "score", "shadow", "spectrum", "storyteller", "tilt",
    "two_cuts", "windows",
]  # fmt: skip
