"""Draw the book's sampled numbers again, print their medians and spreads, and write them."""

import argparse
import json
import statistics
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from measure.harness import DATA, provenance, write

SEEDS = range(1000, 1020)
CHAPTERS = tuple(
    sorted(
        path.stem.removeprefix("chapter_") for path in Path(__file__).parent.glob("chapter_*.py")
    )
)


def drawn_again(chapter: str, seeds: range = SEEDS) -> list[dict[str, Any]]:
    """Return a row for each number of a chapter.

    It holds the median, the 10th and 90th percentile, the least, and the largest value.
    """
    draw: Callable[[int], dict[str, float]] = import_module(f"measure.draws.chapter_{chapter}").draw
    drawn = [draw(seed) for seed in seeds]
    return [_row(chapter, name, [numbers[name] for numbers in drawn]) for name in drawn[0]]


def _row(chapter: str, name: str, values: list[float]) -> dict[str, Any]:
    values = sorted(float(value) for value in values)
    deciles = statistics.quantiles(values, n=10, method="inclusive")
    numbers = {"median": statistics.median(values), "low": deciles[0], "high": deciles[-1]}
    numbers |= {"least": values[0], "largest": values[-1]}
    return {"chapter": chapter, "name": name} | {
        key: float(f"{value:.4g}") for key, value in numbers.items()
    }


def main(arguments: list[str] | None = None) -> None:
    """Redraw the chapters named on the command line, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m measure.draws", description=__doc__)
    parser.add_argument(
        "chapters", nargs="*", help=f"two digits each, of {', '.join(CHAPTERS)}; by default all"
    )
    chosen = parser.parse_args(arguments).chapters or list(CHAPTERS)
    if unknown := set(chosen) - set(CHAPTERS):
        parser.error(
            f"chapters must be among {', '.join(CHAPTERS)}, got {', '.join(sorted(unknown))}"
        )
    meta = provenance("python -m measure.draws", ["numpy", "scipy", "torch", "scikit-learn"])
    meta["seeds"] = [SEEDS[0], SEEDS[-1]]
    place = DATA / "draws.json"
    old = json.loads(place.read_text(encoding="utf-8"))["rows"] if place.exists() else []
    rows = [row for row in old if row["chapter"] not in chosen]
    for chapter in chosen:
        new = drawn_again(chapter)
        for row in new:
            print(
                "{chapter}  {name}: {median:.4g} ({low:.4g} to {high:.4g})".format(**row),
                flush=True,
            )
        rows += new
    print(f"written: {write('draws', meta, sorted(rows, key=lambda row: row['chapter']))}")


if __name__ == "__main__":
    main()
