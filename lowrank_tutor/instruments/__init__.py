"""What happens if I take hold of it? Figures that compute on the page, on a kernel's output or from a file.

A film (:func:`lowrank_tutor.explore.explore`) shows what Python drew beforehand. An instrument computes in the
reader's browser, so anything in it can be dragged and a reader's own data can come in. Each function returns an
:class:`Instrument`, which shows itself as the last line of a cell: one block of HTML that needs no kernel, no library
and no network. Where no script runs, and in print, a picture of its first state stands there.

An instrument is ``name.py`` (a function that chooses data and words, and computes the first state with NumPy),
``name.js`` (one function that draws; ``instrument.js`` says what it returns, ``stage.js`` and ``controls.js`` what it
draws with, ``linalg.js`` and ``background.js`` what it computes with) and ``tests/instruments/test_name.py``. Where one
script would hold several ideas, each has a script of its own, which ``name.py`` lists as ``parts``: ``dice`` has
``chisquare.js`` (the exact chances), ``throws.js`` (what a random map does to points) and ``pairs.js`` (how that
looks); ``draw_first`` has a script for each way to guess, and a block carries the one that it needs. No file is longer
than 200 lines.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.instruments.arrows import arrows
    from lowrank_tutor.instruments.cloud import cloud
    from lowrank_tutor.instruments.dice import dice
    from lowrank_tutor.instruments.draw_first import draw_first
    from lowrank_tutor.instruments.instrument import Instrument
    from lowrank_tutor.instruments.score import score
    from lowrank_tutor.instruments.shadow import shadow
    from lowrank_tutor.instruments.spectrum import spectrum
    from lowrank_tutor.instruments.tilt import tilt
    from lowrank_tutor.instruments.windows import windows

__all__ = [
    "Instrument",
    "arrows",
    "cloud",
    "dice",
    "draw_first",
    "score",
    "shadow",
    "spectrum",
    "tilt",
    "windows",
]
