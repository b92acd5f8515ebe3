"""Choose the texts of the study: three sets of token numbers, in ``texts.json`` beside this file.

- ``prose``: paragraphs of 40 words or more of *The Rust Programming Language*, an open book;
- ``code``: modules of Python's standard library;
- ``help``: Python's help pages, ``pydoc_data.topics``.

Each set has three draws of four pieces of 256 tokens, three of four pieces of 1,024, and 16 pieces
of 256 for the moments that some cuts need; no two share a token. The sources change with their
versions, so the pieces are kept: ``python -m measure.real_model.texts FOLDER`` was run once, FOLDER
being the book's pages in HTML.
"""

import html
import importlib
import inspect
import json
import platform
import pydoc_data.topics as pages
import random
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lowrank_tutor import smollm

FILE = Path(__file__).with_name("texts.json")
SETS = ("prose", "code", "help")
DRAWS, PIECES, SHORT, LONG, MOMENTS = 3, 4, 256, 1024, 16
MODULES = (
    "argparse ast bisect calendar configparser csv difflib fractions functools heapq inspect "
    "json.decoder mailbox optparse pathlib random shlex statistics string tarfile textwrap "
    "tokenize typing uuid zipfile"
).split()
LICENSES = {
    "prose": "The Rust Programming Language, by Steve Klabnik and Carol Nichols: MIT or Apache-2.0",
    "code": f"the standard library of Python {platform.python_version()}: PSF-2.0",
    "help": f"pydoc_data.topics of Python {platform.python_version()}: PSF-2.0",
}


def prose(folder: Path) -> str:
    """Return the paragraphs of the book's pages that are 40 words or longer."""
    found = []
    for path in sorted(folder.glob("ch*.html")):
        for paragraph in re.findall(r"<p>(.*?)</p>", path.read_text(encoding="utf-8"), re.S):
            words = html.unescape(re.sub(r"<[^>]*>", "", paragraph)).split()
            if len(words) >= 40:
                found.append(" ".join(words))
    return "\n".join(found)


def code() -> str:
    """Return the source of some modules of Python."""
    return "\n".join(inspect.getsource(importlib.import_module(name)) for name in MODULES)


def help_pages() -> str:
    """Return Python's help pages, each on one line."""
    return "\n".join(" ".join(pages.topics[name].split()) for name in sorted(pages.topics))


def choose(ids: Sequence[int], rng: random.Random) -> dict[str, Any]:
    """Draw blocks of 1,024 tokens that do not overlap, and cut all but the long pieces."""
    starts = rng.sample(range(0, len(ids) - LONG, LONG), 2 * DRAWS * PIECES + MOMENTS)
    blocks = iter([ids[start : start + LONG] for start in starts])
    long = list(islice(blocks, DRAWS))
    short = [block[:SHORT] for block in islice(blocks, DRAWS * PIECES)]
    moments = [block[:SHORT] for block in islice(blocks, MOMENTS)]
    return {"long": [*long, *blocks], "short": short, "moments": moments}


def main(folder: Path) -> None:
    """Write the pieces."""
    model = smollm.load()
    texts = {"prose": prose(folder), "code": code(), "help": help_pages()}
    found: Mapping[str, Any] = {
        name: choose(model.encode(text)[0].tolist(), random.Random(0))
        for name, text in texts.items()
    }
    lines = [f'  "licenses": {json.dumps(LICENSES)}']
    lines += [f'  "{name}": {json.dumps(parts)}' for name, parts in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
