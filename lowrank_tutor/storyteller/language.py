"""Little stories with known answers, and how the storyteller's answers are graded.

A story is a few sentences in words that a child knows. Some of its words follow from what stands
before them, and each of these tests a *job*; here the tested word stands after the bar:

- agreement, "the old cats near the dog | wait": it takes skipping the noun that is nearer;
- reference, "the cats slept because | they": knowing whether they are many;
- reason, "the cat slept because it was | tired": the verb, four words back;
- copy, "do mi re . again : do mi | re": finding the place in the first tune;
- far fact, "Ada wears red . ... Ada wears | red": finding one sentence among all;
- new fact, "Ada wears red . ... now Ada wears pink . ... Ada wears | pink": taking the newer one;
- who, "Ben has milk . ... who has milk ? | Ben": finding the same sentence from its other end;
- most, "it rained . ... it snowed . ... it rained . ... mostly it | rained": counting all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from lowrank_tutor._checks import check_integer

NAMES = ("Ada", "Ben", "Eva", "Kai", "Leo", "Mia", "Tom", "Zoe")
COLORS = ("red", "blue", "green", "gold", "white", "black", "pink", "gray")
THINGS = ("milk", "honey", "bread", "rice", "soup", "tea", "jam", "cheese")
ANIMALS = {
    "cat": "cats",
    "dog": "dogs",
    "owl": "owls",
    "fox": "foxes",
    "hen": "hens",
    "bee": "bees",
}
MOODS = {"tired": "slept", "hungry": "ate", "happy": "sang", "cold": "shivered"}
VERBS = {"sleeps": "sleep", "runs": "run", "waits": "wait", "sings": "sing"}
WEATHER = ("rained", "snowed", "stormed")
NOTES = ("do", "re", "mi", "fa", "so", "la", "ti")
OTHERS = tuple(
    "<s> . ? : wears has now who the because it they was were near old little again mostly".split()
)

# Words that can stand in each other's place.
KINDS = {
    "name": NAMES,
    "color": COLORS,
    "thing": THINGS,
    "animal": tuple(ANIMALS),
    "animals": tuple(ANIMALS.values()),
    "mood": tuple(MOODS),
    "deed": tuple(MOODS.values()),
    "does": tuple(VERBS),
    "do": tuple(VERBS.values()),
    "weather": WEATHER,
    "note": NOTES,
}
WORDS = OTHERS + tuple(word for kind in KINDS.values() for word in kind)
JOBS = ("agreement", "reference", "reason", "copy", "far fact", "new fact", "who", "most")
LONGEST = 96  # words in a story
_NUMBER = {word: number for number, word in enumerate(WORDS)}


class Story(NamedTuple):
    """Words, and for each of them the job that it tests, or ``""``."""

    words: tuple[str, ...]
    jobs: tuple[str, ...]


class Sentence(NamedTuple):
    """Words, and the jobs that some of them test, by their places."""

    words: list[str]
    jobs: dict[int, str]


def stories(n: int, *, facts: int | None = None, rng: Any = None) -> list[Story]:
    """Draw ``n`` stories of at most 96 words, each about ``facts`` people.

    The people are 2 to 8, by default at random.

    >>> " ".join(stories(1, facts=2, rng=3)[0].words[:9])
    '<s> the little cats near the hens run .'
    """
    check_integer(n, "n")
    if facts is not None:
        check_integer(facts, "facts", 2, 8)
    rng = np.random.default_rng(rng)
    return [_story(rng, facts or int(rng.integers(2, 9))) for _ in range(n)]


def encode(words: str | Sequence[str]) -> list[int]:
    """Return the numbers of words in ``WORDS``; a text is split at its spaces."""
    if not isinstance(words, str | list | tuple | np.ndarray):
        raise TypeError(f"words must be a text or a list of words, got {type(words).__name__}")
    words = words.split() if isinstance(words, str) else words
    if strange := [word for word in words if word not in _NUMBER]:
        raise ValueError(
            f"words must be among storyteller.WORDS, with spaces between, got {strange[0]!r}"
        )
    return [_NUMBER[word] for word in words]


def answer(words: str | Sequence[str]) -> tuple[str, str]:
    """Return the word that follows from a story so far, and the job that it tests.

    If none follows, both texts are empty.

    >>> answer("<s> Ada wears red . Ben wears blue . who wears blue ?")
    ('Ben', 'who')
    """
    encode(words)
    said = words.split() if isinstance(words, str) else list(words)
    triples = list(zip(said, said[1:], said[2:], strict=False))  # of complete sentences
    match said[-7:]:
        case [*_, "now", name, "wears"] if name in NAMES:
            return "", ""
        case [*_, name, ("wears" | "has") as verb] if name in NAMES:
            told = [thing for *fact, thing in triples if fact == [name, verb]]
            job = "new fact" if len(set(told)) > 1 else "far fact"
            return (told[-1], job) if told else ("", "")
        case [*_, "who", verb, thing, "?"]:
            owners = [name for name, *fact in triples if fact == [verb, thing] and name in NAMES]
            return (owners[-1], "who") if owners else ("", "")
        case [*_, "mostly", "it"]:
            days = [day for it, day, _ in triples if it == "it" and day in WEATHER]
            counts = [days.count(day) for day in WEATHER]
            alone = counts.count(max(counts)) == 1
            return (max(WEATHER, key=days.count), "most") if alone else ("", "")
        case [*_, "the", "old" | "little", animals, "near", "the", other] if other in (
            *ANIMALS,
            *ANIMALS.values(),
        ):
            return KINDS["do" if animals in ANIMALS.values() else "does"][0], "agreement"
        case [*_, animals, deed, "because"] if deed in MOODS.values():
            return "they" if animals in ANIMALS.values() else "it", "reference"
        case [*_, deed, "because", "it" | "they", "was" | "were"] if deed in MOODS.values():
            return next(mood for mood, does in MOODS.items() if does == deed), "reason"
        case [*_, note] if ":" in said and note in NOTES:
            tune = said[: said.index(":")]
            if note in tune and tune[-1] != note:
                return tune[tune.index(note) + 1], "copy"
    return "", ""


def grade(
    model: Callable[..., Any], told: Sequence[Story], *, attend: Any = None
) -> dict[str, float]:
    """Return the share of right answers by job.

    An answer is right if the likeliest next word is that of the story. For *agreement* every verb
    of the right number is right. Stories are read one at a time, so that a cut of a table is one of
    the story's own table, without padding.

    Parameters
    ----------
    model : callable
        Takes the numbers of the words, shape (1, n), and ``attend``, and returns logits, shape (1,
        n, words): the model of :func:`load`, one of your own, or the twin in NumPy,
        :func:`lowrank_tutor.storyteller.forward`.
    told : sequence of Story
        Stories, such as those of :func:`stories`.
    attend : callable or sequence of callables, optional
        What takes the place of exact attention, for all layers or one for each; the model gets it
        as it is.

    Examples
    --------
    >>> from lowrank_tutor import storyteller
    >>> told = storyteller.stories(20, rng=0)
    >>> right = storyteller.grade(storyteller.forward, told, attend=storyteller.window(16))
    >>> right["agreement"], right["far fact"] < 0.5
    (1.0, True)
    """
    right: dict[str, list[bool]] = {job: [] for job in JOBS}
    for words, jobs in told:
        logits = model(np.array([encode(words)]), attend=attend)
        logits = logits.detach() if hasattr(logits, "detach") else logits
        best = np.asarray(logits)[0].argmax(axis=-1)
        for i, job in enumerate(jobs):
            if job:
                right[job].append(_is_right(WORDS[best[i - 1]], words[i], job))
    return {job: sum(answers) / len(answers) for job, answers in right.items() if answers}


def _is_right(word: str, answer: str, job: str) -> bool:
    if job != "agreement":
        return word == answer
    return any(word in kind and answer in kind for kind in (KINDS["does"], KINDS["do"]))


def _story(rng: Generator, facts: int) -> Story:
    threads, questions = _people(rng, facts)
    days, sums = _days(rng)
    end = [questions[i] for i in rng.permutation(len(questions))[:4]] + sums
    threads += [[day] for day in days]
    words_told = sum(len(sentence.words) for thread in [*threads, end] for sentence in thread)
    room = LONGEST - 1 - words_told
    asides = [_animals(rng) for _ in range(rng.integers(4))]
    asides += [_tune(rng) for _ in range(rng.integers(2))]
    for aside in asides[::-1]:
        if len(aside.words) <= room:
            threads.append([aside])
            room -= len(aside.words)
    # Threads cross, but what comes later in a thread comes later in the story.
    turns = rng.permutation([i for i, thread in enumerate(threads) for _ in thread])
    told = [threads[i].pop(0) for i in turns] + [end[i] for i in rng.permutation(len(end))]
    words, jobs = ["<s>"], [""]
    for sentence in told:
        words += sentence.words
        jobs += [sentence.jobs.get(i, "") for i in range(len(sentence.words))]
    return Story(tuple(words), tuple(jobs))


def _people(rng: Generator, facts: int) -> tuple[list[list[Sentence]], list[Sentence]]:
    """Return what is told of each person, in order, and a question about each."""
    threads, questions = [], []
    drawn = (rng.permutation(kind) for kind in (NAMES, THINGS, COLORS))
    names, things, colors = ([str(word) for word in words] for words in drawn)
    for name, thing in zip(names[:facts], things, strict=False):
        fact, job = [name, "has", thing], "far fact"
        thread = [Sentence([*fact, "."], {})]
        if rng.random() < 0.6:
            fact = [name, "wears", colors.pop()]
            thread = [Sentence([*fact, "."], {})]
            if rng.random() < 0.3 and len(colors) > facts:
                fact, job = [name, "wears", colors.pop()], "new fact"
                thread.append(Sentence(["now", *fact, "."], {}))
        threads.append(thread)
        if job == "new fact" or rng.random() < 0.6:
            questions.append(Sentence([*fact, "."], {2: job}))
        else:
            questions.append(Sentence(["who", *fact[1:], "?", name, "."], {4: "who"}))
    return threads, questions


def _days(rng: Generator) -> tuple[list[Sentence], list[Sentence]]:
    """Return the weather of some days, and what it was on most of them; or nothing."""
    if rng.random() < 0.5:
        return [], []
    counts = [(2, 1), (3, 1), (3, 2), (2, 1, 1), (4, 2), (3, 2, 1)][rng.integers(6)]
    kinds = [str(word) for word in rng.permutation(WEATHER)]
    days = [
        Sentence(["it", kind, "."], {})
        for kind, count in zip(kinds, counts, strict=False)
        for _ in range(count)
    ]
    return days, [Sentence(["mostly", "it", kinds[0], "."], {2: "most"})]


def _animals(rng: Generator) -> Sentence:
    """Return what one or more animals do, beside others, or what they did, and why."""
    one, other = (list(ANIMALS.items())[i] for i in rng.permutation(len(ANIMALS))[:2])
    many = int(rng.integers(2))
    if rng.random() < 0.6:
        verb = list(VERBS.items())[rng.integers(len(VERBS))][many]
        size = ("old", "little")[rng.integers(2)]
        return Sentence(
            ["the", size, one[many], "near", "the", other[rng.integers(2)], verb, "."],
            {6: "agreement"},
        )
    mood, deed = list(MOODS.items())[rng.integers(len(MOODS))]
    why = [("it", "was"), ("they", "were")][many]
    jobs = {4: "reference", 6: "reason"}
    return Sentence(["the", one[many], deed, "because", *why, mood, "."], jobs)


def _tune(rng: Generator) -> Sentence:
    """Return a tune of 4 to 7 notes, twice; its first two notes could be any."""
    notes = [str(note) for note in rng.permutation(NOTES)[: rng.integers(4, 8)]]
    jobs = dict.fromkeys(range(len(notes) + 5, 2 * len(notes) + 3), "copy")
    return Sentence([*notes, ".", "again", ":", *notes, "."], jobs)
