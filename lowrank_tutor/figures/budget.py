"""Give a trained model as little memory as you can: windows, heads, ranks, bits, latents, and what it still answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor import storyteller as model
from lowrank_tutor._checks import FloatArray
from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.figures.storyteller import MODEL
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.style import TEAL

WORDS_OF_A_STORY, GOAL, STORIES = 48, 0.95, 60
SETTINGS = {  # what a reader may choose; 0 stands for all, and for no latents
    "first": (1, 2, 4, 8, 12, 16, 24, 32, 0),
    "second": (1, 2, 4, 8, 12, 16, 24, 32, 0),
    "rank": (1, 2, 3, 4, 6, 8, 10, 12, 16),
    "bits": (1, 2, 3, 4, 6, 8, 16),
    "latents": (8, 12, 16, 20, 24, 32, 48, 0),
}
SAY = "The cache of a story of 48 words takes {bytes:,} bytes, and {answered:.0%} of the answers are right."
REMARKS = {
    "start": "Nothing is cut yet: find the fewest bytes that still answer 95%.",
    "enough": "That is enough, but you have done it with less.",
    "best": "That is enough, and your best so far.",
    "short": "Not enough: the goal is 95%.",
}
CAPTION = (
    "60 stories of at most 48 words are read anew for each setting, in your browser. The uncut model keeps 256 numbers "
    "per word (keys and values of eight heads), at 16 bits each. Where numbers are rounded, each key and each value "
    "also needs its least number and its step, 16 bits each. Cutting a finished table into sheets saves none of this."
)


def budget(
    *,
    first: int = 0,
    second: int = 0,
    rank: int = 16,
    bits: int = 16,
    latents: int = 0,
    heads: Sequence[int] = (1,) * 8,
) -> Instrument:
    """Let readers look for the least cache with which the model of :mod:`lowrank_tutor.storyteller` answers 95%.

    State: the arguments; numbers ``bytes``, of the cache of a story of 48 words, ``answered``, the
    share of right answers in 60 stories, and ``job_...``, the shares by job. The least bytes that a
    reader found are handed to the page (event ``best``), which may keep them.

    Parameters
    ----------
    first, second : int
        How many of the newest words a word sees in the first and in the second layer, one of
        ``SETTINGS``; 0 for all.
    rank : int
        Numbers in a key, the rank of each head's scores.
    bits : int
        Bits for each number of a key or a value.
    latents : int
        Numbers kept of a word in each layer, from which all its keys and values follow, in 16 bits;
        0 keeps keys and values themselves. With latents, ``rank`` and ``bits`` have no effect.
    heads : sequence of int
        1 for each of the eight heads that is kept, and 0 for one that reads nothing.

    Examples
    --------
    >>> budget().numbers["bytes"], budget(bits=4, rank=8).numbers["bytes"]
    (24576, 7680)
    """
    state: dict[str, Any] = {
        "first": first,
        "second": second,
        "rank": rank,
        "bits": bits,
        "latents": latents,
    }
    for name, value in state.items():
        one_of(name, value, SETTINGS[name])
    if len(heads) != 8 or not {*heads} <= {0, 1}:
        raise ValueError(f"heads must be eight numbers, 0 or 1, got {list(heads)}")
    state |= {"heads": [int(one) for one in heads]}
    right = shares(state, counted_stories())
    return figure(
        name="budget",
        engine=MODEL,
        state=state,
        numbers={"bytes": cache_bytes(state), **right},
        say=SAY,
        remarks=REMARKS,
        data={
            "settings": SETTINGS,
            "goal": GOAL,
            "long": WORDS_OF_A_STORY,
            "jobs": model.JOBS,
            "stories": [
                [" ".join(map(str, model.encode(story.words))), _asked(story)]
                for story in counted_stories()
            ],
        },
        picture=still(bars, right, size=(6.4, 2.4)),
        readouts={
            "bytes": ("bytes kept for a story of 48 words", ","),
            "answered": ("right answers in 60 stories", ".0%"),
            **{f"job_{job.replace(' ', '_')}": (job, ".0%") for job in model.JOBS},
        },
        caption=CAPTION,
    )


def bars(right: dict[str, float], ax: Axes) -> None:
    """Draw the shares of right answers by job."""
    ax.barh(
        model.JOBS[::-1],
        [right[f"job_{job.replace(' ', '_')}"] for job in model.JOBS[::-1]],
        color=TEAL,
    )
    ax.set(xlim=(0, 1), title="right answers by job")


def counted_stories() -> list[model.Story]:
    """Return 60 stories of at most 48 words."""
    drawn = (
        story
        for seed in range(60)
        for story in model.stories(4, facts=2 + seed % 3, rng=3_000_000 + seed)
    )
    return [story for story in drawn if len(story.words) <= WORDS_OF_A_STORY][:STORIES]


def cache_bytes(state: dict[str, Any]) -> int:
    """Return the bytes of keys and values, or of latents, of a story of 48 words."""
    total = 0
    for layer, window in enumerate((state["first"], state["second"])):
        words, kept = window or WORDS_OF_A_STORY, sum(state["heads"][4 * layer : 4 * layer + 4])
        steps = (
            0 if state["bits"] == 16 else 2 * 2 * 16
        )  # the least number and the step of a key and of a value
        of_a_word = 16 * state["latents"] * (kept > 0) or kept * (
            (state["rank"] + 16) * state["bits"] + steps
        )
        total += words * of_a_word
    return total // 8


def shares(state: dict[str, Any], told: list[model.Story]) -> dict[str, float]:
    """Return the shares of right answers, of all and by job."""
    weights = model.trained_weights()
    if state["latents"]:
        weights = model.cut_latents(weights, state["latents"])
    elif state["rank"] < 16:
        weights = model.cut_scores(weights, state["rank"])
    bits = 16 if state["latents"] else state["bits"]
    cuts = [
        _cut(window, bits, state["heads"][4 * i : 4 * i + 4])
        for i, window in enumerate((state["first"], state["second"]))
    ]
    return answers(weights, told, cuts)


def answers(weights: Any, told: list[model.Story], attend: Any) -> dict[str, float]:
    """Return the shares of right answers, of all and by job, with other weights or attention."""
    read = partial(model.forward, weights=weights)
    right = model.grade(read, told, attend=attend)
    asked = {job: sum(story.jobs.count(job) for story in told) for job in right}
    answered = sum(right[job] * asked[job] for job in right) / sum(asked.values())
    return {
        "answered": answered,
        **{f"job_{job.replace(' ', '_')}": share for job, share in right.items()},
    }


def _cut(window: int, bits: int, heads: list[int]) -> model.Cut:
    """Return a layer's attention: a window, rounded keys and values, and heads that read nothing."""
    near = model.window(window) if window else model.exact
    rounded = model.bits(bits) if bits < 16 else model.exact
    kept = np.reshape(heads, (4, 1, 1))

    def table(q: FloatArray, k: FloatArray) -> Any:
        return near.table(q, rounded.values(k)) * kept

    return model.Cut(table, rounded.values)


def _asked(story: model.Story) -> list[list[int]]:
    """Return where a story asks, the number of the job, and the numbers of the words that are right."""
    questions = []
    for i, job in enumerate(story.jobs):
        if job:
            kinds = [
                kind
                for kind in ("do", "does")
                if job == "agreement" and story.words[i] in model.KINDS[kind]
            ]
            right = model.KINDS[kinds[0]] if kinds else story.words[i : i + 1]
            questions.append([i, model.JOBS.index(job), *model.encode(list(right))])
    return questions
