"""Damage a model's attention in two ways by the same error, and see what each forgets."""

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lowrank_tutor import storyteller as model
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.storyteller import MODEL, alike, tables
from lowrank_tutor.kit.block import asset
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole

MOST_DAMAGE = 50  # percent
TALES = (  # each asks twice
    "Ada wears gold . Ben wears red . re la fa so mi do . again : re la fa so mi do . Ada wears",
    "Ada has milk . Zoe has honey . mi so ti re do fa . again : mi so ti re do fa . who has milk ?",
    "Ada wears gold . Mia has soup . Kai wears pink . ti so la fa mi do . "
    "again : ti so la fa mi do . Ada wears",
)
SIDES = {"left": "sheets", "right": "window"}  # at first


class Cut(NamedTuple):
    """What stands above a table, and how much is kept; the most is 0 where a story sets it."""

    title: str
    phrase: str
    most: int = 0


CUTS = {
    "sheets": Cut("Keep strong patterns", "{k} of {n} patterns"),
    "window": Cut("Keep last words", "{k} of {n} words"),
    "bits": Cut("Round numbers", "{k}-bit numbers", 8),
    "latents": Cut("Keep fewer numbers", "{k} of 64 for each word", 64),
}
JOBS = {
    "copy": "repeat a tune",
    "far fact": "old fact",
    "who": "who has it",
    "most": "usual weather",
    "new fact": "changed fact",
    "reason": "the reason",
    "agreement": "verb form",
    "reference": "it or they",
}
WORDS: dict[str, Any] = {
    "asks": {
        "copy": "tune", "far fact": "fact", "new fact": "fact", "who": "owner",
        "most": "weather", "agreement": "verb", "reason": "reason", "reference": "pronoun",
        "": "next",
    },
    "lead": "A small language model reads a story and is asked for two words. Pull the lever.",
    "hint": "a row for each word, dark where it listens",
    "both": "both tables changed by",
    "lever": "Damage to both tables",
    "ends": ("uncut", "50%"),
    "choose": "The cut on the right",
    "table": "Who listens to whom: ",
    "stories": "still right, of 200 stories",
    "the": "the ",
    "and": " and ",
    "nothing": "nothing",
    "alike": "Same error.",
    "apart": "Same error. Nearly the same score. Different memory.",
    "uneven": "Same error. Different memory.",
}  # fmt: skip
SAY = (
    "With both tables changed by {damage}%, the left model forgets {lost_left}, "
    "and the right one {lost_right}."
)
CAPTION = (
    "A table has a row for each word, darker where it listens to an earlier word "
    "(violet: below 0); choose a word to see its row. A pattern, or sheet, is one column times one "
    "row, and the next one to go fades. One of eight heads is shown; the error is the norm of what "
    "changed in all eight, relative to what was there. What would look ahead is set to 0. Each of "
    "the other stories is cut until its own tables are changed by as much. Nothing was retrained."
)  # fmt: skip


def two_cuts(damage: int = 30, *, demo: bool = False) -> Instrument:
    """Cut the trained model's attention in two ways that are always off by the same error.

    State ``story`` (words), ``left`` and ``right`` (cuts), ``damage`` (percent); numbers
    ``error_left`` and ``error_right``, of the story's tables, ``answered_left`` and
    ``answered_right``, shares of 200 other stories (``python -m
    measure.training.storyteller_matched``); table ``dots``, for each of these its job, and whether
    each side is right.

    Parameters
    ----------
    damage : int
        The error of both sides' tables, in percent, 0 to 50.
    demo : bool
        Whether the figure first pulls its lever by itself, from 0 to ``damage``.

    Examples
    --------
    >>> shown = two_cuts()
    >>> abs(shown.numbers["error_left"] - shown.numbers["error_right"]) < 0.01
    True
    >>> print(shown.alt)
    With both tables changed by 30%, the left model forgets the tune, and the right one the fact.
    """
    whole("damage", damage, 0, MOST_DAMAGE)
    story, right = TALES[0], counted()
    found = {side: measured(story, cut, damage) for side, cut in SIDES.items()}
    return figure(
        name="two-cuts",
        engine=MODEL,
        parts=("demonstrate", "heatmap"),
        styles=("figures/two_cuts.css",),
        state={"story": story, **SIDES, "damage": damage},
        numbers={f"error_{side}": one["error"] for side, one in found.items()}
        | {f"answered_{side}": float(right[cut][damage].mean()) for side, cut in SIDES.items()},
        values={f"lost_{side}": one["lost"] for side, one in found.items()},
        say=SAY,
        data={
            "words": WORDS,
            "vocabulary": model.WORDS,
            "kinds": model.KINDS,
            "tales": TALES,
            "jobs": JOBS,
            "cuts": {name: cut._asdict() for name, cut in CUTS.items()},
            "kept": {story: {cut: kept(story, cut) for cut in SIDES.values()}},
            "right": _stored(),
            "demo": [[1000 + 130 * i, {"damage": i}] for i in range(damage + 1)] if demo else [],
        },
        readouts={
            "error_left": ("error on the left", ".1%"),
            "error_right": ("error on the right", ".1%"),
            "answered_left": ("right answers on the left", ".1%"),
            "answered_right": ("right answers on the right", ".1%"),
        },
        caption=CAPTION,
    )


@cache
def kept(story: str, cut: str) -> list[float]:
    """Return how much a cut keeps of a story at each error, 0 to 50 percent."""
    errors = [percent / 100 for percent in range(MOST_DAMAGE + 1)]
    return [round(k, 3) for k in model.matched("<s> " + story, cut, errors)]


def questions(story: str) -> list[tuple[int, str, str]]:
    """Return where a story asks, the answer, and its job.

    These are its end, and the last place before that tests another job.
    """
    said = story.split()
    all_of_them = [(i, *model.answer(said[:i])) for i in range(1, len(said) + 1)]
    last = all_of_them.pop()
    before = [ask for ask in all_of_them if ask[1] not in ("", ".") and ask[2] != last[2]]
    return [*before[-1:], last]


def measured(story: str, cut: str, damage: int) -> dict[str, Any]:
    """Return the error of a cut story's tables, what the model says, and what it forgets."""
    words, options = "<s> " + story, model.between(cut, kept(story, cut)[damage])
    exact, used, error = tables(words, **options)
    logits = model.forward([model.encode(words)], **options)[0]
    said = [model.WORDS[logits[i].argmax()] for i, *_ in questions(story)]
    lost = [
        f"the {WORDS['asks'][job]}"
        for (_, answer, job), word in zip(questions(story), said, strict=True)
        if answer and word not in alike(answer)
    ]
    return {
        "error": error,
        "says": said,
        "lost": " and ".join(lost) or "nothing",
        "tables": used,
        "exact": exact,
    }


@cache
def counted() -> dict[str, Any]:
    """Return which of 200 stories are answered: for each cut, errors by stories, job after job."""
    return {
        cut: np.array([list(f"{int(one, 16):0{4 * len(one)}b}") for one in rows]) == "1"
        for cut, rows in _stored().items()
    }


@cache
def _stored() -> dict[str, list[str]]:
    rows = json.loads(asset("data/storyteller_matched.json"))["rows"]
    return {cut: [row["right"] for row in rows if row["cut"] == cut] for cut in CUTS}
