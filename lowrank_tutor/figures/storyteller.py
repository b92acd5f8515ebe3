"""Cut a trained model's attention and see what it forgets.

A story, arcs, sheets, a curve to drag, and the next word show it.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lowrank_tutor import storyteller as model
from lowrank_tutor._checks import FloatArray
from lowrank_tutor.figures.parts.figure import figure, one_of, two_digits
from lowrank_tutor.kit.block import Script, asset
from lowrank_tutor.kit.canvas.instrument import ENGINE, Instrument
from lowrank_tutor.storyteller.in_numpy import one_a_layer

# What several figures need of the model, in a script of its own.
MODEL = Script(
    "storytellerModel",
    (
        "figures/parts/linalg.js",
        "data/storyteller_weights.json",
        "figures/parts/cuts.js",
        "figures/parts/model.js",
        "figures/parts/language.js",
        "figures/parts/stories.js",
    ),
    ENGINE,
)
# Random directions that page and Python share.
CODES, DIRECTIONS = two_digits(
    np.random.default_rng(0).standard_normal((256, 16)).clip(-49 / 16, 49 / 16), 16
)

RANDOM = {"features", "projected", "signs", "index"}  # cuts that need them
SMALL = 4  # numbers of an index's key


class Way(NamedTuple):
    """A way to cut: its tab, the name of the curve's axis, the settings, and what is left.

    The settings are those short of all; what is left is a phrase.
    """

    tab: str
    axis: str
    settings: tuple[int, ...]
    phrase: str
    single: str  # the phrase for 1
    by_words: bool = False  # whether as many as there are words are all


BY_WORDS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24)
CUTS = {
    "sheets": Way(
        "Sheets",
        "sheets kept of each table",
        BY_WORDS,
        "{k} sheets of each table",
        "1 sheet of each table",
        True,
    ),
    "window": Way(
        "Window",
        "newest words that each word sees",
        BY_WORDS,
        "the newest {k} words",
        "itself alone",
        True,
    ),
    "means": Way(
        "Averages",
        "groups of words, averaged",
        BY_WORDS,
        "averages of {k} groups",
        "one average",
        True,
    ),
    "features": Way(
        "Linear",
        "random features (Performer)",
        (2, 4, 8, 16, 32, 64, 128, 256),
        "{k} random features",
        "",
    ),
    "top": Way(
        "Strongest",
        "words heard, the strongest",
        BY_WORDS[:8],
        "the strongest {k} words",
        "the strongest word",
        True,
    ),
    "unusual": Way(
        "Unusual",
        "words kept, half of them by their keys",
        BY_WORDS,
        "{k} new and unusual words",
        "itself alone",
        True,
    ),
    "index": Way(
        "Index",
        "words chosen by small keys",
        BY_WORDS,
        "{k} words from an index",
        "a word from an index",
        True,
    ),
    "bits": Way(
        "Bits",
        "bits for each number kept",
        (1, 2, 3, 4, 6, 8),
        "{k} bits per number",
        "1 bit per number",
    ),
    "scores": Way(
        "Scores",
        "rank of each head's scores",
        (1, 2, 3, 4, 6, 8, 12),
        "scores of rank {k}",
        "scores of rank 1",
    ),
    "latents": Way(
        "Latents",
        "numbers kept of each word, for 128",
        (8, 12, 16, 20, 24, 32, 48),
        "{k} numbers per word",
        "",
    ),
    "projected": Way(
        "Shadows",
        "numbers of a key, by a random map",
        (2, 4, 8, 16, 32, 64, 256),
        "keys of {k} numbers",
        "",
    ),
    "signs": Way(
        "Signs", "bits of a key: its signs", (8, 16, 32, 64, 128, 256), "keys of {k} bits", ""
    ),
    "layers": Way("Layers", "the layer that attends", (1, 2), "layer {k} alone", "layer 1 alone"),
}
TALES = {
    "far fact": "Ada wears red . Ben wears blue . Mia has jam . "
    "the cat slept because it was tired . Ada wears",
    "new fact": "Ada wears red . Ben wears blue . now Ada wears pink . "
    "the cat slept because it was tired . Ada wears",
    "who": "Ada has milk . Ben has jam . Mia has tea . the cat slept because it was tired . "
    "who has milk ?",
    "most": "it rained . Ada wears red . it snowed . it rained . Ben has jam . it rained . "
    "mostly it",
    "agreement": "Ada wears red . Ben wears blue . Mia has jam . the old cats near the dog",
    "reason": "Ada wears red . Ben wears blue . Mia has jam . the cats slept because they were",
    "copy": "Ada wears red . do mi so la re . Ben wears blue . again : do mi so",
}
SAY = "{kept} the model says “{says}”{verdict} The tables are off by {table_error:.0%}."
REMARKS = {  # why a cut forgets
    "sheets": "Sheets are dropped by their size, whatever they are about, "
    "and what would look ahead is set to 0.",
    "window": "A window loses whatever is older than it.",
    "means": "An average blends words that stand side by side.",
    "features": "Random features only estimate the weights, and blur those that must be sharp.",
    "top": "The rest is lost, even if much of it says the same.",
    "unusual": "Half are the newest, half have unusual keys. What is dropped never comes back.",
    "index": "Small keys overlook words, and what they overlook is not read.",
    "bits": "Numbers that are nearly alike become the same.",
    "scores": "Directions that seldom decide a score are dropped.",
    "latents": "Keys and values share fewer directions than they had.",
    "projected": "A random map keeps all keys about as far apart, and none exactly.",
    "signs": "Signs tell the direction of a key, roughly.",
    "layers": "Without attention a layer still computes with each word and the two before it.",
}
CAPTION = (
    "Arcs (shades on a narrow screen) show how much the chosen word, at first the last, listens to "
    "each word in the chosen head; dashes show the uncut table. The error is that of all tables. "
    "Cutting finished tables saves nothing; nothing was retrained."
)
JOBS = {f"job_{job.replace(' ', '_')}": (job, ".0%") for job in model.JOBS}  # of the readouts
PHRASES = {
    "uncut": "Uncut,",
    "with": "With {phrase}",
    "knows": " and is right.",
    "forgot": " instead of “{answer}.”",
    "guesses": " and can only guess.",
}


def storyteller(
    cut: str = "sheets",
    k: int = 0,
    tale: str = "far fact",
    *,
    cuts: tuple[str, ...] = ("sheets", "window", "means", "features"),
    demo: bool = False,
    desk: bool = False,
    attend: Mapping[str, Any] | None = None,
) -> Instrument:
    """Cut the trained model's attention, and see what it forgets.

    The model is that of :mod:`lowrank_tutor.storyteller`. State ``story`` (its words), ``cut``,
    ``k`` and ``head``, 0 to 7; numbers ``right``, the probability of the right next word,
    ``table_error``, the norm of the tables' errors over that of the tables, ``answered`` and
    ``job_...``, the shares of right answers in 200 stories (``python -m
    measure.training.storyteller_cuts``).

    Parameters
    ----------
    cut, k : str and int
        What is cut at first, one of ``cuts``, and how much is kept: one of the settings of
        ``CUTS``, or 0 for all.
    tale : str
        Which story stands there first, of ``TALES``.
    cuts : tuple of str
        The cuts that readers may choose, of ``CUTS``.
    demo : bool
        Whether the figure first shows by itself what a cut does, from all down to two, and back
        to ``k``.
    desk : bool
        Whether the head's sheets, all heads, right answers by job, and a field for a story of
        one's own stand beside the curve.
    attend : mapping, optional
        Functions of your own by the names of their tabs, each as ``attend`` of
        :func:`lowrank_tutor.storyteller.forward`: of q, k, and v, (1, 4, n, 16) each, returning
        (1, 4, n, 16), or one for each layer. They are called for the first story alone, and their
        tabs stand beside it alone. The table of a function is what it reads from unit values, so
        it must be linear in v.

    Raises
    ------
    ValueError
        If a name in ``attend`` is that of a built-in cut or its tab, or a result has another shape.

    Examples
    --------
    >>> few, all_of_them = storyteller(k=2).numbers, storyteller().numbers
    >>> few["right"] < all_of_them["right"], f"{all_of_them['right']:.0%}"
    (True, '100%')
    """
    for name in cuts:
        one_of("cuts", name, CUTS)
    words = TALES[one_of("tale", tale, TALES)]
    every = settings(one_of("cut", cut, cuts), words)
    one_of("k", k, every)
    first = measured(words, cut, k)
    mine = {name: computed(name, words, f) for name, f in (attend or {}).items()}
    tabs = {name: CUTS[name]._asdict() for name in cuts}
    tabs |= {name: own_way(name)._asdict() for name in mine}
    counts = {name: list(counted()[name].values()) for name in cuts}
    uncounted = dict.fromkeys(counted()[cut][0], "\u2013")
    return figure(
        name="storyteller",
        engine=MODEL,
        parts=("demonstrate", "desk", "heatmap"),
        state={"story": words, "cut": cut, "k": k, "head": loudest(words)},
        numbers={name: first.pop(name) for name in ("right", "table_error")} | counted()[cut][k],
        values=first,
        say=SAY,
        remarks=REMARKS | dict.fromkeys(mine, "It was computed for this story alone."),
        data={
            "words": PHRASES,
            "vocabulary": model.WORDS,
            "kinds": model.KINDS,
            "cuts": tabs,
            "own": mine,
            "counts": counts | {name: [uncounted, counted()[cut][0]] for name in mine},
            "tales": TALES,
            "jobs": model.JOBS,
            "directions": CODES if RANDOM & {*cuts} else [],
            "demo": demonstration(every, k) if demo else [],
            "desk": desk,
        },
        readouts={
            "right": ("chance of the right word", ".0%"),
            "table_error": ("error of the tables", ".0%"),
            "answered": ("right answers in 200 stories", ".0%"),
            **JOBS,
        },
        caption=CAPTION,
    )


def settings(cut: str, words: str) -> list[int]:
    """Return how much a cut may keep of a story; 0 stands for all."""
    way, most = CUTS[cut], len(words.split())
    return [k for k in way.settings if not way.by_words or k <= most] + [0]


def demonstration(every: list[int], k: int) -> list[tuple[int, dict[str, int]]]:
    """Return milliseconds and settings: all, down to the second, which stays, and back to ``k``."""
    down = [(1500 + 180 * i, {"k": one}) for i, one in enumerate(every[-2:0:-1])]
    return [(0, {"k": every[-1]}), *down, (down[-1][0] + 1400, {"k": k})]


def as_options(cut: str, k: int) -> dict[str, Any]:
    """Return what a cut is for the functions of the model: ``attend``, or other ``weights``."""
    weights = {"scores": model.cut_scores, "latents": model.cut_latents}
    if k == 0:
        return {}
    if cut in weights:
        return {"weights": weights[cut](model.trained_weights(), k)}
    if cut == "layers":
        off = model.Cut(lambda q, k: 0 * model.exact.table(q, k))
        return {"attend": [model.exact if layer == k else off for layer in (1, 2)]}
    if cut == "index":
        return {"attend": model.index(k, DIRECTIONS[:SMALL])}
    return {"attend": getattr(model, cut)(DIRECTIONS[:k] if cut in RANDOM else k)}


def own_way(name: str) -> Way:
    """Return the tab of a reader's own function."""
    axis = f"“{name}” (1), or exact attention (all)"
    return Way(name, axis, (1,), "", f"“{name}” for attention")


