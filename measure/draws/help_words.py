"""Count the words of Python's longest help pages, for chapter 4.

``python -m measure.draws.help_words`` reads the 60 longest texts of ``pydoc_data.topics``, keeps
the 2,000 words that are most frequent in all of them, and writes
``lowrank_tutor/data/help_words.json``: the words, and for each page which of them occur on it
(``words``, by their places in that list) and how often (``counts``). The texts change between
versions of Python, even between patches, so the file names its version, and the chapter reads the
file.
"""

import platform
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from measure.harness import provenance, write

PAGES, WORDS = 60, 2000


def counted(
    texts: Mapping[str, str], pages: int, words: int
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the most frequent words of the longest texts.

    And for each text which of them it has, and how often.
    """
    longest = sorted(texts, key=lambda name: (-len(texts[name]), name))[:pages]
    counts = {name: Counter(re.findall("[a-z]+", texts[name].lower())) for name in longest}
    total = sum(counts.values(), Counter())
    known = sorted(total, key=lambda word: (-total[word], word))[:words]
    rows = []
    for name, count in counts.items():
        places = [i for i, word in enumerate(known) if word in count]
        rows.append({"page": name, "words": places, "counts": [count[known[i]] for i in places]})
    return known, rows


def main() -> None:
    """Count, and write."""
    from pydoc_data.topics import topics

    known, rows = counted(topics, PAGES, WORDS)
    meta = provenance("python -m measure.draws.help_words", [])
    del meta["machine"]  # counts do not depend on it
    meta |= {
        "text": f"pydoc_data.topics of Python {platform.python_version()}",
        "words": " ".join(known),
    }
    print(f"written: {write('help_words', meta, rows)}")


if __name__ == "__main__":
    main()
