"""Give a trained model as little memory as you can, and see what it still answers."""

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowrank_tutor import storyteller as model
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.storyteller import JOBS, MODEL, alike
from lowrank_tutor.kit.canvas.instrument import Instrument

WORDS_OF_A_STORY, GOAL, STORIES = 48, 0.95, 60
UNCUT = {"first": 0, "second": 0, "rank": 16, "bits": 16, "latents": 0, "heads": [1] * 8}
SETTINGS = {  # what a reader may choose; 0 stands for all, and for no latents
    "first": (1, 2, 4, 8, 12, 16, 24, 32, 0),
    "second": (1, 2, 4, 8, 12, 16, 24, 32, 0),
    "rank": (1, 2, 3, 4, 6, 8, 10, 12, 16),
    "bits": (1, 2, 3, 4, 6, 8, 16),
    "latents": (8, 12, 16, 20, 24, 32, 48, 0),
}
SAY = (
    "The cache of a story of 48 words takes {bytes:,} bytes, "
    "and {answered:.0%} of the answers are right."
)
REMARKS = {
    "start": "Nothing is cut yet: find the fewest bytes that still answer 95%.",
    "enough": "That is enough, but you have done it with less.",
    "best": "That is enough, and your best so far.",
    "short": "Not enough: the goal is 95%.",
}
CAPTION = (
    "60 stories of at most 48 words are read anew for each setting, in your browser. The uncut "
    "model keeps 256 numbers per word (keys and values of eight heads), at 16 bits each. Where "
    "numbers are rounded, each key and each value also needs its least number and its step, 16 "
    "bits each. Cutting a finished table into sheets saves none of this."
)


def budget() -> Instrument:
    """Let readers look for the least cache with which the trained model answers 95%.

    The model is that of :mod:`lowrank_tutor.storyteller`. State: ``first`` and ``second``, how many
    of the newest words a word sees in each layer, 0 for all; ``rank``, the numbers in a key;
    ``bits`` for each number of a key or a value; ``latents``, the numbers kept of a word in each
    layer, in 16 bits, from which all its keys and values follow, whatever ``rank`` and ``bits``
    are, or 0; ``heads``, 1 for each of the eight that is kept, and 0 for one that reads nothing.
    Numbers ``bytes``, of the cache of a story of 48 words, ``answered``, the share of right answers
    in 60 stories, and ``job_...``, the shares by job. The least bytes that a reader found are
    handed to the page (event ``best``), which may keep them.

    Examples
    --------
    >>> budget().numbers["bytes"]
    24576
    """
    right = shares(UNCUT)
    return figure(
        name="budget",
        engine=MODEL,
        parts=("desk",),
        state=UNCUT,
        numbers={"bytes": cache_bytes(UNCUT), **right},
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
        readouts={
            "bytes": ("bytes kept for a story of 48 words", ","),
            "answered": ("right answers in 60 stories", ".0%"),
            **JOBS,
        },
        caption=CAPTION,
    )


@cache
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
    latents, bits = state["latents"], state["bits"]
    steps = 0 if bits == 16 else 4 * 16  # the least number and the step of a key and of a value
    pair = (state["rank"] + 16) * bits + steps
    total = 0
    for layer, window in enumerate((state["first"], state["second"])):
        heads = sum(state["heads"][4 * layer : 4 * layer + 4])
        of_a_word = 16 * latents if latents and heads else heads * pair
        total += (window or WORDS_OF_A_STORY) * of_a_word
    return total // 8


def shares(state: dict[str, Any]) -> dict[str, float]:
    """Return the shares of right answers in the counted stories, of all and by job."""
    weights, bits = model.trained_weights(), state["bits"]
    if state["latents"]:
        weights, bits = model.cut_latents(weights, state["latents"]), 16
    elif state["rank"] < 16:
        weights = model.cut_scores(weights, state["rank"])
    heads = np.reshape(state["heads"], (2, 4, 1, 1))
    first, second = _cut(state["first"], bits, heads[0]), _cut(state["second"], bits, heads[1])
    return answers(weights, counted_stories(), [first, second])


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


def _cut(window: int, bits: int, heads: NDArray[np.int64]) -> model.Cut:
    """Return a layer's attention: a window, rounded keys and values, and silenced heads."""
    near = model.window(window) if window else model.exact
    rounded = model.bits(bits) if bits < 16 else model.exact
    return model.Cut(lambda q, k: near.table(q, rounded.values(k)) * heads, rounded.values)


def _asked(story: model.Story) -> list[list[int]]:
    """Return where a story asks, the number of the job, and the numbers of the right words."""
    return [
        [i, model.JOBS.index(job), *model.encode(alike(word))]
        for i, (word, job) in enumerate(zip(story.words, story.jobs, strict=True))
        if job
    ]
