"""Figures that compute in the reader's browser.

A figure is a function that returns an :class:`Instrument`: Python chooses its data and words and
computes the first state, a script draws. ``instrument.js`` says what the script returns,
``stage.js`` and ``controls.js`` what it draws with. Where no script runs, and in print, a picture
of the first state stands there.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.kit.canvas.instrument import Instrument

__all__ = ["Instrument"]
