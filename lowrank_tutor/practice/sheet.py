"""Write a problem set with its key, an autograder, and question banks: ``python -m lowrank_tutor.practice.sheet 7``.

The seed decides the numbers, so that each class can have its own. In ``dist/problems-7`` are then ``problems.md`` for
the class, ``key.md`` with every step, ``answers.py`` to fill in and ``test_answers.py`` to grade it (plain pytest,
without this package), ``moodle.xml`` (with a hint for each typical mistake), and ``qti.zip`` (QTI 1.2, as Canvas reads
it, a question for each number).
"""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from lowrank_tutor.practice.problem import ALL, Problem, another, tolerance

__all__ = ["problem_set", "write"]

GRADER = '''"""Grade answers.py: put both files into one folder, and run pytest."""

import pytest
from answers import ANSWERS

KEY = {key}  # question: its numbers, each with what it may be off


@pytest.mark.parametrize("question", KEY)
def test_question(question):
    given = ANSWERS[question]
    assert len(given) == len(KEY[question]), "as many numbers as the question asks for"
    assert all(abs(float(one) - right) <= slack for one, (right, slack) in zip(given, KEY[question]))
'''


def problem_set(seed: int) -> list[Problem]:
    """Draw one problem of each kind, in the order of the chapters. The pages draw theirs from other seeds."""
    rng = np.random.default_rng([seed, 56])
    return [another(kind, rng=rng) for kind in ALL]


def write(seed: int, folder: Path) -> None:
    """Write all files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = list(enumerate(problem_set(seed), 1))
    names = [", ".join(problem.steps[-1].values) for _, problem in problems]
    asked = [f"**{i}.** {p.question} ({name})\n" for (i, p), name in zip(problems, names, strict=True)]
    steps = [[f"   - {step.ask} {step.work}\n" for step in p.steps] for _, p in problems]
    key = {i: [(number, tolerance(number)) for number in p.answer] for i, p in problems}
    form = "".join(
        f"    {i}: [{', '.join('...' for _ in p.answer)}],  # {name}\n"
        for (i, p), name in zip(problems, names, strict=True)
    )
    head = f"Rows of a matrix are separated by semicolons. Give fractions exactly, or to three digits. Seed {seed}.\n"
    texts = {
        "problems.md": "\n".join(["# Problems\n", head, *asked]),
        "key.md": "\n".join(
            ["# Key\n", *("".join([one + "\n", *lines]) for one, lines in zip(asked, steps, strict=True))]
        ),
        "answers.py": f"ANSWERS = {{\n{form}}}\n",
        "test_answers.py": GRADER.replace("{key}", repr(key)),
        "moodle.xml": _text(moodle(problems)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(folder / "qti.zip", "w") as archive:
        archive.writestr("imsmanifest.xml", MANIFEST)
        archive.writestr("questions.xml", _text(qti(problems, seed)))


def _text(root: Element) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _add(parent: Element, path: str, text: str = "", **attributes: str) -> Element:
    """Add nested elements; the last one has the text and the attributes."""
    for tag in path.split("/"):
        parent = SubElement(parent, tag)
    parent.text, parent.attrib = text or None, attributes
    return parent


def moodle(problems: list[tuple[int, Problem]]) -> Element:
    """Return a question bank for Moodle: each number a field inside the text, with the hints of its slips."""
    quiz = Element("quiz")
    for i, p in problems:
        question = _add(quiz, "question", type="cloze")
        _add(question, "name/text", f"{i:02} {p.kind}")
        fields = (f"<p>{name}: {_cloze(p, place)}</p>" for place, name in enumerate(p.steps[-1].values))
        _add(question, "questiontext", format="html").append(_element("text", f"<p>{p.question}</p>{''.join(fields)}"))
        rule = "; ".join(f"{step.ask} {step.work}" for step in p.steps)
        _add(question, "generalfeedback", format="html").append(_element("text", rule))
    return quiz


def _element(tag: str, text: str) -> Element:
    made = Element(tag)
    made.text = text
    return made


def _cloze(p: Problem, place: int) -> str:
    right = p.answer[place]
    options = [f"={right!r}:{tolerance(right):.6f}"]
    for number, hint in {wrong[place]: hint for wrong, hint in reversed(p.slips)}.items():
        if abs(number - right) > tolerance(right):
            for letter in "\\~}#/":
                hint = hint.replace(letter, "\\" + letter)
            options.append(f"%0%{number!r}:{tolerance(number):.6f}#{hint}")
    return f"{{1:NUMERICAL:{'~'.join(options)}}}"


QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<manifest identifier="lowrank" xmlns="http://www.imsglobal.org/xsd/imscp_v1p1"><organizations/>
<resources><resource identifier="questions" type="imsqti_xmlv1p2" href="questions.xml"><file href="questions.xml"/>
</resource></resources></manifest>
"""


def _numbers(problems: list[tuple[int, Problem]]) -> Iterator[tuple[str, str, float]]:
    for i, p in problems:
        for place, (name, right) in enumerate(zip(p.steps[-1].values, p.answer, strict=True), 1):
            yield f"q{i:02}_{place}", f"{p.question} {name}:", right


def qti(problems: list[tuple[int, Problem]], seed: int) -> Element:
    """Return an assessment of numerical questions, one for each number of an answer."""
    root = Element("questestinterop", xmlns=QTI)
    assessment = _add(root, "assessment", ident=f"problems-{seed}", title=f"Low rank, seed {seed}")
    section = _add(assessment, "section", ident="root_section")
    for name, text, right in _numbers(problems):
        item = _add(section, "item", ident=name, title=name)
        field = _add(item, "itemmetadata/qtimetadata/qtimetadatafield")
        _add(field, "fieldlabel", "question_type")
        _add(field, "fieldentry", "numerical_question")
        shown = _add(item, "presentation")
        _add(shown, "material/mattext", f"{text}", texttype="text/plain")
        _add(_add(shown, "response_str", ident="response1", rcardinality="Single"), "render_fib", fibtype="Decimal")
        judged = _add(item, "resprocessing")
        _add(judged, "outcomes/decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
        met = _add(judged, "respcondition", **{"continue": "No"})
        both = _add(met, "conditionvar/and")
        _add(both, "vargte", repr(right - tolerance(right)), respident="response1")
        _add(both, "varlte", repr(right + tolerance(right)), respident="response1")
        _add(met, "setvar", "100", action="Set", varname="SCORE")
    return root


if __name__ == "__main__":
    number = int(sys.argv[1]) if sys.argv[1:] else 1
    write(number, target := Path("dist", f"problems-{number}"))
    print(f"Problems, key, autograder, and question banks: {target}")
