"""Write a problem set with its key, an autograder, and question banks: ``python -m lowrank_tutor.practice.sheet 7``.

The seed decides the numbers, so that each class can have its own. In ``dist/problems-7`` are then
``problems.md`` for the class, ``key.md`` with every step, ``answers.py`` to fill in and
``test_answers.py`` to grade it (plain pytest, without this package), ``moodle.xml`` (with a hint
for each typical mistake), and ``qti.zip`` (QTI 1.2, as Canvas reads it, a question for each
number).
"""

import json
import sys
import zipfile
from html import escape
from pathlib import Path

import numpy as np

from lowrank_tutor.kit.block import asset
from lowrank_tutor.practice.problem import ALL, Problem, another, tolerance

__all__ = ["problem_set", "write"]

TEMPLATES = json.loads(asset("practice/sheet.json"))
Problems = list[tuple[int, Problem]]


def problem_set(seed: int) -> list[Problem]:
    """Draw one problem of each kind, in the order of the chapters. The pages draw theirs from other seeds."""
    rng = np.random.default_rng([seed, 56])
    return [another(kind, rng=rng) for kind in ALL]


def write(seed: int, folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = list(enumerate(problem_set(seed), 1))
    asked = [f"**{i}.** {p.question} ({', '.join(p.steps[-1].values)})\n" for i, p in problems]
    steps = ["".join(f"\n   - {step.ask} {step.work}" for step in p.steps) for _, p in problems]
    key = {i: [(number, tolerance(number)) for number in p.answer] for i, p in problems}
    form = [
        f"    {i}: [{', '.join('...' for _ in p.answer)}],  # {', '.join(p.steps[-1].values)}\n"
        for i, p in problems
    ]
    head = f"Rows of a matrix are separated by semicolons. Give fractions exactly, or to three digits. Seed {seed}.\n"
    texts = {
        "problems.md": "\n".join(["# Problems\n", head, *asked]),
        "key.md": "\n".join(
            ["# Key\n", *(f"{one}{lines}\n" for one, lines in zip(asked, steps, strict=True))]
        ),
        "answers.py": f"ANSWERS = {{\n{''.join(form)}}}\n",
        "test_answers.py": TEMPLATES["grader"].replace("{key}", repr(key)),
        "moodle.xml": moodle(problems),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(folder / "qti.zip", "w") as archive:
        archive.writestr("imsmanifest.xml", TEMPLATES["manifest"])
        archive.writestr("questions.xml", qti(problems, seed))


def _cloze(p: Problem, place: int) -> str:
    """Return a field of Moodle: the right number, and those of slips with their hints."""
    right = p.answer[place]
    options = [f"={right!r}:{tolerance(right):.6f}"]
    for wrong, hint in {numbers[place]: hint for numbers, hint in reversed(p.slips)}.items():
        if abs(wrong - right) > tolerance(right):
            options.append(f"%0%{wrong!r}:{tolerance(wrong):.6f}#{hint}")
    return f"{{1:NUMERICAL:{'~'.join(options)}}}"


def moodle(problems: Problems) -> str:
    """Return a question bank for Moodle: each number a field inside the text, with the hints of its slips."""
    questions = []
    for i, p in problems:
        fields = "".join(
            f"<p>{name}: {_cloze(p, place)}</p>" for place, name in enumerate(p.steps[-1].values)
        )
        steps = "; ".join(f"{step.ask} {step.work}" for step in p.steps)
        text, solution = escape(f"<p>{escape(p.question)}</p>{fields}"), escape(steps)
        questions.append(
            TEMPLATES["cloze"].format(name=f"{i:02} {p.kind}", text=text, solution=solution)
        )
    return str(TEMPLATES["quiz"].format(items="".join(questions)))


def qti(problems: Problems, seed: int) -> str:
    """Return an assessment of numerical questions, one for each number of an answer."""
    items = [
        TEMPLATES["item"].format(
            name=f"q{i:02}_{j}",
            text=escape(f"{p.question} {name}:"),
            low=right - slack,
            high=right + slack,
        )
        for i, p in problems
        for j, (name, right) in enumerate(zip(p.steps[-1].values, p.answer, strict=True), 1)
        for slack in [tolerance(right)]
    ]
    return str(TEMPLATES["assessment"].format(seed=seed, items="".join(items)))


if __name__ == "__main__":
    number = int(sys.argv[1]) if sys.argv[1:] else 1
    write(number, target := Path("dist", f"problems-{number}"))
    print(f"Problems, key, autograder, and question banks: {target}")