def computed(name: str, words: str, attend: Any) -> dict[str, Any]:
    """Return the tables and logits of a story under a reader's own attention."""
    if name in (taken := [*CUTS, *(way.tab for way in CUTS.values())]):
        raise ValueError(f"attend must be named other than {', '.join(taken)}, got {name!r}")
    ids = [model.encode("<s> " + words)]
    logits = model.forward(ids, attend=attend)[0, -1]
    tables = model.tables(ids, attend=[as_cut(f) for f in one_a_layer(attend, model.exact)])
    return {
        "story": words,
        "tables": tables.reshape(8, -1).round(6).tolist(),
        "logits": logits.round(6).tolist(),
    }


def as_cut(attend: Any) -> model.Cut:
    """Return attention with its table: what it reads from unit values, 16 at a time."""

    def table(q: FloatArray, k: FloatArray) -> Any:
        n, width = q.shape[-2:]
        units = np.broadcast_to(np.eye(n, n + width), (*q.shape[:-1], n + width))
        read = [attend(q, k, units[..., i : i + width]) for i in range(0, n, width)]
        return np.concatenate(read, axis=-1)[..., :n]

    return attend if isinstance(attend, model.Cut) else model.Cut(table)


def measured(words: str, cut: str, k: int) -> dict[str, Any]:
    """Return what the model says after a story, and how far its tables are off."""
    read = after("<s> " + words, **as_options(cut, k))
    way = CUTS[cut]
    phrase = way.single if k == 1 else way.phrase.format(k=k)
    return read | {"kept": PHRASES["with"].format(phrase=phrase) if k else PHRASES["uncut"]}


