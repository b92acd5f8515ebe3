"""Count the right answers of the storyteller under each cut that the book's figure offers, in 200 short stories.

It takes about a minute of one core. The file is ``lowrank_tutor/data/storyteller_cuts.json``.
"""

from __future__ import annotations

import argparse
import sys
from itertools import count, islice

from lowrank_tutor import storyteller
from lowrank_tutor.figures.budget import answers
from lowrank_tutor.figures.storyteller import CUTS, as_options
from measure.harness import provenance, write

STORIES, LONGEST, SEED = 200, 48, 2_000_000


def short_stories(
    number: int = STORIES, longest: int = LONGEST, seed: int = SEED
) -> list[storyteller.Story]:
    """Draw stories of two to four people, and keep the short ones."""
    drawn = (storyteller.stories(1, facts=2 + i % 3, rng=seed + i)[0] for i in count())
    return list(islice((story for story in drawn if len(story.words) <= longest), number))


def shares(cut: str, k: int, told: list[storyteller.Story]) -> dict[str, float]:
    """Return the shares of right answers, of all and by job."""
    options = as_options(cut, k)
    return answers(options.get("weights"), told, options.get("attend"))


def main() -> int:
    """Count, print, and write the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="three stories, and nothing is written"
    )
    told = short_stories(3 if parser.parse_args().short else STORIES)
    rows = []
    for cut, k in [*((cut, k) for cut, way in CUTS.items() for k in way.settings), ("none", 0)]:
        rows.append(
            {"cut": cut, "k": k}
            | {name: round(share, 4) for name, share in shares(cut, k, told).items()}
        )
        print(rows[-1], flush=True)
    if len(told) == STORIES:
        meta = provenance("python -m measure.training.storyteller_cuts", ["numpy"])
        write(
            "storyteller_cuts", meta | {"stories": STORIES, "longest": LONGEST, "seed": SEED}, rows
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
