"""The storyteller: one small trained language model, its stories, and cuts of its attention.

Of the words before it, a model of two layers and four heads guesses the next one. It knows 81
words, and its little stories test eight jobs, which ``storyteller/language.py`` lists. Take away
what you like, and see what it forgets:

>>> from lowrank_tutor import storyteller
>>> story = "<s> Ada wears red . Ben wears blue . the cat slept because it was tired . Ada wears"
>>> for attend in (None, storyteller.sheets(6), storyteller.window(8)):
...     print(f"red: {storyteller.next_words(story, attend=attend)['red']:.0%}")
red: 100%
red: 100%
red: 17%

Stories, cuts, and the forward pass need NumPy alone; ``load``, ``train``, and ``Storyteller`` need
PyTorch. The weights were trained by ``python -m measure.training.storyteller``.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.storyteller.cuts import (
    Cut,
    bits,
    cut_latents,
    cut_scores,
    exact,
    faded_sheets,
    features,
    index,
    means,
    mixed,
    projected,
    sheets,
    signs,
    top,
    unusual,
    window,
)  # fmt: skip
from lowrank_tutor.storyteller.in_numpy import forward, next_words, tables, trained_weights
from lowrank_tutor.storyteller.language import (
    JOBS,
    KINDS,
    WORDS,
    Story,
    answer,
    encode,
    grade,
    stories,
)
from lowrank_tutor.storyteller.matching import between, matched

if TYPE_CHECKING:
    from lowrank_tutor.storyteller.model import Storyteller, load, train

__all__ = [
    "JOBS", "KINDS", "WORDS", "Cut", "Story", "Storyteller", "answer", "between", "bits",
    "cut_latents", "cut_scores", "encode", "exact", "faded_sheets", "features", "forward", "grade",
    "index", "load", "matched", "means", "mixed", "next_words", "projected", "sheets", "signs",
    "stories", "tables", "top", "train", "trained_weights", "unusual", "window",
]  # fmt: skip

__getattr__, __dir__ = on_demand(__name__, "model")
