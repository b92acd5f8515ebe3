"""Figures to take hold of, which compute in the reader's browser.

A film (:func:`lowrank_tutor.explore.explore`) shows what Python drew beforehand. In an instrument anything can be
dragged, and a reader's own data can come in. Each function returns an :class:`Instrument`, which shows itself as the
last line of a cell: one block of HTML that needs no kernel, no library and no network. Where no script runs, and in
print, a picture of its first state stands there. An argument out of its range raises ``ValueError`` or ``TypeError``.

An instrument is ``name.py`` (a function that chooses data and words, and computes the first state with NumPy),
``name.js`` (one function that draws; ``instrument.js`` says what it returns, ``stage.js`` and ``controls.js`` what it
draws with, ``linalg.js`` and ``background.js`` what it computes with) and ``tests/instruments/test_name.py``. A script
that would hold several ideas is split into ``parts``, which ``name.py`` lists.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.instruments.album import album
    from lowrank_tutor.instruments.arrows import arrows
    from lowrank_tutor.instruments.attend import attend
    from lowrank_tutor.instruments.card import card
    from lowrank_tutor.instruments.cloud import cloud
    from lowrank_tutor.instruments.dice import dice
    from lowrank_tutor.instruments.draw_first import draw_first
    from lowrank_tutor.instruments.instrument import Instrument
    from lowrank_tutor.instruments.score import score
    from lowrank_tutor.instruments.shadow import shadow
    from lowrank_tutor.instruments.sheets import sheets
    from lowrank_tutor.instruments.spectrum import spectrum
    from lowrank_tutor.instruments.tilt import tilt
    from lowrank_tutor.instruments.votes import votes
    from lowrank_tutor.instruments.windows import windows

__all__ = [
    "Instrument", "album", "arrows", "attend", "card", "cloud", "dice", "draw_first", "score", "shadow", "sheets",
    "spectrum", "tilt", "votes", "windows",
]  # fmt: skip
__dir__ = __all__.copy  # completion offers no more than that
