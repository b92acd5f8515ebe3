"""Write the skeleton of a chapter wherever the book needs it: ``make chapter N=10 NAME=nuclear``.

The files of ``tools/skeleton`` are copied, and ``ENTRIES`` are put into files that exist; ``NN``, ``topic`` and
``Topic`` stand for the number and the name. Everything is checked before the first file is written.
"""

import keyword
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKELETON = ROOT / "tools" / "skeleton"
QUESTIONS = """\
    # Chapter NN, topic
    "ex-topic-hand": question(
        {"The share": 16 / 25},
        "TODO: a way to begin. Add up the squares of both singular values.",
        (4 / 7, "TODO: a hint for a common wrong answer. The squares count, not the values."),
    ),
    "ex-topic-count": question(
        {"The number of sheets": 3},
        "TODO: Add up squares from the top.",
        (2, "TODO: Two sheets hold 80 of 85."),
    ),
    "ex-topic-error": question(
        {"The relative error": 0.6},
        "TODO: What share is left out?",
        (0.36, "TODO: That is the squared error."),
    ),
    "ex-topic-flat": question(
        {"The share": 3 / 10},
        "TODO: What does each sheet hold?",
        (1, "TODO: All ten hold that."),
    ),
"""
CARD = """    "book/NN-topic": Card(
        "TODO: say in one sentence, of at most 170 characters, what a reader learns here about topic.", "topic"
    ),
"""
PICTURE = """@shows("TODO: draw this, and say what it shows")
def topic(ax):
    ax.add_patch(Rectangle((0, 0), 3, 2, color=TEAL))


"""
API = """## TODO, a heading: topic

```{eval-rst}
.. automodule:: lowrank_tutor.topic
   :members:
```

"""
# A file, the words before which an entry goes, and the entry.
ENTRIES = [
    ("lowrank_tutor/__init__.py", "        byhand,", "        topic,\n"),
    ("lowrank_tutor/__init__.py", '    "byhand",', '    "topic",\n'),
    ("lowrank_tutor/exercises/questions.py", "}\n<end>", QUESTIONS),
    ("_ext/cards.py", '    "book/use-linformer": Card(', CARD),
    ("_ext/cards.py", "def draw(ax, picture)", PICTURE),
    ("README.md", "| `byhand` |", "| `topic` | | TODO: which question does it answer? |\n"),
    ("book/api.md", "## Worked by hand", API),
]


def changes(root: Path, n: str, name: str) -> dict[Path, str]:
    """Return the new text of each file; exit with a message if the chapter cannot be added."""
    last = max(int(path.name[:2]) for path in (root / "book").glob("[0-9][0-9]-*.md"))
    if n != str(last + 1):
        sys.exit(f"N must be {last + 1}, the number after the last chapter, got {n!r}")
    if not re.fullmatch("[a-z][a-z0-9]*", name) or keyword.iskeyword(name):
        sys.exit(f"NAME must be one lower-case word, such as nuclear, got {name!r}")

    def fill(text: str) -> str:
        return text.replace("NN", f"{last + 1:02}").replace("topic", name).replace("Topic", name.capitalize())

    made = {}
    for path in sorted(SKELETON.rglob("*.*")):
        new = root / fill(path.relative_to(SKELETON).as_posix())
        taken = [old for old in (new, new.with_suffix("")) if old.exists()]
        if taken:
            sys.exit(f"NAME must be new, got {name!r}, but {taken[0].relative_to(root)} exists")
        made[new] = fill(path.read_text(encoding="utf-8"))
    for file, place, entry in ENTRIES:
        path = root / file
        text = made.get(path) or path.read_text(encoding="utf-8") + "<end>"
        before, found, after = text.rpartition(place)
        if not found:
            sys.exit(f"{file} must contain {place!r}, so that tools/chapter.py can put an entry before it")
        made[path] = before + fill(entry) + found + after
    return {path: text.removesuffix("<end>") for path, text in made.items()}


def main(root: Path, n: str, name: str) -> None:
    """Write the chapter and name its files."""
    for path, text in changes(root, n, name).items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(root)}")
    print("Write the text where these files say TODO. CONTRIBUTING.md has the rules of a chapter.")


if __name__ == "__main__":
    main(ROOT, *sys.argv[1:])
