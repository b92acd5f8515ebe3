"""Write the prompts by job, 100 of each, to ``lowrank_tutor/data/real_model_prompts.json``.

Only jobs that the whole model does in at least 90 of 100 prompts are kept.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence

from measure.harness import DATA

COUNT = 100
NAMES = "Mary John Tom Anna Paul Lisa Mark Kate Jack Emma".split()
COLORS = "red blue green white black yellow brown pink".split()
WORDS = (
    "stone river cloud horse table green paper music winter garden silver window bridge apple "
    "doctor market"
).split()
NOUNS, PLACES = "key book picture door letter".split(), "store park station school".split()
BEHIND = "cabinet houses man cars garden windows teacher trees".split()
THINGS = "drink book ball letter".split()
FILL = (
    "The sun was out and the streets were busy.",
    "A dog barked somewhere behind the houses.",
    "They walked slowly and talked about the weather.",
    "Later they stopped for some tea and cake.",
    "The old clock on the tower struck three.",
    "Nobody was in a hurry that afternoon.",
)
CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo",
    "Russia": "Moscow", "China": "Beijing", "England": "London", "Greece": "Athens",
    "Egypt": "Cairo", "Ireland": "Dublin", "Poland": "Warsaw",
}  # fmt: skip
OPPOSITES = {
    "hot": "cold", "big": "small", "up": "down", "day": "night", "good": "bad", "left": "right",
    "old": "new", "fast": "slow", "high": "low", "open": "closed", "black": "white",
    "rich": "poor",
}  # fmt: skip
Asked = tuple[str, str]  # the text, and the right word


def copy(rng: random.Random) -> Asked:
    """Go on with a list that stood before."""
    words, n = rng.sample(WORDS, 8), rng.randrange(4, 8)
    return f"List: {' '.join(words)}.\nList: {' '.join(words[:n])}", words[n]


def new_fact(rng: random.Random) -> Asked:
    """Say the color of a coat that was changed, with a sentence between."""
    people, colors = rng.sample(NAMES, 3), rng.sample(COLORS, 4)
    told = [f"{who} has a {color} coat." for who, color in zip(people, colors, strict=False)]
    told += [rng.choice(FILL), f"Then {people[0]} lost it and bought a {colors[3]} coat."]
    return f"{' '.join(told)} {rng.choice(FILL)} So now {people[0]} has a", colors[3]


def agreement(rng: random.Random) -> Asked:
    """Choose *is* or *are* for a noun with two others between."""
    first, second = rng.sample(BEHIND, 2)
    many, noun = rng.random() < 0.5, rng.choice(NOUNS)
    return f"The {noun}{'s' * many} behind the {first} near the {second}", "are" if many else "is"


def who(rng: random.Random) -> Asked:
    """Say who of two got something from the other."""
    a, b = rng.sample(NAMES, 2)
    start = f"When {a} and {b} went to the {rng.choice(PLACES)}"
    return f"{start}, {b} gave a {rng.choice(THINGS)} to", a


def knowledge(rng: random.Random) -> Asked:
    """Name a capital."""
    country = rng.choice([*CAPITALS])
    return f"{rng.choice(FILL)} The capital of {country} is", CAPITALS[country]


def opposite(rng: random.Random) -> Asked:
    """Name the opposite of a word, after two examples."""
    *shown, asked = rng.sample([*OPPOSITES], 3)
    told = " ".join(f"The opposite of {word} is {OPPOSITES[word]}." for word in shown)
    return f"{told} The opposite of {asked} is", OPPOSITES[asked]


JOBS: Mapping[str, tuple[Callable[[random.Random], Asked], Sequence[str]]] = {
    "copy": (copy, WORDS),
    "new fact": (new_fact, COLORS),
    "agreement": (agreement, ("is", "are")),
    "who": (who, NAMES),
    "knowledge": (knowledge, [*CAPITALS.values()]),
    "opposite": (opposite, sorted({*OPPOSITES, *OPPOSITES.values()})),
}


def main() -> int:
    """Draw the prompts, no text twice while there are others, and write them."""
    jobs = []
    for job, (ask, words) in JOBS.items():
        rng = random.Random(job)
        prompts = [ask(rng) for _ in range(COUNT)]
        jobs.append(f'"{job}": ' + json.dumps({"words": list(words), "prompts": prompts}))
    path = DATA / "real_model_prompts.json"
    path.write_text('{"jobs": {\n' + ",\n".join(jobs) + "\n}}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
