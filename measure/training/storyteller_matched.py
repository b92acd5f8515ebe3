"""Cut 200 stories until the tables of each are off by as much, and look which answers stay right.

Each story is read up to one question, 25 for each of 8 jobs. This takes about 5 minutes of one
core. The file is ``lowrank_tutor/data/storyteller_matched.json``.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from lowrank_tutor import storyteller
from lowrank_tutor.figures.two_cuts import JOBS
from lowrank_tutor.storyteller.matching import MOST
from measure.harness import provenance, write
from measure.training.storyteller_cuts import SEED, short_stories

EACH = 25  # questions of a job
ERRORS = range(51)  # percent


def questions(each: int = EACH) -> list[tuple[tuple[str, ...], str, str]]:
    """Return what is read, the next word, and its job, so many of each in the figure's order."""
    asked: dict[str, list[tuple[tuple[str, ...], str, str]]] = {job: [] for job in JOBS}
    for words, jobs in short_stories(2 * each * len(asked)):
        tests = [(i, job) for i, job in enumerate(jobs) if job and len(asked[job]) < each]
        if tests:
            i, job = min(tests, key=lambda test: len(asked[test[1]]))
            asked[job].append((words[:i], words[i], job))
    return [question for job in asked.values() for question in job]


def right(words: tuple[str, ...], answer: str, cut: str, amount: float) -> bool:
    """Return whether the cut model says the right word, or a verb of the right number."""
    chances = storyteller.next_words(words, **storyteller.between(cut, amount))
    said, kinds = max(chances, key=lambda word: chances[word]), storyteller.KINDS
    alike = [kinds[kind] for kind in ("do", "does") if answer in kinds[kind]]
    return said in (alike[0] if alike else (answer,))


def main() -> int:
    """Cut, print, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="eight stories, and nothing is written"
    )
    asked = questions(1 if parser.parse_args().short else EACH)
    rows = []
    for cut in MOST:
        found = []
        for words, answer, _ in asked:
            kept = storyteller.matched(words, cut, [error / 100 for error in ERRORS])
            found.append([right(words, answer, cut, amount) for amount in kept])
        for error, one in zip(ERRORS, np.transpose(found), strict=True):
            bits = "".join(str(int(answered)) for answered in one)
            rows.append({"cut": cut, "error": error, "right": f"{int(bits, 2):0{len(bits) // 4}x}"})
        print(cut, [int(row.sum()) for row in np.transpose(found)], flush=True)
    if len(asked) == EACH * len(JOBS):
        meta = provenance("python -m measure.training.storyteller_matched", ["numpy"])
        write("storyteller_matched", meta | {"each": EACH, "seed": SEED}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
