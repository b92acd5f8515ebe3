"""Read a sentence of a few words, each with numbers of its own; ``typed.js`` reads what a reader types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowrank_tutor.kit.canvas.instrument import Floats
from lowrank_tutor.kit.charts.arguments import finite

REACH = 2.6  # of a number of an author's own word
LETTERS = 24  # of a word


def phrases(most: int) -> dict[str, str]:
    """Return what ``typed.js`` says where a sentence may have so many words."""
    return {
        "field": f"Your sentence, 1 to {most} words",
        "use": "Use it",
        "empty": "There is no word yet: type a few, with spaces between them.",
        "many": f"These are {{value}} words: shorten the sentence to {most} at most.",
        "strange": "“{value}” is not a word of letters or digits: take it out.",
        "long": f"“{{value}}” is too long: a word may have {LETTERS} letters.",
    }


def read(
    sentence: Any, most: int, known: Sequence[str], tables: Mapping[str, Floats], own: Mapping[str, Any]
) -> tuple[list[str], Sequence[str], list[Floats]]:
    """Return the words of a sentence, those that have numbers (as ``typed.js`` spells them), and a row each."""
    words = sentence.split() if isinstance(sentence, str) else []
    if not own:
        if not 1 <= len(words) <= most or not set(words) <= set(known):
            raise ValueError(f"sentence must be 1 to {most} words of {' '.join(known)!r}, got {sentence!r}")
        return words, known, [table[[known.index(word) for word in words]] for table in tables.values()]
    spelled = [re.sub(r"[\W_]", "", word).lower() for word in words]
    if not 1 <= len(set(spelled) - {""}) == len(words) <= most or max(map(len, words)) > LETTERS:
        rule = f"1 to {most} different words of at most {LETTERS} letters"
        raise ValueError(f"sentence must be {rule}, got {sentence!r}")
    rows = [finite(name, table, len(words), 2) for name, table in own.items()]
    for name, row in zip(own, rows, strict=True):
        if np.abs(row).max() > REACH:
            raise ValueError(f"{name} must be from -{REACH} to {REACH}, got {row[np.abs(row) > REACH][0]}")
    return words, spelled, rows