def after(words: str | Sequence[str], **options: Any) -> dict[str, Any]:
    """Return what the model says after a story: the chance of the right word, and the likeliest."""
    chances = model.next_words(words, **options)
    says = max(chances, key=lambda word: chances[word])
    answer, _ = model.answer(words)
    right = alike(answer) if answer else ()
    verdict = "knows" if says in right else "forgot" if right else "guesses"
    return {
        "right": sum(chances[word] for word in right),
        "table_error": tables(words, **options)[2],
        "says": says,
        "verdict": PHRASES[verdict].format(answer=answer),
    }


def alike(answer: str) -> tuple[str, ...]:
    """Return the words that are as right as this one: to a verb, all of its number."""
    verbs = (model.KINDS["does"], model.KINDS["do"])
    return next((kind for kind in verbs if answer in kind), (answer,))


def tables(words: str | Sequence[str], **options: Any) -> tuple[FloatArray, FloatArray, float]:
    """Return the tables of eight heads, exact and cut, and how far the cut ones are off."""
    ids = [model.encode(words)]
    exact, used = (model.tables(ids, **each)[0] for each in ({}, options))
    shape = (8, len(ids[0]), -1)
    error = float(np.linalg.norm(used - exact) / np.linalg.norm(exact))
    return exact.reshape(shape), used.reshape(shape), error


def loudest(words: str) -> int:
    """Return the head, 0 to 7, in which the last word listens most to the answer.

    For a verb it is the one that listens most to its noun.
    """
    said = ["<s>", *words.split()]
    answer, _ = model.answer(words)
    places = [i for i, word in enumerate(said) if word == answer] or [len(said) - 4]
    exact, _, _ = tables(said)
    return int(exact[:, -1, places[-1]].argmax())


@cache
def counted() -> dict[str, dict[int, dict[str, float]]]:
    """Return the stored shares of right answers by cut and setting.

    They are ``answered``, and ``job_...`` for each job.
    """
    rows = json.loads(asset("data/storyteller_cuts.json"))["rows"]
    return {
        cut: {
            row["k"]: {name: share for name, share in row.items() if name not in ("cut", "k")}
            for row in rows
            if row["cut"] in (cut, "none")
        }
        for cut in CUTS
    }
